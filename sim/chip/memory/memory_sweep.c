// One backward sweep: when an op is looked at, all readers of its results have told of themselves.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_values.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

static void memory_sweep_block(mp_memory_values_t *all, const mp_block_t *block);

// ---- fusions ----

static void memory_sweep_take(mp_memory_values_t *all, uint32_t fusion, const mp_value_t *value,
                              bool is_along) {
  mp_memory_value_t *taken = &all->values[mp_chip_fusion_root(value)->id];
  taken->is_along = is_along && (taken->taken_by != fusion || taken->is_along);
  taken->taken_by = fusion;
}

static bool memory_sweep_is_aliased(const mp_op_t *op, uint32_t operand) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_op_aliased_operand(op, i) == (int64_t)operand) return true;
  }
  return false;
}

// Whether operand `operand` is read just when the elements of the results are made. Of a matmul
// only what reads its result is done then; a reduction sums elements up as they are made.
static bool memory_sweep_is_along(const mp_chip_figures_t *figures, const mp_chip_fusion_t *fusion,
                                  const mp_chip_fusion_member_t *member, mp_chip_fusion_kind_t kind,
                                  uint32_t operand) {
  const mp_op_t *op = member->op;
  if (kind == MP_CHIP_FUSION_UPDATE) return operand < op->num_results;
  if (op->code == MP_OP_CUSTOM_CALL) return memory_sweep_is_aliased(op, operand);
  const bool is_sum = figures->compiler != MP_CHIP_COMPILER_PLAIN &&
                      fusion->hero->code == MP_OP_REDUCE && !fusion->is_rows;
  const bool is_before = fusion->has_hero && op != fusion->hero && !member->is_epilogue;
  if (is_before && !(is_sum && mp_chip_rule(figures, MP_CHIP_RULE_reduce_in_place))) return false;
  return op->code != MP_OP_TRANSPOSE &&
         mp_chip_fusion_goes_along(op, kind, mp_chip_fusion_value_count(op->operands[operand]));
}

static void memory_sweep_note_made(mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                   uint32_t number) {
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;
       at = all->fusions->members.items[at].next) {
    const mp_op_t *op = all->fusions->members.items[at].op;
    for (uint32_t i = 0; i < op->num_results; ++i) all->values[op->results[i].id].made_by = number;
  }
}

// Whether elements that the fusion has made change their places in the op, or many are wanted for
// one.
static bool memory_sweep_mixes(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op, const mp_work_t *work, mp_chip_fusion_kind_t kind,
                               uint32_t number) {
  if (mp_chip_fusion_is_generator(op) || kind == MP_CHIP_FUSION_UPDATE) return false;
  const bool is_moving = work->work_class == MP_WORK_COPY || work->work_class == MP_WORK_GATHER;
  bool is_of_own = false;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    is_of_own |= all->values[mp_chip_fusion_root(op->operands[i])->id].made_by == number;
  }
  if (!is_of_own) return false;
  if (is_moving || kind == MP_CHIP_FUSION_WINDOW) return true;
  return kind == MP_CHIP_FUSION_REDUCTION &&
         (all->figures->compiler == MP_CHIP_COMPILER_PLAIN || fusion->is_rows ||
          !mp_chip_rule(all->figures, MP_CHIP_RULE_reduce_in_place));
}

// Finds out which values the fusion's ops only read so. False: there are none, because some of its
// ops mix what others make.
static bool memory_sweep_take_all(mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                  uint32_t number) {
  bool is_plain = true;
  memory_sweep_note_made(all, fusion, number);
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;
       at = all->fusions->members.items[at].next) {
    const mp_chip_fusion_member_t *member = &all->fusions->members.items[at];
    const mp_op_t *op = member->op;
    mp_work_t work;
    const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(all->figures, op, &work);
    for (uint32_t i = 0; i < op->num_operands; ++i) {
      memory_sweep_take(all, number, op->operands[i],
                        memory_sweep_is_along(all->figures, fusion, member, kind, i));
    }
    is_plain = is_plain && !memory_sweep_mixes(all, fusion, op, &work, kind, number);
  }
  return is_plain;
}

