// Counter-based generators (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
// Threefry-2x32 with 20 rounds and Philox-4x32 with 10. Each block of output depends on the key and
// its counter alone.
#ifndef MINIPOD_SIM_KERNELS_RANDOM_COUNTER_RNG_H_
#define MINIPOD_SIM_KERNELS_RANDOM_COUNTER_RNG_H_

#include <stdint.h>

// Makes the `count` blocks with the numbers counter, counter + 1, ...: the two words of the i-th
// one go to first[i] and second[i].
void mp_threefry_blocks(uint64_t key, uint64_t counter, int64_t count, uint32_t *first,
                        uint32_t *second);

// The same with a 128-bit counter, low half first: four words per block, one block after the other.
void mp_philox_blocks(uint64_t key, const uint64_t counter[2], int64_t count, uint32_t *words);

// Adds to a 128-bit counter.
static inline void mp_counter_add(uint64_t counter[2], uint64_t amount) {
  counter[0] += amount;
  counter[1] += counter[0] < amount;
}

#endif  // MINIPOD_SIM_KERNELS_RANDOM_COUNTER_RNG_H_
