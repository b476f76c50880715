#include "sim/spmd/unreduced.h"

#include "sim/spmd/append.h"

// The sets of partitions that hold terms of the same sum, as a table of replica groups.
static mp_status_t sum_groups(mp_arena_t *arena, const mp_boxes_t *boxes,
                              const mp_attr_t **out_attr) {
  const uint32_t count = boxes->num_partitions;
  int64_t *row_of = MP_ARENA_ARRAY(arena, int64_t, count);
  int64_t *size = MP_ARENA_ARRAY(arena, int64_t, count);
  int64_t *table = MP_ARENA_ARRAY(arena, int64_t, count);
  if (row_of == NULL || size == NULL || table == NULL) return mp_status_out_of_memory();
  int64_t rows = 0;
  for (uint32_t p = 0; p < count; ++p) {
    if (boxes->partials[p] == (int32_t)p) row_of[p] = rows++;
  }
  const int64_t columns = (int64_t)count / rows;  // the sets are equally large
  for (uint32_t p = 0; p < count; ++p) {
    const int64_t row = row_of[boxes->partials[p]];
    table[row * columns + size[row]++] = p;
  }
  return mp_attr_make_table(arena, table, rows, columns, out_attr);
}

mp_status_t mp_unreduced_combine(mp_module_t *module, mp_block_t *block, const mp_boxes_t *boxes,
                                 mp_opcode_t code, mp_value_t *value, const mp_loc_t *loc,
                                 mp_value_t **out_value) {
  mp_named_attr_t attrs[3] = {
      {.name = MP_ATTR_CHANNEL_ID, .text = MP_STR("channel_id")},
      {.name = MP_ATTR_REPLICA_GROUPS, .text = MP_STR("replica_groups")},
      {.name = MP_ATTR_USE_GLOBAL_DEVICE_IDS, .text = MP_STR("use_global_device_ids")}};
  MP_RETURN_IF_ERROR(mp_attr_make_int(module->arena, MP_DTYPE_S64, 1, &attrs[0].value));
  MP_RETURN_IF_ERROR(sum_groups(module->arena, boxes, &attrs[1].value));
  MP_RETURN_IF_ERROR(mp_attr_make_bool(module->arena, true, &attrs[2].value));
  mp_block_t *region = NULL;
  MP_RETURN_IF_ERROR(mp_block_create_reducer(module, code, value->type->dtype, loc, &region));
  const mp_op_spec_t spec = {.code = MP_OP_ALL_REDUCE,
                             .loc = loc,
                             .num_operands = 1,
                             .operands = &value,
                             .num_results = 1,
                             .result_types = &value->type,
                             .num_regions = 1,
                             .regions = &region,
                             .num_attrs = 3,
                             .attrs = attrs};
  mp_op_t *op = NULL;
  MP_RETURN_IF_ERROR(mp_op_create(module, &spec, &op));
  mp_block_append(block, op);
  *out_value = &op->results[0];
  return NULL;
}

// --- splitting ---

// A scalar that is true on the partitions which keep the value.
static mp_status_t append_is_first(mp_module_t *module, mp_block_t *block, const mp_boxes_t *boxes,
                                   const mp_loc_t *loc, mp_value_t **out_value) {
  uint8_t *is_first = MP_ARENA_ARRAY(module->arena, uint8_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(is_first);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    is_first[p] = boxes->partials[p] == (int32_t)p;
  }
  return mp_append_lookup(module, block, MP_DTYPE_BOOL, is_first, boxes->num_partitions, loc,
                          out_value);
}

mp_status_t mp_unreduced_split(mp_module_t *module, mp_block_t *block, const mp_boxes_t *boxes,
                               mp_value_t *value, const mp_loc_t *loc, mp_value_t **out_value) {
  const size_t size = mp_dtype_size(value->type->dtype);
  void *zero = mp_arena_alloc(module->arena, size);
  MP_RETURN_IF_NULL(zero);
  mp_value_t *operands[3] = {NULL, value, NULL};
  MP_RETURN_IF_ERROR(append_is_first(module, block, boxes, loc, &operands[0]));
  MP_RETURN_IF_ERROR(
      mp_append_constant(module, block, value->type, zero, size, true, &operands[2]));
  return mp_append_op(module, block, MP_OP_SELECT, operands, 3, value->type, NULL, loc, out_value);
}
