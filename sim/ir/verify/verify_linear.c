// Products, transforms and solvers (StableHLO specification, under their names).
#include "sim/ir/verify/verify_rules.h"

enum { ANALYTIC = MP_IS_FLOAT | MP_IS_COMPLEX };

// A product of vectors and matrices, which sums over the last dimension of the left side and the
// first of the right side.
mp_status_t mp_verify_dot(const mp_op_t *op) {
  const mp_type_t *lhs = mp_operand_type(op, 0), *rhs = mp_operand_type(op, 1);
  MP_RETURN_IF_ERROR(mp_verify_product_types(op));
  MP_CHECK(op, lhs->rank >= 1 && lhs->rank <= 2 && rhs->rank >= 1 && rhs->rank <= 2,
           "operands of rank %u and %u are not vectors or matrices", lhs->rank, rhs->rank);
  int64_t a = lhs->dims[lhs->rank - 1], b = rhs->dims[0], dims[2];
  MP_CHECK(op, a == b, "contracted dimensions have sizes %lld and %lld", (long long)a,
           (long long)b);
  uint32_t rank = 0;
  if (lhs->rank == 2) dims[rank++] = lhs->dims[0];
  if (rhs->rank == 2) dims[rank++] = rhs->dims[1];
  return mp_verify_result(op, 0, mp_result_type(op, 0)->dtype, dims, rank);
}

// Checks that the dimensions in both lists have the same sizes, pair by pair.
static mp_status_t verify_linear_dim_pairs(const mp_op_t *op, mp_index_list_t lhs,
                                           mp_index_list_t rhs, const char *what) {
  const mp_type_t *a = mp_operand_type(op, 0), *b = mp_operand_type(op, 1);
  MP_CHECK(op, lhs.count == rhs.count, "%u and %u %s dimensions", lhs.count, rhs.count, what);
  for (uint32_t i = 0; i < lhs.count; ++i) {
    int64_t m = a->dims[lhs.values[i]], n = b->dims[rhs.values[i]];
    MP_CHECK(op, m == n, "%s dimensions have sizes %lld and %lld", what, (long long)m,
             (long long)n);
  }
  return NULL;
}

// An algorithm has either all of its parts or none; its numbers of components must be positive.
static mp_status_t verify_linear_algorithm(const mp_op_t *op) {
  static const mp_attr_name_t counts[] = {MP_ATTR_LHS_COMPONENT_COUNT, MP_ATTR_RHS_COMPONENT_COUNT,
                                          MP_ATTR_NUM_PRIMITIVE_OPERATIONS};
  static const mp_attr_name_t others[] = {MP_ATTR_LHS_PRECISION_TYPE, MP_ATTR_RHS_PRECISION_TYPE,
                                          MP_ATTR_ACCUMULATION_TYPE,
                                          MP_ATTR_ALLOW_IMPRECISE_ACCUMULATION};
  uint32_t present = 0;
  for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
    present += mp_op_attr(op, counts[i]) != NULL;
    MP_CHECK(op, mp_op_int(op, counts[i], 1) > 0, "%s is %lld", mp_attr_name_text(counts[i]),
             (long long)mp_op_int(op, counts[i], 1));
  }
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i) {
    const mp_attr_t *part = mp_op_attr(op, others[i]);
    present += part != NULL;
    bool scalar = part == NULL || part->kind != MP_KIND_TYPE ||
                  (part->u.type->kind == MP_TYPE_TENSOR && part->u.type->rank == 0 &&
                   part->u.type->quant == NULL && part->u.type->bounds == NULL);
    MP_CHECK(op, scalar, "%s is not an element type", mp_attr_name_text(others[i]));
  }
  MP_CHECK(op, present == 0 || present == 7, "the algorithm has only %u of its 7 parts", present);
  return NULL;
}

// No dimension has two roles. The result has the batching dimensions, then the remaining dimensions
// of the left side, then those of the right side.
mp_status_t mp_verify_dot_general(const mp_op_t *op) {
  const mp_type_t *lhs = mp_operand_type(op, 0), *rhs = mp_operand_type(op, 1);
  mp_index_list_t lhs_batch = {0, NULL}, rhs_batch = {0, NULL};
  mp_index_list_t lhs_contracting = {0, NULL}, rhs_contracting = {0, NULL};
  uint64_t lhs_used = 0, rhs_used = 0;
  MP_RETURN_IF_ERROR(mp_verify_product_types(op));
  MP_RETURN_IF_ERROR(verify_linear_algorithm(op));
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, MP_ATTR_LHS_BATCHING_DIMENSIONS, lhs->rank, 0, &lhs_used, &lhs_batch));
  MP_RETURN_IF_ERROR(mp_verify_dims(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, lhs->rank, 0, &lhs_used,
                                    &lhs_contracting));
  MP_RETURN_IF_ERROR(
      mp_verify_dims(op, MP_ATTR_RHS_BATCHING_DIMENSIONS, rhs->rank, 0, &rhs_used, &rhs_batch));
  MP_RETURN_IF_ERROR(mp_verify_dims(op, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, rhs->rank, 0, &rhs_used,
                                    &rhs_contracting));
  MP_RETURN_IF_ERROR(verify_linear_dim_pairs(op, lhs_batch, rhs_batch, "batching"));
  MP_RETURN_IF_ERROR(verify_linear_dim_pairs(op, lhs_contracting, rhs_contracting, "contracting"));
  int64_t dims[2 * MP_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < lhs_batch.count; ++i) dims[rank++] = lhs->dims[lhs_batch.values[i]];
  for (uint32_t i = 0; i < lhs->rank; ++i) {
    if ((lhs_used >> i & 1) == 0) dims[rank++] = lhs->dims[i];
  }
  for (uint32_t i = 0; i < rhs->rank; ++i) {
    if ((rhs_used >> i & 1) == 0) dims[rank++] = rhs->dims[i];
  }
  return mp_verify_result(op, 0, mp_result_type(op, 0)->dtype, dims, rank);
}

