// tpu.matmul: a product of two arrays, added to a third.
#include <string.h>

#include "sim/mosaic/vectors/translate.h"
#include "sim/passes/rewrite/rewrite.h"

// The lists of #tpu.dot_dimension_numbers, in its order. `order` has a pair for each dimension of
// the result: the operand (0, 1), and its dimension.
enum { LHS_SUMMED, RHS_SUMMED, LHS_FREE, RHS_FREE, ORDER, LHS_BATCH, RHS_BATCH, NUM_LISTS };

typedef struct {
  mp_index_list_t lists[NUM_LISTS];
  int64_t values[NUM_LISTS][2 * MP_MAX_RANK];
} numbers_t;

static void translate_matmul_set(numbers_t *numbers, int list, const int64_t *values,
                                 uint32_t count) {
  memcpy(numbers->values[list], values, count * sizeof(*values));
  numbers->lists[list] = (mp_index_list_t){count, numbers->values[list]};
}

// [m, k] times [k, n], with either transposed.
static void translate_matmul_default(const mp_translate_t *t, numbers_t *out) {
  const int64_t lhs = mp_mosaic_op_int(t->op, "transpose_lhs", 0) != 0 ? 0 : 1;
  const int64_t rhs = mp_mosaic_op_int(t->op, "transpose_rhs", 0) != 0 ? 1 : 0;
  translate_matmul_set(out, LHS_SUMMED, &lhs, 1);
  translate_matmul_set(out, RHS_SUMMED, &rhs, 1);
  translate_matmul_set(out, LHS_FREE, (int64_t[]){1 - lhs}, 1);
  translate_matmul_set(out, RHS_FREE, (int64_t[]){1 - rhs}, 1);
  translate_matmul_set(out, ORDER, (int64_t[]){0, 1 - lhs, 1, 1 - rhs}, 4);
  translate_matmul_set(out, LHS_BATCH, NULL, 0);
  translate_matmul_set(out, RHS_BATCH, NULL, 0);
}

static bool translate_matmul_read_list(const mp_mosaic_attr_t *attr, numbers_t *out, int list) {
  int64_t values[2 * MP_MAX_RANK];
  if (attr->kind == MP_MOSAIC_INTS) {
    if (attr->ints.count > 2 * MP_MAX_RANK) return false;
    translate_matmul_set(out, list, attr->ints.values, attr->ints.count);
    return true;
  }
  if (attr->kind != MP_MOSAIC_ARRAY || attr->list.count > 2 * MP_MAX_RANK) return false;
  for (uint32_t i = 0; i < attr->list.count; ++i) values[i] = attr->list.items[i].value->i64;
  translate_matmul_set(out, list, values, attr->list.count);
  return true;
}

static bool translate_matmul_read(const mp_translate_t *t, numbers_t *out) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(t->op, "dimension_numbers");
  memset(out, 0, sizeof(*out));
  if (attr == NULL) {
    translate_matmul_default(t, out);
    return t->in[0]->type->rank == 2 && t->in[1]->type->rank == 2;
  }
  if (attr->kind != MP_MOSAIC_DIALECT || attr->list.count < ORDER + 1) return false;
  for (uint32_t i = 0; i < NUM_LISTS && i < attr->list.count; ++i) {
    if (!translate_matmul_read_list(attr->list.items[i].value, out, (int)i)) return false;
  }
  return true;
}

// Whether each dimension of an operand is in exactly one of the three lists.
static bool translate_matmul_covers(const mp_type_t *type, mp_index_list_t a, mp_index_list_t b,
                                    mp_index_list_t c) {
  const mp_index_list_t lists[] = {a, b, c};
  uint32_t seen = 0, count = 0;
  for (int i = 0; i < 3; ++i) {
    for (uint32_t k = 0; k < lists[i].count; ++k, ++count) {
      if (lists[i].values[k] < 0 || lists[i].values[k] >= (int64_t)type->rank) return false;
      seen |= 1u << lists[i].values[k];
    }
  }
  return count == type->rank && seen == (1u << count) - 1;
}

static bool translate_matmul_same_sizes(const mp_type_t *lhs, mp_index_list_t a,
                                        const mp_type_t *rhs, mp_index_list_t b) {
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; ++i) {
    if (lhs->dims[a.values[i]] != rhs->dims[b.values[i]]) return false;
  }
  return true;
}

static bool translate_matmul_is_good(const numbers_t *n, const mp_type_t *lhs,
                                     const mp_type_t *rhs) {
  const mp_index_list_t *lists = n->lists;
  return translate_matmul_covers(lhs, lists[LHS_SUMMED], lists[LHS_FREE], lists[LHS_BATCH]) &&
         translate_matmul_covers(rhs, lists[RHS_SUMMED], lists[RHS_FREE], lists[RHS_BATCH]) &&
         translate_matmul_same_sizes(lhs, lists[LHS_SUMMED], rhs, lists[RHS_SUMMED]) &&
         translate_matmul_same_sizes(lhs, lists[LHS_BATCH], rhs, lists[RHS_BATCH]) &&
         lists[ORDER].count ==
             2 * (lists[LHS_BATCH].count + lists[LHS_FREE].count + lists[RHS_FREE].count);
}

// dot_general's result: the batch, then the free dimensions of both in ascending order.
typedef struct {
  int64_t operand[MP_MAX_RANK], dim[MP_MAX_RANK], size[MP_MAX_RANK];
  uint32_t rank;
} product_t;

