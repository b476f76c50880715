// Offsets: the largest place first, each in the smallest gap, as in XLA's heap simulator
// (GlobalDecreasingSizeBestFit).
#include <stdlib.h>

#include "sim/base/assert.h"
#include "sim/chip/memory/memory_impl.h"

static int memory_pack_compare(const void *left, const void *right) {
  const mp_memory_place_t *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  const uint32_t of_a = a->last - a->first, of_b = b->last - b->first;
  if (of_a != of_b) return of_a > of_b ? -1 : 1;
  return a->first < b->first ? -1 : a->first > b->first;
}

// The smallest gap that the place fits into, between those of `packed` (sorted by offset) that live
// at the same time; without one the end.
static uint64_t memory_pack_find_gap(const mp_memory_place_t *place,
                                     const mp_memory_place_t *const *packed, uint32_t count) {
  uint64_t top = 0, best = UINT64_MAX, least = UINT64_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    const mp_memory_place_t *other = packed[i];
    if (other->last < place->first || other->first > place->last) continue;
    if (other->offset >= top + place->bytes && other->offset - top < least) {
      best = top;
      least = other->offset - top;
    }
    if (other->offset + other->bytes > top) top = other->offset + other->bytes;
  }
  return best != UINT64_MAX ? best : top;
}

static void memory_pack_insert(const mp_memory_place_t **packed, uint32_t count,
                               const mp_memory_place_t *place) {
  uint32_t at = count;
  for (; at > 0 && packed[at - 1]->offset > place->offset; --at) packed[at] = packed[at - 1];
  packed[at] = place;
}

void mp_memory_sort(mp_memory_places_t *places) {
  if (places->count == 0) return;
  qsort(places->items, places->count, sizeof(*places->items), memory_pack_compare);
}

mp_status_t mp_memory_pack(mp_memory_places_t *places, mp_arena_t *arena, uint64_t *out_bytes) {
  *out_bytes = 0;
  if (places->count == 0) return NULL;
  mp_memory_sort(places);
  const uint32_t count =
      places->count < MP_MEMORY_MOST_PACKED ? places->count : MP_MEMORY_MOST_PACKED;
  const mp_memory_place_t **packed = MP_ARENA_ARRAY(arena, const mp_memory_place_t *, count);
  MP_RETURN_IF_NULL(packed);
  for (uint32_t i = 0; i < count; ++i) {
    mp_memory_place_t *place = &places->items[i];
    MP_ASSERT(place->bytes > 0 && place->first <= place->last);
    place->offset = memory_pack_find_gap(place, packed, i);
    memory_pack_insert(packed, i, place);
    if (place->offset + place->bytes > *out_bytes) *out_bytes = place->offset + place->bytes;
  }
  return NULL;
}

mp_status_t mp_memory_find_peak(const mp_memory_places_t *places, uint32_t num_positions,
                                mp_arena_t *arena, uint32_t *out_position, uint64_t *out_bytes) {
  uint64_t *begin = MP_ARENA_ARRAY(arena, uint64_t, (size_t)num_positions + 1);
  uint64_t *end = MP_ARENA_ARRAY(arena, uint64_t, (size_t)num_positions + 1);
  MP_RETURN_IF_NULL(begin);
  MP_RETURN_IF_NULL(end);
  for (uint32_t i = 0; i < places->count; ++i) {
    begin[places->items[i].first] += places->items[i].bytes;
    end[places->items[i].last] += places->items[i].bytes;
  }
  uint64_t live = 0;
  *out_position = 0;
  *out_bytes = 0;
  for (uint32_t at = 0; at <= num_positions; ++at) {
    live += begin[at];
    if (live > *out_bytes) {
      *out_bytes = live;
      *out_position = at;
    }
    live -= end[at];
  }
  return NULL;
}
