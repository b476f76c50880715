// HLO protocol buffers: what PyTorch/XLA and other clients of XLA's own libraries compile with.
//
// Implements XLA's xla/service/hlo.proto and xla/xla_data.proto as far as programs use them. The
// program becomes StableHLO: tuples are split into their elements, layouts of inner values are
// dropped, and an HLO instruction that StableHLO does not have becomes equivalent operations.
#ifndef MINIPOD_SIM_READERS_HLO_HLO_H_
#define MINIPOD_SIM_READERS_HLO_HLO_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/base/status.h"
#include "sim/ir/module.h"

// Reads an HloModuleProto, or with `has_config` an HloModuleProtoWithConfig; nothing of `data` is
// kept, and the caller owns the module. The module is built but not verified: call mp_module_verify
// before using it. Malformed bytes are INVALID_ARGUMENT with the computation, the instruction and
// the path of the field; content that minipod does not support is UNIMPLEMENTED, by the
// instruction's name, opcode and source line. Memory is bounded by a multiple of `size`.
// Thread-safe.
MP_NODISCARD mp_status_t mp_read_hlo(const void *data, size_t size, bool has_config,
                                     mp_module_t **out_module);

#endif  // MINIPOD_SIM_READERS_HLO_HLO_H_
