// Which collective of a matmul becomes its ring, and whether the ring is faster.
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
#include "collectives/mailbox.h"
#include "sim/chip/schedule/chip_order_impl.h"

typedef mp_chip_ordering_t order_t;

// What a collective costs as a ring.
typedef struct {
  mp_chip_spread_t spread;
  double bytes, message;  // of one message, one member's part; its seconds on a link
  // All messages, in both directions of all dimensions of the group at once: the formula of XLA's
  // partitioner.
  double seconds;
} ring_t;

static ring_t chip_order_ring_of(const order_t *o, uint32_t item) {
  const mp_chip_links_t *links = o->c->links;
  const mp_collective_t *one = mp_chip_order_collective(o, item)->collective;
  const uint32_t members = mp_chip_order_num_members(one);
  ring_t ring = {.spread = links->spread(links->context, one)};
  ring.bytes =
      (double)mp_message_bytes(one) / (one->kind == MP_COLLECTIVE_REDUCE_SCATTER ? members : 1);
  ring.message = links->bandwidth > 0 ? ring.bytes / links->bandwidth : 0;
  ring.seconds =
      ring.message * members / 2 / (ring.spread.num_dims == 0 ? 1 : ring.spread.num_dims);
  return ring;
}

// The matmul's seconds at the chip's peak rate.
static double chip_order_ring_matmul(const order_t *o, uint32_t matmul) {
  const mp_work_t *work = &mp_chip_fusion_at(o->c->fusions, o->items.items[matmul].op)->work;
  return work->flops / o->c->chip->flops[mp_chip_flop_kind(work->matmul.dtype)];
}

static uint32_t chip_order_ring_longer(const order_t *o, const uint32_t *gathers) {
  if (gathers[0] == ORDER_NONE) return gathers[1];
  if (gathers[1] == ORDER_NONE) return gathers[0];
  const double first = chip_order_ring_of(o, gathers[0]).seconds;
  return gathers[first > chip_order_ring_of(o, gathers[1]).seconds ? 0 : 1];
}

uint32_t mp_chip_order_choose_ring(const order_t *o, const mp_chip_ring_choice_t *choice) {
  const uint32_t gather = chip_order_ring_longer(o, choice->gathers), scatter = choice->scatter;
  if (gather == ORDER_NONE) return scatter;
  if ((choice->rings & MP_OP_RING_IN_TERMS) == 0) return gather;
  const double matmul = chip_order_ring_matmul(o, choice->matmul);
  const ring_t gathers = chip_order_ring_of(o, gather);
  if (scatter == ORDER_NONE) return matmul <= gathers.seconds ? gather : ORDER_NONE;
  const ring_t scatters = chip_order_ring_of(o, scatter);
  if (matmul >= gathers.seconds || matmul >= scatters.seconds) {
    return gathers.seconds > scatters.seconds ? gather : scatter;
  }
  return gathers.bytes <= scatters.bytes ? gather : scatter;
}

bool mp_chip_order_ring_is_faster(const order_t *o, uint32_t matmul, uint32_t item) {
  const ring_t ring = chip_order_ring_of(o, item);
  return mp_overlap_ring_is_faster(
      &o->c->chip->figures, &(mp_overlap_ring_t){.members = ring.spread.num_chips,
                                                 .num_dims = ring.spread.num_dims,
                                                 .message = ring.message,
                                                 .matmul = chip_order_ring_matmul(o, matmul)});
}
