// chlo.scan: a composite with a region that is applied along one dimension of its inputs.
//
//     (inputs..., inits...) -> (outputs..., carries...)
//     region: (an element of each input..., carries...) -> (an element of each output...,
//     carries...)
//
// An "element" has the input's dimensions without the scanned one. The composite's attributes say
// `dimension`, `scan_dim_size`, `is_reverse` and `is_associative`. Its decomposition is a loop.
#ifndef MINIPOD_SIM_PASSES_SCAN_H_
#define MINIPOD_SIM_PASSES_SCAN_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

typedef struct {
  mp_module_t *module;
  const mp_op_t *op;            // the composite
  const mp_loc_t *loc;          // of the ops that are made
  mp_value_t *const *operands;  // in place of the composite's
  // Appends a copy of the composite's region to a block, without the region's terminator.
  mp_status_t (*copy_region)(void *context, const mp_block_t *region, mp_value_t *const *args,
                             mp_block_t *to, mp_value_t **out_results);
  void *context;
} mp_scan_t;

// Whether the op is a composite of this kind, of a known version.
bool mp_scan_is(const mp_op_t *op);

// Appends ops to `to` that compute the composite better than its decomposition does:
// - An associative reduction (add, multiply, minimum, maximum, and, or, xor) of one input becomes a
//   reduce_window.
// - If the scanned dimension is the innermost one, a step of the decomposition's loop reads and
//   writes single elements with gaps. So the loop is made over transposed arrays, and gives the
//   same bits.
// Writes all results of the composite, or sets `*out_made` to false if the decomposition is as
// good.
MP_NODISCARD mp_status_t mp_scan_make(const mp_scan_t *scan, mp_block_t *to,
                                      mp_value_t **out_results, bool *out_made);

#endif  // MINIPOD_SIM_PASSES_SCAN_H_
