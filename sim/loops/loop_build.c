// Makes loops: commands become steps, whose operands are slots of the loop, its own memory or
// constants.
#include "sim/base/assert.h"
#include "sim/kernels/shape.h"
#include "sim/loops/loop_impl.h"

// The time, in seconds, between two checks whether the loop has to stop; and the bounds of the
// number of back edges between two checks.
#define LOOK_SECONDS 50e-6
enum { MIN_EDGES = 8, MAX_EDGES = 1024 };

// The estimated overhead of a kernel call, in seconds.
#define KERNEL_SECONDS 100e-9

mp_status_t mp_loop_builder_create(mp_arena_t *arena, uint32_t num_slots,
                                   const mp_loop_slot_t *slots, uint32_t num_commands,
                                   bool is_straight, mp_loop_builder_t **out_builder) {
  mp_loop_builder_t *b = MP_ARENA_NEW(arena, mp_loop_builder_t);
  MP_RETURN_IF_NULL(b);
  *b = (mp_loop_builder_t){.arena = arena,
                           .num_slots = num_slots,
                           .slots = slots,
                           .num_commands = num_commands,
                           .is_straight = is_straight};
  b->starts = MP_ARENA_ARRAY(arena, uint32_t, (size_t)num_commands + 1);
  MP_RETURN_IF_NULL(b->starts);
  mp_loop_ref_t numbers;  // numbers of the replica and the partition
  MP_RETURN_IF_ERROR(mp_loop_own_ref(b, 2 * sizeof(uint32_t), &numbers));
  *out_builder = b;
  return NULL;
}

void mp_loop_begin_command(mp_loop_builder_t *b) {
  MP_ASSERT(b->command < b->num_commands);
  b->starts[b->command++] = b->steps.count;
  if (b->is_straight) b->num_taken = 1;  // the numbers are kept
}

// The ref of a slot.
static mp_loop_ref_t loop_build_slot_ref(const mp_loop_builder_t *b, uint32_t slot) {
  if (slot == MP_LOOP_NO_SLOT) return mp_loop_address_ref(b, mp_empty_array());
  MP_ASSERT(slot < b->num_slots);
  if (b->slots[slot].constant != NULL) return mp_loop_address_ref(b, b->slots[slot].constant);
  return (mp_loop_ref_t){slot, 0};
}

// ---- steps ----

mp_status_t mp_loop_add_copy(mp_loop_builder_t *b, uint32_t from, uint32_t to, uint64_t bytes) {
  return mp_loop_add_copy_step(b, loop_build_slot_ref(b, from), loop_build_slot_ref(b, to), bytes);
}

mp_status_t mp_loop_add_number(mp_loop_builder_t *b, bool is_replica, uint32_t to) {
  const mp_loop_ref_t from = {b->num_slots, is_replica ? 0 : sizeof(uint32_t)};
  return mp_loop_add_copy_step(b, from, loop_build_slot_ref(b, to), sizeof(uint32_t));
}

static mp_status_t loop_build_jump(mp_loop_builder_t *b, uint32_t what, uint32_t target,
                                   uint32_t slot, uint32_t num_refs, uint32_t count) {
  mp_loop_step_t step = {.what = what, .target = target, .num_refs = num_refs, .count = count};
  if (num_refs == 1) step.in[0] = loop_build_slot_ref(b, slot);
  step.out = mp_loop_address_ref(b, mp_empty_array());
  b->seconds += MP_LOOP_STEP_SECONDS;
  return MP_ARRAY_PUSH(b->arena, &b->steps, step);
}

mp_status_t mp_loop_add_jump(mp_loop_builder_t *b, uint32_t target) {
  MP_ASSERT(target <= b->num_commands);
  return loop_build_jump(b, target < b->command ? MP_DO_BACK : MP_DO_JUMP, target, 0, 0, 0);
}

mp_status_t mp_loop_add_branch_unless(mp_loop_builder_t *b, uint32_t slot, uint32_t target) {
  MP_ASSERT(target >= b->command && target <= b->num_commands);
  return loop_build_jump(b, MP_DO_UNLESS, target, slot, 1, 0);
}

