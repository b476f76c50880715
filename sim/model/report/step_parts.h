// The kernels of a step of a twin, as parts of its time.
#ifndef MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_
#define MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_

#include "sim/chip/twin.h"

typedef struct {
  const mp_twin_kernel_t *kernel;
  uint32_t number;  // of the kernel in its twin
  uint32_t device;
  mp_moment_t begin, end;
} mp_step_part_t;

// Calls `tell` for each kernel of a step that takes time, in order. A device did the step between
// `begin` and `end`; the kernels share that in proportion to their times.
void mp_step_parts(const mp_twin_t *twin, uint32_t step, uint32_t device, mp_moment_t begin,
                   mp_moment_t end, void (*tell)(void *context, const mp_step_part_t *part),
                   void *context);

#endif  // MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_
