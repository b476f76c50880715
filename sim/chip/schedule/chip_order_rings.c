// Finds the collective matmuls: a part of an operand, or of the sum, moves around a ring of devices
// while the matmul computes another part.
#include <math.h>

#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"

typedef mp_chip_ordering_t order_t;

static const mp_op_t *chip_order_rings_hero(const order_t *o, uint32_t matmul) {
  return mp_chip_fusion_at(o->c->fusions, o->items.items[matmul].op)->hero;
}

// ---- the gathered operand ----

// The dimension of the matmul's operand that was gathered; -1: unknown. Only converts and
// transposes may be between gather and matmul: they are fused into the matmul.
static int64_t chip_order_rings_gathered_dim(const mp_value_t *operand, const mp_op_t *gather,
                                             int64_t dimension) {
  enum { MOST = 4 };
  const mp_op_t *between[MOST];
  uint32_t count = 0;
  for (const mp_op_t *op = operand->op; op != gather; op = op->operands[0]->op) {
    if (op == NULL || count == MOST) return -1;
    if (op->code != MP_OP_CONVERT && op->code != MP_OP_TRANSPOSE) return -1;
    between[count++] = op;
  }
  while (count-- > 0) {
    if (between[count]->code == MP_OP_CONVERT) continue;
    const mp_index_list_t permutation = mp_op_ints(between[count], MP_ATTR_PERMUTATION);
    uint32_t dim = 0;
    while (permutation.values[dim] != dimension) ++dim;
    dimension = dim;
  }
  return dimension;
}

static bool chip_order_rings_is_gathered(const mp_value_t *operand, const mp_op_t *gather) {
  return chip_order_rings_gathered_dim(operand, gather, 0) >= 0;
}

// Whether the matmul contracts over the gathered dimension. Unknown counts as yes.
static bool chip_order_rings_is_summed(const mp_op_t *matmul, const mp_op_t *gather,
                                       int64_t dimension) {
  static const mp_attr_name_t names[] = {MP_ATTR_LHS_CONTRACTING_DIMENSIONS,
                                         MP_ATTR_RHS_CONTRACTING_DIMENSIONS};
  if (matmul->code != MP_OP_DOT_GENERAL) return true;
  for (uint32_t i = 0; i < 2; ++i) {
    const int64_t dim = chip_order_rings_gathered_dim(matmul->operands[i], gather, dimension);
    if (dim < 0) continue;
    return mp_index_list_has(mp_op_ints(matmul, names[i]), dim);
  }
  return true;
}

// ---- candidates ----

typedef struct {
  order_t *o;
  mp_adjacency_t inputs, readers;  // of items
  uint32_t *scatters;  // [items]: the reduce_scatter of a matmul's result; ORDER_NONE: none
  uint32_t *terms;     // [items]: of a reduce_scatter, the matmuls that make its terms
} rings_t;

static mp_status_t chip_order_rings_start(order_t *o, rings_t *out) {
  const uint32_t count = o->items.count, num_edges = o->edges.count;
  const mp_edge_t *edges = o->edges.items;
  out->o = o;
  out->scatters = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)count + 1);
  out->terms = MP_ARENA_ARRAY(o->arena, uint32_t, (size_t)count + 1);
  MP_RETURN_IF_NULL(out->scatters);
  MP_RETURN_IF_NULL(out->terms);
  for (uint32_t i = 0; i < count; ++i) out->scatters[i] = ORDER_NONE;
  MP_RETURN_IF_ERROR(mp_edges_sort(o->arena, count, num_edges, edges, false, &out->readers));
  return mp_edges_sort(o->arena, count, num_edges, edges, true, &out->inputs);
}

// The collectives that could be the ring of an item (mp_op_rings_t).
static uint8_t chip_order_rings_of(const order_t *o, uint32_t item) {
  return o->items.items[item].is_matmul ? chip_order_rings_hero(o, item)->rings : 0;
}

// Notes `scatter` for the matmuls whose results an item reads, and for the matmuls whose results
// these add to their own. If another kernel adds the terms, none of them becomes a ring.
static void chip_order_rings_find_terms(const rings_t *r, uint32_t item, uint32_t scatter) {
  for (uint32_t e = r->inputs.first[item]; e < r->inputs.first[item + 1]; ++e) {
    const uint32_t from = r->inputs.nodes[e];
    const bool may_be = (chip_order_rings_of(r->o, from) & MP_OP_RING_SUM) != 0;
    if (!may_be || r->scatters[from] != ORDER_NONE) continue;
    r->scatters[from] = scatter;
    r->terms[scatter] += 1;
    chip_order_rings_find_terms(r, from, scatter);
  }
}

// The all_gather of an operand; ORDER_NONE: none. If a kernel between them hides it, it is an
// all_gather that partitioning made for a ring and that does not bring the other operand.
static uint32_t chip_order_rings_gather_of(const rings_t *r, uint32_t matmul, uint32_t operand) {
  mp_value_t *const *operands = chip_order_rings_hero(r->o, matmul)->operands;
  uint32_t hidden = ORDER_NONE;
  for (uint32_t e = r->inputs.first[matmul]; e < r->inputs.first[matmul + 1]; ++e) {
    const uint32_t from = r->inputs.nodes[e];
    if (mp_chip_order_kind(r->o, from) != MP_COLLECTIVE_ALL_GATHER) continue;
    const mp_op_t *gather = r->o->items.items[from].op;
    if (chip_order_rings_is_gathered(operands[operand], gather)) return from;
    const bool is_other = chip_order_rings_is_gathered(operands[1 - operand], gather);
    if (gather->by_permutes && !is_other) hidden = from;
  }
  return hidden;
}

