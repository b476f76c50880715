// How an op that was decided about becomes a member of a cluster.
#include <math.h>

#include "sim/base/hash.h"
#include "sim/chip/clusters/cluster_impl.h"

// Of two classes, that of the kernel in which both are.
static mp_work_class_t cluster_join_class(mp_work_class_t a, mp_work_class_t b) {
  static const mp_work_class_t order[] = {MP_WORK_GATHER, MP_WORK_ELEMENTWISE, MP_WORK_COPY,
                                          MP_WORK_SCALAR};
  for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); ++i) {
    if (a == order[i] || b == order[i]) return order[i];
  }
  return a;
}

static void cluster_join_add_work(mp_cluster_find_t *find, uint32_t number,
                                  const mp_cluster_op_t *at) {
  mp_cluster_t *cluster = &find->out->clusters.items[number];
  mp_cluster_state_t *state = &find->states.items[number];
  mp_work_t *sum = &cluster->work;
  sum->flops += at->work.flops;
  sum->transcendentals += at->work.transcendentals;
  sum->vector_flops += at->work.vector_flops;
  sum->vector_transcendentals += at->work.vector_transcendentals;
  if (cluster->has_hero && state->kind == MP_CLUSTER_PRODUCT && at->kind == MP_CLUSTER_PRODUCT) {
    cluster->inner = at->work.product;
    return;
  }
  if (at->kind == MP_CLUSTER_LOOP) {
    if (!cluster->has_hero) {
      sum->work_class = cluster_join_class(sum->work_class, at->work.work_class);
    }
  } else if (!cluster->has_hero || at->kind == MP_CLUSTER_PRODUCT) {
    cluster->leader = at->op;
    cluster->has_hero = true;
    sum->work_class = at->work.work_class;
    sum->product = at->work.product;
    state->kind = at->kind;
  }
  if (at->kind == MP_CLUSTER_REDUCTION) state->reduced_dims |= mp_cluster_reduced_dims(at->op);
  cluster->count = fmax(cluster->count, mp_cluster_extent(at->op, at->kind));
}

mp_status_t mp_cluster_join(mp_cluster_find_t *find, const mp_cluster_op_t *at,
                            const mp_cluster_user_t *user) {
  mp_clusters_t *out = find->out;
  mp_cluster_t *cluster = &out->clusters.items[user->cluster];
  const mp_cluster_member_t member = {at->op, user->is_along && at->kind != MP_CLUSTER_PRODUCT,
                                      user->sides, cluster->first_member};
  cluster->first_member = out->members.count;
  ++find->states.items[user->cluster].num_members;
  const double emitted = mp_cluster_emitted(find, at->op, user->cluster);
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &out->members, member));
  cluster_join_add_work(find, user->cluster, at);
  // A reduction whose result is broadcast goes once through what it reduces.
  const bool is_row = at->kind == MP_CLUSTER_REDUCTION && user->is_reused;
  for (uint32_t i = 0; i < at->op->num_operands; ++i) {
    bool is_reused = false;
    const mp_value_t *value = mp_cluster_source(find->figures, at->op, at->kind, i, &is_reused);
    if (value == NULL) continue;
    if (!mp_cluster_takes(find->figures, at->op, at->kind, i)) {
      MP_RETURN_IF_ERROR(mp_cluster_find_in_memory(find, at, user, value));
      continue;
    }
    const mp_value_t *operand = at->op->operands[i];
    if (mp_layouts_copy_for(&find->out->layouts, operand, at->op) != MP_LAYOUT_NONE) {
      MP_RETURN_IF_ERROR(mp_cluster_use_copied(find, value, at->op));
      continue;
    }
    const bool is_along = (user->is_along || is_row) && !is_reused &&
                          mp_cluster_goes_along(at->op, at->kind, mp_cluster_value_count(value));
    const mp_cluster_user_t use = {.cluster = user->cluster,
                                   .is_along = is_along,
                                   .is_reused = is_reused || (user->is_reused && !is_row),
                                   .sides = mp_cluster_sides(&member, at->kind, i)};
    MP_RETURN_IF_ERROR(mp_cluster_use(find, value, at->op, &use, emitted));
  }
  return NULL;
}

mp_status_t mp_cluster_begin(mp_cluster_find_t *find, const mp_cluster_op_t *at) {
  const uint32_t number = find->out->clusters.count;
  const mp_cluster_t fresh = {.last = at->op,
                              .leader = at->op,
                              .block = at->op->parent,
                              .work.work_class = at->work.work_class,
                              .first_member = MP_CLUSTER_NONE};
  const mp_cluster_state_t state = {.place = find->place,
                                    .first_need = MP_CLUSTER_NONE,
                                    .merged_into = MP_CLUSTER_NONE,
                                    .kind = at->kind};
  const mp_cluster_entry_t entry = {mp_hash_pointer(at->op), number};
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->arena, &find->out->clusters, fresh));
  MP_RETURN_IF_ERROR(MP_ARRAY_PUSH(find->scratch_arena, &find->states, state));
  MP_RETURN_IF_ERROR(MP_HASH_MAP_ADD(find->arena, &find->out->by_last, &entry));
  return mp_cluster_join(
      find, at,
      &(mp_cluster_user_t){.cluster = number, .is_along = true, .sides = MP_CLUSTER_BESIDE});
}

mp_status_t mp_cluster_write(mp_cluster_find_t *find, const mp_cluster_op_t *at, uint32_t number) {
  mp_cluster_state_t *state = &find->states.items[number];
  for (uint32_t i = 0; i < at->op->num_results; ++i) {
    mp_cluster_value_t *entry;
    MP_RETURN_IF_ERROR(mp_cluster_value(find, &at->op->results[i], &entry));
    entry->written_by = number;
  }
  if (at->memory_use < state->first_need) state->first_need = at->memory_use;
  for (uint32_t i = 0; i < find->users.count; ++i) {
    const uint32_t user = find->users.items[i].cluster, place = find->states.items[user].place;
    if (user != number && place < state->first_need) state->first_need = place;
  }
  return NULL;
}
