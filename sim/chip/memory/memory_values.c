// Values of a program with their lifetimes, and the places that they share.
#include "sim/base/assert.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/memory/memory_impl.h"
#include "sim/chip/rules/chip_policy.h"

// ---- numbers ----

static bool memory_values_is_control(const mp_op_t *op) {
  return mp_op_info(op->code)->role == MP_OP_ROLE_CONTROL;
}

// Positions begin at 1. The position of a loop or branch is before those of its ops, and another
// one after them is its end.
static uint32_t memory_values_number(const mp_block_t *block, uint32_t next) {
  for (mp_op_t *op = block->first; op != NULL; op = op->next) {
    op->id = next++;
    if (!memory_values_is_control(op)) continue;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      next = memory_values_number(op->regions[r], next);
    }
    ++next;
  }
  return next;
}

uint32_t mp_memory_end_of(const mp_op_t *control) {
  return mp_block_terminator(control->regions[control->num_regions - 1])->id + 1;
}

// ---- sizes ----

uint64_t mp_memory_round(const mp_chip_figures_t *figures, double bytes) {
  const uint64_t to = mp_chip_policy(figures)->allocation;
  return ((uint64_t)bytes + to - 1) / to * to;
}

uint64_t mp_memory_bytes(const mp_chip_figures_t *figures, const mp_type_t *type) {
  return mp_memory_round(figures, mp_chip_fusion_bytes_of(figures, type));
}

// ---- making ----

// On TPUs the bytes of tiles in the assigned layout.
static uint64_t memory_values_bytes(const mp_memory_values_t *all, const mp_value_t *value) {
  const mp_layouts_t *layouts = &all->fusions->layouts;
  if (value->id >= layouts->num_values) return mp_memory_bytes(all->figures, value->type);
  return mp_memory_round(all->figures, mp_layouts_bytes(layouts, value));
}

static void memory_values_enter(mp_memory_values_t *all, const mp_value_t *value,
                                mp_memory_kind_t kind) {
  all->values[value->id] = (mp_memory_value_t){.value = value,
                                               .parent = value->id,
                                               .first = UINT32_MAX,
                                               .heir = MP_MEMORY_NONE,
                                               .taken_by = MP_CHIP_FUSION_NONE,
                                               .end = MP_MEMORY_NONE,
                                               .kind = kind,
                                               .bytes = memory_values_bytes(all, value)};
}

static void memory_values_enter_block(mp_memory_values_t *all, const mp_block_t *block) {
  const bool is_main = block->parent_op == NULL;
  for (uint32_t i = 0; i < block->num_args; ++i) {
    memory_values_enter(all, &block->args[i], is_main ? MP_MEMORY_ARGUMENT : MP_MEMORY_TEMPORARY);
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const bool is_constant = op->code == MP_OP_CONSTANT;
    for (uint32_t i = 0; i < op->num_results; ++i) {
      memory_values_enter(all, &op->results[i],
                          is_constant ? MP_MEMORY_ELSEWHERE : MP_MEMORY_TEMPORARY);
    }
    for (uint32_t r = 0; r < op->num_regions && memory_values_is_control(op); ++r) {
      memory_values_enter_block(all, op->regions[r]);
    }
  }
}

mp_status_t mp_memory_values_create(const mp_chip_figures_t *figures,
                                    const mp_chip_fusions_t *fusions, const mp_program_t *program,
                                    mp_arena_t *arena, mp_memory_values_t *out_values) {
  mp_memory_values_t all = {.figures = figures, .fusions = fusions, .program = program};
  all.num_values = mp_module_number_values(program->partitioned);
  all.num_positions = memory_values_number(program->partitioned->main->body, 1);
  all.values = MP_ARENA_ARRAY(arena, mp_memory_value_t, (size_t)all.num_values + 1);
  MP_RETURN_IF_NULL(all.values);
  memory_values_enter_block(&all, program->partitioned->main->body);
  *out_values = all;
  return NULL;
}

// ---- sets ----

mp_memory_value_t *mp_memory_place_of(const mp_memory_values_t *all, const mp_value_t *value) {
  uint32_t id = mp_chip_fusion_root(value)->id;
  while (all->values[id].parent != id) {
    all->values[id].parent = all->values[all->values[id].parent].parent;
    id = all->values[id].parent;
  }
  return &all->values[id];
}

bool mp_memory_is_live(const mp_memory_value_t *place) {
  return place->first <= place->last;
}

void mp_memory_extend(mp_memory_value_t *place, uint32_t at) {
  if (at < place->first) place->first = at;
  if (at > place->last) place->last = at;
}

