// Named compile options (`jax.jit(f, compiler_options={"xla_…": …})`).
#ifndef MINIPOD_SIM_READERS_OPTIONS_DEBUG_OPTIONS_H_
#define MINIPOD_SIM_READERS_OPTIONS_DEBUG_OPTIONS_H_

#include "sim/base/arena.h"
#include "sim/base/proto.h"

// Reads one entry of env_option_overrides: a name and a value. `xla_disable_hlo_passes` with
// "algsimp" among its names sets `*out_as_written`. Other names of XLA's flags (dumps, profiles,
// tuning of other back ends) are accepted and have no effect, which is logged once at level info;
// their value must be of the flag's type. Others: INVALID_ARGUMENT "No such compile option: 'x'",
// XLA's message, which JAX's users and tests know.
//
// With `is_tpu` the names of libtpu's flags ("xla_tpu_…" and others) are accepted, too, with any
// value: `*out_libtpu` becomes "name=value" in `arena`. Of other options it is left as it is.
MP_NODISCARD mp_status_t mp_debug_option_read(mp_proto_reader_t entry, bool is_tpu,
                                              mp_arena_t *arena, bool *out_as_written,
                                              mp_str_t *out_libtpu);

// Logs at level info, once per process and name, that a flag of libtpu ("name=value") has no effect
// here.
void mp_debug_option_tell_libtpu(mp_str_t flag);

#endif  // MINIPOD_SIM_READERS_OPTIONS_DEBUG_OPTIONS_H_
