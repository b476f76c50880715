// The entry to the readers: MLIR in either of its forms.
#ifndef MINIPOD_SIM_READERS_READER_H_
#define MINIPOD_SIM_READERS_READER_H_

#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Reads bytecode when the first four bytes are 'ML\xEFR', text otherwise; nothing of `data` is
// kept. The module is not verified (mp_module_verify). Errors as in the two readers. Thread-safe.
MP_NODISCARD mp_status_t mp_read_program(const void *data, size_t size, mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_READER_H_
