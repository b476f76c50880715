// Finds the collective matmuls: a part of an operand, or of the sum, moves around a ring of devices
// while the matmul computes another part.
//
// Partitioning notes which collectives of a matmul could be its ring (mp_op_rings_t). If several
// could, XLA's partitioner compares their times. Its choice stands even if the chosen one then does
// not become a ring. Evidence: 200 matmuls on 4x4, 2x8, 8x2 and 16x16 of a v5e (libtpu 0.0.52).
//
// - Of two operands, the all_gather that takes longer; if equal, the second operand's.
// - Of an operand's all_gather and the reduce_scatter of the sum, the one that takes longer. If the
//   matmul takes less than both, the one with the smaller parts.
// - If the matmul's result is a term of a sum that is not scattered: the all_gather, unless the
//   matmul takes longer than it.
#include <math.h>

#include "collectives/mailbox.h"
#include "sim/base/assert.h"
#include "sim/chip/schedule/chip_order_impl.h"
#include "sim/chip/schedule/overlap.h"

typedef mp_chip_ordering_t order_t;
typedef mp_combine_edge_t edge_t;

// ---- conditions ----

static mp_chip_spread_t chip_order_rings_spread(const order_t *o,
                                                const mp_collective_t *collective) {
  const mp_chip_links_t *links = o->c->links;
  if (links->spread != NULL) return links->spread(links->context, collective);
  return (mp_chip_spread_t){mp_chip_order_num_members(collective), 1};
}

static const mp_chip_fusion_t *chip_order_rings_fusion(const order_t *o, uint32_t matmul) {
  return mp_chip_fusion_at(o->c->fusions, o->items.items[matmul].is.op);
}

static const mp_collective_t *chip_order_rings_collective(const order_t *o, uint32_t item) {
  return o->c->collectives.items[o->items.items[item].is.collective].collective;
}

static bool chip_order_rings_is_decomposed(const order_t *o, uint32_t item) {
  const uint32_t number = o->items.items[item].is.collective;
  return number != ORDER_NONE && o->c->collectives.items[number].overlap == MP_OVERLAP_DECOMPOSED;
}

// The matmul's seconds at the chip's peak rate.
static double chip_order_rings_matmul_seconds(const order_t *o, uint32_t matmul) {
  const mp_work_t *work = &chip_order_rings_fusion(o, matmul)->work;
  return work->flops / o->c->chip->flops[mp_chip_flop_kind(work->matmul.dtype)];
}

// The bytes of one message: one member's part.
static double chip_order_rings_part_bytes(const order_t *o, uint32_t item) {
  const mp_collective_t *one = chip_order_rings_collective(o, item);
  const bool is_sum = one->kind == MP_COLLECTIVE_REDUCE_SCATTER;
  return (double)mp_message_bytes(one) / (is_sum ? mp_chip_order_num_members(one) : 1);
}

// The seconds of one message on a link.
static double chip_order_rings_message_seconds(const order_t *o, uint32_t item) {
  const double rate = o->c->links->bandwidth;
  if (rate > 0) return chip_order_rings_part_bytes(o, item) / rate;
  return 2 * o->items.items[item].is.seconds /
         mp_chip_order_num_members(chip_order_rings_collective(o, item));
}

// The collective's seconds by the formula of XLA's partitioner: all messages, in both directions of
// all dimensions of the group at once.
static double chip_order_rings_collective_seconds(const order_t *o, uint32_t item) {
  const mp_collective_t *one = chip_order_rings_collective(o, item);
  const uint32_t dims = chip_order_rings_spread(o, one).num_dims;
  return chip_order_rings_message_seconds(o, item) * mp_chip_order_num_members(one) / 2 /
         (dims == 0 ? 1 : dims);
}

// ---- the gathered operand ----

// The dimension of a transpose's result that was `dim` of its operand.
static int64_t chip_order_rings_transposed(const mp_op_t *transpose, int64_t dim) {
  const mp_index_list_t permutation = mp_op_ints(transpose, MP_ATTR_PERMUTATION);
  for (uint32_t i = 0; i < permutation.count; ++i) {
    if (permutation.values[i] == dim) return i;
  }
  return -1;
}

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
    dimension = chip_order_rings_transposed(between[count], dimension);
  }
  return dimension;
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

// Whether another op reads the gathered operand, too. If so, it is gathered as a whole.
static bool chip_order_rings_is_shared(const order_t *o, uint32_t item, uint32_t matmul) {
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    const edge_t *edge = &o->edges.items[e];
    if (edge->from == item && edge->to != matmul) return true;
  }
  return false;
}

