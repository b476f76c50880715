// Small loops: a `while` whose body is small runs as one command, a program of short steps.
//
// As commands, the ops of a body on a few elements spend more time on overhead than on computing:
// resolving slots, making a job, inspecting shapes. Here all of this is done when the loop is
// entered. A step has the addresses that it reads and writes, and computes scalars itself. The bits
// are those of the commands.
//
// A loop is constant, and any number of devices may run it at the same time. Its carried values are
// only in its slots, so it can stop at any back edge and continue later, on another thread.
#ifndef MINIPOD_SIM_LOOPS_LOOP_H_
#define MINIPOD_SIM_LOOPS_LOOP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/kernels/kernel.h"

typedef struct mp_loop_s mp_loop_t;

// ---- running ----

typedef struct {
  void *const *slots;  // the addresses of the loop's slots, by number
  void *scratch;       // mp_loop_scratch_bytes that only this thread uses, 64-byte aligned
  uint32_t replica, partition;
  // Called at back edges, every few microseconds: whether the loop has to stop there.
  bool (*must_stop)(void *context);
  void *context;
  // Where to continue: 0 at first, later the value that a stopped call has written.
  uint32_t at;
  // [mp_loop_num_edges] counters of how often each back edge was taken, in the order of the
  // commands, to which the run adds; NULL: not counted. Invalid after an error.
  uint64_t *edges;
} mp_loop_run_t;

// Runs the loop until it ends (`out_is_over`) or has to stop. Errors are those of kernels. Takes no
// locks and allocates nothing.
MP_NODISCARD mp_status_t mp_loop_run(const mp_loop_t *loop, mp_loop_run_t *run, bool *out_is_over);

// The number of back edges: one for each loop, the loop itself and those in it.
uint32_t mp_loop_num_edges(const mp_loop_t *loop);

// The scratch memory that mp_loop_run needs, in bytes.
size_t mp_loop_scratch_bytes(const mp_loop_t *loop);

// The estimated time of its steps, each done once, in seconds.
double mp_loop_seconds(const mp_loop_t *loop);

// The number of steps, for the program's text.
uint32_t mp_loop_num_steps(const mp_loop_t *loop);

// ---- making ----
//
// A builder takes the commands of the loop one after the other: first mp_loop_begin_command, then
// the functions for the command's work. Slots are numbers, as in mp_loop_run_t. `out_can` says
// whether the command can be part of a small loop; if one cannot, the builder is unusable. All
// memory comes from the arena; the only errors are RESOURCE_EXHAUSTED and those of kernels that are
// made here (mp_kernel_create).

// The slot of a value without bytes.
#define MP_LOOP_NO_SLOT UINT32_MAX

typedef struct {
  const void *constant;  // its bytes, if they are known; such a slot has no address in a run
  bool is_written;       // by a command of the loop
  // Only slots with the same `memory` may overlap; they begin at `offset` in it. Other slots never
  // overlap while both hold values that will be read.
  uint64_t memory, offset;
  bool is_temporary;  // only the loop reads and writes these bytes, and does not carry them over
} mp_loop_slot_t;

typedef struct mp_loop_builder_s mp_loop_builder_t;

// `slots` is borrowed for as long as the loop lives. A straight one has no jumps: it is a sequence
// of commands that run once.
MP_NODISCARD mp_status_t mp_loop_builder_create(mp_arena_t *arena, uint32_t num_slots,
                                                const mp_loop_slot_t *slots, uint32_t num_commands,
                                                bool is_straight, mp_loop_builder_t **out_builder);
void mp_loop_begin_command(mp_loop_builder_t *builder);
MP_NODISCARD mp_status_t mp_loop_add_copy(mp_loop_builder_t *builder, uint32_t from, uint32_t to,
                                          uint64_t bytes);
// The kernel's operands and results, as in a LAUNCH command.
MP_NODISCARD mp_status_t mp_loop_add_kernel(mp_loop_builder_t *builder, const mp_kernel_t *kernel,
                                            const uint32_t *operands, uint32_t num_operands,
                                            const uint32_t *results, uint32_t num_results,
                                            bool *out_can);
// Writes the number of the replica or of the partition (u32).
MP_NODISCARD mp_status_t mp_loop_add_number(mp_loop_builder_t *builder, bool is_replica,
                                            uint32_t to);
// Jumps. Targets are numbers of commands; the one after the last command is the loop's end. A
// target that is not after the current command is a back edge.
MP_NODISCARD mp_status_t mp_loop_add_jump(mp_loop_builder_t *builder, uint32_t target);
// Jumps if the element (bool) is false; not a back edge.
MP_NODISCARD mp_status_t mp_loop_add_branch_unless(mp_loop_builder_t *builder, uint32_t slot,
                                                   uint32_t target);
// Jumps to targets[i], i = the element (s32) when 0 <= i < count - 1, else count - 1; no back
// edges.
MP_NODISCARD mp_status_t mp_loop_add_switch(mp_loop_builder_t *builder, uint32_t slot,
                                            const uint32_t *targets, uint32_t count);
MP_NODISCARD mp_status_t mp_loop_builder_end(mp_loop_builder_t *builder,
                                             const mp_loop_t **out_loop);

#endif  // MINIPOD_SIM_LOOPS_LOOP_H_
