// Packs places, in the order of their starts, each into the smallest gap that fits: into memory of
// results that are not written yet, or, if there is no room, into one arena. If that leaves gaps,
// the places of the arena are packed again, the largest first.
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

// The offset of the smallest gap between live places that is large enough for `bytes`, or the end;
// `out_index` is the index of the new place in the order of offsets.
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

// The places that are in use in one piece of memory at the current position of the packing, in the
// order of offsets.
typedef struct {
  mp_place_t **live;
  uint32_t count, capacity;
} room_t;

static mp_status_t places_put(mp_arena_t *scratch, room_t *room, uint32_t index, uint64_t offset,
                              mp_place_t *place) {
  MP_ASSERT(index == room->count || offset + place->bytes <= room->live[index]->offset);
  if (room->count == room->capacity) {
    room->capacity = room->capacity == 0 ? 4 : 2 * room->capacity;
    mp_place_t **live = MP_ARENA_ARRAY(scratch, mp_place_t *, room->capacity);
    MP_RETURN_IF_NULL(live);
    if (room->count != 0) memcpy(live, room->live, room->count * sizeof(*live));
    room->live = live;
  }
  memmove(room->live + index + 1, room->live + index, (room->count - index) * sizeof(*room->live));
  room->live[index] = place;
  ++room->count;
  place->offset = offset;
  return NULL;
}

// ---- Memory that is free before results are written ----

// SMALL: places of fewer bytes are not worth a search. MOST: the number of lenders that are tried.
enum { SMALL = 256, MOST = 32 };

typedef struct {
  mp_lender_t lender;
  uint32_t index;  // of the lender in the caller's array
  room_t room;
} lent_t;

static int places_by_bytes(const void *a, const void *b) {
  const lent_t *x = a, *y = b;
  if (x->lender.bytes != y->lender.bytes) return x->lender.bytes < y->lender.bytes ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static mp_status_t places_begin_lenders(mp_arena_t *scratch, const mp_lender_t *lenders,
                                        uint32_t count, lent_t **out_lent) {
  lent_t *lent = *out_lent = MP_ARENA_ARRAY(scratch, lent_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(lent);
  for (uint32_t i = 0; i < count; ++i) {
    lent[i].lender = lenders[i];
    lent[i].index = i;
  }
  qsort(lent, count, sizeof(*lent), places_by_bytes);
  return NULL;
}

// The first of the lenders (ordered by bytes) that has at least `bytes`.
static uint32_t places_first_lender(const lent_t *lent, uint32_t count, uint64_t bytes) {
  uint32_t low = 0;
  while (low < count) {
    const uint32_t middle = low + (count - low) / 2;
    if (lent[middle].lender.bytes < bytes) {
      low = middle + 1;
    } else {
      count = middle;
    }
  }
  return low;
}

// Puts the place into one of the smallest pieces of lent memory in which it fits; `out_done`: there
// is one.
static mp_status_t places_borrow(mp_arena_t *scratch, lent_t *lent, uint32_t count,
                                 mp_place_t *place, bool *out_done) {
  *out_done = false;
  if (place->bytes < SMALL) return NULL;
  const uint32_t first = places_first_lender(lent, count, place->bytes);
  for (uint32_t i = first; i < count && i < first + MOST; ++i) {
    if (place->end >= lent[i].lender.until) continue;
    room_t *room = &lent[i].room;
    room->count = places_drop_ended(room->live, room->count, place->start);
    uint32_t index = 0;
    const uint64_t offset = places_find_gap(room->live, room->count, place->bytes, &index);
    if (offset > lent[i].lender.bytes - place->bytes) continue;
    place->lender = (int32_t)lent[i].index;
    *out_done = true;
    return places_put(scratch, room, index, offset, place);
  }
  return NULL;
}

// ---- All places ----

static mp_status_t places_pack_by_start(mp_arena_t *scratch, mp_place_t **order, uint32_t count,
                                        lent_t *lent, uint32_t num_lenders, uint64_t *out_bytes) {
  room_t arena = {0};
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    mp_place_t *place = order[i];
    MP_ASSERT(place->start <= place->end && place->bytes != 0);
    bool is_borrowed = false;
    MP_RETURN_IF_ERROR(places_borrow(scratch, lent, num_lenders, place, &is_borrowed));
    if (is_borrowed) continue;
    arena.count = places_drop_ended(arena.live, arena.count, place->start);
    uint32_t index = 0;
    const uint64_t offset = places_find_gap(arena.live, arena.count, place->bytes, &index);
    MP_RETURN_IF_ERROR(places_put(scratch, &arena, index, offset, place));
    if (offset + place->bytes > total) total = offset + place->bytes;
  }
  *out_bytes = total;
  return NULL;
}

// ---- Packing again, the largest first ----

// In the order of starts a large place often finds the free memory in two pieces, each too small.
// In the order of bytes small places fill the gaps between large ones. Neither order is always
// better, so the smaller arena wins.

// The most places for which that is tried: its time grows with their square.
enum { MOST_BY_BYTES = 1024 };

static int places_largest_first(const void *a, const void *b) {
  const mp_place_t *x = *(mp_place_t *const *)a;
  const mp_place_t *y = *(mp_place_t *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return places_by_start(a, b);
}

// Takes the places that were borrowed out of the array.
static uint32_t places_drop_borrowed(mp_place_t **places, uint32_t count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (places[i]->lender < 0) places[kept++] = places[i];
  }
  return kept;
}

// The most bytes that are in use at the same time: a lower bound of the arena's size.
static uint64_t places_least_bytes(mp_place_t *const *order, uint32_t count, mp_place_t **live) {
  uint64_t most = 0;
  uint32_t num_live = 0;
  for (uint32_t i = 0; i < count; ++i) {
    num_live = places_drop_ended(live, num_live, order[i]->start);
    live[num_live++] = order[i];
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < num_live; ++k) bytes += live[k]->bytes;
    if (bytes > most) most = bytes;
  }
  return most;
}

