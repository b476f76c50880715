// Chooses the formula of an op, and has those of windows, FFTs and linear algebra.
#include "sim/chip/cost/irregular_cost.h"

#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/work/foreign_text.h"

// ---- windows ----

static double irregular_cost_of_window(const mp_chip_t *chip, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &chip->figures;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const double steps = work.vector_flops / mp_vector_rate(chip);
  const double memory = mp_irregular_bytes(op) / chip->memory_bandwidth;
  const double passes = mp_chip_fusion_is_cumulative(op)
                            ? mp_figure_or(figures->window_scan, 1)
                            : 1 / mp_figure_or(figures->window_share, 1);
  return fmax(steps, memory * passes);
}

// ---- fft ----

// A factor of the length is a complex matmul: three real ones, each a kernel.
static double irregular_cost_fft_kernels(const mp_chip_t *chip, double factors, double bytes) {
  enum { PRODUCTS = 3 };
  const mp_chip_figures_t *figures = &chip->figures;
  const double launch = mp_figure_or(figures->matmul_launch, 0);
  const bool is_near = bytes <= mp_figure_or(figures->memory_scratch, 0);
  const double near = figures->matmul_scratch_launch + mp_figure_or(figures->matmul_step, 0);
  return factors * PRODUCTS * (is_near ? mp_figure_or(near, launch) : launch);
}

// Whether main returns the op's result unchanged.
static bool irregular_cost_is_returned(const mp_op_t *op) {
  const mp_op_t *end = op->parent->last;
  if (op->parent->parent_op != NULL) return false;
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    if (mp_chip_fusion_root(end->operands[i])->op == op) return true;
  }
  return false;
}

// The bytes of splitting complex arguments into real and imaginary parts, and of joining complex
// results. The same goes for other arrays that exceed VMEM.
static double irregular_cost_fft_parts(const mp_chip_t *chip, const mp_op_t *op) {
  const double scratch = mp_figure_or(chip->figures.memory_scratch, 0);
  const mp_value_t *given = mp_chip_fusion_root(op->operands[0]);
  const mp_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  const bool is_argument = given->op == NULL && given->block->parent_op == NULL;
  const bool is_read = is_argument || mp_work_bytes_of(from) > scratch;
  const bool is_written = irregular_cost_is_returned(op) || mp_work_bytes_of(to) > scratch;
  return (mp_dtype_is_complex(from->dtype) && is_read ? 2 * mp_work_bytes_of(from) : 0) +
         (mp_dtype_is_complex(to->dtype) && is_written ? 2 * mp_work_bytes_of(to) : 0);
}

// The factors of a length, each a matmul with a small matrix. libtpu 0.0.52 takes as long for rows
// of 200 and 256 as of 128 (v6e, 2^20 elements: 26 to 30 us; rows of 512: 88 us).
static double irregular_cost_fft_factors(double length) {
  enum { FACTOR = 256 };
  return ceil(log(length) / log(FACTOR) - 1e-9);
}

static double irregular_cost_of_fft(const mp_chip_t *chip, const mp_op_t *op) {
  enum { OTHERWISE = 4 };
  mp_work_t work;
  mp_work_of_op(op, &work);
  if (isnan(chip->figures.fft_element)) {
    return OTHERWISE * work.vector_flops / mp_vector_rate(chip);
  }
  const mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  double factors = 0;
  for (uint32_t d = 0; d < lengths.count; ++d) {
    factors += irregular_cost_fft_factors((double)lengths.values[d]);
  }
  const uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  const double count =
      mp_irregular_count(type == MP_FFT_RFFT ? op->operands[0]->type : op->results[0].type);
  factors = fmax(factors, 1);
  return count * factors * chip->figures.fft_element +
         irregular_cost_fft_kernels(chip, factors, mp_irregular_bytes(op)) +
         irregular_cost_fft_parts(chip, op) / chip->memory_bandwidth;
}

// ---- linear algebra ----

// Dependent steps per column of a matrix: pivots, reflections, iterations; by a part of the call
// target, of TPUs and LAPACK. LuDecomposition: final bundles of libtpu 0.0.52 for matrices of 2 to
// 128 columns, 256 to 386 per column.
typedef struct {
  const char *part;
  double steps;
} irregular_target_t;

static const irregular_target_t g_targets[] = {
    {"LuDecomposition", 3.5},
    {"getrf", 4},
    {"Householder", 2},
    {"orgqr", 2},
    {"ungqr", 2},
    {"Qr", 4},
    {"geqrf", 4},
    {"geqp3", 8},
    {"Eigh", 60},
    {"eigh", 60},
    {"evd", 60},
    {"svd", 80},
    {"gesdd", 80},
    {"gee", 100},
    {"gehrd", 8},
    {"trd", 8},
    {"trsm", 0.5},
};

