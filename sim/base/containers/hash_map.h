// Hash maps: tables of small entries that are found by a hash. Any union of the form
// MP_HASH_MAP(entry type), all zero when empty.
//
// An entry is a struct that begins with `uint64_t hash`; what follows is key and value, or a
// pointer or a number that leads to them. The map compares hashes only, the user compares the keys
// of the entries that it finds:
//
//   typedef struct {
//     uint64_t hash;
//     mp_op_t *op;
//   } mp_known_op_t;
//   MP_HASH_MAP(mp_known_op_t) known = {0};
//
//   const mp_known_op_t *entry;
//   MP_HASH_MAP_EACH(&known, hash_of(op), entry) {
//     if (is_same(entry->op, op)) return entry->op;
//   }
//   MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(arena, &known, &(mp_known_op_t){hash_of(op), op}));
//
// Different pointers have different hashes (mp_hash_pointer), so that maps from pointers have exact
// keys and need no comparison: MP_HASH_MAP_GET is the entry or NULL.
//
// All bits of a hash must be mixed well (mp_hash_bytes, mp_hash_u64, mp_hash_pointer): the place of
// an entry follows from the high ones. The entries lie in the arena that is named whenever there
// may have to be more room, always the same one, or on the heap when it is NULL; then
// MP_HASH_MAP_FREE gives them back. Adding and removing move entries: a pointer to one is good
// until then, and its hash must not be changed. Not thread-safe.
#ifndef MINIPOD_SIM_BASE_CONTAINERS_HASH_MAP_H_
#define MINIPOD_SIM_BASE_CONTAINERS_HASH_MAP_H_

#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"

typedef struct {
  void *entries;      // open addressing, at most half full; an entry whose hash is 0 is free
  uint32_t count;     // entries in use
  uint32_t capacity;  // 0 or a power of two
  uint32_t shift;     // of a hash to the place where its entry belongs: 64 - log2(capacity)
} mp_hash_map_t;

// The pointer says what the entries are; it is the same as the map's.
#define MP_HASH_MAP(entry_type) \
  union {                       \
    mp_hash_map_t map;          \
    entry_type *entries;        \
  }

// Refuses to compile when `entry` does not point to an entry of this map.
#define MP_HASH_MAP_CHECK(hash_map, entry) ((void)sizeof((entry) == (hash_map)->entries))
#define MP_HASH_MAP_SIZE(hash_map)         sizeof(*(hash_map)->entries)

// The only entry of an exact key: sets `entry` to it or NULL, and is that too.
#define MP_HASH_MAP_GET(hash_map, key_hash, entry) \
  (MP_HASH_MAP_CHECK(hash_map, entry),             \
   (entry) = mp_hash_map_first(&(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (key_hash)))

// A loop over the entries that have this hash; `entry` is NULL when it ends by itself.
#define MP_HASH_MAP_EACH(hash_map, key_hash, entry)                 \
  for (MP_HASH_MAP_GET(hash_map, key_hash, entry); (entry) != NULL; \
       (entry) = mp_hash_map_next(&(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (entry)))

// Adds a copy of an entry, next to others of the same hash: OK or out of memory, which leaves the
// map as it was.
#define MP_HASH_MAP_ADD(arena, hash_map, ...)  \
  (MP_HASH_MAP_CHECK(hash_map, (__VA_ARGS__)), \
   mp_hash_map_add((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (__VA_ARGS__)))

// For exact keys: the entry takes the place of the one with its key, or is added.
#define MP_HASH_MAP_SET(arena, hash_map, ...)  \
  (MP_HASH_MAP_CHECK(hash_map, (__VA_ARGS__)), \
   mp_hash_map_set((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (__VA_ARGS__)))

// Makes room for `more` entries: adding as many then does not fail.
#define MP_HASH_MAP_RESERVE(arena, hash_map, more) \
  mp_hash_map_reserve((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (more))

#define MP_HASH_MAP_REMOVE(hash_map, entry) \
  (MP_HASH_MAP_CHECK(hash_map, entry),      \
   mp_hash_map_remove(&(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (entry)))

// Gives the memory of a map on the heap back; the map is empty afterwards.
#define MP_HASH_MAP_FREE(hash_map) mp_hash_map_free(&(hash_map)->map)

// ---- what the macros are made of ----

MP_NODISCARD mp_status_t mp_hash_map_add(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                         const void *entry);
MP_NODISCARD mp_status_t mp_hash_map_set(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                         const void *entry);
MP_NODISCARD mp_status_t mp_hash_map_reserve(mp_arena_t *arena, mp_hash_map_t *map,
                                             size_t entry_size, uint32_t more);
void mp_hash_map_remove(mp_hash_map_t *map, size_t entry_size, void *entry);
void mp_hash_map_free(mp_hash_map_t *map);

// 0 marks free entries, so that the hash 0 has to be another one.
static inline uint64_t mp_hash_map_key(uint64_t hash) {
  return hash == 0 ? 1 : hash;
}

// The first entry with this hash at place `at` or behind it, up to the next free one.
static inline void *mp_hash_map_probe(const mp_hash_map_t *map, size_t entry_size, uint64_t hash,
                                      size_t at) {
  char *entries = map->entries;
  for (;; ++at) {
    at &= map->capacity - 1;
    const uint64_t found = *(const uint64_t *)(void *)(entries + at * entry_size);
    if (found == hash) return entries + at * entry_size;
    if (found == 0) return NULL;
  }
}

static inline void *mp_hash_map_first(const mp_hash_map_t *map, size_t entry_size, uint64_t hash) {
  if (map->capacity == 0) return NULL;
  hash = mp_hash_map_key(hash);
  return mp_hash_map_probe(map, entry_size, hash, (size_t)(hash >> map->shift));
}

static inline void *mp_hash_map_next(const mp_hash_map_t *map, size_t entry_size,
                                     const void *entry) {
  const size_t at = (size_t)((const char *)entry - (const char *)map->entries) / entry_size;
  return mp_hash_map_probe(map, entry_size, *(const uint64_t *)entry, at + 1);
}

#endif  // MINIPOD_SIM_BASE_CONTAINERS_HASH_MAP_H_
