// Places of the arena by offset: finds the place that a slot refers to at a command.
//
// Between the first and the last command that names a place, no other place has its bytes.
#include <stdlib.h>

#include "sim/plan/plan.h"

struct mp_place_finder_s {
  uint32_t count;
  const mp_place_t *sorted[];  // by offset, then by first command
};

static int fold_places_compare(const void *a, const void *b) {
  const mp_place_t *x = *(const mp_place_t *const *)a, *y = *(const mp_place_t *const *)b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->first_command < y->first_command ? -1 : x->first_command > y->first_command;
}

static bool fold_places_is_used(const mp_place_t *place) {
  return place->lender < 0 && place->first_command <= place->last_command;
}

// Drops places that overlap while commands name both of them, because a slot there is ambiguous.
static void fold_places_drop_ambiguous(mp_place_finder_t *finder, bool *is_dropped) {
  for (uint32_t i = 1; i < finder->count; ++i) {
    const mp_place_t *place = finder->sorted[i];
    for (uint32_t j = i; j-- > 0 && finder->sorted[j]->offset == place->offset;) {
      if (finder->sorted[j]->last_command < place->first_command) break;
      is_dropped[i] = is_dropped[j] = true;
    }
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i < finder->count; ++i) {
    if (!is_dropped[i]) finder->sorted[kept++] = finder->sorted[i];
  }
  finder->count = kept;
}

mp_status_t mp_place_finder_create(mp_arena_t *scratch, const mp_place_t *places, uint32_t count,
                                   mp_place_finder_t **out_finder) {
  mp_place_finder_t *finder =
      mp_arena_alloc(scratch, sizeof(*finder) + ((size_t)count + 1) * sizeof(finder->sorted[0]));
  bool *is_dropped = MP_ARENA_ARRAY(scratch, bool, (size_t)count + 1);
  if (finder == NULL || is_dropped == NULL) return mp_status_out_of_memory();
  finder->count = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (fold_places_is_used(&places[i])) finder->sorted[finder->count++] = &places[i];
  }
  qsort(finder->sorted, finder->count, sizeof(finder->sorted[0]), fold_places_compare);
  fold_places_drop_ambiguous(finder, is_dropped);
  *out_finder = finder;
  return NULL;
}

const mp_place_t *mp_place_find(const mp_place_finder_t *finder, uint64_t offset,
                                uint32_t command) {
  // Binary search for the last place that begins no later.
  uint32_t low = 0, high = finder->count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const mp_place_t *place = finder->sorted[middle];
    if (place->offset < offset || (place->offset == offset && place->first_command <= command)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return NULL;
  const mp_place_t *place = finder->sorted[low - 1];
  return place->offset == offset && place->last_command >= command ? place : NULL;
}
