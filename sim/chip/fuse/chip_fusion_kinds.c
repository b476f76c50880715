// Kinds of ops, and the values that they read.
#include "sim/chip/fuse/chip_fusion_kinds.h"

#include <math.h>

#include "sim/chip/fuse/chip_fusion_ops.h"
#include "sim/chip/fuse/matmul_operand.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_policy.h"

// ---- kinds ----

static const mp_chip_fusion_ops_t *chip_fusion_kinds_ops(const mp_chip_figures_t *figures) {
  static const mp_chip_fusion_ops_t *const ops[MP_CHIP_COMPILER_COUNT] = {
      [MP_CHIP_COMPILER_PLAIN] = &mp_chip_fusion_plain_ops,
      [MP_CHIP_COMPILER_TPU] = &mp_chip_fusion_tpu_ops,
      [MP_CHIP_COMPILER_GPU] = &mp_chip_fusion_gpu_ops,
  };
  return ops[figures->compiler];
}

static mp_chip_fusion_kind_t chip_fusion_kinds_of_class(const mp_op_t *op,
                                                        mp_work_class_t work_class) {
  if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) return MP_CHIP_FUSION_UPDATE;
  switch (work_class) {
    case MP_WORK_MATMUL:
    case MP_WORK_CONVOLUTION:
      return MP_CHIP_FUSION_MATMUL;
    case MP_WORK_REDUCTION:
      return MP_CHIP_FUSION_REDUCTION;
    case MP_WORK_WINDOW:
      return MP_CHIP_FUSION_WINDOW;
    case MP_WORK_SCATTER:
      return MP_CHIP_FUSION_UPDATE;
    case MP_WORK_GATHER:
    case MP_WORK_ELEMENTWISE:
    case MP_WORK_COPY:
    case MP_WORK_SCALAR:
      return MP_CHIP_FUSION_LOOP;
    default:
      return MP_CHIP_FUSION_ALONE;
  }
}

mp_chip_fusion_kind_t mp_chip_fusion_kind(const mp_chip_figures_t *figures, const mp_op_t *op,
                                          mp_work_t *out_work) {
  mp_work_of_op(op, out_work);
  if (mp_chip_fusion_is_selection(figures, op)) {
    const double count = mp_chip_fusion_op_count(op);
    *out_work =
        (mp_work_t){.work_class = MP_WORK_ELEMENTWISE, .flops = count, .vector_flops = count};
  }
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  const mp_chip_fusion_kind_t kind = chip_fusion_kinds_of_class(op, out_work->work_class);
  return ops->kind == NULL ? kind : ops->kind(figures, op, kind);
}

// ---- by compiler ----

bool mp_chip_fusion_makes_start(const mp_chip_figures_t *figures, const mp_op_t *loop,
                                uint32_t operand) {
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  return ops->makes_start != NULL && ops->makes_start(figures, loop, operand);
}

bool mp_chip_fusion_is_selection(const mp_chip_figures_t *figures, const mp_op_t *op) {
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  return ops->selects != NULL && ops->selects(figures, op);
}

bool mp_chip_fusion_is_received(const mp_chip_figures_t *figures, const mp_value_t *value) {
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  const mp_op_t *op = mp_chip_fusion_root(value)->op;
  return op != NULL && ops->receives != NULL && ops->receives(op);
}

bool mp_chip_fusion_is_sum(const mp_chip_figures_t *figures, const mp_op_t *op) {
  mp_work_t work;
  return op->code == MP_OP_DOT_GENERAL &&
         mp_chip_fusion_kind(figures, op, &work) == MP_CHIP_FUSION_REDUCTION;
}

bool mp_chip_fusion_pads(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_matmul_padding_t *out_padding) {
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  return op->code == MP_OP_DOT_GENERAL && ops->pads != NULL && ops->pads(figures, op, out_padding);
}

bool mp_chip_fusion_takes(const mp_chip_figures_t *figures, const mp_op_t *op,
                          mp_chip_fusion_kind_t kind, uint32_t operand) {
  const mp_chip_fusion_ops_t *ops = chip_fusion_kinds_ops(figures);
  switch (kind) {
    case MP_CHIP_FUSION_LOOP:
    case MP_CHIP_FUSION_MATMUL:
      return ops->takes == NULL || ops->takes(figures, op, kind, operand);
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

// ---- values ----

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
  if (kind != MP_CHIP_FUSION_MATMUL) return value;
  // A library's matmul reads its operand before transposes.
  return mp_chip_fusion_root(mp_matmul_operand(op, operand).value);
}

bool mp_chip_fusion_next(const mp_chip_figures_t *figures, const mp_op_t *op,
                         mp_chip_fusion_kind_t kind, mp_chip_fusion_read_t *read) {
  while (read->next < op->num_operands) {
    read->operand = read->next++;
    read->value = mp_chip_fusion_source(figures, op, kind, read->operand, &read->is_reused);
    if (read->value != NULL) return true;
  }
  return false;
}

double mp_chip_fusion_bytes_of(const mp_chip_figures_t *figures, const mp_type_t *type) {
  const double bytes = mp_work_bytes_of(type);
  if (bytes == 0 || type->rank == 0 || !mp_chip_policy(figures)->has_tiles) return bytes;
  return bytes * mp_tile_padding(type, mp_tile_layout_compact(type));
}
