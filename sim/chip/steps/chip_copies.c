// Where the chip has to copy: a value is changed in place, or takes the place of another one, and
// an op still reads the old one.
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/rules/chip_policy.h"
#include "sim/chip/rules/chip_rules.h"
#include "sim/chip/steps/chip_builder.h"
#include "sim/plan/plan.h"

// The bytes of an array; on TPUs of its tiles.
static double chip_copies_size(const mp_chip_builder_t *b, const mp_value_t *value) {
  return mp_layouts_bytes(&b->c->fusions->layouts, value);
}

// ---- last uses ----

static mp_status_t chip_copies_note_uses(void *context, mp_op_t *op) {
  mp_chip_builder_t *b = context;
  op->id = b->position++;
  // A change of type reads nothing; the readers of its result do.
  if (op->num_results == 1 && mp_plan_aliased(&op->results[0]) != NULL) return NULL;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_chip_uses_t *before;
    mp_chip_uses_t use = {.hash = mp_hash_pointer(mp_chip_fusion_root(op->operands[i]))};
    MP_HASH_MAP_GET(&b->uses, use.hash, before);
    if (before != NULL) use = *before;
    use.last = op->id;
    MP_RETURN_IF_ERROR(MP_HASH_MAP_SET(b->c->scratch, &b->uses, &use));
  }
  return NULL;
}

mp_status_t mp_chip_find_uses(mp_chip_builder_t *b) {
  return mp_block_walk(b->c->program->partitioned->main->body, chip_copies_note_uses, b);
}

// The uses of a value; NULL: no op reads it.
static const mp_chip_uses_t *chip_copies_use_of(const mp_chip_builder_t *b,
                                                const mp_value_t *value) {
  const mp_chip_uses_t *use;
  MP_HASH_MAP_GET(&b->uses, mp_hash_pointer(value), use);
  return use;
}

static bool chip_copies_is_last_use(const mp_chip_builder_t *b, const mp_value_t *root,
                                    const mp_op_t *op) {
  const mp_chip_uses_t *use = chip_copies_use_of(b, root);
  return use == NULL || use->last <= op->id;
}

// The result of main that takes over a parameter's memory; -1: none does.
static int32_t chip_copies_taken_by(const mp_chip_builder_t *b, const mp_value_t *root) {
  if (root->block != b->c->program->partitioned->main->body) return -1;
  return b->c->program->params[root->index].alias;
}

// Whether the op may write into the memory of a value that it reads: no op reads it afterwards.
// Values of other blocks may be needed in the next iteration.
static bool chip_copies_may_overwrite(const mp_chip_builder_t *b, const mp_value_t *value,
                                      const mp_op_t *op) {
  const mp_value_t *root = mp_chip_fusion_root(value);
  const mp_block_t *block = root->op != NULL ? root->op->parent : root->block;
  if (block != op->parent || !chip_copies_is_last_use(b, root, op)) return false;
  if (root->op != NULL) return root->op->code != MP_OP_CONSTANT;
  return block->parent_op != NULL || chip_copies_taken_by(b, root) >= 0;
}

// Whether an operand is copied anyway, into another layout.
static bool chip_copies_is_copied(const mp_chip_builder_t *b, const mp_op_t *op, uint32_t operand) {
  return mp_layouts_copy_for(&b->c->fusions->layouts, op->operands[operand], op) != MP_LAYOUT_NONE;
}

// What is copied before the op changes the operand, which becomes this result.
static double chip_copies_before(const mp_chip_builder_t *b, const mp_op_t *op, int64_t operand,
                                 const mp_value_t *result) {
  const mp_value_t *root = mp_chip_fusion_root(op->operands[operand]);
  // A copy in another layout is updated instead.
  if (chip_copies_is_copied(b, op, (uint32_t)operand)) return 0;
  const bool is_made = root->op != NULL && root->op->code == MP_OP_CONSTANT;
  if (!is_made && chip_copies_may_overwrite(b, op->operands[operand], op)) return 0;
  return (is_made ? 1 : 2) * chip_copies_size(b, result);
}

