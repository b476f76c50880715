#include "sim/runtime/memory/run_region.h"

#include <inttypes.h>
#include <sys/mman.h>

#include "sim/base/alloc.h"
#include "sim/base/os/maps.h"
#include "sim/base/os/system.h"

enum { RUN_REGION_LEAST = 1 << 20 };

void mp_regions_init(mp_regions_t *regions) {
  *regions = (mp_regions_t){0};
  mp_lock_init(&regions->lock, MP_LOCK_MEMORY);
}

static void run_region_release(mp_region_t *region) {
  if (region == NULL) return;
  if (region->data != NULL) mp_munmap(region->data, region->bytes);
  mp_free(region);
}

void mp_regions_deinit(mp_regions_t *regions) {
  while (regions->first != NULL) {
    mp_region_t *region = regions->first;
    regions->first = region->next;
    run_region_release(region);
  }
  mp_lock_deinit(&regions->lock);
}

static mp_status_t run_region_map(uint64_t bytes, mp_region_t **out_region) {
  mp_region_t *region = mp_calloc(1, sizeof(*region));
  MP_RETURN_IF_NULL(region);
  // Sizes are powers of two, so that growing programs replace the region only a few times.
  region->bytes = RUN_REGION_LEAST;
  while (region->bytes < bytes) region->bytes *= 2;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *data = MAP_FAILED;
  if (!mp_maps_are_short()) data = mp_mmap(region->bytes, PROT_READ | PROT_WRITE, flags, -1);
  if (data == MAP_FAILED) {
    mp_free(region);
    return mp_status_make(MP_RESOURCE_EXHAUSTED,
                          "the system gives no %" PRIu64
                          " bytes of address space for a run without values: see ulimit -v and "
                          "vm.overcommit_memory",
                          bytes);
  }
  // Small pages, because small values are far apart. If this fails, the system's default is good
  // enough.
  (void)madvise(data, region->bytes, MADV_NOHUGEPAGE);
  region->data = data;
  *out_region = region;
  return NULL;
}

mp_status_t mp_region_take(mp_regions_t *regions, uint64_t bytes, mp_region_t **out_region) {
  mp_lock(&regions->lock);
  mp_region_t *region = regions->first;
  if (region != NULL) regions->first = region->next;
  mp_unlock(&regions->lock);
  if (region == NULL || region->bytes < bytes) {
    run_region_release(region);  // a larger one takes its place
    return run_region_map(bytes, out_region);
  }
  *out_region = region;
  return NULL;
}

void mp_region_give(mp_regions_t *regions, mp_region_t *region) {
  if (region == NULL) return;
  mp_lock(&regions->lock);
  region->next = regions->first;
  regions->first = region;
  mp_unlock(&regions->lock);
}
