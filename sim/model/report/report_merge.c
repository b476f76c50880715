// Merges rows of programs that are released and compiled again.
#include "sim/model/clock/replay/books.h"
#include "sim/model/report/report_copies.h"

static mp_status_t report_merge_text(mp_arena_t *arena, const char **text) {
  *text = mp_arena_strndup(arena, *text, strlen(*text));
  return *text == NULL ? mp_status_out_of_memory() : NULL;
}

static mp_model_caller_books_t *report_merge_find_caller(mp_report_program_t *to,
                                                         const char *text) {
  for (uint32_t i = 0; i < to->callers.count; ++i) {
    if (strcmp(to->callers.items[i].text, text) == 0) return &to->callers.items[i];
  }
  return NULL;
}

// Appends the caller, or adds it to that of the same text.
static mp_status_t report_merge_caller(mp_arena_t *arena, mp_report_program_t *to,
                                       const mp_model_caller_books_t *from) {
  const char *text = from->text;
  mp_model_caller_books_t *row = report_merge_find_caller(to, text);
  if (row == NULL && to->callers.count >= MP_MODEL_CALLERS - 1) {
    text = MP_MODEL_OTHER_CALLERS;
    row = report_merge_find_caller(to, text);
  }
  if (row == NULL) {
    mp_model_caller_books_t copy = *from;
    copy.text = text;
    MP_RETURN_IF_ERROR(report_merge_text(arena, &copy.text));
    return MP_ARRAY_PUSH(arena, &to->callers, copy);
  }
  mp_model_caller_add(row, from);
  return NULL;
}

static mp_status_t report_merge_callers(mp_arena_t *arena, mp_report_program_t *to,
                                        const mp_report_program_t *from) {
  for (uint32_t i = 0; i < from->callers.count; ++i) {
    MP_RETURN_IF_ERROR(report_merge_caller(arena, to, &from->callers.items[i]));
  }
  return NULL;
}

// Copies a row's callers to the arena.
static mp_status_t report_merge_own_callers(mp_arena_t *arena, mp_report_program_t *row) {
  const mp_report_program_t from = *row;
  row->callers.items = NULL;
  row->callers.count = row->callers.capacity = 0;
  for (uint32_t i = 0; i < from.callers.count; ++i) {
    mp_model_caller_books_t copy = from.callers.items[i];
    MP_RETURN_IF_ERROR(report_merge_text(arena, &copy.text));
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &row->callers, copy));
  }
  return NULL;
}

// Replaces what a row refers to by copies in the arena.
static mp_status_t report_merge_own(mp_arena_t *arena, mp_report_program_t *row) {
  MP_RETURN_IF_ERROR(report_merge_text(arena, &row->name));
  mp_report_collective_t *collective =
      MP_ARENA_ARRAY(arena, mp_report_collective_t, row->num_collectives + 1);
  mp_report_op_t *op = MP_ARENA_ARRAY(arena, mp_report_op_t, row->num_ops + 1);
  mp_report_guess_t *guess = MP_ARENA_ARRAY(arena, mp_report_guess_t, MP_REPORT_GUESSES);
  MP_RETURN_IF_NULL(collective);
  MP_RETURN_IF_NULL(op);
  MP_RETURN_IF_NULL(guess);
  for (uint32_t i = 0; i < row->num_collectives; ++i) {
    collective[i] = row->collective[i];
    MP_RETURN_IF_ERROR(report_merge_text(arena, &collective[i].place));
    MP_RETURN_IF_ERROR(report_merge_text(arena, &collective[i].axes));
  }
  for (uint32_t i = 0; i < row->num_ops; ++i) {
    op[i] = row->op[i];
    MP_RETURN_IF_ERROR(report_merge_text(arena, &op[i].name));
    MP_RETURN_IF_ERROR(report_merge_text(arena, &op[i].place));
  }
  for (uint32_t i = 0; i < row->num_guesses; ++i) {
    guess[i] = row->guess[i];
    MP_RETURN_IF_ERROR(report_merge_text(arena, &guess[i].place));
  }
  mp_report_layer_t *layer = MP_ARENA_ARRAY(arena, mp_report_layer_t, row->num_layers + 1);
  MP_RETURN_IF_NULL(layer);
  for (uint32_t i = 0; i < row->num_layers; ++i) {
    layer[i] = row->layer[i];
    MP_RETURN_IF_ERROR(report_merge_text(arena, &layer[i].name));
  }
  row->layer = layer;
  row->collective = collective;
  row->op = op;
  row->guess = guess;
  row->memory.device.places = row->memory.host.places = NULL;  // the program's
  MP_RETURN_IF_ERROR(report_merge_own_callers(arena, row));
  MP_RETURN_IF_ERROR(mp_report_findings_own(arena, row));
  return mp_report_copies_own(arena, row);
}

