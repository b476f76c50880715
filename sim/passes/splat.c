#include "sim/passes/passes.h"
#include "sim/passes/rewrite/rewrite.h"

// Smaller constants stay: they are expanded once, at planning, which costs less than a
// broadcast_in_dim in every run.
enum { MP_SPLAT_MIN_BYTES = 64 * 1024 };

static mp_status_t splat_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  if (op->code != MP_OP_CONSTANT) return NULL;
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  const mp_type_t *type = op->results[0].type;
  int64_t bytes = 0;
  if (value == NULL || value->kind != MP_KIND_DENSE || !value->u.dense.splat) return NULL;
  if (!mp_type_is_static(type) || type->rank == 0) return NULL;
  if (mp_type_num_bytes(type, &bytes) && bytes <= MP_SPLAT_MIN_BYTES) return NULL;

  const mp_type_t *scalar_type = NULL;
  mp_value_t *scalar = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, type->dtype, NULL, 0, &scalar_type));
  MP_RETURN_IF_ERROR(
      mp_rewrite_insert_constant(module, op, scalar_type, value->u.dense.data, &scalar));
  mp_named_attr_t dims_attr;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_BROADCAST_DIMENSIONS, NULL, 0, &dims_attr));
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &scalar, 1));
  return mp_rewrite_become(module, op, MP_OP_BROADCAST_IN_DIM, &dims_attr, 1);
}

mp_status_t mp_pass_splat(mp_module_t *module) {
  return mp_module_walk(module, splat_visit, module);
}
