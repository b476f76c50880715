#include "sim/passes/rewrite/rewrite.h"

#include "sim/ir/schema.h"

mp_status_t mp_rewrite_become(mp_module_t *module, mp_op_t *op, mp_opcode_t code,
                              const mp_named_attr_t *attrs, uint32_t num_attrs) {
  mp_named_attr_t *all =
      MP_ARENA_ARRAY(module->arena, mp_named_attr_t, (size_t)num_attrs + op->num_attrs);
  MP_RETURN_IF_NULL(all);
  uint32_t count = 0;
  for (uint32_t i = 0; i < num_attrs; ++i) all[count++] = attrs[i];
  for (uint32_t i = 0; i < op->num_attrs; ++i) {
    const mp_named_attr_t *old = &op->attrs[i];
    const bool was_own = mp_schema_find(op->code, old->name) != NULL;
    if (was_own && mp_schema_find(code, old->name) == NULL) continue;
    all[count++] = *old;
  }
  MP_RETURN_IF_ERROR(
      mp_schema_complete(module->arena, code, all, count, &op->attrs, &op->num_attrs));
  op->code = code;
  return NULL;
}

mp_status_t mp_rewrite_set_operands(mp_module_t *module, mp_op_t *op, mp_value_t *const *operands,
                                    uint32_t count) {
  mp_value_t **copy = mp_arena_copy(module->arena, operands, count * sizeof(*operands));
  MP_RETURN_IF_NULL(copy);
  op->operands = copy;
  op->num_operands = count;
  return NULL;
}

mp_status_t mp_rewrite_append_return(mp_module_t *module, mp_block_t *block, const mp_loc_t *loc,
                                     mp_op_t **out_position) {
  const mp_op_spec_t spec = {.code = MP_OP_RETURN, .loc = loc};
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, out_position));
  mp_block_append(block, *out_position);
  return NULL;
}

mp_status_t mp_rewrite_insert_op(mp_module_t *module, mp_op_t *position, const mp_op_one_t *op,
                                 mp_value_t **out_value) {
  mp_named_attr_t *all = NULL;
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(
      mp_schema_complete(module->arena, op->code, op->attrs, op->num_attrs, &all, &count));
  const mp_op_spec_t spec = {.code = op->code,
                             .loc = position->loc,
                             .num_operands = op->num_operands,
                             .operands = op->operands,
                             .num_results = 1,
                             .result_types = &op->type,
                             .num_attrs = count,
                             .attrs = all};
  mp_op_t *made = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &made));
  mp_block_insert_before(position, made);
  *out_value = &made->results[0];
  return NULL;
}

mp_status_t mp_rewrite_insert(mp_module_t *module, mp_op_t *position, mp_opcode_t code,
                              mp_value_t *const *operands, uint32_t num_operands,
                              const mp_type_t *type, mp_value_t **out_value) {
  const mp_op_one_t op = {
      .code = code, .type = type, .operands = operands, .num_operands = num_operands};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

mp_status_t mp_rewrite_insert_transpose(mp_module_t *module, mp_op_t *position, mp_value_t *value,
                                        const int64_t *permutation, const mp_type_t *type,
                                        mp_value_t **out_value) {
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_PERMUTATION, permutation, type->rank, &attr));
  const mp_op_one_t op = {.code = MP_OP_TRANSPOSE,
                          .type = type,
                          .operands = &value,
                          .num_operands = 1,
                          .attrs = &attr,
                          .num_attrs = 1};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

mp_status_t mp_rewrite_insert_slice(mp_module_t *module, mp_op_t *position, mp_value_t *value,
                                    const int64_t *starts, const mp_type_t *type,
                                    mp_value_t **out_value) {
  int64_t limits[MP_MAX_RANK], strides[MP_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; ++d) {
    limits[d] = starts[d] + type->dims[d];
    strides[d] = 1;
  }
  mp_named_attr_t attrs[3];
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_START_INDICES, starts, type->rank, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_LIMIT_INDICES, limits, type->rank, &attrs[1]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_STRIDES, strides, type->rank, &attrs[2]));
  const mp_op_one_t op = {.code = MP_OP_SLICE,
                          .type = type,
                          .operands = &value,
                          .num_operands = 1,
                          .attrs = attrs,
                          .num_attrs = 3};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

