// Reads Mosaic modules: MLIR bytecode ("ML\xefR") as JAX writes it, or MLIR text (generic form) as
// TorchTPU writes it, of the dialect stable_mosaic. Input is hostile: every length is checked, and
// memory is bounded by the size of the input.
#ifndef MINIPOD_SIM_MOSAIC_READ_MOSAIC_READER_H_
#define MINIPOD_SIM_MOSAIC_READ_MOSAIC_READER_H_

#include "sim/mosaic/ir/mosaic_ir.h"

// Reads a module, unverified; the caller owns it. INVALID_ARGUMENT with offset or line for
// malformed input; UNIMPLEMENTED, with the name, for ops, types, attributes and versions that are
// not known.
MP_NODISCARD mp_status_t mp_mosaic_read(const void *bytes, size_t size,
                                        mp_mosaic_module_t **out_module);

#endif  // MINIPOD_SIM_MOSAIC_READ_MOSAIC_READER_H_