double mp_chip_bytes_kept(const mp_chip_builder_t *b, const mp_op_t *op) {
  const mp_chip_figures_t *figures = &b->c->chip->figures;
  const bool is_scatter = op->code == MP_OP_SCATTER && !mp_chip_fusion_is_selection(figures, op);
  const bool is_update = op->code == MP_OP_DYNAMIC_UPDATE_SLICE || is_scatter;
  double bytes = 0;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const int64_t operand = is_update                       ? (int64_t)i
                            : op->code == MP_OP_CUSTOM_CALL ? mp_op_aliased_operand(op, i)
                                                            : -1;
    if (operand >= 0) bytes += chip_copies_before(b, op, operand, &op->results[i]);
  }
  return bytes;
}

// ---- values that get a place ----

static bool chip_copies_is_in_vmem(const mp_chip_builder_t *b, const mp_value_t *value) {
  return b->c->fusions->is_in_vmem != NULL && b->c->fusions->is_in_vmem[value->id];
}

// Copies a value to the place of another one (NULL: HBM). Constants are not read.
static mp_status_t chip_copies_add(mp_chip_builder_t *b, const mp_op_t *op, const mp_value_t *value,
                                   const mp_value_t *to) {
  const mp_value_t *root = mp_chip_fusion_root(value);
  const bool is_constant = root->op != NULL && root->op->code == MP_OP_CONSTANT;
  const bool is_read = !is_constant && !chip_copies_is_in_vmem(b, root);
  const bool is_written = to == NULL || !chip_copies_is_in_vmem(b, to);
  if (!is_read && !is_written) return mp_chip_add_vmem_copy(b, op, value);
  return mp_chip_add_copy(b, op, (is_read + is_written) * chip_copies_size(b, value));
}

// Notes for the memory plan that a loop reads a copy in HBM; several loops may read the same one.
static mp_status_t chip_copies_hold_cast(mp_chip_builder_t *b, const mp_loop_copy_t *copy) {
  uint32_t number = UINT32_MAX;
  if (copy->held == 0) return NULL;
  for (uint32_t i = 0; i < b->held.count; ++i) {
    const mp_memory_copy_t *held = &b->held.items[i];
    if (held->value == copy->value && held->bytes == (uint64_t)copy->held) number = i;
  }
  return mp_chip_hold_copy(b, copy->value, copy->held, copy->loop, &number);
}

// What a loop reads in each iteration is copied into VMEM before, or cast.
static mp_status_t chip_copies_before_loop(mp_chip_builder_t *b, const mp_op_t *loop) {
  for (uint32_t i = 0; i < b->c->fusions->loop_copies.count; ++i) {
    const mp_loop_copy_t *copy = &b->c->fusions->loop_copies.items[i];
    if (copy->loop != loop) continue;
    MP_RETURN_IF_ERROR(chip_copies_hold_cast(b, copy));
    MP_RETURN_IF_ERROR(mp_chip_add_copy(b, loop, copy->bytes));
  }
  return NULL;
}

mp_status_t mp_chip_copy_starts(mp_chip_builder_t *b, const mp_op_t *loop) {
  const mp_block_t *body = loop->regions[1];
  for (uint32_t i = 0; i < loop->num_operands; ++i) {
    if (body->args[i].is_on_host) continue;
    const mp_value_t *root = mp_chip_fusion_root(loop->operands[i]);
    bool is_free = chip_copies_may_overwrite(b, root, loop);
    for (uint32_t j = 0; j < i && is_free; ++j) {
      is_free = mp_chip_fusion_root(loop->operands[j]) != root;
    }
    if (is_free || mp_chip_fusion_makes_start(&b->c->chip->figures, loop, i)) continue;
    MP_RETURN_IF_ERROR(chip_copies_add(b, loop, loop->operands[i], &body->args[i]));
  }
  return chip_copies_before_loop(b, loop);
}

// The array whose bytes a value has.
static const mp_value_t *chip_copies_bytes_of(const mp_chip_builder_t *b, const mp_value_t *value) {
  const bool has_tiles = mp_chip_policy(&b->c->chip->figures)->has_tiles;
  return has_tiles ? mp_chip_fusion_untransposed(value) : mp_chip_fusion_root(value);
}

