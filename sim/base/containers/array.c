#include "sim/base/containers/array.h"

#include <string.h>

enum { MP_ARRAY_FIRST_CAPACITY = 4 };

// In an arena the items are copied, and their old place stays allocated. Because the capacity
// doubles, all old places together are smaller than the new one.
static void *array_move(mp_arena_t *arena, void *items, size_t item_size, uint32_t count,
                        uint32_t capacity) {
  if (arena == NULL) return mp_realloc_array(items, capacity, item_size);
  void *moved = mp_arena_alloc_array(arena, capacity, item_size);
  if (moved != NULL && count != 0) memcpy(moved, items, count * item_size);
  return moved;
}

bool mp_array_grow(mp_arena_t *arena, void *items, size_t item_size, uint32_t count,
                   uint32_t *capacity, uint32_t more) {
  if (more > UINT32_MAX - count) return false;
  uint32_t grown = *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
  if (grown < MP_ARRAY_FIRST_CAPACITY) grown = MP_ARRAY_FIRST_CAPACITY;
  if (grown < count + more) grown = count + more;
  // The type of the pointer is not known here, so it is read and written as bytes.
  void *old;
  memcpy(&old, items, sizeof(old));
  void *moved = array_move(arena, old, item_size, count, grown);
  if (moved == NULL) return false;
  memcpy(items, &moved, sizeof(moved));
  *capacity = grown;
  return true;
}
