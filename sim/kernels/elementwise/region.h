// Region functions: the scalar computation inside reduce, scatter, sort, map, all_reduce, ...,
// compiled to a list of elementwise steps that run on many lanes at once.
//
// A region takes and returns rank-0 tensors. Its ops (elementwise ones, constants, converts,
// select, clamp, bitcasts, tuples of them; casts and sharding constraints are looked through)
// become steps over arrays of n elements: the same loops as the elementwise kernels'. Anything else
// in a region is refused when the function is made, naming the op and its location.
//
// Immutable after creation; run may be called from many threads with different scratch.
#ifndef MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_
#define MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_

#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/ir/reducer.h"

typedef struct mp_region_fn_s mp_region_fn_t;

// `block` and what it captures must outlive the function. Captured values are numbered by
// mp_op_captures(op owning the block).
MP_NODISCARD mp_status_t mp_region_fn_create(mp_arena_t *arena, const mp_block_t *block,
                                             const mp_region_fn_t **out_fn);

// The same for one value that the block computes, as if the block returned it alone; only the ops
// that it depends on become steps.
MP_NODISCARD mp_status_t mp_region_fn_create_value(mp_arena_t *arena, const mp_block_t *block,
                                                   const mp_value_t *value,
                                                   const mp_region_fn_t **out_fn);

mp_reduce_kind_t mp_region_fn_kind(const mp_region_fn_t *fn);

// Lanes that one call to run may handle at most, and the scratch bytes it needs for them.
enum { MP_REGION_MAX_LANES = 512 };
size_t mp_region_fn_scratch_bytes(const mp_region_fn_t *fn);

// outputs[i][0..n) = fn(inputs[...][0..n)); inputs and outputs are arrays of n stored elements of
// the region's argument and result types, n <= MP_REGION_MAX_LANES. An output may be the same
// array as an input (never overlap it otherwise). `captures` are pointers to scalars.
void mp_region_fn_run(const mp_region_fn_t *fn, int64_t n, const void *const *inputs,
                      const void *const *captures, void *const *outputs, void *scratch);

#endif  // MINIPOD_SIM_KERNELS_ELEMENTWISE_REGION_H_
