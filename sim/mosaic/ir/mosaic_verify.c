// Checks modules: the structure of all ops, and functions.
#include "sim/mosaic/ir/mosaic_ir.h"

static mp_status_t mosaic_verify_count(const mp_mosaic_op_t *op, const char *what, uint32_t count,
                                       int expected) {
  if (expected < 0 || count == (uint32_t)expected) return NULL;
  return mp_mosaic_op_error(op, MP_INVALID_ARGUMENT, "it has %u %s, not %d", count, what, expected);
}

static mp_status_t mosaic_verify_block(const mp_mosaic_block_t *block);

static mp_status_t mosaic_verify_op(const mp_mosaic_op_t *op) {
  const mp_mosaic_op_info_t *info = mp_mosaic_op_info(op->code);
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "operands", op->num_operands, info->num_operands));
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "results", op->num_results, info->num_results));
  MP_RETURN_IF_ERROR(mosaic_verify_count(op, "regions", op->num_regions, info->num_regions));
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mosaic_verify_block(op->regions[i]));
  return NULL;
}

static mp_status_t mosaic_verify_block(const mp_mosaic_block_t *block) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next)
    MP_RETURN_IF_ERROR(mosaic_verify_op(op));
  return NULL;
}

mp_status_t mp_mosaic_verify(const mp_mosaic_module_t *module) {
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    MP_RETURN_IF_ERROR(mosaic_verify_block(func->body));
  return NULL;
}
