#include "sim/spmd/local/lower_form.h"

#include "sim/base/assert.h"

uint32_t mp_lowerer_num_tensors(const mp_lowerer_t *low) {
  return low->rule->num_operands + low->rule->num_results;
}

const mp_type_t *mp_lowerer_type(const mp_lowerer_t *low, uint32_t tensor) {
  return tensor < low->op->num_operands ? low->op->operands[tensor]->type
                                        : low->op->results[tensor - low->op->num_operands].type;
}

mp_atoms_t *mp_lowerer_list(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor) {
  MP_ASSERT(tensor < mp_lowerer_num_tensors(low) && factor < low->rule->num_factors);
  return &low->lists[(size_t)tensor * low->rule->num_factors + factor];
}

bool mp_lowerer_dim_has(const mp_lowerer_t *low, uint32_t tensor, uint32_t dim, uint32_t factor) {
  const mp_dim_factors_t *entry = &low->rule->tensors[tensor][dim];
  for (uint32_t i = 0; i < entry->count; ++i) {
    if (entry->factors[i] == factor) return true;
  }
  return false;
}

bool mp_lowerer_has_factor(const mp_lowerer_t *low, uint32_t tensor, uint32_t factor) {
  if (low->tensors[tensor] == NULL) return false;
  for (uint32_t d = 0; d < low->tensors[tensor]->rank; ++d) {
    if (mp_lowerer_dim_has(low, tensor, d, factor)) return true;
  }
  return false;
}

mp_status_t mp_lowerer_local_type(const mp_lowerer_t *low, const mp_local_op_t *out,
                                  uint32_t tensor, const mp_type_t **out_type) {
  const mp_boxes_t *boxes = tensor < low->op->num_operands
                                ? out->operands[tensor]
                                : out->results[tensor - low->op->num_operands];
  return mp_placement_local_type(low->arena, mp_lowerer_type(low, tensor), boxes, out_type);
}

static void lower_form_set_attr(const mp_lowerer_t *low, mp_local_op_t *out, mp_attr_name_t name,
                                const mp_attr_t *value) {
  for (uint32_t a = 0; a < low->op->num_attrs; ++a) {
    if (out->attrs[a].name == name) out->attrs[a].value = value;
  }
}

mp_status_t mp_lowerer_set_int(const mp_lowerer_t *low, mp_local_op_t *out, mp_attr_name_t name,
                               int64_t value) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(low->arena, MP_DTYPE_S64, value, &attr));
  lower_form_set_attr(low, out, name, attr);
  return NULL;
}

mp_status_t mp_lowerer_set_ints(const mp_lowerer_t *low, mp_local_op_t *out, mp_attr_name_t name,
                                const int64_t *values, uint32_t count) {
  const mp_attr_t *attr = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_ints(low->arena, values, count, &attr));
  lower_form_set_attr(low, out, name, attr);
  return NULL;
}
