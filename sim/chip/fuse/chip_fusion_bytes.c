// What fusions read and write, and what stays in VMEM between two of them.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/fuse/lookup.h"
#include "sim/chip/rules/chip_rules.h"

// The share of VMEM in which lies what rounds of a loop hand on to each other, where no
// figure says it, and the largest array of it that each round makes anew.
#define CHIP_FUSION_BYTES_CARRIED 0.5

// ---- what they read and write ----

static mp_status_t chip_fusion_bytes_note_made(mp_chip_fusion_find_t *find, uint32_t number) {
  const mp_chip_fusions_t *out = find->out;
  uint32_t at = out->fusions.items[number].first_member;
  for (; at != MP_CHIP_FUSION_NONE; at = out->members.items[at].next) {
    const mp_op_t *op = out->members.items[at].op;
    for (uint32_t i = 0; i < op->num_results; ++i) {
      mp_chip_fusion_value_t *entry;
      MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, &op->results[i], &entry));
      entry->made_by = number;
    }
  }
  return NULL;
}

// The bytes of a value in tiles.
static double chip_fusion_bytes_tiled(const mp_chip_fusion_find_t *find,
                                      const mp_chip_fusion_value_t *entry,
                                      const mp_value_t *value) {
  if (entry->padding > 0) return mp_work_bytes_of(value->type) * entry->padding;
  if (find->out->layouts.num_values > 0) return mp_layouts_bytes(&find->out->layouts, value);
  return mp_work_bytes_of(value->type);
}

// Of a read in place of which a copy in another layout is read, the bytes of that.
static double chip_fusion_bytes_in_copy(const mp_chip_fusion_find_t *find,
                                        const mp_chip_fusion_value_t *entry,
                                        const mp_chip_fusion_access_t *access) {
  if (access->copy == MP_LAYOUT_NONE) return chip_fusion_bytes_tiled(find, entry, access->value);
  return mp_layouts_copy_bytes(&find->out->layouts.copies.items[access->copy]);
}

// Adds what the op reads of a value that its fusion does not make; all of the value at most, be
// it read by several ops of the fusion.
static mp_status_t chip_fusion_bytes_read(mp_chip_fusion_find_t *find, uint32_t number,
                                          const mp_value_t *value, double bytes, uint8_t sides,
                                          uint32_t copy) {
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  if (entry->made_by == number) return NULL;
  const double whole = mp_work_bytes_of(value->type);
  if (entry->reader != number) {
    entry->reader = number;
    entry->bytes = 0;
    entry->access = find->out->accesses.count;
    ++find->out->fusions.items[number].num_reads;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->out->accesses,
                                     (mp_chip_fusion_access_t){.value = value, .copy = copy}));
  }
  find->out->accesses.items[entry->access].sides |= sides;
  if (whole == 0) return NULL;
  entry->bytes = fmin(whole, entry->bytes + bytes);
  mp_chip_fusion_access_t *access = &find->out->accesses.items[entry->access];
  access->bytes = entry->bytes / whole * chip_fusion_bytes_in_copy(find, entry, access);
  return NULL;
}

static mp_status_t chip_fusion_bytes_read_operands(mp_chip_fusion_find_t *find, uint32_t number,
                                                   const mp_chip_fusion_member_t *member) {
  const mp_op_t *op = member->op;
  mp_work_t work;
  const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(find->figures, op, &work);
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_chip_fusion_source(find->figures, op, kind, i, &is_reused);
    if (value == NULL) continue;
    // A GPU writes whole rows without reading them.
    const bool is_written = find->compiler == MP_CHIP_COMPILER_GPU && mp_chip_fusion_is_set(op) &&
                            i < op->num_operands / 2 &&
                            mp_chip_rule(find->figures, MP_CHIP_RULE_scatter_unread);
    const double bytes = is_written ? 0 : mp_work_bytes_read(op, i);
    const uint32_t copy = mp_layouts_copy_for(&find->out->layouts, op->operands[i], op);
    MP_RETURN_IF_ERROR(chip_fusion_bytes_read(find, number, value, bytes,
                                              mp_chip_fusion_sides(member, kind, i), copy));
  }
  return NULL;
}

