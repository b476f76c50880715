#include "sim/readers/bytecode/bytecode.h"

#include "sim/readers/bytecode/bytecode_reader.h"

// The memory that a program of `size` bytes may claim. The factor allows for an operation of a few
// bytes, with attributes that it shares with others, becoming some hundred bytes of IR; the
// constant lets small programs have large tables.
static size_t bytecode_memory_limit(size_t size) {
  const size_t factor = 512, constant = (size_t)16 << 20;
  return size > (SIZE_MAX - constant) / factor ? SIZE_MAX : size * factor + constant;
}

static mp_status_t bytecode_read_program(mp_bc_reader_t *r) {
  MP_RETURN_IF_ERROR(mp_bc_read_sections(r));
  MP_RETURN_IF_ERROR(mp_bc_read_ir(r));
  MP_RETURN_IF_ERROR(mp_bc_mesh_check(r));
  r->module->main = mp_module_find_func(r->module, MP_STR("main"));
  if (r->module->main != NULL) return NULL;
  return mp_status_make(MP_INVALID_ARGUMENT, "bytecode: the program has no function 'main'");
}

mp_status_t mp_read_bytecode(const void *data, size_t size, mp_module_t **out_module) {
  static const uint8_t nothing[1];
  mp_bc_reader_t r = {.decode_attr = mp_bc_decode_attr,
                      .decode_type = mp_bc_decode_type,
                      .max_weight = (uint64_t)size * 16 + (1 << 16),
                      .max_program_weight = (uint64_t)size * 64 + (1 << 20)};
  r.whole.start = r.whole.at = size == 0 ? nothing : data;
  r.whole.end = r.whole.start + size;
  mp_status_t status = mp_arena_create(&r.scratch);
  if (status != NULL) goto exit;
  mp_arena_set_limit(r.scratch, bytecode_memory_limit(size));
  MP_GOTO_IF_ERROR(status, mp_module_create(&r.module), exit);
  r.arena = r.module->arena;
  mp_arena_set_limit(r.arena, bytecode_memory_limit(size));
  MP_GOTO_IF_ERROR(status, bytecode_read_program(&r), exit);
  mp_arena_set_limit(r.arena, 0);
  *out_module = r.module;
  r.module = NULL;
exit:
  mp_module_release(r.module);
  mp_arena_release(r.scratch);
  return status;
}
