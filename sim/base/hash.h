// 64-bit fingerprints: stable over runs, builds and machines, so that they may be kept in caches
// and sent to other processes. Not for untrusted keys of a hash table.
#ifndef MINIPOD_SIM_BASE_HASH_H_
#define MINIPOD_SIM_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>

// Folds `size` bytes into a fingerprint; start with MP_HASH_START, chain by passing the result on.
#define MP_HASH_START UINT64_C(0x6d696e69706f6421)
uint64_t mp_hash_bytes(uint64_t hash, const void *data, size_t size);
uint64_t mp_hash_u64(uint64_t hash, uint64_t value);

#endif  // MINIPOD_SIM_BASE_HASH_H_
