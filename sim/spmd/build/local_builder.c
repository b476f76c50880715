#include "sim/spmd/build/local_builder.h"

#include "sim/ir/reducer.h"

mp_status_t mp_emit_op(const mp_local_builder_t *e, mp_opcode_t code, mp_value_t *const *operands,
                       uint32_t num_operands, const mp_type_t *type, const mp_named_attr_t *attrs,
                       uint32_t num_attrs, mp_value_t **out_value) {
  const mp_op_spec_t spec = {.code = code,
                             .num_operands = num_operands,
                             .operands = operands,
                             .num_results = 1,
                             .result_types = &type,
                             .num_attrs = num_attrs,
                             .attrs = attrs};
  return mp_append_spec(&(mp_append_at_t){e->module, e->block, e->loc}, &spec, out_value);
}

mp_status_t mp_emit_binary(const mp_local_builder_t *e, mp_opcode_t code, mp_value_t *a,
                           mp_value_t *b, mp_value_t **out_value) {
  return mp_emit_op(e, code, (mp_value_t *[]){a, b}, 2, a->type, NULL, 0, out_value);
}

mp_status_t mp_emit_compare(const mp_local_builder_t *e, uint32_t direction, mp_value_t *a,
                            mp_value_t *b, mp_value_t **out_value) {
  mp_named_attr_t attrs[2] = {
      {.name = MP_ATTR_COMPARE_TYPE, .text = MP_STR("compare_type")},
      {.name = MP_ATTR_COMPARISON_DIRECTION, .text = MP_STR("comparison_direction")}};
  mp_arena_t *arena = e->module->arena;
  MP_RETURN_IF_ERROR(
      mp_attr_make_enum(arena, MP_ENUM_COMPARISON_TYPE, MP_CMP_SIGNED, &attrs[0].value));
  MP_RETURN_IF_ERROR(
      mp_attr_make_enum(arena, MP_ENUM_COMPARISON_DIRECTION, direction, &attrs[1].value));
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_emit_type(e, a->type, MP_DTYPE_BOOL, &type));
  return mp_emit_op(e, MP_OP_COMPARE, (mp_value_t *[]){a, b}, 2, type, attrs, 2, out_value);
}

mp_status_t mp_emit_select(const mp_local_builder_t *e, mp_value_t *pred, mp_value_t *a,
                           mp_value_t *b, mp_value_t **out_value) {
  return mp_emit_op(e, MP_OP_SELECT, (mp_value_t *[]){pred, a, b}, 3, a->type, NULL, 0, out_value);
}

mp_status_t mp_emit_ints(const mp_local_builder_t *e, mp_attr_name_t name, const int64_t *values,
                         uint32_t count, mp_named_attr_t *out_attr) {
  const char *text = mp_attr_name_text(name);
  *out_attr = (mp_named_attr_t){.name = name, .text = mp_str(text)};
  return mp_attr_make_ints(e->module->arena, values, count, &out_attr->value);
}

mp_status_t mp_emit_type(const mp_local_builder_t *e, const mp_type_t *shape, mp_dtype_t dtype,
                         const mp_type_t **out_type) {
  return mp_type_tensor(e->module->arena, dtype, shape->dims, shape->rank, out_type);
}

mp_status_t mp_emit_splat(const mp_local_builder_t *e, const mp_type_t *type, const void *element,
                          mp_value_t **out_value) {
  const size_t size = mp_dtype_size(type->dtype);
  const void *copy = mp_arena_copy(e->module->arena, element, size);
  MP_RETURN_IF_NULL(copy);
  return mp_append_constant(&(mp_append_at_t){e->module, e->block, NULL}, type, copy, size, true,
                            out_value);
}

mp_status_t mp_emit_splat_s64(const mp_local_builder_t *e, const mp_type_t *shape, int64_t number,
                              mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_emit_type(e, shape, MP_DTYPE_S64, &type));
  return mp_emit_splat(e, type, &number, out_value);
}

mp_status_t mp_emit_index(const mp_local_builder_t *e, mp_value_t *value, mp_value_t **out_value) {
  if (value->type->dtype == MP_DTYPE_S64) {
    *out_value = value;
    return NULL;
  }
  if (value->type->dtype == MP_DTYPE_U64) {
    const uint64_t largest = INT64_MAX;
    mp_value_t *bound = NULL;
    MP_RETURN_IF_ERROR(mp_emit_splat(e, value->type, &largest, &bound));
    MP_RETURN_IF_ERROR(mp_emit_binary(e, MP_OP_MINIMUM, value, bound, &value));
  }
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_emit_type(e, value->type, MP_DTYPE_S64, &type));
  return mp_emit_op(e, MP_OP_CONVERT, &value, 1, type, NULL, 0, out_value);
}

