// What devices know of each other's progress, for checks: vector clocks.
//
// A device's own clock advances when it signals a semaphore of a device, or starts a DMA to one.
// A device that waits for the semaphore, or reads it, then knows the clocks that the other device
// knew. A semaphore keeps all that it has got, so a device may seem to know more than it does,
// never less.
//
// The caller holds the lock of the peers.
#ifndef MINIPOD_SIM_MOSAIC_RUN_MOSAIC_CLOCKS_H_
#define MINIPOD_SIM_MOSAIC_RUN_MOSAIC_CLOCKS_H_

#include <stdint.h>

#include "sim/base/containers/array.h"
#include "sim/base/status.h"

typedef struct {
  const int64_t *semaphore;
  uint32_t *clocks;  // [num_devices], owned
} mp_mosaic_semaphore_clocks_t;

typedef struct {
  uint32_t num_devices;
  uint32_t *known;  // [num_devices * num_devices] by device; its own begin with 1
  MP_ARRAY(mp_mosaic_semaphore_clocks_t) semaphores;
} mp_mosaic_clocks_t;

MP_NODISCARD mp_status_t mp_mosaic_clocks_create(uint32_t num_devices,
                                                 mp_mosaic_clocks_t **out_clocks);
// NULL: nothing.
void mp_mosaic_clocks_destroy(mp_mosaic_clocks_t *clocks);
// The device changes a semaphore, of any device.
MP_NODISCARD mp_status_t mp_mosaic_clocks_release(mp_mosaic_clocks_t *clocks, uint32_t device,
                                                  const int64_t *semaphore);
// The device has waited for its semaphore, or has read it.
void mp_mosaic_clocks_acquire(const mp_mosaic_clocks_t *clocks, uint32_t device,
                              const int64_t *semaphore);
// The clock of `other`, as far as `device` knows.
uint32_t mp_mosaic_clocks_known(const mp_mosaic_clocks_t *clocks, uint32_t device, uint32_t other);

#endif  // MINIPOD_SIM_MOSAIC_RUN_MOSAIC_CLOCKS_H_
