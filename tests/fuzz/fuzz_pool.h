// Inputs that were programs: what mutation mostly starts from. Random changes to inputs that are no
// programs seldom make programs of them.
#ifndef MINIPOD_TESTS_FUZZ_FUZZ_POOL_H_
#define MINIPOD_TESTS_FUZZ_FUZZ_POOL_H_

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/support/hostile/hostile_values.h"

enum { FUZZ_POOL_MAX = 512, FUZZ_POOL_MAX_SIZE = 8192 };

static struct {
  uint8_t data[FUZZ_POOL_MAX_SIZE];
  size_t size;
} g_fuzz_pool[FUZZ_POOL_MAX];
static size_t g_fuzz_pool_size;

// Programs that are not run (too large, too many devices) mostly beget their like.
static inline void fuzz_pool_add(const uint8_t *data, size_t size, bool was_run) {
  static uint64_t state = 1;
  if (size > FUZZ_POOL_MAX_SIZE) return;
  if (!was_run && g_fuzz_pool_size > 16 && hostile_random(&state) % 8 != 0) return;
  // The corpus comes first and stays for long.
  if (g_fuzz_pool_size > FUZZ_POOL_MAX / 2 && hostile_random(&state) % 16 != 0) return;
  const bool is_full = g_fuzz_pool_size == FUZZ_POOL_MAX;
  const size_t slot = is_full ? hostile_random(&state) % FUZZ_POOL_MAX : g_fuzz_pool_size++;
  memcpy(g_fuzz_pool[slot].data, data, size);
  g_fuzz_pool[slot].size = size;
}

// Puts one of them into `data`; 0 when there is none that fits.
static inline size_t fuzz_pool_pick(uint64_t *state, uint8_t *data, size_t max_size) {
  if (g_fuzz_pool_size == 0) return 0;
  const size_t pick = hostile_random(state) % g_fuzz_pool_size;
  if (g_fuzz_pool[pick].size > max_size) return 0;
  memcpy(data, g_fuzz_pool[pick].data, g_fuzz_pool[pick].size);
  return g_fuzz_pool[pick].size;
}

#endif  // MINIPOD_TESTS_FUZZ_FUZZ_POOL_H_
