// Growing arrays: any struct of the form MP_ARRAY(type), all zero when empty.
//
//   typedef MP_ARRAY(mp_place_t) mp_places_t;
//   mp_places_t places = {0};
//   MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, &places, (mp_place_t){.start = 1}));
//   for (uint32_t i = 0; i < places.count; ++i) use(&places.items[i]);
//
// The items lie in the arena that every call which may need more room names; it must always be the
// same one. If it is NULL, they lie on the heap, and MP_ARRAY_FREE frees them. Growing moves the
// items: a pointer to one of them is good until the next push. The type of the items comes from the
// array, so that a value of another type does not compile. Not thread-safe.
#ifndef MINIPOD_SIM_BASE_CONTAINERS_ARRAY_H_
#define MINIPOD_SIM_BASE_CONTAINERS_ARRAY_H_

#include <stdint.h>

#include "sim/base/alloc.h"
#include "sim/base/arena.h"
#include "sim/base/status.h"

#define MP_ARRAY(type)        \
  struct {                    \
    type *items;              \
    uint32_t count, capacity; \
  }

// Makes room for `more` items without adding them. The room is not initialised.
#define MP_ARRAY_RESERVE(arena, array, more)                                          \
  mp_array_reserve((arena), &(array)->items, sizeof(*(array)->items), (array)->count, \
                   &(array)->capacity, (more))

// Adds a value at the end. The result is OK, or out of memory, and then the array is as it was. The
// value is evaluated once, after the room is made; the array is evaluated several times.
#define MP_ARRAY_PUSH(arena, array, ...)                                                \
  (mp_array_can_hold((arena), &(array)->items, sizeof(*(array)->items), (array)->count, \
                     &(array)->capacity, 1)                                             \
       ? ((void)((array)->items[(array)->count++] = (__VA_ARGS__)), (mp_status_t)NULL)  \
       : mp_status_out_of_memory())

// Frees the memory of an array on the heap; the array is empty afterwards.
#define MP_ARRAY_FREE(array)                \
  do {                                      \
    mp_free((array)->items);                \
    (array)->items = NULL;                  \
    (array)->count = (array)->capacity = 0; \
  } while (0)

// ---- what the macros are made of ----

// Moves the items to where there is room for `count + more` of them; false and unchanged when
// memory is short. `items` is the address of the pointer to them, whatever its type.
bool mp_array_grow(mp_arena_t *arena, void *items, size_t item_size, uint32_t count,
                   uint32_t *capacity, uint32_t more);

// Makes room for `more` items unless there is room already; false and unchanged when memory is
// short.
static inline bool mp_array_can_hold(mp_arena_t *arena, void *items, size_t item_size,
                                     uint32_t count, uint32_t *capacity, uint32_t more) {
  return more <= *capacity - count || mp_array_grow(arena, items, item_size, count, capacity, more);
}

// The same as a status.
MP_NODISCARD static inline mp_status_t mp_array_reserve(mp_arena_t *arena, void *items,
                                                        size_t item_size, uint32_t count,
                                                        uint32_t *capacity, uint32_t more) {
  return mp_array_can_hold(arena, items, item_size, count, capacity, more)
             ? NULL
             : mp_status_out_of_memory();
}

#endif  // MINIPOD_SIM_BASE_CONTAINERS_ARRAY_H_
