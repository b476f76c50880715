#include "sim/spmd/unreduced.h"

#include "sim/spmd/append.h"
#include "sim/spmd/append_collective.h"

// The sets of partitions that hold terms of the same sum, as a table of replica groups.
static mp_status_t sum_groups(mp_module_t *module, const mp_boxes_t *boxes,
                              const mp_attr_t **out_attr) {
  mp_arena_t *arena = module->arena;
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
  return mp_append_groups(module, table, rows, columns, out_attr);
}

mp_status_t mp_unreduced_combine(mp_module_t *module, mp_block_t *block, const mp_boxes_t *boxes,
                                 mp_opcode_t code, mp_value_t *value, const mp_loc_t *loc,
                                 mp_value_t **out_value) {
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(sum_groups(module, boxes, &groups));
  return mp_append_all_reduce(module, block, groups, code, value, loc, out_value);
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
