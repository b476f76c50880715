// Which fusions become one because they read the same array.
#include "sim/chip/fuse/chip_fusion_impl.h"
#include "sim/chip/rules/chip_rules.h"

static void chip_fusion_siblings_merge(mp_chip_fusion_find_t *find, uint32_t number,
                                       uint32_t into) {
  mp_chip_fusion_t *from = &find->out->fusions.items[number], *to = &find->out->fusions.items[into];
  mp_chip_fusion_state_t *state = &find->states.items[number], *kept = &find->states.items[into];
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
  if (state->first_need < kept->first_need) kept->first_need = state->first_need;
  state->merged_into = into;
}

// Whether two fusions that read the same array go through it in the same way, and the second one
// can wait with what it does until the first one is done.
static bool chip_fusion_siblings_may_merge(const mp_chip_fusion_find_t *find,
                                           const mp_chip_fusion_user_t *first,
                                           const mp_chip_fusion_user_t *second, double count) {
  enum { MEMBERS_MOST = 200 };
  const mp_chip_fusion_state_t *a = &find->states.items[first->fusion];
  const mp_chip_fusion_state_t *b = &find->states.items[second->fusion];
  if (!(a->place < b->place && b->place < a->first_need)) return false;
  if (a->kind != MP_CHIP_FUSION_LOOP && a->kind != MP_CHIP_FUSION_REDUCTION) return false;
  if (b->kind != MP_CHIP_FUSION_LOOP && b->kind != MP_CHIP_FUSION_REDUCTION) return false;
  if (find->out->fusions.items[first->fusion].count != count ||
      find->out->fusions.items[second->fusion].count != count) {
    return false;
  }
  if (a->num_members + b->num_members > MEMBERS_MOST) return false;
  // A kernel that keeps rows goes through tiles of them, and has no others beside it.
  if (find->compiler == MP_CHIP_COMPILER_GPU &&
      (find->out->fusions.items[first->fusion].is_rows ||
       find->out->fusions.items[second->fusion].is_rows)) {
    return false;
  }
  // Blocks of threads reduce in one direction.
  return find->compiler != MP_CHIP_COMPILER_GPU || a->reduced_dims == b->reduced_dims ||
         a->reduced_dims == 0 || b->reduced_dims == 0;
}

void mp_chip_fusion_join_siblings(mp_chip_fusion_find_t *find, const mp_value_t *value) {
  enum { NEIGHBOURS = 4, COUNT_LEAST = 1024 };
  const double count = mp_chip_fusion_value_count(value);
  if (count < COUNT_LEAST) return;
  mp_chip_fusion_user_t *users = find->users.items;
  uint32_t num_users = find->users.count;
  for (uint32_t i = 0; i < num_users; ++i) {
    for (uint32_t j = 0; j < num_users && j <= i + NEIGHBOURS; ++j) {
      if (j + NEIGHBOURS < i || j == i) continue;
      const bool is_alike = users[i].is_along && !users[i].is_reused && users[j].is_along &&
                            !users[j].is_reused &&
                            chip_fusion_siblings_may_merge(find, &users[i], &users[j], count);
      if (!is_alike || !mp_chip_rule(find->figures, MP_CHIP_RULE_sibling_fusion)) continue;
      chip_fusion_siblings_merge(find, users[i].fusion, users[j].fusion);
      users[i] = users[--num_users];
      --i;
      break;
    }
  }
  // The places of users in the array have changed.
  find->users.count = num_users;
}
