// Operations that their sizes make trivial.
#include "sim/ir/reducer.h"
#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// An op whose result has no elements becomes a constant without elements. Ops that only it needs
// are then dead code, above all calls of foreign functions, which may not support empty arrays.
static mp_status_t trivial_become_constant(mp_module_t *module, mp_op_t *op) {
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_dense(module->arena, op->results[0].type, "", 0, false, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  op->num_regions = 0;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, NULL, 0));
  return mp_rewrite_become(module, op, MP_OP_CONSTANT, &attr, 1);
}

// Whether the op reduces only dimensions of one element, by one op on its own element type.
static bool trivial_reduces_nothing(const mp_op_t *op) {
  if (op->code != MP_OP_REDUCE || op->num_operands != 2) return false;
  const mp_type_t *in = op->operands[0]->type, *out = op->results[0].type;
  int64_t num_in = 0, num_out = 0;
  if (!mp_type_is_static(in) || !mp_type_num_elements(in, &num_in) ||
      !mp_type_num_elements(out, &num_out) || num_in != num_out) {
    return false;
  }
  const mp_block_t *region = op->regions[0];
  return in->dtype == out->dtype && in->dtype == op->operands[1]->type->dtype &&
         in->dtype == region->args[0].type->dtype &&
         mp_reduce_kind_opcode(mp_reducer_kind(region)) != MP_OP_COUNT;
}

// Such a reduction applies its op to the start value and the only element: JAX checks the
// components of index vectors this way, and there is often only one.
static mp_status_t trivial_become_binary(mp_module_t *module, mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  const mp_opcode_t code = mp_reduce_kind_opcode(mp_reducer_kind(op->regions[0]));
  mp_value_t *pair[2] = {NULL, NULL};
  MP_RETURN_IF_ERROR(mp_rewrite_insert_copies(module, op, op->operands[1], type, &pair[0]));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert(module, op, MP_OP_RESHAPE, &op->operands[0], 1, type, &pair[1]));
  op->num_regions = 0;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, pair, 2));
  return mp_rewrite_become(module, op, code, NULL, 0);
}

static mp_status_t trivial_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (op->code == MP_OP_CONSTANT || op->num_results != 1 || op->num_operands == 0) return NULL;
  if (mp_op_info(op->code)->role != MP_OP_ROLE_KERNEL || mp_op_has_effect(op)) return NULL;
  const mp_type_t *type = op->results[0].type;
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_is_static(type)) return NULL;
  if (!mp_type_num_elements(type, &count)) return NULL;
  if (count == 0) return trivial_become_constant(module, op);
  return trivial_reduces_nothing(op) ? trivial_become_binary(module, op) : NULL;
}

mp_status_t mp_pass_trivial(mp_module_t *module) {
  return mp_module_walk(module, trivial_visit, module);
}
