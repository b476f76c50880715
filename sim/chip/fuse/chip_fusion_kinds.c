// Properties of ops that decide about fusions.
#include "sim/chip/fuse/chip_fusion_kinds.h"

#include <math.h>

#include "sim/chip/fuse/matmul_operand.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

// ---- kinds ----

// Whether a slice has stride 1 in each dimension.
static bool chip_fusion_kinds_is_dense(const mp_op_t *op) {
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  for (uint32_t i = 0; i < strides.count; ++i) {
    if (strides.values[i] != 1) return false;
  }
  return true;
}

// Whether a GPU's threads reduce a few elements each: rows of less than a warp, unless a warp has
// several (IsUnnestedReductionFasterThanElemental), and few of the dimension before the last.
static bool chip_fusion_kinds_is_by_threads(const mp_chip_figures_t *figures, const mp_op_t *op) {
  enum { WARP = 32 };
  if (figures->compiler != MP_CHIP_COMPILER_GPU || op->code != MP_OP_REDUCE) return false;
  const double results = mp_chip_fusion_op_count(op);
  const double reduced = mp_chip_fusion_value_count(op->operands[0]) / fmax(results, 1);
  const bool shares_warp = mp_chip_fusion_row(op) > 0 && fmod(WARP, reduced) == 0;
  return reduced < WARP && !shares_warp;
}

// Whether XLA for GPUs emits a reduce_window as a loop over its results: unless it is cumulative.
static bool chip_fusion_kinds_is_by_element(const mp_chip_figures_t *figures, const mp_op_t *op) {
  return figures->compiler == MP_CHIP_COMPILER_GPU && op->code == MP_OP_REDUCE_WINDOW &&
         mp_chip_fusion_cumulative(op) < 0;
}

static mp_chip_fusion_kind_t chip_fusion_kinds_of_class(const mp_chip_figures_t *figures,
                                                        const mp_op_t *op,
                                                        mp_work_class_t work_class) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return MP_CHIP_FUSION_UPDATE;
  if (figures->compiler == MP_CHIP_COMPILER_TPU) {
    const bool is_strided = op->code == MP_OP_SLICE && !chip_fusion_kinds_is_dense(op);
    if ((op->code == MP_OP_REVERSE || is_strided) &&
        mp_chip_rule(figures, MP_CHIP_RULE_lone_movement)) {
      return MP_CHIP_FUSION_ALONE;
    }
  }
  switch (work_class) {
    case MP_WORK_MATMUL:
    case MP_WORK_CONVOLUTION:
      return mp_chip_fusion_is_sum(figures, op) ? MP_CHIP_FUSION_REDUCTION : MP_CHIP_FUSION_MATMUL;
    case MP_WORK_REDUCTION:
      return chip_fusion_kinds_is_by_threads(figures, op) ? MP_CHIP_FUSION_LOOP
                                                          : MP_CHIP_FUSION_REDUCTION;
    case MP_WORK_WINDOW:
      return chip_fusion_kinds_is_by_element(figures, op) ? MP_CHIP_FUSION_LOOP
                                                          : MP_CHIP_FUSION_WINDOW;
    case MP_WORK_SCATTER:
      return MP_CHIP_FUSION_UPDATE;
    case MP_WORK_GATHER:
      return figures->compiler == MP_CHIP_COMPILER_TPU ? MP_CHIP_FUSION_ALONE : MP_CHIP_FUSION_LOOP;
    case MP_WORK_ELEMENTWISE:
    case MP_WORK_COPY:
    case MP_WORK_SCALAR:
      return MP_CHIP_FUSION_LOOP;
    default:
      return MP_CHIP_FUSION_ALONE;
  }
}

// Whether a value is a scalar constant, or its broadcast.
static bool chip_fusion_kinds_is_constant(const mp_value_t *value) {
  while (value->op != NULL && value->op->code == MP_OP_BROADCAST_IN_DIM) {
    value = mp_chip_fusion_root(value->op->operands[0]);
  }
  return value->op != NULL && value->op->code == MP_OP_CONSTANT && mp_op_splat(value->op) != NULL;
}

