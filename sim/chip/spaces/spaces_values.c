// When values are live, and which of them are in the same memory. Regions run in the order in which
// the program has them, and a value that a loop reads is live until the loop's end.
#include <math.h>

#include "sim/chip/fuse/chip_fusion_kinds.h"
#include "sim/chip/fuse/lookup.h"
#include "sim/chip/spaces/spaces_impl.h"

// ---- buffers ----

mp_spaces_value_t *mp_spaces_buffer(const mp_spaces_t *s, const mp_value_t *value) {
  uint32_t id = value->id;
  while (s->values[id].parent != id) id = s->values[id].parent;
  return &s->values[id];
}

static void spaces_values_join(mp_spaces_t *s, const mp_value_t *a, const mp_value_t *b) {
  mp_spaces_value_t *buffer = mp_spaces_buffer(s, a), *other = mp_spaces_buffer(s, b);
  if (buffer == other) return;
  buffer->bytes = other->bytes = fmax(buffer->bytes, other->bytes);
  buffer->is_in_hbm |= other->is_in_hbm;
  other->parent = buffer->parent;
  mp_spaces_value_t *last = buffer;
  while (last->next != MP_SPACES_NONE) last = &s->values[last->next];
  last->next = (uint32_t)(other - s->values);
}

static void spaces_values_keep_in_hbm(mp_spaces_t *s, const mp_value_t *value) {
  mp_spaces_buffer(s, mp_spaces_origin(value))->is_in_hbm = true;
}

const mp_value_t *mp_spaces_origin(const mp_value_t *value) {
  value = mp_chip_fusion_untransposed(value);
  const mp_op_t *loop = value->op == NULL ? value->block->parent_op : NULL;
  const bool is_tested = loop != NULL && value->block == loop->regions[0];
  return is_tested && loop->code == MP_OP_WHILE ? &loop->regions[1]->args[value->index] : value;
}

// ---- intervals ----

static void spaces_values_define(mp_spaces_t *s, const mp_value_t *value, uint32_t kernel) {
  mp_spaces_value_t *of = &s->values[value->id];
  of->first = kernel;
  if (of->last < kernel) of->last = kernel;
  if (of->bytes == 0) of->bytes = mp_chip_fusion_bytes_of(s->figures, value->type);
}

bool mp_spaces_is_in(const mp_block_t *block, const mp_op_t *loop) {
  while (block != NULL && block->parent_op != loop) {
    block = block->parent_op == NULL ? NULL : block->parent_op->parent;
  }
  return block != NULL;
}

// Something reads a value at a kernel in a block: in a loop that does not make it, until its end.
static void spaces_values_use(mp_spaces_t *s, const mp_value_t *value, const mp_block_t *block,
                              uint32_t kernel) {
  uint32_t last = kernel;
  value = mp_spaces_origin(value);
  for (uint32_t i = 0; i < s->loops.count; ++i) {
    const mp_spaces_loop_t *loop = &s->loops.items[i];
    if (!loop->is_loop || kernel < loop->first || kernel >= loop->end) continue;
    if (loop->end - 1 < last) continue;
    if (!mp_spaces_is_in(block, loop->op)) continue;
    if (!mp_spaces_is_in(mp_spaces_made_in(value), loop->op)) last = loop->end - 1;
  }
  if (s->values[value->id].last < last) s->values[value->id].last = last;
}

// ---- kernels ----

bool mp_spaces_is_table(const mp_spaces_t *s, const mp_chip_fusion_t *fusion) {
  return fusion->hero->code == MP_OP_GATHER && mp_lookup_is_apart(s->figures, fusion->hero);
}

const mp_value_t *mp_spaces_updated(const mp_spaces_t *s, const mp_value_t *value) {
  mp_work_t work;
  const bool is_update =
      value->op != NULL &&
      mp_chip_fusion_kind(s->figures, value->op, &work) == MP_CHIP_FUSION_UPDATE &&
      !mp_chip_fusion_is_selection(s->figures, value->op);
  return is_update ? mp_spaces_origin(value->op->operands[value->index]) : NULL;
}

// Whether a loop's next iteration gets the value, perhaps after more updates.
static bool spaces_values_is_next(const mp_spaces_t *s, const mp_value_t *value) {
  const mp_op_t *end = mp_block_terminator(value->op->parent);
  for (uint32_t i = 0; i < end->num_operands; ++i) {
    const mp_value_t *at = mp_spaces_origin(end->operands[i]);
    while (at != NULL && at != value) at = mp_spaces_updated(s, at);
    if (at == value) return true;
  }
  return false;
}

