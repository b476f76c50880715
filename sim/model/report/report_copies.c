#include "sim/model/report/report_copies.h"

#include <stdlib.h>

#include "sim/model/clock/replay/books.h"

static bool report_copies_are_alike(const mp_report_copy_t *a, const mp_report_copy_t *b) {
  return a->is_to_host == b->is_to_host && a->is_async == b->is_async && a->bytes == b->bytes &&
         strcmp(a->place, b->place) == 0;
}

// Adds it to the row of its like; false: there is none.
static bool report_copies_add(mp_report_program_t *row, const mp_report_copy_t *copy) {
  for (uint32_t i = 0; i < row->num_copies; ++i) {
    if (!report_copies_are_alike(&row->copy[i], copy)) continue;
    mp_copies_add(&row->copy[i].did, &copy->did, 1);
    return true;
  }
  return false;
}

static int report_copies_longer(const void *a, const void *b) {
  const mp_report_copy_t *x = a, *y = b;
  if (x->did.time != y->did.time) return x->did.time > y->did.time ? -1 : 1;
  const int by_place = strcmp(x->place, y->place);
  return by_place != 0 ? by_place : x->is_to_host - y->is_to_host;
}

mp_status_t mp_report_copies_make(mp_arena_t *arena, mp_report_places_t *places,
                                  const mp_model_program_books_t *books, mp_report_program_t *row) {
  const mp_chip_program_t *chip_program = books->chip_program;
  row->copy = MP_ARENA_ARRAY(arena, mp_report_copy_t, (size_t)chip_program->num_copies + 1);
  MP_RETURN_IF_NULL(row->copy);
  for (uint32_t i = 0; i < chip_program->num_copies; ++i) {
    const mp_chip_copy_t *from = &chip_program->copies[i];
    mp_report_copy_t copy = {.is_to_host = from->is_to_host,
                             .is_async = from->is_async,
                             .bytes = from->bytes,
                             .did = books->books.copies[i]};
    if (copy.did.count == 0) continue;
    MP_RETURN_IF_ERROR(mp_report_place(places, from->op->loc, &copy.place));
    if (!report_copies_add(row, &copy)) row->copy[row->num_copies++] = copy;
  }
  if (row->num_copies != 0) {
    qsort(row->copy, row->num_copies, sizeof(*row->copy), report_copies_longer);
  }
  if (row->num_copies > MP_REPORT_COPIES) row->num_copies = MP_REPORT_COPIES;
  return NULL;
}

mp_status_t mp_report_copies_own(mp_arena_t *arena, mp_report_program_t *row) {
  mp_report_copy_t *copies = MP_ARENA_ARRAY(arena, mp_report_copy_t, (size_t)row->num_copies + 1);
  MP_RETURN_IF_NULL(copies);
  for (uint32_t i = 0; i < row->num_copies; ++i) {
    copies[i] = row->copy[i];
    copies[i].place = mp_arena_strndup(arena, copies[i].place, strlen(copies[i].place));
    MP_RETURN_IF_NULL(copies[i].place);
  }
  row->copy = copies;
  return NULL;
}

void mp_report_copies_merge(mp_report_program_t *to, const mp_report_program_t *from) {
  for (uint32_t i = 0; i < from->num_copies; ++i) (void)report_copies_add(to, &from->copy[i]);
}
