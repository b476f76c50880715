#include "sim/chip/memory/chip_memory.h"

#include <inttypes.h>

#include "sim/base/assert.h"
#include "sim/chip/memory/memory_impl.h"
#include "sim/chip/rules/chip_rules.h"

// ---- planning ----

static mp_chip_space_t *chip_memory_space(mp_chip_memory_t *memory, const mp_program_io_t *io) {
  return io->memory == MP_MEMORY_DEVICE ? &memory->device : &memory->host;
}

// Arguments and results have the compact layout.
static void chip_memory_count_io(const mp_chip_figures_t *figures, const mp_program_t *program,
                                 mp_chip_memory_t *memory) {
  for (uint32_t i = 0; i < program->num_params; ++i) {
    const mp_program_io_t *io = &program->params[i];
    const uint64_t bytes = mp_memory_bytes(figures, io->type);
    chip_memory_space(memory, io)->arguments += bytes;
    if (io->alias >= 0) chip_memory_space(memory, io)->aliased += bytes;
  }
  for (uint32_t i = 0; i < program->num_results; ++i) {
    const mp_program_io_t *io = &program->results[i];
    chip_memory_space(memory, io)->results += mp_memory_bytes(figures, io->type);
  }
}

// Keeps the largest places that live at a position. The places are sorted.
static mp_status_t chip_memory_keep(const mp_memory_places_t *places, uint32_t position,
                                    mp_arena_t *arena, mp_chip_space_t *space) {
  mp_memory_place_t *kept = MP_ARENA_ARRAY(arena, mp_memory_place_t, MP_MEMORY_MOST_PLACES);
  MP_RETURN_IF_NULL(kept);
  space->places = kept;
  for (uint32_t i = 0; i < places->count && space->num_places < MP_MEMORY_MOST_PLACES; ++i) {
    const mp_memory_place_t *place = &places->items[i];
    if (place->first > position || place->last < position) continue;
    kept[space->num_places++] = *place;
  }
  return NULL;
}

static bool chip_memory_has_matmul(const mp_chip_fusions_t *fusions) {
  for (uint32_t i = 0; i < fusions->fusions.count; ++i) {
    if (fusions->fusions.items[i].work.matmul.batch > 0) return true;
  }
  return false;
}

static mp_status_t chip_memory_pack(mp_memory_places_t *places, uint32_t num_positions,
                                    mp_arena_t *scratch, mp_arena_t *arena,
                                    mp_chip_space_t *space) {
  uint64_t packed = 0, most = 0;
  uint32_t position = 0;
  MP_RETURN_IF_ERROR(mp_memory_pack(places, scratch, &packed));
  MP_RETURN_IF_ERROR(mp_memory_find_peak(places, num_positions, scratch, &position, &most));
  // If all places have offsets, none overlap.
  MP_ASSERT(packed >= most || places->count > MP_MEMORY_MOST_PACKED);
  space->temporaries = packed > most ? packed : most;
  return chip_memory_keep(places, position, arena, space);
}

static mp_status_t chip_memory_plan_in(const mp_chip_figures_t *figures,
                                       const mp_chip_fusions_t *fusions,
                                       const mp_program_t *program,
                                       const mp_memory_extras_t *extras, mp_arena_t *scratch,
                                       mp_arena_t *arena, mp_chip_memory_t *memory) {
  mp_memory_places_t places = {0}, on_host = {0};
  uint32_t num_positions = 0;
  MP_RETURN_IF_ERROR(mp_memory_find_places(figures, fusions, program, extras, scratch, &places,
                                           &on_host, &num_positions));
  const double workspace = mp_figure_or(figures->memory_workspace, 0);
  if (workspace > 0 && chip_memory_has_matmul(fusions) &&
      mp_chip_rule(figures, MP_CHIP_RULE_matmul_workspace)) {
    MP_RETURN_IF_ERROR(
        MP_ARRAY_PUSH(scratch, &places,
                      (mp_memory_place_t){.bytes = (uint64_t)workspace, .last = num_positions}));
  }
  chip_memory_count_io(figures, program, memory);
  MP_RETURN_IF_ERROR(chip_memory_pack(&places, num_positions, scratch, arena, &memory->device));
  return chip_memory_pack(&on_host, num_positions, scratch, arena, &memory->host);
}

mp_status_t mp_chip_memory_plan(const mp_chip_figures_t *figures, const mp_chip_fusions_t *fusions,
                                const mp_program_t *program, const mp_memory_extras_t *extras,
                                mp_arena_t *arena, mp_chip_memory_t *out_memory) {
  mp_arena_t *scratch = NULL;
  mp_chip_memory_t memory = {0};
  MP_RETURN_IF_ERROR(mp_arena_create(&scratch));
  mp_status_t status =
      chip_memory_plan_in(figures, fusions, program, extras, scratch, arena, &memory);
  mp_arena_release(scratch);
  if (status == NULL) *out_memory = memory;
  return status;
}

uint64_t mp_chip_space_total(const mp_chip_space_t *space) {
  return space->arguments + space->results - space->aliased + space->temporaries;
}

// ---- checking ----

