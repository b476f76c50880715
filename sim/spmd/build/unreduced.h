// Unreduced values, of which partitions hold terms of a sum, a maximum or a minimum
// (mp_boxes_t.partials): making them and combining them.
//
// The functions append ops (append.h). The result has the operand's type, except for
// mp_unreduced_gather.
#ifndef MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_
#define MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"
#include "sim/spmd/build/append.h"

// The op that combines terms of this kind (mp_boxes_t.unreduced_kind).
mp_opcode_t mp_unreduced_opcode(uint32_t kind);

// Combines the terms by `code` (MP_OP_ADD or another commutative elementwise op) with an
// all_reduce, which gives the result to each partition that holds a term.
MP_NODISCARD mp_status_t mp_unreduced_combine(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                              mp_opcode_t code, mp_value_t *value,
                                              mp_value_t **out_value);

// The result is `value` on the first partition of each sum, and on the others the identity of
// `code` (sim/ir/reducer.h), which must exist.
MP_NODISCARD mp_status_t mp_unreduced_keep_first(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                                 mp_opcode_t code, mp_value_t *value,
                                                 mp_value_t **out_value);

// Concatenates the terms along the first dimension, in the order of the partitions, on each of
// them: an all_gather.
MP_NODISCARD mp_status_t mp_unreduced_gather(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                             mp_value_t *value, mp_value_t **out_value);

// Makes terms from `value`. For a sum the first partition keeps it and the others get zeros; for a
// maximum or minimum all keep it.
MP_NODISCARD mp_status_t mp_unreduced_split(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                            mp_value_t *value, mp_value_t **out_value);

#endif  // MINIPOD_SIM_SPMD_BUILD_UNREDUCED_H_
