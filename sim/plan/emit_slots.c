#include "sim/base/assert.h"
#include "sim/kernels/table/kernel_table.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"
#include "sim/plan/emitter.h"

mp_value_t *mp_emit_root(const mp_emitter_t *emitter, const mp_value_t *value) {
  MP_ASSERT(value->id < emitter->live.num_values);
  return emitter->live.values[value->id].root;
}

mp_liveness_t *mp_emit_live(const mp_emitter_t *emitter, const mp_value_t *value) {
  return &emitter->live.values[mp_emit_root(emitter, value)->id];
}

mp_slot_t mp_emit_slot(const mp_emitter_t *emitter, const mp_value_t *value) {
  const mp_value_t *root = mp_emit_root(emitter, value);
  MP_ASSERT(emitter->has_slot[root->id]);
  return emitter->slots[root->id];
}

void mp_emit_set_slot(mp_emitter_t *emitter, const mp_value_t *value, mp_slot_t slot) {
  MP_ASSERT(slot.kind != MP_SLOT_ARENA || slot.index < emitter->places.count);
  emitter->slots[value->id] = slot;
  emitter->has_slot[value->id] = true;
  if (slot.kind != MP_SLOT_RESULT) return;
  mp_lender_t *lender = &emitter->lenders[slot.index];
  const uint32_t defined = mp_emit_live(emitter, value)->defined;
  if (defined < lender->until) lender->until = defined;
}

bool mp_emit_same_slot(mp_slot_t a, mp_slot_t b) {
  return a.kind == b.kind && a.index == b.index && a.offset == b.offset;
}

static uint64_t emit_slots_bytes_of(const mp_type_t *type) {
  int64_t bytes = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_bytes(type, &bytes)) return 0;
  return (uint64_t)bytes;
}

mp_status_t mp_emit_new_place(mp_emitter_t *emitter, uint32_t start, uint32_t end,
                              const mp_type_t *type, mp_slot_t *out_slot) {
  MP_ASSERT(start <= end && end <= emitter->live.num_positions);
  const uint64_t bytes = emit_slots_bytes_of(type);
  if (bytes == 0) {
    *out_slot = (mp_slot_t){.kind = MP_SLOT_NONE};
    return NULL;
  }
  const mp_place_t place = {
      .start = start, .end = end, .bytes = bytes, .first_command = UINT32_MAX};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(emitter->scratch, &emitter->places, place));
  *out_slot = (mp_slot_t){.kind = MP_SLOT_ARENA, .index = emitter->places.count - 1};
  return NULL;
}

mp_status_t mp_emit_kernel(mp_emitter_t *emitter, const mp_op_t *op,
                           const mp_kernel_t **out_kernel) {
  MP_ASSERT(op->id < emitter->live.num_positions);
  if (emitter->kernels[op->id] == NULL) {
    // The maker of these is not in the table, because it uses fusion, which uses the table.
    const mp_kernel_t **kernel = &emitter->kernels[op->id];
    MP_RETURN_IF_ERROR(
        mp_mosaic_is_call(op)
            ? mp_mosaic_make_kernel(emitter->arena, op, &emitter->options->kernels, kernel)
            : mp_kernel_create(emitter->arena, op, kernel));
  }
  *out_kernel = emitter->kernels[op->id];
  return NULL;
}

static bool emit_slots_has_kernel(const mp_op_t *op) {
  return mp_op_info(op->code)->role == MP_OP_ROLE_KERNEL && !mp_plan_is_collective(op) &&
         !mp_plan_is_foreign(op);
}

// Whether the op may write its result `value` over `holder`: its kernel must allow it for each
// operand that is `holder`.
static mp_status_t emit_slots_may_overwrite(mp_emitter_t *emitter, const mp_value_t *value,
                                            const mp_value_t *holder, bool *out_may) {
  const mp_op_t *op = value->op;
  *out_may = false;
  if (!emit_slots_has_kernel(op) || op->num_operands > 32) return NULL;
  const mp_kernel_t *kernel = NULL;
  MP_RETURN_IF_ERROR(mp_emit_kernel(emitter, op, &kernel));
  uint32_t reads = 0;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (mp_emit_root(emitter, mp_kernel_operand(op, i)) == holder) reads |= 1u << i;
  }
  // If the op reads the holder although it is no operand, a region of the op uses it.
  *out_may = reads != 0 && (reads & ~mp_kernel_in_place(kernel, value->index)) == 0;
  return NULL;
}

// Whether `holder` is the start value of the loop's carried value `value`. A loop that reads
// `holder` only as this start value may use the same slot for the carried value.
static bool emit_slots_starts_from(const mp_emitter_t *emitter, const mp_value_t *value,
                                   const mp_value_t *holder) {
  const mp_op_t *op = value->op;
  if (op->code != MP_OP_WHILE) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_holder = mp_emit_root(emitter, op->operands[i]) == holder;
    if (is_holder != (i == value->index)) return false;
  }
  return true;
}