static mp_status_t chip_fusion_bytes_write_results(mp_chip_fusion_find_t *find, uint32_t number,
                                                   const mp_chip_fusion_member_t *member) {
  const mp_op_t *op = member->op;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    mp_chip_fusion_value_t *entry;
    const mp_value_t *value = &op->results[i];
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
    if (entry->written_by == MP_CHIP_FUSION_NONE ||
        mp_chip_fusion_now(find, entry->written_by) != number) {
      continue;
    }
    const double whole = mp_work_bytes_of(value->type);
    if (whole == 0) continue;
    const bool is_part = !mp_chip_fusion_is_selection(find->figures, op);
    double share = is_part ? mp_work_bytes_written(op, i) / whole : 1;
    // What is updated several times is written once, from the cache.
    if (find->compiler == MP_CHIP_COMPILER_GPU) share = fmin(share, 1);
    const double bytes = share * chip_fusion_bytes_tiled(find, entry, value);
    ++find->out->fusions.items[number].num_writes;
    MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(
        find->arena, &find->out->accesses,
        (mp_chip_fusion_access_t){.value = value, .bytes = bytes, .copy = MP_LAYOUT_NONE}));
  }
  return NULL;
}

typedef mp_status_t (*chip_fusion_bytes_visit_t)(mp_chip_fusion_find_t *find, uint32_t number,
                                                 const mp_chip_fusion_member_t *member);

static mp_status_t chip_fusion_bytes_each(mp_chip_fusion_find_t *find, uint32_t number,
                                          chip_fusion_bytes_visit_t visit) {
  const mp_chip_fusions_t *out = find->out;
  uint32_t at = out->fusions.items[number].first_member;
  for (; at != MP_CHIP_FUSION_NONE; at = out->members.items[at].next) {
    MP_RETURN_IF_ERROR(visit(find, number, &out->members.items[at]));
  }
  return NULL;
}

static bool chip_fusion_bytes_is_apart(const mp_chip_fusion_find_t *find,
                                       const mp_chip_fusion_t *fusion) {
  return fusion->hero->code == MP_OP_GATHER && mp_lookup_is_apart(find->figures, fusion->hero);
}

// What SparseCores look up lies in memory: it was written there, whatever room there is.
static mp_status_t chip_fusion_bytes_note_table(mp_chip_fusion_find_t *find, uint32_t number) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  if (!chip_fusion_bytes_is_apart(find, fusion)) return NULL;
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(
      mp_chip_fusion_value(find, mp_chip_fusion_root(fusion->hero->operands[0]), &entry));
  entry->is_apart = true;
  return NULL;
}

static mp_status_t chip_fusion_bytes_find_accesses(mp_chip_fusion_find_t *find, uint32_t number) {
  find->out->fusions.items[number].first_access = find->out->accesses.count;
  MP_RETURN_IF_ERROR(chip_fusion_bytes_note_made(find, number));
  MP_RETURN_IF_ERROR(chip_fusion_bytes_each(find, number, chip_fusion_bytes_read_operands));
  MP_RETURN_IF_ERROR(chip_fusion_bytes_note_table(find, number));
  return chip_fusion_bytes_each(find, number, chip_fusion_bytes_write_results);
}

// ---- VMEM ----

// What is updated in place is larger than what is written.
static bool chip_fusion_bytes_is_update(const mp_chip_fusion_find_t *find,
                                        const mp_value_t *value) {
  if (value->op == NULL) return false;
  mp_work_t work;
  return mp_chip_fusion_kind(find->figures, value->op, &work) == MP_CHIP_FUSION_UPDATE &&
         !mp_chip_fusion_is_selection(find->figures, value->op);
}

