// What a memory space tells of itself: for users, who need no more of it.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct mp_memory_s mp_memory_t;

typedef struct {
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t bytes_limit;  // the capacity
  int64_t bytes_reservable;
  int64_t largest_free_block_bytes;
  int64_t num_allocs;  // ever
  int64_t largest_alloc_size;
  bool is_bound;   // the memory is bound to the device's NUMA node
  bool is_locked;  // pinned_host: really locked
} mp_memory_stats_t;
// What the space holds now and has held.
void mp_memory_get_stats(const mp_memory_t *memory, mp_memory_stats_t *out_stats);
// Starts the peak, the count and the largest allocation anew from what is in use now.
void mp_memory_clear_stats(mp_memory_t *memory);

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_
