// Code shared by all observers of launches (the timeline, Chakra's traces, profiles): the kernels
// of a step as parts of its time, what users call the ops of a program, and an observer to begin
// with.
#ifndef MINIPOD_SIM_MODEL_REPORT_EVENTS_WATCHING_H_
#define MINIPOD_SIM_MODEL_REPORT_EVENTS_WATCHING_H_

#include "sim/chip/chip_program.h"
#include "sim/ir/module.h"
#include "sim/model/clock/model.h"

typedef struct {
  const mp_chip_kernel_t *kernel;
  uint32_t number;  // of the kernel in its chip program
  uint32_t device;
  mp_moment_t begin, end;
} mp_step_part_t;

// A step, and when a device did it.
typedef struct {
  uint32_t step, device;
  mp_moment_t begin, end;
} mp_step_span_t;

// Calls `tell` for each kernel of a step that takes time, in order. The kernels share the time of
// the step in proportion to their own.
void mp_step_parts(const mp_chip_program_t *chip_program, const mp_step_span_t *span,
                   void (*tell)(void *context, const mp_step_part_t *part), void *context);

// The whole name that the user's framework has given to the op: "jit(f)/layer/dot_general". Empty
// when there is none. Borrowed from the program.
mp_str_t mp_op_path(const mp_loc_t *loc);
// The place in the user's program: a file and a line. False when it is not known.
bool mp_op_source(const mp_loc_t *loc, mp_str_t *out_file, uint32_t *out_line);

// An observer whose functions do nothing, to begin with.
mp_model_observer_t mp_watching_silent_observer(void);

#endif  // MINIPOD_SIM_MODEL_REPORT_EVENTS_WATCHING_H_