// What a GPU writes between the kernels of one op lies beside the op's result.
static void memory_sweep_selected(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  if (all->figures->compiler != MP_CHIP_COMPILER_GPU) return;
  for (uint32_t m = fusion->first_member; m != MP_CHIP_FUSION_NONE;
       m = all->fusions->members.items[m].next) {
    const mp_op_t *op = all->fusions->members.items[m].op;
    const double bytes = mp_chip_fusion_selected_bytes(op);
    if (bytes == 0 || !mp_chip_rule(all->figures, MP_CHIP_RULE_expanded_ops)) continue;
    mp_memory_value_t *place = &all->values[op->results[0].id];
    place->copied = (uint64_t)bytes;
    place->copied_first = place->copied_last = fusion->last->id;
  }
}

// ---- what fusions read and write ----

// Whether a result that the fusion writes may be written over a value that it reads. On TPUs only
// updates write a result of main over their operands.
static bool memory_sweep_may_inherit(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                     const mp_memory_value_t *value,
                                     const mp_memory_value_t *written) {
  mp_work_t work;
  if (!mp_memory_may_take(all, value, written)) return false;
  return value->kind == MP_MEMORY_ARGUMENT || written->kind != MP_MEMORY_RESULT ||
         all->figures->compiler != MP_CHIP_COMPILER_TPU ||
         mp_chip_fusion_kind(all->figures, fusion->hero, &work) == MP_CHIP_FUSION_UPDATE ||
         !mp_chip_rule(all->figures, MP_CHIP_RULE_result_not_in_place);
}

static uint32_t memory_sweep_heir(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                  uint32_t number, const mp_value_t *value) {
  const mp_memory_value_t *read = &all->values[mp_chip_fusion_root(value)->id];
  const mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (read->taken_by != number || !read->is_along) return MP_MEMORY_NOBODY;
  const mp_chip_fusion_access_t *writes =
      mp_chip_fusion_accesses(all->fusions, fusion) + fusion->num_reads;
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_memory_value_t *written = mp_memory_place_of(all, writes[i].value);
    const bool is_free = written->first == fusion->last->id;
    if (is_free && memory_sweep_may_inherit(all, fusion, place, written))
      return writes[i].value->id;
  }
  return MP_MEMORY_NOBODY;
}

// Whether the fusion updates the array: whatever else it does, that is done in its place.
static bool memory_sweep_is_updated(const mp_memory_values_t *all, const mp_chip_fusion_t *fusion,
                                    const mp_value_t *array) {
  const mp_op_t *op = fusion->hero;
  mp_work_t work;
  if (mp_chip_fusion_kind(all->figures, op, &work) != MP_CHIP_FUSION_UPDATE) return false;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (mp_chip_fusion_root(op->operands[i]) == mp_chip_fusion_root(array)) return true;
  }
  return false;
}

// A kernel may write a value in other tiles than its layout has: parts of a concatenation.
static void memory_sweep_size(const mp_memory_values_t *all, const mp_chip_fusion_access_t *write,
                              mp_memory_value_t *place) {
  mp_work_t work;
  const mp_op_t *op = write->value->op;
  if (place->value != write->value || place->kind != MP_MEMORY_TEMPORARY) return;
  if (mp_chip_fusion_kind(all->figures, op, &work) == MP_CHIP_FUSION_UPDATE) return;
  place->bytes = mp_memory_round(all->figures, write->bytes);
}

