// All-to-all, in its forms.
#include "sim/readers/hlo/hlo_groups.h"
#include "sim/readers/hlo/hlo_ops.h"

static mp_status_t hlo_exchange_operands(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                         mp_hlo_leaves_t *out) {
  MP_RETURN_IF_ERROR(mp_hlo_gather_operands(b, inst, 0, inst->operand_ids.count, out));
  if (out->count != 0) return NULL;
  return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "operand_ids: there are no operands");
}

static mp_status_t hlo_exchange_parts(mp_hlo_build_t *b, const mp_hlo_inst_t *inst, int64_t dim,
                                      int64_t count, mp_value_t *value, mp_value_t **out_value) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  const mp_attr_t *groups = NULL;
  mp_hlo_put_int(&attrs, MP_ATTR_CONCAT_DIMENSION, MP_DTYPE_S64, dim);
  MP_RETURN_IF_ERROR(mp_hlo_read_groups(b, inst, &groups));
  mp_hlo_put_int(&attrs, MP_ATTR_CHANNEL_ID, MP_DTYPE_S64, inst->channel_id);
  mp_hlo_put(&attrs, MP_ATTR_REPLICA_GROUPS, groups);
  mp_hlo_put_int(&attrs, MP_ATTR_SPLIT_COUNT, MP_DTYPE_S64, count);
  mp_hlo_put_int(&attrs, MP_ATTR_SPLIT_DIMENSION, MP_DTYPE_S64, dim);
  return mp_hlo_emit_one(b, inst, MP_OP_ALL_TO_ALL, &value, 1, value->type, &attrs, out_value);
}

// Joins arrays of one shape along a new first dimension.
static mp_status_t hlo_exchange_stack(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                      mp_hlo_leaves_t parts, mp_value_t **out_value) {
  const mp_type_t *part = parts.items[0]->type, *row = NULL, *whole = NULL;
  int64_t dims[MP_MAX_RANK] = {1};
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  mp_hlo_leaves_t rows = {0};
  for (uint32_t d = 0; d < part->rank; ++d) dims[d + 1] = part->dims[d];
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, part->dtype, dims, part->rank + 1, &row));
  dims[0] = parts.count;
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, part->dtype, dims, part->rank + 1, &whole));
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, parts.count, &rows));
  for (uint32_t i = 0; i < parts.count; ++i) {
    MP_RETURN_IF_ERROR(
        mp_hlo_emit_one(b, inst, MP_OP_RESHAPE, &parts.items[i], 1, row, NULL, &rows.items[i]));
  }
  mp_hlo_put_int(&attrs, MP_ATTR_DIMENSION, MP_DTYPE_S64, 0);
  return mp_hlo_emit_one(b, inst, MP_OP_CONCATENATE, rows.items, rows.count, whole, &attrs,
                         out_value);
}

// Slices part `at` of such an array.
static mp_status_t hlo_exchange_unstack(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                        mp_value_t *whole, int64_t at, const mp_type_t *part,
                                        mp_value_t **out_value) {
  int64_t starts[MP_MAX_RANK] = {at}, limits[MP_MAX_RANK], strides[MP_MAX_RANK];
  int64_t dims[MP_MAX_RANK];
  const uint32_t rank = whole->type->rank;
  const mp_type_t *row = NULL;
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b);
  for (uint32_t d = 0; d < rank; ++d) {
    limits[d] = d == 0 ? at + 1 : whole->type->dims[d];
    dims[d] = d == 0 ? 1 : whole->type->dims[d];
    strides[d] = 1;
  }
  MP_RETURN_IF_ERROR(mp_hlo_tensor(b, part->dtype, dims, rank, &row));
  mp_hlo_put_ints(&attrs, MP_ATTR_LIMIT_INDICES, limits, rank);
  mp_hlo_put_ints(&attrs, MP_ATTR_START_INDICES, starts, rank);
  mp_hlo_put_ints(&attrs, MP_ATTR_STRIDES, strides, rank);
  MP_RETURN_IF_ERROR(mp_hlo_emit_one(b, inst, MP_OP_SLICE, &whole, 1, row, &attrs, &whole));
  return mp_hlo_emit_one(b, inst, MP_OP_RESHAPE, &whole, 1, part, NULL, out_value);
}

