// Writes what XProf shows of a pod's chips: each device's kind and peak rates, and how much of
// these the profiled programs used. Not thread-safe.
#ifndef MINIPOD_SIM_MODEL_REPORT_PROFILE_CHIP_USE_H_
#define MINIPOD_SIM_MODEL_REPORT_PROFILE_CHIP_USE_H_

#include "sim/model/clock/model.h"
#include "sim/model/report/events/watching.h"
#include "sim/model/report/profile/xplane.h"

typedef struct {
  const mp_pod_info_t *info;          // the pod's
  double peak_flops, peak_bandwidth;  // of a device, as described
  mp_moment_t begin;                  // of the profile
  // Of all devices since `begin`: what they did, and the time of their launches.
  double matmul_flops, hbm_bytes;
  mp_moment_t available;
} mp_chip_use_t;

// Nothing counts that was before `begin`.
mp_chip_use_t mp_chip_use_make(const mp_model_t *model, mp_moment_t begin);

// Says what a device is on its plane.
void mp_chip_use_describe(const mp_chip_use_t *use, uint32_t device, mp_xplane_t *plane);

// Counts a launch on one device, and a kernel.
void mp_chip_use_add_launch(mp_chip_use_t *use, mp_moment_t begin, mp_moment_t end);
void mp_chip_use_add_work(mp_chip_use_t *use, const mp_step_part_t *part);

// Appends a plane with the shares that were used to an XSpace message; nothing when there was no
// launch.
void mp_chip_use_print(const mp_chip_use_t *use, int64_t start, uint64_t id, mp_strbuf_t *space);

#endif  // MINIPOD_SIM_MODEL_REPORT_PROFILE_CHIP_USE_H_
