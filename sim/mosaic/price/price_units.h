// The units of TPU cores, in two generations, and what ops need of them.
#ifndef MINIPOD_SIM_MOSAIC_PRICE_PRICE_UNITS_H_
#define MINIPOD_SIM_MOSAIC_PRICE_PRICE_UNITS_H_

#include "sim/mosaic/price/price.h"

enum { MP_PRICE_LANES_OF_REGISTER = 128, MP_PRICE_SUBLANES = 8, MP_PRICE_ELEMENTS = 1024 };

// Latencies in cycles, and the matrix unit.
typedef struct {
  double cycles[MP_PRICE_UNIT_COUNT];  // of a unit's work, per register, operation or cycle
  double arithmetic, function, lanes, transpose, matrix;  // latencies
  double tile;                                            // rows and columns of a matrix unit
  double rows_per_cycle;                                  // of bf16 that all matrix units take
  double least_rows;                                      // of a tile: while its weights are loaded
  double step, window, held, condition, iteration;        // scalar code: price_grid.c, price_walk.c
} mp_price_core_t;

const mp_price_core_t *mp_price_core(const mp_price_chip_t *chip);

// What an op needs: amounts of work by unit, and cycles until its result is ready.
typedef struct {
  double work[MP_PRICE_UNIT_COUNT];
  double latency;
  double flops;
} mp_price_need_t;

// Vector registers of a vector: tiles of 8 x 128 words; narrow elements are packed along sublanes.
double mp_price_registers(const mp_mosaic_type_t *type);
// The same for elements that take 32 bits.
double mp_price_wide_registers(const mp_mosaic_type_t *type);
// The dimension from the last one; 1 if there is none.
int64_t mp_price_dim(const mp_mosaic_type_t *type, uint32_t from_last);

// ---- by kind of op ----

// price_elementwise.c: false: the op is not elementwise.
bool mp_price_elementwise(const mp_price_chip_t *chip, const mp_mosaic_op_t *op,
                          mp_price_need_t *out);
// price_shape.c: ops that move elements; reductions.
void mp_price_shape(const mp_price_chip_t *chip, const mp_mosaic_op_t *op, mp_price_need_t *out);
// price_matmul.c
void mp_price_matmul(const mp_price_chip_t *chip, const mp_mosaic_op_t *op, mp_price_need_t *out);

#endif  // MINIPOD_SIM_MOSAIC_PRICE_PRICE_UNITS_H_
