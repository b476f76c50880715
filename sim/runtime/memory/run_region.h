// Regions: address space for runs without values (option `values`: shapes).
//
// Such runs read and write little, but at addresses that the planner has assigned among arrays that
// are never touched. So a run gets a region, as large as all its arrays, and the next run reuses
// it: there are as many regions as concurrent runs, and only places of small values have pages.
// Thread-safe.
#ifndef MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_
#define MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_

#include <stdint.h>

#include "sim/base/os/lock.h"
#include "sim/base/status.h"

typedef struct mp_region_s mp_region_t;
struct mp_region_s {
  mp_region_t *next;  // in the list
  char *data;         // aligned to pages; contains bytes of earlier runs
  uint64_t bytes;
};

// Unused regions.
typedef struct {
  mp_lock_t lock;
  mp_region_t *first;
} mp_regions_t;

void mp_regions_init(mp_regions_t *regions);
// Unmaps all regions that were given back.
void mp_regions_deinit(mp_regions_t *regions);

// A region of at least so many bytes. RESOURCE_EXHAUSTED when the system gives no address space.
MP_NODISCARD mp_status_t mp_region_take(mp_regions_t *regions, uint64_t bytes,
                                        mp_region_t **out_region);
// NULL has no effect.
void mp_region_give(mp_regions_t *regions, mp_region_t *region);

#endif  // MINIPOD_SIM_RUNTIME_MEMORY_RUN_REGION_H_