bool mp_chip_fusion_makes_start(const mp_chip_figures_t *figures, const mp_op_t *loop,
                                uint32_t operand) {
  if (figures->compiler != MP_CHIP_COMPILER_TPU || loop->code != MP_OP_WHILE) return false;
  return chip_fusion_kinds_is_constant(mp_chip_fusion_root(loop->operands[operand])) &&
         mp_chip_rule(figures, MP_CHIP_RULE_loop_constants);
}

bool mp_chip_fusion_is_selection(const mp_chip_figures_t *figures, const mp_op_t *op) {
  if (figures->compiler != MP_CHIP_COMPILER_TPU || op->code != MP_OP_SCATTER) return false;
  if (op->num_operands != 3 || op->num_results != 1) return false;
  const mp_type_t *type = op->results[0].type;
  const mp_index_list_t batching = mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS);
  const mp_index_list_t scattered = mp_op_ints(op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
  if (scattered.count != 1 || batching.count + 1 != type->rank) return false;
  const double line = (double)type->dims[scattered.values[0]];
  return mp_chip_fusion_value_count(op->operands[2]) * line == mp_chip_fusion_op_count(op) &&
         chip_fusion_kinds_is_constant(mp_chip_fusion_root(op->operands[0])) &&
         mp_chip_rule(figures, MP_CHIP_RULE_scatter_selection);
}

mp_chip_fusion_kind_t mp_chip_fusion_kind(const mp_chip_figures_t *figures, const mp_op_t *op,
                                          mp_work_t *out_work) {
  mp_work_of_op(op, out_work);
  if (mp_chip_fusion_is_selection(figures, op)) {
    const double count = mp_chip_fusion_op_count(op);
    *out_work =
        (mp_work_t){.work_class = MP_WORK_ELEMENTWISE, .flops = count, .vector_flops = count};
  }
  return chip_fusion_kinds_of_class(figures, op, out_work->work_class);
}

bool mp_chip_fusion_is_generator(const mp_op_t *op) {
  return op->code == MP_OP_BROADCAST_IN_DIM || op->code == MP_OP_IOTA || op->code == MP_OP_CONSTANT;
}

static bool chip_fusion_kinds_is_folded(const mp_value_t *value, uint32_t depth) {
  const mp_op_t *op = mp_chip_fusion_root(value)->op;
  if (op == NULL || depth == 0 || op->num_results != 1) return false;
  if (op->code == MP_OP_CONSTANT) return mp_op_splat(op) != NULL;
  const bool is_made = op->code == MP_OP_BROADCAST_IN_DIM ||
                       (op->num_operands > 0 && mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE));
  for (uint32_t i = 0; is_made && i < op->num_operands; ++i) {
    if (!chip_fusion_kinds_is_folded(op->operands[i], depth - 1)) return false;
  }
  return is_made;
}

bool mp_chip_fusion_is_folded(const mp_value_t *value) {
  enum { OPS_MOST = 8 };
  return chip_fusion_kinds_is_folded(value, OPS_MOST);
}

bool mp_chip_fusion_is_scaling_quotient(const mp_op_t *op) {
  return op->code == MP_OP_DIVIDE && mp_chip_fusion_is_folded(op->operands[1]);
}

// ---- concatenations and pads ----

// Whether a nearby op slices an array of the same shape from the same array.
static bool chip_fusion_kinds_has_twin(const mp_op_t *slice) {
  enum { NEAR = 64 };  // a limit of the search, not of the compiler
  const mp_op_t *before = slice->prev, *after = slice->next;
  for (uint32_t i = 0; i < NEAR && (before != NULL || after != NULL); ++i) {
    const mp_op_t *near[] = {before, after};
    for (size_t j = 0; j < 2; ++j) {
      if (near[j] == NULL || near[j]->code != MP_OP_SLICE) continue;
      if (mp_chip_fusion_root(near[j]->operands[0]) != mp_chip_fusion_root(slice->operands[0]))
        continue;
      if (mp_type_equal(near[j]->results[0].type, slice->results[0].type)) return true;
    }
    if (before != NULL) before = before->prev;
    if (after != NULL) after = after->next;
  }
  return false;
}

