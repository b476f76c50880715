// Arenas: memory of one owner (a module, a compile, a plan) that is freed all at once.
//
// An arena is used by one thread at a time. Everything allocated from it is zeroed, aligned to 16
// bytes, and lives until the arena is released or reset. NULL means that memory or the arena's
// limit does not suffice.
#ifndef MINIPOD_SIM_BASE_ARENA_H_
#define MINIPOD_SIM_BASE_ARENA_H_

#include <stddef.h>

#include "sim/base/status.h"

typedef struct mp_arena_s mp_arena_t;

// Makes an empty arena, which the caller owns.
MP_NODISCARD mp_status_t mp_arena_create(mp_arena_t **out_arena);
// Frees the arena and everything in it. NULL is allowed.
void mp_arena_release(mp_arena_t *arena);

// Frees everything in the arena, but keeps some memory for the next allocations.
void mp_arena_reset(mp_arena_t *arena);

// From now on the arena refuses (returns NULL for) what would take it past this many bytes; 0 is no
// limit. The readers set it so that a small malformed program cannot claim the machine's memory.
void mp_arena_set_limit(mp_arena_t *arena, size_t max_bytes);
// The bytes in use, each allocation rounded up to a multiple of 16.
size_t mp_arena_bytes(const mp_arena_t *arena);
// Whether the limit allows an array of this size. If not, the program that needs the array is at
// fault, and not the machine's memory.
bool mp_arena_has_room(const mp_arena_t *arena, size_t count, size_t size);

// Allocates `size` bytes.
void *mp_arena_alloc(mp_arena_t *arena, size_t size);
// Allocates `count` * `size` bytes; NULL also when the product overflows.
void *mp_arena_alloc_array(mp_arena_t *arena, size_t count, size_t size);
// Copies `size` bytes; `pointer` may be NULL when size is 0.
void *mp_arena_copy(mp_arena_t *arena, const void *pointer, size_t size);
// Copies `size` bytes and adds a NUL.
char *mp_arena_strndup(mp_arena_t *arena, const char *text, size_t size);

#define MP_ARENA_NEW(arena, type) ((type *)mp_arena_alloc((arena), sizeof(type)))
#define MP_ARENA_ARRAY(arena, type, count) \
  ((type *)mp_arena_alloc_array((arena), (count), sizeof(type)))

#endif  // MINIPOD_SIM_BASE_ARENA_H_