static void spaces_values_write(mp_spaces_t *s, const mp_chip_fusion_access_t *write,
                                uint32_t kernel) {
  const mp_value_t *value = mp_spaces_origin(write->value);
  const mp_value_t *array = mp_spaces_updated(s, value);
  // An updated array is larger than what the kernel writes.
  if (array == NULL) s->values[value->id].bytes = write->bytes;
  spaces_values_define(s, value, kernel);
  if (array == NULL) return;
  // Of updated arrays only those that a loop carries are in VMEM.
  const bool is_carried = mp_spaces_made_in(array)->parent_op != NULL &&
                          (array->op == NULL || spaces_values_is_next(s, value));
  if (is_carried && s->values[array->id].last <= kernel) {
    spaces_values_join(s, array, value);
  } else {
    spaces_values_keep_in_hbm(s, array);
    spaces_values_keep_in_hbm(s, value);
  }
}

static void spaces_values_kernel(mp_spaces_t *s, uint32_t kernel) {
  const mp_chip_fusion_t *fusion = mp_spaces_fusion(s, kernel);
  const mp_chip_fusion_access_t *access = mp_spaces_accesses(s, fusion);
  if (fusion->first_member == MP_CHIP_FUSION_NONE) return;
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    spaces_values_use(s, access[i].value, fusion->block, kernel);
  }
  // SparseCores read and write HBM.
  const bool is_table = mp_spaces_is_table(s, fusion);
  for (uint32_t i = fusion->num_reads; i < fusion->num_reads + fusion->num_writes; ++i) {
    spaces_values_write(s, &access[i], kernel);
    if (is_table) spaces_values_keep_in_hbm(s, access[i].value);
  }
  if (is_table) spaces_values_keep_in_hbm(s, fusion->hero->operands[0]);
}

// ---- loops, and everything else that is no kernel ----

// Finds the loops, with their kernels. Returns the kernel after the block.
static mp_status_t spaces_values_find_loops(mp_spaces_t *s, const mp_block_t *block,
                                            uint32_t *in_out_next) {
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const mp_chip_fusion_t *fusion = mp_chip_fusion_at(s->fusions, op);
    if (fusion != NULL) {
      *in_out_next = s->num_kernels - (uint32_t)(fusion - s->fusions->fusions.items);
    }
    if (mp_op_info(op->code)->role != MP_OP_ROLE_CONTROL) continue;
    const uint32_t number = s->loops.count, first = *in_out_next;
    const mp_spaces_loop_t loop = {.op = op, .is_loop = op->code == MP_OP_WHILE, .first = first};
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(s->arena, &s->loops, loop));
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      MP_RETURN_IF_ERROR(spaces_values_find_loops(s, op->regions[r], in_out_next));
    }
    s->loops.items[number].end = *in_out_next;
  }
  return NULL;
}

static void spaces_values_branch(mp_spaces_t *s, const mp_spaces_loop_t *branch) {
  const mp_op_t *op = branch->op;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      const mp_op_t *end = mp_block_terminator(op->regions[r]);
      spaces_values_use(s, end->operands[i], op->regions[r], mp_spaces_last(branch));
    }
    spaces_values_define(s, &op->results[i], mp_spaces_last(branch));
  }
}

static void spaces_values_loop(mp_spaces_t *s, const mp_spaces_loop_t *loop) {
  const mp_op_t *op = loop->op;
  if (!loop->is_loop) {
    spaces_values_branch(s, loop);
    return;
  }
  const mp_op_t *end = mp_block_terminator(op->regions[1]);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    spaces_values_use(s, op->operands[i], op->parent, loop->first);
    spaces_values_use(s, end->operands[i], op->regions[1], mp_spaces_last(loop));
    spaces_values_define(s, &op->regions[1]->args[i], loop->first);
    spaces_values_define(s, &op->results[i], mp_spaces_last(loop));
  }
}

// Main returns a copy in another layout, made where the value is: right after it is there.
static void spaces_values_keep_operand(mp_spaces_t *s, const mp_op_t *op, uint32_t i) {
  const bool is_copied =
      op == s->main->body->last &&
      mp_layouts_copy_for(&s->fusions->layouts, op->operands[i], op) != MP_LAYOUT_NONE;
  if (!is_copied) spaces_values_keep_in_hbm(s, op->operands[i]);
}

// An op that is no kernel, loop or branch has its operands and results in HBM.
static void spaces_values_keep_block(mp_spaces_t *s, const mp_block_t *block) {
  for (uint32_t i = 0; i < block->num_args && block->parent_op == NULL; ++i) {
    s->values[block->args[i].id].is_in_hbm = true;
  }
  for (const mp_op_t *op = block->first; op != NULL; op = op->next) {
    const mp_op_role_t role = mp_op_info(op->code)->role;
    const bool is_kernel = role == MP_OP_ROLE_KERNEL || mp_chip_fusion_is_generator(op);
    const bool is_alias = mp_op_has(op, MP_OP_TRAIT_ALIAS) && !mp_op_has(op, MP_OP_TRAIT_FLOW);
    const bool is_outside = mp_op_is_of_host(op) || mp_op_crosses(op);
    const bool is_flow =
        role == MP_OP_ROLE_CONTROL || (op == block->last && block->parent_op != NULL);
    for (uint32_t r = 0; r < op->num_regions && role == MP_OP_ROLE_CONTROL; ++r) {
      spaces_values_keep_block(s, op->regions[r]);
    }
    if (is_flow || (!is_outside && (is_kernel || is_alias))) continue;
    for (uint32_t i = 0; i < op->num_operands; ++i) spaces_values_keep_operand(s, op, i);
    for (uint32_t i = 0; i < op->num_results; ++i) spaces_values_keep_in_hbm(s, &op->results[i]);
  }
}

