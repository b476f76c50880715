// What is done in stages of which each waits for the one before: sorts, cumulative windows,
// transforms, decompositions.
#include <math.h>
#include <string.h>

#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/cost/vector_cost.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_rules.h"

static double staged_cost_bytes(const mp_op_t *op) {
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) bytes += mp_work_bytes_of(op->operands[i]->type);
  for (uint32_t i = 0; i < op->num_results; ++i) bytes += mp_work_bytes_of(op->results[i].type);
  return bytes;
}

// ---- sort ----

// Operations of a chip of which nothing is known, for an element and a stage: a comparison, two
// selections, a permutation.
#define STAGED_SORT_STAGE 4

static double staged_cost_log2(double count) {
  return count > 1 ? ceil(log2(count)) : 1;
}

// Stages of a bitonic network for lines of so many elements.
static double staged_cost_stages(double count) {
  const double log = staged_cost_log2(count);
  return log * (log + 1) / 2;
}

static double staged_cost_line(const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  if (type->rank == 0) return 1;
  int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  if (op->code != MP_OP_SORT) dimension = -1;
  if (dimension < 0) dimension += type->rank;
  return (double)type->dims[dimension];
}

// The stages until `best` elements of a line are left: blocks of so many are sorted, and of two
// blocks one is left. A TPU searches (below), or sorts the whole line.
static double staged_cost_best_stages(const mp_chip_t *chip, double line, double best) {
  const double all = staged_cost_stages(line);
  if (chip->figures.sort_best > 0) return all;
  return fmin(staged_cost_stages(best) + staged_cost_log2(best), all);
}

// Lines that are longer than a tile go through memory once more for each stage that crosses tiles.
static double staged_cost_passes(double line, double tile) {
  const double over = staged_cost_log2(line) - staged_cost_log2(tile);
  return over > 0 ? 1 + over * (over + 1) / 2 : 1;
}

// ---- the best of lines on a TPU ----

// What the compiler of a TPU does for the best k of each line. Few of a long line are searched: in
// each of k rounds all of it is gone through for the best one that is left. For others it sorts the
// whole line. Both are what final bundles of libtpu 0.0.52 show (README).
enum {
  STAGED_BEST_ROWS = 8,     // of a tile
  STAGED_BEST_LANES = 128,  // of a tile
  // A line has more than so many elements for each of the best: 85 and more are searched, 64 and
  // fewer sorted.
  STAGED_BEST_SHARE = 64,
  // As many and more are sorted however long a line is: 300 of 32,768 are searched, 512 of 131,072
  // are not.
  STAGED_BEST_MANY = 512,
  // More than so many are searched with lines along the lanes, eight at a time; fewer with a line
  // in each lane, unless there are eight lines or fewer.
  STAGED_BEST_UPRIGHT = 64,
  // Behind a round the best one is found among rows of a tile, or among lanes, and put away: in as
  // many tiles' time.
  STAGED_BEST_UPRIGHT_END = 180,
  STAGED_BEST_LYING_END = 28,
  // Lines of up to so many bf16 have their places beside them in one word, and up to 64 of them are
  // found in as long as these many rounds without ends take, whatever k is.
  STAGED_BEST_PACKED = 65536,
  STAGED_BEST_PASSES = 4,
};

// Before the first round lines are brought into the order of integers.
#define STAGED_BEST_BEFORE 0.5

// Whether a sort's comparator is "greater than" of its first two arguments.
static bool staged_cost_is_descending(const mp_op_t *sort) {
  if (sort->num_regions == 0) return false;
  const mp_op_t *end = mp_block_terminator(sort->regions[0]);
  const mp_op_t *compare = end == NULL || end->num_operands != 1 ? NULL : end->operands[0]->op;
  return compare != NULL && compare->code == MP_OP_COMPARE &&
         mp_op_enum(compare, MP_ATTR_COMPARISON_DIRECTION, MP_CMP_EQ) == MP_CMP_GT &&
         compare->operands[0]->op == NULL && compare->operands[1]->op == NULL;
}

