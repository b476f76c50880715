// Collectives that the chip's compiler makes others of: sums of whole arrays in place of parts, and
// one of several.
#include "sim/base/hash.h"
#include "sim/chip/chip_order_impl.h"
#include "sim/chip/schedule/combine.h"

typedef mp_chip_ordering_t order_t;
typedef mp_chip_order_item_t item_t;

// ---- collectives of whole arrays ----

// Has all members add up the whole array, of which each one takes its part, or has put in its part.
static mp_status_t chip_order_joined_sum_whole(order_t *o, item_t *item,
                                               mp_chip_collective_t *one) {
  mp_collective_t *whole = MP_ARENA_NEW(o->b->arena, mp_collective_t);
  const uint32_t count = one->collective->num_operands;
  const bool is_gather = one->collective->kind == MP_COLLECTIVE_ALL_GATHER;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(o->b->arena, mp_collective_operand_t, count);
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
  if (is_gather || mp_chip_order_is_too_small(o, whole))
    one->overlap = mp_chip_order_overlap(o, whole);
  return o->b->links->seconds(o->b->links->context, whole, &item->is.seconds);
}

// Whether it gathers a vector whose parts are too short.
static bool chip_order_joined_gathers_short(const order_t *o, const mp_collective_t *collective) {
  const mp_collective_operand_t *part = &collective->operands[0];
  int64_t elements = 1;
  for (uint32_t d = 0; d < part->rank; ++d) elements *= part->dims[d];
  return collective->kind == MP_COLLECTIVE_ALL_GATHER && collective->num_operands == 1 &&
         mp_overlap_sums_short(&o->b->chip->figures, elements);
}

static bool chip_order_joined_is_summed_whole(const order_t *o, const mp_chip_collective_t *one) {
  const mp_chip_figures_t *figures = &o->b->chip->figures;
  const mp_collective_t *collective = one->collective;
  const uint32_t all = o->b->program->num_replicas * o->b->program->num_partitions;
  if (one->overlap == MP_OVERLAP_DECOMPOSED) return false;
  if (chip_order_joined_gathers_short(o, collective)) return true;
  if (collective->kind == MP_COLLECTIVE_REDUCE_SCATTER) {
    return mp_chip_order_num_members(collective) == all && mp_overlap_sums_whole(figures);
  }
  return collective->kind == MP_COLLECTIVE_ALL_GATHER &&
         mp_chip_order_num_members(collective) == all && mp_overlap_gathers_whole(figures, all);
}

mp_status_t mp_chip_order_sum_whole_arrays(order_t *o) {
  for (uint32_t i = 0; i < o->items.count; ++i) {
    item_t *item = &o->items.items[i];
    if (item->is.collective == ORDER_NONE) continue;
    mp_chip_collective_t *one = &o->b->collectives.items[item->is.collective];
    if (!chip_order_joined_is_summed_whole(o, one)) continue;
    MP_RETURN_IF_ERROR(chip_order_joined_sum_whole(o, item, one));
  }
  return NULL;
}

// ---- collectives that are one ----

// What those have in common that may be one; 0: it stays alone.
static uint64_t chip_order_joined_key(const order_t *o, const mp_collective_t *collective) {
  const bool is_sum = collective->kind == MP_COLLECTIVE_ALL_REDUCE ||
                      collective->kind == MP_COLLECTIVE_REDUCE_SCATTER;
  if (!mp_overlap_may_combine(&o->b->chip->figures, collective->kind)) return 0;
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

// Notes which ops those are that `hero` leads, itself included, for reports.
static mp_status_t chip_order_joined_note(order_t *o, uint32_t hero, mp_chip_collective_t *one) {
  uint32_t count = 0;
  for (uint32_t i = hero; i < o->items.count; ++i) count += o->leaders[i] == hero;
  const mp_op_t **ops = MP_ARENA_ARRAY(o->b->arena, const mp_op_t *, count);
  MP_RETURN_IF_NULL(ops);
  one->ops = ops;
  for (uint32_t i = hero; i < o->items.count; ++i) {
    if (o->leaders[i] != hero) continue;
    ops[one->num_ops++] = o->b->collectives.items[o->items.items[i].is.collective].op;
  }
  return NULL;
}

// Makes the collective of `hero` the one of all that it leads.
static mp_status_t chip_order_joined_join(order_t *o, uint32_t hero) {
  mp_chip_builder_t *b = o->b;
  uint32_t count = 0;
  for (uint32_t i = hero; i < o->items.count; ++i) {
    if (o->leaders[i] != hero) continue;
    count += b->collectives.items[o->items.items[i].is.collective].collective->num_operands;
  }
  mp_chip_collective_t *one = &b->collectives.items[o->items.items[hero].is.collective];
  if (count == one->collective->num_operands) return NULL;
  mp_collective_operand_t *operands = MP_ARENA_ARRAY(b->arena, mp_collective_operand_t, count);
  mp_collective_t *all = MP_ARENA_NEW(b->arena, mp_collective_t);
  MP_RETURN_IF_NULL(operands);
  MP_RETURN_IF_NULL(all);
  *all = *one->collective;
  all->digest = 0;
  all->num_operands = 0;
  all->operands = operands;
  for (uint32_t i = hero; i < o->items.count; ++i) {
    if (o->leaders[i] != hero) continue;
    const mp_collective_t *part = b->collectives.items[o->items.items[i].is.collective].collective;
    for (uint32_t k = 0; k < part->num_operands; ++k) {
      operands[all->num_operands++] = part->operands[k];
    }
  }
  one->collective = all;
  MP_RETURN_IF_ERROR(chip_order_joined_note(o, hero, one));
  return b->links->seconds(b->links->context, all, &o->items.items[hero].is.seconds);
}

// Collectives that the chip's compiler makes one of, up to so many bytes.
mp_status_t mp_chip_order_combine(order_t *o) {
  const double most_bytes = mp_figure_or(o->b->chip->figures.overlap_combine, 0);
  const uint32_t count = o->items.count;
  if (most_bytes <= 0) return NULL;
  mp_combine_node_t *nodes = MP_ARENA_ARRAY(o->arena, mp_combine_node_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(nodes);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = o->items.items[i].is.collective;
    if (number == ORDER_NONE || o->items.items[i].node != i) continue;  // none, or part of a ring
    const mp_collective_t *collective = o->b->collectives.items[number].collective;
    nodes[i] = (mp_combine_node_t){chip_order_joined_key(o, collective),
                                   mp_chip_order_result_bytes(collective)};
  }
  MP_RETURN_IF_ERROR(mp_combine_find(o->arena, count, nodes, o->edges.count, o->edges.items,
                                     most_bytes, &o->leaders));
  for (uint32_t i = 0; i < count; ++i) {
    if (o->leaders[i] != i) o->items.items[i].node = o->leaders[i];
    if (nodes[i].key != 0 && o->leaders[i] == i) MP_RETURN_IF_ERROR(chip_order_joined_join(o, i));
  }
  return NULL;
}
