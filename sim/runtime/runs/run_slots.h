// The addresses of what a command reads and writes. Inline, because every command needs them.
#ifndef MINIPOD_SIM_RUNTIME_RUNS_RUN_SLOTS_H_
#define MINIPOD_SIM_RUNTIME_RUNS_RUN_SLOTS_H_

#include "sim/base/alloc.h"
#include "sim/runtime/runs/run.h"

static inline void *mp_run_address(const mp_run_t *run, const mp_slot_t *slot) {
  switch (slot->kind) {
    case MP_SLOT_ARENA:
      return run->arena + slot->offset;
    case MP_SLOT_PARAM:
      return (char *)run->params[slot->index] + slot->offset;
    case MP_SLOT_RESULT:
      return (char *)run->results[slot->index] + slot->offset;
    case MP_SLOT_CONSTANT:
      return (char *)run->executable->program->constants[slot->index].data + slot->offset;
    case MP_SLOT_NONE:
      break;
  }
  return mp_empty_array();
}

// Sets run->inputs and run->outputs to the addresses for a command.
static inline void mp_run_resolve(mp_run_t *run, const mp_cmd_t *cmd) {
  MP_ASSERT(cmd->num_operands <= run->executable->max_operands);
  MP_ASSERT(cmd->num_results <= run->executable->max_results);
  for (uint32_t i = 0; i < cmd->num_operands; ++i) {
    run->inputs[i] = mp_run_address(run, &cmd->operands[i]);
  }
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    run->outputs[i] = mp_run_address(run, &cmd->results[i]);
  }
}

#endif  // MINIPOD_SIM_RUNTIME_RUNS_RUN_SLOTS_H_
