// The commands of a step of a timing, as parts of its time.
#ifndef MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_
#define MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_

#include "sim/model/clock/timing.h"

typedef struct {
  const mp_cmd_t *cmd;
  const mp_cost_t *cost;
  uint32_t device;
  mp_moment_t begin, end;
} mp_step_part_t;

// Calls `tell` for each command of a WORK or LOOP step that takes time, in order. A device did the
// step between `begin` and `end`; the commands share that in proportion to their costs.
void mp_step_parts(const mp_timing_t *timing, uint32_t step, uint32_t device, mp_moment_t begin,
                   mp_moment_t end, void (*tell)(void *context, const mp_step_part_t *part),
                   void *context);

#endif  // MINIPOD_SIM_MODEL_REPORT_STEP_PARTS_H_
