// Map from addresses to numbers: what a pass or a printer knows about objects that have no room for
// it themselves.
//
// Not thread-safe. Keys are not NULL and are not removed.
#ifndef MINIPOD_SIM_BASE_PTR_MAP_H_
#define MINIPOD_SIM_BASE_PTR_MAP_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/status.h"

typedef struct {
  const void *key;
  uint64_t value;
} mp_ptr_map_entry_t;

typedef struct {
  mp_ptr_map_entry_t *entries;  // open addressing; at most half are used
  size_t capacity;              // 0 or a power of two
  size_t count;
} mp_ptr_map_t;

void mp_ptr_map_init(mp_ptr_map_t *map);
void mp_ptr_map_deinit(mp_ptr_map_t *map);

// Sets or replaces the number of `key`.
MP_NODISCARD mp_status_t mp_ptr_map_set(mp_ptr_map_t *map, const void *key, uint64_t value);

// False when `key` has none.
bool mp_ptr_map_get(const mp_ptr_map_t *map, const void *key, uint64_t *out_value);

#endif  // MINIPOD_SIM_BASE_PTR_MAP_H_
