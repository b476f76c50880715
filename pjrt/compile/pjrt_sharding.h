// The shardings of a program's parameters, results and values, as OpSharding messages for clients.
#ifndef MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_
#define MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/plan/program.h"

// Appends boxes (NULL: whole) as an OpSharding message; `is_manual`: each device has its own value;
// `spell_out`: with a list of devices even if an iota would describe them. `arena` is for
// temporaries.
MP_NODISCARD mp_status_t mp_pjrt_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes,
                                                bool is_manual, bool spell_out, mp_strbuf_t *out);

// The messages of `count` values in `arena`, each "" if the value is whole. Without values nothing
// is written: clients distinguish a missing list from an empty one.
MP_NODISCARD mp_status_t mp_pjrt_sharding_list(mp_arena_t *arena, const mp_program_io_t *values,
                                               uint32_t count, bool spell_out,
                                               const char ***out_shardings, size_t **out_sizes);

#endif  // MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_
