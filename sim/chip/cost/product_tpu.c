// Products on a TPU: by windows (product_windows.c), or as a convolution (product_convolution.c).
#include <math.h>

#include "sim/chip/cost/product_tpu_impl.h"

bool mp_product_is_tpu(const mp_chip_t *chip) {
  return chip->figures.product_tile.count == 3;
}

// ---- arrays ----

static void product_tpu_set_convolution_bytes(mp_product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  const mp_work_convolution_t *c = &product->convolution;
  const double features = product->n * product->batch, group = c->channels / product->batch;
  p->bytes[MP_PRODUCT_TPU_LHS] = mp_product_tpu_padded(c->images, c->channels) * c->in * p->width;
  p->bytes[MP_PRODUCT_TPU_RHS] = mp_product_tpu_padded(group, features) * c->window * p->width;
  p->bytes[MP_PRODUCT_TPU_RESULT] =
      mp_product_tpu_padded(c->images, features) * c->out * p->out_width;
}

static void product_tpu_set_bytes(mp_product_tpu_t *p) {
  const mp_work_product_t *product = p->product;
  if (product->convolution.window > 0) {
    product_tpu_set_convolution_bytes(p);
    return;
  }
  const double batch = product->batch;
  p->bytes[MP_PRODUCT_TPU_LHS] = batch * mp_product_tpu_padded(product->m, product->k) * p->width;
  p->bytes[MP_PRODUCT_TPU_RHS] = batch * mp_product_tpu_padded(product->k, product->n) * p->width;
  p->bytes[MP_PRODUCT_TPU_RESULT] =
      batch * mp_product_tpu_padded(product->m, product->n) * p->out_width;
}

// ---- what goes through memory, where nobody says it ----

// Which of the arrays lie in scratch memory, as a set: those without which the kernel's bytes are
// met best.
static int product_tpu_place(const mp_product_tpu_t *p, double bytes, double *out_beside) {
  double least = INFINITY;
  int best = 0;
  for (int set = 0; set < 1 << MP_PRODUCT_TPU_ARRAYS; ++set) {
    double sum = 0;
    for (int i = 0; i < MP_PRODUCT_TPU_ARRAYS; ++i) sum += (set >> i & 1) != 0 ? 0 : p->bytes[i];
    if (fabs(sum - bytes) >= least) continue;
    least = fabs(sum - bytes);
    best = set;
    // What it moves beyond the others belongs to what is fused.
    *out_beside = fmax(0, bytes - sum);
  }
  return best;
}

// One operand, the larger one that is not too large, is fetched as a whole beside earlier work.
static int product_tpu_fetch(const mp_product_tpu_t *p) {
  const double lhs = p->bytes[MP_PRODUCT_TPU_LHS], rhs = p->bytes[MP_PRODUCT_TPU_RHS];
  const bool lhs_fits = lhs <= p->resident, rhs_fits = rhs <= p->resident;
  if (lhs_fits && (lhs >= rhs || !rhs_fits)) return 1 << MP_PRODUCT_TPU_LHS;
  return rhs_fits ? 1 << MP_PRODUCT_TPU_RHS : 0;
}

static mp_product_streams_t product_tpu_guess(const mp_product_tpu_t *p, double bytes) {
  enum { FACTORS = 1 << MP_PRODUCT_TPU_LHS | 1 << MP_PRODUCT_TPU_RHS };
  mp_product_streams_t streams = {0};
  int set = product_tpu_place(p, bytes, &streams.beside);
  if ((set & FACTORS) == 0) set |= product_tpu_fetch(p);
  for (int i = 0; i < MP_PRODUCT_TPU_RESULT; ++i) {
    streams.factors[i] = (set >> i & 1) != 0 ? 0 : p->bytes[i];
  }
  const bool is_scratch = (set >> MP_PRODUCT_TPU_RESULT & 1) != 0;
  const double written =
      p->bytes[MP_PRODUCT_TPU_RESULT] / (is_scratch ? MP_PRODUCT_SCRATCH_WRITE : 1);
  *(p->out_width > 2 ? &streams.wide : &streams.narrow) = written;
  return streams;
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

// The launch of a kernel; all of it in scratch memory is a smaller one, but results of 2 bytes may
// have to be laid out anew there (7x).
static double product_tpu_launch(const mp_chip_t *chip, const mp_product_kernel_t *kernel,
                                 const mp_product_streams_t *streams) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double usual = mp_figure_or(figures->product_launch, chip->op_latency);
  const double near = mp_figure_or(figures->product_scratch_launch, usual);
  const bool is_near = (kernel->bytes == 0 || streams->is_near) && near != usual &&
                       mp_chip_rule(figures, MP_CHIP_RULE_matmul_vmem_launch);
  const double launch = is_near ? near : usual;
  const bool is_made_near = streams->factors[0] == 0 && streams->factors[1] == 0;
  if (!is_made_near || !streams->is_narrow_near || kernel->product->convolution.window > 0 ||
      isnan(figures->product_scratch_narrow) ||
      !mp_chip_rule(figures, MP_CHIP_RULE_matmul_narrow_in_vmem)) {
    return launch;
  }
  return fmax(launch, near + figures->product_scratch_narrow);
}

