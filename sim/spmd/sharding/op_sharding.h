// HLO's OpSharding messages (xla_data.proto), the form in which clients of PJRT and JAX's own
// partitioners speak of shardings.
#ifndef MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_
#define MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/spmd/sharding/placement.h"

// Appends the message of a placement; NULL, the whole value, is the empty message. Uses `arena` for
// temporaries. With `spell_out` devices are listed, as in GSPMD's first form, also where a rule
// would say them. `*out_is_grid` is false, and nothing is written, when the parts are no grid.
MP_NODISCARD mp_status_t mp_op_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes,
                                              bool spell_out, mp_strbuf_t *out, bool *out_is_grid);

// Appends the message of a value that each partition has one of its own of.
void mp_op_sharding_write_manual(mp_strbuf_t *out);

// Appends a message as a GSPMD string, such as "{devices=[2,2]<=[4]}" (gspmd.h has the grammar). A
// tuple of shardings is refused, INVALID_ARGUMENT, like what is no such message: take it apart by
// mp_op_sharding_elements.
MP_NODISCARD mp_status_t mp_op_sharding_print(mp_str_t message, mp_strbuf_t *out);

// The shardings in a message that is for `count` values, borrowed from it: those of a tuple, or
// the message itself if count is 1 and it is none. INVALID_ARGUMENT when there are not `count`.
MP_NODISCARD mp_status_t mp_op_sharding_elements(mp_str_t message, uint32_t count,
                                                 mp_str_t *out_elements);
// Appends the message of a tuple of shardings.
void mp_op_sharding_write_tuple(const mp_str_t *elements, uint32_t count, mp_strbuf_t *out);

#endif  // MINIPOD_SIM_SPMD_SHARDING_OP_SHARDING_H_
