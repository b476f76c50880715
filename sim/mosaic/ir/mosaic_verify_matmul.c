// Reductions and matmuls.
#include "sim/mosaic/ir/mosaic_verify.h"

// ---- reductions ----

// The word of an attribute such as #vector.kind<add>; "": it is absent or another attribute.
static mp_str_t mosaic_verify_matmul_word(const mp_mosaic_op_t *op, const char *name,
                                          const char *dialect) {
  const mp_mosaic_attr_t *attr = mp_mosaic_op_attr(op, name);
  const bool has_word = attr != NULL && attr->kind == MP_MOSAIC_DIALECT &&
                        mp_str_is(attr->str, dialect) && attr->list.count == 1 &&
                        attr->list.items[0].value->kind == MP_MOSAIC_STRING;
  return has_word ? attr->list.items[0].value->str : MP_STR("");
}

// `out` must be `in` without the dimensions that `gone` has; a scalar if none is left.
static mp_status_t mosaic_verify_matmul_reduced(const mp_mosaic_op_t *op,
                                                const mp_mosaic_type_t *in, uint64_t gone,
                                                const mp_mosaic_type_t *out) {
  uint32_t rank = 0;
  bool fits = out->kind != MP_MOSAIC_MEMREF;
  for (uint32_t i = 0; fits && i < in->rank; ++i) {
    if (gone >> i & 1) continue;
    fits = rank < out->rank && out->dims[rank] == in->dims[i];
    ++rank;
  }
  MP_MOSAIC_CHECK(op, fits && rank == out->rank,
                  "the result does not have the dimensions that are left");
  return NULL;
}

static mp_status_t mosaic_verify_matmul_reduction(const mp_mosaic_op_t *op) {
  static const char *const floats[] = {"add", "mul", "minimumf", "maximumf", "minnumf", "maxnumf"};
  static const char *const ints[] = {"add",   "mul", "minui", "minsi", "maxui",
                                     "maxsi", "and", "or",    "xor"};
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  const mp_str_t kind = mosaic_verify_matmul_word(op, "kind", "vector.kind");
  const bool is_float = mp_mosaic_is_float(in);
  bool known = false;
  for (size_t i = 0; is_float && i < sizeof(floats) / sizeof(floats[0]); ++i)
    known |= mp_str_is(kind, floats[i]);
  for (size_t i = 0; !is_float && i < sizeof(ints) / sizeof(ints[0]); ++i)
    known |= mp_str_is(kind, ints[i]);
  MP_MOSAIC_CHECK(op, known, "the kind '%.*s' is not one for %s", MP_STR_SHOWN(kind, 60),
                  mp_dtype_name(in->dtype));
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_vector(in) && in->dtype == out->dtype &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 1), out),
                  "accumulator and result have different types");
  mp_mosaic_ints_t dims = {0};
  uint64_t gone = 0;
  MP_MOSAIC_CHECK(op, mp_mosaic_ints(op, "reduction_dims", &dims), "reduction_dims is missing");
  MP_MOSAIC_CHECK(op, in->rank <= 64, "the rank %u is more than 64", in->rank);
  MP_RETURN_IF_ERROR(mp_mosaic_check_dims(op, "reduction_dims", dims, in->rank));
  for (uint32_t i = 0; i < dims.count; ++i) gone |= UINT64_C(1) << mp_mosaic_int_at(dims, i);
  return mosaic_verify_matmul_reduced(op, in, gone, out);
}

static mp_status_t mosaic_verify_matmul_index(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *in = mp_mosaic_in(op, 0), *out = mp_mosaic_out(op, 0);
  const mp_str_t kind = mosaic_verify_matmul_word(op, "kind", "tpu.reduction_kind");
  uint32_t axis = 0;
  MP_MOSAIC_CHECK(op, mp_mosaic_is_vector(in) && in->rank <= 64 && mp_mosaic_is_int(out),
                  "it does not make integers of a vector");
  MP_MOSAIC_CHECK(op, mp_str_is(kind, "arg_max") || mp_str_is(kind, "arg_min"),
                  "the kind '%.*s' is not one", MP_STR_SHOWN(kind, 60));
  MP_RETURN_IF_ERROR(mp_mosaic_check_dim(op, "axis", in->rank, &axis));
  return mosaic_verify_matmul_reduced(op, in, UINT64_C(1) << axis, out);
}

// ---- matmul ----

