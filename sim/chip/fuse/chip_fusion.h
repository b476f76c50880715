// Fusions: ops that the described chip's compiler would put into one kernel, and the arrays that
// this kernel reads and writes. README.md has the rules. Private to sim/chip.
#ifndef MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_H_
#define MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_H_

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/chip/layout/layout_assign.h"
#include "sim/work/work.h"
#include "topology/figures/figures.h"

#define MP_CHIP_FUSION_NONE UINT32_MAX

// A `ragged_dot`, in which each group of rows has an operand of its own. JAX writes it for any
// backend as a matmul of all rows by each group's matrix, masked, and added up.
typedef struct {
  double groups;     // 0: not a ragged_dot
  bool is_gradient;  // each group has a result of its own, and its rows are contracted
  uint32_t side;     // of the operand whose rows have groups
  double masked[2];  // elements of each masked operand, with all rows for each group
} mp_ragged_t;

typedef struct {
  // The last of its ops in the program. The fusion runs at its place: its inputs exist there, and
  // its outputs are read only later.
  const mp_op_t *last;
  const mp_op_t *hero;  // the matmul, reduction, window or update in it; else the last op
  const mp_block_t *block;
  mp_work_t work;          // of all its ops
  mp_work_matmul_t inner;  // a matmul that makes an operand of its matmul; batch 0: none
  mp_ragged_t ragged;      // on TPUs
  bool has_hero;           // the hero is not just the last op
  bool is_rows;            // keeps whole rows on chip: a softmax in one pass
  double count;            // elements that the kernel iterates over
  // Bytes that it reads and writes in HBM and in VMEM, set when spaces are assigned (spaces.h).
  double bytes, vmem_bytes;
  uint32_t first_member;                         // in `members`
  uint32_t first_access, num_reads, num_writes;  // in `accesses`: reads, then writes
} mp_chip_fusion_t;

// Into which operand of its fusion's matmul an op or array goes: the left or right one, one of the
// inner matmul's, or none (BESIDE), like all of an epilogue. In a fusion without a matmul
// everything is BESIDE.
typedef enum {
  MP_CHIP_FUSION_LHS = 1,
  MP_CHIP_FUSION_RHS = 2,
  MP_CHIP_FUSION_BESIDE = 4,
  MP_CHIP_FUSION_INNER_LHS = 8,
  MP_CHIP_FUSION_INNER_RHS = 16,
} mp_chip_fusion_side_t;

typedef struct {
  const mp_op_t *op;
  bool is_epilogue;  // runs once per element that the kernel iterates over, and is not a matmul
  uint8_t sides;     // mp_chip_fusion_side_t: the operands that its result goes into
  float share;       // of its elements that the fusion computes: less where a part is cut out
  uint32_t next;     // the next member of its fusion; MP_CHIP_FUSION_NONE at its end
} mp_chip_fusion_member_t;

// Where an array is while a kernel runs.
typedef enum {
  MP_SPACE_HBM,
  MP_SPACE_VMEM,
  MP_SPACE_PREFETCHED,  // copied from HBM into VMEM while earlier kernels ran
} mp_space_t;

typedef struct {
  const mp_value_t *value;
  double bytes;      // on the chip, with the padding of tiles
  mp_space_t space;  // set when spaces are assigned
  uint8_t sides;     // of a read: mp_chip_fusion_side_t
  uint32_t copy;     // of a read: the layout copy that is read instead, or MP_LAYOUT_NONE
} mp_chip_fusion_access_t;

// A copy of an array into VMEM before a loop that reads it in each iteration, or of operands of
// matmuls in the type in which these need them.
typedef struct {
  const mp_op_t *loop;
  const mp_value_t *value;
  double bytes;  // that it reads and writes in HBM; 0: it is an earlier copy of the value
  double held;   // bytes of HBM that it needs until the loop ends; 0: it is in VMEM
} mp_loop_copy_t;

typedef struct {
  uint64_t hash;  // mp_hash_pointer of the op
  uint32_t fusion;
} mp_chip_fusion_entry_t;

typedef struct {
  // Fusions without members were merged into another one.
  MP_ARRAY(mp_chip_fusion_t) fusions;
  MP_ARRAY(mp_chip_fusion_member_t)
  members;  // an op that several fusions compute is in each of them
  MP_ARRAY(mp_chip_fusion_access_t) accesses;
  MP_HASH_MAP(mp_chip_fusion_entry_t) by_last;
  uint32_t num_values;   // of the module
  mp_layouts_t layouts;  // of arrays on TPUs; empty for other chips
  // Set when spaces are assigned:
  const bool *is_in_vmem;  // by value id: from its kernel to its last reader; NULL: none is
  MP_ARRAY(mp_loop_copy_t) loop_copies;
} mp_chip_fusions_t;

// The fusion pass of the chip's compiler, over main and its control flow. `fusions` has
// `num_values`, on TPUs `layouts`, and nothing else yet. All accesses are in HBM. Allocates
// everything in `arena`. The only error is that memory is short.
MP_NODISCARD mp_status_t mp_chip_fusions_find(const mp_module_t *module,
                                              const mp_chip_figures_t *figures, mp_arena_t *arena,
                                              mp_chip_fusions_t *fusions);

// The fusion that runs at the place of an op; NULL if there is none.
const mp_chip_fusion_t *mp_chip_fusion_at(const mp_chip_fusions_t *fusions, const mp_op_t *op);

// The reads of a fusion, then its writes. NULL if there are none, as when no array has elements.
const mp_chip_fusion_access_t *mp_chip_fusion_accesses(const mp_chip_fusions_t *fusions,
                                                       const mp_chip_fusion_t *fusion);

// An iterator over the members of a fusion: `member` is NULL before the first. False: none is left.
static inline bool mp_chip_fusion_visit(const mp_chip_fusions_t *fusions,
                                        const mp_chip_fusion_t *fusion,
                                        const mp_chip_fusion_member_t **member) {
  const uint32_t next = *member == NULL ? fusion->first_member : (*member)->next;
  *member = next == MP_CHIP_FUSION_NONE ? NULL : &fusions->members.items[next];
  return *member != NULL;
}

// Whether a fusion is of transposes alone: on a TPU they move nothing, since layouts are copied
// where they differ.
bool mp_chip_fusion_moves_nothing(const mp_chip_fusions_t *fusions, const mp_chip_fusion_t *fusion);

#endif  // MINIPOD_SIM_CHIP_FUSE_CHIP_FUSION_H_
