// That no function calls itself, through others or not: what runs kernels would not end.
#include "sim/mosaic/ir/mosaic_verify.h"

// Calls within calls that are followed. No kernel comes near it.
enum { MAX_DEPTH = 32 };

static mp_status_t mosaic_verify_calls_block(const mp_mosaic_module_t *module,
                                             const mp_mosaic_block_t *block, int depth,
                                             uint64_t *room);

static mp_status_t mosaic_verify_calls_op(const mp_mosaic_module_t *module,
                                          const mp_mosaic_op_t *op, int depth, uint64_t *room) {
  // Functions that call the next one twice expand to a module of exponential size.
  MP_MOSAIC_CHECK(op, *room > 0, "its calls expand to too many ops");
  --*room;
  for (uint32_t i = 0; i < op->num_regions; ++i)
    MP_RETURN_IF_ERROR(mosaic_verify_calls_block(module, op->regions[i], depth, room));
  if (op->code != MP_MOSAIC_CALL) return NULL;
  MP_MOSAIC_CHECK(op, depth < MAX_DEPTH, "functions call each other more than %d deep", MAX_DEPTH);
  const mp_mosaic_func_t *callee =
      mp_mosaic_find_func(module, mp_mosaic_op_attr(op, "callee")->str);
  return mosaic_verify_calls_block(module, callee->body, depth + 1, room);
}

static mp_status_t mosaic_verify_calls_block(const mp_mosaic_module_t *module,
                                             const mp_mosaic_block_t *block, int depth,
                                             uint64_t *room) {
  for (const mp_mosaic_op_t *op = block->first; op != NULL; op = op->next)
    MP_RETURN_IF_ERROR(mosaic_verify_calls_op(module, op, depth, room));
  return NULL;
}

mp_status_t mp_mosaic_check_calls(const mp_mosaic_module_t *module) {
  uint64_t room = 1 << 22;
  for (const mp_mosaic_func_t *func = module->funcs.first; func != NULL; func = func->next)
    MP_RETURN_IF_ERROR(mosaic_verify_calls_block(module, func->body, 0, &room));
  return NULL;
}