enum { CHIP_MEMORY_ROWS = 16 };  // lines of the table

static void chip_memory_print_bytes(uint64_t bytes, int width, mp_strbuf_t *out) {
  const double mib = 1024.0 * 1024.0;
  if ((double)bytes >= 1024 * mib) {
    mp_strbuf_printf(out, "%*.2f GiB", width, (double)bytes / (1024 * mib));
  } else {
    mp_strbuf_printf(out, "%*.2f MiB", width, (double)bytes / mib);
  }
}

static void chip_memory_print_line(uint64_t bytes, const char *what, mp_strbuf_t *out) {
  mp_strbuf_puts(out, "\n  ");
  chip_memory_print_bytes(bytes, 9, out);
  mp_strbuf_printf(out, "  %s", what);
}

static const mp_op_t *chip_memory_op_of(const mp_memory_place_t *place) {
  const mp_value_t *value = place->value;
  if (value == NULL) return NULL;
  return value->op != NULL ? value->op : value->block->parent_op;
}

// Whether both places have the same line: unrolled layers have values that look alike.
static bool chip_memory_is_alike(const mp_memory_place_t *a, const mp_memory_place_t *b) {
  if (a->bytes != b->bytes || (a->value == NULL) != (b->value == NULL)) return false;
  const mp_op_t *one = chip_memory_op_of(a), *other = chip_memory_op_of(b);
  if (one == NULL || other == NULL) return one == other;
  return one->code == other->code && one->loc == other->loc && a->value->type == b->value->type;
}

// "  512.00 MiB  tensor<...> of stablehlo.dot_general (dot at train.py:3:9)", or for several
// "  1.00 GiB  2 x tensor<...> of ...".
static void chip_memory_print_place(const mp_memory_place_t *place, uint32_t count,
                                    mp_strbuf_t *out) {
  chip_memory_print_line(count * place->bytes, "", out);
  if (count > 1) mp_strbuf_printf(out, "%" PRIu32 " x ", count);
  const mp_value_t *value = place->value;
  if (value == NULL) {
    mp_strbuf_puts(out, "working memory of matmuls");
    return;
  }
  const mp_op_t *op = chip_memory_op_of(place);
  mp_type_print(value->type, out);
  if (op == NULL) return;
  mp_strbuf_printf(out, " of %s (", mp_op_info(op->code)->name);
  mp_loc_describe(op->loc, out);
  mp_strbuf_puts(out, ")");
}

static void chip_memory_print_table(const mp_chip_space_t *space, mp_strbuf_t *out) {
  uint64_t shown = 0;
  chip_memory_print_line(space->arguments, "arguments", out);
  chip_memory_print_line(space->results - space->aliased,
                         "results that do not lie in donated arguments", out);
  chip_memory_print_line(space->temporaries, "temporaries; of these live at once:", out);
  uint32_t rows = 0, i = 0;
  while (i < space->num_places && rows < CHIP_MEMORY_ROWS) {
    const mp_memory_place_t *place = &space->places[i];
    uint32_t count = 0, first = 0;
    for (uint32_t j = 0; j < space->num_places; ++j) {
      if (!chip_memory_is_alike(place, &space->places[j])) continue;
      if (count++ == 0) first = j;
    }
    if (first == i++) {  // else an earlier line has it
      chip_memory_print_place(place, count, out);
      shown += count * place->bytes;
      ++rows;
    }
  }
  if (shown < space->temporaries &&
      (rows == CHIP_MEMORY_ROWS || space->num_places == MP_MEMORY_MOST_PLACES)) {
    chip_memory_print_line(space->temporaries - shown, "others", out);
  }
}

static mp_status_t chip_memory_check(const mp_chip_space_t *space, const mp_program_t *program,
                                     uint64_t capacity, const char *whose) {
  const uint64_t total = mp_chip_space_total(space);
  if (total <= capacity) return NULL;
  mp_strbuf_t text;
  mp_strbuf_init(&text);
  mp_strbuf_printf(&text, "%.*s does not fit into the memory of %s: it needs ",
                   MP_STR_ARG(program->name), whose);
  chip_memory_print_bytes(total, 0, &text);
  mp_strbuf_puts(&text, " of ");
  chip_memory_print_bytes(capacity, 0, &text);
  mp_strbuf_puts(&text, ", as its compiler would plan it:");
  chip_memory_print_table(space, &text);
  mp_status_t status = text.failed
                           ? mp_status_out_of_memory()
                           : mp_status_make(MP_RESOURCE_EXHAUSTED, "%s", mp_strbuf_text(&text));
  mp_strbuf_deinit(&text);
  return status;
}

mp_status_t mp_chip_memory_check(const mp_chip_memory_t *memory, const mp_program_t *program,
                                 uint64_t capacity) {
  return chip_memory_check(&memory->device, program, capacity, "the described chip");
}

mp_status_t mp_chip_memory_check_host(const mp_chip_memory_t *memory, const mp_program_t *program,
                                      uint64_t capacity) {
  return chip_memory_check(&memory->host, program, capacity,
                           "the host (memory.pinned_host of the pod) that a described chip has");
}
