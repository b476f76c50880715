// Between the emitter's files: its state and what each file offers the others.
#ifndef MINIPOD_SIM_PLAN_EMITTER_H_
#define MINIPOD_SIM_PLAN_EMITTER_H_

#include "sim/base/containers/array.h"
#include "sim/plan/plan.h"

typedef struct {
  mp_module_t *module;
  const mp_plan_options_t *options;
  mp_program_t *program;
  mp_arena_t *arena;    // the program's
  mp_arena_t *scratch;  // dies with the planning
  mp_liveness_table_t live;
  // By position of the op: made when first asked for, since some decisions need them early.
  const mp_kernel_t **kernels;
  // By id of a root value: where it is. While emitting, an ARENA slot's index is its place.
  mp_slot_t *slots;
  bool *has_slot;
  MP_ARRAY(mp_place_t) places;                // in scratch
  MP_ARRAY(mp_cmd_t) commands;                // in the program's arena
  MP_ARRAY(mp_program_constant_t) constants;  // there too
} mp_emitter_t;

// ---- emit_slots.c: places of values ----

mp_value_t *mp_emit_root(const mp_emitter_t *emitter, const mp_value_t *value);
mp_liveness_t *mp_emit_live(const mp_emitter_t *emitter, const mp_value_t *value);
mp_slot_t mp_emit_slot(const mp_emitter_t *emitter, const mp_value_t *value);
void mp_emit_set_slot(mp_emitter_t *emitter, const mp_value_t *value, mp_slot_t slot);
bool mp_emit_same_slot(mp_slot_t a, mp_slot_t b);

// A new place in the arena, live in [start, end].
MP_NODISCARD mp_status_t mp_emit_new_place(mp_emitter_t *emitter, uint32_t start, uint32_t end,
                                           const mp_type_t *type, mp_slot_t *out_slot);

// Tries to have `value` computed right into `slot`, so that no copy is needed. Until position
// `busy` the slot's memory is read as `holder` (NULL: by nobody). `block` is where the value must
// be defined: one from further out would have to stay.
MP_NODISCARD mp_status_t mp_emit_bind(mp_emitter_t *emitter, mp_value_t *value,
                                      const mp_block_t *block, mp_slot_t slot, uint32_t busy,
                                      const mp_value_t *holder);

// Gives the results of an op their places: where they are bound already, in place of an operand
// that dies here, or a new one.
MP_NODISCARD mp_status_t mp_emit_place_results(mp_emitter_t *emitter, mp_op_t *op);

// The op's kernel, made once.
MP_NODISCARD mp_status_t mp_emit_kernel(mp_emitter_t *emitter, const mp_op_t *op,
                                        const mp_kernel_t **out_kernel);

// ---- emit_commands.c: single commands ----

MP_NODISCARD mp_status_t mp_emit_command(mp_emitter_t *emitter, const mp_cmd_t *command,
                                         uint32_t *out_number);
MP_NODISCARD mp_status_t mp_emit_copy(mp_emitter_t *emitter, const mp_op_t *op, mp_slot_t from,
                                      mp_slot_t to, const mp_type_t *type);

// Copies that happen at once, as it were: those whose source is another one's target go through a
// temporary place, live in [start, end].
typedef struct {
  mp_slot_t from, to;
  const mp_type_t *type;
} mp_emit_move_t;
MP_NODISCARD mp_status_t mp_emit_moves(mp_emitter_t *emitter, const mp_op_t *op,
                                       mp_emit_move_t *moves, uint32_t count, uint32_t start,
                                       uint32_t end);

// One op that is no control flow.
MP_NODISCARD mp_status_t mp_emit_simple_op(mp_emitter_t *emitter, mp_op_t *op);

// ---- emit_control.c ----

// All ops of a block but its terminator, which is handed back.
MP_NODISCARD mp_status_t mp_emit_block(mp_emitter_t *emitter, mp_block_t *block,
                                       mp_op_t **out_terminator);

#endif  // MINIPOD_SIM_PLAN_EMITTER_H_
