// The entry to the readers: MLIR in either of its forms.
#ifndef MINIPOD_SIM_READERS_READER_H_
#define MINIPOD_SIM_READERS_READER_H_

#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Reads bytecode when the first four bytes are 'ML\xEFR', and text otherwise. Nothing of `data` is
// kept, and the caller owns the module (mp_module_release). The module is not verified: call
// mp_module_verify before using it. Errors are those of mp_read_bytecode and mp_read_text.
// Thread-safe.
MP_NODISCARD mp_status_t mp_read_program(const void *data, size_t size, mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_READER_H_