mp_status_t mp_loop_add_switch(mp_loop_builder_t *b, uint32_t slot, const uint32_t *targets,
                               uint32_t count) {
  const uint32_t first = b->targets.count;
  for (uint32_t i = 0; i < count; ++i) {
    MP_ASSERT(targets[i] >= b->command && targets[i] <= b->num_commands);
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->targets, targets[i]));
  }
  return loop_build_jump(b, MP_DO_SWITCH, first, slot, 1, count);
}

// ---- kernels ----

static double loop_build_kernel_seconds(const mp_op_t *op) {
  double bytes = 0, factor = 1;
  for (uint32_t i = 0; op != NULL && i < op->num_operands + op->num_results; ++i) {
    const mp_type_t *type =
        i < op->num_operands ? op->operands[i]->type : op->results[i - op->num_operands].type;
    int64_t more = 0;
    if (mp_type_is_tensor(type) && mp_type_num_bytes(type, &more)) bytes += (double)more;
  }
  // If ops take longer than their bytes suggest, the check is made as often as possible.
  if (op == NULL || mp_op_info(op->code)->cost == MP_OP_COST_HEAVY ||
      mp_op_info(op->code)->cost == MP_OP_COST_COUNTED) {
    factor = 100;
  }
  return KERNEL_SECONDS + bytes * factor * MP_LOOP_BYTE_SECONDS;
}

static mp_status_t loop_build_call(mp_loop_builder_t *b, const mp_kernel_t *kernel,
                                   const mp_loop_ref_t *operands, uint32_t num_operands,
                                   const mp_loop_ref_t *results, uint32_t num_results) {
  const mp_loop_call_t call = {kernel, num_operands, num_results, b->refs.count};
  for (uint32_t i = 0; i < num_operands + num_results; ++i) {
    const mp_loop_ref_t ref = i < num_operands ? operands[i] : results[i - num_operands];
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->refs, ref));
  }
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->calls, call));
  mp_loop_step_t step = {.what = MP_DO_KERNEL, .u.call = b->calls.count - 1};
  step.out = mp_loop_address_ref(b, mp_empty_array());
  if (kernel->scratch_bytes > b->kernel_bytes) b->kernel_bytes = kernel->scratch_bytes;
  b->seconds += loop_build_kernel_seconds(kernel->op);
  return MP_ARRAY_PUSH(b->arena, &b->steps, step);
}

// An update in place, which has parts only because the array is large, writes only the update.
static bool loop_build_is_small_update(const mp_op_t *op, const mp_loop_ref_t *operands,
                                       const mp_loop_ref_t *results) {
  enum { MOST_BYTES = 64 * 1024 };
  return op != NULL && op->code == MP_OP_DYNAMIC_UPDATE_SLICE &&
         mp_loop_same_ref(operands[0], results[0]) &&
         mp_shape_bytes(op->operands[1]->type) <= MOST_BYTES;
}

mp_status_t mp_loop_add_kernel(mp_loop_builder_t *b, const mp_kernel_t *kernel,
                               const uint32_t *operands, uint32_t num_operands,
                               const uint32_t *results, uint32_t num_results, bool *out_can) {
  mp_loop_ref_t *refs =
      MP_ARENA_ARRAY(b->arena, mp_loop_ref_t, (size_t)num_operands + num_results + 1);
  MP_RETURN_IF_NULL(refs);
  for (uint32_t i = 0; i < num_operands; ++i) refs[i] = loop_build_slot_ref(b, operands[i]);
  mp_loop_ref_t *outs = refs + num_operands;
  for (uint32_t i = 0; i < num_results; ++i) outs[i] = loop_build_slot_ref(b, results[i]);
  MP_ASSERT(kernel->num_parts > 1 || kernel->finish == NULL);
  *out_can = kernel->num_parts == 1 || loop_build_is_small_update(kernel->op, refs, outs);
  if (!*out_can) return NULL;
  bool is_done = false;
  if (kernel->op != NULL) {
    MP_RETURN_IF_ERROR(mp_loop_compute(b, kernel->op, refs, outs, &is_done));
    if (!is_done) MP_RETURN_IF_ERROR(mp_loop_rows(b, kernel->op, refs, outs, &is_done));
  }
  if (is_done) return NULL;
  return loop_build_call(b, kernel, refs, num_operands, outs, num_results);
}

