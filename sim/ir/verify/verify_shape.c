// Operations that make and rearrange tensors (StableHLO specification, under their names).
#include "sim/ir/verify/verify_rules.h"

// A check for operations that move elements without changing them.
static mp_status_t verify_shape_same_dtype(const mp_op_t *op, const mp_type_t *a,
                                           const mp_type_t *b) {
  MP_CHECK(op, a->dtype == b->dtype, "element types %s and %s differ", mp_dtype_name(a->dtype),
           mp_dtype_name(b->dtype));
  return NULL;
}

// The result has the same bits, of which a boolean is one. If elements become narrower, the result
// has one more dimension at the end; if they become wider, one less.
mp_status_t mp_verify_bitcast_convert(const mp_op_t *op) {
  const mp_type_t *from = mp_operand_type(op, 0), *to = mp_result_type(op, 0);
  int from_bits = mp_dtype_bits(from->dtype), to_bits = mp_dtype_bits(to->dtype);
  MP_CHECK(op, mp_dtype_is_complex(from->dtype) == mp_dtype_is_complex(to->dtype),
           "complex numbers can only become complex numbers");
  if (from_bits == to_bits) return mp_verify_same_shape(op, from, to, "the result and the operand");
  const mp_type_t *wide = from_bits > to_bits ? from : to;
  const mp_type_t *narrow = from_bits > to_bits ? to : from;
  int wide_bits = mp_dtype_bits(wide->dtype), narrow_bits = mp_dtype_bits(narrow->dtype);
  MP_CHECK(op, narrow->rank == wide->rank + 1 && wide_bits % narrow_bits == 0,
           "%u dimensions of %s do not fit %u dimensions of %s", from->rank,
           mp_dtype_name(from->dtype), to->rank, mp_dtype_name(to->dtype));
  for (uint32_t i = 0; i < wide->rank; ++i) {
    MP_CHECK(op, wide->dims[i] == narrow->dims[i], "dimension %u differs: %lld and %lld", i,
             (long long)from->dims[i], (long long)to->dims[i]);
  }
  MP_CHECK(op, narrow->dims[wide->rank] == wide_bits / narrow_bits,
           "the last dimension of the narrower type is not %d", wide_bits / narrow_bits);
  return NULL;
}

// The result has the dimensions of broadcast_sizes, then the operand's.
mp_status_t mp_verify_broadcast(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t sizes = mp_op_ints(op, MP_ATTR_BROADCAST_SIZES);
  MP_CHECK(op, sizes.count + (uint64_t)operand->rank <= MP_MAX_RANK, "the result's rank is %llu",
           (unsigned long long)sizes.count + operand->rank);
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_BROADCAST_SIZES, sizes.count, 0, &sizes));
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < sizes.count; ++i) dims[i] = sizes.values[i];
  for (uint32_t i = 0; i < operand->rank; ++i) dims[sizes.count + i] = operand->dims[i];
  return mp_verify_result(op, 0, operand->dtype, dims, sizes.count + operand->rank);
}

// Each operand dimension becomes a different result dimension, and may be repeated only if its size
// is 1.
mp_status_t mp_verify_broadcast_in_dim(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  mp_index_list_t dims = {0, NULL};
  MP_RETURN_IF_ERROR(verify_shape_same_dtype(op, operand, result));
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, MP_ATTR_BROADCAST_DIMENSIONS, result->rank, 0, NULL, &dims));
  MP_CHECK(op, dims.count == operand->rank, "broadcast_dimensions has %u entries for %u dimensions",
           dims.count, operand->rank);
  for (uint32_t i = 0; i < dims.count; ++i) {
    int64_t from = operand->dims[i], to = result->dims[dims.values[i]];
    MP_CHECK(op, from == 1 || from == to, "dimension %u of size %lld cannot become %lld", i,
             (long long)from, (long long)to);
  }
  return NULL;
}

// All operands have the same sizes except along one dimension, where the sizes add up.
mp_status_t mp_verify_concatenate(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1, "there are no operands");
  const mp_type_t *first = mp_operand_type(op, 0);
  int64_t along = 0, total = 0, dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_DIMENSION, first->rank, &along));
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *type = mp_operand_type(op, i);
    MP_RETURN_IF_ERROR(verify_shape_same_dtype(op, type, first));
    MP_CHECK(op, type->rank == first->rank, "operand %u has %u dimensions, not %u", i, type->rank,
             first->rank);
    for (uint32_t d = 0; d < type->rank; ++d) {
      MP_CHECK(op, d == along || type->dims[d] == first->dims[d],
               "dimension %u of operand %u has size %lld, not %lld", d, i, (long long)type->dims[d],
               (long long)first->dims[d]);
    }
    MP_CHECK(op, !__builtin_add_overflow(total, type->dims[along], &total), "the size overflows");
  }
  for (uint32_t d = 0; d < first->rank; ++d) dims[d] = first->dims[d];
  dims[along] = total;
  return mp_verify_result(op, 0, first->dtype, dims, first->rank);
}

