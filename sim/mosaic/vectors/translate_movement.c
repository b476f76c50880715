// Ops that move elements.
#include <string.h>

#include "sim/mosaic/vectors/translate.h"

// The dimensions of a smaller array that are the last ones of the result.
static mp_value_t *translate_movement_broadcast(mp_shlo_t *hlo, mp_value_t *x,
                                                const mp_type_t *type) {
  int64_t where[MP_MAX_RANK];
  if (x == NULL || type == NULL || x->type->rank > type->rank) return NULL;
  for (uint32_t d = 0; d < x->type->rank; ++d) where[d] = type->rank - x->type->rank + d;
  return mp_shlo_broadcast(hlo, x, type, where);
}

// ---- parts of vectors ----

// Fills in the dimensions after those that an attribute gives.
static void translate_movement_complete(mp_index_list_t given, uint32_t rank, const int64_t *rest,
                                        int64_t *out) {
  for (uint32_t d = 0; d < rank; ++d) {
    out[d] = d < given.count ? given.values[d] : rest == NULL ? 0 : rest[d];
  }
}

static mp_value_t *translate_movement_slice(const mp_translate_t *t) {
  int64_t buffer[3][MP_MAX_RANK], starts[MP_MAX_RANK], sizes[MP_MAX_RANK], strides[MP_MAX_RANK];
  mp_value_t *x = t->in[0];
  const uint32_t rank = x->type->rank;
  const mp_index_list_t given = mp_translate_ints(t->op, "strides", buffer[2]);
  translate_movement_complete(mp_translate_ints(t->op, "offsets", buffer[0]), rank, NULL, starts);
  translate_movement_complete(mp_translate_ints(t->op, "sizes", buffer[1]), rank, x->type->dims,
                              sizes);
  for (uint32_t d = 0; d < rank; ++d) strides[d] = d < given.count ? given.values[d] : 1;
  for (uint32_t d = 0; d < rank; ++d) {
    const int64_t last = sizes[d] == 0 ? 0 : starts[d] + (sizes[d] - 1) * strides[d];
    if (starts[d] < 0 || sizes[d] < 0 || strides[d] < 1 || last >= x->type->dims[d]) return NULL;
  }
  return mp_shlo_slice(t->hlo, x, starts, sizes, strides);
}

// The static position of vector.extract and vector.insert; false: part of it is dynamic.
static bool translate_movement_position(const mp_translate_t *t, const mp_type_t *type,
                                        int64_t *out_starts, uint32_t *out_count) {
  int64_t buffer[MP_MAX_RANK];
  const mp_index_list_t given = mp_translate_ints(t->op, "static_position", buffer);
  if (given.count > type->rank) return false;
  for (uint32_t d = 0; d < type->rank; ++d) {
    out_starts[d] = d < given.count ? given.values[d] : 0;
    if (out_starts[d] < 0 || (type->dims[d] != 0 && out_starts[d] >= type->dims[d])) return false;
  }
  *out_count = given.count;
  return true;
}

static mp_value_t *translate_movement_extract(const mp_translate_t *t) {
  int64_t starts[MP_MAX_RANK], sizes[MP_MAX_RANK];
  uint32_t count = 0;
  mp_value_t *x = t->in[0];
  if (t->op->num_operands != 1 || !translate_movement_position(t, x->type, starts, &count))
    return NULL;
  for (uint32_t d = 0; d < x->type->rank; ++d) sizes[d] = d < count ? 1 : x->type->dims[d];
  mp_value_t *part = mp_shlo_slice(t->hlo, x, starts, sizes, NULL);
  return mp_shlo_reshape(t->hlo, part, t->type->dims, t->type->rank);
}

static mp_value_t *translate_movement_insert(const mp_translate_t *t) {
  int64_t starts[MP_MAX_RANK], sizes[MP_MAX_RANK];
  uint32_t count = 0;
  mp_value_t *part = t->in[0], *whole = t->in[1];
  if (t->op->num_operands != 2 || !translate_movement_position(t, whole->type, starts, &count))
    return NULL;
  for (uint32_t d = 0; d < whole->type->rank; ++d) sizes[d] = d < count ? 1 : whole->type->dims[d];
  part = mp_shlo_reshape(t->hlo, part, sizes, whole->type->rank);
  return mp_shlo_update(t->hlo, whole, part, starts);
}