// libtpu pads what other kernels have written, and concatenates by the maximum of padded parts.
// Only a slice is read in place, unless there is another slice like it: then one kernel writes
// both.
static bool chip_fusion_kinds_takes_part(const mp_chip_figures_t *figures, const mp_op_t *op,
                                         uint32_t operand) {
  if (figures->compiler != MP_CHIP_COMPILER_TPU) return true;
  const mp_op_t *part = mp_chip_fusion_root(op->operands[operand])->op;
  if (part == NULL || mp_chip_fusion_is_generator(part)) return true;
  const bool is_in_place = part->code == MP_OP_SLICE && chip_fusion_kinds_is_dense(part) &&
                           !chip_fusion_kinds_has_twin(part);
  return is_in_place || !mp_chip_rule(figures, MP_CHIP_RULE_concat_parts);
}

bool mp_chip_fusion_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                          mp_chip_fusion_kind_t kind, uint32_t operand) {
  switch (kind) {
    case MP_CHIP_FUSION_LOOP:
      if (op->code == MP_OP_CONCATENATE || (op->code == MP_OP_PAD && operand == 0)) {
        return chip_fusion_kinds_takes_part(figures, op, operand);
      }
      return op->code != MP_OP_GATHER || operand != 0 || figures->compiler == MP_CHIP_COMPILER_GPU;
    case MP_CHIP_FUSION_MATMUL:
      // Library kernels read arrays.
      return figures->compiler != MP_CHIP_COMPILER_GPU;
    case MP_CHIP_FUSION_REDUCTION:
    case MP_CHIP_FUSION_WINDOW:
      return true;
    case MP_CHIP_FUSION_UPDATE:
      if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return operand != 0;
      return operand >= op->num_operands / 2;
    default:
      return false;
  }
}

// ---- elements ----

double mp_chip_fusion_value_count(const mp_value_t *value) {
  int64_t count = 0;
  if (!mp_type_is_tensor(value->type) || !mp_type_num_elements(value->type, &count)) return 0;
  return (double)count;
}

double mp_chip_fusion_op_count(const mp_op_t *op) {
  double most = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    most = fmax(most, mp_chip_fusion_value_count(&op->results[i]));
  }
  return most;
}

double mp_chip_fusion_extent(const mp_op_t *op, mp_chip_fusion_kind_t kind) {
  if (kind == MP_CHIP_FUSION_REDUCTION && op->num_operands > 0) {
    const double count = mp_chip_fusion_value_count(op->operands[0]);
    if (op->code != MP_OP_DOT_GENERAL) return count;
    return fmax(count, mp_chip_fusion_value_count(op->operands[1]));
  }
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return mp_chip_fusion_value_count(op->operands[1]);
  return mp_chip_fusion_op_count(op);
}

bool mp_chip_fusion_goes_along(const mp_op_t *op, mp_chip_fusion_kind_t kind, double count) {
  if (kind == MP_CHIP_FUSION_LOOP) {
    const bool moves = mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || op->code == MP_OP_TRANSPOSE;
    return moves && mp_chip_fusion_op_count(op) == count;
  }
  const bool is_along = kind == MP_CHIP_FUSION_REDUCTION || op->code == MP_OP_DYNAMIC_UPDATE_SLICE;
  return is_along && mp_chip_fusion_extent(op, kind) == count;
}

// ---- rows ----

double mp_chip_fusion_row(const mp_op_t *op) {
  if (op->code != MP_OP_REDUCE) return 0;
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  if (dims.count != 1 || type->rank == 0 || dims.values[0] != type->rank - 1) return 0;
  return (double)type->dims[type->rank - 1];
}

int64_t mp_chip_fusion_cumulative(const mp_op_t *op) {
  enum { SHORT = 8 };
  if (op->code != MP_OP_REDUCE_WINDOW) return -1;
  const mp_type_t *type = op->operands[0]->type;
  const mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_WINDOW_DIMENSIONS);
  for (uint32_t d = 0; d < sizes.count; ++d) {
    if (sizes.values[d] > SHORT && sizes.values[d] == type->dims[d]) return (int64_t)d;
  }
  return -1;
}

bool mp_chip_fusion_sets_window(const mp_op_t *op) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return true;
  return op->code == MP_OP_SCATTER && op->num_operands == 3 && op->operands[1]->type->rank == 1;
}

