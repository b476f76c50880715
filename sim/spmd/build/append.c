#include "sim/spmd/build/append.h"

#include "sim/base/assert.h"

mp_status_t mp_append_spec(const mp_append_at_t *at, const mp_op_spec_t *spec,
                           mp_value_t **out_value) {
  mp_op_spec_t placed = *spec;
  mp_op_t *op = NULL;
  placed.loc = at->loc;
  MP_ASSERT(spec->num_results == 1);
  MP_RETURN_IF_ERROR(mp_op_create(at->module, &placed, &op));
  mp_block_append(at->block, op);
  *out_value = &op->results[0];
  return NULL;
}

mp_status_t mp_append_op(const mp_append_at_t *at, mp_opcode_t code, mp_value_t *const *operands,
                         uint32_t num_operands, const mp_type_t *type, const mp_named_attr_t *attr,
                         mp_value_t **out_value) {
  const mp_op_spec_t spec = {.code = code,
                             .num_operands = num_operands,
                             .operands = operands,
                             .num_results = 1,
                             .result_types = &type,
                             .num_attrs = attr != NULL,
                             .attrs = attr};
  return mp_append_spec(at, &spec, out_value);
}

mp_status_t mp_append_constant(const mp_append_at_t *at, const mp_type_t *type, const void *data,
                               size_t size, bool splat, mp_value_t **out_value) {
  mp_named_attr_t value = {.name = MP_ATTR_VALUE, .text = MP_STR("value")};
  MP_RETURN_IF_ERROR(mp_attr_make_dense(at->module->arena, type, data, size, splat, &value.value));
  return mp_append_op(&(mp_append_at_t){at->module, at->block, NULL}, MP_OP_CONSTANT, NULL, 0, type,
                      &value, out_value);
}

mp_status_t mp_append_lookup(const mp_append_at_t *at, mp_dtype_t dtype, const void *table,
                             uint32_t num_partitions, mp_value_t **out_value) {
  const int64_t count = num_partitions;
  const int64_t one = 1;
  const mp_type_t *table_type = NULL;
  const mp_type_t *entry_type = NULL;
  const mp_type_t *scalar_type = NULL;
  const mp_type_t *id_type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(at->module->arena, dtype, &count, 1, &table_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(at->module->arena, dtype, &one, 1, &entry_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(at->module->arena, dtype, NULL, 0, &scalar_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(at->module->arena, MP_DTYPE_U32, NULL, 0, &id_type));
  mp_value_t *lookup[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_append_constant(at, table_type, table,
                                        num_partitions * mp_dtype_size(dtype), false, &lookup[0]));
  MP_RETURN_IF_ERROR(mp_append_op(at, MP_OP_PARTITION_ID, NULL, 0, id_type, NULL, &lookup[1]));
  mp_named_attr_t sizes = {.name = MP_ATTR_SLICE_SIZES, .text = MP_STR("slice_sizes")};
  MP_RETURN_IF_ERROR(mp_attr_make_ints(at->module->arena, &one, 1, &sizes.value));
  mp_value_t *entry = NULL;
  MP_RETURN_IF_ERROR(mp_append_op(at, MP_OP_DYNAMIC_SLICE, lookup, 2, entry_type, &sizes, &entry));
  return mp_append_op(at, MP_OP_RESHAPE, &entry, 1, scalar_type, NULL, out_value);
}

mp_status_t mp_append_iota_part(const mp_append_at_t *at, const mp_type_t *type, uint32_t dimension,
                                const mp_boxes_t *boxes, mp_value_t **out_value) {
  int64_t *starts = MP_ARENA_ARRAY(at->module->arena, int64_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(starts);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    starts[p] = boxes->starts[(size_t)p * boxes->rank + dimension];
  }
  const mp_type_t *counts = NULL;
  MP_RETURN_IF_ERROR(
      mp_type_tensor(at->module->arena, MP_DTYPE_S64, type->dims, type->rank, &counts));
  mp_named_attr_t along = {.name = MP_ATTR_IOTA_DIMENSION, .text = MP_STR("iota_dimension")};
  MP_RETURN_IF_ERROR(mp_attr_make_int(at->module->arena, MP_DTYPE_S64, dimension, &along.value));
  mp_named_attr_t no_dims = {.name = MP_ATTR_BROADCAST_DIMENSIONS,
                             .text = MP_STR("broadcast_dimensions")};
  MP_RETURN_IF_ERROR(mp_attr_make_ints(at->module->arena, NULL, 0, &no_dims.value));
  mp_value_t *terms[2] = {NULL, NULL};
  mp_value_t *start = NULL;
  mp_value_t *sum = NULL;
  MP_RETURN_IF_ERROR(mp_append_op(at, MP_OP_IOTA, NULL, 0, counts, &along, &terms[0]));
  MP_RETURN_IF_ERROR(mp_append_lookup(at, MP_DTYPE_S64, starts, boxes->num_partitions, &start));
  MP_RETURN_IF_ERROR(
      mp_append_op(at, MP_OP_BROADCAST_IN_DIM, &start, 1, counts, &no_dims, &terms[1]));
  MP_RETURN_IF_ERROR(mp_append_op(at, MP_OP_ADD, terms, 2, counts, NULL, &sum));
  if (type->dtype == MP_DTYPE_S64) {
    *out_value = sum;
    return NULL;
  }
  return mp_append_op(at, MP_OP_CONVERT, &sum, 1, type, NULL, out_value);
}
