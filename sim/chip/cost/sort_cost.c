// Sorts and top-k: bitonic networks, and libtpu's search for the largest elements.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/cost/irregular_cost.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_rules.h"

// Operations per element and stage without a parameter: a comparison, two selections, a
// permutation.
#define SORT_STAGE 4

static double sort_cost_log2(double count) {
  return count > 1 ? ceil(log2(count)) : 1;
}

// The stages of a bitonic network for lines of so many elements.
static double sort_cost_stages(double count) {
  const double log = sort_cost_log2(count);
  return log * (log + 1) / 2;
}

static double sort_cost_line(const mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  if (type->rank == 0) return 1;
  int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  if (op->code != MP_OP_SORT) dimension = -1;
  if (dimension < 0) dimension += type->rank;
  return (double)type->dims[dimension];
}

// The stages of a top-k: blocks of `best` elements are sorted, then merged in pairs. A TPU searches
// (below), or sorts the whole line.
static double sort_cost_best_stages(const mp_chip_t *chip, double line, double best) {
  const double all = sort_cost_stages(line);
  if (chip->figures.sort_best > 0) return all;
  return fmin(sort_cost_stages(best) + sort_cost_log2(best), all);
}

// The passes through HBM: one more for each stage that crosses tiles.
static double sort_cost_passes(double line, double tile) {
  const double over = sort_cost_log2(line) - sort_cost_log2(tile);
  return over > 0 ? 1 + over * (over + 1) / 2 : 1;
}

// ---- top-k on a TPU ----

// libtpu searches a long line for a few elements: each of k rounds goes through the whole line.
// Else it sorts the line. The numbers are from final bundles of libtpu 0.0.52 (README.md).
enum {
  // A line with more than so many elements per element of the result is searched: 85 are, 64 not.
  SORT_BEST_SHARE = 64,
  // So many elements and more are not searched: 300 of 32,768 are, 512 of 131,072 are not.
  SORT_BEST_MANY = 512,
  // Up to so many elements are searched with a line in each lane, if there are more than eight
  // lines; else lines run along the lanes, eight at a time.
  SORT_BEST_UPRIGHT = 64,
  // The end of a round, in the time of so many tiles: reduces the rows of a tile, or the lanes.
  SORT_BEST_UPRIGHT_END = 180,
  SORT_BEST_LYING_END = 28,
  // In lines of up to so many bf16, an element and its position are one word. Up to 64 of them take
  // the time of four rounds without ends.
  SORT_BEST_PACKED = 65536,
  SORT_BEST_PASSES = 4,
};

// Rounds to map floats to integers of the same order.
#define SORT_BEST_BEFORE 0.5

// Whether the op is a top-k: a call of that name, or a sort of elements with their
// positions, of which the first ones are kept.
static bool sort_cost_asks_for_best(const mp_op_t *op) {
  if (op->code == MP_OP_CUSTOM_CALL) {
    const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
    return mp_str_is(target, "TopK") || mp_str_is(target, "mhlo.topk");
  }
  if (op->code != MP_OP_SORT || mp_op_attr(op, MP_ATTR_FIRST) == NULL) return false;
  const mp_op_t *places = op->num_operands == 2 ? op->operands[1]->op : NULL;
  return places != NULL && places->code == MP_OP_IOTA &&
         mp_op_int(op, MP_ATTR_DIMENSION, -1) + 1 == (int64_t)op->operands[0]->type->rank;
}

// The tiles that the rounds of all lines go through.
static double sort_cost_best_tiles(double lines, double line, double best) {
  const double rounds = SORT_BEST_BEFORE + best;
  if (lines <= MP_TILE_SUBLANES || best > SORT_BEST_UPRIGHT) {
    return rounds * ceil(lines / MP_TILE_SUBLANES) *
           (ceil(line / MP_TILE_LANES) + SORT_BEST_LYING_END);
  }
  return rounds * ceil(lines / MP_TILE_LANES) *
         (ceil(line / MP_TILE_SUBLANES) + SORT_BEST_UPRIGHT_END);
}

static bool sort_cost_best_seconds(const mp_chip_t *chip, const mp_op_t *op, double *out_seconds) {
  if (!(chip->figures.sort_best > 0) || !sort_cost_asks_for_best(op)) return false;
  const mp_type_t *type = op->operands[0]->type;
  const mp_type_t *kept = op->num_results == 0 ? NULL : op->results[0].type;
  if (kept == NULL || !mp_type_is_tensor(kept) || type->rank != 2 || kept->rank != 2) return false;
  const double lines = (double)type->dims[0], line = (double)type->dims[1];
  const double best = (double)kept->dims[1];
  const bool is_packed = type->dtype == MP_DTYPE_BF16 && line <= SORT_BEST_PACKED;
  const double many = is_packed ? SORT_BEST_UPRIGHT + 1 : SORT_BEST_MANY;
  if (type->dtype != MP_DTYPE_F32 && type->dtype != MP_DTYPE_BF16) return false;
  if (best >= many || line <= best * SORT_BEST_SHARE ||
      !mp_chip_rule(&chip->figures, MP_CHIP_RULE_topk_search)) {
    return false;
  }
  const double packed =
      SORT_BEST_PASSES * ceil(lines / MP_TILE_SUBLANES) * ceil(line / MP_TILE_LANES);
  *out_seconds =
      (is_packed ? packed : sort_cost_best_tiles(lines, line, best)) * chip->figures.sort_best;
  return true;
}

// ---- sorts ----

// The seconds of `count` elements in so many arrays. If a TPU has fewer lines than lanes, lines run
// along the lanes, and a stage takes longer, because it moves elements from lane to lane.
static double sort_cost_network(const mp_chip_t *chip, double count, double line, double arrays,
                                double stages) {
  static const double along_lanes = 1.6;
  const bool is_along = chip->figures.sort_best > 0 && count < line * MP_TILE_LANES;
  const double each = mp_figure_or(chip->figures.sort_stage, SORT_STAGE);
  return count * arrays * each * stages * (is_along ? along_lanes : 1) / mp_vector_rate(chip);
}

double mp_sort_lines_seconds(const mp_chip_t *chip, double count, double line, double arrays) {
  return sort_cost_network(chip, count, line, arrays, sort_cost_stages(line));
}

double mp_sort_seconds(const mp_chip_t *chip, const mp_op_t *op) {
  if (op->num_operands == 0 || !mp_type_is_tensor(op->operands[0]->type)) return 0;
  const double line = sort_cost_line(op);
  const double count = mp_irregular_count(op->operands[0]->type);
  // All operands move with the keys; a sort of keys alone moves their positions.
  const double arrays = fmax(op->num_operands, 2);
  double steps = 0;
  if (!sort_cost_best_seconds(chip, op, &steps)) {
    const double best = line * mp_irregular_count(op->results[0].type) / fmax(count, 1);
    const double stages = sort_cost_best_stages(chip, line, best);
    steps = sort_cost_network(chip, count, line, arrays, stages);
  }
  const double passes =
      op->code == MP_OP_SORT
          ? sort_cost_passes(line, mp_figure_or(chip->figures.sort_tile, INFINITY))
          : 1;
  const double memory = mp_irregular_bytes(op) / chip->memory_bandwidth;
  MP_ASSERT(passes >= 1 && steps >= 0);
  return fmax(steps, passes * memory) + (passes - 1) * chip->op_latency;
}
