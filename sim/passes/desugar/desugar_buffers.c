// Buffers: values that stand for memory (memref), and memory that holds nothing.
//
// A buffer has one user after the other, each of which changes it in place and gives it back as a
// result. So it is the same as the array of its elements, which the planner keeps in place where it
// can.
#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

static mp_status_t desugar_buffers_become_arrays(mp_module_t *module, mp_value_t *values,
                                                 uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const mp_type_t *type = values[i].type;
    if (type->kind != MP_TYPE_BUFFER) continue;
    MP_RETURN_IF_ERROR(
        mp_type_tensor(module->arena, type->dtype, type->dims, type->rank, &values[i].type));
  }
  return NULL;
}

static mp_status_t desugar_buffers_visit(void *context, mp_op_t *op) {
  mp_module_t *module = context;
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    mp_block_t *block = op->regions[r];
    MP_RETURN_IF_ERROR(desugar_buffers_become_arrays(module, block->args, block->num_args));
  }
  return desugar_buffers_become_arrays(module, op->results, op->num_results);
}

mp_status_t mp_desugar_buffers(mp_module_t *module) {
  for (mp_func_t *func = module->funcs.first; func != NULL; func = func->next) {
    if (func->body == NULL) continue;
    MP_RETURN_IF_ERROR(
        desugar_buffers_become_arrays(module, func->body->args, func->body->num_args));
  }
  return mp_module_walk(module, desugar_buffers_visit, module);
}

// Memory that nothing has written holds zeros here, as in JAX on CPUs.
static mp_status_t desugar_buffers_allocate(mp_module_t *module, mp_op_t *op) {
  const mp_type_t *type = op->results[0].type;
  mp_value_t *zero = NULL;
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_rewrite_insert_zero(module, op, type->dtype, &zero));
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &zero, 1));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_BROADCAST_DIMENSIONS, NULL, 0, &attr));
  return mp_rewrite_become(module, op, MP_OP_BROADCAST_IN_DIM, &attr, 1);
}

mp_status_t mp_desugar_buffer_call(mp_module_t *module, mp_op_t *op, bool *out_is_one) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  const bool makes = mp_str_is(target, "AllocateBuffer") || mp_str_is(target, "CreateBuffer");
  *out_is_one = makes || mp_str_is(target, "Pin") || mp_str_is(target, "Unpin");
  if (!*out_is_one) return NULL;
  if (op->num_operands != (makes ? 0 : 1) || op->num_results != 1 || op->num_regions != 0 ||
      !mp_type_is_static(op->results[0].type) ||
      (!makes && !mp_type_equal(op->operands[0]->type, op->results[0].type))) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "'%.*s' %s", MP_STR_ARG(target),
                       makes ? "makes one array of nothing" : "takes one array and returns it");
  }
  return makes ? desugar_buffers_allocate(module, op)
               : mp_rewrite_become(module, op, MP_OP_RESHAPE, NULL, 0);
}
