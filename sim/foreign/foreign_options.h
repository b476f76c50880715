// Options of one execution, as handlers get them.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_OPTIONS_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_OPTIONS_H_

#include "sim/base/arena.h"
#include "sim/base/options.h"
#include "sim/base/status.h"
#include "sim/foreign/foreign_abi.h"

// Makes a dictionary of the values, in `arena` and sorted by name: strings, s64, arrays of s64,
// f32 and booleans. The values are copied. If a name is given twice, the last value counts.
MP_NODISCARD mp_status_t mp_foreign_options_create(mp_arena_t *arena,
                                                   const mp_named_value_t *values, size_t count,
                                                   XLA_FFI_Attrs *out_attrs);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_OPTIONS_H_