bool mp_emit_passes_on(const mp_emitter_t *emitter, const mp_value_t *value,
                       const mp_value_t *holder) {
  const mp_op_t *op = value->op;
  if (op == NULL || op->code != MP_OP_CASE) return false;
  if (mp_emit_live(emitter, holder)->last_use > emitter->live.ends[op->id]) return false;
  for (uint32_t r = 0; r < op->num_regions; ++r) {
    const mp_op_t *terminator = mp_block_terminator(op->regions[r]);
    if (mp_emit_root(emitter, terminator->operands[value->index]) == holder) return true;
  }
  return false;
}

// Whether the bytes of `holder` are dead when `value` is written, except that branches may return
// them unchanged. A parameter is no such exception if the slot takes over its memory: the parameter
// has a slot of its own, and branches would not find it.
static mp_status_t emit_slots_is_free_for(mp_emitter_t *emitter, const mp_value_t *value,
                                          uint32_t busy, const mp_value_t *holder, bool *out_free) {
  const uint32_t defined = mp_emit_live(emitter, value)->defined;
  *out_free =
      busy < defined || (holder != NULL && mp_emit_slot(emitter, holder).kind != MP_SLOT_PARAM &&
                         mp_emit_passes_on(emitter, value, holder));
  if (*out_free || busy != defined || holder == NULL) return NULL;
  if (emit_slots_starts_from(emitter, value, holder)) {
    *out_free = true;
    return NULL;
  }
  return emit_slots_may_overwrite(emitter, value, holder, out_free);
}

// Whether `value`, a root, can be computed directly into the slot that mp_emit_bind describes.
static mp_status_t emit_slots_can_bind(mp_emitter_t *emitter, const mp_value_t *value,
                                       const mp_block_t *block, uint32_t busy,
                                       const mp_value_t *holder, bool *out_can) {
  *out_can = false;
  if (emitter->has_slot[value->id]) return NULL;
  const mp_op_t *op = value->op;
  if (op == NULL || op->parent != block || op->code == MP_OP_CONSTANT) return NULL;
  return emit_slots_is_free_for(emitter, value, busy, holder, out_can);
}

// `value` is bound to a slot. Whether an operand of its op may use the slot's memory first, because
// no other value needs it before. The op overwrites this operand, starts a loop with it, or returns
// it unchanged from a branch.
static mp_status_t emit_slots_grows_from(mp_emitter_t *emitter, const mp_value_t *value,
                                         const mp_value_t *operand, bool *out_does) {
  *out_does = false;
  if (emit_slots_bytes_of(operand->type) != emit_slots_bytes_of(value->type)) return NULL;
  *out_does = mp_emit_passes_on(emitter, value, operand);
  if (*out_does || mp_emit_live(emitter, operand)->last_use != value->op->id) return NULL;
  if (value->op->code == MP_OP_WHILE) {
    *out_does = emit_slots_starts_from(emitter, value, operand);
    return NULL;
  }
  return emit_slots_may_overwrite(emitter, value, operand, out_does);
}

// The value to try next for the slot to which `value` was bound; NULL if there is none.
static mp_status_t emit_slots_next_to_bind(mp_emitter_t *emitter, const mp_value_t *value,
                                           const mp_block_t *block, uint32_t busy,
                                           const mp_value_t *holder, mp_value_t **out_next) {
  const mp_op_t *op = value->op;
  const bool is_case = op->code == MP_OP_CASE;
  *out_next = NULL;
  for (uint32_t i = 0; i < (is_case ? op->num_regions : op->num_operands); ++i) {
    const mp_value_t *source = is_case ? mp_block_terminator(op->regions[i])->operands[value->index]
                                       : mp_kernel_operand(op, i);
    mp_value_t *operand = mp_emit_root(emitter, source);
    bool can = false, does = false;
    MP_RETURN_IF_ERROR(emit_slots_can_bind(emitter, operand, block, busy, holder, &can));
    if (can) MP_RETURN_IF_ERROR(emit_slots_grows_from(emitter, value, operand, &does));
    if (!does) continue;
    *out_next = operand;
    return NULL;
  }
  return NULL;
}

mp_status_t mp_emit_bind(mp_emitter_t *emitter, mp_value_t *value, const mp_block_t *block,
                         mp_slot_t slot, uint32_t busy, const mp_value_t *holder) {
  if (slot.kind == MP_SLOT_NONE) return NULL;
  mp_value_t *next = mp_emit_root(emitter, value);
  bool can = false;
  MP_RETURN_IF_ERROR(emit_slots_can_bind(emitter, next, block, busy, holder, &can));
  if (!can) return NULL;
  while (next != NULL) {
    const mp_value_t *bound = next;
    mp_emit_set_slot(emitter, bound, slot);
    MP_RETURN_IF_ERROR(emit_slots_next_to_bind(emitter, bound, block, busy, holder, &next));
  }
  return NULL;
}

// Whether a result of the op before `index` has the slot.
static bool emit_slots_is_taken(const mp_emitter_t *emitter, const mp_op_t *op, uint32_t index,
                                mp_slot_t slot) {
  for (uint32_t r = 0; r < index; ++r) {
    const mp_value_t *root = mp_emit_root(emitter, &op->results[r]);
    if (mp_emit_same_slot(emitter->slots[root->id], slot)) return true;
  }
  return false;
}