static mp_product_tpu_t product_tpu_of(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  const mp_chip_figures_t *figures = &chip->figures;
  const double bandwidth = mp_product_bandwidth(chip);
  const mp_figure_list_t *write = &figures->product_write;
  mp_product_tpu_t p = {
      .figures = figures,
      .product = kernel->product,
      .width = mp_dtype_bits(kernel->product->dtype) / 8.0,
      .out_width = mp_dtype_bits(kernel->product->result) / 8.0,
      .tile_k = figures->product_tile.each[0],
      .tile_columns = figures->product_tile.each[1],
      .load_rows = figures->product_tile.each[2],
      .step = mp_figure_or(figures->product_step, 0),
      .accumulate = mp_figure_or(figures->product_accumulate, 0),
      .fetch = mp_figure_or(figures->product_fetch, 0),
      .read = bandwidth * mp_figure_or(figures->product_read, 1),
      .window = mp_figure_or(figures->product_window, INFINITY),
      .resident = mp_figure_or(figures->product_resident, 0),
      .images = figures->product_images,
      .relaid = mp_figure_or(figures->tiles_element, 0),
  };
  for (int i = 0; i < 2; ++i) p.write[i] = bandwidth * (write->count == 2 ? write->each[i] : 1);
  product_tpu_set_bytes(&p);
  p.streams = kernel->streams != NULL ? *kernel->streams : product_tpu_guess(&p, kernel->bytes);
  p.launch = product_tpu_launch(chip, kernel, &p.streams);
  p.multiply = 2 / (chip->flops[MP_FLOP_BF16] * product_tpu_rate(chip, kernel->product));
  return p;
}

// A vector by a matrix is a sum over what is read, which the vector unit does.
static bool product_tpu_is_vector(const mp_chip_t *chip, const mp_work_product_t *product) {
  return product->convolution.window == 0 && (product->m <= 1 || product->n <= 1) &&
         mp_chip_rule(&chip->figures, MP_CHIP_RULE_matvec_reduction);
}

// What a softmax of 8 x 128 results takes in the kernel of their product.
static double product_tpu_rows(const mp_chip_t *chip, const mp_product_tpu_t *p) {
  enum { LANES = 128 };
  const double once = mp_figure_or(chip->figures.product_rows, 0);
  const mp_figure_list_t *again = &chip->figures.product_rows_again;
  if (!p->streams.is_rows_again || again->count != 2) return once;
  return again->each[fmod(p->product->n, LANES) == 0 ? 0 : 1] * 1e-9;
}

// The vector work beside a product. What a softmax of its rows does is the same for each tile.
static double product_tpu_vector(const mp_chip_t *chip, const mp_product_kernel_t *kernel,
                                 const mp_product_tpu_t *p) {
  const mp_work_product_t *product = kernel->product;
  if (!p->streams.is_rows) return kernel->vector_seconds;
  return product->batch * mp_product_tpu_padded(product->m, product->n) / 1024 *
         product_tpu_rows(chip, p);
}

