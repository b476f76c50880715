#include <string.h>

#include "sim/base/assert.h"
#include "sim/kernels/table/kernel_table.h"
#include "sim/plan/emitter.h"
#include "sim/work/work.h"

mp_status_t mp_emit_moves(mp_emitter_t *emitter, const mp_op_t *op, mp_emit_move_t *moves,
                          uint32_t count, uint32_t start, uint32_t end) {
  for (uint32_t i = 0; i < count; ++i) {
    // A move whose source and target are the same slot writes nothing. A program may end with
    // 65,536 of these, so they must not be compared with each other.
    if (mp_emit_same_slot(moves[i].from, moves[i].to)) continue;
    bool is_target = false;
    for (uint32_t j = 0; j < count && !is_target; ++j) {
      is_target = j != i && moves[i].from.kind != MP_SLOT_NONE &&
                  mp_emit_same_slot(moves[i].from, moves[j].to) &&
                  !mp_emit_same_slot(moves[j].from, moves[j].to);
    }
    if (!is_target) continue;
    mp_slot_t place;
    MP_RETURN_IF_ERROR(mp_emit_new_place(emitter, start, end, moves[i].type, &place));
    MP_RETURN_IF_ERROR(mp_emit_copy(emitter, op, moves[i].from, place, moves[i].type));
    moves[i].from = place;
  }
  for (uint32_t i = 0; i < count; ++i) {
    MP_RETURN_IF_ERROR(mp_emit_copy(emitter, op, moves[i].from, moves[i].to, moves[i].type));
  }
  return NULL;
}

// ---- constants ----

static mp_status_t emit_commands_add_constant(mp_emitter_t *emitter, const void *data,
                                              uint64_t bytes, mp_slot_t *out_slot) {
  const mp_program_constant_t constant = {data, bytes};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(emitter->arena, &emitter->constants, constant));
  *out_slot = (mp_slot_t){.kind = MP_SLOT_CONSTANT, .index = emitter->constants.count - 1};
  return NULL;
}

// Adds a constant to the program, with splats expanded and aligned as kernels expect.
static mp_status_t emit_commands_constant(mp_emitter_t *emitter, mp_op_t *op) {
  const mp_attr_t *value = mp_op_attr(op, MP_ATTR_VALUE);
  int64_t bytes = 0;
  if (value == NULL || value->kind != MP_KIND_DENSE ||
      !mp_type_num_bytes(op->results[0].type, &bytes)) {
    return mp_op_error(op, MP_UNIMPLEMENTED, "a constant of this form is not supported");
  }
  mp_slot_t slot = {.kind = MP_SLOT_NONE};
  const bool is_splat = value->u.dense.splat && (int64_t)value->u.dense.size != bytes;
  if (bytes != 0) {
    const char *data = value->u.dense.data;
    if (is_splat || (uintptr_t)data % 64 != 0) {
      char *memory = mp_arena_alloc(emitter->arena, (size_t)bytes + 63);
      MP_RETURN_IF_NULL(memory);
      memory += (64 - (uintptr_t)memory % 64) % 64;
      const size_t size = is_splat ? value->u.dense.size : (size_t)bytes;
      MP_ASSERT(size != 0 && (size_t)bytes % size == 0 && size <= value->u.dense.size);
      for (int64_t at = 0; at < bytes; at += (int64_t)size) memcpy(memory + at, data, size);
      data = memory;
    }
    MP_RETURN_IF_ERROR(emit_commands_add_constant(emitter, data, (uint64_t)bytes, &slot));
  }
  mp_emit_set_slot(emitter, &op->results[0], slot);
  return NULL;
}

// ---- commands from ops ----

static mp_status_t emit_commands_fill_operands(mp_emitter_t *emitter, const mp_op_t *op,
                                               mp_cmd_t *command) {
  mp_value_t **captures = NULL;
  uint32_t num_captures = 0;
  if (op->num_regions != 0) {
    MP_RETURN_IF_ERROR(mp_op_captures(op, emitter->scratch, &captures, &num_captures));
  }
  const uint32_t count = op->num_operands + num_captures;
  mp_slot_t *operands = MP_ARENA_ARRAY(emitter->arena, mp_slot_t, count);
  mp_slot_t *results = MP_ARENA_ARRAY(emitter->arena, mp_slot_t, op->num_results);
  if (operands == NULL || results == NULL) return mp_status_out_of_memory();
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    operands[i] = mp_emit_slot(emitter, mp_kernel_operand(op, i));
  }
  for (uint32_t i = 0; i < num_captures; ++i) {
    operands[op->num_operands + i] = mp_emit_slot(emitter, captures[i]);
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    results[i] = mp_emit_slot(emitter, &op->results[i]);
  }
  command->num_operands = count;
  command->operands = operands;
  command->num_results = op->num_results;
  command->results = results;
  return NULL;
}

static void emit_commands_keep_tensors(mp_cmd_t *command, const mp_op_t *op) {
  // The operands of a send and the results of a recv end with a token, which has no bytes.
  while (command->num_operands != 0 &&
         !mp_type_is_tensor(op->operands[command->num_operands - 1]->type)) {
    --command->num_operands;
  }
  while (command->num_results != 0 &&
         !mp_type_is_tensor(op->results[command->num_results - 1].type)) {
    --command->num_results;
  }
}