// Whether the op is what programs write for the k best: a call of that name, or a sort of elements
// with their places, largest first, of which the first ones are kept.
static bool staged_cost_asks_for_best(const mp_op_t *op) {
  if (op->code == MP_OP_CUSTOM_CALL) {
    const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
    return mp_str_is(target, "TopK") || mp_str_is(target, "mhlo.topk");
  }
  if (op->code != MP_OP_SORT || mp_op_attr(op, MP_ATTR_FIRST) == NULL) return false;
  const mp_op_t *places = op->num_operands == 2 ? op->operands[1]->op : NULL;
  return places != NULL && places->code == MP_OP_IOTA && staged_cost_is_descending(op) &&
         mp_op_int(op, MP_ATTR_DIMENSION, -1) + 1 == (int64_t)op->operands[0]->type->rank;
}

// Tiles that are gone through for the best of all lines.
static double staged_cost_best_tiles(double lines, double line, double best) {
  const double rounds = STAGED_BEST_BEFORE + best;
  if (lines <= STAGED_BEST_ROWS || best > STAGED_BEST_UPRIGHT) {
    return rounds * ceil(lines / STAGED_BEST_ROWS) *
           (ceil(line / STAGED_BEST_LANES) + STAGED_BEST_LYING_END);
  }
  return rounds * ceil(lines / STAGED_BEST_LANES) *
         (ceil(line / STAGED_BEST_ROWS) + STAGED_BEST_UPRIGHT_END);
}

static bool staged_cost_best_seconds(const mp_chip_t *chip, const mp_op_t *op,
                                     double *out_seconds) {
  if (!(chip->figures.sort_best > 0) || !staged_cost_asks_for_best(op)) return false;
  const mp_type_t *type = op->operands[0]->type;
  const mp_type_t *kept = op->num_results == 0 ? NULL : op->results[0].type;
  if (kept == NULL || !mp_type_is_tensor(kept) || type->rank != 2 || kept->rank != 2) return false;
  const double lines = (double)type->dims[0], line = (double)type->dims[1];
  const double best = (double)kept->dims[1];
  const bool is_packed = type->dtype == MP_DTYPE_BF16 && line <= STAGED_BEST_PACKED;
  const double many = is_packed ? STAGED_BEST_UPRIGHT + 1 : STAGED_BEST_MANY;
  if (type->dtype != MP_DTYPE_F32 && type->dtype != MP_DTYPE_BF16) return false;
  if (best >= many || line <= best * STAGED_BEST_SHARE ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_topk_search)) {
    return false;
  }
  const double packed =
      STAGED_BEST_PASSES * ceil(lines / STAGED_BEST_ROWS) * ceil(line / STAGED_BEST_LANES);
  *out_seconds =
      (is_packed ? packed : staged_cost_best_tiles(lines, line, best)) * chip->figures.sort_best;
  return true;
}

// ---- sorts of all chips ----

// The seconds of `count` elements in so many arrays. If a TPU has fewer lines than lanes, lines run
// along the lanes, and a stage takes longer, because it moves elements from lane to lane.
static double staged_cost_network(const mp_chip_t *chip, double count, double line, double arrays,
                                  double stages) {
  static const double along_lanes = 1.6;
  const bool is_along = chip->figures.sort_best > 0 && count < line * STAGED_BEST_LANES;
  const double each = mp_figure_or(chip->figures.sort_stage, STAGED_SORT_STAGE);
  return count * arrays * each * stages * (is_along ? along_lanes : 1) / mp_vector_rate(chip);
}

double mp_sort_lines_seconds(const mp_chip_t *chip, double count, double line, double arrays) {
  return staged_cost_network(chip, count, line, arrays, staged_cost_stages(line));
}

