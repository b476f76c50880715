// Random numbers and batch normalisation (StableHLO specification, under their names).
#include "sim/ir/verify/verify_rules.h"

// The bounds are scalars. The values of `shape` are not looked at, because the result's type has
// the shape.
mp_status_t mp_verify_rng(const mp_op_t *op) {
  const mp_type_t *a = mp_operand_type(op, 0), *shape = mp_operand_type(op, 2);
  const mp_type_t *result = mp_result_type(op, 0);
  bool normal = mp_op_enum(op, MP_ATTR_RNG_DISTRIBUTION, MP_RNG_UNIFORM) == MP_RNG_NORMAL;
  uint32_t classes = normal ? MP_IS_FLOAT : MP_IS_FLOAT | MP_IS_INTEGER | MP_IS_BOOL;
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, a, classes, "an operand"));
  MP_CHECK(op, mp_is_scalar(a), "the operands are not scalars");
  MP_RETURN_IF_ERROR(mp_verify_same_type(op, a, mp_operand_type(op, 1), "the operands"));
  MP_CHECK(op, result->dtype == a->dtype, "the result has type %s, the operands %s",
           mp_dtype_name(result->dtype), mp_dtype_name(a->dtype));
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, shape, MP_IS_INTEGER, "the shape"));
  MP_CHECK(op, shape->rank == 1 && shape->dims[0] == (int64_t)result->rank,
           "the shape is not a list of %u sizes", result->rank);
  return NULL;
}

// The state holds a key and a counter: two or three words for Philox, two words for ThreeFry.
mp_status_t mp_verify_rng_bit_generator(const mp_op_t *op) {
  const mp_type_t *state = mp_operand_type(op, 0);
  uint32_t algorithm = mp_op_enum(op, MP_ATTR_RNG_ALGORITHM, MP_RNG_DEFAULT);
  MP_CHECK(op, state->dtype == MP_DTYPE_U64 && state->rank == 1, "the state is not a ui64 vector");
  MP_CHECK(op, state->dims[0] == 2 || (state->dims[0] == 3 && algorithm != MP_RNG_THREE_FRY),
           "a state of %lld elements does not fit algorithm %s", (long long)state->dims[0],
           mp_enum_value_name(MP_ENUM_RNG_ALGORITHM, algorithm));
  MP_RETURN_IF_ERROR(
      mp_verify_same_type(op, mp_result_type(op, 0), state, "the new state and the state"));
  return mp_verify_dtype(op, mp_result_type(op, 1), MP_IS_INTEGER | MP_IS_FLOAT, "the output");
}

// Checks some of the operands after the first one: they hold one number per feature.
static mp_status_t verify_random_per_feature(const mp_op_t *op, const mp_type_t *type,
                                             const int64_t *features) {
  const mp_type_t expected = {
      .kind = MP_TYPE_TENSOR, .dtype = mp_operand_type(op, 0)->dtype, .rank = 1, .dims = features};
  return mp_verify_same_type(op, type, &expected, "a value per feature and what it must be");
}

// The rule of all three batch_norm operations. The first operand, the first result and the last
// operand of the gradient have the full shape; all others hold one number per feature.
mp_status_t mp_verify_batch_norm(const mp_op_t *op) {
  const mp_type_t *operand = mp_operand_type(op, 0);
  int64_t feature = 0;
  MP_RETURN_IF_ERROR(mp_verify_dtype(op, operand, MP_IS_FLOAT, "the operand"));
  MP_RETURN_IF_ERROR(mp_verify_dim(op, MP_ATTR_FEATURE_INDEX, operand->rank, &feature));
  for (uint32_t i = 1; i < op->num_operands; ++i) {
    const mp_type_t *type = mp_operand_type(op, i);
    if (op->code == MP_OP_BATCH_NORM_GRAD && i == 4) {
      MP_RETURN_IF_ERROR(mp_verify_same_type(op, type, operand, "the gradient and the operand"));
    } else {
      MP_RETURN_IF_ERROR(verify_random_per_feature(op, type, &operand->dims[feature]));
    }
  }
  for (uint32_t i = 1; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        verify_random_per_feature(op, mp_result_type(op, i), &operand->dims[feature]));
  }
  return mp_verify_same_type(op, mp_result_type(op, 0), operand, "the result and the operand");
}