// Transposes that move nothing: the results are the bytes of the operands, or of copies of them.
static void memory_sweep_bitcasts(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  for (uint32_t at = fusion->first_member; at != MP_CHIP_FUSION_NONE;
       at = all->fusions->members.items[at].next) {
    const mp_op_t *op = all->fusions->members.items[at].op;
    const uint32_t copy = mp_layouts_copy_for(&all->fusions->layouts, op->operands[0], op);
    if (copy == MP_LAYOUT_NONE) {
      mp_memory_unite(all, op->operands[0], &op->results[0]);
      continue;
    }
    mp_memory_value_t *place = mp_memory_place_of(all, &op->results[0]);
    mp_memory_extend(place, op->id);
    mp_memory_read(all, op, op->operands[0], op->id, MP_MEMORY_NOBODY);
    const bool is_temporary = place->kind == MP_MEMORY_TEMPORARY;
    if (is_temporary && all->fusions->layouts.copies.items[copy].writes_vmem) {
      place->kind = MP_MEMORY_ELSEWHERE;
    }
  }
}

static void memory_sweep_fusion(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  if (mp_chip_fusion_moves_nothing(all->fusions, fusion)) {
    memory_sweep_bitcasts(all, fusion);
    return;
  }
  const uint32_t number = (uint32_t)(fusion - all->fusions->fusions.items);
  const mp_chip_fusion_access_t *access = mp_chip_fusion_accesses(all->fusions, fusion);
  const mp_op_t *op = fusion->last;
  for (uint32_t i = fusion->num_reads; i < fusion->num_reads + fusion->num_writes; ++i) {
    mp_memory_value_t *place = mp_memory_place_of(all, access[i].value);
    mp_memory_extend(place, op->id);
    memory_sweep_size(all, &access[i], place);
    if (access[i].space != MP_SPACE_HBM && place->kind == MP_MEMORY_TEMPORARY) {
      place->kind = MP_MEMORY_ELSEWHERE;
    }
    mp_memory_hand_over(all, access[i].value);
  }
  memory_sweep_selected(all, fusion);
  const bool is_plain = memory_sweep_take_all(all, fusion, number);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    const mp_value_t *value = access[i].value;
    const bool may_share = is_plain || memory_sweep_is_updated(all, fusion, value);
    const uint32_t heir =
        may_share ? memory_sweep_heir(all, fusion, number, value) : MP_MEMORY_NOBODY;
    mp_memory_read(all, op, value, op->id, heir);
  }
}

// A collective, or whatever else has all its operands and results in memory while it runs.
static void memory_sweep_whole(mp_memory_values_t *all, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_memory_extend(mp_memory_place_of(all, &op->results[i]), op->id);
    mp_memory_hand_over(all, &op->results[i]);
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool is_in_place = op->code == MP_OP_ALL_REDUCE;
    mp_memory_read(all, op, op->operands[i], op->id,
                   is_in_place ? op->results[i].id : MP_MEMORY_NOBODY);
  }
}

// ---- what lies on the host ----

// An update of an array there. What is copied to the host for it is copied into the array.
static void memory_sweep_update_there(mp_memory_values_t *all, const mp_op_t *op) {
  mp_memory_extend(mp_memory_place_of(all, &op->results[0]), op->id);
  mp_memory_hand_over(all, &op->results[0]);
  const mp_op_t *from = mp_chip_fusion_root(op->operands[1])->op;
  if (from != NULL && mp_op_crosses(from)) {
    mp_memory_place_of(all, &from->results[0])->kind = MP_MEMORY_ELSEWHERE;
  } else {
    mp_memory_read(all, op, op->operands[1], op->id, MP_MEMORY_NOBODY);
  }
  mp_memory_read(all, op, op->operands[0], op->id, op->results[0].id);
}

// A slice or the like is no array of its own.
static void memory_sweep_of_host(mp_memory_values_t *all, const mp_op_t *op) {
  mp_memory_value_t *place = mp_memory_place_of(all, &op->results[0]);
  if (!mp_memory_is_live(place)) return;
  if (mp_chip_fusion_is_generator(op)) {
    mp_memory_extend(place, op->id);
    mp_memory_hand_over(all, &op->results[0]);
  } else if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) {
    memory_sweep_update_there(all, op);
  } else {
    mp_memory_read(all, op, op->operands[0], place->first, MP_MEMORY_NOBODY);
    mp_memory_read(all, op, op->operands[0], place->last, MP_MEMORY_NOBODY);
    place->kind = MP_MEMORY_ELSEWHERE;
  }
}

