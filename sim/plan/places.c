// Packs places into one arena, in the order of their starts, each into the smallest gap that fits.
#include <stdlib.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/plan/plan.h"

static int places_by_start(const void *a, const void *b) {
  const mp_place_t *x = *(mp_place_t *const *)a;
  const mp_place_t *y = *(mp_place_t *const *)b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x < y ? -1 : x > y;
}

// Removes the places that ended before `now`; the others stay ordered by offset.
static uint32_t places_drop_ended(mp_place_t **live, uint32_t count, uint32_t now) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (live[i]->end >= now) live[kept++] = live[i];
  }
  return kept;
}

// The offset of the smallest gap between live places that is large enough for `bytes`, or behind
// them all; `out_index` is where the new place belongs in the order of offsets.
static uint64_t places_find_gap(mp_place_t *const *live, uint32_t count, uint64_t bytes,
                                uint32_t *out_index) {
  uint64_t best_size = UINT64_MAX;
  uint64_t best = 0;
  uint64_t at = 0;
  *out_index = count;
  for (uint32_t i = 0; i < count; ++i) {
    MP_ASSERT(live[i]->offset >= at);  // they are sorted and do not overlap
    uint64_t gap = live[i]->offset - at;
    if (gap >= bytes && gap < best_size) {
      best_size = gap;
      best = at;
      *out_index = i;
    }
    at = live[i]->offset + live[i]->bytes;
  }
  return best_size == UINT64_MAX ? at : best;
}

mp_status_t mp_places_pack(mp_arena_t *scratch, mp_place_t *places, uint32_t count,
                           uint64_t *out_bytes) {
  mp_place_t **order = MP_ARENA_ARRAY(scratch, mp_place_t *, (size_t)count + 1);
  mp_place_t **live = MP_ARENA_ARRAY(scratch, mp_place_t *, (size_t)count + 1);
  if (order == NULL || live == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < count; ++i) {
    places[i].bytes = (places[i].bytes + 63) & ~(uint64_t)63;
    order[i] = &places[i];
  }
  qsort(order, count, sizeof(*order), places_by_start);
  uint32_t num_live = 0;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    mp_place_t *place = order[i];
    MP_ASSERT(place->start <= place->end && place->bytes != 0);
    num_live = places_drop_ended(live, num_live, place->start);
    uint32_t index = 0;
    place->offset = places_find_gap(live, num_live, place->bytes, &index);
    MP_ASSERT(index == num_live || place->offset + place->bytes <= live[index]->offset);
    memmove(live + index + 1, live + index, (num_live - index) * sizeof(*live));
    live[index] = place;
    ++num_live;
    if (place->offset + place->bytes > total) total = place->offset + place->bytes;
  }
  *out_bytes = total;
  return NULL;
}
