// The memory of a chip program: how much of the described chip's memory a program needs.
//
// Only values that kernels write have a place in it, not those inside of a fusion or that readers
// recompute. A value lives from the kernel that makes it to the last one that reads it, in the
// order of the program. Values that live at different times may have the same place. Values on the
// host (mp_value_t.is_on_host) have a plan of their own by the same rules. README.md has the rules.
#ifndef MINIPOD_SIM_CHIP_MEMORY_CHIP_MEMORY_H_
#define MINIPOD_SIM_CHIP_MEMORY_CHIP_MEMORY_H_

#include "sim/base/arena.h"
#include "sim/base/status.h"
#include "sim/chip/fuse/chip_fusion.h"
#include "sim/plan/program.h"
#include "topology/figures/figures.h"

// A piece of memory for a value, or for several values one after the other.
typedef struct {
  const mp_value_t *value;  // the last one; NULL: the workspace of matmuls
  uint64_t bytes;
  uint32_t first, last;  // positions of ops, both included
  uint64_t offset;       // among the temporaries
} mp_memory_place_t;

// A collective matmul (`../schedule/chip_order_rings.c`).
typedef struct {
  const mp_op_t *matmul;      // the last op of its fusion
  const mp_op_t *collective;  // gathers an operand, or reduces and scatters the result
  bool adds;                  // each part of the operand adds to the whole result
  bool is_last;               // all other readers of the gathered array are rings, too
} mp_memory_ring_t;

// A copy of a value in another layout or type, from the first op that reads it to the last one.
typedef struct {
  const mp_value_t *value;
  uint64_t bytes;  // 0: it is in VMEM, or in the place of another value
  const mp_op_t *first, *last;
} mp_memory_copy_t;

// Arrays that kernels need besides the values of the program.
typedef struct {
  uint32_t num_rings, num_copies;
  const mp_memory_ring_t *rings;
  const mp_memory_copy_t *copies;
} mp_memory_extras_t;

// Bytes in one memory: a device's own, or its host's. Results take over `aliased` bytes of the
// arguments.
typedef struct {
  uint64_t arguments, results, aliased;
  uint64_t temporaries;
  uint32_t num_places;
  const mp_memory_place_t *places;  // temporaries at the peak, the largest first
} mp_chip_space_t;

typedef struct {
  mp_chip_space_t device, host;
} mp_chip_memory_t;

enum { MP_MEMORY_MOST_PLACES = 256 };  // that a plan keeps

// Plans the memory of the partitioned program, with the places in `arena`. Numbers its ops and
// values. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_chip_memory_plan(const mp_chip_figures_t *figures,
                                             const mp_chip_fusions_t *fusions,
                                             const mp_program_t *program,
                                             const mp_memory_extras_t *extras, mp_arena_t *arena,
                                             mp_chip_memory_t *out_memory);

// The bytes that are needed of a memory at once: arguments, results and temporaries.
uint64_t mp_chip_space_total(const mp_chip_space_t *space);

// RESOURCE_EXHAUSTED if the program needs more than `capacity` bytes of a device's memory, with the
// table of what is live at the peak.
MP_NODISCARD mp_status_t mp_chip_memory_check(const mp_chip_memory_t *memory,
                                              const mp_program_t *program, uint64_t capacity);
// The same for its host's memory.
MP_NODISCARD mp_status_t mp_chip_memory_check_host(const mp_chip_memory_t *memory,
                                                   const mp_program_t *program, uint64_t capacity);

// The bytes of an argument or result of this type in the chip's memory: on a TPU those of tiles in
// the compact layout.
uint64_t mp_memory_bytes(const mp_chip_figures_t *figures, const mp_type_t *type);

#endif  // MINIPOD_SIM_CHIP_MEMORY_CHIP_MEMORY_H_