// ---- loops ----

// Notes of what a block has made where it ends with that. A program may have 65,536 results, one
// for each device, so that they are gone through once.
static void memory_sweep_list_ends(mp_memory_values_t *all, const mp_block_t *block) {
  const mp_op_t *terminator = mp_block_terminator(block);
  for (uint32_t i = terminator->num_operands; i-- > 0;) {
    const mp_value_t *end = mp_chip_fusion_root(terminator->operands[i]);
    if (end->op != NULL && end->op->parent == block) all->values[end->id].end = i;
  }
}

// Whether an op reads a copy of a value in another layout.
static bool memory_sweep_is_copied(const mp_memory_values_t *all, const mp_value_t *value,
                                   const mp_op_t *op) {
  return mp_layouts_copy_for(&all->fusions->layouts, value, op) != MP_LAYOUT_NONE;
}

// The value that a block ends with at `i`, if that is its own: made in it, in the layout that is
// needed, and no other result.
static const mp_value_t *memory_sweep_own_end(mp_memory_values_t *all, const mp_block_t *block,
                                              uint32_t i) {
  const mp_op_t *terminator = mp_block_terminator(block);
  const mp_value_t *end = mp_chip_fusion_root(terminator->operands[i]);
  if (memory_sweep_is_copied(all, terminator->operands[i], terminator)) return NULL;
  if (end->op == NULL || end->op->parent != block || end->op->code == MP_OP_CONSTANT) return NULL;
  const mp_memory_value_t *value = &all->values[end->id];
  if (value->end == MP_MEMORY_NOBODY) memory_sweep_list_ends(all, block);
  return value->end == i ? end : NULL;
}

static void memory_sweep_read_ends(mp_memory_values_t *all, const mp_block_t *block) {
  const mp_op_t *terminator = mp_block_terminator(block);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    if (mp_chip_fusion_root(terminator->operands[i]) == &block->args[i]) continue;
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NOBODY);
  }
}

// The next round's value may lie where this round's is, if that is not read any more when it is
// made, or by the same kernel and one by one.
static void memory_sweep_carry(mp_memory_values_t *all, const mp_value_t *arg,
                               const mp_value_t *next) {
  const mp_memory_value_t *now = mp_memory_place_of(all, arg);
  const mp_memory_value_t *then = mp_memory_place_of(all, next);
  if (then->kind != MP_MEMORY_TEMPORARY || now->bytes != then->bytes) return;
  const bool is_over = !mp_memory_is_live(now) || now->last < then->first;
  const bool is_heir = mp_memory_is_live(now) && now->last == then->first &&
                       now->heir_at == now->last && now->heir != MP_MEMORY_NOBODY &&
                       mp_memory_place_of(all, all->values[now->heir].value) == then;
  if (is_over || is_heir) mp_memory_unite(all, arg, next);
}

// The loop has the place of a value from its beginning to its end.
static void memory_sweep_join_rounds(mp_memory_values_t *all, const mp_op_t *loop, uint32_t i) {
  const mp_value_t *arg = &loop->regions[1]->args[i];
  const bool is_copied = memory_sweep_is_copied(all, loop->operands[i], loop);
  const bool is_same =
      !is_copied && mp_chip_fusion_root(mp_block_terminator(loop->regions[1])->operands[i]) == arg;
  const mp_value_t *next = is_same ? NULL : memory_sweep_own_end(all, loop->regions[1], i);
  if (next != NULL) memory_sweep_carry(all, arg, next);
  mp_memory_unite(all, arg, &loop->regions[0]->args[i]);
  mp_memory_unite(all, arg, &loop->results[i]);
  mp_memory_value_t *place = mp_memory_place_of(all, arg);
  if (!is_same || mp_memory_is_live(place)) {
    mp_memory_extend(place, loop->id);
    mp_memory_extend(place, mp_memory_end_of(loop));
  }
  if (!is_same) {
    // A constant that the loop makes itself is nowhere before it.
    if (mp_chip_fusion_makes_start(all->figures, loop, i)) return;
    mp_memory_read(all, loop, loop->operands[i], loop->id, is_copied ? MP_MEMORY_NOBODY : arg->id);
  } else if (mp_memory_is_live(place)) {
    // Nothing is written over it: the loop reads it where it is.
    mp_memory_read(all, loop, loop->operands[i], place->last, MP_MEMORY_NOBODY);
    place->kind = MP_MEMORY_ELSEWHERE;
  }
}

