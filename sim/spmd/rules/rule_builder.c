#include "sim/spmd/rules/rule_builder.h"

#include <string.h>

#include "sim/base/assert.h"

const mp_type_t *mp_rule_type(const mp_rule_builder_t *builder, uint32_t tensor) {
  MP_ASSERT(tensor < builder->op->num_operands + builder->op->num_results);
  const mp_op_t *op = builder->op;
  return tensor < op->num_operands ? op->operands[tensor]->type
                                   : op->results[tensor - op->num_operands].type;
}

uint32_t mp_rule_rank(const mp_rule_builder_t *builder, uint32_t tensor) {
  const mp_type_t *type = mp_rule_type(builder, tensor);
  return mp_type_is_tensor(type) ? type->rank : 0;
}

uint32_t mp_rule_result(const mp_rule_builder_t *builder, uint32_t result) {
  MP_ASSERT(result < builder->op->num_results);
  return builder->op->num_operands + result;
}

mp_status_t mp_rule_builder_start(mp_arena_t *arena, const mp_op_t *op,
                                  mp_rule_builder_t *out_builder) {
  mp_rule_builder_t builder = {
      .arena = arena, .op = op, .num_tensors = op->num_operands + op->num_results};
  builder.tensors = MP_ARENA_ARRAY(arena, mp_dim_factors_t *, builder.num_tensors);
  MP_RETURN_IF_NULL(builder.tensors);
  for (uint32_t t = 0; t < builder.num_tensors; ++t) {
    builder.tensors[t] = MP_ARENA_ARRAY(arena, mp_dim_factors_t, mp_rule_rank(&builder, t));
    MP_RETURN_IF_NULL(builder.tensors[t]);
  }
  *out_builder = builder;
  return NULL;
}

mp_status_t mp_rule_builder_finish(const mp_rule_builder_t *builder, const mp_rule_t **out_rule) {
  mp_rule_t *rule = MP_ARENA_NEW(builder->arena, mp_rule_t);
  MP_RETURN_IF_NULL(rule);
  *rule = (mp_rule_t){.priority = builder->priority,
                      .is_elementwise = builder->is_elementwise,
                      .num_factors = builder->factors.count,
                      .factors = builder->factors.items,
                      .num_operands = builder->op->num_operands,
                      .num_results = builder->op->num_results,
                      .tensors = (const mp_dim_factors_t *const *)builder->tensors};
  *out_rule = rule;
  return NULL;
}

mp_status_t mp_rule_add_factor(mp_rule_builder_t *builder, int64_t size, mp_factor_kind_t kind,
                               bool is_blocked, uint16_t *out_factor) {
  if (builder->factors.count == UINT16_MAX) {
    return mp_op_error(builder->op, MP_RESOURCE_EXHAUSTED, "too many dimensions to shard");
  }
  MP_RETURN_IF_ERROR(
      MP_ARRAY_PUSH(builder->arena, &builder->factors, (mp_factor_t){size, kind, is_blocked}));
  *out_factor = (uint16_t)(builder->factors.count - 1);
  return NULL;
}

mp_status_t mp_rule_put(mp_rule_builder_t *builder, uint32_t tensor, int64_t dim, uint16_t factor) {
  MP_ASSERT(tensor < builder->num_tensors && factor < builder->factors.count);
  MP_ASSERT(dim >= 0 && dim < (int64_t)mp_rule_rank(builder, tensor));
  mp_dim_factors_t *entry = &builder->tensors[tensor][dim];
  if (entry->count != 0 && builder->factors.items[factor].size == 1) return NULL;
  uint16_t *factors = MP_ARENA_ARRAY(builder->arena, uint16_t, entry->count + 1);
  MP_RETURN_IF_NULL(factors);
  if (entry->count != 0) memcpy(factors, entry->factors, entry->count * sizeof(*factors));
  factors[entry->count] = factor;
  entry->factors = factors;
  ++entry->count;
  return NULL;
}

mp_status_t mp_rule_add(mp_rule_builder_t *builder, int64_t size, mp_factor_kind_t kind,
                        const mp_rule_place_t *places, uint32_t num_places) {
  uint16_t factor = 0;
  MP_RETURN_IF_ERROR(mp_rule_add_factor(builder, size, kind, false, &factor));
  for (uint32_t i = 0; i < num_places; ++i) {
    if (places[i].dim < 0) continue;
    MP_RETURN_IF_ERROR(mp_rule_put(builder, places[i].tensor, places[i].dim, factor));
  }
  return NULL;
}

mp_status_t mp_rule_add_range(mp_rule_builder_t *builder, int64_t size, mp_factor_kind_t kind,
                              bool is_blocked, uint32_t first, uint32_t last, uint32_t dim) {
  uint16_t factor = 0;
  MP_RETURN_IF_ERROR(mp_rule_add_factor(builder, size, kind, is_blocked, &factor));
  for (uint32_t t = first; t < last; ++t) {
    if (dim < mp_rule_rank(builder, t)) MP_RETURN_IF_ERROR(mp_rule_put(builder, t, dim, factor));
  }
  return NULL;
}

mp_status_t mp_rule_add_all(mp_rule_builder_t *builder, int64_t size, mp_factor_kind_t kind,
                            bool is_blocked, uint32_t dim) {
  return mp_rule_add_range(builder, size, kind, is_blocked, 0, builder->num_tensors, dim);
}
