// Merges sibling fusions: fusions that iterate over the same array become one with several outputs.
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_policy.h"
#include "sim/chip/rules/chip_rules.h"

static void chip_fusion_siblings_merge(mp_chip_fusion_find_t *find, uint32_t number,
                                       uint32_t into) {
  mp_chip_fusion_t *from = &find->out->fusions.items[number], *to = &find->out->fusions.items[into];
  mp_chip_fusion_state_t *state = &find->states.items[number], *kept = &find->states.items[into];
  MP_ASSERT(number != into && from->block == to->block);
  MP_ASSERT(state->merged_into == MP_CHIP_FUSION_NONE && kept->merged_into == MP_CHIP_FUSION_NONE);
  uint32_t *end = &from->first_member;
  while (*end != MP_CHIP_FUSION_NONE) end = &find->out->members.items[*end].next;
  *end = to->first_member;
  to->first_member = from->first_member;
  from->first_member = MP_CHIP_FUSION_NONE;
  to->work.flops += from->work.flops;
  to->work.transcendentals += from->work.transcendentals;
  to->work.vector_flops += from->work.vector_flops;
  to->work.vector_transcendentals += from->work.vector_transcendentals;
  if (from->has_hero && !to->has_hero) {
    to->hero = from->hero;
    to->has_hero = true;
    to->work.work_class = from->work.work_class;
    kept->kind = state->kind;
  }
  kept->reduced_dims |= state->reduced_dims;
  kept->num_members += state->num_members;
  state->merged_into = into;
}

// The place of the first reader of an op's results outside of fusion `number`.
static uint32_t chip_fusion_siblings_needed(const mp_chip_fusion_find_t *find, uint32_t number,
                                            const mp_op_t *op) {
  uint32_t first = MP_CHIP_FUSION_NONE;
  for (uint32_t i = 0; i < op->num_results; ++i) {
    const mp_chip_fusion_value_t *entry;
    MP_HASH_MAP_GET(&find->values, mp_hash_pointer(&op->results[i]), entry);
    if (entry == NULL) continue;
    if (entry->memory_use < first) first = entry->memory_use;
    uint32_t at = entry->first_use;
    for (; at != MP_CHIP_FUSION_NONE; at = find->uses.items[at].next) {
      const uint32_t user = mp_chip_fusion_now(find, find->uses.items[at].fusion);
      const uint32_t place = find->states.items[user].place;
      if (user != number && place < first) first = place;
    }
  }
  return first;
}

// Whether a fusion's results are read only after this place.
static bool chip_fusion_siblings_can_wait(const mp_chip_fusion_find_t *find, uint32_t number,
                                          uint32_t place) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    const mp_chip_fusion_value_t *entry;
    MP_HASH_MAP_GET(&find->values, mp_hash_pointer(&m->op->results[0]), entry);
    const bool is_written = entry != NULL && entry->written_by != MP_CHIP_FUSION_NONE &&
                            mp_chip_fusion_now(find, entry->written_by) == number;
    if (is_written && chip_fusion_siblings_needed(find, number, m->op) <= place) return false;
  }
  return true;
}

// Whether all operands of an op exist before this place, or are computed in its fusion.
static bool chip_fusion_siblings_has_operands(const mp_chip_fusion_find_t *find, uint32_t number,
                                              const mp_op_t *op, uint32_t place) {
  mp_work_t work;
  const mp_chip_fusion_kind_t kind = mp_chip_fusion_kind(find->figures, op, &work);
  for (mp_chip_fusion_read_t read = {0}; mp_chip_fusion_next(find->figures, op, kind, &read);) {
    if (read.value->op == NULL || read.value->op->parent != op->parent) continue;
    if (mp_op_info(read.value->op->code)->role != MP_OP_ROLE_KERNEL) return false;
    const mp_chip_fusion_value_t *entry;
    MP_HASH_MAP_GET(&find->values, mp_hash_pointer(read.value), entry);
    if (entry == NULL || entry->written_by == MP_CHIP_FUSION_NONE) continue;
    const uint32_t maker = mp_chip_fusion_now(find, entry->written_by);
    if (maker != number && find->states.items[maker].place >= place) return false;
  }
  return true;
}