double mp_sort_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->num_operands == 0 || !mp_type_is_tensor(op->operands[0]->type)) return 0;
  const double line = staged_cost_line(op);
  const double count = mp_irregular_count(op->operands[0]->type);
  // The network moves all operands as its keys say; a sort of keys alone carries their places.
  const double arrays = fmax(op->num_operands, 2);
  double steps = 0;
  if (!staged_cost_best_seconds(chip, op, &steps)) {
    const double best = line * mp_irregular_count(op->results[0].type) / fmax(count, 1);
    const double stages = staged_cost_best_stages(chip, line, best);
    steps = staged_cost_network(chip, count, line, arrays, stages);
  }
  const double passes =
      op->code == MP_OP_SORT
          ? staged_cost_passes(line, mp_figure_or(chip->figures.sort_tile, INFINITY))
          : 1;
  const double memory = staged_cost_bytes(op) / chip->memory_bandwidth;
  return fmax(steps, passes * memory) + (passes - 1) * chip->op_latency;
}

// ---- windows ----

double mp_window_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &chip->figures;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const double steps = work.vector_flops / mp_vector_rate(chip);
  const double memory = staged_cost_bytes(op) / chip->memory_bandwidth;
  const int64_t along = mp_chip_fusion_cumulative(op);
  if (along < 0) return fmax(steps, memory / mp_figure_or(figures->window_share, 1));
  const bool is_last = along + 1 == (int64_t)op->operands[0]->type->rank;
  const double passes = mp_figure_or(is_last ? figures->window_scan_last : figures->window_scan, 1);
  return fmax(steps, memory * passes);
}

// ---- fft ----

// A factor is a matmul of complex numbers: three of real ones, each a kernel.
static double staged_cost_fft_kernels(const mp_chip_t *chip, double factors, double bytes) {
  enum { PRODUCTS = 3 };
  const mp_chip_figures_t *figures = &chip->figures;
  const double launch = mp_figure_or(figures->matmul_launch, 0);
  const bool is_near = bytes <= mp_figure_or(figures->memory_scratch, 0);
  const double near = figures->matmul_scratch_launch + mp_figure_or(figures->matmul_step, 0);
  return factors * PRODUCTS * (is_near ? mp_figure_or(near, launch) : launch);
}

// Whether the program returns the transform's result as it is.
static bool staged_cost_is_returned(const mp_op_t *op) {
  const mp_op_t *end = op->parent->last;
  if (op->parent->parent_op != NULL) return false;
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    if (mp_chip_fusion_root(end->operands[i])->op == op) return true;
  }
  return false;
}

// Complex arguments are taken apart into two arrays of real numbers, complex results put together
// from them: read and written. So are others that do not fit into VMEM.
static double staged_cost_fft_parts(const mp_chip_t *chip, const mp_op_t *op) {
  const double scratch = mp_figure_or(chip->figures.memory_scratch, 0);
  const mp_value_t *given = mp_chip_fusion_root(op->operands[0]);
  const mp_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  const bool is_argument = given->op == NULL && given->block->parent_op == NULL;
  const bool is_read = is_argument || mp_work_bytes_of(from) > scratch;
  const bool is_written = staged_cost_is_returned(op) || mp_work_bytes_of(to) > scratch;
  return (mp_dtype_is_complex(from->dtype) && is_read ? 2 * mp_work_bytes_of(from) : 0) +
         (mp_dtype_is_complex(to->dtype) && is_written ? 2 * mp_work_bytes_of(to) : 0);
}

// A length is done in factors, each a matmul with a small matrix. libtpu 0.0.52 for v6e takes no
// longer for rows of 200 and 256 than of 128 (26 to 30 us for 2^20 elements, 88 of 512).
static double staged_cost_fft_factors(double length) {
  enum { FACTOR = 256 };
  return ceil(log(length) / log(FACTOR) - 1e-9);
}

double mp_fft_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  enum { OTHERWISE = 4 };
  mp_work_t work;
  mp_work_of_op(op, &work);
  if (isnan(chip->figures.fft_element)) {
    return OTHERWISE * work.vector_flops / mp_vector_rate(chip);
  }
  const mp_index_list_t lengths = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  double factors = 0;
  for (uint32_t d = 0; d < lengths.count; ++d) {
    factors += staged_cost_fft_factors((double)lengths.values[d]);
  }
  const uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT);
  const double count =
      mp_irregular_count(type == MP_FFT_RFFT ? op->operands[0]->type : op->results[0].type);
  factors = fmax(factors, 1);
  return count * factors * chip->figures.fft_element +
         staged_cost_fft_kernels(chip, factors, staged_cost_bytes(op)) +
         staged_cost_fft_parts(chip, op) / chip->memory_bandwidth;
}

