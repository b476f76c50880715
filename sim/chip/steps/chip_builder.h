// Shared by the files that make steps.
#ifndef MINIPOD_SIM_CHIP_STEPS_CHIP_BUILDER_H_
#define MINIPOD_SIM_CHIP_STEPS_CHIP_BUILDER_H_

#include "sim/base/containers/array.h"
#include "sim/base/containers/hash_map.h"
#include "sim/chip/schedule/chip_order.h"
#include "sim/chip/steps/chip_steps.h"

// The uses of a value.
typedef struct {
  uint64_t hash;  // mp_hash_pointer of the value
  uint32_t last;  // the last op that reads it: its position in the order of mp_block_walk
  const mp_block_t *copied_in;  // the block that has copied it for a matmul; NULL: none
  uint32_t held;                // the number of that copy in `held`
} mp_chip_uses_t;

typedef struct {
  mp_communication_t *c;             // with the program, its fusions and the chip
  uint32_t position;                 // of the next op in the walk that finds uses
  MP_HASH_MAP(mp_chip_uses_t) uses;  // in scratch; of values that are not aliases
  MP_ARRAY(mp_chip_kernel_t) kernels;
  MP_ARRAY(mp_chip_step_t) steps;
  MP_ARRAY(bool) slots;  // of host copies: which are in use
  uint32_t num_started, most_started;
  uint32_t num_controls;
  bool has_choices;
  bool is_in_part;                       // the current block belongs to a LOCAL step
  bool must_begin;                       // the next kernel begins a step, as a jump targets it
  uint32_t *copied;                      // [layout copies], in scratch: its number in `held`
  MP_ARRAY(mp_memory_copy_t) held;       // in scratch: copies in other layouts
  MP_ARRAY(mp_chip_kernel_t) by_values;  // in scratch: those whose time depends on values
} mp_chip_builder_t;

// ---- chip_builder.c ----

// Appends a step.
MP_NODISCARD mp_status_t mp_chip_add_step(mp_chip_builder_t *b, const mp_chip_step_t *step);
// Appends a kernel to the last step, or to a new step.
MP_NODISCARD mp_status_t mp_chip_put_kernel(mp_chip_builder_t *b, const mp_chip_kernel_t *kernel);
// Adds a kernel that only moves bytes.
MP_NODISCARD mp_status_t mp_chip_add_copy(mp_chip_builder_t *b, const mp_op_t *op, double bytes);
// Adds a copy of a value from VMEM to VMEM.
MP_NODISCARD mp_status_t mp_chip_add_vmem_copy(mp_chip_builder_t *b, const mp_op_t *op,
                                               const mp_value_t *value);
// Adds a kernel that computes scalars.
MP_NODISCARD mp_status_t mp_chip_add_scalar(mp_chip_builder_t *b, const mp_op_t *op);

// ---- chip_blocks.c ----

// Adds the steps of a block. With a network, and if the block has collectives or host copies, they
// are in the order of the scheduler, else in that of the program.
MP_NODISCARD mp_status_t mp_chip_add_block(mp_chip_builder_t *b, const mp_block_t *block);

// ---- chip_flow.c ----

// Adds the steps of a loop or branch.
MP_NODISCARD mp_status_t mp_chip_add_control(mp_chip_builder_t *b, const mp_op_t *op);

// Adds a kernel of `by_values` that is at the place of an op, if there is one: a LOCAL step.
MP_NODISCARD mp_status_t mp_chip_add_by_values(mp_chip_builder_t *b, const mp_op_t *op);

// ---- chip_kernels.c ----

// Adds the kernel of the fusion that runs at the place of an op, if there is one, and the copies of
// its operands. `ring`: of a collective matmul.
MP_NODISCARD mp_status_t mp_chip_add_kernel(mp_chip_builder_t *b, const mp_op_t *op,
                                            const mp_ring_matmul_t *ring);

// ---- chip_copies.c: copies of values whose buffer another value takes over ----

// Finds the uses of all values.
MP_NODISCARD mp_status_t mp_chip_find_uses(mp_chip_builder_t *b);
// The bytes that an op copies before it updates its operands in place.
double mp_chip_bytes_kept(const mp_chip_builder_t *b, const mp_op_t *op);
// Add copies: of initial values before a loop, of carried values at the end of each iteration, of
// the results of a branch's region, and of main's results.
MP_NODISCARD mp_status_t mp_chip_copy_starts(mp_chip_builder_t *b, const mp_op_t *loop);
MP_NODISCARD mp_status_t mp_chip_copy_carried(mp_chip_builder_t *b, const mp_op_t *loop);
MP_NODISCARD mp_status_t mp_chip_copy_chosen(mp_chip_builder_t *b, const mp_block_t *region);
MP_NODISCARD mp_status_t mp_chip_copy_results(mp_chip_builder_t *b);

// ---- chip_rounds.c ----

// Adds the copy of carried value `i` in each iteration, if a kernel still reads the value while it
// writes the next one.
MP_NODISCARD mp_status_t mp_chip_copy_held(mp_chip_builder_t *b, const mp_op_t *loop, uint32_t i);

// ---- chip_tiles.c ----

// Notes for the memory plan that an op reads a copy of a value. `number` in `held`: UINT32_MAX
// before the first reader. 0 bytes: it is no temporary.
MP_NODISCARD mp_status_t mp_chip_hold_copy(mp_chip_builder_t *b, const mp_value_t *value,
                                           double bytes, const mp_op_t *op, uint32_t *number);

// Adds the layout copies of an op's operands, unless an earlier op has added them. `at`: the op at
// whose place the op's kernel runs.
MP_NODISCARD mp_status_t mp_chip_add_layout_copies(mp_chip_builder_t *b, const mp_op_t *op,
                                                   const mp_op_t *at);

// ---- chip_complex.c ----

// The additional bytes of an op that is the first reader of main's complex arguments.
double mp_chip_bytes_split(const mp_chip_builder_t *b, const mp_op_t *op);

// ---- chip_gemm_operands.c ----

// Add kernels for the operands of a GPU library's matmul: copies of operands whose matrices are not
// contiguous, and copies with padding to the sizes that the library requires.
MP_NODISCARD mp_status_t mp_chip_copy_gemm_operands(mp_chip_builder_t *b, const mp_op_t *op);
MP_NODISCARD mp_status_t mp_chip_pad_gemm_operands(mp_chip_builder_t *b, const mp_op_t *op);

#endif  // MINIPOD_SIM_CHIP_STEPS_CHIP_BUILDER_H_
