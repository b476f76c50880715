// Helpers of the verifier's rules.
#include "sim/ir/verify/verify_rules.h"

// The error that two types differ in their `property`.
static mp_status_t verify_util_differ(const mp_op_t *op, const mp_type_t *a, const mp_type_t *b,
                                      const char *what, const char *property) {
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_type_print(a, &text);
  mp_strbuf_puts(&text, " and ");
  mp_type_print(b, &text);
  mp_status_t status = mp_op_error(op, MP_INVALID_ARGUMENT, "%s have different %s: %s", what,
                                   property, mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_verify_same_type(const mp_op_t *op, const mp_type_t *a, const mp_type_t *b,
                                const char *what) {
  return mp_type_equal(a, b) ? NULL : verify_util_differ(op, a, b, what, "types");
}

mp_status_t mp_verify_same_shape(const mp_op_t *op, const mp_type_t *a, const mp_type_t *b,
                                 const char *what) {
  return mp_type_same_shape(a, b) ? NULL : verify_util_differ(op, a, b, what, "shapes");
}

mp_status_t mp_verify_dtype(const mp_op_t *op, const mp_type_t *type, uint32_t classes,
                            const char *what) {
  MP_CHECK(op, type->kind == MP_TYPE_TENSOR, "%s must be a tensor", what);
  MP_CHECK(op, mp_dtype_in(type->dtype, classes), "%s cannot have elements of type %s", what,
           mp_dtype_name(type->dtype));
  return NULL;
}

mp_status_t mp_verify_result(const mp_op_t *op, uint32_t index, mp_dtype_t dtype,
                             const int64_t *dims, uint32_t rank) {
  mp_type_t expected = {.kind = MP_TYPE_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
  return mp_verify_same_type(op, mp_result_type(op, index), &expected,
                             "the result as stated and as it must be");
}

mp_status_t mp_verify_dim(const mp_op_t *op, mp_attr_name_t name, uint32_t rank, int64_t *out_dim) {
  int64_t dim = mp_op_int(op, name, -1);
  MP_CHECK(op, dim >= 0 && dim < (int64_t)rank, "%s is %lld; there are %u dimensions",
           mp_attr_name_text(name), (long long)dim, rank);
  *out_dim = dim;
  return NULL;
}

mp_status_t mp_verify_dims(const mp_op_t *op, mp_attr_name_t name, uint32_t rank, uint32_t flags,
                           uint64_t *used, mp_index_list_t *out_list) {
  const char *text = mp_attr_name_text(name);
  mp_index_list_t list = mp_op_ints(op, name);
  uint64_t none = 0;
  if (used == NULL) used = &none;
  MP_CHECK(op, mp_op_attr(op, name)->u.ints.rank <= 1, "%s is not a plain list", text);
  MP_CHECK(op, list.count <= rank, "%s has %u entries for %u dimensions", text, list.count, rank);
  for (uint32_t i = 0; i < list.count; ++i) {
    int64_t dim = list.values[i];
    MP_CHECK(op, dim >= 0 && dim < (int64_t)rank, "%s has entry %lld; there are %u dimensions",
             text, (long long)dim, rank);
    MP_CHECK(op, (*used >> dim & 1) == 0, "dimension %lld in %s is used twice", (long long)dim,
             text);
    MP_CHECK(op, !(flags & MP_DIMS_SORTED) || i == 0 || list.values[i - 1] < dim,
             "%s is not sorted", text);
    *used |= UINT64_C(1) << dim;
  }
  *out_list = list;
  return NULL;
}

mp_status_t mp_verify_list(const mp_op_t *op, mp_attr_name_t name, uint32_t count, int64_t min,
                           mp_index_list_t *out_list) {
  const char *text = mp_attr_name_text(name);
  mp_index_list_t list = mp_op_ints(op, name);
  MP_CHECK(op, mp_op_attr(op, name)->u.ints.rank <= 1, "%s is not a plain list", text);
  MP_CHECK(op, list.count == count, "%s has %u entries, not %u", text, list.count, count);
  for (uint32_t i = 0; i < count; ++i) {
    MP_CHECK(op, list.values[i] >= min, "%s has entry %lld, less than %lld", text,
             (long long)list.values[i], (long long)min);
  }
  *out_list = list;
  return NULL;
}

mp_status_t mp_verify_pairs(const mp_op_t *op, mp_attr_name_t name, int64_t rows,
                            mp_index_list_t *out_list) {
  const mp_attr_t *attr = mp_op_attr(op, name);
  mp_index_list_t list = mp_op_ints(op, name);
  // A table without rows may be written as an empty list.
  bool empty = list.count == 0 && (rows == 0 || rows == -1);
  bool is_table = attr->u.ints.rank == 2 && attr->u.ints.dims[1] == 2;
  MP_CHECK(op, empty || (is_table && (rows == -1 || attr->u.ints.dims[0] == rows)),
           "%s is not a table with two columns and the right number of rows",
           mp_attr_name_text(name));
  *out_list = list;
  return NULL;
}

// Checks that values of a region are scalars of these element types.
static mp_status_t verify_util_scalars(const mp_op_t *op, mp_value_t *const *values, uint32_t count,
                                       const mp_dtype_t *dtypes, const char *what) {
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *type = values[i]->type;
    MP_CHECK(op, mp_is_scalar(type) && type->dtype == dtypes[i],
             "%s %u of a region is not a scalar of type %s", what, i, mp_dtype_name(dtypes[i]));
  }
  return NULL;
}

mp_status_t mp_verify_scalar_region(const mp_op_t *op, uint32_t region, uint32_t num_args,
                                    const mp_dtype_t *args, uint32_t num_results,
                                    const mp_dtype_t *results) {
  const mp_block_t *block = op->regions[region];
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op, block->num_args == num_args, "region %u has %u arguments, not %u", region,
           block->num_args, num_args);
  for (uint32_t i = 0; i < num_args; ++i) {
    mp_value_t *arg = &block->args[i];
    MP_RETURN_IF_ERROR(verify_util_scalars(op, &arg, 1, &args[i], "argument"));
  }
  MP_CHECK(op, end != NULL && mp_op_has(end, MP_OP_TRAIT_TERMINATOR),
           "region %u does not end in return", region);
  MP_CHECK(op, end->num_operands == num_results, "region %u returns %u values, not %u", region,
           end->num_operands, num_results);
  return verify_util_scalars(op, end->operands, num_results, results, "result");
}

mp_status_t mp_verify_reducer(const mp_op_t *op, uint32_t region, uint32_t count) {
  const mp_block_t *block = op->regions[region];
  const mp_op_t *end = mp_block_terminator(block);
  MP_CHECK(op, block->num_args == 2 * (uint64_t)count, "region %u has %u arguments, not %llu",
           region, block->num_args, 2 * (unsigned long long)count);
  MP_CHECK(op, end != NULL && mp_op_has(end, MP_OP_TRAIT_TERMINATOR) && end->num_operands == count,
           "region %u does not return %u values", region, count);
  for (uint32_t i = 0; i < count; ++i) {
    mp_dtype_t dtype = mp_operand_type(op, i)->dtype;
    mp_value_t *values[] = {&block->args[i], &block->args[count + i], end->operands[i]};
    // The specification lets a region work in a wider type. Frameworks do not use this: they
    // convert the operands instead.
    if (mp_is_scalar(values[0]->type) && values[0]->type->dtype != dtype) {
      return mp_op_error(op, MP_UNIMPLEMENTED, "a region that works on %s for elements of type %s",
                         mp_dtype_name(values[0]->type->dtype), mp_dtype_name(dtype));
    }
    const mp_dtype_t dtypes[] = {dtype, dtype, dtype};
    MP_RETURN_IF_ERROR(verify_util_scalars(op, values, 3, dtypes, "value"));
  }
  return NULL;
}

// (size - 1) * dilation + 1, or 0 for size 0. False when it does not fit 64 bits.
static bool verify_util_dilate(int64_t size, int64_t dilation, int64_t *out_size) {
  *out_size = 0;
  if (size == 0) return true;
  return !__builtin_mul_overflow(size - 1, dilation, out_size) &&
         !__builtin_add_overflow(*out_size, 1, out_size);
}

mp_status_t mp_verify_window(const mp_op_t *op, const mp_verify_window_t *window,
                             const int64_t *dims, int64_t *out_dims) {
  for (uint32_t i = 0; i < window->rank; ++i) {
    int64_t base = 0, size = 0;
    bool fits =
        verify_util_dilate(dims[i], window->base_dilations == NULL ? 1 : window->base_dilations[i],
                           &base) &&
        verify_util_dilate(window->sizes[i],
                           window->window_dilations == NULL ? 1 : window->window_dilations[i],
                           &size) &&
        !__builtin_add_overflow(base, window->padding[2 * i], &base) &&
        !__builtin_add_overflow(base, window->padding[2 * i + 1], &base);
    MP_CHECK(op, fits, "the window of dimension %u overflows", i);
    MP_CHECK(op, base >= 0, "dimension %u has size %lld after padding", i, (long long)base);
    int64_t stride = window->strides == NULL ? 1 : window->strides[i];
    out_dims[i] = base == 0 || size > base ? 0 : (base - size) / stride + 1;
  }
  return NULL;
}

mp_status_t mp_verify_product_types(const mp_op_t *op) {
  const uint32_t numbers = MP_IS_BOOL | MP_IS_INTEGER | MP_IS_FLOAT | MP_IS_COMPLEX;
  mp_dtype_t lhs = mp_operand_type(op, 0)->dtype, rhs = mp_operand_type(op, 1)->dtype;
  mp_dtype_t result = mp_result_type(op, 0)->dtype;
  const bool is_complex = mp_dtype_is_complex(lhs) || mp_dtype_is_complex(rhs);
  // What converts between a quantised type and another one is an op of its own.
  const bool is_mixed =
      mp_dtype_is_float(lhs) != mp_dtype_is_float(rhs) &&
      (mp_operand_type(op, 0)->quant != NULL || mp_operand_type(op, 1)->quant != NULL);
  if (!is_mixed && mp_dtype_in(lhs, numbers) && mp_dtype_in(rhs, numbers) &&
      mp_dtype_in(result, is_complex ? MP_IS_COMPLEX : numbers)) {
    return NULL;
  }
  return mp_op_error(op, MP_INVALID_ARGUMENT, "a product of %s and %s cannot be of type %s",
                     mp_dtype_name(lhs), mp_dtype_name(rhs), mp_dtype_name(result));
}
