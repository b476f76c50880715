#include "sim/plan/program_check.h"

#ifdef MINIPOD_ASSERTS

#include "sim/base/assert.h"

static void program_check_slot(const mp_program_t *program, const mp_slot_t *slot) {
  switch (slot->kind) {
    case MP_SLOT_NONE:
      return;
    case MP_SLOT_ARENA:
      MP_ASSERT_MSG(slot->offset < program->arena_bytes && slot->offset % 64 == 0,
                    "offset %llu in an arena of %llu bytes", (unsigned long long)slot->offset,
                    (unsigned long long)program->arena_bytes);
      return;
    case MP_SLOT_PARAM:
      MP_ASSERT(slot->index < program->num_params);
      return;
    case MP_SLOT_RESULT:
      MP_ASSERT(slot->index < program->num_results && slot->offset % 64 == 0);
      MP_ASSERT(slot->offset < program->results[slot->index].bytes);
      return;
    case MP_SLOT_CONSTANT:
      MP_ASSERT(slot->index < program->num_constants);
      return;
  }
  MP_ASSERT_NOT_REACHED();
}

// The number of bytes from the slot to the end of its memory; UINT64_MAX if it is not known here.
static uint64_t program_check_room(const mp_program_t *program, const mp_slot_t *slot) {
  switch (slot->kind) {
    case MP_SLOT_ARENA:
      return program->arena_bytes - slot->offset;
    case MP_SLOT_PARAM:
      return program->params[slot->index].bytes - slot->offset;
    case MP_SLOT_RESULT:
      return program->results[slot->index].bytes - slot->offset;
    case MP_SLOT_CONSTANT:
      return program->constants[slot->index].bytes - slot->offset;
    case MP_SLOT_NONE:
      break;
  }
  return 0;
}

static void program_check_command(const mp_program_t *program, const mp_cmd_t *cmd) {
  for (uint32_t i = 0; i < cmd->num_operands; ++i) program_check_slot(program, &cmd->operands[i]);
  for (uint32_t i = 0; i < cmd->num_results; ++i) {
    program_check_slot(program, &cmd->results[i]);
    MP_ASSERT(cmd->results[i].kind != MP_SLOT_CONSTANT);
  }
  for (uint32_t i = 0; i < cmd->num_targets; ++i) {
    MP_ASSERT(cmd->targets[i] < program->num_commands);
  }
  switch (cmd->kind) {
    case MP_CMD_LAUNCH:
      MP_ASSERT(cmd->kernel != NULL && cmd->kernel->run != NULL && cmd->kernel->num_parts >= 1);
      MP_ASSERT(cmd->kernel->scratch_bytes <= program->scratch_bytes);
      return;
    case MP_CMD_TALK:
      MP_ASSERT(cmd->kernel != NULL && cmd->kernel->talk != NULL);
      return;
    case MP_CMD_CALL:
      MP_ASSERT(cmd->call != NULL && cmd->num_operands == cmd->call->num_inputs);
      MP_ASSERT(cmd->num_results == cmd->call->num_outputs);
      return;
    case MP_CMD_COLLECTIVE:
    case MP_CMD_SEND:
    case MP_CMD_RECV:
      MP_ASSERT(cmd->collective != NULL && cmd->collective->groups != NULL);
      MP_ASSERT(cmd->collective->ordinal < program->num_collectives);
      return;
    case MP_CMD_COPY:
      MP_ASSERT(cmd->num_operands == 1 && cmd->num_results == 1);
      MP_ASSERT(cmd->bytes <= program_check_room(program, &cmd->operands[0]));
      MP_ASSERT(cmd->bytes <= program_check_room(program, &cmd->results[0]));
      return;
    case MP_CMD_REPLICA_ID:
    case MP_CMD_PARTITION_ID:
      MP_ASSERT(cmd->num_results == 1);
      return;
    case MP_CMD_JUMP:
      MP_ASSERT(cmd->num_targets == 1);
      return;
    case MP_CMD_BRANCH_UNLESS:
      MP_ASSERT(cmd->num_targets == 1 && cmd->num_operands == 1);
      return;
    case MP_CMD_SWITCH:
      MP_ASSERT(cmd->num_targets >= 1 && cmd->num_operands == 1);
      return;
    case MP_CMD_LOOP:
      MP_ASSERT(cmd->loop != NULL && cmd->num_body != 0 && cmd->num_results <= cmd->num_operands);
      MP_ASSERT(mp_loop_scratch_bytes(cmd->loop) <= program->scratch_bytes);
      for (uint32_t i = 0; i < cmd->num_body; ++i) {
        MP_ASSERT(cmd->body[i].kind != MP_CMD_LOOP && cmd->body[i].kind != MP_CMD_DONE);
      }
      return;
    case MP_CMD_DONE:
      return;
  }
  MP_ASSERT_NOT_REACHED();
}

// Checks that a donated parameter and the result that takes it over name each other.
static void program_check_aliases(const mp_program_io_t *from, uint32_t num_from,
                                  const mp_program_io_t *to, uint32_t num_to) {
  for (uint32_t i = 0; i < num_from; ++i) {
    const int32_t alias = from[i].alias;
    if (alias == -1) continue;
    MP_ASSERT(alias >= 0 && (uint32_t)alias < num_to);
    MP_ASSERT(to[alias].alias == (int32_t)i);
    MP_ASSERT(to[alias].bytes == from[i].bytes && to[alias].memory == from[i].memory);
  }
}

void mp_program_check(const mp_program_t *program) {
  MP_ASSERT(program->num_commands != 0);
  MP_ASSERT(program->commands[program->num_commands - 1].kind == MP_CMD_DONE);
  for (uint32_t i = 0; i < program->num_commands; ++i) {
    program_check_command(program, &program->commands[i]);
  }
  program_check_aliases(program->params, program->num_params, program->results,
                        program->num_results);
  program_check_aliases(program->results, program->num_results, program->params,
                        program->num_params);
}

#endif  // MINIPOD_ASSERTS
