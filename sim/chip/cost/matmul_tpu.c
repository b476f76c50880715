// Matmuls and convolutions on a TPU: rates, launches, and the work that overlaps with the units.
#include <math.h>

#include "sim/chip/cost/matmul_tpu_impl.h"

bool mp_matmul_has_windows(const mp_chip_t *chip) {
  return chip->figures.matmul_tile.count == 3;
}

// ---- arrays ----

static void matmul_tpu_set_convolution_bytes(mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = p->matmul;
  const mp_work_convolution_t *c = &matmul->convolution;
  const double features = matmul->n * matmul->batch, group = c->channels / matmul->batch;
  p->bytes[MP_MATMUL_TPU_LHS] = mp_matmul_tpu_padded(c->images, c->channels) * c->in * p->width;
  p->bytes[MP_MATMUL_TPU_RHS] = mp_matmul_tpu_padded(group, features) * c->window * p->width;
  p->bytes[MP_MATMUL_TPU_RESULT] =
      mp_matmul_tpu_padded(c->images, features) * c->out * p->out_width;
}

static void matmul_tpu_set_bytes(mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = p->matmul;
  if (matmul->convolution.window > 0) {
    matmul_tpu_set_convolution_bytes(p);
    return;
  }
  const double batch = matmul->batch;
  p->bytes[MP_MATMUL_TPU_LHS] = batch * mp_matmul_tpu_padded(matmul->m, matmul->k) * p->width;
  p->bytes[MP_MATMUL_TPU_RHS] = batch * mp_matmul_tpu_padded(matmul->k, matmul->n) * p->width;
  p->bytes[MP_MATMUL_TPU_RESULT] =
      batch * mp_matmul_tpu_padded(matmul->m, matmul->n) * p->out_width;
}

// ---- bytes by use, if the caller has none ----

// The operand that is prefetched as a whole: the larger one that fits.
static int matmul_tpu_fetch(const mp_matmul_tpu_t *p) {
  const double lhs = p->bytes[MP_MATMUL_TPU_LHS], rhs = p->bytes[MP_MATMUL_TPU_RHS];
  const bool lhs_fits = lhs <= p->resident, rhs_fits = rhs <= p->resident;
  if (lhs_fits && (lhs >= rhs || !rhs_fits)) return 1 << MP_MATMUL_TPU_LHS;
  return rhs_fits ? 1 << MP_MATMUL_TPU_RHS : 0;
}

// All arrays go through HBM except the prefetched operand. All other bytes of the kernel belong to
// fused ops.
static mp_matmul_streams_t matmul_tpu_guess(const mp_matmul_tpu_t *p, double bytes) {
  const int fetched = matmul_tpu_fetch(p);
  mp_matmul_streams_t streams = {.beside = bytes};
  for (int i = 0; i < MP_MATMUL_TPU_ARRAYS; ++i) streams.beside -= p->bytes[i];
  streams.beside = fmax(0, streams.beside);
  for (int i = 0; i < MP_MATMUL_TPU_RESULT; ++i) {
    streams.factors[i] = (fetched >> i & 1) != 0 ? 0 : p->bytes[i];
  }
  *(p->out_width > 2 ? &streams.wide : &streams.narrow) = p->bytes[MP_MATMUL_TPU_RESULT];
  return streams;
}

// ---- parameters ----

// The rate of a type by that of bf16; several passes for the precisions of f32.
static double matmul_tpu_rate(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  const mp_flop_kind_t kind = mp_chip_flop_kind(matmul->dtype);
  const mp_figure_list_t *rates = &chip->figures.matmul_rates;
  static const mp_flop_kind_t order[MP_MATMUL_RATES_COUNT] = {[MP_MATMUL_RATES_BF16] = MP_FLOP_BF16,
                                                              [MP_MATMUL_RATES_F32] = MP_FLOP_F32,
                                                              [MP_MATMUL_RATES_S8] = MP_FLOP_S8,
                                                              [MP_MATMUL_RATES_F8] = MP_FLOP_F8};
  double rate = chip->flops[kind] / chip->flops[MP_FLOP_BF16];
  for (uint32_t i = 0; i < rates->count; ++i) {
    if (order[i] == kind) rate = rates->each[i];
  }
  const bool is_by_bf16 = kind == MP_FLOP_F32 && chip->f32_by_bf16;
  return rate / (matmul->passes * (is_by_bf16 ? matmul->bf16_passes : 1));
}