// The value that a region makes as operand `i` of its end is in the place of another one, unless it
// is in the place of another operand: then it is copied.
static void spaces_values_join_made(mp_spaces_t *s, const mp_value_t *to, const mp_block_t *region,
                                    uint32_t i) {
  const mp_value_t *made = mp_spaces_origin(mp_block_terminator(region)->operands[i]);
  const bool is_made = made->op != NULL && made->op->parent == region;
  if (is_made && mp_spaces_buffer(s, made)->flow != region->parent_op) {
    spaces_values_join(s, to, made);
    mp_spaces_buffer(s, to)->flow = region->parent_op;
  }
}

static void spaces_values_join_branch(mp_spaces_t *s, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_spaces_buffer(s, &op->results[i])->flow = op;
    for (uint32_t r = 0; r < op->num_regions; ++r) {
      spaces_values_join_made(s, &op->results[i], op->regions[r], i);
    }
  }
}

// A loop's result that needs HBM is copied, but not an array that iterations fill.
static bool spaces_values_is_copied(const mp_spaces_t *s, const mp_op_t *loop, uint32_t i) {
  const mp_value_t *next = mp_chip_fusion_root(mp_block_terminator(loop->regions[1])->operands[i]);
  const bool is_filled = next->op != NULL && next->op->code == MP_OP_DYNAMIC_UPDATE_SLICE &&
                         mp_spaces_updated(s, next) == &loop->regions[1]->args[i];
  return !is_filled && s->values[loop->results[i].id].is_in_hbm;
}

// What a loop carries is in one place, from its initial value to its result.
static void spaces_values_join_loop(mp_spaces_t *s, mp_spaces_loop_t *loop) {
  const mp_op_t *op = loop->op;
  const mp_block_t *body = op->regions[1];
  for (uint32_t i = 0; i < op->num_operands; ++i) mp_spaces_buffer(s, &body->args[i])->flow = op;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    const mp_value_t *arg = &body->args[i], *start = mp_spaces_origin(op->operands[i]);
    const mp_spaces_value_t *of_start = &s->values[start->id];
    // Cores with a VMEM each share kernels.
    if (mp_figure_or(s->figures->fusion_cores, 1) > 1) spaces_values_keep_in_hbm(s, arg);
    if (!spaces_values_is_copied(s, op, i)) spaces_values_join(s, arg, &op->results[i]);
    spaces_values_join_made(s, arg, body, i);
    const bool is_alone = mp_spaces_made_in(start) == op->parent && of_start->last <= loop->first;
    if (is_alone && of_start->first != MP_SPACES_NONE && !of_start->is_in_hbm) {
      spaces_values_join(s, arg, start);
    } else if (start->op == NULL || of_start->first != MP_SPACES_NONE) {
      loop->before += s->values[arg->id].bytes;
    }
  }
}

// Where a value of a buffer ends, the next one begins in the same place.
static void spaces_values_hand_over(mp_spaces_t *s, uint32_t buffer) {
  for (uint32_t a = buffer; a != MP_SPACES_NONE; a = s->values[a].next) {
    mp_spaces_value_t *value = &s->values[a];
    const uint32_t last = value->last;
    for (uint32_t b = buffer; b != MP_SPACES_NONE && value->last == last; b = s->values[b].next) {
      if (b == a || s->values[b].first != last || s->values[b].last < last) continue;
      if (last == value->first) value->first = MP_SPACES_NONE;
      if (last > 0) value->last = last - 1;
    }
  }
}

mp_status_t mp_spaces_find_values(mp_spaces_t *s) {
  uint32_t next = 0;
  MP_RETURN_IF_ERROR(spaces_values_find_loops(s, s->main->body, &next));
  spaces_values_keep_block(s, s->main->body);
  for (uint32_t i = 0; i < s->loops.count; ++i) spaces_values_loop(s, &s->loops.items[i]);
  for (uint32_t kernel = 0; kernel < s->num_kernels; ++kernel) spaces_values_kernel(s, kernel);
  for (uint32_t i = s->loops.count; i-- > 0;) {
    mp_spaces_loop_t *loop = &s->loops.items[i];
    if (loop->is_loop) {
      spaces_values_join_loop(s, loop);
    } else {
      spaces_values_join_branch(s, loop->op);
    }
  }
  for (uint32_t i = 0; i < s->fusions->num_values; ++i) {
    if (s->values[i].parent == i) spaces_values_hand_over(s, i);
  }
  return NULL;
}
