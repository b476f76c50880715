// Hash maps: tables of small entries that are found by a hash. A map is any union of the form
// MP_HASH_MAP(entry type); it is all zero when empty.
//
// An entry is a struct that begins with `uint64_t hash`; what follows is the key and the value, or
// a pointer or a number that leads to them. The map compares only hashes, and its user compares the
// keys of the entries that are found:
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
// Different pointers have different hashes (mp_hash_pointer). In a map from pointers the hash is
// therefore an exact key and no comparison is needed: MP_HASH_MAP_GET gives the entry or NULL.
//
// All bits of a hash must be mixed well (mp_hash_bytes, mp_hash_u64, mp_hash_pointer), because the
// high ones decide the place of the entry. The entries lie in the arena that every call which may
// need more room names; it must always be the same one. If it is NULL, they lie on the heap, and
// MP_HASH_MAP_FREE frees them. No entry is ever taken out. Adding moves entries: a pointer to one
// is good until then, and its hash must not be changed. Not thread-safe.
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

// Sets `entry` to the only entry of an exact key, or to NULL, and has the same value.
#define MP_HASH_MAP_GET(hash_map, key_hash, entry) \
  (MP_HASH_MAP_CHECK(hash_map, entry),             \
   (entry) = mp_hash_map_first(&(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (key_hash)))

// A loop over the entries that have this hash; `entry` is NULL when it ends by itself.
#define MP_HASH_MAP_EACH(hash_map, key_hash, entry)                 \
  for (MP_HASH_MAP_GET(hash_map, key_hash, entry); (entry) != NULL; \
       (entry) = mp_hash_map_next(&(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (entry)))

// Adds a copy of an entry, also if others have the same hash. The result is OK, or out of memory,
// and then the map is as it was.
#define MP_HASH_MAP_ADD(arena, hash_map, ...)  \
  (MP_HASH_MAP_CHECK(hash_map, (__VA_ARGS__)), \
   mp_hash_map_add((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (__VA_ARGS__)))

// For exact keys: replaces the entry with this key by a copy of this one, or adds the copy.
#define MP_HASH_MAP_SET(arena, hash_map, ...)  \
  (MP_HASH_MAP_CHECK(hash_map, (__VA_ARGS__)), \
   mp_hash_map_set((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (__VA_ARGS__)))

// Makes room for `more` entries: adding as many then does not fail.
#define MP_HASH_MAP_RESERVE(arena, hash_map, more) \
  mp_hash_map_reserve((arena), &(hash_map)->map, MP_HASH_MAP_SIZE(hash_map), (more))

// Frees the memory of a map on the heap; the map is empty afterwards.
#define MP_HASH_MAP_FREE(hash_map) mp_hash_map_free(&(hash_map)->map)

// ---- what the macros are made of ----

// MP_HASH_MAP_ADD, _SET, _RESERVE, _REMOVE and _FREE, for entries of `entry_size` bytes.
MP_NODISCARD mp_status_t mp_hash_map_add(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                         const void *entry);
MP_NODISCARD mp_status_t mp_hash_map_set(mp_arena_t *arena, mp_hash_map_t *map, size_t entry_size,
                                         const void *entry);
MP_NODISCARD mp_status_t mp_hash_map_reserve(mp_arena_t *arena, mp_hash_map_t *map,
                                             size_t entry_size, uint32_t more);
void mp_hash_map_free(mp_hash_map_t *map);

// The hash under which an entry is stored. The stored hash 0 marks free places, so another one has
// to be used for 0.
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

// The first entry with this hash; NULL when there is none.
static inline void *mp_hash_map_first(const mp_hash_map_t *map, size_t entry_size, uint64_t hash) {
  if (map->capacity == 0) return NULL;
  hash = mp_hash_map_key(hash);
  return mp_hash_map_probe(map, entry_size, hash, (size_t)(hash >> map->shift));
}

// The next entry with the hash of `entry`; NULL when there is none.
static inline void *mp_hash_map_next(const mp_hash_map_t *map, size_t entry_size,
                                     const void *entry) {
  const size_t at = (size_t)((const char *)entry - (const char *)map->entries) / entry_size;
  return mp_hash_map_probe(map, entry_size, *(const uint64_t *)entry, at + 1);
}

#endif  // MINIPOD_SIM_BASE_CONTAINERS_HASH_MAP_H_
