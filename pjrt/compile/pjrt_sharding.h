// How the parameters, results and values of a program are split, as the OpSharding messages that
// clients get of them.
#ifndef MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_
#define MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/plan/program.h"

// Appends boxes (NULL: whole) as an OpSharding message; `is_manual`: they are a device's own;
// `spell_out`: with a list of devices even where a rule would say them. `arena` is for working
// memory.
MP_NODISCARD mp_status_t mp_pjrt_sharding_write(mp_arena_t *arena, const mp_boxes_t *boxes,
                                                bool is_manual, bool spell_out, mp_strbuf_t *out);

// The messages of `count` values in `arena`, each "" where the value is whole. Of no values there
// is no list, and nothing is written: clients tell that from an empty one.
MP_NODISCARD mp_status_t mp_pjrt_sharding_list(mp_arena_t *arena, const mp_program_io_t *values,
                                               uint32_t count, bool spell_out,
                                               const char ***out_shardings, size_t **out_sizes);

#endif  // MINIPOD_PJRT_COMPILE_PJRT_SHARDING_H_
