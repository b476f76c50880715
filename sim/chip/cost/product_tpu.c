// Products on a TPU: the compiler cuts them into windows that lie in scratch memory, two of each
// operand and of the result, and takes the cheapest cut. Convolutions are products for each element
// of their window.
#include <math.h>

#include "sim/chip/cost/product_cost.h"

// Tiles of memory are 8 rows of 128 elements.
#define PRODUCT_TPU_SUBLANES 8
#define PRODUCT_TPU_LANES    128
// Windows are no smaller than this, but for their last ones.
#define PRODUCT_TPU_LEAST_SIDE 64
#define PRODUCT_TPU_LEAST_K    512
// A result that stays in scratch memory is written so much faster.
#define PRODUCT_TPU_SCRATCH_WRITE 1.45
// The step of a convolution is about so long.
#define PRODUCT_TPU_CONVOLUTION_STEP 8e-6
// A row of the window's elements is packed into k where the channels are so few, or where k stays
// so short.
#define PRODUCT_TPU_FEW_CHANNELS 8
#define PRODUCT_TPU_SHORT_K      32

enum { PRODUCT_TPU_LHS, PRODUCT_TPU_RHS, PRODUCT_TPU_RESULT, PRODUCT_TPU_ARRAYS };

// Into how many parts m, n and k are cut.
static const double g_cuts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};
enum { NUM_CUTS = sizeof(g_cuts) / sizeof(g_cuts[0]) };

// Times in seconds, rates in bytes a second.
typedef struct {
  const mp_work_product_t *product;
  double width, out_width;  // bytes of an element
  double tile_k, tile_columns, load_rows;
  double multiply;  // a multiplication and addition on the unit
  double launch, step, accumulate, read, write, window, resident;
  double bytes[PRODUCT_TPU_ARRAYS];     // as they lie in memory
  bool is_scratch[PRODUCT_TPU_ARRAYS];  // lies in scratch memory, or was fetched before
  double extra;                         // bytes of what is fused
} product_tpu_t;

bool mp_product_is_tpu(const mp_chip_t *chip) {
  return chip->figures.product_tile.count == 3;
}

static double product_tpu_up(double size, double to) {
  return ceil(size / to) * to;
}

// Elements of [rows, columns] with the padding of the better one of both layouts.
static double product_tpu_padded(double rows, double columns) {
  const double sublanes = PRODUCT_TPU_SUBLANES, lanes = PRODUCT_TPU_LANES;
  return fmin(product_tpu_up(rows, sublanes) * product_tpu_up(columns, lanes),
              product_tpu_up(rows, lanes) * product_tpu_up(columns, sublanes));
}

// Elements of [rows, columns] as windows of a result lie.
static double product_tpu_tiled(double rows, double columns) {
  return product_tpu_up(rows, PRODUCT_TPU_SUBLANES) * product_tpu_up(columns, PRODUCT_TPU_LANES);
}

// ---- the units ----

// [rows, k] runs through tiles of [k, columns]; while a tile is loaded, so many rows could run.
static double product_tpu_pass(const product_tpu_t *p, double rows, double k, double columns) {
  return product_tpu_up(k, p->tile_k) * product_tpu_up(columns, p->tile_columns) *
         fmax(rows, p->load_rows) * p->multiply;
}

// Either factor may lie in the unit.
static double product_tpu_units(const product_tpu_t *p, double m, double k, double n) {
  return fmin(product_tpu_pass(p, product_tpu_up(m, PRODUCT_TPU_SUBLANES), k, n),
              product_tpu_pass(p, product_tpu_up(n, PRODUCT_TPU_SUBLANES), k, m));
}

// Work and transfers go on beside each other, but for the first transfer or the last work.
static double product_tpu_beside(double units, double transfer, double steps) {
  return fmax(units + transfer / steps, transfer + units / steps);
}

// ---- products by windows ----

typedef struct {
  double m, n, k;  // parts
} product_tpu_cut_t;

static bool product_tpu_may_cut(double size, double least, double parts) {
  return parts == 1 || parts <= floor(size / least);
}

// Whether a cut into more parts of this size can be had.
static bool product_tpu_is_finest(double size, double least, double parts) {
  for (int i = 0; i < NUM_CUTS; ++i) {
    if (g_cuts[i] > parts) return !product_tpu_may_cut(size, least, g_cuts[i]);
  }
  return true;
}