// The reduction of rows whose result is broadcast to this value, in the same type; NULL: none.
// Frameworks may put a maximum with the lowest number between them.
static const mp_op_t *chip_fusion_kinds_spread(const mp_value_t *value) {
  value = mp_chip_fusion_root(value);
  if (value->op == NULL || value->op->code != MP_OP_BROADCAST_IN_DIM) return NULL;
  for (const mp_op_t *op; (op = value->op) != NULL;) {
    if (op->code != MP_OP_BROADCAST_IN_DIM && op->code != MP_OP_MAXIMUM) break;
    const bool is_second =
        op->code == MP_OP_MAXIMUM && chip_fusion_kinds_is_constant(op->operands[0]);
    value = mp_chip_fusion_root(op->operands[is_second]);
  }
  if (value->op == NULL || value->op->num_results != 1) return NULL;
  return mp_chip_fusion_row(value->op) > 0 ? value->op : NULL;
}

bool mp_chip_fusion_is_shifted_exp(const mp_op_t *op, double rows_most) {
  if (op->code != MP_OP_EXPONENTIAL) return false;
  const mp_op_t *shift = mp_chip_fusion_root(op->operands[0])->op;
  if (shift == NULL || shift->code != MP_OP_SUBTRACT) return false;
  const mp_op_t *most = chip_fusion_kinds_spread(shift->operands[1]);
  if (most == NULL || mp_chip_fusion_row(most) > rows_most) return false;
  // XLA moves a convert to a wider type after the maximum, so the maximum of a convert does not
  // match.
  const mp_value_t *rows = mp_chip_fusion_root(most->operands[0]);
  return rows == mp_chip_fusion_root(shift->operands[0]) &&
         (rows->op == NULL || rows->op->code != MP_OP_CONVERT);
}

uint64_t mp_chip_fusion_reduced_dims(const mp_op_t *op) {
  mp_index_list_t dims = {0};
  if (op->code == MP_OP_REDUCE) dims = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  if (op->code == MP_OP_DOT_GENERAL) {
    const bool is_left =
        mp_chip_fusion_value_count(op->operands[0]) >= mp_chip_fusion_value_count(op->operands[1]);
    dims = mp_op_ints(
        op, is_left ? MP_ATTR_LHS_CONTRACTING_DIMENSIONS : MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  }
  uint64_t mask = 0;
  for (uint32_t i = 0; i < dims.count; ++i) mask |= (uint64_t)1 << (dims.values[i] & 63);
  return mask;
}

// ---- values ----

const mp_value_t *mp_chip_fusion_root(const mp_value_t *value) {
  for (const mp_value_t *of; (of = mp_plan_aliased(value)) != NULL;) value = of;
  return value;
}

bool mp_chip_fusion_is_received(const mp_chip_figures_t *figures, const mp_value_t *value) {
  const mp_op_t *op = mp_chip_fusion_root(value)->op;
  if (figures->compiler != MP_CHIP_COMPILER_TPU || op == NULL) return false;
  return op->code == MP_OP_ALL_GATHER || op->code == MP_OP_ALL_TO_ALL ||
         op->code == MP_OP_COLLECTIVE_PERMUTE || op->code == MP_OP_COLLECTIVE_BROADCAST ||
         op->code == MP_OP_EXCHANGE;
}

bool mp_chip_fusion_is_received_near(const mp_chip_figures_t *figures, double bytes) {
  return mp_figure_or(figures->fusion_cores, 1) <= 1 &&
         bytes <= mp_figure_or(figures->memory_scratch, 0);
}

bool mp_chip_fusion_is_sent_from(const mp_value_t *received, const mp_value_t *value) {
  const mp_op_t *op = mp_chip_fusion_root(received)->op;
  return op->code == MP_OP_COLLECTIVE_PERMUTE && mp_chip_fusion_root(op->operands[0]) == value;
}

// The value that a fusion reads instead of an operand that it can compute: looks through
// generators.
static const mp_value_t *chip_fusion_kinds_generated(const mp_value_t *value, bool *out_is_reused) {
  const double count = mp_chip_fusion_value_count(value);
  for (;;) {
    value = mp_chip_fusion_root(value);
    *out_is_reused = mp_chip_fusion_value_count(value) < count;
    if (mp_chip_fusion_is_folded(value)) return NULL;
    if (value->op == NULL || !mp_chip_fusion_is_generator(value->op)) return value;
    if (value->op->code == MP_OP_IOTA) return NULL;
    if (value->op->code == MP_OP_CONSTANT) return mp_op_splat(value->op) == NULL ? value : NULL;
    value = value->op->operands[0];
  }
}

const mp_value_t *mp_chip_fusion_source(const mp_chip_figures_t *figures, const mp_op_t *op,
                                        mp_chip_fusion_kind_t kind, uint32_t operand,
                                        bool *out_is_reused) {
  const mp_value_t *value = op->operands[operand];
  *out_is_reused = false;
  if (mp_chip_fusion_takes(figures, op, kind, operand)) {
    value = chip_fusion_kinds_generated(value, out_is_reused);
    *out_is_reused |= mp_chip_fusion_is_selection(figures, op);
    // A reduction reads the vector for each column of the matrix.
    *out_is_reused |= op->code == MP_OP_DOT_GENERAL && kind == MP_CHIP_FUSION_REDUCTION &&
                      value != NULL &&
                      mp_chip_fusion_value_count(value) < mp_chip_fusion_extent(op, kind);
    return value;
  }
  value = mp_chip_fusion_root(value);
  if (figures->compiler != MP_CHIP_COMPILER_GPU) return value;
  // A library's matmul reads its operand before transposes.
  return kind == MP_CHIP_FUSION_MATMUL ? mp_chip_fusion_root(mp_matmul_operand(op, operand).value)
                                       : value;
}

bool mp_chip_fusion_scales(const mp_chip_figures_t *figures, const mp_op_t *op) {
  uint32_t num_arrays = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    num_arrays += mp_chip_fusion_source(figures, op, MP_CHIP_FUSION_LOOP, i, &is_reused) != NULL;
  }
  return op->code == MP_OP_MULTIPLY && num_arrays == 1;
}

