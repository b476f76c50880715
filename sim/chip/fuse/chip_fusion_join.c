// Adds an op to a fusion, or starts a fusion with it.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/fuse/chip_fusion_policy.h"

// The class of a kernel with ops of both classes.
static mp_work_class_t chip_fusion_join_class(mp_work_class_t a, mp_work_class_t b) {
  static const mp_work_class_t order[] = {MP_WORK_GATHER, MP_WORK_ELEMENTWISE, MP_WORK_COPY,
                                          MP_WORK_SCALAR};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
    if (a == order[i] || b == order[i]) return order[i];
  }
  return a;
}

// The share of the op's elements that the fusion computes; all if it writes them.
static double chip_fusion_join_share(const mp_chip_fusion_find_t *find, uint32_t number,
                                     const mp_op_t *op) {
  const mp_chip_fusion_value_t *entry = NULL;
  if (op->num_results != 1 || !find->policy->computes_parts) return 1;
  MP_HASH_MAP_GET(&find->values, mp_hash_pointer(&op->results[0]), entry);
  if (entry == NULL || entry->written_by != MP_CHIP_FUSION_NONE) return 1;
  const double share = mp_chip_fusion_utilization(find, op, number);
  return share > 0 ? fmin(1, share) : 1;
}

static void chip_fusion_join_add_work(mp_chip_fusion_find_t *find, uint32_t number,
                                      const mp_chip_fusion_op_t *at, double share) {
  mp_chip_fusion_t *fusion = &find->out->fusions.items[number];
  mp_chip_fusion_state_t *state = &find->states.items[number];
  mp_work_t *sum = &fusion->work;
  sum->flops += share * at->work.flops;
  sum->transcendentals += share * at->work.transcendentals;
  sum->vector_flops += share * at->work.vector_flops;
  sum->vector_transcendentals += share * at->work.vector_transcendentals;
  if (fusion->has_hero && state->kind == MP_CHIP_FUSION_MATMUL &&
      at->kind == MP_CHIP_FUSION_MATMUL) {
    fusion->inner = at->work.matmul;
    return;
  }
  if (at->kind == MP_CHIP_FUSION_LOOP) {
    if (!fusion->has_hero) {
      sum->work_class = chip_fusion_join_class(sum->work_class, at->work.work_class);
    }
  } else if (!fusion->has_hero || at->kind == MP_CHIP_FUSION_MATMUL) {
    fusion->hero = at->op;
    fusion->has_hero = true;
    sum->work_class = at->work.work_class;
    sum->matmul = at->work.matmul;
    state->kind = at->kind;
  }
  if (at->kind == MP_CHIP_FUSION_REDUCTION)
    state->reduced_dims |= mp_chip_fusion_reduced_dims(at->op);
  fusion->count = fmax(fusion->count, mp_chip_fusion_extent(at->op, at->kind));
}

mp_status_t mp_chip_fusion_join(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                                const mp_chip_fusion_user_t *user) {
  mp_chip_fusions_t *out = find->out;
  mp_chip_fusion_t *fusion = &out->fusions.items[user->fusion];
  const double share = chip_fusion_join_share(find, user->fusion, at->op);
  MP_ASSERT(share > 0 && share <= 1 && fusion->block == at->op->parent);
  const mp_chip_fusion_member_t member = {
      .op = at->op,
      .is_epilogue = user->is_along && at->kind != MP_CHIP_FUSION_MATMUL,
      .sides = user->sides,
      .share = (float)share,
      .next = fusion->first_member};
  fusion->first_member = out->members.count;
  ++find->states.items[user->fusion].num_members;
  const double emitted = mp_chip_fusion_emitted(find, at->op, user->fusion);
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &out->members, member));
  chip_fusion_join_add_work(find, user->fusion, at, share);
  // A reduction reads its operand once, even if its result is broadcast.
  const bool is_row = at->kind == MP_CHIP_FUSION_REDUCTION && user->is_reused;
  for (mp_chip_fusion_read_t read = {0};
       mp_chip_fusion_next(find->figures, at->op, at->kind, &read);) {
    if (!mp_chip_fusion_takes(find->figures, at->op, at->kind, read.operand)) {
      MP_RETURN_IF_ERROR(mp_chip_fusion_find_in_memory(find, at, user, read.value));
      continue;
    }
    const mp_value_t *operand = at->op->operands[read.operand];
    if (mp_layouts_copy_for(&find->out->layouts, operand, at->op) != MP_LAYOUT_NONE) {
      MP_RETURN_IF_ERROR(mp_chip_fusion_use_copied(find, read.value, at->op));
      continue;
    }
    const bool is_along =
        (user->is_along || is_row) && !read.is_reused &&
        mp_chip_fusion_goes_along(at->op, at->kind, mp_chip_fusion_value_count(read.value));
    const mp_chip_fusion_user_t use = {
        .fusion = user->fusion,
        .is_along = is_along,
        .is_reused = read.is_reused || (user->is_reused && !is_row),
        .sides = mp_chip_fusion_sides(&member, at->kind, read.operand)};
    MP_RETURN_IF_ERROR(mp_chip_fusion_use(find, read.value, at->op, &use, emitted, share));
  }
  return NULL;
}

mp_status_t mp_chip_fusion_begin(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at) {
  const uint32_t number = find->out->fusions.count;
  MP_ASSERT(number == find->states.count);  // a state per fusion
  const mp_chip_fusion_t fresh = {.last = at->op,
                                  .hero = at->op,
                                  .block = at->op->parent,
                                  .work.work_class = at->work.work_class,
                                  .first_member = MP_CHIP_FUSION_NONE};
  const mp_chip_fusion_state_t state = {
      .place = find->place, .merged_into = MP_CHIP_FUSION_NONE, .kind = at->kind};
  const mp_chip_fusion_entry_t entry = {mp_hash_pointer(at->op), number};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->out->fusions, fresh));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->states, state));
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->arena, &find->out->by_last, &entry));
  return mp_chip_fusion_join(
      find, at,
      &(mp_chip_fusion_user_t){.fusion = number, .is_along = true, .sides = MP_CHIP_FUSION_BESIDE});
}

mp_status_t mp_chip_fusion_write(mp_chip_fusion_find_t *find, const mp_chip_fusion_op_t *at,
                                 uint32_t number) {
  for (uint32_t i = 0; i < at->op->num_results; ++i) {
    mp_chip_fusion_value_t *entry;
    MP_RETURN_IF_ERROR(mp_chip_fusion_value(find, &at->op->results[i], &entry));
    entry->written_by = number;
  }
  return NULL;
}
