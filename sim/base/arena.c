#include "sim/base/arena.h"

#include <stdint.h>
#include <string.h>

#include "sim/base/alloc.h"
#include "sim/base/assert.h"
#include "sim/base/fault.h"

enum { MP_ARENA_ALIGN = 16, MP_ARENA_FIRST_CHUNK = 4096, MP_ARENA_MAX_CHUNK = 1 << 20 };

typedef struct arena_chunk_s {
  struct arena_chunk_s *next;
  size_t size;  // usable bytes after the header
  _Alignas(MP_ARENA_ALIGN) unsigned char data[];
} arena_chunk_t;

struct mp_arena_s {
  arena_chunk_t *chunks;  // newest first; new allocations come from the newest one
  size_t used;            // bytes of the newest chunk that are in use
  size_t next_size;
  size_t total;
  size_t limit;
};

mp_status_t mp_arena_create(mp_arena_t **out_arena) {
  mp_arena_t *arena = mp_calloc(1, sizeof(*arena));
  MP_RETURN_IF_NULL(arena);
  arena->next_size = MP_ARENA_FIRST_CHUNK;
  *out_arena = arena;
  return NULL;
}

void mp_arena_release(mp_arena_t *arena) {
  if (arena == NULL) return;
  for (arena_chunk_t *chunk = arena->chunks; chunk != NULL;) {
    arena_chunk_t *next = chunk->next;
    mp_free(chunk);
    chunk = next;
  }
  mp_free(arena);
}

void mp_arena_reset(mp_arena_t *arena) {
  arena_chunk_t *kept = arena->chunks;
  if (kept == NULL) return;
  for (arena_chunk_t *chunk = kept->next; chunk != NULL;) {
    arena_chunk_t *next = chunk->next;
    mp_free(chunk);
    chunk = next;
  }
  kept->next = NULL;
  MP_ASSERT(arena->used <= kept->size);
  memset(kept->data, 0, arena->used);  // allocations are promised to be zero
  arena->used = 0;
  arena->total = 0;
}

void mp_arena_set_limit(mp_arena_t *arena, size_t max_bytes) {
  arena->limit = max_bytes;
}

size_t mp_arena_bytes(const mp_arena_t *arena) {
  return arena->total;
}

static bool arena_fits_limit(const mp_arena_t *arena, size_t size) {
  return arena->limit == 0 || (arena->total <= arena->limit && size <= arena->limit - arena->total);
}

bool mp_arena_has_room(const mp_arena_t *arena, size_t count, size_t size) {
  size_t bytes;
  return !__builtin_mul_overflow(count, size, &bytes) && arena_fits_limit(arena, bytes);
}

static bool arena_add_chunk(mp_arena_t *arena, size_t at_least) {
  size_t size = arena->next_size > at_least ? arena->next_size : at_least;
  arena_chunk_t *chunk = mp_calloc(1, sizeof(*chunk) + size);
  if (chunk == NULL) return false;
  chunk->size = size;
  chunk->next = arena->chunks;
  arena->chunks = chunk;
  arena->used = 0;
  if (arena->next_size < MP_ARENA_MAX_CHUNK) arena->next_size *= 2;
  return true;
}

void *mp_arena_alloc(mp_arena_t *arena, size_t size) {
  if (size > SIZE_MAX / 2 || mp_fault_strikes(MP_FAULT_ARENA)) return NULL;
  size = (size + MP_ARENA_ALIGN - 1) & ~(size_t)(MP_ARENA_ALIGN - 1);
  if (!arena_fits_limit(arena, size)) return NULL;
  if (arena->chunks == NULL || arena->chunks->size - arena->used < size) {
    if (!arena_add_chunk(arena, size)) return NULL;
  }
  MP_ASSERT(arena->used + size <= arena->chunks->size);
  void *pointer = arena->chunks->data + arena->used;
  arena->used += size;
  arena->total += size;
  return pointer;
}

void *mp_arena_alloc_array(mp_arena_t *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return mp_arena_alloc(arena, bytes);
}

void *mp_arena_copy(mp_arena_t *arena, const void *pointer, size_t size) {
  MP_ASSERT(pointer != NULL || size == 0);
  void *copy = mp_arena_alloc(arena, size);
  if (copy != NULL && size != 0) memcpy(copy, pointer, size);
  return copy;
}

char *mp_arena_strndup(mp_arena_t *arena, const char *text, size_t size) {
  MP_ASSERT(text != NULL || size == 0);
  if (size == SIZE_MAX) return NULL;
  char *copy = mp_arena_alloc(arena, size + 1);
  if (copy != NULL && size != 0) memcpy(copy, text, size);
  return copy;
}
