// Calls of foreign functions.
#include "sim/base/assert.h"
#include "sim/plan/emitter.h"

// Such a result and its operand always share memory, because the function may write only a part of
// the result, or rely on their equal addresses.
static mp_status_t emit_call_alias(mp_emitter_t *emitter, const mp_op_t *op, uint32_t index,
                                   mp_slot_t *operands) {
  const int64_t operand = mp_op_aliased_operand(op, index);
  if (operand < 0) return NULL;
  for (uint32_t i = 0; i < index; ++i) {
    if (mp_op_aliased_operand(op, i) != operand) continue;
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "results %u and %u are both to have the memory of operand %lld", i, index,
                       (long long)operand);
  }
  const mp_slot_t to = mp_emit_slot(emitter, &op->results[index]);
  MP_RETURN_IF_ERROR(mp_emit_copy(emitter, op, operands[operand], to, op->results[index].type));
  operands[operand] = to;
  return NULL;
}

mp_status_t mp_emit_call(mp_emitter_t *emitter, mp_op_t *op, mp_cmd_t *command) {
  mp_foreign_call_t *call = NULL;
  MP_RETURN_IF_ERROR(emitter->options->absent_calls ? mp_foreign_call_create_or_absent(op, &call)
                                                    : mp_foreign_call_create(op, &call));
  mp_status_t status = MP_ARRAY_PUSH(emitter->arena, &emitter->calls, call);
  if (status != NULL) {
    mp_foreign_call_release(call);
    return status;
  }
  call->index = emitter->calls.count - 1;
  command->kind = MP_CMD_CALL;
  command->call = call;
  // The emitter allocated this array, so it may write it; it is const only for readers of the
  // program.
  mp_slot_t *operands = (mp_slot_t *)(uintptr_t)command->operands;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    MP_RETURN_IF_ERROR(emit_call_alias(emitter, op, i, operands));
  }
  return mp_emit_command(emitter, command, NULL);
}