// The first offset at which the place overlaps none of `placed` (ordered by offset), and its index
// among them.
static uint64_t places_first_fit(mp_place_t *const *placed, uint32_t count, const mp_place_t *place,
                                 uint32_t *out_index) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const mp_place_t *other = placed[i];
    if (other->end < place->start || other->start > place->end) continue;
    if (other->offset >= at + place->bytes) break;
    if (other->offset + other->bytes > at) at = other->offset + other->bytes;
  }
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (placed[middle]->offset < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  *out_index = low;
  return at;
}

// Gives the places of the arena other offsets if that makes the arena smaller.
static mp_status_t places_pack_by_bytes(mp_arena_t *scratch, mp_place_t **order, uint32_t count,
                                        uint64_t *bytes) {
  mp_place_t **placed = MP_ARENA_ARRAY(scratch, mp_place_t *, (size_t)count + 1);
  uint64_t *before = MP_ARENA_ARRAY(scratch, uint64_t, (size_t)count + 1);
  if (placed == NULL || before == NULL) return mp_status_out_of_memory();
  if (places_least_bytes(order, count, placed) == *bytes) return NULL;
  qsort(order, count, sizeof(*order), places_largest_first);
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) before[i] = order[i]->offset;
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t index = 0;
    order[i]->offset = places_first_fit(placed, i, order[i], &index);
    memmove(placed + index + 1, placed + index, (i - index) * sizeof(*placed));
    placed[index] = order[i];
    if (order[i]->offset + order[i]->bytes > total) total = order[i]->offset + order[i]->bytes;
  }
  for (uint32_t i = 0; i < count && total >= *bytes; ++i) order[i]->offset = before[i];
  if (total < *bytes) *bytes = total;
  return NULL;
}

mp_status_t mp_places_pack(mp_arena_t *scratch, mp_place_t *places, uint32_t count,
                           const mp_lender_t *lenders, uint32_t num_lenders, uint64_t *out_bytes) {
  mp_place_t **order = MP_ARENA_ARRAY(scratch, mp_place_t *, (size_t)count + 1);
  MP_RETURN_IF_NULL(order);
  lent_t *lent = NULL;
  MP_RETURN_IF_ERROR(places_begin_lenders(scratch, lenders, num_lenders, &lent));
  for (uint32_t i = 0; i < count; ++i) {
    places[i].bytes = (places[i].bytes + 63) & ~(uint64_t)63;
    places[i].lender = -1;
    order[i] = &places[i];
  }
  qsort(order, count, sizeof(*order), places_by_start);
  MP_RETURN_IF_ERROR(places_pack_by_start(scratch, order, count, lent, num_lenders, out_bytes));
  const uint32_t rest = places_drop_borrowed(order, count);
  return rest > MOST_BY_BYTES ? NULL : places_pack_by_bytes(scratch, order, rest, out_bytes);
}