// A kernel whose arrays are all in VMEM starts sooner.
static double matmul_tpu_launch(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel,
                                const mp_matmul_streams_t *streams) {
  const double usual = mp_figure_or(chip->figures.matmul_launch, chip->op_latency);
  const bool is_near = kernel->bytes == 0 || streams->is_near;
  return is_near ? mp_figure_or(chip->figures.matmul_scratch_launch, usual) : usual;
}

static mp_matmul_tpu_t matmul_tpu_of(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bandwidth = mp_matmul_bandwidth(chip);
  const mp_figure_list_t *write = &figures->matmul_write;
  mp_matmul_tpu_t p = {
      .figures = figures,
      .matmul = kernel->matmul,
      .width = mp_dtype_bits(kernel->matmul->dtype) / 8.0,
      .out_width = mp_dtype_bits(kernel->matmul->result) / 8.0,
      .tile_k = figures->matmul_tile.each[MP_MATMUL_TILE_K],
      .tile_columns = figures->matmul_tile.each[MP_MATMUL_TILE_COLUMNS],
      .load_rows = figures->matmul_tile.each[MP_MATMUL_TILE_ROWS],
      .step = mp_figure_or(figures->matmul_step, 0),
      .accumulate = mp_figure_or(figures->matmul_accumulate, 0),
      .fetch = mp_figure_or(figures->matmul_fetch, 0),
      .read = bandwidth * mp_figure_or(figures->matmul_read, 1),
      .window = mp_figure_or(figures->matmul_window, INFINITY),
      .resident = mp_figure_or(figures->matmul_resident, 0),
      .images = figures->matmul_images,
      .relaid = mp_figure_or(figures->tiles_element, 0),
  };
  for (int i = 0; i < 2; ++i) p.write[i] = bandwidth * (write->count == 2 ? write->each[i] : 1);
  matmul_tpu_set_bytes(&p);
  p.streams = kernel->streams != NULL ? *kernel->streams : matmul_tpu_guess(&p, kernel->bytes);
  p.launch = matmul_tpu_launch(chip, kernel, &p.streams);
  p.multiply = 2 / (chip->flops[MP_FLOP_BF16] * matmul_tpu_rate(chip, kernel->matmul));
  return p;
}

// A vector by a matrix is a reduction on the vector unit. So is a batch of them, if they are small.
static bool matmul_tpu_is_vector(const mp_chip_t *chip, const mp_work_matmul_t *matmul) {
  return matmul->convolution.window == 0 && fmin(matmul->m, matmul->n) <= 1 &&
         (matmul->batch <= 1 ||
          mp_tile_is_vector_batch(matmul->batch, matmul->m, matmul->n, matmul->k)) &&
         mp_chip_rule(&chip->figures, MP_CHIP_RULE_matvec_reduction);
}

// The vector work that overlaps with a matmul. A softmax of its rows costs the same per tile.
static double matmul_tpu_vector(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel,
                                const mp_matmul_tpu_t *p) {
  const mp_work_matmul_t *matmul = kernel->matmul;
  if (!p->streams.is_rows) return kernel->vector_seconds;
  return matmul->batch * mp_matmul_tpu_padded(matmul->m, matmul->n) / MP_TILE_ELEMENTS *
         mp_figure_or(chip->figures.matmul_rows, 0);
}

// The bytes that count as written for the inner matmul's result: it stays in VMEM, in the type of
// the operand.
static double matmul_tpu_handed(const mp_chip_t *chip, const mp_work_matmul_t *inner) {
  return inner->batch * mp_matmul_tpu_tiled(inner->m, inner->n) *
         (double)mp_dtype_bits(inner->result) / 8 /
         mp_figure_or(chip->figures.matmul_inner_write, MP_MATMUL_SCRATCH_WRITE);
}

