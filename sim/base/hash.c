#include "sim/base/hash.h"

// Multiplies, then folds the high half into the low one. After the second step every input bit has
// reached every output bit. The multiplier is an odd number whose bits are well distributed.
static uint64_t hash_mix(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= UINT64_C(0x9fb21c651e98df25);
  hash ^= hash >> 35;
  hash *= UINT64_C(0xd6e8feb86659fd93);
  return hash ^ hash >> 32;
}

uint64_t mp_hash_u64(uint64_t hash, uint64_t value) {
  return hash_mix(hash * UINT64_C(0xff51afd7ed558ccd) + value);
}

uint64_t mp_hash_bytes(uint64_t hash, const void *data, size_t size) {
  const uint8_t *bytes = data;
  size_t done = 0;
  for (; size - done >= 8; done += 8) {
    uint64_t word = 0;  // put together byte by byte, so that all machines get the same number
    for (int i = 0; i < 8; ++i) word |= (uint64_t)bytes[done + (size_t)i] << (8 * i);
    hash = mp_hash_u64(hash, word);
  }
  uint64_t tail = 0;
  for (int i = 0; done < size; ++done, ++i) tail |= (uint64_t)bytes[done] << (8 * i);
  // The size comes last, so that trailing zeros, and how data are divided into calls, make a
  // difference.
  return mp_hash_u64(mp_hash_u64(hash, tail), size);
}

uint64_t mp_hash_fnv1a(const void *data, size_t size) {
  const uint8_t *bytes = data;
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
  return hash;
}