// The slot of an operand that this op uses last and that its kernel may overwrite with result
// `index`; NONE if there is no such operand.
static mp_slot_t emit_slots_dying_operand(const mp_emitter_t *emitter, const mp_op_t *op,
                                          uint32_t index, uint32_t in_place) {
  const mp_slot_t none = {.kind = MP_SLOT_NONE};
  const uint64_t bytes = emit_slots_bytes_of(op->results[index].type);
  for (uint32_t i = 0; i < op->num_operands && i < 32; ++i) {
    if ((in_place >> i & 1) == 0) continue;
    mp_slot_t slot = mp_emit_slot(emitter, mp_kernel_operand(op, i));
    if (slot.kind != MP_SLOT_ARENA || emitter->places.items[slot.index].end != op->id) continue;
    if (emitter->places.items[slot.index].bytes != bytes) continue;
    if (emit_slots_is_taken(emitter, op, index, slot)) continue;
    // If another operand has the same bytes, the kernel must allow overwriting that one too.
    bool is_shared = false;
    for (uint32_t j = 0; j < op->num_operands; ++j) {
      bool allowed = j < 32 && (in_place >> j & 1) != 0;
      const mp_slot_t other = mp_emit_slot(emitter, mp_kernel_operand(op, j));
      is_shared |= !allowed && mp_emit_same_slot(slot, other);
    }
    if (!is_shared) return slot;
  }
  return none;
}

// Whether result `index` of a foreign function can take over the place of the operand that it must
// alias: this op uses the operand last, and no other operand has the same bytes.
static bool emit_slots_takes_over(const mp_emitter_t *emitter, const mp_op_t *op, uint32_t index,
                                  mp_slot_t *out_slot) {
  const int64_t operand = mp_plan_is_foreign(op) ? mp_op_aliased_operand(op, index) : -1;
  if (operand < 0) return false;
  const mp_slot_t slot = mp_emit_slot(emitter, op->operands[operand]);
  if (slot.kind != MP_SLOT_ARENA || emitter->places.items[slot.index].end != op->id) return false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool is_same = mp_emit_same_slot(slot, mp_emit_slot(emitter, op->operands[i]));
    if (is_same && (int64_t)i != operand) return false;
  }
  *out_slot = slot;
  return true;
}

mp_status_t mp_emit_place_results(mp_emitter_t *emitter, mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_value_t *result = &op->results[i];
    if (emitter->has_slot[result->id] || mp_emit_root(emitter, result) != result) continue;
    const uint32_t end = mp_emit_live(emitter, result)->last_use;
    mp_slot_t slot = {.kind = MP_SLOT_NONE};
    if (emit_slots_has_kernel(op)) {
      const mp_kernel_t *kernel = NULL;
      MP_RETURN_IF_ERROR(mp_emit_kernel(emitter, op, &kernel));
      slot = emit_slots_dying_operand(emitter, op, i, mp_kernel_in_place(kernel, i));
      if (slot.kind == MP_SLOT_ARENA) emitter->places.items[slot.index].end = end;
    }
    if (emit_slots_takes_over(emitter, op, i, &slot)) {
      emitter->places.items[slot.index].end = end;
    }
    if (slot.kind == MP_SLOT_NONE) {
      MP_RETURN_IF_ERROR(mp_emit_new_place(emitter, op->id, end, result->type, &slot));
    }
    mp_emit_set_slot(emitter, result, slot);
  }
  return NULL;
}

// ---- commands and copies ----

mp_status_t mp_emit_command(mp_emitter_t *emitter, const mp_cmd_t *command, uint32_t *out_number) {
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(emitter->arena, &emitter->commands, *command));
  if (out_number != NULL) *out_number = emitter->commands.count - 1;
  return NULL;
}

mp_status_t mp_emit_copy(mp_emitter_t *emitter, const mp_op_t *op, mp_slot_t from, mp_slot_t to,
                         const mp_type_t *type) {
  int64_t bytes = 0;
  if (!mp_type_is_tensor(type) || !mp_type_num_bytes(type, &bytes) || bytes == 0) return NULL;
  if (mp_emit_same_slot(from, to)) return NULL;
  mp_slot_t *slots = MP_ARENA_ARRAY(emitter->arena, mp_slot_t, 2);
  MP_RETURN_IF_NULL(slots);
  MP_ASSERT(from.kind != MP_SLOT_NONE && to.kind != MP_SLOT_NONE && to.kind != MP_SLOT_CONSTANT);
  slots[0] = from;
  slots[1] = to;
  const mp_cmd_t command = {.kind = MP_CMD_COPY,
                            .loc = op->loc,
                            .name = "copy",
                            .num_operands = 1,
                            .num_results = 1,
                            .operands = &slots[0],
                            .results = &slots[1],
                            .bytes = (uint64_t)bytes};
  return mp_emit_command(emitter, &command, NULL);
}