// Whether a fusion can already run at this place.
static bool chip_fusion_siblings_can_hurry(const mp_chip_fusion_find_t *find, uint32_t number,
                                           uint32_t place) {
  const mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  for (const mp_chip_fusion_member_t *m = NULL; mp_chip_fusion_visit(find->out, fusion, &m);) {
    if (!chip_fusion_siblings_has_operands(find, number, m->op, place)) return false;
  }
  return true;
}

// Whether two fusions iterate over the array in the same way. The first one must be the earlier
// one.
static bool chip_fusion_siblings_are_alike(const mp_chip_fusion_find_t *find,
                                           const mp_chip_fusion_user_t *first,
                                           const mp_chip_fusion_user_t *second, double count) {
  enum { MEMBERS_MOST = 200 };
  const mp_chip_fusion_state_t *a = &find->states.items[first->fusion];
  const mp_chip_fusion_state_t *b = &find->states.items[second->fusion];
  if (a->place >= b->place) return false;
  if (a->kind != MP_CHIP_FUSION_LOOP && a->kind != MP_CHIP_FUSION_REDUCTION) return false;
  if (b->kind != MP_CHIP_FUSION_LOOP && b->kind != MP_CHIP_FUSION_REDUCTION) return false;
  if (find->out->fusions.items[first->fusion].count != count) return false;
  if (a->num_members + b->num_members > MEMBERS_MOST) return false;
  return find->policy->are_siblings == NULL ||
         find->policy->are_siblings(find, first->fusion, second->fusion);
}

// Merges two fusions, at the place of the second one, or if this may hurry, at that of the first
// one.
static bool chip_fusion_siblings_try(mp_chip_fusion_find_t *find, const mp_chip_fusion_user_t *a,
                                     const mp_chip_fusion_user_t *b, double count, bool hurries) {
  if (!a->is_along || !b->is_along) return false;
  if (!chip_fusion_siblings_are_alike(find, a, b, count)) return false;
  const uint32_t first = find->states.items[a->fusion].place;
  const uint32_t second = find->states.items[b->fusion].place;
  const bool waits = chip_fusion_siblings_can_wait(find, a->fusion, second);
  if (!waits && !(hurries && chip_fusion_siblings_can_hurry(find, b->fusion, first))) return false;
  if (!mp_chip_rule(find->figures, MP_CHIP_RULE_sibling_fusion)) return false;
  if (waits) chip_fusion_siblings_merge(find, a->fusion, b->fusion);
  if (!waits) chip_fusion_siblings_merge(find, b->fusion, a->fusion);
  return true;
}

static void chip_fusion_siblings_try_all(mp_chip_fusion_find_t *find, double count, bool hurries) {
  enum { NEIGHBOURS = 4 };
  mp_chip_fusion_user_t *users = find->users.items;
  uint32_t num_users = find->users.count;
  for (uint32_t i = 0; i < num_users; ++i) {
    for (uint32_t j = 0; j < num_users && j <= i + NEIGHBOURS; ++j) {
      if (j + NEIGHBOURS < i || j == i) continue;
      if (!chip_fusion_siblings_try(find, &users[i], &users[j], count, hurries)) continue;
      users[j].fusion = mp_chip_fusion_now(find, users[j].fusion);
      users[i] = users[--num_users];
      --i;
      break;
    }
  }
  // Users may have moved in the array.
  find->users.count = num_users;
}

// Fusions that can wait for each other come first: in a loss of logits, libtpu sums the labels'
// logits with the exponentials, not before these in the kernel of the maximum.
void mp_chip_fusion_join_siblings(mp_chip_fusion_find_t *find, const mp_value_t *value) {
  enum { COUNT_LEAST = 1024 };
  const double count = mp_chip_fusion_value_count(value);
  if (count < COUNT_LEAST) return;
  chip_fusion_siblings_try_all(find, count, false);
  chip_fusion_siblings_try_all(find, count, true);
}