// A value stays in VMEM from the kernel that makes it to the last one that reads it, if
// there is room at that time, and these are not too far from each other.
static mp_status_t chip_fusion_bytes_keep(mp_chip_fusion_find_t *find, uint32_t number,
                                          mp_chip_fusion_scratch_t *scratch) {
  enum { FAR = 256 };  // kernels between the one that makes a value and its last reader
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  // SparseCores write what they looked up to HBM.
  if (chip_fusion_bytes_is_apart(find, fusion)) return NULL;
  for (uint32_t i = 0; i < fusion->num_writes; ++i) {
    const mp_chip_fusion_access_t *access =
        &find->out->accesses.items[fusion->first_access + fusion->num_reads + i];
    mp_chip_fusion_value_t *entry;
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, access->value, &entry));
    const bool is_read = entry->reader != MP_CHIP_FUSION_NONE && entry->reader < number;
    if (!is_read || entry->is_apart || entry->is_outside) continue;
    if (number - entry->reader > FAR) continue;
    if (find->out->fusions.items[entry->reader].block != fusion->block) continue;
    if (chip_fusion_bytes_is_update(find, access->value)) continue;
    if (scratch->kept + access->bytes > find->scratch) continue;
    if (scratch->kept + scratch->fetched + access->bytes > fmax(find->scratch, find->resident)) {
      continue;
    }
    if (!mp_chip_rule(find->figures, MP_CHIP_RULE_kept_in_vmem)) continue;
    scratch->kept += access->bytes;
    scratch->freed_kept[entry->reader] += access->bytes;
    entry->is_scratch = true;
  }
  return NULL;
}

static mp_status_t chip_fusion_bytes_keep_value(mp_chip_fusion_find_t *find,
                                                const mp_value_t *value) {
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  entry->is_scratch = true;
  return NULL;
}

// Whether rounds write parts of a carried array that main returns: it lies in memory from the
// beginning.
static bool chip_fusion_bytes_is_filled(const mp_chip_fusion_find_t *find, const mp_block_t *body,
                                        uint32_t i) {
  const mp_value_t *next = mp_chip_fusion_root(mp_block_terminator(body)->operands[i]);
  if (next->op == NULL || next->op->code != MP_OP_DYNAMIC_UPDATE_SLICE) return false;
  const mp_op_t *end = mp_block_terminator(find->main);
  for (uint32_t k = 0; k < end->num_operands; ++k) {
    if (mp_chip_fusion_root(end->operands[k]) == &body->parent_op->results[i]) {
      return mp_chip_rule(find->figures, MP_CHIP_RULE_filled_in_hbm);
    }
  }
  return false;
}

static mp_status_t chip_fusion_bytes_keep_carried(mp_chip_fusion_find_t *find,
                                                  const mp_block_t *body, double *room) {
  const mp_op_t *terminator = mp_block_terminator(body);
  for (uint32_t i = 0; i < body->num_args; ++i) {
    const double bytes = mp_chip_fusion_bytes_of(find->figures, body->args[i].type);
    if (bytes > *room || body->args[i].is_on_host) continue;
    if (chip_fusion_bytes_is_filled(find, body, i)) continue;
    const mp_value_t *next = mp_chip_fusion_root(terminator->operands[i]);
    const bool is_made = next->op != NULL && next->op->parent == body;
    const bool is_whole = is_made && next->op->code != MP_OP_DYNAMIC_UPDATE_SLICE;
    if (is_whole && bytes > find->scratch * CHIP_FUSION_BYTES_CARRIED &&
        mp_chip_rule(find->figures, MP_CHIP_RULE_large_carried)) {
      continue;
    }
    if (!mp_chip_rule(find->figures, MP_CHIP_RULE_carried_in_vmem)) continue;
    *room -= bytes;
    MP_RETURN_IF_ERROR(chip_fusion_bytes_keep_value(find, &body->args[i]));
    if (!is_made) continue;
    MP_RETURN_IF_ERROR(chip_fusion_bytes_keep_value(find, next));
  }
  return NULL;
}