void mp_memory_unite(mp_memory_values_t *all, const mp_value_t *a, const mp_value_t *b) {
  mp_memory_value_t *into = mp_memory_place_of(all, a), *from = mp_memory_place_of(all, b);
  if (into == from) return;
  MP_ASSERT(into->value->is_on_host == from->value->is_on_host);
  // The set has the heir of the place that lives longer.
  if (from->last > into->last) {
    mp_memory_value_t *longer = from;
    from = into;
    into = longer;
  }
  if (mp_memory_is_live(from) && from->first < into->first) into->first = from->first;
  if (from->kind > into->kind) {
    into->kind = from->kind;
    into->result = from->result;
  }
  if (from->bytes > into->bytes) into->bytes = from->bytes;
  from->parent = into->parent;
}

// ---- uses ----

// The outermost loop that has the op, but not the value; NULL: there is none.
static const mp_op_t *memory_values_loop_between(const mp_op_t *op, const mp_value_t *value) {
  const mp_op_t *loop = NULL;
  const mp_block_t *home = value->op != NULL ? value->op->parent : value->block;
  for (const mp_block_t *at = op->parent; at != home && at->parent_op != NULL;
       at = at->parent_op->parent) {
    if (at->parent_op->code == MP_OP_WHILE) loop = at->parent_op;
  }
  return loop;
}

void mp_memory_read(mp_memory_values_t *all, const mp_op_t *op, const mp_value_t *value,
                    uint32_t at, uint32_t heir) {
  const mp_value_t *root = mp_chip_fusion_root(value);
  mp_memory_value_t *place = mp_memory_place_of(all, root);
  const mp_op_t *loop = memory_values_loop_between(op, root);
  if (loop != NULL) {
    mp_memory_extend(place, loop->id);
    at = mp_memory_end_of(loop);
    heir = MP_MEMORY_NONE;
  }
  mp_memory_extend(place, at);
  // The first heir at the last position takes it, unless another reader there has none.
  if (at > place->heir_at || (at == place->heir_at && heir == MP_MEMORY_NONE)) place->heir = heir;
  if (at > place->heir_at) place->heir_at = at;
}

bool mp_memory_may_take(const mp_memory_values_t *all, const mp_memory_value_t *place,
                        const mp_memory_value_t *heir) {
  if (place->bytes != heir->bytes) return false;
  if (place->kind == MP_MEMORY_TEMPORARY) return true;
  return place->kind == MP_MEMORY_ARGUMENT && heir->kind == MP_MEMORY_RESULT &&
         all->program->params[place->value->index].alias == (int32_t)heir->result;
}

void mp_memory_hand_over(mp_memory_values_t *all, const mp_value_t *value) {
  mp_memory_value_t *place = mp_memory_place_of(all, value);
  if (!mp_memory_is_live(place) || place->heir == MP_MEMORY_NONE) return;
  if (place->heir_at != place->last) return;
  mp_memory_value_t *heir = mp_memory_place_of(all, all->values[place->heir].value);
  if (heir == place || heir->first < place->last) return;
  if (mp_memory_may_take(all, place, heir)) mp_memory_unite(all, heir->value, value);
}

// ---- ends of blocks ----

// Notes which operand of the terminator each value of the block is, in one pass: a program may have
// 65,536 results, one per device.
static void memory_values_list_ends(mp_memory_values_t *all, const mp_block_t *block) {
  const mp_op_t *terminator = mp_block_terminator(block);
  for (uint32_t i = terminator->num_operands; i-- > 0;) {
    const mp_value_t *end = mp_chip_fusion_root(terminator->operands[i]);
    if (end->op != NULL && end->op->parent == block) all->values[end->id].end = i;
  }
}

bool mp_memory_is_copied(const mp_memory_values_t *all, const mp_value_t *value,
                         const mp_op_t *op) {
  return mp_layouts_copy_for(&all->fusions->layouts, value, op) != MP_LAYOUT_NONE;
}

const mp_value_t *mp_memory_own_end(mp_memory_values_t *all, const mp_block_t *block, uint32_t i) {
  const mp_op_t *terminator = mp_block_terminator(block);
  const mp_value_t *end = mp_chip_fusion_root(terminator->operands[i]);
  if (mp_memory_is_copied(all, terminator->operands[i], terminator)) return NULL;
  if (end->op == NULL || end->op->parent != block || end->op->code == MP_OP_CONSTANT) return NULL;
  const mp_memory_value_t *value = &all->values[end->id];
  if (value->end == MP_MEMORY_NONE) memory_values_list_ends(all, block);
  return value->end == i ? end : NULL;
}
