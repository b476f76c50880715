// What the files of this room share.
#ifndef MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_
#define MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_

#include "sim/chip/spaces/spaces.h"

#define MP_SPACES_NONE UINT32_MAX

// A value is live from one kernel to another one, both included. Values that have to be in the same
// memory are one buffer: what a loop carries, and an array with its updates.
typedef struct {
  uint32_t parent;       // another value of its buffer; its own id: it stands for the buffer
  uint32_t next;         // the next value of the buffer; MP_SPACES_NONE: none
  uint32_t first, last;  // kernels; MP_SPACES_NONE and 0: no kernel makes it
  const mp_op_t *flow;   // of a buffer: the latest loop or branch that it is an operand of
  double bytes;          // in tiles
  double gain;           // of a buffer: bytes that kernels do not move if it is in VMEM
  bool is_in_hbm;        // of a buffer: something needs it there
  bool is_in_vmem;       // of a buffer: that was decided
  bool is_held;          // a loop that reads it has a copy
} mp_spaces_value_t;

// A loop or branch, and its kernels [first, end).
typedef struct {
  const mp_op_t *op;
  bool is_loop;
  uint32_t first, end;
  double before;  // bytes that are copied or cast for a loop right before it
} mp_spaces_loop_t;

typedef struct {
  const mp_chip_figures_t *figures;
  const mp_func_t *main;
  mp_arena_t *arena;
  mp_chip_fusions_t *fusions;
  uint32_t num_kernels;  // fusions, those without ops included; the first one has the last number
  double vmem;           // bytes for values of several kernels
  double prefetched;     // bytes for these and prefetched operands
  double *live;          // [kernels]: bytes of VMEM in use
  double *spare;         // [kernels]: bytes that can be copied while a kernel runs
  mp_spaces_value_t *values;         // by value id
  MP_ARRAY(mp_spaces_loop_t) loops;  // and branches, outer ones before inner ones
} mp_spaces_t;

static inline mp_chip_fusion_t *mp_spaces_fusion(const mp_spaces_t *s, uint32_t kernel) {
  return &s->fusions->fusions.items[s->num_kernels - 1 - kernel];
}

// NULL if no kernel of the program accesses an array with elements.
static inline mp_chip_fusion_access_t *mp_spaces_accesses(const mp_spaces_t *s,
                                                          const mp_chip_fusion_t *fusion) {
  mp_chip_fusion_access_t *items = s->fusions->accesses.items;
  return items == NULL ? NULL : items + fusion->first_access;
}

// The kernel at which the results are there.
static inline uint32_t mp_spaces_last(const mp_spaces_loop_t *loop) {
  return loop->end > loop->first ? loop->end - 1 : loop->first;
}

// ---- spaces_values.c ----

// Finds the loops, the live interval of each value, and the buffers.
MP_NODISCARD mp_status_t mp_spaces_find_values(mp_spaces_t *s);
// The value that stands for the buffer of a value.
mp_spaces_value_t *mp_spaces_buffer(const mp_spaces_t *s, const mp_value_t *value);
// The value whose bytes a value has: the operand of transposes, and a loop's value in its
// condition.
const mp_value_t *mp_spaces_origin(const mp_value_t *value);
// The block in which a value is made.
static inline const mp_block_t *mp_spaces_made_in(const mp_value_t *value) {
  return value->op != NULL ? value->op->parent : value->block;
}
// Whether SparseCores run a fusion, which read and write HBM.
bool mp_spaces_is_table(const mp_spaces_t *s, const mp_chip_fusion_t *fusion);
// The array that a value is an update of in place; NULL: it is none.
const mp_value_t *mp_spaces_updated(const mp_spaces_t *s, const mp_value_t *value);
// Whether a block is a loop's body or condition, or inside of one.
bool mp_spaces_is_in(const mp_block_t *block, const mp_op_t *loop);

// ---- spaces_allocate.c ----

// Whether so many bytes fit from one kernel to another one if VMEM has `most`.
bool mp_spaces_fits(const mp_spaces_t *s, uint32_t first, uint32_t last, double bytes, double most);
// The same; then they are there.
bool mp_spaces_take(mp_spaces_t *s, uint32_t first, uint32_t last, double bytes, double most);
// Uses the time of the kernels before `until`, the latest ones first, to copy so many bytes.
void mp_spaces_copy(mp_spaces_t *s, uint32_t until, double bytes);
// Decides which buffers are in VMEM, and which values during a loop.
MP_NODISCARD mp_status_t mp_spaces_allocate(mp_spaces_t *s);

// ---- spaces_prefetch.c ----

// The matmul operand among the arguments that is prefetched across programs.
void mp_spaces_prefetch_argument(mp_spaces_t *s);
// The operands of the kernel's matmul that are prefetched while earlier kernels run.
void mp_spaces_prefetch_operands(mp_spaces_t *s, uint32_t kernel);

#endif  // MINIPOD_SIM_CHIP_SPACES_SPACES_IMPL_H_