static bool chip_fusion_bytes_is_in(const mp_block_t *block, const mp_block_t *body) {
  while (block != NULL && block != body) {
    block = block->parent_op == NULL ? NULL : block->parent_op->parent;
  }
  return block != NULL;
}

// The bytes that a value which no round makes takes of VMEM in all rounds; INFINITY: it
// is read from memory. Factors are cast before the loop, and the cast stays, but not for a vector,
// which has the argument itself read; those that are narrow as they come are read in windows. So
// are slices, but those of f32: a stack of factors (a layer's inputs at all times) is cast before.
static double chip_fusion_bytes_held(const mp_chip_fusion_find_t *find,
                                     const mp_chip_fusion_t *fusion,
                                     const mp_chip_fusion_access_t *access) {
  const mp_value_t *value = access->value;
  const mp_work_matmul_t *matmul = &fusion->work.matmul;
  const double bytes = mp_chip_fusion_bytes_of(find->figures, value->type);
  if (value->is_on_host) return INFINITY;
  const bool is_factor = (access->sides & ~MP_CHIP_FUSION_BESIDE) != 0;
  const bool is_vector = matmul->m <= 1 || matmul->n <= 1;
  const bool is_cast = is_factor && !is_vector && value->type->dtype == MP_DTYPE_F32 &&
                       mp_chip_rule(find->figures, MP_CHIP_RULE_cast_before_loop);
  if (access->bytes < bytes && !is_cast) return INFINITY;
  if (!is_factor) return bytes;
  if (is_cast) return bytes / 2;
  return value->op != NULL ? bytes : INFINITY;
}

static mp_status_t chip_fusion_bytes_keep_read(mp_chip_fusion_find_t *find, const mp_block_t *body,
                                               const mp_chip_fusion_t *fusion, double *room) {
  for (uint32_t i = 0; i < fusion->num_reads; ++i) {
    const mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
    const mp_value_t *value = access->value;
    const mp_block_t *made_in = value->op != NULL ? value->op->parent : value->block;
    if (chip_fusion_bytes_is_in(made_in, body)) continue;
    mp_chip_fusion_value_t *entry;
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
    const double bytes = chip_fusion_bytes_held(find, fusion, access);
    if (entry->is_scratch || bytes > *room) continue;
    if (!mp_chip_rule(find->figures, MP_CHIP_RULE_invariants_in_vmem)) continue;
    *room -= bytes;
    entry->is_scratch = true;
  }
  return NULL;
}

// What a loop carries stays in VMEM while there is room (not where cores share kernels
// out), and so does what all of its rounds read.
static mp_status_t chip_fusion_bytes_keep_rounds(mp_chip_fusion_find_t *find,
                                                 const mp_block_t *body) {
  double room =
      find->scratch * mp_figure_or(find->figures->fusion_carried, CHIP_FUSION_BYTES_CARRIED);
  if (!find->is_shared_out) MP_RETURN_IF_ERROR(chip_fusion_bytes_keep_carried(find, body, &room));
  for (uint32_t number = find->out->fusions.count; number-- > 0;) {
    const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
    if (fusion->first_member == MP_CHIP_FUSION_NONE ||
        !chip_fusion_bytes_is_in(fusion->block, body)) {
      continue;
    }
    MP_RETURN_IF_ERROR(chip_fusion_bytes_keep_read(find, body, fusion, &room));
  }
  return NULL;
}

// ---- copies into other layouts ----

// Whether so many bytes fit into VMEM until a kernel is over; then they are there.
static bool chip_fusion_bytes_take(const mp_chip_fusion_find_t *find,
                                   mp_chip_fusion_scratch_t *scratch, double bytes,
                                   uint32_t until) {
  if (scratch->kept + bytes > find->scratch) return false;
  scratch->kept += bytes;
  scratch->freed_kept[until] += bytes;
  return true;
}