static bool chip_order_rings_may_be(const order_t *o, uint32_t matmul, uint32_t item) {
  const mp_collective_t *one = chip_order_rings_collective(o, item);
  const mp_chip_spread_t spread = chip_order_rings_spread(o, one);
  const mp_overlap_ring_t ring = {.members = spread.num_chips,
                                  .num_dims = spread.num_dims,
                                  .message = chip_order_rings_message_seconds(o, item),
                                  .matmul = chip_order_rings_matmul_seconds(o, matmul)};
  const bool is_gather = one->kind == MP_COLLECTIVE_ALL_GATHER;
  return !(is_gather && chip_order_rings_is_shared(o, item, matmul)) &&
         mp_overlap_ring_is_faster(&o->c->chip->figures, &ring);
}

// ---- candidates ----

// A matmul, and the items of the collectives that could be its ring; ORDER_NONE: none.
typedef struct {
  uint32_t matmul, gathers[2], scatter;
  uint8_t rings;  // as mp_op_rings_t
} choice_t;

typedef struct {
  order_t *o;
  uint32_t *first;     // [items + 1]: the first edge to an item
  uint32_t *scatters;  // [items]: the reduce_scatter of a matmul's result; ORDER_NONE: none
  uint32_t *terms;     // [items]: of a reduce_scatter, the matmuls that make its terms
} rings_t;

static mp_status_t chip_order_rings_start(order_t *o, rings_t *out) {
  const size_t count = o->items.count;
  out->o = o;
  out->first = MP_ARENA_ARRAY(o->arena, uint32_t, count + 1);
  out->scatters = MP_ARENA_ARRAY(o->arena, uint32_t, count + 1);
  out->terms = MP_ARENA_ARRAY(o->arena, uint32_t, count + 1);
  MP_RETURN_IF_NULL(out->first);
  MP_RETURN_IF_NULL(out->scatters);
  MP_RETURN_IF_NULL(out->terms);
  uint32_t e = 0;
  for (uint32_t i = 0; i < count; ++i) {
    out->scatters[i] = ORDER_NONE;
    while (e < o->edges.count && o->edges.items[e].to < i) e += 1;
    MP_ASSERT(e == o->edges.count || e == 0 || o->edges.items[e - 1].to <= o->edges.items[e].to);
    out->first[i] = e;
  }
  out->first[count] = o->edges.count;
  return NULL;
}

static uint8_t chip_order_rings_of(const order_t *o, uint32_t item) {
  return o->items.items[item].is_matmul ? chip_order_rings_fusion(o, item)->hero->rings : 0;
}

