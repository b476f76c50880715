// Bands: what lies at one position of the leading dimensions. Two batched matrix products with
// elementwise ops and reductions of rows between them, as attention has them, can be done band by
// band: what is between the products is never an array as a whole.
#ifndef MINIPOD_SIM_KERNELS_FUSED_BAND_H_
#define MINIPOD_SIM_KERNELS_FUSED_BAND_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/ir/module.h"

// The ops of a band, which are those of the region on smaller arrays: the leading dimensions have
// one element. They live in the arena and in no module.
typedef struct {
  int64_t count;             // of bands
  mp_op_t *first, *last;     // the products
  mp_op_t *middle;           // a minipod.fusion of all ops between them
  const mp_op_t *inputs[2];  // the region's own products: the first one, the last one
  // Which operand of the last product `middle` computes.
  uint32_t operand;
  // By argument of the region: it has bands, and is not the same for all of them. The operands of
  // `middle` are these arguments, and behind them the result of the first product.
  const bool *has_bands;
} mp_bands_t;

// Whether a minipod.fusion is two such products and what is between them, which is one value.
// `out_bands` gets the ops if it is.
MP_NODISCARD mp_status_t mp_bands_find(mp_arena_t *arena, const mp_op_t *fusion, bool *out_found,
                                       mp_bands_t *out_bands);

#endif  // MINIPOD_SIM_KERNELS_FUSED_BAND_H_
