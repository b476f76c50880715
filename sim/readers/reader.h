// The entry to the readers: MLIR in either of its forms, and HLO protocol buffers.
#ifndef MINIPOD_SIM_READERS_READER_H_
#define MINIPOD_SIM_READERS_READER_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/status.h"
#include "sim/base/str.h"
#include "sim/ir/module.h"

typedef enum {
  MP_PROGRAM_MLIR,             // bytecode or text
  MP_PROGRAM_HLO,              // HloModuleProto
  MP_PROGRAM_HLO_WITH_CONFIG,  // HloModuleProtoWithConfig
} mp_program_form_t;

// The form with the name that PJRT gives it: "mlir", "hlo", "hlo_with_config". False for others.
bool mp_program_form_from_name(mp_str_t name, mp_program_form_t *out_form);

// Reads a program. MLIR is bytecode when the first four bytes are 'ML\xEFR', and text otherwise.
// The module keeps no pointer into `data`; the caller owns the module (mp_module_release). The
// module is not verified: call mp_module_verify before using it. Errors are those of
// mp_read_bytecode, mp_read_text and mp_read_hlo. Thread-safe.
MP_NODISCARD mp_status_t mp_read_program(const void *data, size_t size, mp_program_form_t form,
                                         mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_READER_H_
