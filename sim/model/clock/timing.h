// The timing of a program: what its commands take on a chip of the pod, put together to steps.
//
// Commands that follow each other without a choice or a meeting are one step. A timing lives in an
// arena, refers to its program, and may be read by any thread.
#ifndef MINIPOD_SIM_MODEL_CLOCK_TIMING_H_
#define MINIPOD_SIM_MODEL_CLOCK_TIMING_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/model/cost/cost.h"
#include "sim/plan/program.h"

// Virtual time: picoseconds since the client was made. Whole numbers, so that sums do not depend on
// how far a run is from the beginning. They last for 213 days.
typedef uint64_t mp_moment_t;
#define MP_MOMENTS_PER_SECOND 1e12

// Seconds as picoseconds, rounded; negative ones and NaN are 0, and what is too long is cut.
mp_moment_t mp_moment_of(double seconds);
double mp_moment_seconds(mp_moment_t moment);

typedef enum {
  MP_TIMING_WORK,    // takes `time`
  MP_TIMING_LOOP,    // a loop that is one command: takes what its path says
  MP_TIMING_MEET,    // a collective
  MP_TIMING_SEND,    // hands a message over; does not wait
  MP_TIMING_RECV,    // waits for a message
  MP_TIMING_JUMP,    // to targets[0]
  MP_TIMING_BRANCH,  // to targets[0] if the choice is 1
  MP_TIMING_SWITCH,  // to targets[choice]
  MP_TIMING_END,
} mp_timing_kind_t;

typedef struct {
  mp_timing_kind_t kind;
  uint32_t first, end;      // the commands [first, end) that it stands for
  mp_moment_t time;         // WORK
  uint32_t collective;      // MEET, SEND, RECV: its number in the timing
  uint32_t num_targets;     // JUMP, BRANCH, SWITCH
  const uint32_t *targets;  // numbers of steps
} mp_timing_step_t;

typedef struct {
  const mp_program_t *program;
  const mp_cost_t *costs;  // [program->num_commands]
  uint32_t num_steps;
  const mp_timing_step_t *steps;
  uint32_t num_collectives;
  const uint32_t *collectives;  // [num_collectives] the commands that are collectives
  bool has_choices;             // some step is a LOOP, BRANCH or SWITCH
} mp_timing_t;

// Makes the timing of a program on a chip, in `arena`. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_timing_create(const mp_chip_t *chip, const mp_program_t *program,
                                          mp_arena_t *arena, const mp_timing_t **out_timing);

// What a LOOP step takes when its back edges were taken so often (mp_cost_of_loop).
mp_moment_t mp_timing_loop(const mp_timing_t *timing, const mp_timing_step_t *step,
                           const uint64_t *edges);
// The command that is the collective with this number, below num_collectives.
const mp_cmd_t *mp_timing_collective(const mp_timing_t *timing, uint32_t number);

#endif  // MINIPOD_SIM_MODEL_CLOCK_TIMING_H_
