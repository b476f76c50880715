// Dynamic ops in programs without dynamic shapes: the operands that give the shape are computed
// from constants, or repeat the result's type.
#include "sim/base/assert.h"
#include "sim/passes/desugar/constant_ints.h"
#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

static bool desugar_dynamic_is_static(const mp_op_t *op) {
  return mp_type_is_static(op->operands[0]->type) && mp_type_is_static(op->results[0].type);
}

// Keeps the first `count` operands; the others give the shape.
static mp_status_t desugar_dynamic_keep_operands(mp_module_t *module, mp_op_t *op, uint32_t count,
                                                 mp_opcode_t code, const mp_named_attr_t *attrs,
                                                 uint32_t num_attrs) {
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, op->operands, count));
  return mp_rewrite_become(module, op, code, attrs, num_attrs);
}

mp_status_t mp_desugar_dynamic_reshape(mp_module_t *module, mp_op_t *op) {
  if (!desugar_dynamic_is_static(op)) return NULL;
  return desugar_dynamic_keep_operands(module, op, 1, MP_OP_RESHAPE, NULL, 0);
}

mp_status_t mp_desugar_dynamic_broadcast_in_dim(mp_module_t *module, mp_op_t *op) {
  if (!desugar_dynamic_is_static(op)) return NULL;
  return desugar_dynamic_keep_operands(module, op, 1, MP_OP_BROADCAST_IN_DIM, NULL, 0);
}

mp_status_t mp_desugar_dynamic_iota(mp_module_t *module, mp_op_t *op) {
  if (!mp_type_is_static(op->results[0].type)) return NULL;
  return desugar_dynamic_keep_operands(module, op, 0, MP_OP_IOTA, NULL, 0);
}

// Keeps the first `first` operands. The `count` operands behind them become list attributes with
// one entry per dimension. If one of them is no constant, the op stays as it is.
static mp_status_t desugar_dynamic_take_constants(mp_module_t *module, mp_op_t *op, uint32_t first,
                                                  uint32_t count, const mp_attr_name_t *names,
                                                  mp_opcode_t code) {
  const uint32_t rank = op->operands[0]->type->rank;
  int64_t values[MP_MAX_RANK];
  mp_named_attr_t attrs[3];
  MP_ASSERT(count <= 3);
  if (!desugar_dynamic_is_static(op) || rank > MP_MAX_RANK) return NULL;
  for (uint32_t i = 0; i < count; ++i) {
    if (!mp_constant_ints(op->operands[first + i], values, rank)) return NULL;
    MP_RETURN_IF_ERROR(mp_rewrite_ints(module, names[i], values, rank, &attrs[i]));
  }
  return desugar_dynamic_keep_operands(module, op, first, code, attrs, count);
}

mp_status_t mp_desugar_dynamic_pad(mp_module_t *module, mp_op_t *op) {
  static const mp_attr_name_t names[] = {MP_ATTR_EDGE_PADDING_LOW, MP_ATTR_EDGE_PADDING_HIGH,
                                         MP_ATTR_INTERIOR_PADDING};
  return desugar_dynamic_take_constants(module, op, 2, 3, names, MP_OP_PAD);
}

mp_status_t mp_desugar_real_dynamic_slice(mp_module_t *module, mp_op_t *op) {
  static const mp_attr_name_t names[] = {MP_ATTR_START_INDICES, MP_ATTR_LIMIT_INDICES,
                                         MP_ATTR_STRIDES};
  return desugar_dynamic_take_constants(module, op, 1, 3, names, MP_OP_SLICE);
}

mp_status_t mp_desugar_dynamic_gather(mp_module_t *module, mp_op_t *op) {
  static const mp_attr_name_t name = MP_ATTR_SLICE_SIZES;
  return desugar_dynamic_take_constants(module, op, 2, 1, &name, MP_OP_GATHER);
}

mp_status_t mp_desugar_dynamic_conv(mp_module_t *module, mp_op_t *op) {
  const uint32_t spatial = mp_op_ints(op, MP_ATTR_INPUT_SPATIAL_DIMENSIONS).count;
  int64_t padding[MP_MAX_RANK * 2];
  if (!desugar_dynamic_is_static(op) || spatial > MP_MAX_RANK) return NULL;
  if (!mp_constant_ints(op->operands[2], padding, spatial * 2)) return NULL;
  const mp_attr_t *table = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_table(module->arena, padding, spatial, 2, &table));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_PADDING, table);
  return desugar_dynamic_keep_operands(module, op, 2, MP_OP_CONVOLUTION, &attr, 1);
}

mp_status_t mp_desugar_get_dimension_size(mp_module_t *module, mp_op_t *op) {
  const mp_type_t *type = op->operands[0]->type;
  const int64_t dimension = mp_op_int(op, MP_ATTR_DIMENSION, 0);
  if (!mp_type_is_static(type)) return NULL;
  if (dimension < 0 || dimension >= (int64_t)type->rank || type->dims[dimension] > INT32_MAX) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "there is no dimension %lld, or it exceeds i32",
                       (long long)dimension);
  }
  const int32_t size = (int32_t)type->dims[dimension];
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(
      mp_attr_make_dense(module->arena, op->results[0].type, &size, sizeof(size), false, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  return desugar_dynamic_keep_operands(module, op, 0, MP_OP_CONSTANT, &attr, 1);
}
