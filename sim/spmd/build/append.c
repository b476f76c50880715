#include "sim/spmd/build/append.h"

mp_status_t mp_append_op_attrs(mp_module_t *module, mp_block_t *block, mp_opcode_t code,
                               mp_value_t *const *operands, uint32_t num_operands,
                               const mp_type_t *type, const mp_named_attr_t *attrs,
                               uint32_t num_attrs, const mp_loc_t *loc, mp_value_t **out_value) {
  const mp_op_spec_t spec = {.code = code,
                             .loc = loc,
                             .num_operands = num_operands,
                             .operands = operands,
                             .num_results = 1,
                             .result_types = &type,
                             .num_attrs = num_attrs,
                             .attrs = attrs};
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &op));
  mp_block_append(block, op);
  *out_value = &op->results[0];
  return NULL;
}

mp_status_t mp_append_op(mp_module_t *module, mp_block_t *block, mp_opcode_t code,
                         mp_value_t *const *operands, uint32_t num_operands, const mp_type_t *type,
                         const mp_named_attr_t *attr, const mp_loc_t *loc, mp_value_t **out_value) {
  return mp_append_op_attrs(module, block, code, operands, num_operands, type, attr,
                            attr == NULL ? 0 : 1, loc, out_value);
}

mp_status_t mp_append_constant(mp_module_t *module, mp_block_t *block, const mp_type_t *type,
                               const void *data, size_t size, bool splat, mp_value_t **out_value) {
  mp_named_attr_t value = {.name = MP_ATTR_VALUE, .text = MP_STR("value")};
  MP_RETURN_IF_ERROR(mp_attr_make_dense(module->arena, type, data, size, splat, &value.value));
  return mp_append_op(module, block, MP_OP_CONSTANT, NULL, 0, type, &value, NULL, out_value);
}

mp_status_t mp_append_lookup(mp_module_t *module, mp_block_t *block, mp_dtype_t dtype,
                             const void *table, uint32_t num_partitions, const mp_loc_t *loc,
                             mp_value_t **out_value) {
  const int64_t count = num_partitions;
  const int64_t one = 1;
  const mp_type_t *table_type = NULL;
  const mp_type_t *entry_type = NULL;
  const mp_type_t *scalar_type = NULL;
  const mp_type_t *id_type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, &count, 1, &table_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, &one, 1, &entry_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, NULL, 0, &scalar_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, MP_DTYPE_U32, NULL, 0, &id_type));
  mp_value_t *lookup[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_append_constant(module, block, table_type, table,
                                        num_partitions * mp_dtype_size(dtype), false, &lookup[0]));
  MP_RETURN_IF_ERROR(
      mp_append_op(module, block, MP_OP_PARTITION_ID, NULL, 0, id_type, NULL, loc, &lookup[1]));
  mp_named_attr_t sizes = {.name = MP_ATTR_SLICE_SIZES, .text = MP_STR("slice_sizes")};
  MP_RETURN_IF_ERROR(mp_attr_make_ints(module->arena, &one, 1, &sizes.value));
  mp_value_t *entry = NULL;
  MP_RETURN_IF_ERROR(
      mp_append_op(module, block, MP_OP_DYNAMIC_SLICE, lookup, 2, entry_type, &sizes, loc, &entry));
  return mp_append_op(module, block, MP_OP_RESHAPE, &entry, 1, scalar_type, NULL, loc, out_value);
}

mp_status_t mp_append_iota_part(mp_module_t *module, mp_block_t *block, const mp_type_t *type,
                                uint32_t dimension, const mp_boxes_t *boxes, const mp_loc_t *loc,
                                mp_value_t **out_value) {
  int64_t *starts = MP_ARENA_ARRAY(module->arena, int64_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(starts);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    starts[p] = boxes->starts[(size_t)p * boxes->rank + dimension];
  }
  const mp_type_t *counts = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, MP_DTYPE_S64, type->dims, type->rank, &counts));
  mp_named_attr_t along = {.name = MP_ATTR_IOTA_DIMENSION, .text = MP_STR("iota_dimension")};
  MP_RETURN_IF_ERROR(mp_attr_make_int(module->arena, MP_DTYPE_S64, dimension, &along.value));
  mp_named_attr_t no_dims = {.name = MP_ATTR_BROADCAST_DIMENSIONS,
                             .text = MP_STR("broadcast_dimensions")};
  MP_RETURN_IF_ERROR(mp_attr_make_ints(module->arena, NULL, 0, &no_dims.value));
  mp_value_t *terms[2] = {NULL, NULL};
  mp_value_t *start = NULL;
  mp_value_t *sum = NULL;
  MP_RETURN_IF_ERROR(
      mp_append_op(module, block, MP_OP_IOTA, NULL, 0, counts, &along, loc, &terms[0]));
  MP_RETURN_IF_ERROR(
      mp_append_lookup(module, block, MP_DTYPE_S64, starts, boxes->num_partitions, loc, &start));
  MP_RETURN_IF_ERROR(mp_append_op(module, block, MP_OP_BROADCAST_IN_DIM, &start, 1, counts,
                                  &no_dims, loc, &terms[1]));
  MP_RETURN_IF_ERROR(mp_append_op(module, block, MP_OP_ADD, terms, 2, counts, NULL, loc, &sum));
  if (type->dtype == MP_DTYPE_S64) {
    *out_value = sum;
    return NULL;
  }
  return mp_append_op(module, block, MP_OP_CONVERT, &sum, 1, type, NULL, loc, out_value);
}
