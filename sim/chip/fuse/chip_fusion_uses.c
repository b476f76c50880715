// What is known about values: records their readers, and finds those of an op.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/layout/tile_layout.h"
#include "sim/chip/rules/chip_policy.h"

mp_status_t mp_chip_fusion_value(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                 mp_chip_fusion_value_t **out) {
  mp_chip_fusion_value_t *entry;
  const uint64_t hash = mp_hash_pointer(value);
  MP_HASH_MAP_GET(&find->values, hash, entry);
  if (entry == NULL) {
    const mp_chip_fusion_value_t fresh = {.hash = hash,
                                          .first_use = MP_CHIP_FUSION_NONE,
                                          .memory_use = MP_CHIP_FUSION_NONE,
                                          .written_by = MP_CHIP_FUSION_NONE,
                                          .made_by = MP_CHIP_FUSION_NONE,
                                          .reader = MP_CHIP_FUSION_NONE};
    MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->arena, &find->values, &fresh));
    MP_HASH_MAP_GET(&find->values, hash, entry);
  }
  *out = entry;
  return NULL;
}

uint32_t mp_chip_fusion_now(const mp_chip_fusion_find_t *find, uint32_t number) {
  while (find->states.items[number].merged_into != MP_CHIP_FUSION_NONE) {
    number = find->states.items[number].merged_into;
    MP_ASSERT(number < find->states.count);
  }
  return number;
}

bool mp_chip_fusion_has_member(const mp_chip_fusion_find_t *find, const mp_chip_fusion_t *fusion,
                               const mp_op_t *op) {
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    if (m->op == op) return true;
  }
  return false;
}

// ---- uses ----

mp_status_t mp_chip_fusion_use(mp_chip_fusion_find_t *find, const mp_value_t *value,
                               const mp_op_t *op, const mp_chip_fusion_user_t *user, double emitted,
                               double share) {
  mp_chip_fusion_value_t *entry;
  MP_ASSERT(user->fusion < find->out->fusions.count && emitted >= 1);
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  const bool cuts =
      op->code == MP_OP_SLICE || op->code == MP_OP_DYNAMIC_SLICE || op->code == MP_OP_GATHER;
  const double count = fmax(1, mp_chip_fusion_value_count(value));
  if (cuts) share *= fmin(1, mp_chip_fusion_op_count(op) / count);
  const mp_chip_fusion_use_t use = {
      user->fusion, entry->first_use, user->is_along, user->is_reused, user->sides,
      op,           emitted,          share};
  entry->first_use = find->uses.count;
  return MP_ARRAY_PUSH(find->arena, &find->uses, use);
}

static mp_status_t chip_fusion_uses_in_memory_at(mp_chip_fusion_find_t *find,
                                                 const mp_value_t *value, uint32_t place) {
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  entry->narrowed = 1;
  if (place < entry->memory_use) entry->memory_use = place;
  return NULL;
}

static mp_status_t chip_fusion_uses_in_memory(mp_chip_fusion_find_t *find,
                                              const mp_value_t *value) {
  return chip_fusion_uses_in_memory_at(find, value, find->place);
}

mp_status_t mp_chip_fusion_use_all_in_memory(mp_chip_fusion_find_t *find, const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (op->operands[i]->is_on_host) continue;
    if (mp_chip_fusion_makes_start(find->figures, op, i)) continue;
    MP_RETURN_IF_ERROR(chip_fusion_uses_in_memory(find, mp_chip_fusion_root(op->operands[i])));
  }
  return NULL;
}

// The share of an operand's bits that the op keeps: less than 1 for a convert to a narrower type.
static double chip_fusion_uses_share_of_bits(const mp_op_t *op) {
  if (op->code != MP_OP_CONVERT) return 1;
  const double from = (double)mp_dtype_bits(op->operands[0]->type->dtype);
  return fmin(1, (double)mp_dtype_bits(op->results[0].type->dtype) / from);
}

// The share of a value's bits that is written: if its only reader converts it to a narrower type,
// it is made in that type.
static double chip_fusion_uses_narrowed(const mp_chip_fusion_find_t *find,
                                        const mp_chip_fusion_value_t *entry) {
  if (entry->memory_use != MP_CHIP_FUSION_NONE) {
    return entry->first_use == MP_CHIP_FUSION_NONE && entry->narrowed > 0 ? entry->narrowed : 1;
  }
  if (entry->first_use == MP_CHIP_FUSION_NONE) return 1;
  const mp_chip_fusion_use_t *use = &find->uses.items[entry->first_use];
  return use->next == MP_CHIP_FUSION_NONE ? chip_fusion_uses_share_of_bits(use->op) : 1;
}

static double chip_fusion_uses_least_padding(const mp_type_t *type) {
  return mp_tile_padding(type, mp_tile_layout_compact(type));
}

