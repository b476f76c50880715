// The order of a block: its kernels, collectives, host copies, loops and barriers.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_H_

#include "sim/chip/cost/ring_cost.h"
#include "sim/chip/schedule/communication.h"
#include "sim/chip/schedule/schedule.h"

// A unit of the schedule: a kernel, a collective, a host copy, a loop or a branch.
typedef struct {
  const mp_op_t *op;
  uint32_t collective;    // number of the collective; UINT32_MAX: not a collective
  uint32_t copy;          // number of the host copy; UINT32_MAX: not a host copy
  double seconds;         // estimate for the scheduler
  bool is_matmul;         // its kernel is a matmul
  mp_ring_matmul_t ring;  // of a collective matmul
  uint32_t messages;      // of a collective matmul: the item of its collective; else UINT32_MAX
  uint32_t node;  // the item that stands for it in the schedule: itself, or the one it is part of
} mp_chip_item_t;

typedef struct {
  const mp_chip_item_t *item;
  mp_schedule_part_t part;
  double lost;  // DONE of a collective: the seconds by which it slows down compute
} mp_chip_slot_t;

typedef struct {
  uint32_t num_slots;
  mp_chip_slot_t *slots;
} mp_chip_order_t;

// Orders the items of a block, in scratch. Adds the block's collectives and host copies. Needs
// `links`.
MP_NODISCARD mp_status_t mp_chip_order_block(mp_communication_t *c, const mp_block_t *block,
                                             mp_chip_order_t *out_order);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_CHIP_ORDER_H_
