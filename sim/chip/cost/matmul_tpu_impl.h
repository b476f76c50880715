// Shared by the files about matmuls on TPUs.
#ifndef MINIPOD_SIM_CHIP_COST_MATMUL_TPU_IMPL_H_
#define MINIPOD_SIM_CHIP_COST_MATMUL_TPU_IMPL_H_

#include <math.h>

#include "sim/chip/cost/matmul_cost.h"
#include "sim/chip/rules/chip_rules.h"

// Tiles of memory are 8 rows of 128 elements.
#define MP_MATMUL_TPU_SUBLANES 8
#define MP_MATMUL_TPU_LANES    128

enum { MP_MATMUL_TPU_LHS, MP_MATMUL_TPU_RHS, MP_MATMUL_TPU_RESULT, MP_MATMUL_TPU_ARRAYS };

// Times in seconds, rates in bytes a second.
typedef struct {
  const mp_chip_figures_t *figures;
  const mp_work_matmul_t *matmul;
  double width, out_width;  // bytes of an element
  double tile_k, tile_columns, load_rows;
  double multiply;  // seconds of a multiplication and addition on the unit
  double launch, step, accumulate, fetch, read, window, resident;
  double write[2];  // narrow, wide
  double images;    // seconds of a tile of results with images in its lanes; NAN: unknown
  double relaid;    // seconds of a layout change per element
  double bytes[MP_MATMUL_TPU_ARRAYS];  // in HBM, with padding
  mp_matmul_streams_t streams;
} mp_matmul_tpu_t;

static inline double mp_matmul_tpu_up(double size, double to) {
  return ceil(size / to) * to;
}

// Elements of a window [rows, columns] of a result, with padding.
static inline double mp_matmul_tpu_tiled(double rows, double columns) {
  return mp_matmul_tpu_up(rows, MP_MATMUL_TPU_SUBLANES) *
         mp_matmul_tpu_up(columns, MP_MATMUL_TPU_LANES);
}

// The same in the layout with less padding.
static inline double mp_matmul_tpu_padded(double rows, double columns) {
  return fmin(mp_matmul_tpu_tiled(rows, columns), mp_matmul_tpu_tiled(columns, rows));
}

// The seconds in which [rows, k] runs through tiles of [k, columns]; loading a tile takes the time
// of `load_rows` rows.
static inline double mp_matmul_tpu_pass(const mp_matmul_tpu_t *p, double rows, double k,
                                        double columns) {
  return mp_matmul_tpu_up(k, p->tile_k) * mp_matmul_tpu_up(columns, p->tile_columns) *
         fmax(rows, p->load_rows) * p->multiply;
}

// The same with the better operand in the unit.
static inline double mp_matmul_tpu_units(const mp_matmul_tpu_t *p, double m, double k, double n) {
  return fmin(mp_matmul_tpu_pass(p, mp_matmul_tpu_up(m, MP_MATMUL_TPU_SUBLANES), k, n),
              mp_matmul_tpu_pass(p, mp_matmul_tpu_up(n, MP_MATMUL_TPU_SUBLANES), k, m));
}

// The seconds to write all results.
static inline double mp_matmul_tpu_store(const mp_matmul_tpu_t *p) {
  return p->streams.narrow / p->write[0] + p->streams.wide / p->write[1];
}

// ---- matmul_windows.c ----

// The seconds of a matmul that is no convolution, without its launch.
double mp_matmul_windows_seconds(const mp_matmul_tpu_t *p);

// The seconds of a matmul and an inner one that makes its operand, for each matrix of a batch;
// `handing` seconds per matrix for the inner result. Infinite if both do not fit into windows.
double mp_matmul_windows_pair_seconds(const mp_matmul_tpu_t *p, const mp_matmul_tpu_t *inner,
                                      double handing);

// ---- matmul_convolution.c ----

// The seconds of a convolution, without its launch.
double mp_matmul_convolution_seconds(const mp_matmul_tpu_t *p);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_TPU_IMPL_H_
