#include "sim/base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/assert.h"
#include "sim/base/fault.h"

// Counted only while a test watches, which asks once the threads that it watches are done: a sum
// that orders nothing.
static _Atomic int64_t g_live;

void mp_alloc_fail_at(int64_t n, int forever) {
  MP_ASSERT(n >= 0);
  mp_fault_watch();
  mp_fault_at(MP_FAULT_ALLOCATION, n, forever ? INT64_MAX : 1);
}

int64_t mp_alloc_live(void) {
  return atomic_load(&g_live);
}

// ---- While a test watches ----

// The watched allocations are functions of their own, so that the others are a look at one byte and
// a jump into the C library: a launch makes nine of them.
#define ALLOC_RARE __attribute__((cold, noinline))

static bool alloc_must_fail(void) {
  return mp_fault_strikes(MP_FAULT_ALLOCATION);
}

static void *alloc_count_new(void *pointer) {
  if (pointer != NULL && mp_fault_is_watched()) atomic_fetch_add(&g_live, 1);
  return pointer;
}

ALLOC_RARE static void *alloc_watched_malloc(size_t size) {
  return alloc_must_fail() ? NULL : alloc_count_new(malloc(size));
}

ALLOC_RARE static void *alloc_watched_calloc(size_t count, size_t size) {
  return alloc_must_fail() ? NULL : alloc_count_new(calloc(count, size));
}

ALLOC_RARE static void alloc_watched_free(void *pointer) {
  if (pointer != NULL) atomic_fetch_sub(&g_live, 1);
  free(pointer);
}

// ---- Allocation ----

void *mp_malloc(size_t size) {
  const size_t bytes = size == 0 ? 1 : size;
  return mp_fault_is_watched() ? alloc_watched_malloc(bytes) : malloc(bytes);
}

void *mp_calloc(size_t count, size_t size) {
  const size_t elements = count == 0 ? 1 : count;
  const size_t bytes = size == 0 ? 1 : size;
  return mp_fault_is_watched() ? alloc_watched_calloc(elements, bytes) : calloc(elements, bytes);
}

void *mp_realloc(void *pointer, size_t size) {
  if (alloc_must_fail()) return NULL;
  void *moved = realloc(pointer, size == 0 ? 1 : size);
  return pointer == NULL ? alloc_count_new(moved) : moved;
}

void *mp_realloc_array(void *pointer, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return mp_realloc(pointer, bytes);
}

void *mp_aligned_malloc(size_t alignment, size_t size) {
  MP_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0);
  size_t rounded = (size + alignment - 1) & ~(alignment - 1);
  if (rounded < size || alloc_must_fail()) return NULL;
  return alloc_count_new(aligned_alloc(alignment, rounded == 0 ? alignment : rounded));
}

char *mp_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = mp_malloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

void *mp_empty_array(void) {
  // The address is the end of the guard, so that AddressSanitizer reports reads and writes of
  // elements there.
  static _Alignas(64) char guard[64];
  return guard + sizeof(guard);
}

void mp_free(void *pointer) {
  if (mp_fault_is_watched()) {
    alloc_watched_free(pointer);
  } else {
    free(pointer);
  }
}