static mp_status_t emit_commands_collective(mp_emitter_t *emitter, mp_op_t *op, mp_cmd_t *command) {
  const mp_collective_t *collective = NULL;
  MP_RETURN_IF_ERROR(mp_plan_lower_collective(
      emitter->arena, &emitter->groups, op, emitter->options->num_replicas,
      emitter->options->num_partitions, emitter->program->num_collectives++, &collective));
  command->kind = op->code == MP_OP_SEND   ? MP_CMD_SEND
                  : op->code == MP_OP_RECV ? MP_CMD_RECV
                                           : MP_CMD_COLLECTIVE;
  command->collective = collective;
  emit_commands_keep_tensors(command, op);
  for (uint32_t group = 0; group < collective->groups->num_groups; ++group) {
    size_t bytes = mp_collective_scratch_bytes(collective, group);
    if (bytes > emitter->program->scratch_bytes) emitter->program->scratch_bytes = bytes;
  }
  return mp_emit_command(emitter, command, NULL);
}

// Adds the work of one op to the program's, for cost analysis.
static void emit_commands_count_work(mp_emitter_t *emitter, const mp_op_t *op) {
  mp_program_t *program = emitter->program;
  double bytes = 0;
  mp_work_t work;
  mp_work_of_op(op, &work);
  program->flops += work.flops;
  program->transcendentals += work.transcendentals;
  if (mp_work_of_estimate(op, &work, &bytes)) {
    program->flops += work.flops;
    program->transcendentals += work.transcendentals;
    program->bytes_accessed += bytes;
    if (bytes > 0) return;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    program->bytes_accessed += mp_work_bytes_written(op, i);
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    program->bytes_accessed += mp_work_bytes_read(op, i);
  }
}

// True for a broadcast of a scalar if all its users read the scalar directly, and for an iota if
// all its users count by themselves.
static bool emit_commands_is_unread(const mp_emitter_t *emitter, const mp_op_t *op) {
  if (op->code != MP_OP_BROADCAST_IN_DIM && op->code != MP_OP_IOTA) return false;
  const mp_liveness_t *live = mp_emit_live(emitter, &op->results[0]);
  return live->last_use == live->defined;
}

// Copies large operands with which results begin: several workers share a COPY, but a kernel of one
// part runs on one worker.
static mp_status_t emit_commands_begin_results(mp_emitter_t *emitter, const mp_op_t *op,
                                               mp_cmd_t *command) {
  const uint32_t begins_as = command->kernel->begins_as;
  // The emitter allocated this array, so it may write it; it is const only for readers of the
  // program.
  mp_slot_t *operands = (mp_slot_t *)(uintptr_t)command->operands;
  for (uint32_t i = 0; i < 32 && i < op->num_results; ++i) {
    int64_t bytes = 0;
    const mp_type_t *type = op->results[i].type;
    if ((begins_as >> i & 1) == 0 || !mp_type_num_bytes(type, &bytes)) continue;
    if (mp_copy_num_parts((uint64_t)bytes) == 1) continue;
    MP_RETURN_IF_ERROR(mp_emit_copy(emitter, op, operands[i], command->results[i], type));
    operands[i] = command->results[i];
  }
  return NULL;
}

mp_status_t mp_emit_simple_op(mp_emitter_t *emitter, mp_op_t *op) {
  if (op->code == MP_OP_CONSTANT) return emit_commands_constant(emitter, op);
  // An op whose results are the bytes of its operands needs no command.
  if (op->num_results != 0 && mp_emit_root(emitter, &op->results[0]) != &op->results[0])
    return NULL;
  if (emit_commands_is_unread(emitter, op)) return NULL;
  MP_RETURN_IF_ERROR(mp_emit_place_results(emitter, op));
  if (mp_op_info(op->code)->role == MP_OP_ROLE_NOTHING) return NULL;
  emit_commands_count_work(emitter, op);
  mp_cmd_t command = {.loc = op->loc, .name = mp_op_info(op->code)->name, .control = op->control};
  MP_RETURN_IF_ERROR(emit_commands_fill_operands(emitter, op, &command));
  if (mp_plan_is_collective(op)) return emit_commands_collective(emitter, op, &command);
  if (mp_op_info(op->code)->role == MP_OP_ROLE_COMMAND) {
    command.kind = op->code == MP_OP_REPLICA_ID ? MP_CMD_REPLICA_ID : MP_CMD_PARTITION_ID;
    return mp_emit_command(emitter, &command, NULL);
  }
  if (mp_plan_is_sink(op)) return NULL;
  if (mp_plan_is_foreign(op)) return mp_emit_call(emitter, op, &command);
  command.kind = MP_CMD_LAUNCH;
  MP_RETURN_IF_ERROR(mp_emit_kernel(emitter, op, &command.kernel));
  if (command.kernel->talk != NULL) command.kind = MP_CMD_TALK;
  if (command.kernel->scratch_bytes > emitter->program->scratch_bytes) {
    emitter->program->scratch_bytes = command.kernel->scratch_bytes;
  }
  MP_RETURN_IF_ERROR(emit_commands_begin_results(emitter, op, &command));
  return mp_emit_command(emitter, &command, NULL);
}
