// Integers in registers.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_SCALAR_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_SCALAR_H_

#include <string.h>

#include "sim/mosaic/ir/mosaic_ir.h"

// The lowest `bits` bits of a number, with zeros or with copies of the last of them above. i1 is 0
// or 1 in registers.
static inline uint64_t mp_mosaic_unsigned(uint8_t bits, int64_t value) {
  return bits >= 64 ? (uint64_t)value : (uint64_t)value & ((UINT64_C(1) << bits) - 1);
}
static inline int64_t mp_mosaic_signed(uint8_t bits, int64_t value) {
  if (bits >= 64) return value;
  if (bits == 1) return value & 1;
  return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

// Whether mp_mosaic_integer knows the op.
bool mp_mosaic_is_integer(mp_mosaic_opcode_t code);
// One of arith's ops on two integers of `bits` bits. Division by zero gives what StableHLO's does:
// all bits set, and the remainder is the dividend.
int64_t mp_mosaic_integer(mp_mosaic_opcode_t code, uint8_t bits, int64_t a, int64_t b);
// arith.cmpi.
int64_t mp_mosaic_compare(uint8_t predicate, uint8_t bits, int64_t a, int64_t b);

// An element in memory as a register holds it.
int64_t mp_mosaic_scalar_load(mp_dtype_t dtype, const void *element);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_SCALAR_H_