static void memory_sweep_while(mp_memory_values_t *all, const mp_op_t *op) {
  memory_sweep_read_ends(all, op->regions[1]);
  memory_sweep_read_ends(all, op->regions[0]);
  memory_sweep_block(all, op->regions[1]);
  memory_sweep_block(all, op->regions[0]);
  for (uint32_t i = 0; i < op->num_operands; ++i) memory_sweep_join_rounds(all, op, i);
}

// ---- branches ----

static void memory_sweep_region(mp_memory_values_t *all, const mp_op_t *op, uint32_t region) {
  const mp_block_t *block = op->regions[region];
  const mp_op_t *terminator = mp_block_terminator(block);
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (!mp_memory_is_live(mp_memory_place_of(all, &op->results[i]))) continue;
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NOBODY);
    const mp_value_t *end = memory_sweep_own_end(all, block, i);
    if (end != NULL) mp_memory_unite(all, &op->results[i], end);
  }
  memory_sweep_block(all, block);
}

static void memory_sweep_branch(mp_memory_values_t *all, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_memory_value_t *place = mp_memory_place_of(all, &op->results[i]);
    if (mp_memory_is_live(place)) mp_memory_extend(place, mp_memory_end_of(op));
  }
  for (uint32_t r = op->num_regions; r-- > 0;) memory_sweep_region(all, op, r);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    mp_memory_read(all, op, op->operands[i], op->id, MP_MEMORY_NOBODY);
  }
}

// ---- blocks ----

static void memory_sweep_op(mp_memory_values_t *all, const mp_op_t *op) {
  if (op->code == MP_OP_CONSTANT || op == mp_block_terminator(op->parent)) return;
  if (op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL) return;
  if (mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL) {
    if (op->code == MP_OP_WHILE) {
      memory_sweep_while(all, op);
    } else {
      memory_sweep_branch(all, op);
    }
    return;
  }
  if (mp_op_is_of_host(op)) {
    memory_sweep_of_host(all, op);
    return;
  }
  const mp_chip_fusion_t *fusion = mp_chip_fusion_at(all->fusions, op);
  if (fusion != NULL) memory_sweep_fusion(all, fusion);
  const bool is_kernel = !mp_op_crosses(op) && mp_op_info(op->code)->role == MP_OP_ROLE_KERNEL &&
                         !mp_plan_is_collective(op);
  if (!is_kernel) memory_sweep_whole(all, op);
}

static void memory_sweep_block(mp_memory_values_t *all, const mp_block_t *block) {
  for (const mp_op_t *op = block->last; op != NULL; op = op->prev) memory_sweep_op(all, op);
}

// ---- main ----

// What devices exchanged is copied to the result's memory when the program ends, or leaves scratch
// memory for it. Returns whether this result is such.
static bool memory_sweep_land(mp_memory_values_t *all, const mp_value_t *value) {
  if (!mp_chip_fusion_is_received(all->figures, value)) return false;
  mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (place->kind != MP_MEMORY_TEMPORARY) return false;
  if (mp_chip_fusion_is_received_near(all->figures, (double)place->bytes)) {
    place->kind = MP_MEMORY_ELSEWHERE;
  }
  return true;
}

