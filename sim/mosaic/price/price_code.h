// The cost of straight code: vector ops between control flow, DMAs and semaphores.
#ifndef MINIPOD_SIM_MOSAIC_PRICE_PRICE_CODE_H_
#define MINIPOD_SIM_MOSAIC_PRICE_PRICE_CODE_H_

#include "sim/mosaic/price/price_units.h"

typedef struct {
  double cycles;                      // what it takes
  double units[MP_PRICE_UNIT_COUNT];  // cycles that each unit needs
  double flops;
} mp_price_code_t;

// What is known of the values of a function while its code is priced. All zero at first.
typedef struct {
  double ready;      // cycles after the beginning of its code
  uint32_t same_as;  // 1 + the id of a value before that is equal; 0: none
  uint32_t code;     // the number of the code that makes it; 0: none yet
  bool is_same;      // all its elements are equal, or known before the kernel runs
  bool is_spread;    // each row has the same element in all lanes
  bool is_used;
} mp_price_value_t;

// Marks the values that ops with effects use, directly or not. `values`: by id.
MP_NODISCARD mp_status_t mp_price_mark_used(mp_arena_t *arena, const mp_mosaic_block_t *block,
                                            mp_price_value_t *values);

// Prices the vector ops of [first, end) of one block, as code number `code`; other ops are skipped.
void mp_price_code(const mp_price_chip_t *chip, const mp_mosaic_op_t *first,
                   const mp_mosaic_op_t *end, uint32_t code, mp_price_value_t *values,
                   mp_price_code_t *out_code);

// Whether the op is vector code, as opposed to scalars, views, flow, DMAs.
bool mp_price_is_code(const mp_mosaic_op_t *op);

#endif  // MINIPOD_SIM_MOSAIC_PRICE_PRICE_CODE_H_
