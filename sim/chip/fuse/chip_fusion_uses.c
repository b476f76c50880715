// Records the readers of values, and finds those of an op.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_impl.h"

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

// On TPUs a part of a concatenation has the layout and type of the whole, which sets its padding.
static mp_status_t chip_fusion_uses_part(mp_chip_fusion_find_t *find, const mp_value_t *value,
                                         const mp_op_t *op) {
  if (op->code != MP_OP_CONCATENATE || find->compiler != MP_CHIP_COMPILER_TPU) return NULL;
  mp_chip_fusion_value_t *entry;
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, &op->results[0], &entry));
  const double share = chip_fusion_uses_narrowed(find, entry);
  MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, value, &entry));
  entry->padding = share * mp_chip_fusion_part_padding(op, value->type);
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
  const bool is_gpu = find->compiler == MP_CHIP_COMPILER_GPU;
  // On GPUs the value has to exist when the op's fusion runs, not at the op's place.
  const uint32_t place = is_gpu ? find->states.items[user->fusion].place : find->place;
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
