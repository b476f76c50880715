// StableHLO as MLIR text: pretty and generic forms, Shardy's operations and attributes, mhlo's
// spelling of the same; any mixture of them.
//
// What the text leaves out because it holds its default is filled in, structs of attributes become
// the single attributes that VHLO has (sim/ir/schema.h), symbols become strings: text and bytecode
// of the same program give equal modules, but for locations. An operation without location gets its
// place in the text.
//
// Specification: MLIR language reference; StableHLO dialect documentation and its assembly formats.
#ifndef MINIPOD_SIM_READERS_TEXT_TEXT_H_
#define MINIPOD_SIM_READERS_TEXT_TEXT_H_

#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Reads a program; the text need not end in NUL and nothing of it is kept. The module is built, not
// verified: call mp_module_verify before using it. Malformed text is INVALID_ARGUMENT
// ("12:7: expected ')', found ','"), what minipod has no form for UNIMPLEMENTED, naming it. Memory
// is bounded by a multiple of `size`. Thread-safe.
MP_NODISCARD mp_status_t mp_read_text(const char *text, size_t size, mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_TEXT_TEXT_H_
