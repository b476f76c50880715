// The order in which XLA lists the ops of a computation: depth first from unused values (and those
// that the block returns), operands before their users, the first operand first. If two shardings
// meet in one op, that of the earlier item often wins, so the order changes the cost.
#include "sim/spmd/propagation/propagate_parts.h"

typedef enum { MP_NOT_SEEN, MP_ON_STACK, MP_LISTED } state_t;

typedef struct {
  mp_propagator_t *p;
  const mp_block_t *block;
  uint8_t *states;  // [ops]: state_t, by op id
  MP_ARRAY(const mp_op_t *) stack;
  const mp_op_t **listed;
  uint32_t num_listed;
} order_t;

static mp_status_t propagate_order_push(order_t *order, const mp_value_t *value) {
  const mp_op_t *op = value->op;
  if (op == NULL || op->parent != order->block || order->states[op->id] != MP_NOT_SEEN) return NULL;
  return MP_ARRAY_PUSH(order->p->arena, &order->stack, op);
}

// Pushes the values that the op reads, the last one first: values that a loop or a branch reads
// from outside of its regions come after its operands.
static mp_status_t propagate_order_push_operands(order_t *order, const mp_op_t *op) {
  mp_value_t **captures = NULL;
  uint32_t count = 0;
  if (mp_op_has(op, MP_OP_TRAIT_FLOW))
    MP_RETURN_IF_ERROR(mp_op_captures(op, order->p->arena, &captures, &count));
  for (uint32_t i = count; i-- > 0;) MP_RETURN_IF_ERROR(propagate_order_push(order, captures[i]));
  for (uint32_t i = op->num_operands; i-- > 0;) {
    MP_RETURN_IF_ERROR(propagate_order_push(order, op->operands[i]));
  }
  return NULL;
}

static mp_status_t propagate_order_visit(order_t *order, const mp_op_t *root) {
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(order->p->arena, &order->stack, root));
  while (order->stack.count != 0) {
    const mp_op_t *op = order->stack.items[order->stack.count - 1];
    uint8_t *state = &order->states[op->id];
    if (*state == MP_NOT_SEEN) {
      *state = MP_ON_STACK;
      MP_RETURN_IF_ERROR(propagate_order_push_operands(order, op));
      continue;
    }
    --order->stack.count;
    if (*state == MP_ON_STACK) order->listed[order->num_listed++] = op;
    *state = MP_LISTED;
  }
  return NULL;
}

static bool propagate_order_is_read(const mp_propagator_t *p, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (p->uses[op->results[i].id] != 0) return true;
  }
  return false;
}

mp_status_t mp_propagate_order(mp_propagator_t *p, const mp_block_t *block,
                               const mp_op_t ***out_ops, uint32_t *out_count) {
  order_t order = {.p = p, .block = block, .states = p->states};
  uint32_t count = 0;
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) ++count;
  order.listed = MP_ARENA_ARRAY(p->arena, const mp_op_t *, count);
  MP_RETURN_IF_NULL(order.listed);
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (!p->options->is_as_in_xla) {
      order.listed[order.num_listed++] = op;
    } else if (!propagate_order_is_read(p, op) && p->states[op->id] == MP_NOT_SEEN) {
      MP_RETURN_IF_ERROR(propagate_order_visit(&order, op));
    }
  }
  *out_ops = order.listed;
  *out_count = order.num_listed;
  return NULL;
}