static void translate_matmul_add_free(product_t *product, const mp_type_t *type, int64_t operand,
                                      mp_index_list_t free_dims) {
  for (uint32_t d = 0; d < type->rank; ++d) {
    if (!mp_index_list_has(free_dims, d)) continue;
    product->operand[product->rank] = operand;
    product->dim[product->rank] = d;
    product->size[product->rank++] = type->dims[d];
  }
}

static void translate_matmul_product(const numbers_t *n, const mp_type_t *lhs, const mp_type_t *rhs,
                                     product_t *out) {
  out->rank = 0;
  for (uint32_t i = 0; i < n->lists[LHS_BATCH].count; ++i) {
    out->operand[out->rank] = 0;
    out->dim[out->rank] = n->lists[LHS_BATCH].values[i];
    out->size[out->rank++] = lhs->dims[n->lists[LHS_BATCH].values[i]];
  }
  translate_matmul_add_free(out, lhs, 0, n->lists[LHS_FREE]);
  translate_matmul_add_free(out, rhs, 1, n->lists[RHS_FREE]);
}

// Where each dimension of Mosaic's result is in dot_general's; false: somewhere else.
static bool translate_matmul_permutation(const numbers_t *n, const product_t *product, int64_t *out,
                                         bool *out_is_same) {
  *out_is_same = true;
  for (uint32_t i = 0; i < product->rank; ++i) {
    const int64_t *pair = &n->lists[ORDER].values[2 * i];
    uint32_t k = 0;
    while (k < product->rank && (product->operand[k] != pair[0] || product->dim[k] != pair[1])) ++k;
    if (k == product->rank) return false;
    out[i] = k;
    *out_is_same &= k == i;
  }
  return true;
}

static mp_value_t *translate_matmul_dot(const mp_translate_t *t, const numbers_t *n,
                                        mp_value_t *lhs, mp_value_t *rhs,
                                        const product_t *product) {
  static const struct {
    mp_attr_name_t name;
    int list;
  } attributes[] = {{MP_ATTR_LHS_CONTRACTING_DIMENSIONS, LHS_SUMMED},
                    {MP_ATTR_RHS_CONTRACTING_DIMENSIONS, RHS_SUMMED},
                    {MP_ATTR_LHS_BATCHING_DIMENSIONS, LHS_BATCH},
                    {MP_ATTR_RHS_BATCHING_DIMENSIONS, RHS_BATCH}};
  mp_shlo_t *hlo = t->hlo;
  mp_named_attr_t attrs[4];
  if (lhs == NULL || rhs == NULL) return NULL;
  for (int i = 0; i < 4; ++i) {
    const mp_index_list_t list = n->lists[attributes[i].list];
    hlo->status =
        mp_rewrite_ints(hlo->module, attributes[i].name, list.values, list.count, &attrs[i]);
    if (hlo->status != NULL) return NULL;
  }
  const mp_type_t *type = mp_shlo_type(hlo, t->type->dtype, product->size, product->rank);
  return mp_shlo_op(hlo, MP_OP_DOT_GENERAL, (mp_value_t *[]){lhs, rhs}, 2, type, attrs, 4);
}

// Operands of different types become the wider one's.
static void translate_matmul_widen(mp_shlo_t *hlo, mp_value_t **lhs, mp_value_t **rhs) {
  const mp_dtype_t a = (*lhs)->type->dtype, b = (*rhs)->type->dtype;
  const bool a_is_float = mp_dtype_is_float(a), b_is_float = mp_dtype_is_float(b);
  mp_dtype_t wide = mp_dtype_bits(a) >= mp_dtype_bits(b) ? a : b;
  if (a_is_float != b_is_float) wide = a_is_float ? a : b;
  if (a != b && a_is_float == b_is_float && mp_dtype_bits(a) == mp_dtype_bits(b)) {
    wide = MP_DTYPE_F32;  // two kinds of narrow floats
  }
  *lhs = mp_shlo_convert(hlo, *lhs, wide);
  *rhs = mp_shlo_convert(hlo, *rhs, wide);
}

static bool translate_matmul_is_zero(const mp_value_t *value) {
  static const char zero[16];
  const void *element = value->op == NULL ? NULL : mp_op_splat(value->op);
  return element != NULL && memcmp(element, zero, mp_dtype_size(value->type->dtype)) == 0;
}

mp_status_t mp_translate_matmul(const mp_translate_t *t) {
  numbers_t numbers;
  product_t product;
  int64_t permutation[MP_MAX_RANK];
  bool is_same = true;
  mp_value_t *lhs = t->in[0], *rhs = t->in[1], *start = t->in[2];
  if (!translate_matmul_read(t, &numbers) ||
      !translate_matmul_is_good(&numbers, lhs->type, rhs->type)) {
    return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "these dimension numbers are not supported");
  }
  translate_matmul_product(&numbers, lhs->type, rhs->type, &product);
  if (!translate_matmul_permutation(&numbers, &product, permutation, &is_same)) {
    return mp_mosaic_op_error(t->op, MP_UNIMPLEMENTED, "this order of dimensions is not supported");
  }
  translate_matmul_widen(t->hlo, &lhs, &rhs);
  mp_value_t *result = translate_matmul_dot(t, &numbers, lhs, rhs, &product);
  if (!is_same) result = mp_shlo_transpose(t->hlo, result, permutation);
  if (!translate_matmul_is_zero(start)) result = mp_shlo_binary(t->hlo, MP_OP_ADD, result, start);
  t->out[0] = result;
  return NULL;
}
