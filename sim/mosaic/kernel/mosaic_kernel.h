// The kernel of a `tpu_custom_call`.
#ifndef MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_KERNEL_H_
#define MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_KERNEL_H_

#include "sim/kernels/kernel.h"
#include "sim/mosaic/ir/mosaic_ir.h"

// The calls that are to run, and not only to be described, get a target of their own.
#define MP_MOSAIC_TARGET        "tpu_custom_call"
#define MP_MOSAIC_KERNEL_TARGET "minipod.mosaic"
// Gives main's calls of MP_MOSAIC_TARGET this target.
MP_NODISCARD mp_status_t mp_mosaic_claim_calls(mp_module_t *module);
// Whether the op is a custom_call with this target, of which mp_mosaic_make_kernel makes the
// kernel.
bool mp_mosaic_is_call(const mp_op_t *op);

// For what kernels are made.
typedef struct {
  bool checks;  // runs are checked (../check/)
  // Bytes of a core's VMEM and SMEM; 0: not known, those of the largest TPU.
  int64_t vmem, smem;
  int64_t scoped_vmem;  // bytes of VMEM for kernels that ask for none; 0: all
  int32_t cores;        // that share the parallel steps of a kernel; 0 or 1: one
  bool has_f4;          // its compiler accepts floats of 4 bits, as for 7x, and not e4m3b11fnuz
} mp_mosaic_target_t;

// Reads the call's module, and compiles it. A kernel maker but for the target.
MP_NODISCARD mp_status_t mp_mosaic_make_kernel(mp_arena_t *arena, const mp_op_t *op,
                                               const mp_mosaic_target_t *target,
                                               const mp_kernel_t **out_kernel);

// The same, of a verified module, which may be released afterwards. `vmem_limit`:
// the bytes of VMEM that the kernel asks for; 0: none.
MP_NODISCARD mp_status_t mp_mosaic_make_kernel_of(mp_arena_t *arena, const mp_op_t *op,
                                                  const mp_mosaic_module_t *module,
                                                  const mp_mosaic_target_t *target,
                                                  int64_t vmem_limit,
                                                  const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_MOSAIC_KERNEL_MOSAIC_KERNEL_H_
