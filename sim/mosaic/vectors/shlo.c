#include "sim/mosaic/vectors/shlo.h"

#include <string.h>

#include "sim/passes/rewrite/rewrite.h"

// Keeps the first failure. True: go on.
static bool shlo_keep(mp_shlo_t *hlo, mp_status_t status) {
  if (hlo->status == NULL) {
    hlo->status = status;
  } else {
    mp_status_ignore(status);
  }
  return hlo->status == NULL;
}

const mp_type_t *mp_shlo_type(mp_shlo_t *hlo, mp_dtype_t dtype, const int64_t *dims,
                              uint32_t rank) {
  const mp_type_t *type = NULL;
  if (hlo->status != NULL) return NULL;
  return shlo_keep(hlo, mp_type_tensor(hlo->module->arena, dtype, dims, rank, &type)) ? type : NULL;
}

const mp_type_t *mp_shlo_retype(mp_shlo_t *hlo, const mp_type_t *type, mp_dtype_t dtype) {
  return type == NULL ? NULL : mp_shlo_type(hlo, dtype, type->dims, type->rank);
}

mp_value_t *mp_shlo_op(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *const *operands,
                       uint32_t count, const mp_type_t *type, const mp_named_attr_t *attrs,
                       uint32_t num_attrs) {
  if (hlo->status != NULL || type == NULL) return NULL;
  for (uint32_t i = 0; i < count; ++i) {
    if (operands[i] == NULL) return NULL;
  }
  const mp_op_one_t op = {.code = code,
                          .type = type,
                          .operands = operands,
                          .num_operands = count,
                          .num_attrs = num_attrs,
                          .attrs = attrs};
  mp_value_t *value = NULL;
  return shlo_keep(hlo, mp_rewrite_insert_op(hlo->module, hlo->end, &op, &value)) ? value : NULL;
}

mp_value_t *mp_shlo_unary(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x) {
  return x == NULL ? NULL : mp_shlo_op(hlo, code, &x, 1, x->type, NULL, 0);
}

mp_value_t *mp_shlo_binary(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x, mp_value_t *y) {
  return x == NULL ? NULL : mp_shlo_op(hlo, code, (mp_value_t *[]){x, y}, 2, x->type, NULL, 0);
}

mp_value_t *mp_shlo_function(mp_shlo_t *hlo, const char *name, mp_value_t *x) {
  const mp_attr_t *target = NULL;
  if (x == NULL || hlo->status != NULL ||
      !shlo_keep(hlo, mp_attr_make_string(hlo->module->arena, mp_str(name), &target))) {
    return NULL;
  }
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_CALL_TARGET_NAME, target);
  return mp_shlo_op(hlo, MP_OP_CUSTOM_CALL, &x, 1, x->type, &attr, 1);
}

mp_value_t *mp_shlo_convert(mp_shlo_t *hlo, mp_value_t *x, mp_dtype_t dtype) {
  if (x == NULL || x->type->dtype == dtype) return x;
  return mp_shlo_op(hlo, MP_OP_CONVERT, &x, 1, mp_shlo_retype(hlo, x->type, dtype), NULL, 0);
}

mp_value_t *mp_shlo_bits_as(mp_shlo_t *hlo, mp_value_t *x, mp_dtype_t dtype) {
  if (x == NULL || x->type->dtype == dtype) return x;
  if (mp_dtype_bits(x->type->dtype) != mp_dtype_bits(dtype)) return NULL;
  return mp_shlo_op(hlo, MP_OP_BITCAST_CONVERT, &x, 1, mp_shlo_retype(hlo, x->type, dtype), NULL,
                    0);
}

// ---- constants ----

static mp_value_t *shlo_splat(mp_shlo_t *hlo, const mp_type_t *type, const void *element) {
  mp_value_t *value = NULL;
  if (hlo->status != NULL || type == NULL) return NULL;
  mp_status_t status = mp_rewrite_insert_constant(hlo->module, hlo->end, type, element, &value);
  return shlo_keep(hlo, status) ? value : NULL;
}

