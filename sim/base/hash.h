// 64-bit hashes. All but mp_hash_pointer are fingerprints: they are the same in all runs, builds
// and machines, so that they may be kept in caches and sent to other processes. A hash map whose
// keys come from outside must start from a value that is secret outside, or an attacker can choose
// keys that all have the same hash.
#ifndef MINIPOD_SIM_BASE_HASH_H_
#define MINIPOD_SIM_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>

// Fold `size` bytes, or a number, into a fingerprint. `hash` is MP_HASH_START at the beginning, and
// the previous result when several things are hashed one after the other.
#define MP_HASH_START UINT64_C(0x6d696e69706f6421)
uint64_t mp_hash_bytes(uint64_t hash, const void *data, size_t size);
uint64_t mp_hash_u64(uint64_t hash, uint64_t value);

// The hash FNV-1a, for formats that are defined by it.
uint64_t mp_hash_fnv1a(const void *data, size_t size);

// For hash maps: different pointers have different hashes, and only NULL's is 0. The multiplier is
// odd, so that the product can be undone, and carries the low bits into the high ones.
static inline uint64_t mp_hash_pointer(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer * UINT64_C(0x9E3779B97F4A7C15);
}

#endif  // MINIPOD_SIM_BASE_HASH_H_
