// The lifetimes of values, by one backward sweep: when it visits an op, all readers of the op's
// results are known.
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_impl.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/plan/plan.h"

static void memory_sweep_block(mp_memory_values_t *all, const mp_block_t *block);

// ---- fusions ----

// What a GPU writes between the kernels of one op exists besides the op's result.
static void memory_sweep_selected(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  if (!mp_chip_policy(all->figures)->expands_ops) return;
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(all->fusions, fusion, &m);) {
    const mp_op_t *op = m->op;
    const double bytes = mp_chip_fusion_selected_bytes(op);
    if (bytes == 0 || !mp_chip_rule(all->figures, MP_CHIP_RULE_expanded_ops)) continue;
    mp_memory_value_t *place = &all->values[op->results[0].id];
    place->copied = (uint64_t)bytes;
    place->copied_first = place->copied_last = fusion->last->id;
  }
}

// ---- what fusions read and write ----

// A kernel may write a value in other tiles than its layout has: parts of a concatenation.
static void memory_sweep_size(const mp_memory_values_t *all, const mp_chip_fusion_access_t *write,
                              mp_memory_value_t *place) {
  mp_work_t work;
  const mp_op_t *op = write->value->op;
  if (place->value != write->value || place->kind != MP_MEMORY_TEMPORARY) return;
  if (mp_chip_fusion_kind(all->figures, op, &work) == MP_CHIP_FUSION_UPDATE) return;
  place->bytes = mp_memory_round(all->figures, write->bytes);
}

// Transposes that move nothing: results have the bytes of the operands, or of copies of them.
static void memory_sweep_bitcasts(mp_memory_values_t *all, const mp_chip_fusion_t *fusion) {
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(all->fusions, fusion, &m);) {
    const mp_op_t *op = m->op;
    const uint32_t copy = mp_layouts_copy_for(&all->fusions->layouts, op->operands[0], op);
    if (copy == MP_LAYOUT_NONE) {
      mp_memory_unite(all, op->operands[0], &op->results[0]);
      continue;
    }
    mp_memory_value_t *place = mp_memory_place_of(all, &op->results[0]);
    mp_memory_extend(place, op->id);
    mp_memory_read(all, op, op->operands[0], op->id, MP_MEMORY_NONE);
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
  mp_memory_find_in_place(all, fusion);
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    mp_memory_read(all, op, access[i].value, op->id, mp_memory_heir(all, fusion, access[i].value));
  }
}

// Collectives and others that need their operands and results as a whole while they run.
static void memory_sweep_whole(mp_memory_values_t *all, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_memory_extend(mp_memory_place_of(all, &op->results[i]), op->id);
    mp_memory_hand_over(all, &op->results[i]);
  }
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const bool is_in_place = op->code == MP_OP_ALL_REDUCE;
    mp_memory_read(all, op, op->operands[i], op->id,
                   is_in_place ? op->results[i].id : MP_MEMORY_NONE);
  }
}

// ---- values on the host ----

// An update of an array on the host. An array that is copied there for it is copied into place.
static void memory_sweep_update_there(mp_memory_values_t *all, const mp_op_t *op) {
  mp_memory_extend(mp_memory_place_of(all, &op->results[0]), op->id);
  mp_memory_hand_over(all, &op->results[0]);
  const mp_op_t *from = mp_chip_fusion_root(op->operands[1])->op;
  if (from != NULL && mp_op_crosses(from)) {
    mp_memory_place_of(all, &from->results[0])->kind = MP_MEMORY_ELSEWHERE;
  } else {
    mp_memory_read(all, op, op->operands[1], op->id, MP_MEMORY_NONE);
  }
  mp_memory_read(all, op, op->operands[0], op->id, op->results[0].id);
}

// Slices and the like are views.
static void memory_sweep_of_host(mp_memory_values_t *all, const mp_op_t *op) {
  mp_memory_value_t *place = mp_memory_place_of(all, &op->results[0]);
  if (!mp_memory_is_live(place)) return;
  if (mp_chip_fusion_is_generator(op)) {
    mp_memory_extend(place, op->id);
    mp_memory_hand_over(all, &op->results[0]);
  } else if (op->code == MP_OP_DYNAMIC_UPDATE_SLICE) {
    memory_sweep_update_there(all, op);
  } else {
    mp_memory_read(all, op, op->operands[0], place->first, MP_MEMORY_NONE);
    mp_memory_read(all, op, op->operands[0], place->last, MP_MEMORY_NONE);
    place->kind = MP_MEMORY_ELSEWHERE;
  }
}

