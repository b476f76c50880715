// The collectives and host copies of a chip program, and the network that they use.
#ifndef MINIPOD_SIM_CHIP_SCHEDULE_COMMUNICATION_H_
#define MINIPOD_SIM_CHIP_SCHEDULE_COMMUNICATION_H_

#include "sim/base/containers/array.h"
#include "sim/chip/cost/chip.h"
#include "sim/chip/fuse/chip_fusion.h"
#include "sim/chip/memory/chip_memory.h"
#include "sim/chip/schedule/overlap.h"
#include "sim/plan/plan.h"

typedef struct {
  const mp_op_t *op;
  // The ops that the chip's compiler combines into this collective, `op` first; 0: only `op`.
  uint32_t num_ops;
  const mp_op_t *const *ops;
  const char *name;  // "all_reduce"; borrowed
  const mp_collective_t *collective;
  mp_overlap_t overlap;  // SYNC: devices wait for it at once; else they start it and wait later
} mp_chip_collective_t;

// A host copy: between the device and its host's memory. Each direction has a stream.
typedef struct {
  const mp_op_t *op;  // the placement (mp_op_crosses)
  bool is_to_host, is_async;
  double bytes;
  double seconds;  // 0: the host's link is not described
  uint32_t slot;   // copies that a device has started at the same time have different slots
} mp_chip_copy_t;

// The chips of a group in a slice.
typedef struct {
  uint32_t num_chips;  // fewer than members if several members are cores of one chip
  uint32_t num_dims;   // dimensions of the box that the chips fill; 1 if they fill no box
} mp_chip_spread_t;

// The network of the chip, for decisions of its compiler.
typedef struct {
  // Estimates the seconds of a collective that has its links for itself.
  mp_status_t (*seconds)(void *context, const mp_collective_t *collective, double *out_seconds);
  // Where the members of the collective's first group are.
  mp_chip_spread_t (*spread)(void *context, const mp_collective_t *collective);
  void *context;
  double bandwidth;  // bytes/s of a link of the chip, in one direction; 0: not described
  // The link to the host while all chips of the host copy: seconds before the first byte, and
  // bytes/s in one direction (0: host copies take no time).
  double host_latency, host_bandwidth;
} mp_chip_links_t;

// What the order of a program's blocks is made from, and the communication found so far.
typedef struct {
  const mp_chip_t *chip;
  const mp_chip_links_t *links;  // NULL: no collective overlaps with compute
  const mp_program_t *program;   // its ops have their positions in `id`
  const mp_chip_fusions_t *fusions;
  mp_arena_t *arena, *scratch;
  MP_ARRAY(mp_chip_collective_t) collectives;
  mp_plan_groups_t groups;  // of the collectives
  MP_ARRAY(mp_chip_copy_t) copies;
  MP_ARRAY(mp_memory_ring_t) rings;  // in scratch: the collective matmuls
  // [positions], in scratch: the item that produces an op's results, numbered within its block;
  // UINT32_MAX: no item does
  uint32_t *items;
} mp_communication_t;

// Starts the communication of a program with `num_positions` ops.
MP_NODISCARD mp_status_t mp_communication_start(mp_communication_t *c, uint32_t num_positions);

// Adds a collective; SYNC.
MP_NODISCARD mp_status_t mp_communication_add(mp_communication_t *c, const mp_op_t *op,
                                              uint32_t *out_number);
// Adds a host copy.
MP_NODISCARD mp_status_t mp_communication_add_copy(mp_communication_t *c, const mp_op_t *op,
                                                   uint32_t *out_number);

// Whether an op is a collective or a host copy, or has one in its regions.
bool mp_communication_is_in(const mp_op_t *op);

// How many collectives may run at a time.
uint32_t mp_communication_num_tracks(const mp_chip_t *chip);

#endif  // MINIPOD_SIM_CHIP_SCHEDULE_COMMUNICATION_H_