static void report_merge_collective(mp_report_program_t *to, const mp_report_collective_t *from) {
  for (uint32_t i = 0; i < to->num_collectives; ++i) {
    mp_report_collective_t *row = &to->collective[i];
    if (row->bytes != from->bytes || strcmp(row->place, from->place) != 0) continue;
    if (row->kind != from->kind || row->link != from->link) continue;
    if (row->overlap != from->overlap || row->met.algorithm != from->met.algorithm) continue;
    mp_meetings_add(&row->met, &from->met, 1);
    row->link_bytes += from->link_bytes;
    row->link_seconds += from->link_seconds;
    return;
  }
}

static void report_merge_op(mp_report_program_t *to, const mp_report_op_t *from) {
  for (uint32_t i = 0; i < to->num_ops; ++i) {
    mp_report_op_t *row = &to->op[i];
    if (row->bytes != from->bytes || row->flops != from->flops) continue;
    if (strcmp(row->name, from->name) != 0 || strcmp(row->place, from->place) != 0) continue;
    row->count += from->count;
    row->time += from->time;
    return;
  }
}

static void report_merge_layer(mp_report_program_t *to, const mp_report_layer_t *from) {
  for (uint32_t i = 0; i < to->num_layers; ++i) {
    mp_report_layer_t *row = &to->layer[i];
    if (strcmp(row->name, from->name) != 0) continue;
    row->work += from->work;
    row->traffic += from->traffic;
    return;
  }
}

// Appends the guess, or adds it to that of the same place.
static mp_status_t report_merge_guess(mp_arena_t *arena, mp_report_program_t *to,
                                      const mp_report_guess_t *from) {
  for (uint32_t i = 0; i < to->num_guesses; ++i) {
    mp_report_guess_t *row = &to->guess[i];
    if (row->branches != from->branches || strcmp(row->place, from->place) != 0) continue;
    row->count += from->count;
    return NULL;
  }
  if (to->guess == NULL || to->num_guesses == MP_REPORT_GUESSES) return NULL;
  mp_report_guess_t guess = *from;
  MP_RETURN_IF_ERROR(report_merge_text(arena, &guess.place));
  to->guess[to->num_guesses++] = guess;
  return NULL;
}

static mp_status_t report_merge_into(mp_arena_t *arena, mp_report_program_t *to,
                                     const mp_report_program_t *from) {
  if (from->serial < to->serial) to->serial = from->serial;
  to->launches += from->launches;
  to->runs += from->runs;
  to->time += from->time;
  to->available += from->available;
  to->transfers += from->transfers;
  if (from->rhythm.count > to->rhythm.count) to->rhythm = from->rhythm;
  to->work += from->work;
  to->waiting += from->waiting;
  to->traffic += from->traffic;
  to->hidden += from->hidden;
  to->is_cut |= from->is_cut;
  to->collectives += from->collectives;
  to->collective_bytes += from->collective_bytes;
  if (to->link == from->link) {
    to->link_bytes += from->link_bytes;
    to->link_seconds += from->link_seconds;
  }
  for (uint32_t i = 0; i < from->num_collectives; ++i) {
    report_merge_collective(to, &from->collective[i]);
  }
  mp_report_copies_merge(to, from);
  mp_report_findings_merge(to, from);
  for (int c = 0; c < MP_WORK_CLASS_COUNT; ++c) {
    to->classes[c].time += from->classes[c].time;
    to->classes[c].flops += from->classes[c].flops;
    to->classes[c].recomputed += from->classes[c].recomputed;
  }
  for (int i = 0; i < MP_FIGURE_COUNT; ++i) to->by_figure[i] += from->by_figure[i];
  for (uint32_t i = 0; i < from->num_ops; ++i) report_merge_op(to, &from->op[i]);
  for (uint32_t i = 0; i < from->num_layers; ++i) report_merge_layer(to, &from->layer[i]);
  MP_RETURN_IF_ERROR(report_merge_callers(arena, to, from));
  to->guessed += from->guessed;
  for (uint32_t i = 0; i < from->num_guesses; ++i) {
    MP_RETURN_IF_ERROR(report_merge_guess(arena, to, &from->guess[i]));
  }
  return NULL;
}

// The row that further programs are added up in.
static mp_status_t report_merge_others(mp_report_rows_t *rows, const mp_report_program_t *row) {
  if (rows->programs.count == MP_REPORT_PROGRAMS) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        rows->arena, &rows->programs,
        (mp_report_program_t){.name = "(others)", .num_devices = row->num_devices, .link = -1}));
  }
  return report_merge_into(rows->arena, &rows->programs.items[MP_REPORT_PROGRAMS], row);
}

mp_status_t mp_report_rows_merge_one(mp_report_rows_t *rows, const mp_report_program_t *row) {
  for (uint32_t i = 0; i < rows->programs.count; ++i) {
    mp_report_program_t *known = &rows->programs.items[i];
    if (known->key != row->key || strcmp(known->name, row->name) != 0) continue;
    return report_merge_into(rows->arena, known, row);
  }
  if (rows->programs.count >= MP_REPORT_PROGRAMS) return report_merge_others(rows, row);
  mp_report_program_t copy = *row;
  MP_RETURN_IF_ERROR(report_merge_own(rows->arena, &copy));
  return MP_ARRAY_PUSH(rows->arena, &rows->programs, copy);
}
