#include "sim/base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t g_fail_countdown;  // 0: off
static atomic_int g_fail_forever;

static bool alloc_must_fail(void) {
  if (atomic_load_explicit(&g_fail_countdown, memory_order_relaxed) == 0) return false;
  int64_t left = atomic_fetch_sub(&g_fail_countdown, 1);
  if (left > 1) return false;
  // Keep the counter at 1 while every allocation shall fail, else switch the hook off.
  atomic_store(&g_fail_countdown, atomic_load(&g_fail_forever) ? 1 : 0);
  return left == 1;
}

void mp_alloc_fail_at(int64_t n, int forever) {
  atomic_store(&g_fail_forever, forever);
  atomic_store(&g_fail_countdown, n);
}

void *mp_malloc(size_t size) {
  return alloc_must_fail() ? NULL : malloc(size == 0 ? 1 : size);
}

void *mp_calloc(size_t count, size_t size) {
  if (alloc_must_fail()) return NULL;
  return calloc(count == 0 ? 1 : count, size == 0 ? 1 : size);
}

void *mp_realloc(void *pointer, size_t size) {
  return alloc_must_fail() ? NULL : realloc(pointer, size == 0 ? 1 : size);
}

void *mp_realloc_array(void *pointer, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return mp_realloc(pointer, bytes);
}

void *mp_aligned_malloc(size_t alignment, size_t size) {
  size_t rounded = (size + alignment - 1) & ~(alignment - 1);
  if (rounded < size || alloc_must_fail()) return NULL;
  return aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

char *mp_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = mp_malloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

void mp_free(void *pointer) {
  free(pointer);
}
