#include "sim/base/containers/hash_map.h"

#include <string.h>

#include "sim/base/alloc.h"

enum { MP_HASH_MAP_FIRST_CAPACITY = 16, MP_HASH_MAP_MAX_CAPACITY = 1 << 30 };

static char *hash_map_at(const mp_hash_map_t *map, size_t entry_size, size_t at) {
  return (char *)map->entries + at * entry_size;
}

static uint64_t hash_map_hash(const mp_hash_map_t *map, size_t entry_size, size_t at) {
  return *(const uint64_t *)(void *)hash_map_at(map, entry_size, at);
}

// Puts an entry into the table, which has room for it.
static void hash_map_put(mp_hash_map_t *map, size_t entry_size, const void *entry) {
  const uint64_t hash = mp_hash_map_key(*(const uint64_t *)entry);
  const size_t mask = map->capacity - 1;
  size_t at = (size_t)(hash >> map->shift);
  while (hash_map_hash(map, entry_size, at) != 0) at = (at + 1) & mask;
  char *place = hash_map_at(map, entry_size, at);
  memcpy(place, entry, entry_size);
  memcpy(place, &hash, sizeof(hash));
  ++map->count;
}

// Moves the entries to a table of this capacity.
static mp_status_t hash_map_resize(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                   uint32_t capacity) {
  // Memory from an arena is zero, as that of mp_calloc is.
  void *entries = arena == NULL ? mp_calloc(capacity, entry_size)
                                : mp_arena_alloc_array(arena, capacity, entry_size);
  MP_RETURN_IF_NULL(entries);
  mp_hash_map_t old = *map;
  *map = (mp_hash_map_t){
      .entries = entries, .capacity = capacity, .shift = 64 - (uint32_t)__builtin_ctz(capacity)};
  for (size_t at = 0; at < old.capacity; ++at) {
    if (hash_map_hash(&old, entry_size, at) == 0) continue;
    hash_map_put(map, entry_size, hash_map_at(&old, entry_size, at));
  }
  if (arena == NULL) mp_free(old.entries);
  return NULL;
}

mp_status_t mp_hash_map_reserve(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                uint32_t more) {
  const uint64_t wanted = 2 * ((uint64_t)map->count + more);
  if (wanted <= map->capacity) return NULL;
  if (wanted > MP_HASH_MAP_MAX_CAPACITY) return mp_status_out_of_memory();
  uint32_t capacity = MP_HASH_MAP_FIRST_CAPACITY;
  while (capacity < wanted) capacity *= 2;
  return hash_map_resize(arena, map, entry_size, capacity);
}

mp_status_t mp_hash_map_add(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                            const void *entry) {
  MP_RETURN_IF_ERROR(mp_hash_map_reserve(arena, map, entry_size, 1));
  hash_map_put(map, entry_size, entry);
  return NULL;
}

mp_status_t mp_hash_map_set(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                            const void *entry) {
  void *known = mp_hash_map_first(map, entry_size, *(const uint64_t *)entry);
  if (known == NULL) return mp_hash_map_add(arena, map, entry_size, entry);
  memcpy(known, entry, entry_size);
  return NULL;
}

void mp_hash_map_free(mp_hash_map_t *map) {
  mp_free(map->entries);
  *map = (mp_hash_map_t){0};
}
