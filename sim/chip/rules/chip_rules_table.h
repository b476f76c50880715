// The table of rules, and that of passes: name, compiler, pass, and one sentence in XLA's terms.
#ifndef MINIPOD_SIM_CHIP_RULES_CHIP_RULES_TABLE_H_
#define MINIPOD_SIM_CHIP_RULES_CHIP_RULES_TABLE_H_

// clang-format off
#define MP_CHIP_FUSE_RULES(X) \
  X(chains, "tpu", "fuse", "a matmul that produces an operand of one other matmul is fused into it") \
  X(softmax_rows, "tpu", "fuse", "a reduction of rows with a result of two dimensions or more is fused with the ops that read them again") \
  X(transposed_rows, "gpu", "fuse", "rows of a transposed matmul result do not stay on chip") \
  X(rows_close, "gpu", "fuse", "a reduction of rows is fused with the ops that read them again, or that keep them") \
  X(code_size, "gpu", "fuse", "an op is emitted at most eight times in a kernel") \
  X(update_source, "gpu", "fuse", "a slice of an updated array is computed before the update") \
  X(several_slices, "tpu", "fuse", "a value that a kernel reads through several slices is written, not recomputed") \
  X(kept_gate, "tpu", "fuse", "an expensive elementwise result of three matmuls is written, not recomputed") \
  X(kept_preactivation, "tpu", "fuse", "elementwise results of matmuls are recomputed; only the pre-activation is stored") \
  X(shifted_exp, "tpu", "fuse", "the exponential of rows minus their maximum is written, not recomputed") \
  X(softmax_after_matmul, "tpu", "fuse", "the softmax of rows in f32 is fused with the matmul that makes them") \
  X(mixed_rows, "tpu", "fuse", "no softmax joins a matmul with heads of 128 or more, unless its rows are short") \
  X(lone_movement, "tpu", "fuse", "reversals and strided slices are kernels of their own") \
  X(loop_constants, "tpu", "fuse", "constant initial values of loops are not stored") \
  X(scatter_selection, "tpu", "fuse", "a scatter of one element per line of a constant is a comparison per element") \
  X(concat_parts, "tpu", "fuse", "other kernels write the operands of pads, and of concatenations in their tiles; lone slices are read in place")

#define MP_CHIP_SPACE_RULES(X) \
  X(cast_before_loop, "tpu", "spaces", "f32 operands of matmuls in loops are cast before the loop")

#define MP_CHIP_LAYOUT_RULES(X) \
  X(complex_split, "tpu", "layout", "complex arguments are split into real and imaginary parts") \
  X(gemm_operand_copy, "gpu", "layout", "operands whose matrices are not contiguous are copied for the library")

#define MP_CHIP_COST_RULES(X) \
  X(sparse_core, "tpu", "cost", "large lookups of rows run on SparseCores") \
  X(expanded_ops, "gpu", "cost", \
    "random bits and select_and_scatter are several kernels with arrays in HBM between them") \
  X(window_in_vmem, "tpu", "cost", "reduce_window is ten times as fast over operands in VMEM") \
  X(matmul_row_sums, "tpu", "cost", \
    "sums of at least as many rows as they have elements put the rows of a matmul into lanes, with layout changes") \
  X(matvec_reduction, "both", "cost", \
    "a matmul by a vector is a reduction outside of the matmul unit; on TPUs not in a batch of matrices of 64 x 64 or more") \
  X(matmul_k_limit, "tpu", "cost", \
    "windows have at most 2,048 of k, and 1,024 of a long k with both operands in HBM") \
  X(conv_layouts, "tpu", "cost", \
    "few channels are packed into k, gradients contract over windows, images may be in lanes") \
  X(strided_by_matmul, "tpu", "cost", \
    "strided slices and interior pads in lanes are matmuls by ones and zeros") \
  X(topk_search, "tpu", "cost", \
    "top-k of long rows searches for one element per round instead of sorting")

#define MP_CHIP_KERNEL_RULES(X) \
  X(kernel_latencies, "tpu", "Mosaic", \
    "straight code of a Pallas kernel takes the longest chain of latencies in addition to its busiest unit") \
  X(kernel_weights, "tpu", "Mosaic", \
    "a tile of a matmul takes no less time than the matrix unit needs to load its weights") \
  X(kernel_steps, "tpu", "Mosaic", \
    "each step of a grid, condition and iteration has scalar code")

#define MP_CHIP_SCHEDULE_RULES(X) \
  X(collective_matmul, "tpu", "schedule", \
    "all_gathers and reduce_scatters become rings that overlap with parts of a matmul") \
  X(whole_sums, "tpu", "schedule", \
    "other collectives of all devices, and all_gathers of few elements, are all_reduces")

#define MP_CHIP_MEMORY_RULES(X) \
  X(received_results, "tpu", "memory", "results of gathers and permutes are copied to the program's result") \
  X(carried_copy, "both", "memory", "a carried value is copied if the kernel of its next value also reads other elements of it") \
  X(matmul_workspace, "gpu", "memory", "programs with matmuls have a workspace for the library") \
  X(result_not_in_place, "tpu", "memory", \
    "only updates write a result of main into the buffer of an operand") \
  X(reduce_in_place, "both", "memory", \
    "a fusion that ends in a reduction writes its other results over its operands")
// Passes that XLA publishes.
#define MP_CHIP_PASSES(X) \
  X(priority_fusion, "gpu", "PriorityFusion", \
    "readers compute a value if GpuPerformanceModel says that this is faster; the order is another") \
  X(sibling_fusion, "both", "MultiOutputFusion", \
    "fusions that read the same array in the same way become one with several outputs") \
  X(gemm_epilogue, "gpu", "GemmRewriter", \
    "cuBLASLt adds bias and activation, or one more summand, to a matmul") \
  X(gemm_padding, "gpu", "CublasPadForGemms", \
    "operands of 16-bit matmuls are padded to multiples of eight") \
  X(vector_dot, "gpu", "GpuAlgebraicSimplifier", \
    "small vector-matrix matmuls become reductions")
// clang-format on

#define MP_CHIP_RULES(X)    \
  MP_CHIP_FUSE_RULES(X)     \
  MP_CHIP_SPACE_RULES(X)    \
  MP_CHIP_LAYOUT_RULES(X)   \
  MP_CHIP_COST_RULES(X)     \
  MP_CHIP_KERNEL_RULES(X)   \
  MP_CHIP_SCHEDULE_RULES(X) \
  MP_CHIP_MEMORY_RULES(X)

#endif  // MINIPOD_SIM_CHIP_RULES_CHIP_RULES_TABLE_H_
