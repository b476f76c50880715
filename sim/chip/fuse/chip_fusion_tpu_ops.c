// What libtpu makes of single ops.
#include "sim/chip/fuse/chip_fusion_ops.h"
#include "sim/chip/rules/chip_rules.h"

// Whether a slice has stride 1 in each dimension.
static bool chip_fusion_tpu_ops_is_dense(const mp_op_t *op) {
  const mp_index_list_t strides = mp_op_ints(op, MP_ATTR_STRIDES);
  for (uint32_t i = 0; i < strides.count; ++i) {
    if (strides.values[i] != 1) return false;
  }
  return true;
}

static mp_chip_fusion_kind_t chip_fusion_tpu_ops_kind(const mp_chip_figures_t *figures,
                                                      const mp_op_t *op,
                                                      mp_chip_fusion_kind_t kind) {
  if (op->code == MP_OP_GATHER) return MP_CHIP_FUSION_ALONE;
  const bool is_strided = op->code == MP_OP_SLICE && !chip_fusion_tpu_ops_is_dense(op);
  const bool is_alone = (op->code == MP_OP_REVERSE || is_strided) &&
                        mp_chip_rule(figures, MP_CHIP_RULE_lone_movement);
  return is_alone ? MP_CHIP_FUSION_ALONE : kind;
}

static bool chip_fusion_tpu_ops_makes_start(const mp_chip_figures_t *figures, const mp_op_t *loop,
                                            uint32_t operand) {
  return loop->code == MP_OP_WHILE &&
         mp_chip_fusion_is_constant(mp_chip_fusion_root(loop->operands[operand])) &&
         mp_chip_rule(figures, MP_CHIP_RULE_loop_constants);
}

static bool chip_fusion_tpu_ops_selects(const mp_chip_figures_t *figures, const mp_op_t *op) {
  if (op->code != MP_OP_SCATTER || op->num_operands != 3 || op->num_results != 1) return false;
  const mp_type_t *type = op->results[0].type;
  const mp_index_list_t batching = mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS);
  const mp_index_list_t scattered = mp_op_ints(op, MP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
  if (scattered.count != 1 || batching.count + 1 != type->rank) return false;
  const double line = (double)type->dims[scattered.values[0]];
  return mp_chip_fusion_value_count(op->operands[2]) * line == mp_chip_fusion_op_count(op) &&
         mp_chip_fusion_is_constant(mp_chip_fusion_root(op->operands[0])) &&
         mp_chip_rule(figures, MP_CHIP_RULE_scatter_selection);
}

static bool chip_fusion_tpu_ops_receives(const mp_op_t *op) {
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

// ---- concatenations and pads ----

// Whether a nearby op slices an array of the same shape from the same array.
static bool chip_fusion_tpu_ops_has_twin(const mp_op_t *slice) {
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
static bool chip_fusion_tpu_ops_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                                      mp_chip_fusion_kind_t kind, uint32_t operand) {
  (void)kind;
  const bool is_part = op->code == MP_OP_CONCATENATE || (op->code == MP_OP_PAD && operand == 0);
  if (!is_part) return true;
  const mp_op_t *part = mp_chip_fusion_root(op->operands[operand])->op;
  if (part == NULL || mp_chip_fusion_is_generator(part)) return true;
  const bool is_in_place = part->code == MP_OP_SLICE && chip_fusion_tpu_ops_is_dense(part) &&
                           !chip_fusion_tpu_ops_has_twin(part);
  return is_in_place || !mp_chip_rule(figures, MP_CHIP_RULE_concat_parts);
}

// ---- softmax ----

// The reduction of rows whose result is broadcast to this value, in the same type; NULL: none.
// Frameworks may put a maximum with the lowest number between them.
static const mp_op_t *chip_fusion_tpu_ops_spread(const mp_value_t *value) {
  value = mp_chip_fusion_root(value);
  if (value->op == NULL || value->op->code != MP_OP_BROADCAST_IN_DIM) return NULL;
  for (const mp_op_t *op; (op = value->op) != NULL;) {
    if (op->code != MP_OP_BROADCAST_IN_DIM && op->code != MP_OP_MAXIMUM) break;
    const bool is_second = op->code == MP_OP_MAXIMUM && mp_chip_fusion_is_constant(op->operands[0]);
    value = mp_chip_fusion_root(op->operands[is_second]);
  }
  if (value->op == NULL || value->op->num_results != 1) return NULL;
  return mp_chip_fusion_row(value->op) > 0 ? value->op : NULL;
}

bool mp_chip_fusion_is_shifted_exp(const mp_op_t *op, double rows_most) {
  if (op->code != MP_OP_EXPONENTIAL) return false;
  const mp_op_t *shift = mp_chip_fusion_root(op->operands[0])->op;
  if (shift == NULL || shift->code != MP_OP_SUBTRACT) return false;
  const mp_op_t *most = chip_fusion_tpu_ops_spread(shift->operands[1]);
  if (most == NULL || mp_chip_fusion_row(most) > rows_most) return false;
  // XLA moves a convert to a wider type after the maximum, so the maximum of a convert does not
  // match.
  const mp_value_t *rows = mp_chip_fusion_root(most->operands[0]);
  return rows == mp_chip_fusion_root(shift->operands[0]) &&
         (rows->op == NULL || rows->op->code != MP_OP_CONVERT);
}

// ---- tables ----

const mp_chip_fusion_ops_t mp_chip_fusion_tpu_ops = {
    .kind = chip_fusion_tpu_ops_kind,
    .takes = chip_fusion_tpu_ops_takes,
    .selects = chip_fusion_tpu_ops_selects,
    .makes_start = chip_fusion_tpu_ops_makes_start,
    .receives = chip_fusion_tpu_ops_receives,
};

// A fusion computes no table of a gather.
static bool chip_fusion_tpu_ops_plain_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                                            mp_chip_fusion_kind_t kind, uint32_t operand) {
  (void)figures, (void)kind;
  return op->code != MP_OP_GATHER || operand != 0;
}

const mp_chip_fusion_ops_t mp_chip_fusion_plain_ops = {.takes = chip_fusion_tpu_ops_plain_takes};