// The lists of #tpu.dot_dimension_numbers, in its order.
enum { LHS_CONTRACT, RHS_CONTRACT, LHS_FREE, RHS_FREE, OUT_ORDER, LHS_BATCH, RHS_BATCH, NUM_LISTS };

static mp_status_t mosaic_verify_matmul_lists(const mp_mosaic_op_t *op,
                                              const mp_mosaic_attr_t *numbers,
                                              mp_mosaic_ints_t *lists) {
  MP_MOSAIC_CHECK(op,
                  numbers->kind == MP_MOSAIC_DIALECT &&
                      mp_str_is(numbers->str, "tpu.dot_dimension_numbers") &&
                      (numbers->list.count == NUM_LISTS || numbers->list.count == OUT_ORDER + 1),
                  "dimension_numbers does not have its seven lists");
  static const mp_mosaic_attr_t none = {.kind = MP_MOSAIC_ARRAY};
  lists[LHS_BATCH] = lists[RHS_BATCH] = (mp_mosaic_ints_t){&none, 0};
  for (uint32_t i = 0; i < numbers->list.count; ++i)
    MP_MOSAIC_CHECK(op, mp_mosaic_ints_of(numbers->list.items[i].value, &lists[i]),
                    "list %u of dimension_numbers is not one of integers", i);
  return NULL;
}

// Each dimension of an operand must be in one of three lists, once.
static mp_status_t mosaic_verify_matmul_cover(const mp_mosaic_op_t *op,
                                              const mp_mosaic_type_t *type,
                                              const mp_mosaic_ints_t *const *lists) {
  uint64_t seen = 0;
  uint32_t count = 0;
  for (int k = 0; k < 3; ++k) {
    for (uint32_t i = 0; i < lists[k]->count; ++i, ++count) {
      const int64_t dim = mp_mosaic_int_at(*lists[k], i);
      MP_MOSAIC_CHECK(op, dim >= 0 && dim < type->rank && (seen >> dim & 1) == 0,
                      "dimension_numbers has dimension %lld twice, or there is none",
                      (long long)dim);
      seen |= UINT64_C(1) << dim;
    }
  }
  MP_MOSAIC_CHECK(op, count == type->rank, "dimension_numbers has %u of %u dimensions", count,
                  type->rank);
  return NULL;
}

static mp_status_t mosaic_verify_matmul_pairs(const mp_mosaic_op_t *op, mp_mosaic_ints_t lhs,
                                              mp_mosaic_ints_t rhs) {
  MP_MOSAIC_CHECK(op, lhs.count == rhs.count, "%u dimensions of one operand meet %u of the other",
                  lhs.count, rhs.count);
  for (uint32_t i = 0; i < lhs.count; ++i)
    MP_MOSAIC_CHECK(op,
                    mp_mosaic_in(op, 0)->dims[mp_mosaic_int_at(lhs, i)] ==
                        mp_mosaic_in(op, 1)->dims[mp_mosaic_int_at(rhs, i)],
                    "dimensions that meet have different sizes");
  return NULL;
}

static bool mosaic_verify_matmul_has(mp_mosaic_ints_t list, int64_t dim) {
  for (uint32_t i = 0; i < list.count; ++i)
    if (mp_mosaic_int_at(list, i) == dim) return true;
  return false;
}

// The order of the result's dimensions: pairs of an operand and one of its dimensions that is not
// contracted. Batch dimensions come from the left operand.
static mp_status_t mosaic_verify_matmul_order(const mp_mosaic_op_t *op,
                                              const mp_mosaic_ints_t *lists) {
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  const mp_mosaic_ints_t order = lists[OUT_ORDER];
  const uint32_t rank = lists[LHS_BATCH].count + lists[LHS_FREE].count + lists[RHS_FREE].count;
  MP_MOSAIC_CHECK(op, out->rank == rank && order.count == 2 * rank,
                  "the result has rank %u, dimension_numbers make %u", out->rank, rank);
  for (uint32_t i = 0; i < rank; ++i) {
    const int64_t side = mp_mosaic_int_at(order, 2 * i), dim = mp_mosaic_int_at(order, 2 * i + 1);
    const bool known = (side == 0 && (mosaic_verify_matmul_has(lists[LHS_FREE], dim) ||
                                      mosaic_verify_matmul_has(lists[LHS_BATCH], dim))) ||
                       (side == 1 && mosaic_verify_matmul_has(lists[RHS_FREE], dim));
    MP_MOSAIC_CHECK(op, known && mp_mosaic_in(op, (uint32_t)side)->dims[dim] == out->dims[i],
                    "dimension %u of the result does not fit dimension_numbers", i);
    for (uint32_t j = 0; j < i; ++j)
      MP_MOSAIC_CHECK(
          op, mp_mosaic_int_at(order, 2 * j) != side || mp_mosaic_int_at(order, 2 * j + 1) != dim,
          "a dimension is in the result twice");
  }
  return NULL;
}