// The seconds of a chain that runs both matmuls of one matrix of a batch per step. About half of
// the time for the inner result shows. Compared with libtpu's cycles: 0.79 to 1.35 for six chains
// and three MLPs on up to five chips; as one matmul after the other, some were at 1.8.
static double matmul_tpu_pair(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel,
                              const mp_matmul_tpu_t *p) {
  static const double shown = 0.5;
  if (kernel->inner == NULL || kernel->inner->batch <= 1) return INFINITY;
  const mp_matmul_kernel_t inner = {
      .matmul = kernel->inner, .efficiency = 1, .streams = kernel->inner_streams};
  const mp_matmul_tpu_t of = matmul_tpu_of(chip, &inner);
  const bool is_narrow = mp_dtype_bits(kernel->inner->result) <= 16;
  const double handed = matmul_tpu_handed(chip, kernel->inner) / of.write[is_narrow ? 0 : 1];
  return mp_matmul_windows_pair_seconds(p, &of, shown * handed / kernel->inner->batch);
}

// Nothing overlaps with the first windows that are read and the last ones that are written.
static double matmul_tpu_ramp(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  if (kernel->matmul->convolution.window > 0) return 0;
  const double ramp = fmin(kernel->bytes, mp_figure_or(chip->figures.matmul_ramp, 0));
  return ramp / mp_matmul_bandwidth(chip) / kernel->efficiency;
}

double mp_matmul_tpu_seconds(const mp_chip_t *chip, const mp_matmul_kernel_t *kernel) {
  const mp_work_matmul_t *matmul = kernel->matmul;
  if (matmul->m * matmul->n * matmul->k * matmul->batch <= 0) return chip->op_latency;
  if (matmul_tpu_is_vector(chip, matmul)) {
    const double flops = 2 * matmul->batch * matmul->m * matmul->n * matmul->k;
    const double vector = kernel->vector_seconds + flops / chip->vector_flops;
    const double memory = mp_chip_memory_latency(chip, kernel->bytes) +
                          kernel->bytes / chip->memory_bandwidth / kernel->efficiency;
    return fmax(vector / kernel->efficiency, memory) + chip->op_latency;
  }
  const mp_matmul_tpu_t p = matmul_tpu_of(chip, kernel);
  const bool is_convolution = matmul->convolution.window > 0;
  const double seconds =
      is_convolution ? mp_matmul_convolution_seconds(&p) : mp_matmul_windows_seconds(&p);
  const double vector = matmul_tpu_vector(chip, kernel, &p);
  const double both = fmin(seconds + kernel->inner_seconds, matmul_tpu_pair(chip, kernel, &p));
  const double work = fmax(both, vector) / kernel->efficiency;
  // The parameters are fitted to the compiler's cycles, which have the described bandwidth.
  const double least = kernel->bytes / mp_matmul_bandwidth(chip) / kernel->efficiency;
  const double launch = p.launch + matmul_tpu_ramp(chip, kernel);
  return fmax(work + launch, least) + p.streams.swaps;
}

double mp_matmul_inner_seconds(const mp_chip_t *chip, const mp_work_matmul_t *matmul,
                               const mp_matmul_streams_t *streams) {
  const double result = matmul_tpu_handed(chip, matmul);
  mp_matmul_streams_t all = *streams;
  *(mp_dtype_bits(matmul->result) > 16 ? &all.wide : &all.narrow) += result;
  const mp_matmul_kernel_t kernel = {.matmul = matmul, .efficiency = 1, .streams = &all};
  const mp_matmul_tpu_t p = matmul_tpu_of(chip, &kernel);
  return mp_matmul_windows_seconds(&p);
}

// libtpu's estimate counts all rows for each group. But the loop of the kernel continues with the
// next group where its rows begin: there is a step for each part of the rows, and one more for each
// group that begins inside of a part.
double mp_matmul_ragged_steps(const mp_chip_t *chip, const mp_ragged_t *ragged,
                              mp_work_matmul_t *matmul) {
  enum { ROWS = 128 };  // of a step, in libtpu 0.0.52
  const double groups = ragged->groups;
  if (groups == 0) return 0;
  double *rows = ragged->is_gradient ? &matmul->k : ragged->side == 0 ? &matmul->m : &matmul->n;
  const double steps = ceil(*rows / ROWS) + groups - 1;
  *rows = fmin(steps * ROWS / groups, *rows);
  if (!ragged->is_gradient) {
    matmul->k /= groups;
    matmul->batch *= groups;
  }
  return steps * mp_figure_or(chip->figures.matmul_ragged, 0);
}
