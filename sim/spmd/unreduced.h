// Unreduced values: partitions that hold terms of a sum (mp_boxes_t.partials), and the ways in and
// out.
//
// Both append ops to `block`; the result has the operand's type.
#ifndef MINIPOD_SIM_SPMD_UNREDUCED_H_
#define MINIPOD_SIM_SPMD_UNREDUCED_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// The terms combined by `code` (MP_OP_ADD, or another commutative elementwise op), on each
// partition that holds one: an all_reduce.
MP_NODISCARD mp_status_t mp_unreduced_combine(mp_module_t *module, mp_block_t *block,
                                              const mp_boxes_t *boxes, mp_opcode_t code,
                                              mp_value_t *value, const mp_loc_t *loc,
                                              mp_value_t **out_value);

// Terms that sum up to `value`: the first partition of each sum keeps it, the others have zeros.
MP_NODISCARD mp_status_t mp_unreduced_split(mp_module_t *module, mp_block_t *block,
                                            const mp_boxes_t *boxes, mp_value_t *value,
                                            const mp_loc_t *loc, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_UNREDUCED_H_
