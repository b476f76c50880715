#include "sim/base/ptr_map.h"

#include "sim/base/alloc.h"

void mp_ptr_map_init(mp_ptr_map_t *map) {
  *map = (mp_ptr_map_t){0};
}

void mp_ptr_map_deinit(mp_ptr_map_t *map) {
  mp_free(map->entries);
  mp_ptr_map_init(map);
}

static mp_ptr_map_entry_t *ptr_map_find(mp_ptr_map_entry_t *entries, size_t capacity,
                                        const void *key) {
  // Objects are aligned to 16 bytes mostly; the multiplication spreads the rest of the address.
  size_t i = (size_t)(((uint64_t)(uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20);
  for (i &= capacity - 1; entries[i].key != NULL && entries[i].key != key;)
    i = (i + 1) & (capacity - 1);
  return &entries[i];
}

static mp_status_t ptr_map_grow(mp_ptr_map_t *map) {
  size_t capacity = map->capacity == 0 ? 64 : map->capacity * 2;
  mp_ptr_map_entry_t *entries = mp_calloc(capacity, sizeof(entries[0]));
  MP_RETURN_IF_NULL(entries);
  for (size_t i = 0; i < map->capacity; ++i)
    if (map->entries[i].key != NULL)
      *ptr_map_find(entries, capacity, map->entries[i].key) = map->entries[i];
  mp_free(map->entries);
  map->entries = entries;
  map->capacity = capacity;
  return NULL;
}

mp_status_t mp_ptr_map_set(mp_ptr_map_t *map, const void *key, uint64_t value) {
  if (map->count * 2 >= map->capacity) MP_RETURN_IF_ERROR(ptr_map_grow(map));
  mp_ptr_map_entry_t *entry = ptr_map_find(map->entries, map->capacity, key);
  if (entry->key == NULL) ++map->count;
  *entry = (mp_ptr_map_entry_t){key, value};
  return NULL;
}

bool mp_ptr_map_get(const mp_ptr_map_t *map, const void *key, uint64_t *out_value) {
  if (map->capacity == 0) return false;
  const mp_ptr_map_entry_t *entry = ptr_map_find(map->entries, map->capacity, key);
  if (entry->key == NULL) return false;
  *out_value = entry->value;
  return true;
}