// The number of values of a real transform that are stored; the others are conjugates of these.
static int64_t verify_linear_half_length(int64_t length) {
  return length == 0 ? 0 : length / 2 + 1;
}

// The transform is over the last one to three dimensions; with `minipod.kept`, which only complex
// ones have, over those before the last so many. On their complex side, real transforms store half
// of the last dimension.
mp_status_t mp_verify_fft(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  mp_index_list_t length = mp_op_ints(op, MP_ATTR_FFT_LENGTH);
  uint32_t type = mp_op_enum(op, MP_ATTR_FFT_TYPE, MP_FFT_FFT), rank = operand->rank;
  const int64_t kept = mp_op_int(op, MP_ATTR_KEPT, 0);
  bool from_real = type == MP_FFT_RFFT, to_real = type == MP_FFT_IRFFT;
  MP_CHECK(op, length.count >= 1 && length.count <= 3 && length.count <= rank,
           "fft_length has %u entries for %u dimensions", length.count, rank);
  MP_CHECK(op, kept >= 0 && kept <= rank - length.count && (kept == 0 || !(from_real || to_real)),
           "minipod.kept is %lld of %u dimensions", (long long)kept, rank);
  const uint32_t end = rank - (uint32_t)kept;
  MP_RETURN_IF_ERROR(mp_verify_list(op, MP_ATTR_FFT_LENGTH, length.count, 0, &length));
  MP_RETURN_IF_ERROR(
      mp_verify_dtype(op, operand, from_real ? MP_IS_FLOAT : MP_IS_COMPLEX, "the operand"));
  mp_dtype_t dtype = operand->dtype;
  if (to_real) dtype = mp_dtype_real_part(dtype);
  if (from_real) {
    MP_CHECK(op, dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_F64,
             "a real transform of elements of type %s", mp_dtype_name(dtype));
    dtype = dtype == MP_DTYPE_F32 ? MP_DTYPE_C64 : MP_DTYPE_C128;
  }
  int64_t dims[MP_MAX_RANK];
  for (uint32_t i = 0; i < rank; ++i) dims[i] = operand->dims[i];
  for (uint32_t i = 0; i < length.count; ++i) {
    uint32_t dim = end - length.count + i;
    bool last = dim == end - 1;
    int64_t expected =
        to_real && last ? verify_linear_half_length(length.values[i]) : length.values[i];
    // JAX asks for transforms of one complex number into no real numbers.
    bool nothing_wanted = to_real && last && expected == 0;
    MP_CHECK(op, operand->dims[dim] == expected || nothing_wanted,
             "dimension %u has size %lld, not %lld", dim, (long long)operand->dims[dim],
             (long long)expected);
    dims[dim] = from_real && last ? verify_linear_half_length(length.values[i]) : length.values[i];
  }
  return mp_verify_result(op, 0, dtype, dims, rank);
}

// Checks the matrix of a solver. Solvers work on the last two dimensions; all others are a batch.
static mp_status_t verify_linear_square(const mp_op_t *op, const mp_type_t *type) {
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, type, ANALYTIC, "the matrix"));
  MP_CHECK(op, type->rank >= 2 && type->dims[type->rank - 1] == type->dims[type->rank - 2],
           "the last two dimensions are not a square matrix");
  return NULL;
}

mp_status_t mp_verify_cholesky(const mp_op_t *op) {
  MP_RETURN_IF_ERROR(verify_linear_square(op, mp_operand_type(op, 0)));
  return mp_verify_same_type(op, mp_result_type(op, 0), mp_operand_type(op, 0),
                             "the result and the operand");
}

// The op solves a x = b (left_side) or x a = b, which decides the dimension of b that must fit a.
mp_status_t mp_verify_triangular_solve(const mp_op_t *op) {
  const mp_type_t *a = mp_operand_type(op, 0), *b = mp_operand_type(op, 1);
  MP_RETURN_IF_ERROR(verify_linear_square(op, a));
  MP_CHECK(op, a->dtype == b->dtype && a->rank == b->rank,
           "the operands have different element types or ranks");
  for (uint32_t i = 0; i + 2 < a->rank; ++i) {
    MP_CHECK(op, a->dims[i] == b->dims[i], "batch dimension %u has sizes %lld and %lld", i,
             (long long)a->dims[i], (long long)b->dims[i]);
  }
  uint32_t side = b->rank - (mp_op_bool(op, MP_ATTR_LEFT_SIDE, true) ? 2 : 1);
  MP_CHECK(op, b->dims[side] == a->dims[a->rank - 1],
           "a matrix of %lld rows and a dimension of size %lld do not fit",
           (long long)a->dims[a->rank - 1], (long long)b->dims[side]);
  MP_CHECK(op, mp_op_enum(op, MP_ATTR_TRANSPOSE_A, MP_TRANSPOSE_INVALID) != MP_TRANSPOSE_INVALID,
           "transpose_a is not valid");
  return mp_verify_same_type(op, mp_result_type(op, 0), b, "the result and the right-hand side");
}
