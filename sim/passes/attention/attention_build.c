// Builders of the ops that replace a call.
#include <math.h>

#include "sim/ir/reducer.h"
#include "sim/passes/attention/attention_impl.h"
#include "sim/passes/rewrite/rewrite.h"

static bool attention_build_failed(mp_attention_build_t *b, mp_status_t status) {
  if (b->status == NULL) b->status = status;
  return b->status != NULL;
}

static mp_value_t *attention_build_op(mp_attention_build_t *b, mp_opcode_t code,
                                      mp_value_t *const *operands, uint32_t num_operands,
                                      const mp_type_t *type, const mp_named_attr_t *attrs,
                                      uint32_t num_attrs) {
  mp_value_t *value = NULL;
  if (b->status != NULL) return NULL;
  const mp_op_one_t op = {.code = code,
                          .type = type,
                          .operands = operands,
                          .num_operands = num_operands,
                          .attrs = attrs,
                          .num_attrs = num_attrs};
  attention_build_failed(b, mp_rewrite_insert_op(b->module, b->position, &op, &value));
  return value;
}

static const mp_type_t *attention_build_type(mp_attention_build_t *b, mp_dtype_t dtype,
                                             const int64_t *dims, uint32_t rank) {
  const mp_type_t *type = NULL;
  if (b->status == NULL)
    attention_build_failed(b, mp_type_tensor(b->module->arena, dtype, dims, rank, &type));
  return type;
}

static mp_named_attr_t attention_build_list(mp_attention_build_t *b, mp_attr_name_t name,
                                            mp_attention_dims_t dims) {
  mp_named_attr_t attr = {0};
  if (b->status == NULL)
    attention_build_failed(b, mp_rewrite_ints(b->module, name, dims.values, dims.count, &attr));
  return attr;
}

static mp_value_t *attention_build_constant(mp_attention_build_t *b, const mp_type_t *type,
                                            const void *element) {
  mp_value_t *value = NULL;
  if (b->status == NULL) {
    attention_build_failed(
        b, mp_rewrite_insert_constant(b->module, b->position, type, element, &value));
  }
  return value;
}

mp_value_t *mp_attention_number(mp_attention_build_t *b, const mp_type_t *type, double number) {
  const float single = (float)number;
  return attention_build_constant(b, type, &single);
}

mp_value_t *mp_attention_integer(mp_attention_build_t *b, const mp_type_t *type, int32_t number) {
  return attention_build_constant(b, type, &number);
}

mp_value_t *mp_attention_nothing(mp_attention_build_t *b, const mp_type_t *type) {
  static const char zero[16];
  return attention_build_constant(b, type, zero);
}

mp_value_t *mp_attention_unary(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *a) {
  return b->status != NULL ? NULL : attention_build_op(b, code, &a, 1, a->type, NULL, 0);
}

mp_value_t *mp_attention_binary(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *x,
                                mp_value_t *y) {
  mp_value_t *const operands[] = {x, y};
  return b->status != NULL ? NULL : attention_build_op(b, code, operands, 2, x->type, NULL, 0);
}

mp_value_t *mp_attention_compare(mp_attention_build_t *b, uint32_t direction, mp_value_t *x,
                                 mp_value_t *y) {
  mp_value_t *value = NULL;
  if (b->status != NULL) return NULL;
  attention_build_failed(
      b, mp_rewrite_insert_compare(b->module, b->position, direction, x, y, &value));
  return value;
}

mp_value_t *mp_attention_select(mp_attention_build_t *b, mp_value_t *predicate, mp_value_t *x,
                                mp_value_t *y) {
  mp_value_t *const operands[] = {predicate, x, y};
  return b->status != NULL ? NULL
                           : attention_build_op(b, MP_OP_SELECT, operands, 3, x->type, NULL, 0);
}

mp_value_t *mp_attention_convert(mp_attention_build_t *b, mp_value_t *a, mp_dtype_t dtype) {
  if (b->status != NULL || a->type->dtype == dtype) return a;
  const mp_type_t *type = attention_build_type(b, dtype, a->type->dims, a->type->rank);
  return attention_build_op(b, MP_OP_CONVERT, &a, 1, type, NULL, 0);
}

mp_value_t *mp_attention_reshape(mp_attention_build_t *b, mp_value_t *a, mp_attention_dims_t dims) {
  if (b->status != NULL) return NULL;
  const mp_type_t *type = attention_build_type(b, a->type->dtype, dims.values, dims.count);
  if (type != NULL && mp_type_equal(type, a->type)) return a;
  return attention_build_op(b, MP_OP_RESHAPE, &a, 1, type, NULL, 0);
}

