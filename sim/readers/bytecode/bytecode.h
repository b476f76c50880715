// MLIR bytecode (versions 0 to 6) of VHLO, Shardy and builtin operations: what JAX compiles with.
//
// Implements LLVM's mlir/docs/BytecodeFormat.md and the encodings of StableHLO's VHLO dialect up to
// 1.20 and of Shardy's dialect. Older spellings of an operation become its newest form. A
// builtin.unrealized_conversion_cast disappears: its result and its operand become one value.
#ifndef MINIPOD_SIM_READERS_BYTECODE_BYTECODE_H_
#define MINIPOD_SIM_READERS_BYTECODE_BYTECODE_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// True if the bytes begin with bytecode's magic number.
bool mp_is_bytecode(const void *data, size_t size);

// Reads a program; nothing of `data` is kept, and the caller owns the module. The module is built
// but not verified: call mp_module_verify before using it. Malformed bytes are INVALID_ARGUMENT
// with the offset of the fault ("bytecode: offset 123: ..."); content that minipod does not support
// is UNIMPLEMENTED, by name. Memory is bounded by a multiple of `size`. Thread-safe.
MP_NODISCARD mp_status_t mp_read_bytecode(const void *data, size_t size, mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_BYTECODE_BYTECODE_H_