// The rule of constant and of sdy.constant.
mp_status_t mp_verify_constant(const mp_op_t *op) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  const mp_type_t *type = mp_result_type(op, 0);
  MP_RETURN_IF_ERROR(
      mp_verify_same_type(op, type, value->u.dense.type, "the result and the value"));
  int64_t bytes = 0;
  MP_CHECK(op, mp_type_num_bytes(type, &bytes), "the constant's size overflows");
  int64_t stored = value->u.dense.splat ? (int64_t)mp_dtype_size(type->dtype) : bytes;
  MP_CHECK(op, (int64_t)value->u.dense.size == stored, "the value has %zu bytes, not %lld",
           value->u.dense.size, (long long)stored);
  return NULL;
}

// Shapes are static, so the result is known; its type is i32 as in the dynamic case.
mp_status_t mp_verify_get_dimension_size(const mp_op_t *op) {
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_DIMENSION, mp_operand_type(op, 0)->rank, &dim));
  MP_CHECK(op, mp_operand_type(op, 0)->dims[dim] <= INT32_MAX, "the size does not fit 32 bits");
  return mp_verify_result(op, 0, MP_DTYPE_S32, NULL, 0);
}

// There must be a dimension to count along, so the result cannot be a scalar.
mp_status_t mp_verify_iota(const mp_op_t *op) {
  const mp_type_t *result = mp_result_type(op, 0);
  int64_t dim = 0;
  MP_RETURN_IF_ERROR(
      mp_verify_dtype(op, result, MP_IS_INTEGER | MP_IS_FLOAT | MP_IS_COMPLEX, "the result"));
  return mp_verify_dim(op, MP_ATTR_IOTA_DIMENSION, result->rank, &dim);
}

// Edge padding may be negative and then cuts elements off, but no size may become negative.
// Interior padding may not be negative.
mp_status_t mp_verify_pad(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *value = mp_operand_type(op, 1);
  mp_index_list_t low = {0, NULL}, high = {0, NULL}, interior = {0, NULL};
  MP_CHECK(op, mp_is_scalar(value), "the padding value is not a scalar");
  MP_RETURN_IF_ERROR(verify_shape_same_dtype(op, operand, value));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_EDGE_PADDING_LOW, operand->rank, INT64_MIN, &low));
  MP_RETURN_IF_ERROR(
      mp_verify_list(op, MP_ATTR_EDGE_PADDING_HIGH, operand->rank, INT64_MIN, &high));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_INTERIOR_PADDING, operand->rank, 0, &interior));
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < operand->rank; ++i) {
    int64_t size = operand->dims[i], inner = 0;
    bool fits = !__builtin_mul_overflow(size > 0 ? size - 1 : 0, interior.values[i], &inner) &&
                !__builtin_add_overflow(size, inner, &size) &&
                !__builtin_add_overflow(size, low.values[i], &size) &&
                !__builtin_add_overflow(size, high.values[i], &size);
    MP_CHECK(op, fits && size >= 0, "dimension %u has no size after padding", i);
    dims[i] = size;
  }
  return mp_verify_result(op, 0, operand->dtype, dims, operand->rank);
}

// A reshape keeps the order of elements, so only their number must be the same.
mp_status_t mp_verify_reshape(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  int64_t from = 0, to = 0;
  MP_RETURN_IF_ERROR(verify_shape_same_dtype(op, operand, result));
  MP_CHECK(op, mp_type_num_elements(operand, &from) && mp_type_num_elements(result, &to),
           "the size overflows");
  MP_CHECK(op, from == to, "%lld elements cannot become %lld", (long long)from, (long long)to);
  return NULL;
}

// The specification forbids to name a dimension twice.
mp_status_t mp_verify_reverse(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t dims = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_dims(op, MP_ATTR_DIMENSIONS, operand->rank, 0, NULL, &dims));
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}

// In every dimension 0 <= start <= limit <= size; kernels rely on it when they read.
mp_status_t mp_verify_slice(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t start = {0, NULL}, limit = {0, NULL}, stride = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_START_INDICES, operand->rank, 0, &start));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_LIMIT_INDICES, operand->rank, 0, &limit));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_STRIDES, operand->rank, 1, &stride));
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < operand->rank; ++i) {
    int64_t size = limit.values[i] - start.values[i];
    MP_CHECK(op, size >= 0 && limit.values[i] <= operand->dims[i],
             "[%lld, %lld) is not a part of dimension %u of size %lld", (long long)start.values[i],
             (long long)limit.values[i], i, (long long)operand->dims[i]);
    dims[i] = size / stride.values[i] + (size % stride.values[i] != 0);
  }
  return mp_verify_result(op, 0, operand->dtype, dims, operand->rank);
}

// Result dimension i is operand dimension permutation[i].
mp_status_t mp_verify_transpose(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t permutation = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_dims(op, MP_ATTR_PERMUTATION, operand->rank, 0, NULL, &permutation));
  MP_CHECK(op, permutation.count == operand->rank, "permutation has %u entries for %u dimensions",
           permutation.count, operand->rank);
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < operand->rank; ++i) dims[i] = operand->dims[permutation.values[i]];
  return mp_verify_result(op, 0, operand->dtype, dims, operand->rank);
}
