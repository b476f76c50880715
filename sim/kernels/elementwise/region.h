// Region functions: the scalar computation inside reduce, scatter, sort, map, all_reduce, ...,
// compiled to a list of elementwise steps that run on many lanes at once.
//
// A region takes and returns tensors of rank 0. Its ops (elementwise ones, constants, conversions,
// select, clamp, bitcasts, and tuples of their values) become steps over arrays of n elements,
// which use the loops of the elementwise kernels. Ops that only copy a scalar become no steps. Any
// other op in a region is refused when the function is made, by name and location.
//
// A region function is immutable; many threads may run it, each with its own scratch.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/ir/reducer.h"

typedef struct mp_region_fn_s mp_region_fn_t;

// Compiles a region in `arena`. `block` and what it captures must outlive the function. Captured
// values are numbered as by mp_op_captures for the op that owns the block.
MP_NODISCARD mp_status_t mp_region_fn_create(mp_arena_t *arena, const mp_block_t *block,
                                             const mp_region_fn_t **out_fn);

// The same for one value that the block computes, as if the block returned it alone; only the ops
// that it depends on become steps.
MP_NODISCARD mp_status_t mp_region_fn_create_value(mp_arena_t *arena, const mp_block_t *block,
                                                   const mp_value_t *value,
                                                   const mp_region_fn_t **out_fn);

// What kind of reduction the region is (sim/ir/reducer.h).
mp_reduce_kind_t mp_region_fn_kind(const mp_region_fn_t *fn);

// The most lanes that one call of mp_region_fn_run may handle, and the scratch bytes that it needs
// for them.
enum { MP_REGION_MAX_LANES = 512 };
size_t mp_region_fn_scratch_bytes(const mp_region_fn_t *fn);

// Computes the region for `n` lanes, n <= MP_REGION_MAX_LANES. Inputs and outputs are arrays of `n`
// stored elements of the types of the region's arguments and results. An output may be the same
// array as an input, but must not overlap one otherwise. `captures` are pointers to scalars.
void mp_region_fn_run(const mp_region_fn_t *fn, int64_t n, const void *const *inputs,
                      const void *const *captures, void *const *outputs, void *scratch);

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_
