// Rules of ops that compute each element by itself.
#include "sim/spmd/rules/rule_builder.h"
#include "sim/spmd/sharding/annotations.h"

// Every tensor has the same factors, one per dimension of the first result; scalars have none.
mp_status_t mp_rule_make_pointwise(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *shape = op->results[0].type;
  for (uint32_t t = 0; t < builder->num_tensors; ++t) {
    const mp_type_t *type = mp_rule_type(builder, t);
    if (type->rank != 0 && !mp_type_same_shape(type, shape)) builder->has_no_rule = true;
  }
  if (builder->has_no_rule) return NULL;
  for (uint32_t d = 0; d < shape->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, shape->dims[d], MP_FACTOR_PASS, false, d));
  }
  builder->is_elementwise = mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE) || mp_is_placement_op(op);
  if (builder->is_elementwise) builder->priority = MP_RULE_PASS_THROUGH;
  return NULL;
}

// Every dimension of the result can be sharded by itself.
mp_status_t mp_rule_make_generator(mp_rule_builder_t *builder) {
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < out->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, out->dims[d], MP_FACTOR_PASS, false, d));
  }
  return NULL;
}