mp_value_t *mp_shlo_integer(mp_shlo_t *hlo, const mp_type_t *type, int64_t number) {
  if (type == NULL) return NULL;
  // Elements narrower than a byte have zeros above them; the lowest bytes come first.
  const int bits = mp_dtype_bits(type->dtype);
  if (bits < 8) number &= (INT64_C(1) << bits) - 1;
  return shlo_splat(hlo, type, &number);
}

mp_value_t *mp_shlo_float(mp_shlo_t *hlo, const mp_type_t *type, double number) {
  char element[16] = {0};
  if (type == NULL) return NULL;
  mp_float_encode(type->dtype, number, element);
  return shlo_splat(hlo, type, element);
}

mp_value_t *mp_shlo_number(mp_shlo_t *hlo, const mp_type_t *type, double number) {
  if (type == NULL) return NULL;
  return mp_dtype_is_float(type->dtype) ? mp_shlo_float(hlo, type, number)
                                        : mp_shlo_integer(hlo, type, (int64_t)number);
}

// ---- comparing ----

mp_value_t *mp_shlo_compare(mp_shlo_t *hlo, uint32_t direction, mp_value_t *x, mp_value_t *y) {
  mp_value_t *value = NULL;
  if (hlo->status != NULL || x == NULL || y == NULL) return NULL;
  mp_status_t status = mp_rewrite_insert_compare(hlo->module, hlo->end, direction, x, y, &value);
  return shlo_keep(hlo, status) ? value : NULL;
}

mp_value_t *mp_shlo_select(mp_shlo_t *hlo, mp_value_t *which, mp_value_t *x, mp_value_t *y) {
  if (x == NULL) return NULL;
  return mp_shlo_op(hlo, MP_OP_SELECT, (mp_value_t *[]){which, x, y}, 3, x->type, NULL, 0);
}

// ---- moving ----

static bool shlo_ints(mp_shlo_t *hlo, mp_attr_name_t name, const int64_t *values, uint32_t count,
                      mp_named_attr_t *out_attr) {
  if (hlo->status != NULL) return false;
  return shlo_keep(hlo, mp_rewrite_ints(hlo->module, name, values, count, out_attr));
}

static bool shlo_int(mp_shlo_t *hlo, mp_attr_name_t name, int64_t value,
                     mp_named_attr_t *out_attr) {
  const mp_attr_t *attr = NULL;
  if (hlo->status != NULL ||
      !shlo_keep(hlo, mp_attr_make_int(hlo->module->arena, MP_DTYPE_S64, value, &attr))) {
    return false;
  }
  *out_attr = mp_rewrite_attr(name, attr);
  return true;
}

mp_value_t *mp_shlo_reduce_precision(mp_shlo_t *hlo, mp_value_t *x, int64_t exponent,
                                     int64_t mantissa) {
  mp_named_attr_t attrs[2];
  if (x == NULL || !shlo_int(hlo, MP_ATTR_EXPONENT_BITS, exponent, &attrs[0]) ||
      !shlo_int(hlo, MP_ATTR_MANTISSA_BITS, mantissa, &attrs[1])) {
    return NULL;
  }
  return mp_shlo_op(hlo, MP_OP_REDUCE_PRECISION, &x, 1, x->type, attrs, 2);
}

mp_value_t *mp_shlo_iota(mp_shlo_t *hlo, const mp_type_t *type, int64_t dim) {
  mp_named_attr_t attr;
  if (!shlo_int(hlo, MP_ATTR_IOTA_DIMENSION, dim, &attr)) return NULL;
  return mp_shlo_op(hlo, MP_OP_IOTA, NULL, 0, type, &attr, 1);
}

mp_value_t *mp_shlo_reshape(mp_shlo_t *hlo, mp_value_t *x, const int64_t *dims, uint32_t rank) {
  if (x == NULL) return NULL;
  const size_t bytes = rank * sizeof(*dims);
  if (x->type->rank == rank && (rank == 0 || memcmp(x->type->dims, dims, bytes) == 0)) return x;
  const mp_type_t *type = mp_shlo_type(hlo, x->type->dtype, dims, rank);
  return mp_shlo_op(hlo, MP_OP_RESHAPE, &x, 1, type, NULL, 0);
}

