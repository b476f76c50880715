// Collectives that the chip's compiler replaces: all_reduces of whole arrays instead of
// reduce_scatters and all_gathers, and combined collectives.
#include "sim/base/assert.h"
#include "sim/base/hash.h"
#include "sim/chip/schedule/chip_order_impl.h"
#include "sim/chip/schedule/combine.h"

typedef mp_chip_ordering_t order_t;

// ---- all_reduces of whole arrays ----

// Replaces the collective by an all_reduce of the whole array. Each member slices its part from the
// sum (reduce_scatter), or contributes its part padded with zeros (all_gather).
static mp_status_t chip_order_combine_sum_whole(order_t *o, mp_chip_item_t *item,
                                                mp_chip_collective_t *one) {
  mp_collective_t *whole = MP_ARENA_NEW(o->c->arena, mp_collective_t);
  const uint32_t count = one->collective->num_operands;
  const bool is_gather = one->collective->kind == MP_COLLECTIVE_ALL_GATHER;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(o->c->arena, mp_collective_operand_t, count);
  MP_RETURN_IF_NULL(whole);
  MP_RETURN_IF_NULL(operands);
  for (uint32_t i = 0; i < count; ++i) {
    operands[i] = one->collective->operands[i];
    const int64_t *dims = is_gather ? operands[i].result_dims : operands[i].dims;
    operands[i].dims = operands[i].result_dims = dims;
  }
  *whole = *one->collective;
  whole->kind = MP_COLLECTIVE_ALL_REDUCE;
  whole->operands = operands;
  whole->digest = 0;
  one->collective = whole;
  one->overlap = mp_chip_order_overlap(o, whole);
  return o->c->links->seconds(o->c->links->context, whole, &item->seconds);
}

// The elements that a member contributes.
static double chip_order_combine_elements(const mp_collective_t *collective) {
  double sum = 0;
  for (uint32_t i = 0; i < collective->num_operands; ++i) {
    const mp_collective_operand_t *part = &collective->operands[i];
    double elements = 1;
    for (uint32_t d = 0; d < part->rank; ++d) elements *= (double)part->dims[d];
    sum += elements;
  }
  return sum;
}

static bool chip_order_combine_is_summed_whole(const order_t *o, const mp_chip_collective_t *one) {
  const mp_collective_t *collective = one->collective;
  const uint32_t all = o->c->program->num_replicas * o->c->program->num_partitions;
  const uint32_t members = mp_chip_order_num_members(collective);
  return one->overlap != MP_OVERLAP_DECOMPOSED &&
         mp_overlap_sums_whole(&o->c->chip->figures, collective->kind, members,
                               chip_order_combine_elements(collective), members == all);
}

mp_status_t mp_chip_order_sum_whole_arrays(order_t *o) {
  for (uint32_t i = 0; i < o->items.count; ++i) {
    mp_chip_collective_t *one = mp_chip_order_collective(o, i);
    if (one == NULL || !chip_order_combine_is_summed_whole(o, one)) continue;
    MP_RETURN_IF_ERROR(chip_order_combine_sum_whole(o, &o->items.items[i], one));
  }
  return NULL;
}

// ---- combined collectives ----

// Collectives with the same key may be combined; 0: this one may not.
static uint64_t chip_order_combine_key(const order_t *o, const mp_collective_t *collective) {
  const bool is_sum = collective->kind == MP_COLLECTIVE_ALL_REDUCE ||
                      collective->kind == MP_COLLECTIVE_REDUCE_SCATTER;
  if (!mp_overlap_may_combine(&o->c->chip->figures, collective->kind)) return 0;
  const mp_groups_t *groups = collective->groups;
  const uint64_t of[] = {collective->kind, collective->operands[0].dtype,
                         is_sum ? collective->reducer.digest : 0, groups->num_groups,
                         mp_chip_order_is_too_small(o, collective)};
  uint64_t key = mp_hash_bytes(MP_HASH_START, of, sizeof(of));
  key = mp_hash_bytes(key, groups->offsets, (groups->num_groups + 1) * sizeof(*groups->offsets));
  key = mp_hash_bytes(key, groups->members,
                      groups->offsets[groups->num_groups] * sizeof(*groups->members));
  return key == 0 ? 1 : key;
}

// Replaces the collective of item `first` by that of its whole group, and notes the group's ops for
// reports. `leaders`: for each item the first one of its group.
static mp_status_t chip_order_combine_group(order_t *o, const uint32_t *leaders, uint32_t first) {
  mp_communication_t *c = o->c;
  uint32_t num_ops = 0, num_operands = 0;
  for (uint32_t i = first; i < o->items.count; ++i) {
    if (leaders[i] != first) continue;
    num_ops += 1;
    num_operands += mp_chip_order_collective(o, i)->collective->num_operands;
  }
  if (num_ops == 1) return NULL;
  mp_collective_operand_t *operands =
      MP_ARENA_ARRAY(c->arena, mp_collective_operand_t, num_operands);
  mp_collective_t *all = MP_ARENA_NEW(c->arena, mp_collective_t);
  const mp_op_t **ops = MP_ARENA_ARRAY(c->arena, const mp_op_t *, num_ops);
  MP_RETURN_IF_NULL(operands);
  MP_RETURN_IF_NULL(all);
  MP_RETURN_IF_NULL(ops);
  mp_chip_collective_t *one = mp_chip_order_collective(o, first);
  *all = *one->collective;
  all->digest = 0;
  all->num_operands = 0;
  all->operands = operands;
  for (uint32_t i = first; i < o->items.count; ++i) {
    if (leaders[i] != first) continue;
    const mp_chip_collective_t *part = mp_chip_order_collective(o, i);
    ops[one->num_ops++] = part->op;
    for (uint32_t k = 0; k < part->collective->num_operands; ++k) {
      operands[all->num_operands++] = part->collective->operands[k];
    }
  }
  one->ops = ops;
  one->collective = all;
  return c->links->seconds(c->links->context, all, &o->items.items[first].seconds);
}

mp_status_t mp_chip_order_combine(order_t *o) {
  const double most_bytes = mp_figure_or(o->c->chip->figures.overlap_combine, 0);
  const uint32_t count = o->items.count;
  const uint32_t *leaders = NULL;
  if (most_bytes <= 0) return NULL;
  mp_combine_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_combine_node_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(nodes);
  for (uint32_t i = 0; i < count; ++i) {
    const mp_chip_collective_t *one = mp_chip_order_collective(o, i);
    // A collective that is part of a collective matmul stays alone.
    if (one == NULL || o->items.items[i].node != i) continue;
    nodes[i] = (mp_combine_node_t){chip_order_combine_key(o, one->collective),
                                   mp_chip_order_result_bytes(one->collective)};
  }
  MP_RETURN_IF_ERROR(mp_combine_find(o->arena, count, nodes, o->edges.count, o->edges.items,
                                     most_bytes, &leaders));
  for (uint32_t i = 0; i < count; ++i) {
    MP_ASSERT(leaders[i] <= i && leaders[leaders[i]] == leaders[i]);
    if (leaders[i] != i) o->items.items[i].node = leaders[i];
    if (nodes[i].key == 0 || leaders[i] != i) continue;
    MP_RETURN_IF_ERROR(chip_order_combine_group(o, leaders, i));
  }
  return NULL;
}
