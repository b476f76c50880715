// Operations whose regions work on scalars of their operands (StableHLO specification, under their
// names).
#include <string.h>

#include "sim/ir/verify/verify_rules.h"

// The region computes one element from one element of each operand.
mp_status_t mp_verify_map(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1, "there are no operands");
  const mp_type_t *first = mp_operand_type(op, 0), *result = mp_result_type(op, 0);
  const mp_block_t *block = op->regions[0];
  mp_index_list_t dims = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_DIMENSIONS, first->rank, 0, &dims));
  for (uint32_t i = 0; i < dims.count; ++i) {
    MP_CHECK(op, dims.values[i] == i, "dimensions are not 0, 1, ...");
  }
  MP_RETURN_IF_ERROR(mp_verify_same_shape(op, result, first, "the result and the operands"));
  MP_CHECK(op, block->num_args == op->num_operands, "the region has %u arguments, not %u",
           block->num_args, op->num_operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *type = mp_operand_type(op, i), *arg = block->args[i].type;
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, type, first, "the operands"));
    MP_CHECK(op, mp_is_scalar(arg) && arg->dtype == type->dtype,
             "argument %u of the region is not a scalar of type %s", i, mp_dtype_name(type->dtype));
  }
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op,
           end->num_operands == 1 && mp_is_scalar(mp_operand_type(end, 0)) &&
               mp_operand_type(end, 0)->dtype == result->dtype,
           "the region does not return a scalar of type %s", mp_dtype_name(result->dtype));
  return NULL;
}

// The operands are `*out_count` inputs of one shape and as many scalar initial values of their
// element types.
static mp_status_t verify_reduce_inputs_and_inits(const mp_op_t *op, uint32_t *out_count) {
  MP_CHECK(op, op->num_operands >= 2 && op->num_operands % 2 == 0,
           "%u operands are not inputs and as many initial values", op->num_operands);
  uint32_t count = op->num_operands / 2;
  MP_CHECK(op, op->num_results == count, "there are %u results for %u inputs", op->num_results,
           count);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *input = mp_operand_type(op, i), *init = mp_operand_type(op, count + i);
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, input, mp_operand_type(op, 0), "the inputs"));
    MP_CHECK(op, mp_is_scalar(init) && init->dtype == input->dtype,
             "initial value %u is not a scalar of type %s", i, mp_dtype_name(input->dtype));
  }
  *out_count = count;
  return NULL;
}

// The result has the shape of the inputs without the reduced dimensions.
mp_status_t mp_verify_reduce(const mp_op_t *op) {
  uint32_t count = 0, rank = 0;
  mp_index_list_t reduced = {0, NULL};
  uint64_t used = 0;
  int64_t dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(verify_reduce_inputs_and_inits(op, &count));
  const mp_type_t *first = mp_operand_type(op, 0);
  MP_RETURN_IF_ERROR(mp_verify_dims(op, MP_ATTR_DIMENSIONS, first->rank, 0, &used, &reduced));
  for (uint32_t i = 0; i < first->rank; ++i) {
    if ((used >> i & 1) == 0) dims[rank++] = first->dims[i];
  }
  MP_RETURN_IF_ERROR(mp_verify_reducer(op, 0, count));
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_result(op, i, mp_operand_type(op, i)->dtype, dims, rank));
  }
  return NULL;
}

// Windows have the operands' rank, so every attribute has an entry per dimension.
mp_status_t mp_verify_reduce_window(const mp_op_t *op) {
  uint32_t count = 0;
  MP_RETURN_IF_ERROR(verify_reduce_inputs_and_inits(op, &count));
  const mp_type_t *first = mp_operand_type(op, 0);
  uint32_t rank = first->rank;
  mp_index_list_t sizes = {0, NULL}, strides = {0, NULL}, base = {0, NULL}, dilations = {0, NULL};
  mp_index_list_t padding = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_DIMENSIONS, rank, 1, &sizes));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_STRIDES, rank, 1, &strides));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_BASE_DILATIONS, rank, 1, &base));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_DILATIONS, rank, 1, &dilations));
  MP_RETURN_IF_ERROR(mp_verify_pairs(op, MP_ATTR_PADDING, rank, &padding));
  const mp_verify_window_t window = {rank,        sizes.values,     strides.values,
                                     base.values, dilations.values, padding.values};
  int64_t dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_verify_window(op, &window, first->dims, dims));
  MP_RETURN_IF_ERROR(mp_verify_reducer(op, 0, count));
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_verify_result(op, i, mp_operand_type(op, i)->dtype, dims, rank));
  }
  return NULL;
}

