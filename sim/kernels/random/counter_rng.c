#include "sim/kernels/random/counter_rng.h"

#include "sim/kernels/loops.h"

static inline uint32_t counter_rng_rotate(uint32_t x, int by) {
  return x << by | x >> (32 - by);
}

MP_VECTOR void mp_threefry_blocks(uint64_t key, uint64_t counter, int64_t count, uint32_t *first,
                                  uint32_t *second) {
  enum { PARITY = 0x1BD11BDA };
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), k2 = k0 ^ k1 ^ PARITY;
  MP_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
    uint64_t c = counter + (uint64_t)i;
    uint32_t x = (uint32_t)c + k0, y = (uint32_t)(c >> 32) + k1;
#define ROUND(by) x += y, y = counter_rng_rotate(y, by) ^ x;
#define ROUNDS_A  ROUND(13) ROUND(15) ROUND(26) ROUND(6)
#define ROUNDS_B  ROUND(17) ROUND(29) ROUND(16) ROUND(24)
    ROUNDS_A x += k1, y += k2 + 1;
    ROUNDS_B x += k2, y += k0 + 2;
    ROUNDS_A x += k0, y += k1 + 3;
    ROUNDS_B x += k1, y += k2 + 4;
    ROUNDS_A x += k2, y += k0 + 5;
#undef ROUNDS_B
#undef ROUNDS_A
#undef ROUND
    first[i] = x;
    second[i] = y;
  }
}

MP_VECTOR void mp_philox_blocks(uint64_t key, const uint64_t counter[2], int64_t count,
                                uint32_t *words) {
  const uint64_t low = counter[0], high = counter[1];
  MP_INDEPENDENT for (int64_t i = 0; i < count; ++i) {
    uint64_t c = low + (uint64_t)i, d = high + (c < low);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)c, x1 = (uint32_t)(c >> 32), x2 = (uint32_t)d, x3 = (uint32_t)(d >> 32);
    for (int round = 0; round < 10; ++round) {
      uint64_t p0 = (uint64_t)0xD2511F53 * x0, p1 = (uint64_t)0xCD9E8D57 * x2;
      x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
      x1 = (uint32_t)p1;
      x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
      x3 = (uint32_t)p0;
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    words[4 * i] = x0;
    words[4 * i + 1] = x1;
    words[4 * i + 2] = x2;
    words[4 * i + 3] = x3;
  }
}