// The padding of a part of a concatenation, which has the layout of the whole, however much padding
// that needs.
static double chip_fusion_uses_part_padding(const mp_op_t *concatenation, const mp_type_t *part) {
  const mp_type_t *whole = concatenation->results[0].type;
  const int32_t rank = (int32_t)whole->rank;
  if (mp_work_bytes_of(part) == 0 || part->rank == 0) return 1;
  const bool is_by_rows = rank > 1 && part->rank == whole->rank &&
                          mp_tile_padding(whole, (mp_tile_layout_t){rank - 1, rank - 2, false}) <=
                              chip_fusion_uses_least_padding(whole);
  return is_by_rows ? mp_tile_padding(part, (mp_tile_layout_t){rank - 1, rank - 2, false})
                    : chip_fusion_uses_least_padding(part);
}

// On TPUs a part of a concatenation has the layout and type of the whole, which sets its padding.
static mp_status_t chip_fusion_uses_part(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                         const mp_op_t *op) {
  if (op->code != MP_OP_CONCATENATE || !mp_chip_policy(find->figures)->has_tiles) return NULL;
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, &op->results[0], &entry));
  const double share = chip_fusion_uses_narrowed(find, entry);
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  entry->padding = share * chip_fusion_uses_part_padding(op, value->type);
  return NULL;
}

static mp_status_t chip_fusion_uses_add_user(mp_chip_fusion_find_t *find,
                                             const mp_chip_fusion_use_t *use) {
  const uint32_t number = mp_chip_fusion_now(find, use->fusion);
  const uint32_t num_slices = use->op->code == MP_OP_SLICE;
  mp_chip_fusion_state_t *state = &find->states.items[number];
  if (state->seen == find->num_decided) {
    mp_chip_fusion_user_t *user = &find->users.items[state->user];
    user->is_along = user->is_along && use->is_along;
    user->is_reused = user->is_reused || use->is_reused;
    user->sides |= use->sides;
    user->num_slices += num_slices;
    return NULL;
  }
  state->seen = find->num_decided;
  state->user = find->users.count;
  const mp_chip_fusion_user_t user = {number, use->is_along, use->is_reused, use->sides,
                                      num_slices};
  return MP_ARRAY_PUSH(find->arena, &find->users, user);
}

mp_status_t mp_chip_fusion_add_users(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                     const mp_block_t *block, uint32_t *memory_use) {
  mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  if (entry == NULL) return NULL;
  for (uint32_t at = entry->first_use; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
    const uint32_t number = mp_chip_fusion_now(find, find->uses.items[at].fusion);
    if (find->out->fusions.items[number].block == block) {
      MP_RETURN_IF_ERROR(chip_fusion_uses_add_user(find, &find->uses.items[at]));
      continue;
    }
    const uint32_t place = find->states.items[number].place;
    if (place < entry->memory_use) entry->memory_use = place;
  }
  if (entry->memory_use < *memory_use) *memory_use = entry->memory_use;
  return NULL;
}

const mp_chip_fusion_user_t *mp_chip_fusion_first_user(const mp_chip_fusion_find_t *find) {
  MP_ASSERT(find->users.count > 0);
  const mp_chip_fusion_user_t *first = &find->users.items[0];
  for (uint32_t i = 1; i < find->users.count; ++i) {
    const mp_chip_fusion_user_t *user = &find->users.items[i];
    if (find->states.items[user->fusion].place < find->states.items[first->fusion].place) {
      first = user;
    }
  }
  return first;
}

mp_status_t mp_chip_fusion_use_copied(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                      const mp_op_t *op) {
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  const double share = fmax(entry->narrowed, chip_fusion_uses_share_of_bits(op));
  MP_RETURN_IF_ERROR(chip_fusion_uses_in_memory(find, value));
  entry->narrowed = share;
  return NULL;
}

mp_status_t mp_chip_fusion_find_in_memory(mp_chip_fusion_find_t *find,
                                          const mp_chip_fusion_op_t *at,
                                          const mp_chip_fusion_user_t *user,
                                          const mp_value_t *value) {
  const uint32_t place =
      find->policy->needs_early ? find->states.items[user->fusion].place : find->place;
  MP_RETURN_IF_ERROR(chip_fusion_uses_in_memory_at(find, value, place));
  return chip_fusion_uses_part(find, value, at->op);
}

uint32_t mp_chip_fusion_first_use(const mp_chip_fusion_find_t *find, const mp_value_t *value) {
  const mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry == NULL ? MP_CHIP_FUSION_NONE : entry->first_use;
}

uint32_t mp_chip_fusion_num_uses(const mp_chip_fusion_find_t *find, const mp_value_t *value) {
  const mp_chip_fusion_value_t *entry;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(value), entry);
  return entry == NULL ? 0 : entry->num_uses;
}

bool mp_chip_fusion_reads(const mp_chip_fusion_find_t *find, uint32_t number,
                          const mp_value_t *value) {
  enum { LATEST = 8 };
  uint32_t at = mp_chip_fusion_first_use(find, value);
  for (uint32_t i = 0; i < LATEST && at != MP_CHIP_FUSION_NONE; ++i) {
    if (mp_chip_fusion_now(find, find->uses.items[at].fusion) == number) return true;
    at = find->uses.items[at].next;
  }
  return false;
}