// ---- the end ----

static void loop_build_set_targets(mp_loop_builder_t *b) {
  for (uint32_t i = 0; i < b->steps.count; ++i) {
    mp_loop_step_t *step = &b->steps.items[i];
    if (step->what == MP_DO_JUMP || step->what == MP_DO_BACK || step->what == MP_DO_UNLESS) {
      step->target = b->starts[step->target];
    }
  }
  for (uint32_t i = 0; i < b->targets.count; ++i) {
    b->targets.items[i] = b->starts[b->targets.items[i]];
  }
}

// Replaces a jump, at the end of a round, to the comparison at the loop's beginning by the
// comparison itself.
static void loop_build_turn(mp_loop_builder_t *b) {
  for (uint32_t i = 0; i < b->steps.count; ++i) {
    mp_loop_step_t *back = &b->steps.items[i];
    if (back->what != MP_DO_BACK) continue;
    const uint32_t first = back->target;
    const mp_loop_step_t *compare = &b->steps.items[first], *unless = compare + 1;
    if (!mp_loop_is_compare(compare->what) || unless->what != MP_DO_UNLESS ||
        !mp_loop_same_ref(unless->in[0], compare->out)) {
      continue;
    }
    *back = *compare;
    back->what = compare->what - MP_FIRST_COMPARE + MP_FIRST_BACK_IF;
    back->size = unless->target;
    back->target = first + 2;
  }
}

static uint32_t loop_build_num_edges(const mp_loop_builder_t *b) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < b->steps.count; ++i) count += mp_loop_is_back(b->steps.items[i].what);
  return count;
}

static uint32_t loop_build_edges_per_look(double seconds) {
  const double edges = LOOK_SECONDS / (seconds + MP_LOOP_STEP_SECONDS);
  return edges < MIN_EDGES ? MIN_EDGES : edges > MAX_EDGES ? MAX_EDGES : (uint32_t)edges;
}

mp_status_t mp_loop_builder_end(mp_loop_builder_t *b, const mp_loop_t **out_loop) {
  MP_ASSERT(b->command == b->num_commands);
  b->starts[b->num_commands] = b->steps.count;
  loop_build_set_targets(b);
  loop_build_turn(b);
  const mp_loop_step_t exit = {.what = MP_DO_EXIT, .out = mp_loop_address_ref(b, mp_empty_array())};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->steps, exit));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->before, exit));
  mp_loop_t *loop = MP_ARENA_NEW(b->arena, mp_loop_t);
  MP_RETURN_IF_NULL(loop);
  *loop = (mp_loop_t){.num_slots = b->num_slots,
                      .num_steps = b->steps.count,
                      .num_steps_before = b->before.count,
                      .num_edges = loop_build_num_edges(b),
                      .num_calls = b->calls.count,
                      .num_refs = b->refs.count,
                      .calls = b->calls.items,
                      .refs = b->refs.items,
                      .targets = b->targets.items,
                      .num_targets = b->targets.count,
                      .slots = b->slots,
                      .num_pieces = b->pieces.count,
                      .pieces = b->pieces.items,
                      .seconds = b->seconds + MP_LOOP_STEP_SECONDS,
                      .native = b->is_straight ? NULL : MP_ARENA_NEW(b->arena, mp_loop_native_t),
                      .edges_per_look = loop_build_edges_per_look(b->seconds)};
  for (uint32_t i = 0; i < b->before.count; ++i) {
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(b->arena, &b->steps, b->before.items[i]));
  }
  loop->steps = b->steps.items;
  if (!b->is_straight) {
    MP_RETURN_IF_NULL(loop->native);
    loop->native->refs = MP_ARENA_ARRAY(b->arena, mp_loop_ref_t, mp_loop_most_refs(loop));
    MP_RETURN_IF_NULL(loop->native->refs);
  }
  mp_loop_lay_out(loop, (size_t)b->pieces.count * 64, b->kernel_bytes);
  *out_loop = loop;
  return NULL;
}
