// The table of rules: name, compiler, pass, and one sentence in XLA's terms.
#ifndef MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
#define MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_

// clang-format off
#define MP_CHIP_FUSE_RULES(X) \
  X(chains, "tpu", "fuse", "a matmul that produces an operand of one other matmul is fused into it") \
  X(rows_by_all, "gpu", "fuse", "each fusion that reads the rows of a reduction again computes the reduction itself") \
  X(widening_convert, "both", "fuse", "a conversion to a wider type is fused into all consumers even where it is written") \
  X(rows_written, "gpu", "fuse", "an elementwise result of rows kept on chip is written where recomputing it costs more") \
  X(expensive_shared, "gpu", "fuse", "an expensive elementwise op with several consumers is a kernel, and the consumers one") \
  X(short_sum_epilogue, "gpu", "fuse", "only ops of one operand follow a sum of few elements in its kernel") \
  X(cut_gemm_epilogue, "gpu", "fuse", "a matmul that was merged or padded has no epilogue") \
  X(gemm_epilogue, "gpu", "fuse", "cuBLASLt adds bias and activation, or one more summand, to a matmul") \
  X(rows_meet, "gpu", "fuse", "a sum of an array joins the kernel that reads this array beside its rows") \
  X(rows_diamond, "gpu", "fuse", "a sum joins rows kept on chip if the kernel reads all it is made of") \
  X(softmax_rows, "tpu", "fuse", "maximum and sum of a softmax are fused with the pass over their rows") \
  X(untiled_rows, "gpu", "fuse", "rows kept on chip contain no gather, concatenation, pad or window") \
  X(transposed_rows, "gpu", "fuse", "no rows are kept of a transposed matmul result") \
  X(rows_close, "gpu", "fuse", "a reduction is fused with the ops that broadcast it back over its rows") \
  X(rows_follow, "gpu", "fuse", "a reduction of rows that are kept on chip is fused with them") \
  X(window_fusion, "gpu", "fuse", "a reduce-window is fused into the only loop that consumes it") \
  X(cumulative_inputs, "gpu", "fuse", "a cumulative op recomputes only cheap producers of one array") \
  X(sum_across_rows, "gpu", "fuse", "a column reduction is no part of a kernel that keeps rows") \
  X(expensive_broadcast, "both", "fuse", "an expensive op is not recomputed for each element of its broadcast") \
  X(expensive_copies, "gpu", "fuse", "an expensive op is not recomputed per broadcast or concatenated part if that costs more") \
  X(update_of_rows, "gpu", "fuse", "a kernel that keeps rows does not update in place") \
  X(code_size, "gpu", "fuse", "an op is emitted at most eight times in a kernel") \
  X(gather_for_sum, "gpu", "fuse", "a gather whose last dimension is not reduced is written before a vector-matrix product") \
  X(update_source, "gpu", "fuse", "what reads other places of an array is computed before the array is updated") \
  X(several_slices, "tpu", "fuse", "what several slices read is written, not recomputed per slice") \
  X(few_blocks, "gpu", "fuse", "a reduction with few thread blocks reads slowly, so that less is recomputed for it") \
  X(cost_model, "gpu", "fuse", "a producer is written if XLA's cost model says that recomputing it takes longer") \
  X(sum_recomputed, "gpu", "fuse", "each consumer recomputes a sum of rows if the cost model says so") \
  X(sum_of_written, "gpu", "fuse", "a sum of rows that are written for others is written, too") \
  X(kept_preactivation, "tpu", "fuse", "elementwise results of matmuls are recomputed; only the pre-activation is stored") \
  X(kept_gate, "tpu", "fuse", "an expensive result of three matmuls is written") \
  X(shifted_exp, "tpu", "fuse", "the exponential of rows minus their maximum is written, not recomputed") \
  X(softmax_after_matmul, "tpu", "fuse", "the softmax of rows in f32 is fused with the matmul that makes them") \
  X(mixed_rows, "tpu", "fuse", "not where heads lie inside of tokens") \
  X(sibling_fusion, "both", "fuse", "fusions that read the same array in the same way become one with several outputs") \
  X(sibling_loops, "gpu", "fuse", "loops of as many elements that share any array become one") \
  X(vector_dot, "gpu", "fuse", "small vector-matrix products become reductions") \
  X(gemm_padding, "gpu", "fuse", "operands of 16-bit matmuls are padded to multiples of eight") \
  X(lone_movement, "tpu", "fuse", "reversals and strided slices are kernels of their own") \
  X(loop_constants, "tpu", "fuse", "constant initial values of loops are not stored") \
  X(scatter_selection, "tpu", "fuse", "a scatter of one element per line of a constant is a comparison per element") \
  X(outer_product, "tpu", "fuse", "a matmul without a contraction is an elementwise product") \
  X(concat_parts, "tpu", "fuse", "operands of a concatenation are written before, in its tiles") \
  X(concat_twins, "tpu", "fuse", "so are slices of which the same array has several of one shape") \
  X(gather_of_loop, "gpu", "fuse", "elementwise producers of a table are computed after the gather") \
  X(gather_of_gather, "gpu", "fuse", "a gather of a gather is one") \
  X(dot_merger, "gpu", "fuse", "matmuls that share an operand become one")

