// Unreduced values: partitions that hold terms of a sum (mp_boxes_t.partials), and the ways in and
// out.
//
// Both append ops to `block`; the result has the operand's type, but for gather.
#ifndef MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_
#define MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// The terms combined by `code` (MP_OP_ADD, or another commutative elementwise op), on each
// partition that holds one: an all_reduce.
MP_NODISCARD mp_status_t mp_unreduced_combine(mp_module_t *module, mp_block_t *block,
                                              const mp_boxes_t *boxes, mp_opcode_t code,
                                              mp_value_t *value, const mp_loc_t *loc,
                                              mp_value_t **out_value);

// What `code` combines with anything without changing it (ADD, MULTIPLY, OR, XOR), as a stored
// element of up to 16 bytes. Of sums of floats that is negative zero where there is one. False when
// there is no such element.
bool mp_unreduced_identity(mp_dtype_t dtype, mp_opcode_t code, void *out_element);

// Whether `value` is a constant of that kind, or a zero of either sign of a sum.
bool mp_unreduced_is_identity(const mp_value_t *value, mp_opcode_t code);

// `value` on the first partition of each sum, on the others the identity of `code`, which must
// exist.
MP_NODISCARD mp_status_t mp_unreduced_keep_first(mp_module_t *module, mp_block_t *block,
                                                 const mp_boxes_t *boxes, mp_opcode_t code,
                                                 mp_value_t *value, const mp_loc_t *loc,
                                                 mp_value_t **out_value);

// The terms side by side along the first dimension, in order of partitions: an all_gather.
MP_NODISCARD mp_status_t mp_unreduced_gather(mp_module_t *module, mp_block_t *block,
                                             const mp_boxes_t *boxes, mp_value_t *value,
                                             const mp_loc_t *loc, mp_value_t **out_value);

// Terms that sum up to `value`: the first partition of each sum keeps it, the others have zeros.
MP_NODISCARD mp_status_t mp_unreduced_split(mp_module_t *module, mp_block_t *block,
                                            const mp_boxes_t *boxes, mp_value_t *value,
                                            const mp_loc_t *loc, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_
