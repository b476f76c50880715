// Scalars that are made of constants alone are computed here, by the loops that would compute them
// when the program runs, and a choice by a constant is what it chooses. Frontends leave both
// behind: a variance divides by n - 0 and asks whether that is more than nothing.
#include "sim/fuse/fuse_graph.h"
#include "sim/kernels/elementwise/elementwise.h"
#include "sim/passes/rewrite/rewrite.h"

// The largest element.
enum { ELEMENT_BYTES = 16 };

// The element that all elements of a constant are; NULL for what is no constant.
static const void *fuse_constants_element(const mp_value_t *value) {
  if (value->op == NULL || value->op->code != MP_OP_CONSTANT) return NULL;
  return mp_op_splat(value->op);
}

// Makes the op a constant if its one element comes from constants.
static mp_status_t fuse_constants_compute(mp_module_t *module, mp_op_t *op) {
  const void *in[MP_EW_MAX_INPUTS];
  const mp_type_t *type = op->results[0].type;
  int64_t count = 0;
  if (op->num_operands > MP_EW_MAX_INPUTS || op->num_operands == 0 ||
      !mp_type_num_elements(type, &count) || count != 1) {
    return NULL;
  }
  for (uint32_t k = 0; k < op->num_operands; ++k) {
    in[k] = fuse_constants_element(op->operands[k]);
    if (in[k] == NULL) return NULL;
  }
  mp_ew_t ew;
  MP_RETURN_IF_ERROR(mp_ew_bind(op, &ew));
  _Alignas(16) char element[ELEMENT_BYTES] = {0};
  mp_ew_run(&ew, 1, in, element);
  const mp_attr_t *value = NULL;
  MP_RETURN_IF_ERROR(
      mp_attr_make_dense(module->arena, type, element, mp_dtype_size(type->dtype), true, &value));
  const mp_named_attr_t attr = mp_rewrite_attr(MP_ATTR_VALUE, value);
  MP_RETURN_IF_ERROR(mp_rewrite_become(module, op, MP_OP_CONSTANT, &attr, 1));
  return mp_rewrite_set_operands(module, op, NULL, 0);
}

// select(constant, x, y) is x or y, which it becomes a reshape of that changes nothing.
static mp_status_t fuse_constants_choose(mp_module_t *module, mp_op_t *op) {
  const uint8_t *which = fuse_constants_element(op->operands[0]);
  if (which == NULL) return NULL;
  mp_value_t *chosen = op->operands[*which != 0 ? 1 : 2];
  MP_RETURN_IF_ERROR(mp_rewrite_become(module, op, MP_OP_RESHAPE, NULL, 0));
  return mp_rewrite_set_operands(module, op, &chosen, 1);
}

mp_status_t mp_fuse_constants(mp_module_t *module, mp_block_t *block) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    if (!mp_op_has(op, MP_OP_TRAIT_ELEMENTWISE)) continue;
    MP_RETURN_IF_ERROR(fuse_constants_compute(module, op));
    if (op->code == MP_OP_SELECT) MP_RETURN_IF_ERROR(fuse_constants_choose(module, op));
  }
  return NULL;
}
