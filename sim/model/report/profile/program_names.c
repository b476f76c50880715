#include "sim/model/report/profile/program_names.h"

#include <inttypes.h>

#include "sim/base/hash.h"
#include "sim/model/report/events/watching.h"

typedef struct {
  mp_xplane_t *plane;
  uint64_t hash;  // of the program's name
  uint32_t count;
} names_t;

static void program_names_put_op(names_t *names, const mp_op_t *op) {
  mp_str_t file;
  uint32_t line;
  const mp_str_t path = mp_op_path(op->loc);
  const bool has_source = mp_op_source(op->loc, &file, &line);
  const uint32_t number = names->count++;
  if (path.size == 0 && !has_source) return;
  mp_strbuf_t name, source;
  mp_strbuf_init(&name);
  mp_strbuf_init(&source);
  mp_strbuf_printf(&name, "%s.%" PRIu32, mp_op_info(op->code)->name, number);
  if (has_source) mp_strbuf_printf(&source, "%.*s:%" PRIu32, MP_STR_ARG(file), line);
  const mp_xplane_stat_t stats[] = {
      {.id = MP_XPLANE_TF_OP, .text = path},
      {.id = MP_XPLANE_SOURCE, .text = {mp_strbuf_text(&source), source.size}}};
  mp_xplane_put_name(names->plane, mp_xplane_number(mp_hash_u64(names->hash, number)),
                     (mp_str_t){mp_strbuf_text(&name), name.size}, MP_STR(""), 2, stats);
  mp_strbuf_deinit(&name);
  mp_strbuf_deinit(&source);
}

// Regions nest no deeper than the verifier allows.
static void program_names_put_block(names_t *names, const mp_block_t *block) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    program_names_put_op(names, op);
    for (uint32_t i = 0; i < op->num_regions; ++i) program_names_put_block(names, op->regions[i]);
  }
}

void mp_xplane_put_program(mp_xplane_t *plane, const mp_program_t *program) {
  names_t names = {.plane = plane,
                   .hash = mp_hash_bytes(MP_HASH_START, program->name.data, program->name.size)};
  names.hash = mp_hash_u64(names.hash, mp_hash_pointer(program));
  program_names_put_block(&names, program->module->main->body);
}
