// The statistics of a memory space, for users that need nothing else from it.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct mp_memory_s mp_memory_t;

typedef struct {
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t bytes_limit;  // the capacity: the memory's own, or the shared one
  // What the memory can rely on: an equal part of a shared capacity, or what the others have left
  // of it.
  int64_t bytes_reservable;
  int64_t largest_free_block_bytes;  // the rest of that: free space is never too fragmented
  int64_t num_allocs;                // since the last mp_memory_clear_stats
  int64_t largest_alloc_size;        // in bytes, since then
  // Of all touched pages, including free ones: bytes on the device's NUMA node, and bytes on other
  // nodes. -1: the device has no node of its own, or the system does not say.
  int64_t bytes_on_node, bytes_off_node;
  bool is_bound;   // the memory is bound to the device's NUMA node
  bool is_locked;  // pinned_host: all its live blocks are locked (mlock)
} mp_memory_stats_t;

// The current and past use of the space. Works in a forked child too.
void mp_memory_get_stats(const mp_memory_t *memory, mp_memory_stats_t *out_stats);
// Resets the peak to what is in use now, and the count and the largest allocation to 0.
void mp_memory_clear_stats(mp_memory_t *memory);

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_MEMORY_STATS_H_