// What the windows of a cut take in scratch memory, all of them twice, and the sums in f32.
static double product_tpu_scratch(const product_tpu_t *p, const product_tpu_cut_t *cut, double m,
                                  double n, double k) {
  enum { F32_BYTES = 4 };
  const double result = product_tpu_tiled(m, n);
  double bytes = 2 * result * p->out_width;
  if (!p->is_scratch[PRODUCT_TPU_LHS]) bytes += 2 * product_tpu_padded(m, k) * p->width;
  if (!p->is_scratch[PRODUCT_TPU_RHS]) bytes += 2 * product_tpu_padded(k, n) * p->width;
  return bytes + (cut->k > 1 ? result * F32_BYTES : 0);
}

// What is read and written: an operand is read again for each part of the other one's side, unless
// its window stays from step to step.
static double product_tpu_transfer(const product_tpu_t *p, const product_tpu_cut_t *cut) {
  double lhs = p->is_scratch[PRODUCT_TPU_LHS] ? 0 : p->bytes[PRODUCT_TPU_LHS];
  double rhs = p->is_scratch[PRODUCT_TPU_RHS] ? 0 : p->bytes[PRODUCT_TPU_RHS];
  double reads = lhs * cut->n + rhs * cut->m;
  if (cut->k == 1) {
    const double m_outside = lhs + rhs * (cut->n > 1 ? cut->m : 1);
    const double n_outside = lhs * (cut->m > 1 ? cut->n : 1) + rhs;
    reads = fmin(m_outside, n_outside);
  }
  return (reads + p->extra) / p->read + p->bytes[PRODUCT_TPU_RESULT] / p->write;
}

// The seconds with a cut; infinite if its windows are too large.
static double product_tpu_cut_seconds(const product_tpu_t *p, const product_tpu_cut_t *cut) {
  const mp_work_product_t *product = p->product;
  const double m = ceil(product->m / cut->m), n = ceil(product->n / cut->n);
  const double k = ceil(product->k / cut->k);
  const double scratch = product_tpu_scratch(p, cut, m, n, k), cuts = cut->m * cut->n * cut->k;
  const bool is_finest = product_tpu_is_finest(product->m, PRODUCT_TPU_LEAST_SIDE, cut->m) &&
                         product_tpu_is_finest(product->n, PRODUCT_TPU_LEAST_SIDE, cut->n) &&
                         product_tpu_is_finest(product->k, PRODUCT_TPU_LEAST_K, cut->k);
  if (scratch > p->window && !is_finest) return INFINITY;
  // Small products of a batch are done together.
  double together = 1;
  if (cuts == 1) together = fmax(1, fmin(product->batch, floor(p->window / 2 / scratch)));
  const double steps = ceil(product->batch / together) * cuts;
  const double units = product_tpu_units(p, m, k, n) * cuts * product->batch;
  const double sums =
      (cut->k - 1) * cut->m * cut->n * product->batch * product_tpu_tiled(m, n) / 1024;
  return steps * p->step + sums * p->accumulate +
         product_tpu_beside(units, product_tpu_transfer(p, cut), steps);
}

static double product_tpu_by_windows(const product_tpu_t *p) {
  double best = INFINITY;
  product_tpu_cut_t cut;
  for (int i = 0; i < NUM_CUTS; ++i) {
    cut.m = g_cuts[i];
    if (!product_tpu_may_cut(p->product->m, PRODUCT_TPU_LEAST_SIDE, cut.m)) break;
    for (int j = 0; j < NUM_CUTS; ++j) {
      cut.n = g_cuts[j];
      if (!product_tpu_may_cut(p->product->n, PRODUCT_TPU_LEAST_SIDE, cut.n)) break;
      for (int l = 0; l < NUM_CUTS; ++l) {
        cut.k = g_cuts[l];
        if (!product_tpu_may_cut(p->product->k, PRODUCT_TPU_LEAST_K, cut.k)) break;
        best = fmin(best, product_tpu_cut_seconds(p, &cut));
      }
    }
  }
  return best;
}

// ---- convolutions ----

// Of one channel for each group: a tile of the unit for each block of channels and each element of
// the window.
static double product_tpu_groups(const product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  const double side = p->tile_columns, groups = product->batch;
  const double channels = fmax(product->n, product->k / product->convolution.window);
  const double at_once = fmax(1, floor(PRODUCT_TPU_LANES / channels));
  const double window = product->convolution.window;
  return product->m * window * ceil(groups / at_once) * side * side * p->multiply;
}

