#include "sim/spmd/sharding/placement_pool.h"

#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/containers/hash_map.h"
#include "sim/base/hash.h"

#ifdef MINIPOD_ASSERTS
// Whether all parts lie in the array; empty ones may lie anywhere.
static bool placement_pool_are_sound(const mp_boxes_t *boxes) {
  const uint64_t count = (uint64_t)boxes->num_partitions * boxes->rank;
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t dim = boxes->dims[i % boxes->rank], size = boxes->sizes[i];
    if (size < 0 || size > dim) return false;
    if (size != 0 && (boxes->starts[i] < 0 || boxes->starts[i] > dim - size)) return false;
  }
  for (uint32_t p = 0; p < boxes->num_partitions && boxes->partials != NULL; ++p) {
    const int32_t first = boxes->partials[p];  // the first partition that holds a term of its sum
    if (first < 0 || (uint32_t)first > p || boxes->partials[first] != first) return false;
  }
  return true;
}
#else
bool placement_pool_are_sound(const mp_boxes_t *boxes);
#endif

typedef struct {
  uint64_t hash;
  const mp_boxes_t *boxes;  // NULL for an entry of groups
  const int32_t *groups;    // [num_groups]
  uint32_t num_groups;
} pool_entry_t;

typedef struct {
  uint64_t hash;
  const int64_t *numbers;  // [count]
  uint32_t count;
  const mp_boxes_t *boxes;
} pool_note_t;

struct mp_spmd_pool_s {
  mp_arena_t *arena;
  MP_HASH_MAP(pool_note_t) notes;
  MP_HASH_MAP(pool_entry_t) entries;
  uint64_t bytes;
  int64_t *scratch;
  uint64_t scratch_count;
};

mp_status_t mp_spmd_pool_create(mp_arena_t *arena, mp_spmd_pool_t **out_pool) {
  mp_spmd_pool_t *pool = MP_ARENA_NEW(arena, mp_spmd_pool_t);
  MP_RETURN_IF_NULL(pool);
  pool->arena = arena;
  *out_pool = pool;
  return NULL;
}

static mp_status_t placement_pool_account(mp_spmd_pool_t *pool, uint64_t bytes) {
  if (bytes > MP_SPMD_POOL_MAX_BYTES || pool->bytes + bytes > MP_SPMD_POOL_MAX_BYTES) {
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "the shardings of this program take over %d MiB to describe",
                          MP_SPMD_POOL_MAX_BYTES >> 20);
  }
  pool->bytes += bytes;
  return NULL;
}

mp_status_t mp_spmd_pool_scratch(mp_spmd_pool_t *pool, uint64_t count, int64_t **out_numbers) {
  if (count > pool->scratch_count || pool->scratch == NULL) {
    // Because the size doubles, all earlier arrays together are smaller than this one.
    uint64_t grown = pool->scratch_count < 512 ? 1024 : pool->scratch_count * 2;
    if (grown < count) grown = count;
    if (grown > UINT64_MAX / sizeof(int64_t)) return mp_status_out_of_memory();
    MP_RETURN_IF_ERROR(placement_pool_account(pool, grown * sizeof(int64_t)));
    pool->scratch = MP_ARENA_ARRAY(pool->arena, int64_t, (size_t)grown);
    MP_RETURN_IF_NULL(pool->scratch);
    pool->scratch_count = grown;
  }
  *out_numbers = pool->scratch;
  return NULL;
}

// ---- the table ----

static bool placement_pool_same_numbers(const int64_t *a, const int64_t *b, uint64_t count) {
  return count == 0 || memcmp(a, b, count * sizeof(*a)) == 0;
}

static bool placement_pool_same_boxes(const mp_boxes_t *a, const mp_boxes_t *b) {
  if (a == NULL || b == NULL) return a == b;
  const uint64_t count = (uint64_t)a->num_partitions * a->rank;
  return a->num_partitions == b->num_partitions && a->rank == b->rank && a->groups == b->groups &&
         a->partials == b->partials &&
         (a->partials == NULL || a->unreduced_kind == b->unreduced_kind) &&
         placement_pool_same_numbers(a->dims, b->dims, a->rank) &&
         placement_pool_same_numbers(a->starts, b->starts, count) &&
         placement_pool_same_numbers(a->sizes, b->sizes, count);
}

static bool placement_pool_same_groups(const pool_entry_t *a, const pool_entry_t *b) {
  if (a->groups == NULL || b->groups == NULL) return a->groups == b->groups;
  return a->num_groups == b->num_groups &&
         memcmp(a->groups, b->groups, a->num_groups * sizeof(*a->groups)) == 0;
}

// The entry that is equal to `wanted`; NULL when there is none.
static const pool_entry_t *placement_pool_find(const mp_spmd_pool_t *pool,
                                               const pool_entry_t *wanted) {
  const pool_entry_t *entry;
  MP_HASH_MAP_EACH(&pool->entries, wanted->hash, entry) {
    if (placement_pool_same_boxes(entry->boxes, wanted->boxes) &&
        placement_pool_same_groups(entry, wanted))
      break;
  }
  return entry;
}

