// The chip program: what the described chip would run where this machine runs a program.
//
// A partitioned program has two lives. sim/plan makes what this machine runs; the chip program is
// made, from the program before anything was fused, of what the compiler of the described chip
// would make of it: kernels, collectives and control flow, as steps with times. Of the machine's
// run it takes only which way control flow went (sim/model/clock/replay/path.h). So virtual times
// do not depend on threads, fusion, machine code or buffers of this machine.
//
// A chip program lives in an arena, refers to its program, and may be read by any thread.
#ifndef MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_
#define MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_

#include "collectives/collective.h"
#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/chip/cost/chip.h"
#include "sim/chip/memory/chip_memory.h"
#include "sim/chip/moment.h"
#include "sim/chip/schedule/overlap.h"
#include "sim/plan/program.h"

// A kernel of the chip, or a copy that it makes.
typedef struct {
  const mp_op_t *op;  // that leads it (fuse/chip_fusion.h); of a copy: for which it is made
  const char *name;   // "dot_general", "copy"; borrowed
  mp_work_class_t work_class;
  mp_flop_kind_t kind;            // of a matmul of matrices; F32 if it is none
  double flops, transcendentals;  // of all its ops
  double bytes;                   // that go through the chip's memory
  double seconds;
} mp_chip_kernel_t;

typedef struct {
  const mp_op_t *op;
  // All ops of which the chip's compiler makes this one, with `op` the first; 0: `op` alone.
  uint32_t num_ops;
  const mp_op_t *const *ops;
  const char *name;  // "all_reduce"; borrowed
  const mp_collective_t *collective;
  mp_overlap_t overlap;  // SYNC: devices wait where they meet; else they start it and wait later
} mp_chip_collective_t;

// A copy between the device and its host's memory, on a stream of its own for each direction.
typedef struct {
  const mp_op_t *op;  // the placement (mp_op_crosses)
  bool is_to_host, is_async;
  double bytes;
  double seconds;  // 0: nobody knows the host's link
  uint32_t slot;   // of those that a device may have started at a time, its number
} mp_chip_copy_t;

typedef enum {
  MP_CHIP_STEP_WORK,   // its kernels one after the other, which takes `time`
  MP_CHIP_STEP_LOCAL,  // a loop or branch in which no device meets another one: `flow`
  MP_CHIP_STEP_MEET,   // a collective
  MP_CHIP_STEP_START,  // of a collective that goes on beside what comes next, until
  MP_CHIP_STEP_DONE,   // the device waits for it
  MP_CHIP_STEP_SEND,   // hands a message over; does not wait
  MP_CHIP_STEP_RECV,   // waits for a message
  MP_CHIP_STEP_COPY,   // begins a copy to the host or from it, which goes on beside what comes next
  MP_CHIP_STEP_AWAIT,  // until the device waits for it
  MP_CHIP_STEP_JUMP,   // to targets[0]
  MP_CHIP_STEP_BRANCH,  // to targets[0] if the choice is 1: a loop is left
  MP_CHIP_STEP_SWITCH,  // to targets[choice]
  MP_CHIP_STEP_PART,    // of a LOCAL step, to which it belongs: WORK in it, or control flow in it
  MP_CHIP_STEP_END,
} mp_chip_step_kind_t;

typedef struct mp_chip_flow_s mp_chip_flow_t;

typedef struct {
  mp_chip_step_kind_t kind;
  uint32_t first, end;         // WORK, and PART that is work: its kernels [first, end)
  mp_moment_t time;            // of these; DONE: what the collective took from work beside it
  uint32_t collective;         // MEET, START, DONE, SEND, RECV: its number in the chip program
  uint32_t copy;               // COPY, AWAIT: the same of the copy
  const mp_op_t *op;           // of control flow, else NULL
  int64_t rounds;              // BRANCH: how often the loop goes round, if that is known; else -1
  uint32_t num_targets;        // JUMP, BRANCH, SWITCH; of LOCAL one: what comes behind it
  const uint32_t *targets;     // numbers of steps
  const mp_chip_flow_t *flow;  // LOCAL
} mp_chip_step_t;

// The condition or the body of a loop, or a branch's region: its work, and control flow in it.
typedef struct {
  uint32_t step;  // its work, a PART; UINT32_MAX: it has none
  uint32_t num_flows;
  const mp_chip_flow_t *flows;
} mp_chip_block_t;

// A loop (blocks: its condition and its body) or branch that is local. How often each block is done
// is all that its time depends on.
struct mp_chip_flow_s {
  uint32_t step;  // its LOCAL step, or the PART that stands for it
  uint32_t control;
  bool is_loop;
  int64_t rounds;  // as of a step
  uint32_t num_blocks;
  const mp_chip_block_t *blocks;
};

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
  uint32_t num_tracks;    // how many of those that a device has started go on at a time
  uint32_t most_started;  // that a device has not waited for yet
  uint32_t num_controls;  // numbers of loops and branches are below it
  bool has_choices;       // some step is LOCAL, BRANCH or SWITCH
  mp_chip_memory_t memory;
} mp_chip_program_t;

// What the chip program has to know of the network to which the chip belongs: about how many
// seconds a collective takes that has its links for itself, bytes/s of a link of the chip, one way
// (0: not described), and the link to its host: seconds before bytes flow, and bytes/s in one
// direction, when all chips of the host copy (0: copies take nothing). `spread`: how its first
// group lies in a slice; NULL: each member is a chip, along one dimension.
typedef struct {
  uint32_t num_chips;  // several members may be cores of one
  uint32_t num_dims;   // along so many; along one where they are no box
} mp_chip_spread_t;

typedef struct {
  mp_status_t (*seconds)(void *context, const mp_collective_t *collective, double *out_seconds);
  mp_chip_spread_t (*spread)(void *context, const mp_collective_t *collective);
  void *context;
  double bandwidth;
  double host_latency, host_bandwidth;
} mp_chip_links_t;

// Makes the chip program of a program that has kept what it was made of (mp_program_t.partitioned),
// in `arena`. `links` NULL: no collective goes on beside work. Errors: memory is short; what
// mp_plan_lower_collective and `links` say.
MP_NODISCARD mp_status_t mp_chip_program_create_linked(const mp_chip_t *chip,
                                                       const mp_program_t *program,
                                                       const mp_chip_links_t *links,
                                                       mp_arena_t *arena,
                                                       const mp_chip_program_t **out_program);
// The same without links.
MP_NODISCARD mp_status_t mp_chip_program_create(const mp_chip_t *chip, const mp_program_t *program,
                                                mp_arena_t *arena,
                                                const mp_chip_program_t **out_program);

#endif  // MINIPOD_SIM_CHIP_CHIP_PROGRAM_H_