static mp_value_t *translate_movement_insert_slice(const mp_translate_t *t) {
  int64_t buffer[2][MP_MAX_RANK], sizes[MP_MAX_RANK], starts[MP_MAX_RANK];
  mp_value_t *part = t->in[0], *whole = t->in[1];
  const uint32_t rank = whole->type->rank, ones = rank - part->type->rank;
  const mp_index_list_t strides = mp_translate_ints(t->op, "strides", buffer[1]);
  translate_movement_complete(mp_translate_ints(t->op, "offsets", buffer[0]), rank, NULL, starts);
  for (uint32_t i = 0; i < strides.count; ++i) {
    if (strides.values[i] != 1) return NULL;
  }
  for (uint32_t d = 0; d < rank; ++d) {
    sizes[d] = d < ones ? 1 : part->type->dims[d - ones];
    if (starts[d] < 0 || starts[d] + sizes[d] > whole->type->dims[d]) return NULL;
  }
  return mp_shlo_update(t->hlo, whole, mp_shlo_reshape(t->hlo, part, sizes, rank), starts);
}

// ---- whole vectors ----

static mp_value_t *translate_movement_transpose(const mp_translate_t *t) {
  int64_t buffer[MP_MAX_RANK];
  const mp_index_list_t given = mp_translate_ints(t->op, "permutation", buffer);
  uint32_t seen = 0;
  if (given.count != t->type->rank) return NULL;
  for (uint32_t d = 0; d < given.count; ++d) {
    if (given.values[d] < 0 || given.values[d] >= given.count) return NULL;
    seen |= 1u << given.values[d];
  }
  if (seen != (1u << given.count) - 1) return NULL;
  return mp_shlo_transpose(t->hlo, t->in[0], given.values);
}

static bool translate_movement_is_dim(int64_t dim, const mp_type_t *type) {
  return dim >= 0 && dim < (int64_t)type->rank;
}

// x by x: a broadcast, which fuses, in a dimension of its own before the repeated one.
static mp_value_t *translate_movement_copies(const mp_translate_t *t, int64_t dim, int64_t times) {
  const mp_type_t *x = t->in[0]->type;
  if (!translate_movement_is_dim(dim, x) || times < 1 || x->rank == MP_MAX_RANK) return NULL;
  int64_t dims[MP_MAX_RANK], positions[MP_MAX_RANK];
  for (uint32_t d = 0; d < x->rank; ++d) {
    positions[d] = d + (d >= dim ? 1 : 0);
    dims[positions[d]] = x->dims[d];
  }
  dims[dim] = times;
  const mp_type_t *apart = mp_shlo_type(t->hlo, x->dtype, dims, x->rank + 1);
  if (apart == NULL) return NULL;
  mp_value_t *copies = mp_shlo_broadcast(t->hlo, t->in[0], apart, positions);
  return mp_shlo_reshape(t->hlo, copies, t->type->dims, t->type->rank);
}

static mp_value_t *translate_movement_repeat(const mp_translate_t *t) {
  return translate_movement_copies(t, mp_mosaic_op_int(t->op, "dimension", -1),
                                   mp_mosaic_op_int(t->op, "times", 0));
}

static mp_value_t *translate_movement_concatenate(const mp_translate_t *t) {
  const int64_t dim = mp_mosaic_op_int(t->op, "dimension", -1);
  const uint32_t count = t->op->num_operands;
  if (!translate_movement_is_dim(dim, t->type) || count == 0) return NULL;
  uint32_t alike = 1;  // jnp.tile() repeats one value
  while (alike < count && t->in[alike] == t->in[0]) ++alike;
  if (alike == count && count > 1) return translate_movement_copies(t, dim, count);
  return mp_shlo_concatenate(t->hlo, t->in, count, dim);
}

