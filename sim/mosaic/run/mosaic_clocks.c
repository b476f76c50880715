#include "sim/mosaic/run/mosaic_clocks.h"

#include "sim/base/alloc.h"

mp_status_t mp_mosaic_clocks_create(uint32_t num_devices, mp_mosaic_clocks_t **out_clocks) {
  const size_t count = (size_t)num_devices * num_devices;
  mp_mosaic_clocks_t *clocks = mp_calloc(1, sizeof(*clocks) + count * sizeof(*clocks->known));
  MP_RETURN_IF_NULL(clocks);
  clocks->num_devices = num_devices;
  clocks->known = (uint32_t *)(clocks + 1);
  for (size_t d = 0; d < num_devices; ++d) clocks->known[d * num_devices + d] = 1;
  *out_clocks = clocks;
  return NULL;
}

void mp_mosaic_clocks_destroy(mp_mosaic_clocks_t *clocks) {
  if (clocks == NULL) return;
  for (uint32_t i = 0; i < clocks->semaphores.count; ++i) {
    mp_free(clocks->semaphores.items[i].clocks);
  }
  MP_ARRAY_FREE(&clocks->semaphores);
  mp_free(clocks);
}

static uint32_t *mosaic_clocks_find(const mp_mosaic_clocks_t *clocks, const int64_t *semaphore) {
  for (uint32_t i = 0; i < clocks->semaphores.count; ++i) {
    if (clocks->semaphores.items[i].semaphore == semaphore) {
      return clocks->semaphores.items[i].clocks;
    }
  }
  return NULL;
}

static mp_status_t mosaic_clocks_add(mp_mosaic_clocks_t *clocks, const int64_t *semaphore,
                                     uint32_t **out_of_semaphore) {
  const mp_mosaic_semaphore_clocks_t added = {
      semaphore, mp_calloc(clocks->num_devices, sizeof(*added.clocks))};
  MP_RETURN_IF_NULL(added.clocks);
  mp_status_t status = MP_ARRAY_PUSH(NULL, &clocks->semaphores, added);
  if (status != NULL) {
    mp_free(added.clocks);
    return status;
  }
  *out_of_semaphore = added.clocks;
  return NULL;
}

static void mosaic_clocks_join(uint32_t *into, const uint32_t *from, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (from[i] > into[i]) into[i] = from[i];
  }
}

mp_status_t mp_mosaic_clocks_release(mp_mosaic_clocks_t *clocks, uint32_t device,
                                     const int64_t *semaphore) {
  uint32_t *own = clocks->known + (size_t)device * clocks->num_devices;
  uint32_t *of_semaphore = mosaic_clocks_find(clocks, semaphore);
  if (of_semaphore == NULL) {
    MP_RETURN_IF_ERROR(mosaic_clocks_add(clocks, semaphore, &of_semaphore));
  }
  mosaic_clocks_join(of_semaphore, own, clocks->num_devices);
  own[device] += 1;
  return NULL;
}

void mp_mosaic_clocks_acquire(const mp_mosaic_clocks_t *clocks, uint32_t device,
                              const int64_t *semaphore) {
  const uint32_t *of_semaphore = mosaic_clocks_find(clocks, semaphore);
  if (of_semaphore == NULL) return;
  mosaic_clocks_join(clocks->known + (size_t)device * clocks->num_devices, of_semaphore,
                     clocks->num_devices);
}

uint32_t mp_mosaic_clocks_known(const mp_mosaic_clocks_t *clocks, uint32_t device, uint32_t other) {
  return clocks->known[(size_t)device * clocks->num_devices + other];
}
