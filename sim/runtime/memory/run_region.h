// Regions: address space for runs without values (option `values`: shapes).
//
// What such runs read and write is hardly anything, but it lies where the planner has put it, among
// arrays that are never touched. So a run has a region while it goes, as large as all that it has,
// and the next run has it again: there are as many regions as runs go at a time, and pages only
// where small values were. Thread-safe.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_

#include <stdint.h>

#include "sim/base/os/lock.h"
#include "sim/base/status.h"

typedef struct mp_region_s mp_region_t;
struct mp_region_s {
  mp_region_t *next;  // in the list
  char *data;         // aligned to pages; what is in it is left from others
  uint64_t bytes;
};

// Unused regions.
typedef struct {
  mp_lock_t lock;
  mp_region_t *first;
} mp_regions_t;

void mp_regions_init(mp_regions_t *regions);
// Unmaps all that were given back.
void mp_regions_deinit(mp_regions_t *regions);

// A region of at least so many bytes. RESOURCE_EXHAUSTED when the system gives no address space.
MP_NODISCARD mp_status_t mp_region_take(mp_regions_t *regions, uint64_t bytes,
                                        mp_region_t **out_region);
// NULL has no effect.
void mp_region_give(mp_regions_t *regions, mp_region_t *region);

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_
