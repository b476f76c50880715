// The attributes of a call, as handlers get them.
#ifndef MINIPOD_SIM_FOREIGN_FOREIGN_ATTRS_H_
#define MINIPOD_SIM_FOREIGN_FOREIGN_ATTRS_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/foreign/foreign_abi.h"
#include "sim/ir/module.h"

// Whether the call is typed (API version 4): its attributes are a dictionary, in backend_config or
// in mhlo.backend_config, where JAX puts it under an older version's number.
bool mp_foreign_is_typed(const mp_op_t *op);
// The bytes that an untyped call passes on unchanged: its backend_config.
mp_str_t mp_foreign_opaque(const mp_op_t *op);

// Makes the attributes of a typed call, in `arena`, sorted by name. INVALID_ARGUMENT, naming op and
// attribute, for a kind of attribute that the interface does not have: booleans, integers of 8 to
// 64 bits, f32 and f64, arrays of these numbers, strings, and dictionaries of all of them.
MP_NODISCARD mp_status_t mp_foreign_attrs_create(mp_arena_t *arena, const mp_op_t *op,
                                                 XLA_FFI_Attrs *out_attrs);

#endif  // MINIPOD_SIM_FOREIGN_FOREIGN_ATTRS_H_