static double irregular_cost_steps(const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return 1;
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  mp_str_t rest;
  for (size_t i = 0; i < sizeof(g_targets) / sizeof(g_targets[0]); ++i) {
    if (mp_foreign_find_word(target, g_targets[i].part, &rest)) return g_targets[i].steps;
  }
  return 1;
}

// Whether a TPU decomposes one matrix of a batch after the other.
static bool irregular_cost_is_serial(const mp_chip_t *chip, const mp_op_t *op) {
  mp_str_t rest;
  const bool is_serial =
      op->code == MP_OP_CHOLESKY ||
      (op->code == MP_OP_CUSTOM_CALL &&
       mp_foreign_find_word(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "LuDecomposition", &rest));
  return is_serial && mp_chip_policy(&chip->figures)->expands_linalg;
}

// Kernels between blocks of columns on a TPU: three matmuls for each block but the first.
static double irregular_cost_between_blocks(const mp_chip_t *chip, double columns) {
  enum { BLOCK = 128, MATMULS = 3 };
  const mp_chip_figures_t *figures = &chip->figures;
  const double start =
      isnan(figures->memory_scratch) ? figures->matmul_launch : figures->matmul_scratch_launch;
  const double launch = start + mp_figure_or(figures->matmul_step, 0);
  if (!mp_chip_policy(figures)->expands_linalg || columns <= BLOCK) return 0;
  return (ceil(columns / BLOCK) - 1) * MATMULS * mp_figure_or(launch, 0);
}

// Columns one after the other, and matmuls of blocks in full precision.
static double irregular_cost_of_linalg(const mp_chip_t *chip, const mp_op_t *op) {
  enum { EXACT_PASSES = 6, MATRICES_AT_ONCE = 8 };
  const mp_type_t *type = op->num_operands == 0 ? NULL : op->operands[0]->type;
  if (type == NULL || !mp_type_is_tensor(type) || type->rank == 0) return 0;
  const double columns = (double)type->dims[type->rank - 1];
  const double rows = type->rank < 2 ? 1 : (double)type->dims[type->rank - 2];
  const double batch = mp_irregular_count(type) / fmax(columns * rows, 1);
  const double step = mp_figure_or(chip->figures.linalg_column, chip->op_latency);
  const double at_once = irregular_cost_is_serial(chip, op) ? 1 : MATRICES_AT_ONCE;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const double rate = chip->flops[MP_FLOP_F32] / (chip->f32_by_bf16 ? EXACT_PASSES : 1);
  return fmin(columns, rows) * irregular_cost_steps(op) * step * fmax(batch / at_once, 1) +
         irregular_cost_between_blocks(chip, fmin(columns, rows)) + work.vector_flops / rate;
}

// ---- which formula ----

typedef double (*irregular_cost_t)(const mp_chip_t *chip, const mp_op_t *op);

static irregular_cost_t irregular_cost_by_class(const mp_op_t *op) {
  static const irregular_cost_t rows[MP_WORK_CLASS_COUNT] = {
      [MP_WORK_GATHER] = mp_gather_seconds,
      [MP_WORK_SCATTER] = mp_scatter_seconds,
      [MP_WORK_SORT] = mp_sort_seconds,
      [MP_WORK_FFT] = irregular_cost_of_fft,
      [MP_WORK_LINALG] = irregular_cost_of_linalg,
      [MP_WORK_FOREIGN] = mp_foreign_seconds,
      [MP_WORK_WINDOW] = irregular_cost_of_window,
  };
  mp_work_t work;
  mp_work_of_op(op, &work);
  return rows[work.work_class];
}

bool mp_irregular_seconds(const mp_chip_t *chip, const mp_op_t *op, double *out_seconds) {
  if (op->code == MP_OP_FUSION || mp_chip_fusion_is_selection(&chip->figures, op)) return false;
  // A scatter of one window is a dynamic_update_slice.
  if (mp_vmem_is_known(chip) && mp_chip_fusion_sets_window(op)) return false;
  const irregular_cost_t cost = op->code == MP_OP_REVERSE ? mp_reverse_seconds
                                : op->code == MP_OP_SLICE || op->code == MP_OP_PAD
                                    ? mp_strided_seconds
                                    : irregular_cost_by_class(op);
  if (cost == NULL) return false;
  *out_seconds = cost(chip, op);
  MP_ASSERT(*out_seconds >= 0 && isfinite(*out_seconds));
  return true;
}