// Counts along the listed dimensions, of which the last one is the innermost.
static mp_value_t *translate_movement_iota(const mp_translate_t *t) {
  int64_t buffer[MP_MAX_RANK], step = 1;
  mp_value_t *sum = NULL;
  const mp_index_list_t dims = mp_translate_ints(t->op, "dimensions", buffer);
  for (uint32_t i = dims.count; i-- > 0;) {
    if (!translate_movement_is_dim(dims.values[i], t->type)) return NULL;
    mp_value_t *count = mp_shlo_iota(t->hlo, t->type, dims.values[i]);
    if (step != 1) {
      count = mp_shlo_binary(t->hlo, MP_OP_MULTIPLY, count,
                             mp_shlo_number(t->hlo, t->type, (double)step));
    }
    sum = sum == NULL ? count : mp_shlo_binary(t->hlo, MP_OP_ADD, sum, count);
    step *= t->type->dims[dims.values[i]];
  }
  return sum;
}

// ---- by index ----

// An index of type s32 for each element, which counts along a dimension.
static mp_value_t *translate_movement_position_along(const mp_translate_t *t, const mp_type_t *type,
                                                     int64_t dim) {
  return mp_shlo_iota(t->hlo, mp_shlo_retype(t->hlo, type, MP_DTYPE_S32), dim);
}

// out[i, j] = x[index[i, j], j], along one dimension.
static mp_value_t *translate_movement_take_along(const mp_translate_t *t, mp_value_t *index,
                                                 int64_t dim) {
  mp_value_t *indices[MP_MAX_RANK];
  if (index == NULL) return NULL;
  for (uint32_t d = 0; d < index->type->rank; ++d) {
    indices[d] = (int64_t)d == dim ? index : translate_movement_position_along(t, index->type, d);
  }
  return mp_shlo_take(t->hlo, t->in[0], indices);
}

static mp_value_t *translate_movement_gather(const mp_translate_t *t) {
  int64_t buffer[MP_MAX_RANK];
  const mp_index_list_t dims = mp_translate_ints(t->op, "dimensions", buffer);
  if (dims.count != 1 || !translate_movement_is_dim(dims.values[0], t->type)) return NULL;
  return translate_movement_take_along(t, mp_shlo_convert(t->hlo, t->in[1], MP_DTYPE_S32),
                                       dims.values[0]);
}

// x - y modulo n, for scalars and vectors of s32 with y in any range.
static mp_value_t *translate_movement_back(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *y,
                                           int64_t n) {
  if (x == NULL) return NULL;
  mp_value_t *size = mp_shlo_integer(hlo, x->type, n);
  mp_value_t *rest =
      mp_shlo_binary(hlo, MP_OP_REMAINDER, mp_shlo_binary(hlo, MP_OP_SUBTRACT, x, y), size);
  return mp_shlo_binary(hlo, MP_OP_REMAINDER, mp_shlo_binary(hlo, MP_OP_ADD, rest, size), size);
}

static mp_value_t *translate_movement_rotate_rows(const mp_translate_t *t, mp_value_t *amount,
                                                  int64_t dim, int64_t stride, int64_t stride_dim) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *here = translate_movement_position_along(t, t->type, dim);
  mp_value_t *row = translate_movement_position_along(t, t->type, stride_dim);
  if (here == NULL || row == NULL) return NULL;
  mp_value_t *by =
      mp_shlo_binary(hlo, MP_OP_MULTIPLY, row, mp_shlo_integer(hlo, row->type, stride));
  by = mp_shlo_binary(hlo, MP_OP_ADD, by, translate_movement_broadcast(hlo, amount, row->type));
  return translate_movement_take_along(
      t, translate_movement_back(hlo, here, by, t->type->dims[dim]), dim);
}

// Element i + amount of the result is element i; they go around.
static mp_value_t *translate_movement_rotate(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  const int64_t dim = mp_mosaic_op_int(t->op, "dimension", -1);
  const int64_t stride = mp_mosaic_op_int(t->op, "stride", 0);
  const int64_t stride_dim = mp_mosaic_op_int(t->op, "stride_dimension", 0);
  if (!translate_movement_is_dim(dim, t->type)) return NULL;
  mp_value_t *amount = mp_shlo_convert(hlo, t->in[1], MP_DTYPE_S32);
  if (stride != 0) {
    if (!translate_movement_is_dim(stride_dim, t->type)) return NULL;
    return translate_movement_rotate_rows(t, amount, dim, stride, stride_dim);
  }
  if (amount == NULL || t->type->dims[dim] == 0) return NULL;
  mp_value_t *zero = mp_shlo_integer(hlo, amount->type, 0), *starts[MP_MAX_RANK];
  for (uint32_t d = 0; d < t->type->rank; ++d) starts[d] = zero;
  starts[dim] = translate_movement_back(hlo, zero, amount, t->type->dims[dim]);
  mp_value_t *twice = mp_shlo_concatenate(hlo, (mp_value_t *[]){t->in[0], t->in[0]}, 2, dim);
  return mp_shlo_dynamic_slice(hlo, twice, starts, t->type);
}

