#include "sim/spmd/build/unreduced.h"

#include <string.h>

#include "sim/base/alloc.h"
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

bool mp_unreduced_identity(mp_dtype_t dtype, mp_opcode_t code, void *out_element) {
  if (code != MP_OP_ADD && code != MP_OP_MULTIPLY && code != MP_OP_OR && code != MP_OP_XOR) {
    return false;
  }
  const bool is_one = code == MP_OP_MULTIPLY;
  const bool is_complex = mp_dtype_is_complex(dtype);
  unsigned char *element = out_element;
  memset(element, 0, mp_dtype_size(dtype));
  if (!mp_dtype_is_float(dtype) && !is_complex) {
    element[0] = is_one;
    return true;
  }
  // A complex product with 1 + 0i multiplies infinities by 0.
  if (is_complex && is_one) return false;
  const mp_dtype_t part = mp_dtype_real_part(dtype);
  const double number = is_one ? 1.0 : 0.0;
  mp_float_encode(part, is_one ? 1.0 : -0.0, element);
  if (mp_float_decode(part, element) != number) mp_float_encode(part, number, element);
  if (mp_float_decode(part, element) != number) return false;
  if (is_complex) memcpy(element + mp_dtype_size(part), element, mp_dtype_size(part));
  return true;
}

bool mp_unreduced_is_identity(const mp_value_t *value, mp_opcode_t code) {
  if (value->op == NULL || value->op->code != MP_OP_CONSTANT) return false;
  const mp_attr_t *dense = mp_op_attr(value->op, MP_ATTR_VALUE);
  unsigned char identity[16];
  if (dense == NULL || dense->kind != MP_KIND_DENSE) return false;
  if (!mp_unreduced_identity(value->type->dtype, code, identity)) return false;
  const size_t size = mp_dtype_size(value->type->dtype);
  if (dense->u.dense.size < size) return false;
  if (memcmp(dense->u.dense.data, identity, size) == 0) return true;
  // Sums may begin with either zero.
  return mp_dtype_is_float(value->type->dtype) && code == MP_OP_ADD &&
         mp_float_decode(value->type->dtype, dense->u.dense.data) == 0.0;
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
  if (!mp_unreduced_identity(value->type->dtype, code, identity)) {
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
  if (!mp_unreduced_identity(value->type->dtype, MP_OP_ADD, identity)) {
    memset(identity, 0, sizeof(identity));
  }
  return unreduced_keep_first(at, boxes, identity, value, out_value);
}