// Whether operand `i` of a terminator was not made in the block, or is operand `j` < `i` as well.
static bool chip_copies_is_foreign(const mp_chip_builder_t *b, const mp_op_t *terminator,
                                   uint32_t i) {
  if (chip_copies_is_copied(b, terminator, i)) return false;
  const mp_value_t *root = chip_copies_bytes_of(b, terminator->operands[i]);
  if (root->is_on_host) return false;  // the device copies nothing there
  if (root->op == NULL || root->op->parent != terminator->parent) return true;
  if (root->op->code == MP_OP_CONSTANT) return true;
  for (uint32_t j = 0; j < i; ++j) {
    if (mp_chip_fusion_root(terminator->operands[j]) == root) return true;
  }
  return false;
}

mp_status_t mp_chip_copy_carried(mp_chip_builder_t *b, const mp_op_t *loop) {
  const mp_block_t *body = loop->regions[1];
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    if (!chip_copies_is_foreign(b, terminator, i)) {
      MP_RETURN_IF_ERROR(mp_chip_copy_held(b, loop, i));
      continue;
    }
    MP_RETURN_IF_ERROR(chip_copies_add(b, loop, terminator->operands[i], &body->args[i]));
  }
  return NULL;
}

mp_status_t mp_chip_copy_chosen(mp_chip_builder_t *b, const mp_block_t *region) {
  const mp_op_t *terminator = mp_block_terminator(region);
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    if (!chip_copies_is_foreign(b, terminator, i)) continue;
    MP_RETURN_IF_ERROR(chip_copies_add(b, region->parent_op, terminator->operands[i],
                                       &region->parent_op->results[i]));
  }
  return NULL;
}

// What devices gathered or exchanged is copied to where main returns it. Where that is a donated
// argument's memory, the argument was copied before it was read.
static mp_status_t chip_copies_land(mp_chip_builder_t *b, const mp_op_t *terminator, uint32_t i) {
  const mp_value_t *value = terminator->operands[i];
  const double bytes = chip_copies_size(b, value);
  const bool is_near = mp_chip_fusion_is_received_near(&b->c->chip->figures, bytes);
  MP_RETURN_IF_ERROR(mp_chip_add_copy(b, terminator, is_near ? bytes : 2 * bytes));
  const int32_t argument = b->c->program->results[i].alias;
  if (argument < 0) return NULL;
  const mp_value_t *taken = &terminator->parent->args[argument];
  const mp_chip_uses_t *use = chip_copies_use_of(b, taken);
  if (use == NULL || mp_chip_fusion_is_sent_from(value, taken)) return NULL;
  return mp_chip_add_copy(b, terminator, 2 * bytes);
}

// Whether a loop has a value in VMEM that is in HBM afterwards.
static bool chip_copies_leaves_loop(const mp_chip_builder_t *b, const mp_value_t *result) {
  return result->op != NULL && result->op->code == MP_OP_WHILE &&
         !chip_copies_is_in_vmem(b, result) &&
         chip_copies_is_in_vmem(b, &result->op->regions[1]->args[result->index]);
}

mp_status_t mp_chip_copy_results(mp_chip_builder_t *b) {
  const mp_op_t *terminator = mp_block_terminator(b->c->program->partitioned->main->body);
  const mp_chip_figures_t *figures = &b->c->chip->figures;
  for (uint32_t i = 0; i < terminator->num_operands; ++i) {
    const mp_value_t *root = mp_chip_fusion_root(terminator->operands[i]);
    if (!chip_copies_is_foreign(b, terminator, i)) {
      if (chip_copies_leaves_loop(b, root)) {
        MP_RETURN_IF_ERROR(
            mp_chip_add_copy(b, terminator, chip_copies_size(b, terminator->operands[i])));
      }
      if (!mp_chip_fusion_is_received(figures, root) ||
          !mp_chip_rule(&b->c->chip->figures, MP_CHIP_RULE_received_results))
        continue;
      MP_RETURN_IF_ERROR(chip_copies_land(b, terminator, i));
      continue;
    }
    if (chip_copies_taken_by(b, root) == (int32_t)i) continue;
    MP_RETURN_IF_ERROR(chip_copies_add(b, terminator, terminator->operands[i], NULL));
  }
  return NULL;
}
