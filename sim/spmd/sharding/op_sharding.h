// HLO's OpSharding messages (xla_data.proto): the form of shardings in PJRT clients and JAX's own
// partitioners.
#ifndef MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_
#define MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/spmd/sharding/placement.h"

// Appends the message of a placement; NULL, the whole value, is the empty message. Uses `arena` for
// temporaries. With `spell_out` devices are listed, as in GSPMD's first form, even if an iota would
// describe them. `*out_is_grid` is false, and nothing is written, when the parts are no grid.
MP_NODISCARD mp_status_t mp_op_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes,
                                              bool spell_out, mp_strbuf_t *out, bool *out_is_grid);

// Appends the message of a value that differs in each partition (manual).
void mp_op_sharding_write_manual(mp_strbuf_t *out);

// Appends a message as a GSPMD string, such as "{devices=[2,2]<=[4]}" (gspmd.h has the grammar).
// INVALID_ARGUMENT for a malformed message, and for a tuple of shardings, which
// mp_op_sharding_elements splits.
MP_NODISCARD mp_status_t mp_op_sharding_print(mp_str_t message, mp_strbuf_t *out);

// The shardings in a message for `count` values, borrowed from it: those of a tuple, or the message
// itself if count is 1 and it is no tuple. INVALID_ARGUMENT for another number of shardings.
MP_NODISCARD mp_status_t mp_op_sharding_elements(mp_str_t message, uint32_t count,
                                                 mp_str_t *out_elements);
// Appends the message of a tuple of shardings.
void mp_op_sharding_write_tuple(const mp_str_t *elements, uint32_t count, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_
