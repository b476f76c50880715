// What the commands of a device program cost on a chip: a roofline.
//
// A real accelerator's compiler would make one kernel of several commands: of a product, the bias
// and the activation behind it, for example. Such a cluster has one time; it stands at the command
// that leads the cluster, and the others' is 0 (README.md says what makes a cluster). The sum over
// the commands that a run executes is the run's time on the chip, without collectives, transfers
// and the launch itself.
//
// Costs lie in an arena and may be read by any number of threads.
#ifndef MINIPOD_SIM_MODEL_COST_COST_H_
#define MINIPOD_SIM_MODEL_COST_COST_H_

#include "sim/base/arena.h"
#include "sim/model/cost/chip.h"
#include "sim/plan/program.h"

typedef struct mp_cost_s mp_cost_t;
struct mp_cost_s {
  mp_work_class_t work_class;     // of the cluster, at its leader; of others, of the command alone
  mp_flop_kind_t kind;            // of a product of matrices; F32 if it is none
  double flops, transcendentals;  // of this command alone, as in the program's cost analysis
  // Of the whole cluster, at its leader: the bytes that go through memory, and the time. 0 at
  // commands that another one leads, and of collectives, sends, receives and jumps.
  double bytes, seconds;
  uint32_t leader;  // the command's number, in `body` for one that is there; its own if it leads
  // Of a LOOP command: the costs of the commands in its body, by number. Its own figures are those
  // of a run in which every loop makes one round whenever it is entered, and all branches of a
  // switch are equally likely. See mp_cost_of_loop.
  const mp_cost_t *body;
};

// The costs of all commands of a program, [program->num_commands], in `arena`; they do not refer to
// the chip. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_cost_of_program(const mp_chip_t *chip, const mp_program_t *program,
                                            mp_arena_t *arena, const mp_cost_t **out_costs);

// Adds up what the body of a LOOP command, whose cost is `cost`, costs in a run in which its back
// edges were taken so often: edges[i] is the number of rounds of the i-th back edge
// (mp_loop_run_t.edges), NULL: as many rounds as the program says (mp_cmd_t.rounds), or one,
// whenever a loop is entered. It is exact but for switches, whose branches share the times that
// they are passed. Flops, transcendentals, bytes and seconds are set.
void mp_cost_of_loop(const mp_cmd_t *loop, const mp_cost_t *cost, const uint64_t *edges,
                     mp_cost_t *out_cost);

#endif  // MINIPOD_SIM_MODEL_COST_COST_H_
