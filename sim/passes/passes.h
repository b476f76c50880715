// Passes: rewrites of a verified module that keep its meaning. Each is one function, one file; the
// largest one, desugaring, is a room (sim/passes/desugar/desugar.h).
//
// All work in place on a module whose functions were verified, allocate in its arena, and leave it
// verifiable. Not thread-safe on one module.
#ifndef MINIPOD_SIM_PASSES_PASSES_H_
#define MINIPOD_SIM_PASSES_PASSES_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// The sequence of passes before partitioning, for every program: inline, desugar, open layouts,
// dead code.
MP_NODISCARD mp_status_t mp_passes_prepare(mp_module_t *module);
// The sequence after partitioning, before planning.
MP_NODISCARD mp_status_t mp_passes_finish(mp_module_t *module);

// Replaces calls, composites (by their decomposition) and sdy.named_computation by the bodies, so
// that `main` is the only function left; the user's kernels (MP_KERNEL_TARGET) stay one op each.
// RESOURCE_EXHAUSTED when the result would be absurdly large (functions that call each other twice,
// thirty levels deep).
MP_NODISCARD mp_status_t mp_pass_inline(mp_module_t *module);

// Gives results with the layout "auto" a concrete one if it saves a transpose, or if the program
// requests one; mp_pass_layouts and the executable then use it. Before partitioning.
MP_NODISCARD mp_status_t mp_pass_open_layouts(mp_module_t *module);

// Removes loop-carried values that the loop does not change: the loop's regions, and the ops after
// it, use the start values. After partitioning.
MP_NODISCARD mp_status_t mp_pass_loop_values(mp_module_t *module);
// The same before partitioning, as XLA does it before Shardy's passes: a value that one loop
// computes and another reads gets one sharding instead of one for each. Parameters of main are
// still carried, so that a loop may shard them in another way than the client, and so are all
// values of a loop with annotations.
MP_NODISCARD mp_status_t mp_pass_loop_values_early(mp_module_t *module);

// A sort of whose results slices use only the first elements computes no others. After
// partitioning.
MP_NODISCARD mp_status_t mp_pass_sort_first(mp_module_t *module);

// Scatters of one small window in a loop become dynamic_slice, the combination, and
// dynamic_update_slice. After partitioning.
MP_NODISCARD mp_status_t mp_pass_scatter_one(mp_module_t *module);

// A Fourier transform over several dimensions becomes one for each. After partitioning.
MP_NODISCARD mp_status_t mp_pass_transforms(mp_module_t *module);

// Large constants of one repeated element become a scalar constant and a broadcast_in_dim, so that
// the program does not hold their bytes.
MP_NODISCARD mp_status_t mp_pass_splat(mp_module_t *module);

// Transposes of transposes become one, and those that do not change the order of the elements in
// memory become reshapes.
MP_NODISCARD mp_status_t mp_pass_transposes(mp_module_t *module);

// Broadcasts that only add dimensions of size 1 become reshapes. After fusion, which knows chains
// of broadcasts, and not within fused ops.
MP_NODISCARD mp_status_t mp_pass_unit_broadcasts(mp_module_t *module);

// Simplifies: ops that change nothing (convert to the same type, identity transposes) are replaced
// by their operand, chains of reshapes and broadcasts become one, and ops of a block that compute
// the same from the same operands become one.
MP_NODISCARD mp_status_t mp_pass_fold(mp_module_t *module);

// A dot_general of transposed values reads the values before the transposes, and a transposed
// dot_general becomes the dot_general of its swapped operands, if the bits stay the same.
MP_NODISCARD mp_status_t mp_pass_products(mp_module_t *module);

// Parameters and results whose layout is not row-major (mhlo.layout_mode, sim/ir/layout.h) get the
// type of their bytes in memory, with transposes to and from the row-major arrays of the program.
// It works on per-device types, so it runs after partitioning.
MP_NODISCARD mp_status_t mp_pass_layouts(mp_module_t *module);

// Ops without effect whose result has no elements become constants without elements, and reductions
// of dimensions of one element become their op. After partitioning.
MP_NODISCARD mp_status_t mp_pass_trivial(mp_module_t *module);

// Removes the regions of all kernels of the user (mp_op_is_kernel): the rest describes them, and
// computes nothing.
MP_NODISCARD mp_status_t mp_pass_close_kernels(mp_module_t *module);

// Replaces the kernels by the ops of their regions. Their control flow is not followed
// (mp_op_t.control). After partitioning.
MP_NODISCARD mp_status_t mp_pass_open_kernels(mp_module_t *module);

// Placements (mp_op_is_placement) become their operands: this machine has one memory.
MP_NODISCARD mp_status_t mp_pass_drop_placements(mp_module_t *module);

// Finds the values in the memory of the device's host (mp_value_t.is_on_host), and inserts
// placements where a value is needed in the other memory, so that all copies between the two are
// such ops. After partitioning, for the described chip's program.
MP_NODISCARD mp_status_t mp_pass_find_host_values(mp_module_t *module);

// Removes ops without effect whose results are not used.
MP_NODISCARD mp_status_t mp_pass_dead_code(mp_module_t *module);

#endif  // MINIPOD_SIM_PASSES_PASSES_H_