mp_status_t mp_emit_clamp(const mp_local_builder_t *e, mp_value_t *value, int64_t low, int64_t high,
                          mp_value_t **out_value) {
  mp_value_t *bounds[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_emit_splat_s64(e, value->type, low, &bounds[0]));
  MP_RETURN_IF_ERROR(mp_emit_splat_s64(e, value->type, high, &bounds[1]));
  MP_RETURN_IF_ERROR(mp_emit_binary(e, MP_OP_MAXIMUM, value, bounds[0], &value));
  return mp_emit_binary(e, MP_OP_MINIMUM, value, bounds[1], out_value);
}

mp_status_t mp_emit_reshape(const mp_local_builder_t *e, mp_value_t *value, const int64_t *dims,
                            uint32_t rank, mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, value->type->dtype, dims, rank, &type));
  return mp_emit_op(e, MP_OP_RESHAPE, &value, 1, type, NULL, 0, out_value);
}

mp_status_t mp_emit_row(const mp_local_builder_t *e, const int64_t *table, uint32_t num_partitions,
                        uint32_t count, mp_value_t **out_value) {
  const int64_t dims[2] = {num_partitions, count};
  const int64_t row[2] = {1, count};
  const mp_type_t *table_type = NULL;
  const mp_type_t *row_type = NULL;
  const mp_type_t *id_type = NULL;
  mp_arena_t *arena = e->module->arena;
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_S64, dims, 2, &table_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_S64, row, 2, &row_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_U32, NULL, 0, &id_type));
  mp_value_t *operands[3] = {NULL, NULL, NULL};
  const size_t size = (size_t)num_partitions * count * sizeof(*table);
  const uint32_t zero = 0;
  MP_RETURN_IF_ERROR(mp_append_constant(&(mp_append_at_t){e->module, e->block, NULL}, table_type,
                                        table, size, false, &operands[0]));
  MP_RETURN_IF_ERROR(mp_emit_op(e, MP_OP_PARTITION_ID, NULL, 0, id_type, NULL, 0, &operands[1]));
  MP_RETURN_IF_ERROR(mp_emit_splat(e, id_type, &zero, &operands[2]));
  mp_named_attr_t sizes;
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_SLICE_SIZES, row, 2, &sizes));
  mp_value_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_emit_op(e, MP_OP_DYNAMIC_SLICE, operands, 3, row_type, &sizes, 1, &value));
  return mp_emit_reshape(e, value, &dims[1], 1, out_value);
}

mp_status_t mp_emit_vector(const mp_local_builder_t *e, const int64_t *numbers, uint32_t count,
                           mp_value_t **out_value) {
  const int64_t dim = count;
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(e->module->arena, MP_DTYPE_S64, &dim, 1, &type));
  const size_t size = count * sizeof(*numbers);
  const int64_t *copy = mp_arena_copy(e->module->arena, numbers, size);
  MP_RETURN_IF_NULL(copy);
  return mp_append_constant(&(mp_append_at_t){e->module, e->block, NULL}, type, copy, size, false,
                            out_value);
}

mp_status_t mp_emit_broadcast(const mp_local_builder_t *e, mp_value_t *value, const int64_t *dims,
                              const mp_type_t *shape, mp_value_t **out_value) {
  const mp_type_t *type = NULL;
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_emit_type(e, shape, value->type->dtype, &type));
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_BROADCAST_DIMENSIONS, dims, value->type->rank, &attr));
  return mp_emit_op(e, MP_OP_BROADCAST_IN_DIM, &value, 1, type, &attr, 1, out_value);
}

mp_status_t mp_emit_iota(const mp_local_builder_t *e, const mp_type_t *type, int64_t dim,
                         mp_value_t **out_value) {
  mp_named_attr_t along = {.name = MP_ATTR_IOTA_DIMENSION, .text = MP_STR("iota_dimension")};
  MP_RETURN_IF_ERROR(mp_attr_make_int(e->module->arena, MP_DTYPE_S64, dim, &along.value));
  return mp_emit_op(e, MP_OP_IOTA, NULL, 0, type, &along, 1, out_value);
}

mp_status_t mp_emit_all(const mp_local_builder_t *e, mp_value_t *value, int64_t dim,
                        mp_value_t **out_value) {
  static const unsigned char yes = 1;
  int64_t dims[MP_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < value->type->rank; ++d) {
    if ((int64_t)d != dim) dims[rank++] = value->type->dims[d];
  }
  const mp_type_t *type = NULL;
  const mp_type_t *scalar = NULL;
  mp_arena_t *arena = e->module->arena;
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_BOOL, dims, rank, &type));
  MP_RETURN_IF_ERROR(mp_type_tensor(arena, MP_DTYPE_BOOL, NULL, 0, &scalar));
  mp_value_t *operands[2] = {value, NULL};
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_emit_splat(e, scalar, &yes, &operands[1]));
  MP_RETURN_IF_ERROR(mp_emit_ints(e, MP_ATTR_DIMENSIONS, &dim, 1, &attr));
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create_reduce(e->module, MP_OP_AND, e->loc, operands, type, &attr, &op));
  mp_block_append(e->block, op);
  *out_value = &op->results[0];
  return NULL;
}