#define MP_CHIP_SPACE_RULES(X) \
  X(narrow, "tpu", "spaces", "an f32 value that only single-pass matmuls read is written in bf16") \
  X(scatter_unread, "gpu", "spaces", "a scatter that sets whole rows does not read them") \
  X(table_in_vmem, "tpu", "spaces", "the table of a gather leaves less VMEM for other values") \
  X(far_over_matmuls, "tpu", "spaces", "a value stays in VMEM over fewer kernels if matmuls are among them") \
  X(results_in_vmem, "tpu", "spaces", "results of the program stay in VMEM for their other readers") \
  X(matmuls_in_hbm, "tpu", "spaces", "with two cores per device, or softmax rows, matmul results go to HBM") \
  X(kept_in_vmem, "tpu", "spaces", "values between kernels of a block stay in VMEM while there is room") \
  X(filled_in_hbm, "tpu", "spaces", "a stack that a loop fills for the program's result is in HBM") \
  X(large_carried, "tpu", "spaces", "carried arrays of more than half of VMEM go to HBM") \
  X(carried_in_vmem, "tpu", "spaces", "values that a loop carries stay in VMEM while there is room") \
  X(loop_after_matmul, "tpu", "spaces", "operands that loops read are copied to VMEM beside a matmul before the loop") \
  X(cast_before_loop, "tpu", "spaces", "f32 operands of matmuls in loops are cast before the loop") \
  X(invariants_in_vmem, "tpu", "spaces", "values that every iteration reads stay in VMEM while there is room") \
  X(prefetch_plain, "tpu", "spaces", "an argument that is computed with before its matmul is not prefetched across programs") \
  X(prefetch_unread, "tpu", "spaces", "nor one that another kernel reads before the matmul") \
  X(prefetch_argument, "tpu", "spaces", "the largest matmul operand among the arguments is prefetched across programs") \
  X(prefetch_stays, "tpu", "spaces", "a prefetched argument stays in VMEM for its later readers") \
  X(prefetch_updated, "tpu", "spaces", "weights that a matmul's kernel updates are prefetched and copied back") \
  X(prefetch_small, "tpu", "spaces", "small arguments of a matmul's kernel are prefetched") \
  X(prefetch_operand, "tpu", "spaces", "one operand of a matmul is prefetched beside the kernel before")

#define MP_CHIP_LAYOUT_RULES(X) \
  X(conv_space_to_batch, "tpu", "layout", "few images are split along a spatial dimension (space to batch)") \
  X(complex_split, "tpu", "layout", "complex arguments are split into real and imaginary parts") \
  X(cache_transposed, "gpu", "layout", "a cache that a matmul reads transposed is copied before and after its update") \
  X(gemm_operand_copy, "gpu", "layout", "operands whose matrices are not contiguous are copied for the library") \
  X(f8_operands, "gpu", "layout", "8-bit operands have the contracted dimension last") \
  X(merged_operands, "gpu", "layout", "the other operands of merged matmuls are concatenated") \
  X(merged_result, "gpu", "layout", "results cut out of a merged matmul are copied for others than loops")

#define MP_CHIP_COST_RULES(X) \
  X(sparse_core, "tpu", "cost", "large lookups of rows run on SparseCores")

#define MP_CHIP_SCHEDULE_RULES(X) \
  X(counted_loop, "gpu", "schedule", "a loop with a known trip count has no kernels for its condition") \
  X(overlap_units, "gpu", "schedule", "a collective takes multiprocessors from the work it overlaps with")

#define MP_CHIP_MEMORY_RULES(X) \
  X(received_results, "tpu", "memory", "what a collective gathered or permuted is copied to the program's result") \
  X(carried_moved, "both", "memory", "a carried value that its next value's kernel reads elsewhere is copied") \
  X(carried_copy, "both", "memory", "a carried value that is still read when its next value is written is copied") \
  X(carried_read_later, "tpu", "memory", "also if a later kernel reads it")
// clang-format on

#define MP_CHIP_RULES(X)    \
  MP_CHIP_FUSE_RULES(X)     \
  MP_CHIP_SPACE_RULES(X)    \
  MP_CHIP_LAYOUT_RULES(X)   \
  MP_CHIP_COST_RULES(X)     \
  MP_CHIP_SCHEDULE_RULES(X) \
  MP_CHIP_MEMORY_RULES(X)

#endif  // MINIPOD_SIM_CHIP_RULES_RULES_TABLE_H_
