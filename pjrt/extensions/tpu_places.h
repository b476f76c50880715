// Places of chips, devices and processes of a topology of TPUs, in libtpu's terms.
//
// A process has a box of the grid of chips, and the boxes of all processes fill the grid, in the
// order of their coordinates. Chips are numbered slice by slice, the first coordinate fastest.
#ifndef MINIPOD_PJRT_EXTENSIONS_TPU_PLACES_H_
#define MINIPOD_PJRT_EXTENSIONS_TPU_PLACES_H_

#include "pjrt/pjrt_objects.h"

enum { MP_TPU_DIMS = 3 };

// Fails with INVALID_ARGUMENT if the topology is NULL, and with FAILED_PRECONDITION if its chips
// are not TPUs.
MP_NODISCARD mp_status_t mp_tpu_check(const PJRT_TopologyDescription *topology);

int32_t mp_tpu_num_chips(const PJRT_TopologyDescription *topology);
int32_t mp_tpu_num_processes(const PJRT_TopologyDescription *topology);
// The chip's coordinates in its slice.
void mp_tpu_chip_coords(const PJRT_TopologyDescription *topology, int32_t chip,
                        int32_t coords[MP_TPU_DIMS]);
// The chip of the first slice there; -1: none.
int32_t mp_tpu_chip_at(const PJRT_TopologyDescription *topology, const int32_t *coords);
int32_t mp_tpu_chip_of_device(const PJRT_TopologyDescription *topology, int32_t device);
// The device with this index on a chip; -1: none.
int32_t mp_tpu_device_of_chip(const PJRT_TopologyDescription *topology, int32_t chip,
                              int32_t index);
int32_t mp_tpu_process_of_device(const PJRT_TopologyDescription *topology, int32_t device);

// The chips of a process as a box, and the grid of processes that follows. FAILED_PRECONDITION if
// the processes of a slice are not boxes of equal shape.
MP_NODISCARD mp_status_t mp_tpu_process_box(const PJRT_TopologyDescription *topology,
                                            int32_t box[MP_TPU_DIMS], int32_t grid[MP_TPU_DIMS]);

// Whether chips reach each other only over few routes: on v5e, if a side of the slice has 16 chips.
bool mp_tpu_has_limited_ici(const PJRT_TopologyDescription *topology);

#endif  // MINIPOD_PJRT_EXTENSIONS_TPU_PLACES_H_
