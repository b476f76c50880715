// Bands: the part of an array at one position of its leading dimensions. Attention has two batched
// matmuls with elementwise ops and reductions of rows between them. These can be computed band by
// band, so the values between the matmuls are never whole arrays.
#ifndef MINIPOD_SIM_KERNELS_FUSED_BAND_H_
#define MINIPOD_SIM_KERNELS_FUSED_BAND_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"

// The ops of a band: those of the region, on arrays with one element in the leading dimensions.
// They live in the arena and in no module.
typedef struct {
  int64_t count;             // of bands
  mp_op_t *first, *last;     // the products
  mp_op_t *middle;           // a minipod.fusion of all ops between them
  const mp_op_t *inputs[2];  // the region's own products: the first one, the last one
  // Which operand of the last product `middle` computes.
  uint32_t operand;
  // By argument of the region: whether each band reads its own part of the argument. The operands
  // of `middle` are these arguments, and after them the result of the first product.
  const bool *has_bands;
} mp_bands_t;

// Whether a minipod.fusion consists of two such products with ops between them that yield one
// value. If so, `out_bands` gets the ops.
MP_NODISCARD mp_status_t mp_bands_find(mp_arena_t *arena, const mp_op_t *fusion, bool *out_found,
                                       mp_bands_t *out_bands);

#endif  // MINIPOD_SIM_KERNELS_FUSED_BAND_H_
