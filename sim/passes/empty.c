// Operations whose result has no elements become constants without elements. What only they need is
// then dead code: above all calls of foreign functions, which need not be able to work on nothing.
#include "sim/passes/passes.h"
#include "sim/passes/rewrite.h"

static mp_status_t empty_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (op->code == MP_OP_CONSTANT || op->num_results != 1 || op->num_operands == 0) return NULL;
  if (mp_op_info(op->code)->role != MP_OP_ROLE_KERNEL || mp_op_has_effect(op)) return NULL;
  const mp_type_t *type = op->results[0].type;
  int64_t count = 0;
  if (!mp_type_is_tensor(type) || !mp_type_is_static(type)) return NULL;
  if (!mp_type_num_elements(type, &count) || count != 0) return NULL;
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_dense(module->arena, type, "", 0, false, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  op->num_regions = 0;
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, NULL, 0));
  return mp_rewrite_become(module, op, MP_OP_CONSTANT, &attr, 1);
}

mp_status_t mp_pass_empty(mp_module_t *module) {
  return mp_module_walk(module, empty_visit, module);
}