// True from `low` to before `high` in each dimension.
static mp_value_t *translate_movement_mask(const mp_translate_t *t) {
  mp_shlo_t *hlo = t->hlo;
  mp_value_t *all = NULL;
  if (t->op->num_operands != 2 * t->type->rank) return NULL;
  for (uint32_t d = 0; d < t->type->rank; ++d) {
    mp_value_t *low = mp_shlo_convert(hlo, t->in[d], MP_DTYPE_S32);
    mp_value_t *high = mp_shlo_convert(hlo, t->in[t->type->rank + d], MP_DTYPE_S32);
    mp_value_t *here = translate_movement_position_along(t, t->type, d);
    if (here == NULL) return NULL;
    low = mp_shlo_compare(hlo, MP_CMP_GE, here, translate_movement_broadcast(hlo, low, here->type));
    high =
        mp_shlo_compare(hlo, MP_CMP_LT, here, translate_movement_broadcast(hlo, high, here->type));
    mp_value_t *both = mp_shlo_binary(hlo, MP_OP_AND, low, high);
    all = all == NULL ? both : mp_shlo_binary(hlo, MP_OP_AND, all, both);
  }
  return all;
}

// ---- ----

static mp_value_t *translate_movement_any(const mp_translate_t *t) {
  switch (t->op->code) {
    case MP_MOSAIC_BROADCAST:
      return translate_movement_broadcast(t->hlo, t->in[0], t->type);
    case MP_MOSAIC_SHAPE_CAST:
    case MP_MOSAIC_RESHAPE:
    case MP_MOSAIC_RELAYOUT:
    case MP_MOSAIC_ASSUME_LAYOUT:
    case MP_MOSAIC_MASK_CAST:
      return mp_shlo_reshape(t->hlo, t->in[0], t->type->dims, t->type->rank);
    case MP_MOSAIC_EXTRACT:
      return translate_movement_extract(t);
    case MP_MOSAIC_EXTRACT_STRIDED_SLICE:
      return translate_movement_slice(t);
    case MP_MOSAIC_INSERT:
      return translate_movement_insert(t);
    case MP_MOSAIC_INSERT_STRIDED_SLICE:
      return translate_movement_insert_slice(t);
    case MP_MOSAIC_VECTOR_TRANSPOSE:
    case MP_MOSAIC_TRANSPOSE:
      return translate_movement_transpose(t);
    case MP_MOSAIC_CONCATENATE:
      return translate_movement_concatenate(t);
    case MP_MOSAIC_REPEAT:
      return translate_movement_repeat(t);
    case MP_MOSAIC_IOTA:
      return translate_movement_iota(t);
    case MP_MOSAIC_DYNAMIC_GATHER:
      return translate_movement_gather(t);
    case MP_MOSAIC_DYNAMIC_ROTATE:
      return translate_movement_rotate(t);
    case MP_MOSAIC_CREATE_MASK:
      return translate_movement_mask(t);
    default:
      return NULL;
  }
}

mp_status_t mp_translate_movement(const mp_translate_t *t) {
  int64_t from = 0, to = 0;
  const bool is_cast = t->op->code == MP_MOSAIC_SHAPE_CAST || t->op->code == MP_MOSAIC_RESHAPE ||
                       t->op->code == MP_MOSAIC_MASK_CAST || t->op->code == MP_MOSAIC_RELAYOUT ||
                       t->op->code == MP_MOSAIC_ASSUME_LAYOUT;
  if (is_cast && (!mp_type_num_elements(t->in[0]->type, &from) ||
                  !mp_type_num_elements(t->type, &to) || from != to)) {
    return mp_mosaic_op_error(t->op, MP_INVALID_ARGUMENT, "it changes the number of elements");
  }
  t->out[0] = translate_movement_any(t);
  if (t->out[0] == NULL && t->hlo->status == NULL) {
    return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "this form of the op is not supported");
  }
  return NULL;
}
