// Shared by the files that order a block.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_IMPL_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_IMPL_H_

#include "sim/chip/schedule/chip_order.h"
#include "sim/chip/schedule/edges.h"

typedef struct {
  mp_communication_t *c;
  mp_arena_t *arena;               // released with the ordering
  MP_ARRAY(mp_chip_item_t) items;  // in the scratch of `c`: slots point to them
  MP_ARRAY(mp_edge_t) edges;       // dependencies between items, sorted by `to`
} mp_chip_ordering_t;

#define ORDER_NONE UINT32_MAX

// ---- chip_order_items.c ----

// The collective of an item; NULL: the item is not a collective.
mp_chip_collective_t *mp_chip_order_collective(const mp_chip_ordering_t *o, uint32_t item);
// Its kind; MP_COLLECTIVE_KINDS: the item is not a collective.
uint32_t mp_chip_order_kind(const mp_chip_ordering_t *o, uint32_t item);
// The members of the largest group.
uint32_t mp_chip_order_num_members(const mp_collective_t *collective);
// The bytes of all results.
double mp_chip_order_result_bytes(const mp_collective_t *collective);
// Whether the collective has so few bytes that the chip's compiler does not overlap it.
bool mp_chip_order_is_too_small(const mp_chip_ordering_t *o, const mp_collective_t *collective);
// How far the collective may overlap with compute.
mp_overlap_t mp_chip_order_overlap(const mp_chip_ordering_t *o, const mp_collective_t *collective);
// The seconds of the fusion that runs at the place of an op, without copies; 0 if there is none.
double mp_chip_order_kernel_seconds(const mp_chip_ordering_t *o, const mp_op_t *op,
                                    mp_ring_matmul_t ring);

// ---- chip_order_graph.c ----

// Finds the items of a block, in the order of the program, and their dependencies. Sends, receives,
// commands and control flow with communication keep their order.
MP_NODISCARD mp_status_t mp_chip_order_find_graph(mp_chip_ordering_t *o, const mp_block_t *block);

// ---- chip_order_pipeline.c ----

// Removes the dependencies of collectives and host copies that run one iteration early or late.
// Does nothing outside of loops.
MP_NODISCARD mp_status_t mp_chip_order_pipeline(mp_chip_ordering_t *o, const mp_block_t *block);

// ---- chip_order_rings.c ----

// Finds the collective matmuls, and whether the other collectives that could have been decomposed
// are sync or async.
MP_NODISCARD mp_status_t mp_chip_order_decompose(mp_chip_ordering_t *o);

// ---- chip_order_ring.c ----

// A matmul, and the items of the collectives that could be its ring; ORDER_NONE: none.
typedef struct {
  uint32_t matmul, gathers[2], scatter;
  uint8_t rings;  // as mp_op_rings_t
} mp_chip_ring_choice_t;

// The item that XLA's partitioner chooses for the ring; ORDER_NONE: none.
uint32_t mp_chip_order_choose_ring(const mp_chip_ordering_t *o,
                                   const mp_chip_ring_choice_t *choice);
// Whether the matmul is faster as a ring with the collective of the item.
bool mp_chip_order_ring_is_faster(const mp_chip_ordering_t *o, uint32_t matmul, uint32_t item);

// ---- chip_order_combine.c ----

// Replaces reduce_scatters and all_gathers by all_reduces of whole arrays, as the chip's compiler
// does.
MP_NODISCARD mp_status_t mp_chip_order_sum_whole_arrays(mp_chip_ordering_t *o);
// Combines collectives, up to the number of bytes at which the chip's compiler stops.
MP_NODISCARD mp_status_t mp_chip_order_combine(mp_chip_ordering_t *o);

// ---- chip_order_lost.c ----

// The seconds by which the collective that ends at the slot `end` slows down the work that overlaps
// with it: on a GPU it takes multiprocessors.
double mp_chip_order_lost_seconds(const mp_chip_figures_t *figures, const mp_chip_order_t *order,
                                  uint32_t end);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_IMPL_H_
