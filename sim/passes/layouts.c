#include "sim/ir/layout.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

typedef struct {
  const mp_value_t *from;
  mp_value_t *to;
} replacement_t;

static mp_status_t layouts_replace(void *context, mp_op_t *op) {
  const replacement_t *replacement = context;
  if (op == replacement->to->op) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i] == replacement->from) op->operands[i] = replacement->to;
  }
  return NULL;
}

typedef struct {
  int64_t to_physical[MP_MAX_RANK], to_logical[MP_MAX_RANK];
  const mp_type_t *type;  // the physical type; NULL for a row-major array, which stays as it is
} order_t;

static mp_status_t layouts_find_order(mp_module_t *module, const mp_attr_t *attrs,
                                      const mp_type_t *type, order_t *out_order) {
  out_order->type = NULL;
  if (!mp_type_is_tensor(type) || type->rank > MP_MAX_RANK) return NULL;
  int64_t minor_to_major[MP_MAX_RANK], dims[MP_MAX_RANK];
  MP_RETURN_IF_ERROR(mp_layout_from_attrs(attrs, type->rank, minor_to_major));
  if (mp_layout_is_row_major(minor_to_major, type->rank)) return NULL;
  for (uint32_t k = 0; k < type->rank; ++k) {
    int64_t logical = mp_layout_logical(minor_to_major, type->rank, k);
    out_order->to_physical[k] = logical;
    out_order->to_logical[logical] = k;
    dims[k] = type->dims[logical];
  }
  return mp_type_tensor(module->arena, type->dtype, dims, type->rank, &out_order->type);
}

static const mp_attr_t *layouts_attrs_of(const mp_attr_t *const *attrs, uint32_t index) {
  return attrs == NULL ? NULL : attrs[index];
}

static mp_status_t layouts_change_parameter(mp_module_t *module, uint32_t index) {
  mp_func_t *main = module->main;
  mp_value_t *argument = &main->body->args[index];
  order_t order;
  MP_RETURN_IF_ERROR(
      layouts_find_order(module, layouts_attrs_of(main->arg_attrs, index), argument->type, &order));
  if (order.type == NULL) return NULL;
  replacement_t replacement = {.from = argument};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_transpose(
      module, main->body->first, argument, order.to_logical, argument->type, &replacement.to));
  argument->type = order.type;
  return mp_block_walk(main->body, layouts_replace, &replacement);
}

// Whether the transpose to memory order undoes the transpose that made `value`.
static bool layouts_undoes(const mp_value_t *value, const order_t *order) {
  if (value->op == NULL || value->op->code != MP_OP_TRANSPOSE) return false;
  const mp_index_list_t permutation = mp_op_ints(value->op, MP_ATTR_PERMUTATION);
  for (uint32_t k = 0; k < permutation.count; ++k) {
    if (permutation.values[order->to_physical[k]] != (int64_t)k) return false;
  }
  return true;
}

static mp_status_t layouts_change_result(mp_module_t *module, uint32_t index) {
  mp_func_t *main = module->main;
  order_t order;
  MP_RETURN_IF_ERROR(layouts_find_order(module, layouts_attrs_of(main->result_attrs, index),
                                        main->result_types[index], &order));
  if (order.type == NULL) return NULL;
  mp_op_t *terminator = mp_block_terminator(main->body);
  mp_value_t *value = terminator->operands[index], *physical = NULL;
  if (layouts_undoes(value, &order)) {
    physical = value->op->operands[0];
  } else {
    MP_RETURN_IF_ERROR(mp_rewrite_insert_transpose(module, terminator, value, order.to_physical,
                                                   order.type, &physical));
  }
  terminator->operands[index] = physical;
  main->result_types[index] = order.type;
  return NULL;
}

mp_status_t mp_pass_layouts(mp_module_t *module) {
  for (uint32_t i = 0; i < module->main->body->num_args; ++i) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(layouts_change_parameter(module, i), "argument %u of main", i));
  }
  for (uint32_t i = 0; i < module->main->num_results; ++i) {
    MP_RETURN_IF_ERROR(
        mp_status_annotate(layouts_change_result(module, i), "result %u of main", i));
  }
  return NULL;
}
