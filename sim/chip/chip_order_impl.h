// What the files that order a block share.
#ifndef MINIPOD_SIM_CHIP_CHIP_ORDER_IMPL_H_
#define MINIPOD_SIM_CHIP_CHIP_ORDER_IMPL_H_

#include "sim/chip/chip_impl.h"
#include "sim/chip/schedule/combine.h"

typedef struct {
  mp_chip_item_t is;
  uint32_t node;      // of the schedule; several items may be one
  uint32_t attached;  // the collective beside this matmul; UINT32_MAX: none
  bool is_matmul;
} mp_chip_order_item_t;

typedef struct {
  mp_chip_builder_t *b;
  mp_arena_t *arena;  // dies with the order
  MP_ARRAY(mp_chip_order_item_t) items;
  MP_ARRAY(mp_combine_edge_t) edges;  // between items, in the order of those that they lead to
  const uint32_t *leaders;  // [items] of collectives that are one, the first; NULL: none are
  uint32_t last_fixed;      // the last item that keeps its place among those like it
  bool has_async;
} mp_chip_ordering_t;

#define ORDER_NONE UINT32_MAX

// ---- chip_items.c ----

// The kind of an item that is a collective; MP_COLLECTIVE_KINDS: it is none.
uint32_t mp_chip_order_kind(const mp_chip_ordering_t *o, uint32_t item);
// Of the largest group.
uint32_t mp_chip_order_num_members(const mp_collective_t *collective);
double mp_chip_order_result_bytes(const mp_collective_t *collective);

// ---- chip_rings.c ----

// Finds the matmuls that become rings with collectives, and how all other collectives that could
// have been decomposed are done.
MP_NODISCARD mp_status_t mp_chip_order_attach(mp_chip_ordering_t *o);

// ---- chip_order_graph.c ----

// Whether it is of so few bytes that the chip's compiler lets nothing go on beside it.
bool mp_chip_order_is_too_small(const mp_chip_ordering_t *o, const mp_collective_t *collective);
// What of a collective may go on beside work at the most.
mp_overlap_t mp_chip_order_overlap(const mp_chip_ordering_t *o, const mp_collective_t *collective);
// Finds the items of a block, in the order of the program, and the edges between them.
MP_NODISCARD mp_status_t mp_chip_order_find_graph(mp_chip_ordering_t *o, const mp_block_t *block);

// ---- chip_order_rounds.c ----

// Takes the edges away that a loop has no need of when collectives, or copies from the host, are
// done in the round before or behind. Of no loop: nothing.
MP_NODISCARD mp_status_t mp_chip_order_pipeline(mp_chip_ordering_t *o, const mp_block_t *block);

// ---- chip_order_joined.c ----

// Makes all_reduces of the collectives that the chip's compiler does on whole arrays.
MP_NODISCARD mp_status_t mp_chip_order_sum_whole_arrays(mp_chip_ordering_t *o);
// Makes one of several collectives, up to so many bytes as the chip's compiler does (`leaders`).
MP_NODISCARD mp_status_t mp_chip_order_combine(mp_chip_ordering_t *o);

#endif  // MINIPOD_SIM_CHIP_CHIP_ORDER_IMPL_H_