mp_status_t mp_rewrite_insert_copies(mp_module_t *module, mp_op_t *position, mp_value_t *scalar,
                                     const mp_type_t *type, mp_value_t **out_value) {
  mp_named_attr_t dims;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_BROADCAST_DIMENSIONS, NULL, 0, &dims));
  const mp_op_one_t op = {.code = MP_OP_BROADCAST_IN_DIM,
                          .type = type,
                          .operands = &scalar,
                          .num_operands = 1,
                          .attrs = &dims,
                          .num_attrs = 1};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

static uint32_t rewrite_comparison_of(mp_dtype_t dtype) {
  if (mp_dtype_is_float(dtype)) return MP_CMP_FLOAT;
  return mp_dtype_class(dtype) == MP_CLASS_SIGNED ? MP_CMP_SIGNED : MP_CMP_UNSIGNED;
}

mp_status_t mp_rewrite_insert_compare(mp_module_t *module, mp_op_t *position, uint32_t direction,
                                      mp_value_t *a, mp_value_t *b, mp_value_t **out_value) {
  mp_arena_t *arena = module->arena;
  const mp_attr_t *order = NULL, *kind = NULL;
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_enum(arena, MP_ENUM_COMPARISON_DIRECTION, direction, &order));
  MP_RETURN_IF_ERROR(mp_attr_make_enum(arena, MP_ENUM_COMPARISON_TYPE,
                                       rewrite_comparison_of(a->type->dtype), &kind));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_BOOL, a->type->dims, a->type->rank, &type));
  const mp_named_attr_t attrs[] = {mp_rewrite_attr(MP_ATTR_COMPARISON_DIRECTION, order),
                                   mp_rewrite_attr(MP_ATTR_COMPARE_TYPE, kind)};
  const mp_op_one_t op = {.code = MP_OP_COMPARE,
                          .type = type,
                          .operands = (mp_value_t *[]){a, b},
                          .num_operands = 2,
                          .attrs = attrs,
                          .num_attrs = 2};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

mp_status_t mp_rewrite_insert_constant(mp_module_t *module, mp_op_t *position,
                                       const mp_type_t *type, const void *element,
                                       mp_value_t **out_value) {
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(
      mp_attr_make_dense(module->arena, type, element, mp_dtype_size(type->dtype), true, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  const mp_op_one_t op = {.code = MP_OP_CONSTANT, .type = type, .attrs = &attr, .num_attrs = 1};
  return mp_rewrite_insert_op(module, position, &op, out_value);
}

mp_status_t mp_rewrite_insert_zero(mp_module_t *module, mp_op_t *position, mp_dtype_t dtype,
                                   mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  static const char zero[16];
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, NULL, 0, &type));
  return mp_rewrite_insert_constant(module, position, type, zero, out_value);
}

mp_status_t mp_rewrite_insert_number(mp_module_t *module, mp_op_t *position, const mp_type_t *type,
                                     int64_t number, mp_value_t **out_value) {
  // The lowest bytes come first.
  return mp_rewrite_insert_constant(module, position, type, &number, out_value);
}

mp_value_t *const *mp_rewrite_joined(const mp_value_t *value, int64_t dim) {
  const mp_op_t *op = value->op;
  if (op == NULL || op->code != MP_OP_CONCATENATE || mp_op_int(op, MP_ATTR_DIMENSION, -1) != dim) {
    return NULL;
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i]->type->dims[dim] != 1) return NULL;
  }
  return op->operands;
}

mp_named_attr_t mp_rewrite_attr(mp_attr_name_t name, const mp_attr_t *value) {
  return (mp_named_attr_t){name, mp_str(mp_attr_name_text(name)), value};
}

mp_status_t mp_rewrite_ints(mp_module_t *module, mp_attr_name_t name, const int64_t *values,
                            uint32_t count, mp_named_attr_t *out_attr) {
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_ints(module->arena, values, count, &value));
  *out_attr = mp_rewrite_attr(name, value);
  return NULL;
}
