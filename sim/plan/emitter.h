// Shared by the planner's emit_*.c and plan.c: the state of one planning, and functions.
#ifndef MINIPOD_SIM_PLAN_EMITTER_H_
#define MINIPOD_SIM_PLAN_EMITTER_H_

#include "sim/base/containers/array.h"
#include "sim/plan/plan.h"

// The state of one planning. A value's root is the value whose bytes it has (plan.h,
// mp_liveness_t).
typedef struct {
  mp_module_t *module;
  const mp_plan_options_t *options;
  mp_program_t *program;
  mp_arena_t *arena;    // the program's
  mp_arena_t *scratch;  // freed when the planning ends
  mp_liveness_table_t live;
  // By position of the op. A kernel is made on first use, because some decisions need kernels of
  // ops that are emitted later.
  const mp_kernel_t **kernels;
  // By id of a root value: its slot. Until the places are packed, the index of an ARENA slot is the
  // number of its place in `places`.
  mp_slot_t *slots;
  bool *has_slot;
  mp_lender_t *lenders;         // by result of main: its memory, until it is first written
  MP_ARRAY(mp_place_t) places;  // in scratch
  MP_ARRAY(mp_cmd_t) commands;  // in the program's arena
  MP_ARRAY(mp_program_constant_t) constants;  // in the program's arena
  mp_plan_groups_t groups;                    // in the program's arena; of collectives
  MP_ARRAY(mp_foreign_call_t *) calls;  // in the program's arena; released when the planning fails
} mp_emitter_t;

// ---- emit_slots.c: places of values ----

// The value's root, which may be the value itself.
mp_value_t *mp_emit_root(const mp_emitter_t *emitter, const mp_value_t *value);
// When the value's root is defined and last used.
mp_liveness_t *mp_emit_live(const mp_emitter_t *emitter, const mp_value_t *value);
// The slot of a value, which must have one.
mp_slot_t mp_emit_slot(const mp_emitter_t *emitter, const mp_value_t *value);
// Gives a root value its slot.
void mp_emit_set_slot(mp_emitter_t *emitter, const mp_value_t *value, mp_slot_t slot);
// Whether both are the same slot.
bool mp_emit_same_slot(mp_slot_t a, mp_slot_t b);

// Makes a place for a value of `type` in the device program's arena, which is in use from position
// `start` to `end`. A value without bytes gets the slot NONE instead.
MP_NODISCARD mp_status_t mp_emit_new_place(mp_emitter_t *emitter, uint32_t start, uint32_t end,
                                           const mp_type_t *type, mp_slot_t *out_slot);

// Binds `value` to `slot` if it can be computed directly into it, so that no copy is needed. Until
// position `busy` the slot's memory is still read as the value `holder` (NULL: it is not read). The
// value must be defined in `block`, because an outer value would be needed again.
MP_NODISCARD mp_status_t mp_emit_bind(mp_emitter_t *emitter, mp_value_t *value,
                                      const mp_block_t *block, mp_slot_t slot, uint32_t busy,
                                      const mp_value_t *holder);

// Whether `value` and `holder`, a root, may share memory: `value` is the result of a case that is
// the last op to use `holder`, and a branch of the case returns `holder` unchanged.
bool mp_emit_passes_on(const mp_emitter_t *emitter, const mp_value_t *value,
                       const mp_value_t *holder);

// Gives each result of an op its slot: the one to which mp_emit_bind has bound it, that of a dead
// operand that the kernel may overwrite, or a new place.
MP_NODISCARD mp_status_t mp_emit_place_results(mp_emitter_t *emitter, mp_op_t *op);

// The op's kernel, made once.
MP_NODISCARD mp_status_t mp_emit_kernel(mp_emitter_t *emitter, const mp_op_t *op,
                                        const mp_kernel_t **out_kernel);

// Appends a copy of a command; `out_number` (may be NULL) gets its number in the program.
MP_NODISCARD mp_status_t mp_emit_command(mp_emitter_t *emitter, const mp_cmd_t *command,
                                         uint32_t *out_number);
// Appends a COPY of a value of `type` on behalf of `op`; nothing when the slots are the same or the
// value has no bytes.
MP_NODISCARD mp_status_t mp_emit_copy(mp_emitter_t *emitter, const mp_op_t *op, mp_slot_t from,
                                      mp_slot_t to, const mp_type_t *type);

// ---- emit_commands.c: single commands ----

typedef struct {
  mp_slot_t from, to;
  const mp_type_t *type;
} mp_emit_move_t;
// Appends copies with the effect that all of them happen at the same time: a source that is also
// another copy's target is first copied to a temporary place, which is in use from position `start`
// to `end`. Changes `moves`.
MP_NODISCARD mp_status_t mp_emit_moves(mp_emitter_t *emitter, const mp_op_t *op,
                                       mp_emit_move_t *moves, uint32_t count, uint32_t start,
                                       uint32_t end);

// Emits one op that is no control flow.
MP_NODISCARD mp_status_t mp_emit_simple_op(mp_emitter_t *emitter, mp_op_t *op);

// ---- emit_call.c: foreign functions ----

// Makes and emits the call of a foreign function. If the op aliases a result with an operand, the
// operand is first copied into the result, unless it is already there.
MP_NODISCARD mp_status_t mp_emit_call(mp_emitter_t *emitter, mp_op_t *op, mp_cmd_t *command);

// ---- emit_control.c ----

// Emits all ops of a block except its terminator, which is returned.
MP_NODISCARD mp_status_t mp_emit_block(mp_emitter_t *emitter, mp_block_t *block,
                                       mp_op_t **out_terminator);

#endif  // MINIPOD_SIM_PLAN_EMITTER_H_