mp_value_t *mp_shlo_broadcast(mp_shlo_t *hlo, mp_value_t *x, const mp_type_t *type,
                              const int64_t *where) {
  mp_named_attr_t attr;
  if (x == NULL || mp_type_equal(x->type, type)) return x;
  if (!shlo_ints(hlo, MP_ATTR_BROADCAST_DIMENSIONS, where, x->type->rank, &attr)) return NULL;
  return mp_shlo_op(hlo, MP_OP_BROADCAST_IN_DIM, &x, 1, type, &attr, 1);
}

mp_value_t *mp_shlo_slice(mp_shlo_t *hlo, mp_value_t *x, const int64_t *starts,
                          const int64_t *sizes, const int64_t *strides) {
  if (x == NULL) return NULL;
  const uint32_t rank = x->type->rank;
  int64_t limits[MP_MAX_RANK], steps[MP_MAX_RANK];
  for (uint32_t d = 0; d < rank; ++d) {
    steps[d] = strides == NULL ? 1 : strides[d];
    limits[d] = sizes[d] == 0 ? starts[d] : starts[d] + (sizes[d] - 1) * steps[d] + 1;
  }
  mp_named_attr_t attrs[3];
  if (!shlo_ints(hlo, MP_ATTR_START_INDICES, starts, rank, &attrs[0]) ||
      !shlo_ints(hlo, MP_ATTR_LIMIT_INDICES, limits, rank, &attrs[1]) ||
      !shlo_ints(hlo, MP_ATTR_STRIDES, steps, rank, &attrs[2])) {
    return NULL;
  }
  const mp_type_t *type = mp_shlo_type(hlo, x->type->dtype, sizes, rank);
  if (type != NULL && mp_type_equal(type, x->type)) return x;
  return mp_shlo_op(hlo, MP_OP_SLICE, &x, 1, type, attrs, 3);
}

mp_value_t *mp_shlo_transpose(mp_shlo_t *hlo, mp_value_t *x, const int64_t *permutation) {
  mp_named_attr_t attr;
  if (x == NULL || !shlo_ints(hlo, MP_ATTR_PERMUTATION, permutation, x->type->rank, &attr)) {
    return NULL;
  }
  int64_t dims[MP_MAX_RANK];
  for (uint32_t d = 0; d < x->type->rank; ++d) dims[d] = x->type->dims[permutation[d]];
  const mp_type_t *type = mp_shlo_type(hlo, x->type->dtype, dims, x->type->rank);
  return mp_shlo_op(hlo, MP_OP_TRANSPOSE, &x, 1, type, &attr, 1);
}

mp_value_t *mp_shlo_concatenate(mp_shlo_t *hlo, mp_value_t *const *values, uint32_t count,
                                int64_t dim) {
  mp_named_attr_t attr;
  int64_t dims[MP_MAX_RANK], size = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == NULL) return NULL;
    size += values[i]->type->dims[dim];
  }
  if (count == 1) return values[0];
  const mp_type_t *first = values[0]->type;
  memcpy(dims, first->dims, first->rank * sizeof(*dims));
  dims[dim] = size;
  if (!shlo_int(hlo, MP_ATTR_DIMENSION, dim, &attr)) return NULL;
  const mp_type_t *type = mp_shlo_type(hlo, first->dtype, dims, first->rank);
  return mp_shlo_op(hlo, MP_OP_CONCATENATE, values, count, type, &attr, 1);
}

mp_value_t *mp_shlo_dynamic_slice(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *const *starts,
                                  const mp_type_t *type) {
  mp_named_attr_t attr;
  mp_value_t *operands[MP_MAX_RANK + 1] = {x};
  if (x == NULL || type == NULL) return NULL;
  memcpy(&operands[1], starts, type->rank * sizeof(*starts));
  if (!shlo_ints(hlo, MP_ATTR_SLICE_SIZES, type->dims, type->rank, &attr)) return NULL;
  return mp_shlo_op(hlo, MP_OP_DYNAMIC_SLICE, operands, type->rank + 1, type, &attr, 1);
}