// A gradient of weights: its windows are larger than its result. k is all of a window.
static double product_tpu_gradient(const product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  const mp_work_convolution_t *c = &product->convolution;
  const double k = c->window * c->channels;
  double best = INFINITY;
  for (int i = 0; i < 2; ++i) {
    const double rows = i == 0 ? c->images : product->n, columns = i == 0 ? product->n : c->images;
    const double padded = product_tpu_up(rows, rows <= 4 ? 4 : PRODUCT_TPU_SUBLANES);
    best = fmin(best, product_tpu_pass(p, c->out * padded, k, columns));
  }
  return best;
}

static double product_tpu_window(const product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  const mp_work_convolution_t *c = &product->convolution;
  double passes = c->window, k = c->channels / product->batch;
  const bool is_few = k <= PRODUCT_TPU_FEW_CHANNELS && c->row > 1 && c->is_strided;
  const double sublanes = PRODUCT_TPU_SUBLANES, lanes = PRODUCT_TPU_LANES;
  double images_in_lanes = INFINITY;
  if (fmod(c->images, lanes) == 0 && product->n < lanes) {  // the kernel runs through images
    images_in_lanes = c->window * c->out * product_tpu_up(c->images, lanes) *
                      product_tpu_up(k, sublanes) * product_tpu_up(product->n, sublanes) *
                      sublanes * p->multiply;
  }
  if (is_few || k * c->row <= PRODUCT_TPU_SHORT_K) {
    passes /= c->row;
    k *= c->row;
  }
  const double positions = product_tpu_up(product->m, sublanes);
  return fmin(images_in_lanes, passes * product_tpu_pass(p, positions, k, product->n));
}

static double product_tpu_convolution_units(const product_tpu_t *p) {
  const mp_work_convolution_t *c = &p->product->convolution;
  if (p->product->batch > 1) return product_tpu_groups(p);
  return c->window > c->out ? product_tpu_gradient(p) : product_tpu_window(p);
}

static double product_tpu_convolution(const product_tpu_t *p) {
  const double units = product_tpu_convolution_units(p);
  double reads = 0, all = 0;
  for (int i = 0; i < PRODUCT_TPU_ARRAYS; ++i) {
    all += p->bytes[i];
    reads += p->is_scratch[i] || i == PRODUCT_TPU_RESULT ? 0 : p->bytes[i];
  }
  const double transfer = (reads + p->extra) / p->read + p->bytes[PRODUCT_TPU_RESULT] / p->write;
  const double steps =
      fmax(1, ceil(fmax(units / PRODUCT_TPU_CONVOLUTION_STEP, all / (p->window / 2))));
  return steps * p->step + product_tpu_beside(units, transfer, steps);
}

// ---- arrays ----

static void product_tpu_set_convolution_bytes(product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  const mp_work_convolution_t *c = &product->convolution;
  const double features = product->n * product->batch, group = c->channels / product->batch;
  p->bytes[PRODUCT_TPU_LHS] = product_tpu_padded(c->images, c->channels) * c->in * p->width;
  p->bytes[PRODUCT_TPU_RHS] = product_tpu_padded(group, features) * c->window * p->width;
  p->bytes[PRODUCT_TPU_RESULT] = product_tpu_padded(c->images, features) * c->out * p->out_width;
}

static void product_tpu_set_bytes(product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  if (product->convolution.window > 0) {
    product_tpu_set_convolution_bytes(p);
    return;
  }
  const double batch = product->batch;
  p->bytes[PRODUCT_TPU_LHS] = batch * product_tpu_padded(product->m, product->k) * p->width;
  p->bytes[PRODUCT_TPU_RHS] = batch * product_tpu_padded(product->k, product->n) * p->width;
  p->bytes[PRODUCT_TPU_RESULT] = batch * product_tpu_padded(product->m, product->n) * p->out_width;
}

// Finds which of the arrays lie in scratch memory: those without which the kernel's bytes are met
// best. What it moves beyond the others belongs to what is fused.
static void product_tpu_place(product_tpu_t *p, double bytes) {
  double least = INFINITY;
  for (int set = 0; set < 1 << PRODUCT_TPU_ARRAYS; ++set) {
    double sum = 0;
    for (int i = 0; i < PRODUCT_TPU_ARRAYS; ++i) sum += (set >> i & 1) != 0 ? 0 : p->bytes[i];
    if (fabs(sum - bytes) >= least) continue;
    least = fabs(sum - bytes);
    p->extra = fmax(0, bytes - sum);
    for (int i = 0; i < PRODUCT_TPU_ARRAYS; ++i) p->is_scratch[i] = (set >> i & 1) != 0;
  }
}