mp_value_t *mp_attention_transpose(mp_attention_build_t *b, mp_value_t *a,
                                   mp_attention_dims_t permutation) {
  if (b->status != NULL) return NULL;
  mp_attention_dims_t dims = {.count = permutation.count};
  for (uint32_t i = 0; i < dims.count; ++i) dims.values[i] = a->type->dims[permutation.values[i]];
  const mp_type_t *type = attention_build_type(b, a->type->dtype, dims.values, dims.count);
  const mp_named_attr_t attr = attention_build_list(b, MP_ATTR_PERMUTATION, permutation);
  return attention_build_op(b, MP_OP_TRANSPOSE, &a, 1, type, &attr, 1);
}

mp_value_t *mp_attention_broadcast(mp_attention_build_t *b, mp_value_t *a, mp_attention_dims_t at,
                                   const mp_type_t *like) {
  if (b->status != NULL) return NULL;
  const mp_type_t *type = attention_build_type(b, a->type->dtype, like->dims, like->rank);
  const mp_named_attr_t attr = attention_build_list(b, MP_ATTR_BROADCAST_DIMENSIONS, at);
  return attention_build_op(b, MP_OP_BROADCAST_IN_DIM, &a, 1, type, &attr, 1);
}

mp_value_t *mp_attention_iota(mp_attention_build_t *b, int64_t dim, mp_attention_dims_t dims) {
  const mp_attr_t *value = NULL;
  const mp_type_t *type = attention_build_type(b, MP_DTYPE_S32, dims.values, dims.count);
  if (b->status != NULL ||
      attention_build_failed(b, mp_attr_make_int(b->module->arena, MP_DTYPE_S64, dim, &value)))
    return NULL;
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_IOTA_DIMENSION, value);
  return attention_build_op(b, MP_OP_IOTA, NULL, 0, type, &attr, 1);
}

mp_value_t *mp_attention_reduce(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *a,
                                mp_attention_dims_t dims) {
  if (b->status != NULL) return NULL;
  mp_attention_dims_t kept = {0};
  for (uint32_t d = 0; d < a->type->rank; ++d) {
    bool is_kept = true;
    for (uint32_t i = 0; i < dims.count; ++i) is_kept &= dims.values[i] != d;
    if (is_kept) kept.values[kept.count++] = a->type->dims[d];
  }
  const mp_dtype_t dtype = a->type->dtype;
  const mp_type_t *type = attention_build_type(b, dtype, kept.values, kept.count);
  const mp_type_t *scalar = attention_build_type(b, dtype, NULL, 0);
  mp_value_t *const operands[] = {
      a, mp_attention_number(b, scalar, code == MP_OP_ADD ? 0 : -(double)INFINITY)};
  const mp_named_attr_t attr = attention_build_list(b, MP_ATTR_DIMENSIONS, dims);
  mp_op_t *op = NULL;
  if (b->status != NULL ||
      attention_build_failed(
          b, mp_op_create_reduce(b->module, code, b->position->loc, operands, type, &attr, &op)))
    return NULL;
  mp_block_insert_before(b->position, op);
  return &op->results[0];
}

// The dimensions that are neither batch nor contracting, in order.
static void attention_build_free(const mp_type_t *type, mp_attention_dims_t contracting,
                                 mp_attention_dims_t *dims) {
  for (uint32_t d = 2; d < type->rank; ++d) {
    bool is_free = true;
    for (uint32_t i = 0; i < contracting.count; ++i) is_free &= contracting.values[i] != d;
    if (is_free) dims->values[dims->count++] = type->dims[d];
  }
}

mp_value_t *mp_attention_dot(mp_attention_build_t *b, mp_value_t *x, mp_value_t *y,
                             mp_attention_dims_t x_contracting, mp_attention_dims_t y_contracting) {
  if (b->status != NULL) return NULL;
  const mp_attention_dims_t batch = MP_ATTENTION_DIMS(0, 1);
  mp_attention_dims_t dims = {.count = 2, .values = {x->type->dims[0], x->type->dims[1]}};
  attention_build_free(x->type, x_contracting, &dims);
  attention_build_free(y->type, y_contracting, &dims);
  const mp_named_attr_t attrs[] = {
      attention_build_list(b, MP_ATTR_LHS_BATCHING_DIMENSIONS, batch),
      attention_build_list(b, MP_ATTR_RHS_BATCHING_DIMENSIONS, batch),
      attention_build_list(b, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, x_contracting),
      attention_build_list(b, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, y_contracting)};
  const mp_type_t *type = attention_build_type(b, x->type->dtype, dims.values, dims.count);
  mp_value_t *const operands[] = {x, y};
  return attention_build_op(b, MP_OP_DOT_GENERAL, operands, 2, type, attrs, 4);
}
