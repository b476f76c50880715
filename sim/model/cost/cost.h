// What the commands of a device program cost on a chip: a roofline.
//
// A real accelerator's compiler would make one kernel of several commands: of a product, the bias
// and the activation behind it, for example. Such a cluster has one time; it stands at the command
// that leads the cluster, and the others' is 0 (README.md says what makes a cluster). The sum over
// the commands that a run executes is the run's time on the chip, without collectives and
// transfers.
//
// Costs lie in an arena and may be read by any number of threads.
#ifndef MINIPOD_SIM_MODEL_COST_COST_H_
#define MINIPOD_SIM_MODEL_COST_COST_H_

#include "sim/base/arena.h"
#include "sim/model/cost/chip.h"
#include "sim/plan/program.h"

typedef struct mp_cost_s mp_cost_t;
struct mp_cost_s {
  mp_work_class_t work_class;
  mp_flop_kind_t kind;            // of the products of matrices; F32 if there are none
  double flops, transcendentals;  // of this command alone, as in the program's cost analysis
  // Of the whole cluster, at its leader: the bytes that go through memory, and the time. 0 at
  // commands that other commands lead, and of collectives, sends, receives and jumps.
  double bytes, seconds;
  uint32_t leader;  // command number (in `body`, if the command is in one); its own if none leads
  // Of a LOOP command: the costs of the commands in its body, by number. Its own figures are those
  // of one round of the outermost loop, in which inner loops make the rounds that the program tells
  // by constants, or else one, and all branches of a switch are equally likely. See mp_cost_loop.
  const mp_cost_t *body;
};

// The costs of all commands of a program, [program->num_commands], in `arena`. They refer to
// nothing of the chip's. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_cost_program(const mp_chip_t *chip, const mp_program_t *program,
                                         mp_arena_t *arena, const mp_cost_t **out_costs);

// The cost of a run of a LOOP command in which its back edges, in the order of their commands, were
// taken so often (mp_loop_run_t.edges): exact but for switches, whose branches share the rounds
// equally.
void mp_cost_loop(const mp_cmd_t *loop, const mp_cost_t *cost, const uint64_t *edges,
                  uint32_t num_edges, mp_cost_t *out_cost);

#endif  // MINIPOD_SIM_MODEL_COST_COST_H_