// ---- boxes and groups ----

static mp_status_t placement_pool_copy_boxes(mp_spmd_pool_t *pool, const mp_boxes_t *boxes,
                                             const mp_boxes_t **out_copy) {
  const uint64_t bytes = (uint64_t)boxes->num_partitions * boxes->rank * sizeof(int64_t);
  MP_RETURN_IF_ERROR(placement_pool_account(pool, 2 * bytes + sizeof(*boxes)));
  mp_boxes_t *copy = mp_arena_copy(pool->arena, boxes, sizeof(*boxes));
  MP_RETURN_IF_NULL(copy);
  if (copy->partials == NULL) copy->unreduced_kind = MP_UNREDUCED_SUM;
  copy->dims = mp_arena_copy(pool->arena, boxes->dims, boxes->rank * sizeof(int64_t));
  copy->starts = mp_arena_copy(pool->arena, boxes->starts, (size_t)bytes);
  copy->sizes = mp_arena_copy(pool->arena, boxes->sizes, (size_t)bytes);
  if (copy->dims == NULL || copy->starts == NULL || copy->sizes == NULL) {
    return mp_status_out_of_memory();
  }
  *out_copy = copy;
  return NULL;
}

mp_status_t mp_spmd_pool_boxes(mp_spmd_pool_t *pool, const mp_boxes_t *boxes,
                               const mp_boxes_t **out_boxes) {
  MP_ASSERT(placement_pool_are_sound(boxes));
  const size_t bytes = (size_t)boxes->num_partitions * boxes->rank * sizeof(int64_t);
  pool_entry_t wanted = {.hash = MP_HASH_START, .boxes = boxes};
  wanted.hash = mp_hash_bytes(wanted.hash, boxes->dims, boxes->rank * sizeof(int64_t));
  wanted.hash = mp_hash_bytes(wanted.hash, boxes->starts, bytes);
  wanted.hash = mp_hash_bytes(wanted.hash, boxes->sizes, bytes);
  wanted.hash = mp_hash_u64(wanted.hash, (uint64_t)(uintptr_t)boxes->groups);
  wanted.hash = mp_hash_u64(wanted.hash, (uint64_t)(uintptr_t)boxes->partials);
  const pool_entry_t *known = placement_pool_find(pool, &wanted);
  if (known == NULL) {
    MP_RETURN_IF_ERROR(placement_pool_copy_boxes(pool, boxes, &wanted.boxes));
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(pool->arena, &pool->entries, &wanted));
    known = &wanted;
  }
  *out_boxes = known->boxes;
  return NULL;
}

mp_status_t mp_spmd_pool_groups(mp_spmd_pool_t *pool, const int32_t *groups, uint32_t count,
                                const int32_t **out_groups) {
  const size_t bytes = count * sizeof(*groups);
  pool_entry_t wanted = {.groups = groups, .num_groups = count};
  wanted.hash = mp_hash_bytes(mp_hash_u64(MP_HASH_START, count), groups, bytes);
  const pool_entry_t *known = placement_pool_find(pool, &wanted);
  if (known == NULL) {
    MP_RETURN_IF_ERROR(placement_pool_account(pool, bytes));
    wanted.groups = mp_arena_copy(pool->arena, groups, bytes);
    MP_RETURN_IF_NULL(wanted.groups);
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(pool->arena, &pool->entries, &wanted));
    known = &wanted;
  }
  *out_groups = known->groups;
  return NULL;
}

// ---- notes ----

const mp_boxes_t *mp_spmd_pool_recall(const mp_spmd_pool_t *pool, const int64_t *numbers,
                                      uint32_t count) {
  const pool_note_t *note;
  MP_HASH_MAP_EACH(&pool->notes, mp_hash_bytes(MP_HASH_START, numbers, count * sizeof(*numbers)),
                   note) {
    if (note->count == count && placement_pool_same_numbers(note->numbers, numbers, count)) break;
  }
  return note == NULL ? NULL : note->boxes;
}

mp_status_t mp_spmd_pool_note(mp_spmd_pool_t *pool, const int64_t *numbers, uint32_t count,
                              const mp_boxes_t *boxes) {
  const size_t bytes = count * sizeof(*numbers);
  MP_RETURN_IF_ERROR(placement_pool_account(pool, bytes + sizeof(pool_note_t)));
  const pool_note_t note = {.hash = mp_hash_bytes(MP_HASH_START, numbers, bytes),
                            .numbers = mp_arena_copy(pool->arena, numbers, bytes),
                            .count = count,
                            .boxes = boxes};
  MP_RETURN_IF_NULL(note.numbers);
  return MP_HASH_MAP_ADD(pool->arena, &pool->notes, &note);
}