// ---- bytes ----

static double chip_fusion_kinds_least_padding(const mp_type_t *type) {
  return mp_tile_padding(type, mp_tile_layout_compact(type));
}

bool mp_chip_fusion_has_last_in_lanes(const mp_type_t *type) {
  if (type->rank == 0 || mp_work_bytes_of(type) == 0) return false;
  const double last = mp_tile_padding_by_lane(type, (int32_t)type->rank - 1);
  return last <= chip_fusion_kinds_least_padding(type);
}

bool mp_chip_fusion_has_last_in_tiles(const mp_type_t *type) {
  if (mp_chip_fusion_has_last_in_lanes(type)) return true;
  const int32_t last = (int32_t)type->rank - 1;
  const double least = chip_fusion_kinds_least_padding(type);
  for (int32_t lane = 0; lane < last; ++lane) {
    if (mp_tile_padding(type, (mp_tile_layout_t){lane, last, false}) <= least) return true;
  }
  return false;
}

double mp_chip_fusion_part_padding(const mp_op_t *concatenation, const mp_type_t *part) {
  const mp_type_t *whole = concatenation->results[0].type;
  const int32_t rank = (int32_t)whole->rank;
  if (mp_work_bytes_of(part) == 0 || part->rank == 0) return 1;
  const bool is_by_rows = rank > 1 && part->rank == whole->rank &&
                          mp_tile_padding(whole, (mp_tile_layout_t){rank - 1, rank - 2, false}) <=
                              chip_fusion_kinds_least_padding(whole);
  return is_by_rows ? mp_tile_padding(part, (mp_tile_layout_t){rank - 1, rank - 2, false})
                    : chip_fusion_kinds_least_padding(part);
}

double mp_chip_fusion_tiled_bytes(const mp_type_t *type) {
  const double bytes = mp_work_bytes_of(type);
  if (bytes == 0 || type->rank == 0) return bytes;
  return bytes * chip_fusion_kinds_least_padding(type);
}

double mp_chip_fusion_bytes_of(const mp_chip_figures_t *figures, const mp_type_t *type) {
  const bool is_tpu = figures->compiler == MP_CHIP_COMPILER_TPU;
  return is_tpu ? mp_chip_fusion_tiled_bytes(type) : mp_work_bytes_of(type);
}
