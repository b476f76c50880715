#include "sim/plan/call_layouts.h"

#include "sim/ir/layout.h"
#include "sim/kernels/table/custom_call.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/passes/rewrite/rewrite.h"
#include "sim/plan/plan.h"

bool mp_plan_is_sink(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL && op->num_results == 0 &&
         mp_str_is(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), "dce_sink");
}

bool mp_plan_is_foreign(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL && !mp_plan_is_collective(op) && !mp_plan_is_sink(op) &&
         !mp_mosaic_is_call(op) && !mp_call_has_kernel(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME));
}

// ---- layouts ----

// The layout of a value. Dimension k of the array in memory is dimension to_memory[k] of the
// program's array, and to_program is the inverse.
typedef struct {
  int64_t to_memory[MP_MAX_RANK], to_program[MP_MAX_RANK];
  const mp_type_t *type;  // of the array in memory; NULL: the program's, in the same order
} order_t;

static mp_status_t call_layouts_find(mp_module_t *module, const mp_op_t *op, mp_attr_name_t name,
                                     uint32_t index, const mp_type_t *type, order_t *out_order) {
  const mp_attr_t *layouts = mp_op_attr(op, name);
  out_order->type = NULL;
  if (!mp_type_is_tensor(type) || layouts == NULL || index >= layouts->u.array.count) return NULL;
  const int64_t *minor_to_major = layouts->u.array.items[index]->u.ints.values;
  if (mp_layout_is_row_major(minor_to_major, type->rank)) return NULL;
  int64_t dims[MP_MAX_RANK];
  for (uint32_t k = 0; k < type->rank; ++k) {
    const int64_t dim = mp_layout_logical(minor_to_major, type->rank, k);
    out_order->to_memory[k] = dim;
    out_order->to_program[dim] = k;
    dims[k] = type->dims[dim];
  }
  return mp_type_tensor(module->arena, type->dtype, dims, type->rank, &out_order->type);
}

static mp_status_t call_layouts_change_operand(mp_module_t *module, mp_op_t *op, uint32_t index) {
  order_t order;
  mp_value_t *value = op->operands[index];
  MP_RETURN_IF_ERROR(
      call_layouts_find(module, op, MP_ATTR_OPERAND_LAYOUTS, index, value->type, &order));
  if (order.type == NULL) return NULL;
  return mp_rewrite_insert_transpose(module, op, value, order.to_memory, order.type,
                                     &op->operands[index]);
}

typedef struct {
  const mp_op_t *op;
  mp_value_t **results;  // [op->num_results] the replacement of each; NULL: it stays
} change_t;

static mp_status_t call_layouts_replace(void *context, mp_op_t *op) {
  const change_t *change = context;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *value = op->operands[i];
    if (value->op != change->op || change->results[value->index] == NULL) continue;
    if (op != change->results[value->index]->op) op->operands[i] = change->results[value->index];
  }
  return NULL;
}

static mp_status_t call_layouts_change_results(mp_module_t *module, mp_op_t *op) {
  change_t change = {op, MP_ARENA_ARRAY(module->arena, mp_value_t *, op->num_results)};
  MP_RETURN_IF_NULL(change.results);
  bool is_changed = false;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    order_t order;
    const mp_type_t *type = op->results[i].type;
    MP_RETURN_IF_ERROR(call_layouts_find(module, op, MP_ATTR_RESULT_LAYOUTS, i, type, &order));
    if (order.type == NULL) continue;
    op->results[i].type = order.type;
    MP_RETURN_IF_ERROR(mp_rewrite_insert_transpose(module, op->next, &op->results[i],
                                                   order.to_program, type, &change.results[i]));
    is_changed = true;
  }
  return is_changed ? mp_module_walk(module, call_layouts_replace, &change) : NULL;
}

static mp_status_t call_layouts_change(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (!mp_plan_is_foreign(op)) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    MP_RETURN_IF_ERROR(call_layouts_change_operand(module, op, i));
  }
  return call_layouts_change_results(module, op);
}

mp_status_t mp_plan_lay_out_calls(mp_module_t *module) {
  return mp_module_walk(module, call_layouts_change, module);
}
