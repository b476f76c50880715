// Making a kernel; private to this folder.
#ifndef MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_MAKER_H_
#define MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_MAKER_H_

#include "sim/mosaic/compile/mosaic_compiler.h"
#include "sim/mosaic/kernel/mosaic_grid.h"
#include "sim/mosaic/kernel/mosaic_kernel.h"

typedef struct {
  mp_arena_t *arena;
  const mp_op_t *call;  // the custom_call
  const mp_mosaic_func_t *func;
  mp_mosaic_compiler_t *compiler;
  mp_mosaic_kernel_t *kernel;
  mp_mosaic_state_t *state;  // runs functions of indices, once the program is made
  const mp_mosaic_target_t *target;
  int64_t vmem_limit;  // 0: not set
  uint32_t num_dynamic, num_prefetched, num_scratch;
} mp_mosaic_maker_t;

// Makes the windows and locals, of the compiled function.
MP_NODISCARD mp_status_t mp_mosaic_make_windows(mp_mosaic_maker_t *maker);
// An error about the function.
MP_NODISCARD MP_PRINTF(2, 3) mp_status_t
    mp_mosaic_maker_error(const mp_mosaic_maker_t *maker, const char *format, ...);
// Whether a TPU's compiler accepts the sizes of blocks: INVALID_ARGUMENT.
MP_NODISCARD mp_status_t mp_mosaic_make_shapes(const mp_mosaic_maker_t *maker);
// Whether it accepts the element types of ops: UNIMPLEMENTED.
MP_NODISCARD mp_status_t mp_mosaic_make_types(const mp_mosaic_maker_t *maker);
// The same of an op's scalars.
MP_NODISCARD mp_status_t mp_mosaic_make_scalars(const mp_mosaic_maker_t *maker,
                                                const mp_mosaic_op_t *op);
// Whether it accepts an op's strides: UNIMPLEMENTED.
MP_NODISCARD mp_status_t mp_mosaic_make_strides(const mp_mosaic_maker_t *maker,
                                                const mp_mosaic_op_t *op);
// Names the arguments for checks.
MP_NODISCARD mp_status_t mp_mosaic_make_names(mp_mosaic_maker_t *maker);
// Decides which results are unset before the kernel, or block by block.
MP_NODISCARD mp_status_t mp_mosaic_make_fills(mp_mosaic_maker_t *maker);
// Whether VMEM and SMEM suffice: RESOURCE_EXHAUSTED.
MP_NODISCARD mp_status_t mp_mosaic_make_capacity(const mp_mosaic_maker_t *maker);
// Decides how the grid is divided into parts.
MP_NODISCARD mp_status_t mp_mosaic_make_parts(mp_mosaic_maker_t *maker);

// ---- mosaic_talk.c ----

// Makes the kernel one that communicates (sim/kernels/talk.h).
MP_NODISCARD mp_status_t mp_mosaic_make_talk(const mp_mosaic_maker_t *maker);

// ---- mosaic_make_index.c ----

// Whether an index depends on memory, or on a dynamic bound of the grid. Others can be computed
// when the kernel is made, with its bounds.
bool mp_mosaic_reads_memory(const mp_mosaic_kernel_t *kernel, const mp_mosaic_entry_t *entry);
// Whether a window's index changes with a dimension of the grid, at its beginning.
MP_NODISCARD mp_status_t mp_mosaic_index_changes(const mp_mosaic_maker_t *maker,
                                                 const mp_mosaic_window_t *window, uint32_t d,
                                                 bool *out_changes);

#endif  // MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_MAKER_H_
