#include "sim/spmd/build/unreduced.h"

#include <string.h>

#include "sim/base/alloc.h"
#include "sim/ir/reducer.h"
#include "sim/spmd/build/append.h"
#include "sim/spmd/build/append_collective.h"

// Makes a table of replica groups from the sets of partitions that hold terms of the same sum.
static mp_status_t unreduced_sum_groups(mp_module_t *module, const mp_boxes_t *boxes,
                                        const mp_attr_t **out_attr) {
  const uint32_t count = boxes->num_partitions;
  int64_t *row_of = mp_calloc(3 * (size_t)count, sizeof(*row_of));
  MP_RETURN_IF_NULL(row_of);
  int64_t *size = row_of + count, *table = size + count;
  int64_t rows = 0;
  for (uint32_t p = 0; p < count; ++p) {
    if (boxes->partials[p] == (int32_t)p) row_of[p] = rows++;
  }
  const int64_t columns = (int64_t)count / rows;  // all sets have the same size
  for (uint32_t p = 0; p < count; ++p) {
    const int64_t row = row_of[boxes->partials[p]];
    table[row * columns + size[row]++] = p;
  }
  mp_status_t status = mp_append_groups(module, table, rows, columns, out_attr);
  mp_free(row_of);
  return status;
}

mp_opcode_t mp_unreduced_opcode(uint32_t kind) {
  if (kind == MP_UNREDUCED_MAX) return MP_OP_MAXIMUM;
  return kind == MP_UNREDUCED_MIN ? MP_OP_MINIMUM : MP_OP_ADD;
}

mp_status_t mp_unreduced_combine(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                 mp_opcode_t code, mp_value_t *value, mp_value_t **out_value) {
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(unreduced_sum_groups(at->module, boxes, &groups));
  return mp_append_all_reduce(at, groups, code, value, out_value);
}

mp_status_t mp_unreduced_gather(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                mp_value_t *value, mp_value_t **out_value) {
  const mp_attr_t *groups = NULL;
  MP_RETURN_IF_ERROR(unreduced_sum_groups(at->module, boxes, &groups));
  int64_t dims[MP_MAX_RANK];
  for (uint32_t d = 0; d < value->type->rank; ++d) dims[d] = value->type->dims[d];
  dims[0] *= groups->u.ints.dims[1];
  const mp_type_t *type = NULL;
  MP_RETURN_IF_ERROR(
      mp_type_tensor(at->module->arena, value->type->dtype, dims, value->type->rank, &type));
  return mp_append_all_gather(at, groups, 0, value, type, out_value);
}

// ---- splitting ----

// A scalar that is true on the partitions which keep the value.
static mp_status_t unreduced_append_is_first(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                             mp_value_t **out_value) {
  uint8_t *is_first = MP_ARENA_ARRAY(at->module->arena, uint8_t, boxes->num_partitions);
  MP_RETURN_IF_NULL(is_first);
  for (uint32_t p = 0; p < boxes->num_partitions; ++p) {
    is_first[p] = boxes->partials[p] == (int32_t)p;
  }
  return mp_append_lookup(at, MP_DTYPE_BOOL, is_first, boxes->num_partitions, out_value);
}

static mp_status_t unreduced_keep_first(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                        const void *other, mp_value_t *value,
                                        mp_value_t **out_value) {
  const size_t size = mp_dtype_size(value->type->dtype);
  const void *copy = mp_arena_copy(at->module->arena, other, size);
  MP_RETURN_IF_NULL(copy);
  mp_value_t *operands[3] = {NULL, value, NULL};
  MP_RETURN_IF_ERROR(unreduced_append_is_first(at, boxes, &operands[0]));
  MP_RETURN_IF_ERROR(mp_append_constant(at, value->type, copy, size, true, &operands[2]));
  return mp_append_op(at, MP_OP_SELECT, operands, 3, value->type, NULL, out_value);
}

mp_status_t mp_unreduced_keep_first(const mp_append_at_t *at, const mp_boxes_t *boxes,
                                    mp_opcode_t code, mp_value_t *value, mp_value_t **out_value) {
  unsigned char identity[16];
  if (!mp_reducer_identity(value->type->dtype, code, identity)) {
    return mp_status_make(MP_INTERNAL, "a reduction without an identity was cut into terms");
  }
  return unreduced_keep_first(at, boxes, identity, value, out_value);
}

mp_status_t mp_unreduced_split(const mp_append_at_t *at, const mp_boxes_t *boxes, mp_value_t *value,
                               mp_value_t **out_value) {
  if (boxes->unreduced_kind != MP_UNREDUCED_SUM) {
    *out_value = value;
    return NULL;
  }
  unsigned char identity[16] = {0};
  if (!mp_reducer_identity(value->type->dtype, MP_OP_ADD, identity)) {
    memset(identity, 0, sizeof(identity));
  }
  return unreduced_keep_first(at, boxes, identity, value, out_value);
}