static mp_chip_ring_choice_t chip_order_rings_choice(const rings_t *r, uint32_t matmul) {
  mp_chip_ring_choice_t choice = {.matmul = matmul, .rings = chip_order_rings_of(r->o, matmul)};
  for (uint32_t i = 0; i < 2; ++i) {
    const bool may_be = (choice.rings >> i & MP_OP_RING_LHS) != 0;
    choice.gathers[i] = may_be ? chip_order_rings_gather_of(r, matmul, i) : ORDER_NONE;
  }
  choice.scatter = (choice.rings & MP_OP_RING_SUM) != 0 ? r->scatters[matmul] : ORDER_NONE;
  return choice;
}

// ---- rings ----

// Makes the matmul a collective matmul, whose parts take longer than the whole, and no less than
// the messages. `is_last`: all matmuls that need the collective are collective matmuls.
static mp_status_t chip_order_rings_make(order_t *o, uint32_t matmul, uint32_t collective,
                                         bool is_last) {
  mp_chip_item_t *item = &o->items.items[matmul];
  const mp_op_t *messages = o->items.items[collective].op;
  const mp_collective_t *one = mp_chip_order_collective(o, collective)->collective;
  item->ring = (mp_ring_matmul_t){MP_RING_OF_SCATTERS, mp_chip_order_num_members(one)};
  if (one->kind != MP_COLLECTIVE_REDUCE_SCATTER) {
    const mp_op_t *hero = chip_order_rings_hero(o, matmul);
    const bool is_summed = chip_order_rings_is_summed(hero, messages, one->dimension);
    item->ring.kind = is_summed ? MP_RING_OF_SUMS : MP_RING_OF_SLICES;
  }
  item->seconds = fmax(mp_chip_order_kernel_seconds(o, item->op, item->ring),
                       o->items.items[collective].seconds);
  item->messages = collective;
  o->items.items[collective].node = matmul;
  const mp_memory_ring_t ring = {.matmul = item->op,
                                 .collective = messages,
                                 .adds = item->ring.kind == MP_RING_OF_SUMS,
                                 .is_last = is_last};
  return MP_ARRAY_PUSH(o->c->scratch, &o->c->rings, ring);
}

// If a sum has several terms, each collective matmul has a copy of the reduce_scatter. The others
// still need the original.
static mp_status_t chip_order_rings_copy(order_t *o, uint32_t collective, uint32_t *out_item) {
  mp_chip_item_t item = o->items.items[collective];
  MP_RETURN_IF_ERROR(mp_communication_add(o->c, item.op, &item.collective));
  o->c->collectives.items[item.collective].overlap = MP_OVERLAP_DECOMPOSED;
  *out_item = o->items.count;
  return MP_ARRAY_PUSH(o->c->scratch, &o->items, item);
}

static bool chip_order_rings_is_decomposed(const order_t *o, uint32_t item) {
  const mp_chip_collective_t *one = mp_chip_order_collective(o, item);
  return one != NULL && one->overlap == MP_OVERLAP_DECOMPOSED;
}

// Whether the chosen collective is the matmul's ring. If another op reads the gathered operand,
// too, it is gathered as a whole.
static bool chip_order_rings_may_be(const rings_t *r, uint32_t matmul, uint32_t chosen) {
  if (chosen == ORDER_NONE || !chip_order_rings_is_decomposed(r->o, chosen)) return false;
  const bool is_gather = mp_chip_order_kind(r->o, chosen) == MP_COLLECTIVE_ALL_GATHER;
  for (uint32_t e = r->readers.first[chosen]; e < r->readers.first[chosen + 1]; ++e) {
    if (is_gather && r->readers.nodes[e] != matmul) return false;
  }
  return mp_chip_order_ring_is_faster(r->o, matmul, chosen);
}

static mp_status_t chip_order_rings_make_all(const rings_t *r, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (chip_order_rings_of(r->o, i) == 0) continue;
    const mp_chip_ring_choice_t choice = chip_order_rings_choice(r, i);
    uint32_t chosen = mp_chip_order_choose_ring(r->o, &choice);
    if (!chip_order_rings_may_be(r, i, chosen)) continue;
    const bool is_sum = chosen == choice.scatter;
    MP_ASSERT(!is_sum || r->terms[chosen] > 0);
    const bool is_last = !is_sum || --r->terms[chosen] == 0;  // it takes the original
    if (!is_last) MP_RETURN_IF_ERROR(chip_order_rings_copy(r->o, chosen, &chosen));
    MP_RETURN_IF_ERROR(chip_order_rings_make(r->o, i, chosen, is_last));
  }
  return NULL;
}

mp_status_t mp_chip_order_decompose(order_t *o) {
  const uint32_t count = o->items.count;
  rings_t rings;
  bool has_decomposed = false;
  for (uint32_t i = 0; i < count; ++i) has_decomposed |= chip_order_rings_is_decomposed(o, i);
  if (!has_decomposed) return NULL;
  MP_RETURN_IF_ERROR(chip_order_rings_start(o, &rings));
  for (uint32_t i = 0; i < count; ++i) {
    const bool is_scatter = mp_chip_order_kind(o, i) == MP_COLLECTIVE_REDUCE_SCATTER;
    if (is_scatter) chip_order_rings_find_terms(&rings, i, i);
  }
  MP_RETURN_IF_ERROR(chip_order_rings_make_all(&rings, count));
  for (uint32_t i = 0; i < count; ++i) {
    if (o->items.items[i].node != i || !chip_order_rings_is_decomposed(o, i)) continue;
    mp_chip_collective_t *one = mp_chip_order_collective(o, i);
    one->overlap = mp_overlap_without_ring(&o->c->chip->figures, one->collective->kind);
  }
  return NULL;
}