// Notes `scatter` for the matmuls whose results an item reads, and for the matmuls whose results
// these add to their own. If another kernel adds the terms, none of them becomes a ring.
static void chip_order_rings_find_terms(const rings_t *r, uint32_t item, uint32_t scatter) {
  for (uint32_t e = r->first[item]; e < r->first[item + 1]; ++e) {
    const uint32_t from = r->o->edges.items[e].from;
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
  const order_t *o = r->o;
  const mp_op_t *hero = chip_order_rings_fusion(o, matmul)->hero;
  uint32_t hidden = ORDER_NONE;
  for (uint32_t e = r->first[matmul]; e < r->first[matmul + 1]; ++e) {
    const uint32_t from = o->edges.items[e].from;
    if (mp_chip_order_kind(o, from) != MP_COLLECTIVE_ALL_GATHER) continue;
    const mp_op_t *gather = o->items.items[from].is.op;
    const int64_t dim = chip_order_rings_collective(o, from)->dimension;
    if (chip_order_rings_gathered_dim(hero->operands[operand], gather, dim) >= 0) return from;
    const bool is_other =
        chip_order_rings_gathered_dim(hero->operands[1 - operand], gather, dim) >= 0;
    if (gather->by_permutes && !is_other) hidden = from;
  }
  return hidden;
}

static choice_t chip_order_rings_choice(const rings_t *r, uint32_t matmul) {
  choice_t choice = {.matmul = matmul, .rings = chip_order_rings_of(r->o, matmul)};
  for (uint32_t i = 0; i < 2; ++i) {
    const bool may_be = (choice.rings >> i & MP_OP_RING_LHS) != 0;
    choice.gathers[i] = may_be ? chip_order_rings_gather_of(r, matmul, i) : ORDER_NONE;
  }
  choice.scatter = (choice.rings & MP_OP_RING_SUM) != 0 ? r->scatters[matmul] : ORDER_NONE;
  return choice;
}

// ---- choice ----

static uint32_t chip_order_rings_longer(const order_t *o, const uint32_t *gathers) {
  if (gathers[0] == ORDER_NONE) return gathers[1];
  if (gathers[1] == ORDER_NONE) return gathers[0];
  const double first = chip_order_rings_collective_seconds(o, gathers[0]);
  return gathers[first > chip_order_rings_collective_seconds(o, gathers[1]) ? 0 : 1];
}

// The item that XLA's partitioner chooses for the ring; ORDER_NONE: none.
static uint32_t chip_order_rings_choose(const order_t *o, const choice_t *choice) {
  const uint32_t gather = chip_order_rings_longer(o, choice->gathers), scatter = choice->scatter;
  if (gather == ORDER_NONE) return scatter;
  if ((choice->rings & MP_OP_RING_IN_TERMS) == 0) return gather;
  const double matmul = chip_order_rings_matmul_seconds(o, choice->matmul);
  const double gathers = chip_order_rings_collective_seconds(o, gather);
  if (scatter == ORDER_NONE) return matmul <= gathers ? gather : ORDER_NONE;
  const double scatters = chip_order_rings_collective_seconds(o, scatter);
  if (matmul >= gathers || matmul >= scatters) return gathers > scatters ? gather : scatter;
  const double part = chip_order_rings_part_bytes(o, gather);
  return part <= chip_order_rings_part_bytes(o, scatter) ? gather : scatter;
}

// ---- rings ----

// Makes the matmul a collective matmul, whose parts take longer than the whole. `is_last`: all
// matmuls that need the collective are collective matmuls.
static mp_status_t chip_order_rings_make(order_t *o, uint32_t matmul, uint32_t collective,
                                         bool is_last) {
  mp_chip_item_t *item = &o->items.items[matmul].is;
  const mp_chip_item_t *messages = &o->items.items[collective].is;
  const mp_collective_t *one = chip_order_rings_collective(o, collective);
  const mp_op_t *hero = chip_order_rings_fusion(o, matmul)->hero;
  item->ring = (mp_ring_matmul_t){MP_RING_OF_SCATTERS, mp_chip_order_num_members(one)};
  if (one->kind != MP_COLLECTIVE_REDUCE_SCATTER) {
    const bool is_summed = chip_order_rings_is_summed(hero, messages->op, one->dimension);
    item->ring.kind = is_summed ? MP_RING_OF_SUMS : MP_RING_OF_SLICES;
  }
  item->seconds = mp_chip_order_kernel_seconds(o, item->op, &item->ring);
  o->items.items[matmul].ring = collective;
  o->items.items[collective].node = matmul;
  const mp_memory_ring_t ring = {.matmul = item->op,
                                 .collective = messages->op,
                                 .adds = item->ring.kind == MP_RING_OF_SUMS,
                                 .is_last = is_last};
  return MP_ARRAY_PUSH(o->c->scratch, &o->c->rings, ring);
}

// If a sum has several terms, each collective matmul has a copy of the reduce_scatter. The others
// still need the original.
static mp_status_t chip_order_rings_copy(order_t *o, uint32_t matmul, uint32_t collective,
                                         uint32_t *out_item) {
  mp_chip_order_item_t item = o->items.items[collective];
  MP_RETURN_IF_ERROR(mp_communication_add(o->c, item.is.op, &item.is.collective));
  o->c->collectives.items[item.is.collective].overlap = MP_OVERLAP_DECOMPOSED;
  *out_item = o->items.count;
  for (uint32_t e = 0; e < o->edges.count; ++e) {
    edge_t *edge = &o->edges.items[e];
    if (edge->from == collective && edge->to == matmul) edge->from = *out_item;
  }
  return MP_ARRAY_PUSH(o->arena, &o->items, item);
}

static mp_status_t chip_order_rings_make_all(const rings_t *r, uint32_t count) {
  order_t *o = r->o;
  for (uint32_t i = 0; i < count; ++i) {
    if (chip_order_rings_of(o, i) == 0) continue;
    const choice_t choice = chip_order_rings_choice(r, i);
    uint32_t chosen = chip_order_rings_choose(o, &choice);
    if (chosen == ORDER_NONE || !chip_order_rings_is_decomposed(o, chosen)) continue;
    if (!chip_order_rings_may_be(o, i, chosen)) continue;
    const bool is_sum = chosen == choice.scatter;
    MP_ASSERT(!is_sum || r->terms[chosen] > 0);
    const bool is_last = !is_sum || --r->terms[chosen] == 0;  // it takes the original
    if (!is_last) MP_RETURN_IF_ERROR(chip_order_rings_copy(o, i, chosen, &chosen));
    MP_RETURN_IF_ERROR(chip_order_rings_make(o, i, chosen, is_last));
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
    const mp_chip_order_item_t *item = &o->items.items[i];
    if (item->is.collective == ORDER_NONE || item->node != i) continue;
    mp_chip_collective_t *one = &o->c->collectives.items[item->is.collective];
    if (one->overlap != MP_OVERLAP_DECOMPOSED) continue;
    one->overlap = mp_overlap_without_ring(&o->c->chip->figures, one->collective->kind);
  }
  return NULL;
}
