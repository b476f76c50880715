// Arena: memory of one owner that dies at once (a module, a compile, a plan).
//
// Not thread-safe: one thread at a time. Everything allocated is zeroed, aligned to 16 bytes, and
// lives until the arena is released. NULL means out of memory.
#ifndef MINIPOD_SIM_BASE_ARENA_H_
#define MINIPOD_SIM_BASE_ARENA_H_

#include <stddef.h>

#include "sim/base/status.h"

typedef struct mp_arena_s mp_arena_t;

MP_NODISCARD mp_status_t mp_arena_create(mp_arena_t **out_arena);
void mp_arena_release(mp_arena_t *arena);

// Takes everything back that was allocated, keeping some memory for what comes next.
void mp_arena_reset(mp_arena_t *arena);

// Refuses (returns NULL) what would take the arena past this many bytes; 0 is no limit. The
// readers set it so that a small malformed program cannot claim the machine's memory.
void mp_arena_set_limit(mp_arena_t *arena, size_t max_bytes);
size_t mp_arena_bytes(const mp_arena_t *arena);
// False when the limit would refuse an array of this size: what asks for it is at fault then, and
// not the machine's memory.
bool mp_arena_has_room(const mp_arena_t *arena, size_t count, size_t size);

void *mp_arena_alloc(mp_arena_t *arena, size_t size);
void *mp_arena_alloc_array(mp_arena_t *arena, size_t count, size_t size);
// Copies `size` bytes; `pointer` may be NULL when size is 0.
void *mp_arena_copy(mp_arena_t *arena, const void *pointer, size_t size);
// Copies `size` bytes and adds a NUL.
char *mp_arena_strndup(mp_arena_t *arena, const char *text, size_t size);

#define MP_ARENA_NEW(arena, type) ((type *)mp_arena_alloc((arena), sizeof(type)))
#define MP_ARENA_ARRAY(arena, type, count) \
  ((type *)mp_arena_alloc_array((arena), (count), sizeof(type)))

#endif  // MINIPOD_SIM_BASE_ARENA_H_