// One operand, the larger one that is not too large, is fetched as a whole beside earlier work.
static void product_tpu_fetch(product_tpu_t *p) {
  if (p->is_scratch[PRODUCT_TPU_LHS] || p->is_scratch[PRODUCT_TPU_RHS]) return;
  const double lhs = p->bytes[PRODUCT_TPU_LHS], rhs = p->bytes[PRODUCT_TPU_RHS];
  const bool lhs_fits = lhs <= p->resident, rhs_fits = rhs <= p->resident;
  p->is_scratch[PRODUCT_TPU_LHS] = lhs_fits && (lhs >= rhs || !rhs_fits);
  p->is_scratch[PRODUCT_TPU_RHS] = rhs_fits && !p->is_scratch[PRODUCT_TPU_LHS];
}

// ---- figures ----

// The rate of a type by that of bf16; several passes for the precisions of f32.
static double product_tpu_rate(const mp_chip_t *chip, const mp_work_product_t *product) {
  const mp_flop_kind_t kind = mp_chip_flop_kind(product->dtype);
  const mp_figure_list_t *rates = &chip->figures.product_rates;
  static const mp_flop_kind_t order[] = {MP_FLOP_BF16, MP_FLOP_F32, MP_FLOP_S8, MP_FLOP_F8};
  double rate = chip->flops[kind] / chip->flops[MP_FLOP_BF16];
  for (uint32_t i = 0; i < sizeof(order) / sizeof(order[0]) && i < rates->count; ++i) {
    if (order[i] == kind) rate = rates->each[i];
  }
  const bool is_by_bf16 = kind == MP_FLOP_F32 && chip->f32_by_bf16;
  return rate / (product->passes * (is_by_bf16 ? product->bf16_passes : 1));
}

static product_tpu_t product_tpu_of(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bandwidth = mp_product_bandwidth(chip);
  const mp_figure_list_t *write = &figures->product_write;
  product_tpu_t p = {
      .product = kernel->product,
      .width = mp_dtype_bits(kernel->product->dtype) / 8.0,
      .out_width = mp_dtype_bits(kernel->product->result) / 8.0,
      .tile_k = figures->product_tile.each[0],
      .tile_columns = figures->product_tile.each[1],
      .load_rows = figures->product_tile.each[2],
      .multiply = 2 / (chip->flops[MP_FLOP_BF16] * product_tpu_rate(chip, kernel->product)),
      .launch = mp_figure_or(figures->product_launch, chip->op_latency),
      .step = mp_figure_or(figures->product_step, 0),
      .accumulate = mp_figure_or(figures->product_accumulate, 0),
      .read = bandwidth * mp_figure_or(figures->product_read, 1),
      .window = mp_figure_or(figures->product_window, INFINITY),
      .resident = mp_figure_or(figures->product_resident, 0),
  };
  p.write = bandwidth * (write->count == 2 ? write->each[p.out_width > 2] : 1);
  product_tpu_set_bytes(&p);
  product_tpu_place(&p, kernel->bytes);
  if (p.is_scratch[PRODUCT_TPU_RESULT]) p.write *= PRODUCT_TPU_SCRATCH_WRITE;
  if (kernel->bytes == 0) p.launch = mp_figure_or(figures->product_scratch_launch, p.launch);
  product_tpu_fetch(&p);
  return p;
}

// A vector by a matrix is a sum over what is read, which the vector unit does.
static bool product_tpu_is_vector(const mp_work_product_t *product) {
  return product->convolution.window == 0 && (product->m <= 1 || product->n <= 1);
}

double mp_product_tpu_seconds(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  const mp_work_product_t *product = kernel->product;
  const double memory = kernel->bytes / chip->memory_bandwidth / kernel->efficiency;
  if (product->m * product->n * product->k * product->batch <= 0) return chip->op_latency;
  if (product_tpu_is_vector(product)) {
    const double flops = 2 * product->batch * product->m * product->n * product->k;
    const double vector = kernel->vector_seconds + flops / chip->vector_flops;
    return fmax(vector / kernel->efficiency, memory) + chip->op_latency;
  }
  const product_tpu_t p = product_tpu_of(chip, kernel);
  const bool is_convolution = product->convolution.window > 0;
  const double seconds = is_convolution ? product_tpu_convolution(&p) : product_tpu_by_windows(&p);
  const double work = fmax(seconds, kernel->vector_seconds) / kernel->efficiency;
  // The compiler's cycles, of which the figures are made, have the described bandwidth.
  const double least = kernel->bytes / mp_product_bandwidth(chip) / kernel->efficiency;
  return fmax(work + p.launch, least);
}