// ---- loops ----

static void memory_sweep_read_ends(mp_memory_values_t *all, const mp_block_t *block) {
  const mp_op_t *terminator = mp_block_terminator(block);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NONE);
  }
}

// The value for the next iteration takes the place of the current one if no op reads that later,
// and a kernel that reads it while it writes the next one may write over it.
static void memory_sweep_carry(mp_memory_values_t *all, const mp_value_t *arg,
                               const mp_value_t *next) {
  const mp_memory_value_t *now = mp_memory_place_of(all, arg);
  const mp_memory_value_t *then = mp_memory_place_of(all, next);
  if (then->kind != MP_MEMORY_TEMPORARY || now->bytes != then->bytes) return;
  const bool is_over = !mp_memory_is_live(now) || now->last < then->first;
  const bool is_heir = mp_memory_is_live(now) && now->last == then->first &&
                       now->heir_at == now->last && now->heir != MP_MEMORY_NONE &&
                       mp_memory_place_of(all, all->values[now->heir].value) == then;
  if (is_over || is_heir) mp_memory_unite(all, arg, next);
}

// A loop needs the place of a carried value from its beginning to its end. Iterations change all
// values that it carries (mp_pass_loop_values).
static void memory_sweep_join_rounds(mp_memory_values_t *all, const mp_op_t *loop, uint32_t i) {
  const mp_value_t *arg = &loop->regions[1]->args[i];
  const bool is_copied = mp_memory_is_copied(all, loop->operands[i], loop);
  const mp_value_t *next = mp_memory_own_end(all, loop->regions[1], i);
  if (next != NULL) memory_sweep_carry(all, arg, next);
  mp_memory_unite(all, arg, &loop->regions[0]->args[i]);
  mp_memory_unite(all, arg, &loop->results[i]);
  mp_memory_extend(mp_memory_place_of(all, arg), loop->id);
  mp_memory_extend(mp_memory_place_of(all, arg), mp_memory_end_of(loop));
  // The first iteration makes constant initial values.
  if (mp_chip_fusion_makes_start(all->figures, loop, i)) return;
  mp_memory_read(all, loop, loop->operands[i], loop->id, is_copied ? MP_MEMORY_NONE : arg->id);
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
    mp_memory_read(all, terminator, terminator->operands[i], terminator->id, MP_MEMORY_NONE);
    const mp_value_t *end = mp_memory_own_end(all, block, i);
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
    mp_memory_read(all, op, op->operands[i], op->id, MP_MEMORY_NONE);
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

// What a loop carries in VMEM has no place, although its kernels write parts or the next value.
static void memory_sweep_leave_vmem(mp_memory_values_t *all) {
  const bool *is_in_vmem = all->fusions->is_in_vmem;
  for (uint32_t id = 0; is_in_vmem != NULL && id < all->num_values; ++id) {
    mp_memory_value_t *place = &all->values[id];
    const bool is_temporary = place->parent == id && place->kind == MP_MEMORY_TEMPORARY;
    if (is_temporary && is_in_vmem[id]) place->kind = MP_MEMORY_ELSEWHERE;
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
  mp_memory_sweep_results(&all);
  memory_sweep_block(&all, program->partitioned->main->body);
  mp_memory_sweep_arguments(&all);
  memory_sweep_leave_vmem(&all);
  MP_RETURN_IF_ERROR(mp_memory_add_extras(&all, extras, arena, out_places));
  for (uint32_t id = 0; id < all.num_values; ++id) {
    const mp_memory_value_t *place = &all.values[id];
    const bool is_on_host = place->value != NULL && place->value->is_on_host;
    MP_RETURN_IF_ERROR(
        memory_sweep_add_places(place, id, arena, is_on_host ? out_host_places : out_places));
  }
  *out_num_positions = all.num_positions;
  return mp_memory_use_results(&all, arena, out_places);
}