// What handing over the inner product's result counts as, in bytes that are written: it stays in
// scratch memory, in the type of the factor that it is.
static double product_tpu_handed(const mp_chip_t *chip, const mp_work_product_t *inner) {
  return inner->batch * mp_product_tpu_tiled(inner->m, inner->n) *
         (double)mp_dtype_bits(inner->result) / 8 /
         mp_figure_or(chip->figures.product_inner_write, MP_PRODUCT_SCRATCH_WRITE);
}

// The seconds of a chain that goes through a batch matrix by matrix, both products in each step:
// some half of what handing over takes shows. With libtpu's cycles: 0.79 to 1.35 for six chains and
// three MLPs on up to five chips, some of which were 1.8 as one product behind the other.
static double product_tpu_pair(const mp_chip_t *chip, const mp_product_kernel_t *kernel,
                               const mp_product_tpu_t *p) {
  static const double shown = 0.5;
  if (kernel->inner == NULL || kernel->inner->batch <= 1 ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_chain_by_matrix)) {
    return INFINITY;
  }
  const mp_product_kernel_t inner = {
      .product = kernel->inner, .efficiency = 1, .streams = kernel->inner_streams};
  const mp_product_tpu_t of = product_tpu_of(chip, &inner);
  const bool is_narrow = mp_dtype_bits(kernel->inner->result) <= 16;
  const double handed = product_tpu_handed(chip, kernel->inner) / of.write[is_narrow ? 0 : 1];
  return mp_product_windows_pair_seconds(p, &of, shown * handed / kernel->inner->batch);
}

// Beside the first windows that are read and the last ones that are written there is nothing.
static double product_tpu_ramp(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  if (kernel->product->convolution.window > 0) return 0;
  const double ramp = fmin(kernel->bytes, mp_figure_or(chip->figures.product_ramp, 0));
  return ramp / mp_product_bandwidth(chip) / kernel->efficiency;
}

// With its rows in the lanes, a result is copied into the usual layout afterwards, and what is read
// beside it is copied before.
static double product_tpu_swaps(const mp_chip_t *chip, const mp_product_tpu_t *p) {
  if (!p->streams.has_rows_in_lanes) return 0;
  const double elements = p->product->batch * mp_product_tpu_tiled(p->product->m, p->product->n);
  return 2 * elements * mp_figure_or(chip->figures.tiles_swap, 0);
}

double mp_product_tpu_seconds(const mp_chip_t *chip, const mp_product_kernel_t *kernel) {
  const mp_work_product_t *product = kernel->product;
  const double memory = kernel->bytes / chip->memory_bandwidth / kernel->efficiency;
  if (product->m * product->n * product->k * product->batch <= 0) return chip->op_latency;
  if (product_tpu_is_vector(chip, product)) {
    const double flops = 2 * product->batch * product->m * product->n * product->k;
    const double vector = kernel->vector_seconds + flops / chip->vector_flops;
    return fmax(vector / kernel->efficiency, memory) + chip->op_latency;
  }
  const mp_product_tpu_t p = product_tpu_of(chip, kernel);
  const bool is_convolution = product->convolution.window > 0;
  const double seconds =
      is_convolution ? mp_product_convolution_seconds(&p) : mp_product_windows_seconds(&p);
  const double vector = product_tpu_vector(chip, kernel, &p);
  const double both = fmin(seconds + kernel->inner_seconds, product_tpu_pair(chip, kernel, &p));
  const double work = fmax(both, vector) / kernel->efficiency;
  // The compiler's cycles, of which the figures are made, have the described bandwidth.
  const double least = kernel->bytes / mp_product_bandwidth(chip) / kernel->efficiency;
  const double launch = p.launch + product_tpu_ramp(chip, kernel);
  return fmax(work + launch, least) + product_tpu_swaps(chip, &p);
}

double mp_product_inner_seconds(const mp_chip_t *chip, const mp_work_product_t *product,
                                const mp_product_streams_t *streams) {
  const double result = product_tpu_handed(chip, product);
  mp_product_streams_t all = *streams;
  *(mp_dtype_bits(product->result) > 16 ? &all.wide : &all.narrow) += result;
  const mp_product_kernel_t kernel = {.product = product, .efficiency = 1, .streams = &all};
  const mp_product_tpu_t p = product_tpu_of(chip, &kernel);
  return mp_product_windows_seconds(&p);
}
