// The entry points of the reader of bytecode, and limits on the size of the result.
#include "sim/mosaic/read/mosaic_bytecode.h"

// As those of sim/readers/bytecode: an op of a few bytes becomes some hundred bytes.
static size_t mosaic_bytecode_memory_limit(size_t size) {
  const size_t factor = 512, constant = (size_t)16 << 20;
  return size > (SIZE_MAX - constant) / factor ? SIZE_MAX : size * factor + constant;
}

static mp_status_t mosaic_bytecode_begin(mp_bc_reader_t *r, const void *bytes, size_t size) {
  *r = (mp_bc_reader_t){.decode_attr = mp_mosaic_decode_attr,
                        .decode_type = mp_mosaic_decode_type,
                        .max_weight = (uint64_t)size * 16 + (1 << 16),
                        .max_program_weight = (uint64_t)size * 64 + (1 << 20)};
  r->whole.start = r->whole.at = bytes;
  r->whole.end = r->whole.start + size;
  MP_RETURN_IF_ERROR(mp_arena_create(&r->scratch));
  mp_arena_set_limit(r->scratch, mosaic_bytecode_memory_limit(size));
  return NULL;
}

mp_status_t mp_mosaic_read_bytecode(const void *bytes, size_t size,
                                    mp_mosaic_module_t **out_module) {
  mp_bc_reader_t r;
  mp_mosaic_module_t *module = NULL;
  mp_status_t status = mosaic_bytecode_begin(&r, bytes, size);
  if (status != NULL) return status;
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

mp_status_t mp_mosaic_read_locations(const void *bytes, size_t size, mp_mosaic_module_t *module) {
  mp_bc_reader_t r;
  const mp_mosaic_attr_t *dict = NULL, *locs = NULL;
  mp_status_t status = mosaic_bytecode_begin(&r, bytes, size);
  if (status != NULL) return status;
  r.decode_attr = mp_mosaic_decode_attr_or_loc;
  r.arena = module->arena;  // which keeps the locations
  mp_arena_set_limit(r.arena, mp_arena_bytes(r.arena) + mosaic_bytecode_memory_limit(size));
  MP_GOTO_IF_ERROR(status, mp_bc_read_sections(&r), exit);
  MP_GOTO_IF_ERROR(status, mp_mosaic_read_module_attrs(&r, &dict), exit);
  if (dict != NULL) locs = mp_mosaic_attr(dict->list.items, dict->list.count, "tpu.locs");
  if (locs != NULL && locs->kind == MP_MOSAIC_ARRAY) mp_mosaic_set_locations(module, locs);
exit:
  mp_arena_set_limit(r.arena, 0);
  mp_arena_release(r.scratch);
  return status;
}