// A copy that the kernel reads is written to VMEM, and one that reads what the kernel writes finds
// it there, while there is room.
static void chip_fusion_bytes_place_copies(mp_chip_fusion_find_t *find, uint32_t number,
                                           mp_chip_fusion_scratch_t *scratch) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  mp_layouts_t *layouts = &find->out->layouts;
  if (layouts->copies.count == 0) return;
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
    if (i < fusion->num_reads) {
      if (access->copy == MP_LAYOUT_NONE) continue;
      mp_layout_copy_t *copy = &layouts->copies.items[access->copy];
      if (copy->is_placed) continue;
      copy->is_placed = true;
      copy->writes_vmem =
          chip_fusion_bytes_take(find, scratch, mp_layouts_copy_bytes(copy), number);
      continue;
    }
    const uint32_t first = layouts->first[access->value->id];
    if (first == MP_LAYOUT_NONE || access->is_fetched) continue;
    access->feeds_copy = chip_fusion_bytes_take(find, scratch, access->bytes, number);
    for (uint32_t at = first; at != MP_LAYOUT_NONE; at = layouts->copies.items[at].next) {
      layouts->copies.items[at].reads_vmem = access->feeds_copy;
    }
  }
}

static mp_status_t chip_fusion_bytes_sum(mp_chip_fusion_find_t *find, uint32_t number) {
  mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (uint32_t i = 0; i < fusion->num_reads + fusion->num_writes; ++i) {
    mp_chip_fusion_access_t *access = &find->out->accesses.items[fusion->first_access + i];
    mp_chip_fusion_value_t *entry;
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, access->value, &entry));
    if (access->copy != MP_LAYOUT_NONE) {
      access->is_scratch = find->out->layouts.copies.items[access->copy].writes_vmem;
    } else {
      access->is_scratch = entry->is_scratch || access->is_again || access->feeds_copy;
    }
    *(access->is_scratch ? &fusion->scratch_bytes : &fusion->bytes) += access->bytes;
  }
  return NULL;
}

// Fusions were found from the end to the beginning.
mp_status_t mp_chip_fusion_assign_spaces(mp_chip_fusion_find_t *find) {
  const uint32_t count = find->out->fusions.count;
  mp_chip_fusion_scratch_t scratch = {.last_matmul = MP_CHIP_FUSION_NONE,
                                      .previous = MP_CHIP_FUSION_NONE};
  scratch.freed_kept = MP_ARENA_ARRAY(find->arena, double, (size_t)count + 1);
  scratch.freed_fetched = MP_ARENA_ARRAY(find->arena, double, (size_t)count + 1);
  MP_RETURN_IF_NULL(scratch.freed_kept);
  MP_RETURN_IF_NULL(scratch.freed_fetched);
  for (uint32_t number = count; number-- > 0;) {
    scratch.freed_kept[number] = scratch.freed_fetched[number] = 0;
    MP_RETURN_IF_ERROR(chip_fusion_bytes_find_accesses(find, number));
  }
  for (uint32_t i = 0; i < find->bodies.count; ++i) {
    MP_RETURN_IF_ERROR(chip_fusion_bytes_keep_rounds(find, find->bodies.items[i]));
  }
  mp_chip_fusion_fetch_argument(find, &scratch);
  for (uint32_t number = count; number-- > 0;) {
    mp_chip_fusion_fetch_factor(find, &scratch, number);
    MP_RETURN_IF_ERROR(chip_fusion_bytes_keep(find, number, &scratch));
    chip_fusion_bytes_place_copies(find, number, &scratch);
    MP_RETURN_IF_ERROR(chip_fusion_bytes_sum(find, number));
    scratch.kept -= scratch.freed_kept[number];
    scratch.fetched -= scratch.freed_fetched[number];
  }
  return NULL;
}