mp_value_t *mp_shlo_update(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *part, const int64_t *starts) {
  mp_value_t *operands[MP_MAX_RANK + 2] = {x, part};
  if (x == NULL) return NULL;
  const mp_type_t *scalar = mp_shlo_type(hlo, MP_DTYPE_S32, NULL, 0);
  for (uint32_t d = 0; d < x->type->rank; ++d) {
    operands[d + 2] = mp_shlo_integer(hlo, scalar, starts[d]);
  }
  return mp_shlo_op(hlo, MP_OP_DYNAMIC_UPDATE_SLICE, operands, x->type->rank + 2, x->type, NULL, 0);
}

// ---- reductions and gathers ----

static mp_type_t const *shlo_reduced(mp_shlo_t *hlo, const mp_type_t *type, const int64_t *dims,
                                     uint32_t count) {
  int64_t left[MP_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < type->rank; ++d) {
    bool is_gone = false;
    for (uint32_t i = 0; i < count; ++i) is_gone |= dims[i] == (int64_t)d;
    if (!is_gone) left[rank++] = type->dims[d];
  }
  return mp_shlo_type(hlo, type->dtype, left, rank);
}

mp_value_t *mp_shlo_reduce(mp_shlo_t *hlo, mp_opcode_t code, mp_value_t *x, mp_value_t *init,
                           const int64_t *dims, uint32_t count) {
  mp_named_attr_t attr;
  mp_block_t *reducer = NULL;
  mp_op_t *op = NULL;
  if (x == NULL || init == NULL || !shlo_ints(hlo, MP_ATTR_DIMENSIONS, dims, count, &attr)) {
    return NULL;
  }
  const mp_type_t *type = shlo_reduced(hlo, x->type, dims, count);
  if (type == NULL || !shlo_keep(hlo, mp_block_create_reducer(hlo->module, code, x->type->dtype,
                                                              hlo->end->loc, &reducer))) {
    return NULL;
  }
  const mp_op_spec_t spec = {.code = MP_OP_REDUCE,
                             .loc = hlo->end->loc,
                             .num_operands = 2,
                             .operands = (mp_value_t *[]){x, init},
                             .num_results = 1,
                             .result_types = &type,
                             .num_regions = 1,
                             .regions = &reducer,
                             .num_attrs = 1,
                             .attrs = &attr};
  if (!shlo_keep(hlo, mp_op_create(hlo->module, &spec, &op))) return NULL;
  mp_block_insert_before(hlo->end, op);
  return &op->results[0];
}

mp_value_t *mp_shlo_take(mp_shlo_t *hlo, mp_value_t *x, mp_value_t *const *indices) {
  if (x == NULL || indices[0] == NULL) return NULL;
  const uint32_t rank = x->type->rank, out_rank = indices[0]->type->rank;
  mp_value_t *columns[MP_MAX_RANK];
  int64_t dims[MP_MAX_RANK], all[MP_MAX_RANK], ones[MP_MAX_RANK];
  memcpy(dims, indices[0]->type->dims, out_rank * sizeof(*dims));
  dims[out_rank] = 1;
  for (uint32_t d = 0; d < rank; ++d) {
    columns[d] = mp_shlo_reshape(hlo, indices[d], dims, out_rank + 1);
    all[d] = d;
    ones[d] = 1;
  }
  mp_value_t *operands[] = {x, mp_shlo_concatenate(hlo, columns, rank, out_rank)};
  mp_named_attr_t attrs[4];
  if (!shlo_ints(hlo, MP_ATTR_COLLAPSED_SLICE_DIMS, all, rank, &attrs[0]) ||
      !shlo_ints(hlo, MP_ATTR_START_INDEX_MAP, all, rank, &attrs[1]) ||
      !shlo_ints(hlo, MP_ATTR_SLICE_SIZES, ones, rank, &attrs[2]) ||
      !shlo_int(hlo, MP_ATTR_INDEX_VECTOR_DIM, out_rank, &attrs[3])) {
    return NULL;
  }
  const mp_type_t *type = mp_shlo_retype(hlo, indices[0]->type, x->type->dtype);
  return mp_shlo_op(hlo, MP_OP_GATHER, operands, 2, type, attrs, 4);
}
