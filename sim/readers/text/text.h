// StableHLO as MLIR text: pretty and generic forms, Shardy's operations and attributes, and mhlo's
// spelling of the same, in any mixture.
//
// Text and bytecode of the same program give equal modules, except for locations: attributes that
// the text leaves out because they have their default value are filled in, structs of attributes
// become the single attributes that VHLO has (sim/ir/schema.h), and symbols become strings. The
// location of an operation without one is its place in the text.
//
// Specification: MLIR language reference; StableHLO dialect documentation and its assembly formats.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_H_

#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Reads a program. The text need not end in NUL, nothing of it is kept, and the caller owns the
// module. The module is built but not verified: call mp_module_verify before using it. Malformed
// text is INVALID_ARGUMENT ("12:7: expected ')', found ','"); content that minipod does not support
// is UNIMPLEMENTED, by name. Memory is bounded by a multiple of `size`. Thread-safe.
MP_NODISCARD mp_status_t mp_read_text(const char *text, size_t size, mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_H_
