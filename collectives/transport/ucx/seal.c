#include "collectives/transport/ucx/seal.h"

#include <string.h>

static uint64_t seal_rotate(uint64_t x, int bits) {
  return x << bits | x >> (64 - bits);
}

static void seal_rounds(uint64_t v[4], int count) {
  for (int i = 0; i < count; ++i) {
    v[0] += v[1];
    v[1] = seal_rotate(v[1], 13) ^ v[0];
    v[0] = seal_rotate(v[0], 32);
    v[2] += v[3];
    v[3] = seal_rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = seal_rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = seal_rotate(v[1], 17) ^ v[2];
    v[2] = seal_rotate(v[2], 32);
  }
}

uint64_t mp_seal(const mp_seal_key_t *key, const void *bytes, size_t size) {
  uint64_t v[4] = {
      key->words[0] ^ UINT64_C(0x736f6d6570736575), key->words[1] ^ UINT64_C(0x646f72616e646f6d),
      key->words[0] ^ UINT64_C(0x6c7967656e657261), key->words[1] ^ UINT64_C(0x7465646279746573)};
  const unsigned char *next = bytes;
  for (size_t left = size;; left -= 8, next += 8) {
    uint64_t word = 0;
    memcpy(&word, next, left < 8 ? left : 8);
    if (left < 8) word |= (uint64_t)size << 56;  // the last word, with the remaining bytes
    v[3] ^= word;
    seal_rounds(v, 2);
    v[0] ^= word;
    if (left < 8) break;
  }
  v[2] ^= 0xff;
  seal_rounds(v, 4);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
