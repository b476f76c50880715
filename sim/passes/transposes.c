// Transposes of transposes. Calls of functions with column-major matrices are surrounded by two of
// them (sim/plan/call_layouts.h), frontends surround batched operations with them, and every one
// moves a whole array. A transpose is composed with those before it, also through reshapes that
// only add or remove dimensions of size 1; if the result leaves all other dimensions in order, it
// is a reshape, which costs nothing.
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// The dimensions of an array that are not of size 1.
typedef struct {
  uint32_t count;
  int64_t dims[MP_MAX_RANK];
} order_t;

static bool transposes_type_fits(const mp_type_t *type) {
  return mp_type_is_static(type) && type->rank <= MP_MAX_RANK;
}

static void transposes_long_dims(const mp_type_t *type, order_t *out) {
  out->count = 0;
  for (uint32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] != 1) out->dims[out->count++] = i;
  }
}

// The long dimensions of the operand, in the order in which the transpose `op` gives them.
static void transposes_order(const mp_op_t *op, order_t *out) {
  const mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
  const mp_type_t *type = op->operands[0]->type;
  out->count = 0;
  for (uint32_t i = 0; i < permutation.count; ++i) {
    if (type->dims[permutation.values[i]] != 1) out->dims[out->count++] = permutation.values[i];
  }
}

static bool transposes_is_in_order(const order_t *order) {
  for (uint32_t i = 1; i < order->count; ++i) {
    if (order->dims[i] < order->dims[i - 1]) return false;
  }
  return true;
}

// Whether the long dimensions of the op's result are those of its operand, in the same order, and
// the elements too. If so, `order` refers to the dimensions of the operand.
static bool transposes_pass_reshape(const mp_op_t *op, order_t *order) {
  const mp_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  if (op->code != MP_OP_RESHAPE || !transposes_type_fits(from)) return false;
  order_t before, after;
  transposes_long_dims(from, &before);
  transposes_long_dims(to, &after);
  if (before.count != after.count) return false;
  int64_t old_of[MP_MAX_RANK] = {0};
  for (uint32_t i = 0; i < before.count; ++i) {
    if (from->dims[before.dims[i]] != to->dims[after.dims[i]]) return false;
    old_of[after.dims[i]] = before.dims[i];
  }
  for (uint32_t i = 0; i < order->count; ++i) order->dims[i] = old_of[order->dims[i]];
  return true;
}

// Follows the transposes before `value` to their first operand. Afterwards `order` refers to the
// dimensions of that operand; without a transpose it does not change.
static mp_value_t *transposes_find_start(mp_value_t *value, order_t *order) {
  mp_value_t *start = value;
  order_t seen = *order;
  for (const mp_op_t *op = value->op; op != NULL; op = value->op) {
    if (op->code == MP_OP_TRANSPOSE && transposes_type_fits(op->operands[0]->type)) {
      const mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
      for (uint32_t i = 0; i < seen.count; ++i) seen.dims[i] = permutation.values[seen.dims[i]];
      start = op->operands[0];
      *order = seen;
    } else if (!transposes_pass_reshape(op, &seen)) {
      break;
    }
    value = op->operands[0];
  }
  return start;
}

// Inserts the transpose of `start` without its short dimensions, before `position`.
static mp_status_t transposes_insert(mp_module_t *module, mp_op_t *position, mp_value_t *start,
                                     const order_t *order, mp_value_t **out_value) {
  order_t before;
  transposes_long_dims(start->type, &before);
  int64_t old[MP_MAX_RANK], now[MP_MAX_RANK], place[MP_MAX_RANK] = {0}, permutation[MP_MAX_RANK];
  for (uint32_t i = 0; i < before.count; ++i) {
    old[i] = start->type->dims[before.dims[i]];
    place[before.dims[i]] = i;
  }
  for (uint32_t i = 0; i < order->count; ++i) {
    now[i] = start->type->dims[order->dims[i]];
    permutation[i] = place[order->dims[i]];
  }
  const mp_type_t *old_type = NULL, *now_type = NULL;
  const mp_dtype_t dtype = start->type->dtype;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, old, before.count, &old_type));
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, dtype, now, order->count, &now_type));
  mp_value_t *flat = NULL;
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert(module, position, MP_OP_RESHAPE, &start, 1, old_type, &flat));
  return mp_rewrite_insert_transpose(module, position, flat, permutation, now_type, out_value);
}

static mp_status_t transposes_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (op->code != MP_OP_TRANSPOSE || !transposes_type_fits(op->operands[0]->type)) return NULL;
  order_t order;
  transposes_order(op, &order);
  mp_value_t *operand = op->operands[0], *start = transposes_find_start(operand, &order);
  if (!transposes_is_in_order(&order)) {
    if (start == operand) return NULL;
    MP_RETURN_IF_ERROR(transposes_insert(module, op, start, &order, &start));
  }
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &start, 1));
  return mp_rewrite_become(module, op, MP_OP_RESHAPE, NULL, 0);
}

mp_status_t mp_pass_transposes(mp_module_t *module) {
  return mp_module_walk(module, transposes_visit, module);
}

// A broadcast whose result has the elements of its operand, in the same order, is a reshape.
static mp_status_t transposes_visit_broadcast(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  const mp_op_t *outer = op->parent->parent_op;
  if (op->code != MP_OP_BROADCAST_IN_DIM || (outer != NULL && outer->code == MP_OP_FUSION)) {
    return NULL;
  }
  const mp_type_t *from = op->operands[0]->type, *to = op->results[0].type;
  if (!transposes_type_fits(from) || !transposes_type_fits(to)) return NULL;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  order_t before, after;
  transposes_long_dims(from, &before);
  transposes_long_dims(to, &after);
  if (before.count != after.count) return NULL;
  for (uint32_t i = 0; i < before.count; ++i) {
    if (dims.values[before.dims[i]] != after.dims[i]) return NULL;
  }
  return mp_rewrite_become(module, op, MP_OP_RESHAPE, NULL, 0);
}

mp_status_t mp_pass_unit_broadcasts(mp_module_t *module) {
  return mp_module_walk(module, transposes_visit_broadcast, module);
}
