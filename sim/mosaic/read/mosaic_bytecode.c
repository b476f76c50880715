// The entry point of the reader of bytecode, and limits on the size of the result.
#include "sim/mosaic/read/mosaic_bytecode.h"

// As those of sim/readers/bytecode: an op of a few bytes becomes some hundred bytes.
static size_t mosaic_bytecode_memory_limit(size_t size) {
  const size_t factor = 512, constant = (size_t)16 << 20;
  return size > (SIZE_MAX - constant) / factor ? SIZE_MAX : size * factor + constant;
}

mp_status_t mp_mosaic_read_bytecode(const void *bytes, size_t size,
                                    mp_mosaic_module_t **out_module) {
  mp_bc_reader_t r = {.decode_attr = mp_mosaic_decode_attr,
                      .decode_type = mp_mosaic_decode_type,
                      .max_weight = (uint64_t)size * 16 + (1 << 16),
                      .max_program_weight = (uint64_t)size * 64 + (1 << 20)};
  mp_mosaic_module_t *module = NULL;
  r.whole.start = r.whole.at = bytes;
  r.whole.end = r.whole.start + size;
  mp_status_t status = mp_arena_create(&r.scratch);
  if (status != NULL) return status;
  mp_arena_set_limit(r.scratch, mosaic_bytecode_memory_limit(size));
  MP_GOTO_IF_ERROR(status, mp_mosaic_module_create(&module), exit);
  r.arena = module->arena;
  mp_arena_set_limit(r.arena, mosaic_bytecode_memory_limit(size));
  MP_GOTO_IF_ERROR(status, mp_bc_read_sections(&r), exit);
  MP_GOTO_IF_ERROR(status, mp_mosaic_read_ir(&r, module), exit);
  mp_arena_set_limit(r.arena, 0);
  *out_module = module;
  module = NULL;
exit:
  mp_mosaic_module_release(module);
  mp_arena_release(r.scratch);
  return status;
}