// Without dimension numbers it is (m, k) times (k, n), either of them transposed by a flag.
static mp_status_t mosaic_verify_matmul_plain(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *lhs = mp_mosaic_in(op, 0), *rhs = mp_mosaic_in(op, 1);
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  const bool lhs_flag = mp_mosaic_op_int(op, "transpose_lhs", 0) != 0;
  const bool rhs_flag = mp_mosaic_op_int(op, "transpose_rhs", 0) != 0;
  MP_MOSAIC_CHECK(op, lhs->rank == 2 && rhs->rank == 2 && out->rank == 2,
                  "without dimension_numbers its operands are matrices");
  MP_MOSAIC_CHECK(op,
                  lhs->dims[!lhs_flag] == rhs->dims[rhs_flag] &&
                      out->dims[0] == lhs->dims[lhs_flag] && out->dims[1] == rhs->dims[!rhs_flag],
                  "the sizes of its operands and its result do not fit");
  return NULL;
}

static mp_status_t mosaic_verify_matmul_matmul(const mp_mosaic_op_t *op) {
  const mp_mosaic_type_t *lhs = mp_mosaic_in(op, 0), *rhs = mp_mosaic_in(op, 1);
  const mp_mosaic_type_t *out = mp_mosaic_out(op, 0);
  const mp_mosaic_attr_t *numbers = mp_mosaic_op_attr(op, "dimension_numbers");
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_vector(lhs) && mp_mosaic_is_vector(rhs) &&
                      mp_mosaic_is_vector(out) && lhs->rank <= 64 && rhs->rank <= 64 &&
                      mp_mosaic_type_equal(mp_mosaic_in(op, 2), out),
                  "its operands are not vectors, or its accumulator has another type");
  // Operands may differ: the machine multiplies bf16 by i8, too.
  MP_MOSAIC_CHECK(op,
                  mp_mosaic_is_float(out) || (!mp_mosaic_is_float(lhs) && !mp_mosaic_is_float(rhs)),
                  "it multiplies %s and %s to %s", mp_dtype_name(lhs->dtype),
                  mp_dtype_name(rhs->dtype), mp_dtype_name(out->dtype));
  if (numbers == NULL) return mosaic_verify_matmul_plain(op);
  mp_mosaic_ints_t lists[NUM_LISTS] = {0};
  MP_RETURN_IF_ERROR(mosaic_verify_matmul_lists(op, numbers, lists));
  MP_RETURN_IF_ERROR(
      mosaic_verify_matmul_cover(op, lhs,
                                 (const mp_mosaic_ints_t *const[]){
                                     &lists[LHS_CONTRACT], &lists[LHS_FREE], &lists[LHS_BATCH]}));
  MP_RETURN_IF_ERROR(
      mosaic_verify_matmul_cover(op, rhs,
                                 (const mp_mosaic_ints_t *const[]){
                                     &lists[RHS_CONTRACT], &lists[RHS_FREE], &lists[RHS_BATCH]}));
  MP_RETURN_IF_ERROR(mosaic_verify_matmul_pairs(op, lists[LHS_CONTRACT], lists[RHS_CONTRACT]));
  MP_RETURN_IF_ERROR(mosaic_verify_matmul_pairs(op, lists[LHS_BATCH], lists[RHS_BATCH]));
  return mosaic_verify_matmul_order(op, lists);
}

mp_mosaic_check_t mp_mosaic_check_matmul(mp_mosaic_opcode_t code) {
  switch (code) {
    case MP_MOSAIC_MULTI_REDUCTION:
      return mosaic_verify_matmul_reduction;
    case MP_MOSAIC_REDUCE_INDEX:
      return mosaic_verify_matmul_index;
    case MP_MOSAIC_MATMUL:
      return mosaic_verify_matmul_matmul;
    default:
      return NULL;
  }
}