// Results lie in memory of their own, which is there from the beginning.
static void memory_sweep_results(mp_memory_values_t *all) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NOBODY);
    if (memory_sweep_own_end(all, body, i) == NULL) continue;
    if (memory_sweep_land(all, terminator->operands[i])) continue;
    mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[i]);
    if (place->kind != MP_MEMORY_TEMPORARY) continue;
    place->kind = MP_MEMORY_RESULT;
    place->result = i;
  }
}

// A donated argument whose memory takes what devices exchanged is read in a copy, unless that was
// sent from there.
static void memory_sweep_copy_donated(mp_memory_values_t *all, const mp_value_t *argument,
                                      const mp_value_t *result) {
  mp_memory_value_t *place = mp_memory_place_of(all, argument);
  if (!mp_chip_fusion_is_received(all->figures, result) || !mp_memory_is_live(place)) return;
  if (mp_chip_fusion_is_sent_from(result, argument) || place->kind != MP_MEMORY_ARGUMENT) return;
  place->copied = place->bytes;
  place->copied_first = 1;
  place->copied_last = place->last;
}

// A result whose memory is an argument's waits elsewhere while that is still read.
static void memory_sweep_arguments(mp_memory_values_t *all) {
  const mp_block_t *body = all->program->partitioned->main->body;
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < body->num_args; ++i) {
    const int32_t result = all->program->params[i].alias;
    if (result < 0) continue;
    memory_sweep_copy_donated(all, &body->args[i], terminator->operands[result]);
    mp_memory_hand_over(all, &body->args[i]);
    const mp_memory_value_t *argument = mp_memory_place_of(all, &body->args[i]);
    mp_memory_value_t *place = mp_memory_place_of(all, terminator->operands[result]);
    const bool is_in_way = place != argument && place->kind == MP_MEMORY_RESULT &&
                           place->result == (uint32_t)result && mp_memory_is_live(argument) &&
                           argument->last >= place->first;
    if (is_in_way) place->kind = MP_MEMORY_TEMPORARY;
  }
}

static mp_status_t memory_sweep_add_places(const mp_memory_value_t *place, uint32_t id,
                                           mp_arena_t *arena, mp_memory_places_t *places) {
  if (place->value == NULL) return NULL;
  if (place->copied > 0) {
    const mp_memory_place_t copy = {place->value, place->copied, place->copied_first,
                                    place->copied_last, 0};
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(arena, places, copy));
  }
  if (place->parent != id || !mp_memory_is_live(place) || place->bytes == 0) return NULL;
  if (place->kind != MP_MEMORY_TEMPORARY) return NULL;
  return MP_ARRAY_PUSH(
      arena, places, (mp_memory_place_t){place->value, place->bytes, place->first, place->last, 0});
}

mp_status_t mp_memory_find_places(const mp_chip_figures_t *figures,
                                  const mp_chip_fusions_t *fusions, const mp_program_t *program,
                                  const mp_memory_extras_t *extras, mp_arena_t *arena,
                                  mp_memory_places_t *out_places,
                                  mp_memory_places_t *out_host_places,
                                  uint32_t *out_num_positions) {
  mp_memory_values_t all;
  MP_RETURN_IF_ERROR(mp_memory_values_create(figures, fusions, program, arena, &all));
  memory_sweep_results(&all);
  memory_sweep_block(&all, program->partitioned->main->body);
  memory_sweep_arguments(&all);
  MP_RETURN_IF_ERROR(mp_memory_add_extras(&all, extras, arena, out_places));
  for (uint32_t id = 0; id < all.num_values; ++id) {
    const mp_memory_value_t *place = &all.values[id];
    const bool is_on_host = place->value != NULL && place->value->is_on_host;
    MP_RETURN_IF_ERROR(
        memory_sweep_add_places(place, id, arena, is_on_host ? out_host_places : out_places));
  }
  *out_num_positions = all.num_positions;
  return NULL;
}