// The source has one element per window. The region `select` compares two elements, and `scatter`
// combines two values.
mp_status_t mp_verify_select_and_scatter(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0), *source = mp_operand_type(op, 1);
  const mp_type_t *init = mp_operand_type(op, 2);
  uint32_t rank = operand->rank;
  mp_index_list_t sizes = {0, NULL}, strides = {0, NULL}, padding = {0, NULL};
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_DIMENSIONS, rank, 1, &sizes));
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_WINDOW_STRIDES, rank, 1, &strides));
  MP_RETURN_IF_ERROR(mp_verify_pairs(op, MP_ATTR_PADDING, rank, &padding));
  const mp_verify_window_t window = {
      .rank = rank, .sizes = sizes.values, .strides = strides.values, .padding = padding.values};
  int64_t dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_verify_window(op, &window, operand->dims, dims));
  const mp_type_t expected = {
      .kind = MP_TYPE_TENSOR, .dtype = operand->dtype, .rank = rank, .dims = dims};
  MP_RETURN_IF_ERROR(
      mp_verify_same_type(op, source, &expected, "the source as stated and as it must be"));
  MP_CHECK(op, mp_is_scalar(init) && init->dtype == operand->dtype,
           "the initial value is not a scalar of type %s", mp_dtype_name(operand->dtype));
  const mp_dtype_t dtype = operand->dtype, args[] = {dtype, dtype}, flag[] = {MP_DTYPE_BOOL};
  MP_RETURN_IF_ERROR(mp_verify_scalar_region(op, 0, 2, args, 1, flag));
  MP_RETURN_IF_ERROR(mp_verify_scalar_region(op, 1, 2, args, 1, &dtype));
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}

// Result `number` of a sort has the type of its input; with `minipod.first`, only the first
// elements along the sorted dimension.
static mp_status_t verify_reduce_sort_result(const mp_op_t *op, uint32_t number, uint32_t along) {
  const mp_type_t *in = mp_operand_type(op, number);
  const int64_t first = mp_op_int(op, MP_ATTR_FIRST, in->dims[along]);
  if (mp_op_attr(op, MP_ATTR_FIRST) == NULL) {
    return mp_verify_same_type(op, mp_result_type(op, number), in, "a result and its input");
  }
  MP_CHECK(op, first >= 0 && first <= in->dims[along],
           "minipod.first is %lld; the sorted dimension has size %lld", (long long)first,
           (long long)in->dims[along]);
  int64_t dims[MP_MAX_RANK];
  memcpy(dims, in->dims, in->rank * sizeof(*dims));
  dims[along] = first;
  mp_type_t expected = *in;
  expected.dims = dims;
  return mp_verify_same_type(op, mp_result_type(op, number), &expected,
                             "a result and the first elements of its input");
}

// The comparator gets two elements of each operand, next to each other: (a0, b0, a1, b1, ...).
mp_status_t mp_verify_sort(const mp_op_t *op) {
  MP_CHECK(op, op->num_operands >= 1 && op->num_results == op->num_operands,
           "there are %u results for %u inputs", op->num_results, op->num_operands);
  const mp_type_t *first = mp_operand_type(op, 0);
  int64_t dim = mp_op_int(op, MP_ATTR_DIMENSION, -1), rank = first->rank;
  MP_CHECK(op, dim >= -rank && dim < rank, "dimension is %lld; there are %lld dimensions",
           (long long)dim, (long long)rank);
  const mp_block_t *block = op->regions[0];
  MP_CHECK(op, block->num_args == 2 * (uint64_t)op->num_operands,
           "the comparator has %u arguments, not %llu", block->num_args,
           2 * (unsigned long long)op->num_operands);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_type_t *type = mp_operand_type(op, i);
    MP_RETURN_IF_ERROR(mp_verify_same_shape(op, type, first, "the inputs"));
    MP_RETURN_IF_ERROR(verify_reduce_sort_result(op, i, (uint32_t)(dim < 0 ? dim + rank : dim)));
    for (uint32_t j = 0; j < 2; ++j) {
      const mp_type_t *arg = block->args[2 * i + j].type;
      MP_CHECK(op, mp_is_scalar(arg) && arg->dtype == type->dtype,
               "argument %u of the comparator is not a scalar of type %s", 2 * i + j,
               mp_dtype_name(type->dtype));
    }
  }
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op,
           end->num_operands == 1 && mp_is_scalar(mp_operand_type(end, 0)) &&
               mp_operand_type(end, 0)->dtype == MP_DTYPE_BOOL,
           "the comparator does not return a boolean scalar");
  return NULL;
}