// The form with a tuple: operand i goes to member i of the group, result i comes from it.
static mp_status_t hlo_exchange_tuple_to_all(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                             mp_hlo_leaves_t operands, mp_hlo_leaves_t *out) {
  const mp_type_t *part = operands.items[0]->type;
  mp_value_t *whole = NULL;
  for (uint32_t i = 0; i < operands.count; ++i) {
    if (part->kind != MP_TYPE_TENSOR || part->rank >= MP_MAX_RANK ||
        !mp_type_equal(operands.items[i]->type, part)) {
      return mp_hlo_error(inst, MP_INVALID_ARGUMENT, "the operands are not arrays of one shape");
    }
  }
  MP_RETURN_IF_ERROR(hlo_exchange_stack(b, inst, operands, &whole));
  MP_RETURN_IF_ERROR(hlo_exchange_parts(b, inst, 0, operands.count, whole, &whole));
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, operands.count, out));
  for (uint32_t i = 0; i < operands.count; ++i) {
    MP_RETURN_IF_ERROR(hlo_exchange_unstack(b, inst, whole, i, part, &out->items[i]));
  }
  return NULL;
}

mp_status_t mp_hlo_build_all_to_all(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                    mp_hlo_leaves_t *out) {
  mp_hlo_leaves_t operands = {0};
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(hlo_exchange_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(mp_hlo_read_groups(b, inst, &groups));
  if (mp_hlo_groups_are_alone(inst, groups) && operands.count == 1) {
    *out = operands;
    return NULL;
  }
  if (inst->shape->type == NULL || inst->dimensions.count == 0) {
    return hlo_exchange_tuple_to_all(b, inst, operands, out);
  }
  const int64_t dim = inst->dimensions.items[0];
  if (operands.count != 1 || inst->dimensions.count != 1 ||
      operands.items[0]->type->kind != MP_TYPE_TENSOR || groups->kind != MP_KIND_INTS ||
      groups->u.ints.count == 0) {
    return mp_hlo_error(inst, MP_UNIMPLEMENTED,
                        "an array in parts needs one operand and a list of groups, which tells "
                        "the number of parts");
  }
  MP_RETURN_IF_ERROR(mp_hlo_new_leaves(b->h, 1, out));
  return hlo_exchange_parts(b, inst, dim, groups->u.ints.dims[1], operands.items[0],
                            &out->items[0]);
}

// The call that JAX makes for it.
mp_status_t mp_hlo_build_ragged_all_to_all(mp_hlo_build_t *b, const mp_hlo_inst_t *inst,
                                           mp_hlo_leaves_t *out) {
  mp_hlo_attrs_t attrs = mp_hlo_attrs(b), inner = mp_hlo_attrs(b);
  mp_hlo_leaves_t operands = {0};
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(hlo_exchange_operands(b, inst, &operands));
  MP_RETURN_IF_ERROR(mp_hlo_read_groups(b, inst, &groups));
  if (inst->channel_id > 0) {
    mp_hlo_put_int(&inner, MP_ATTR_CHANNEL_ID, MP_DTYPE_S64, inst->channel_id);
  }
  mp_hlo_put(&inner, MP_ATTR_REPLICA_GROUPS, groups);
  mp_attr_t *config = mp_hlo_new_attr(&attrs, MP_KIND_DICT);
  const mp_named_attr_t *items =
      mp_arena_copy(attrs.arena, inner.items, inner.count * sizeof(inner.items[0]));
  if (config == NULL || items == NULL || inner.failed) return mp_status_out_of_memory();
  config->u.dict.items = items;
  config->u.dict.count = inner.count;
  mp_hlo_put_enum(&attrs, MP_ATTR_API_VERSION, MP_ENUM_API_VERSION, MP_API_TYPED_FFI);
  mp_hlo_put(&attrs, MP_ATTR_BACKEND_CONFIG, config);
  mp_hlo_put_string(&attrs, MP_ATTR_CALL_TARGET_NAME, MP_STR("ragged_all_to_all"));
  return mp_hlo_emit_whole(b, inst, MP_OP_CUSTOM_CALL, operands, NULL, 0, &attrs, out);
}