// ---- linear algebra ----

// Steps that wait for each other, for each column of a matrix: pivots, reflections, iterations. By
// what is in the names of functions, TPUs' and LAPACK's. LuDecomposition: final bundles of libtpu
// 0.0.52 for matrices of 2 to 128 columns, 256 to 386 for a column.
typedef struct {
  const char *part;
  double steps;
} staged_target_t;

static const staged_target_t g_targets[] = {
    {"LuDecomposition", 3.5},
    {"getrf", 4},
    {"Householder", 2},
    {"orgqr", 2},
    {"ungqr", 2},
    {"Qr", 4},
    {"geqrf", 4},
    {"geqp3", 8},
    {"eigh", 60},
    {"evd", 60},
    {"svd", 80},
    {"gesdd", 80},
    {"gee", 100},
    {"gehrd", 8},
    {"trd", 8},
    {"trsm", 0.5},
};

static bool staged_cost_names(mp_str_t name, const char *part) {
  const size_t size = strlen(part);
  for (size_t i = 0; i + size <= name.size; ++i) {
    if (memcmp(name.data + i, part, size) == 0) return true;
  }
  return false;
}

static double staged_cost_steps(const mp_op_t *op) {
  if (op->code != MP_OP_CUSTOM_CALL) return op->code == MP_OP_TRIANGULAR_SOLVE ? 0.5 : 1;
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  for (size_t i = 0; i < sizeof(g_targets) / sizeof(g_targets[0]); ++i) {
    if (staged_cost_names(target, g_targets[i].part)) return g_targets[i].steps;
  }
  return 1;
}

// Whether a TPU decomposes one matrix of a batch after the other.
static bool staged_cost_is_serial(const mp_chip_t *chip, const mp_op_t *op) {
  const bool is_serial =
      op->code == MP_OP_CHOLESKY ||
      (op->code == MP_OP_CUSTOM_CALL &&
       staged_cost_names(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "LuDecomposition"));
  return is_serial && chip->figures.compiler == MP_CHIP_COMPILER_TPU;
}

// Kernels between blocks of columns on a TPU: three matmuls for each block but the first.
static double staged_cost_between_blocks(const mp_chip_t *chip, double columns) {
  enum { BLOCK = 128, MATMULS = 3 };
  const mp_chip_figures_t *figures = &chip->figures;
  const double start =
      isnan(figures->memory_scratch) ? figures->matmul_launch : figures->matmul_scratch_launch;
  const double launch = start + mp_figure_or(figures->matmul_step, 0);
  if (chip->figures.compiler != MP_CHIP_COMPILER_TPU || columns <= BLOCK) return 0;
  return (ceil(columns / BLOCK) - 1) * MATMULS * mp_figure_or(launch, 0);
}

// Columns one after the other, and beside them matmuls of blocks, which are exact ones.
double mp_linalg_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  enum { EXACT_PASSES = 6, MATRICES_AT_ONCE = 8 };
  const mp_type_t *type = op->num_operands == 0 ? NULL : op->operands[0]->type;
  if (type == NULL || !mp_type_is_tensor(type) || type->rank == 0) return 0;
  const double columns = (double)type->dims[type->rank - 1];
  const double rows = type->rank < 2 ? 1 : (double)type->dims[type->rank - 2];
  const double batch = mp_irregular_count(type) / fmax(columns * rows, 1);
  const double step = mp_figure_or(chip->figures.linalg_column, chip->op_latency);
  const double at_once = staged_cost_is_serial(chip, op) ? 1 : MATRICES_AT_ONCE;
  mp_work_t work;
  mp_work_of_op(op, &work);
  const double rate = chip->flops[MP_FLOP_F32] / (chip->f32_by_bf16 ? EXACT_PASSES : 1);
  return fmin(columns, rows) * staged_cost_steps(op) * step * fmax(batch / at_once, 1) +
         staged_cost_between_blocks(chip, fmin(columns, rows)) + work.vector_flops / rate;
}
