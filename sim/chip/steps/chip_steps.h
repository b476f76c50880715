// The steps of a chip program: kernels, communication and control flow in their order.
#ifndef MINIPOD_SIM_CHIP_STEPS_CHIP_STEPS_H_
#define MINIPOD_SIM_CHIP_STEPS_CHIP_STEPS_H_

#include "sim/chip/cost/chip.h"
#include "sim/chip/memory/chip_memory.h"
#include "sim/chip/schedule/communication.h"
#include "sim/chip/steps/moment.h"
#include "sim/mosaic/price/price.h"
#include "sim/plan/program.h"

// A kernel of the chip, or a copy.
typedef struct {
  const mp_op_t *op;  // the hero of its fusion; of a copy: the op that needs it
  const char *name;   // "dot_general", "copy"; borrowed
  mp_work_class_t work_class;
  mp_flop_kind_t kind;            // of a matmul; F32 for other kernels
  double flops, transcendentals;  // of all ops
  double bytes;                   // moved through HBM
  double seconds;
  mp_chip_figure_t figure;  // the parameter that decides its time (basis/kernel_basis.h)
  const mp_price_t *price;  // of a TPU kernel that is priced by its own program; NULL: others
  uint32_t fusion;          // 1 + the number of its fusion; 0: a copy, or an op on the scalar unit
} mp_chip_kernel_t;

typedef enum {
  MP_CHIP_STEP_WORK,    // runs kernels one after the other, which takes `time`
  MP_CHIP_STEP_LOCAL,   // a loop or branch without communication: `flow`
  MP_CHIP_STEP_MEET,    // a synchronous collective
  MP_CHIP_STEP_START,   // starts a collective, which runs concurrently with the next steps
  MP_CHIP_STEP_DONE,    // waits for the end of a started collective
  MP_CHIP_STEP_SEND,    // sends a message; does not wait
  MP_CHIP_STEP_RECV,    // waits for a message
  MP_CHIP_STEP_COPY,    // starts a host copy, which runs concurrently with the next steps
  MP_CHIP_STEP_AWAIT,   // waits for the end of a started host copy
  MP_CHIP_STEP_JUMP,    // jumps to targets[0]
  MP_CHIP_STEP_BRANCH,  // leaves a loop: jumps to targets[0] if the choice is 1
  MP_CHIP_STEP_SWITCH,  // jumps to targets[choice]
  MP_CHIP_STEP_PART,    // kernels or control flow that belong to a LOCAL step
  MP_CHIP_STEP_END,
} mp_chip_step_kind_t;

typedef struct mp_chip_flow_s mp_chip_flow_t;

typedef struct {
  mp_chip_step_kind_t kind;
  uint32_t first, end;         // WORK, and PART without control flow: its kernels [first, end)
  mp_moment_t time;            // of these; DONE: by how much the collective slowed down compute
  uint32_t collective;         // MEET, START, DONE, SEND, RECV: its number in the chip program
  uint32_t copy;               // COPY, AWAIT: the number of the host copy
  const mp_op_t *op;           // of control flow, communication and host copies; else NULL
  int64_t rounds;              // of a loop: the trip count; -1: unknown, or not a loop
  uint32_t num_targets;        // JUMP, BRANCH, SWITCH; LOCAL: one, the step after it
  const uint32_t *targets;     // numbers of steps
  const mp_chip_flow_t *flow;  // LOCAL
} mp_chip_step_t;

// The condition or body of a loop, or a region of a branch: its kernels, and its control flow.
typedef struct {
  uint32_t step;  // its kernels, a PART; UINT32_MAX: none
  uint32_t num_flows;
  const mp_chip_flow_t *flows;
} mp_chip_block_t;

// A local loop (blocks: its condition and its body) or branch. Its time depends only on how often
// each block runs. Or a kernel whose time depends on values: its block has the kernel, and each
// choice of a path is its time in picoseconds.
struct mp_chip_flow_s {
  uint32_t step;  // its LOCAL step, or its PART if it is nested in one
  uint32_t control;
  bool is_loop, is_by_values;
  int64_t rounds;  // the trip count, as in a step
  uint32_t num_blocks;
  const mp_chip_block_t *blocks;
};

// A chip program (chip_program.h).
typedef struct {
  const mp_program_t *program;
  uint32_t num_kernels;
  const mp_chip_kernel_t *kernels;
  uint32_t num_steps;
  const mp_chip_step_t *steps;
  uint32_t num_collectives;
  const mp_chip_collective_t *collectives;
  uint32_t num_copies;
  const mp_chip_copy_t *copies;
  uint32_t num_copy_slots;
  uint32_t num_tracks;    // how many started collectives run at a time
  uint32_t most_started;  // the most collectives that a device has started and not waited for
  uint32_t num_controls;  // numbers of loops and branches (mp_op_t.control) are below it
  bool has_choices;       // some step is LOCAL, BRANCH or SWITCH
  mp_chip_memory_t memory;
} mp_chip_program_t;

// Makes the chip program of the program of `c`, but for `memory`, in the arena of `c`. Numbers the
// ops. Adds the collectives and host copies to `c`. `out_extras`: in the scratch of `c`.
MP_NODISCARD mp_status_t mp_chip_steps_make(mp_communication_t *c, mp_chip_program_t *out_program,
                                            mp_memory_extras_t *out_extras);

#endif  // MINIPOD_SIM_CHIP_STEPS_CHIP_STEPS_H_
