// What the files about matmuls on TPUs share.
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
  double multiply;  // a multiplication and addition on the unit
  double launch, step, accumulate, fetch, read, window, resident;
  double write[2];                     // narrow, wide
  double images;                       // a tile of results with images in its lanes; NAN: unknown
  double relaid;                       // an element brought into other tiles
  double bytes[MP_MATMUL_TPU_ARRAYS];  // as they lie in memory
  mp_matmul_streams_t streams;
} mp_matmul_tpu_t;

static inline double mp_matmul_tpu_up(double size, double to) {
  return ceil(size / to) * to;
}

// Elements of [rows, columns] as windows of a result lie.
static inline double mp_matmul_tpu_tiled(double rows, double columns) {
  return mp_matmul_tpu_up(rows, MP_MATMUL_TPU_SUBLANES) *
         mp_matmul_tpu_up(columns, MP_MATMUL_TPU_LANES);
}

// The same with the padding of the better one of both layouts.
static inline double mp_matmul_tpu_padded(double rows, double columns) {
  return fmin(mp_matmul_tpu_tiled(rows, columns), mp_matmul_tpu_tiled(columns, rows));
}

// [rows, k] runs through tiles of [k, columns]; while a tile is loaded, so many rows could run.
static inline double mp_matmul_tpu_pass(const mp_matmul_tpu_t *p, double rows, double k,
                                        double columns) {
  return mp_matmul_tpu_up(k, p->tile_k) * mp_matmul_tpu_up(columns, p->tile_columns) *
         fmax(rows, p->load_rows) * p->multiply;
}

// Either factor may lie in the unit.
static inline double mp_matmul_tpu_units(const mp_matmul_tpu_t *p, double m, double k, double n) {
  return fmin(mp_matmul_tpu_pass(p, mp_matmul_tpu_up(m, MP_MATMUL_TPU_SUBLANES), k, n),
              mp_matmul_tpu_pass(p, mp_matmul_tpu_up(n, MP_MATMUL_TPU_SUBLANES), k, m));
}

// The seconds in which all results are written.
static inline double mp_matmul_tpu_store(const mp_matmul_tpu_t *p) {
  return p->streams.narrow / p->write[0] + p->streams.wide / p->write[1];
}

// ---- matmul_windows.c ----

// The seconds of a matmul that is no convolution, without its launch.
double mp_matmul_windows_seconds(const mp_matmul_tpu_t *p);

// Of a matmul and one in its kernel that makes a factor of it, matrix by matrix of a batch; so
// many seconds a matrix are for handing it over. Infinite if both do not fit into windows.
double mp_matmul_windows_pair_seconds(const mp_matmul_tpu_t *p, const mp_matmul_tpu_t *inner,
                                      double handing);

// ---- matmul_convolution.c ----

// The seconds of a convolution, without its launch.
double mp_matmul_convolution_seconds(const mp_matmul_tpu_t *p);

#endif  // MINIPOD_SIM_CHIP_COST_MATMUL_TPU_IMPL_H_
