// The operations of the IR: one list that every layer builds its own table over.
//
// All operations of StableHLO 1.17 (and the three newer VHLO spellings), Shardy's `sdy` operations,
// and minipod's own `minipod.exchange`. Spellings of older versions become the newest form while
// reading; operations that are sugar for others (broadcast, dot, einsum, create_token, ...) keep
// their name here, so that a program prints as it came, and are folded by sim/passes.
//
// Columns: enumerator, name, operands, results, regions (-1: variadic), traits.
#ifndef MINIPOD_SIM_IR_OP_LIST_H_
#define MINIPOD_SIM_IR_OP_LIST_H_

// clang-format off
#define MP_OPS(X) \
  X(ABS, "stablehlo.abs", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(ADD, "stablehlo.add", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(AFTER_ALL, "stablehlo.after_all", -1, 1, 0, 0) \
  X(ALL_GATHER, "stablehlo.all_gather", -1, -1, 0, MP_OP_TRAIT_COLLECTIVE) \
  X(ALL_REDUCE, "stablehlo.all_reduce", -1, -1, 1, MP_OP_TRAIT_COLLECTIVE) \
  X(ALL_TO_ALL, "stablehlo.all_to_all", -1, -1, 0, MP_OP_TRAIT_COLLECTIVE) \
  X(AND, "stablehlo.and", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(ASYNC_DONE, "stablehlo.async_done", 1, 1, 0, 0) \
  X(ASYNC_START, "stablehlo.async_start", -1, 1, 1, 0) \
  X(ATAN2, "stablehlo.atan2", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(BATCH_NORM_GRAD, "stablehlo.batch_norm_grad", 5, 3, 0, 0) \
  X(BATCH_NORM_INFERENCE, "stablehlo.batch_norm_inference", 5, 1, 0, 0) \
  X(BATCH_NORM_TRAINING, "stablehlo.batch_norm_training", 3, 3, 0, 0) \
  X(BITCAST_CONVERT, "stablehlo.bitcast_convert", 1, 1, 0, 0) \
  X(BROADCAST, "stablehlo.broadcast", 1, 1, 0, 0) \
  X(BROADCAST_IN_DIM, "stablehlo.broadcast_in_dim", 1, 1, 0, 0) \
  X(CASE, "stablehlo.case", 1, -1, -1, MP_OP_TRAIT_CONTROL) \
  X(CBRT, "stablehlo.cbrt", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(CEIL, "stablehlo.ceil", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(CHOLESKY, "stablehlo.cholesky", 1, 1, 0, 0) \
  X(CLAMP, "stablehlo.clamp", 3, 1, 0, MP_OP_TRAIT_TERNARY) \
  X(COLLECTIVE_BROADCAST, "stablehlo.collective_broadcast", -1, -1, 0, MP_OP_TRAIT_COLLECTIVE) \
  X(COLLECTIVE_PERMUTE, "stablehlo.collective_permute", 1, 1, 0, MP_OP_TRAIT_COLLECTIVE) \
  X(COLLECTIVE_REDUCE, "stablehlo.collective_reduce", -1, -1, 1, MP_OP_TRAIT_COLLECTIVE) \
  X(COMPARE, "stablehlo.compare", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(COMPLEX, "stablehlo.complex", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(COMPOSITE, "stablehlo.composite", -1, -1, -1, 0) \
  X(CONCATENATE, "stablehlo.concatenate", -1, 1, 0, 0) \
  X(CONSTANT, "stablehlo.constant", 0, 1, 0, 0) \
  X(CONVERT, "stablehlo.convert", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(CONVOLUTION, "stablehlo.convolution", 2, 1, 0, 0) \
  X(COSINE, "stablehlo.cosine", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(COUNT_LEADING_ZEROS, "stablehlo.count_leading_zeros", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(CREATE_TOKEN, "stablehlo.create_token", 0, 1, 0, 0) \
  X(CROSS_REPLICA_SUM, "stablehlo.cross-replica-sum", 1, 1, 0, MP_OP_TRAIT_COLLECTIVE) \
  X(CUSTOM_CALL, "stablehlo.custom_call", -1, -1, 0, MP_OP_TRAIT_EFFECT) \
  X(DIVIDE, "stablehlo.divide", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(DOT, "stablehlo.dot", 2, 1, 0, 0) \
  X(DOT_GENERAL, "stablehlo.dot_general", 2, 1, 0, 0) \
  X(DYNAMIC_BROADCAST_IN_DIM, "stablehlo.dynamic_broadcast_in_dim", 2, 1, 0, 0) \
  X(DYNAMIC_CONV, "stablehlo.dynamic_conv", 3, 1, 0, 0) \
  X(DYNAMIC_GATHER, "stablehlo.dynamic_gather", 3, 1, 0, 0) \
  X(DYNAMIC_IOTA, "stablehlo.dynamic_iota", 1, 1, 0, 0) \
  X(DYNAMIC_PAD, "stablehlo.dynamic_pad", 5, 1, 0, 0) \
  X(DYNAMIC_RESHAPE, "stablehlo.dynamic_reshape", 2, 1, 0, 0) \
  X(DYNAMIC_SLICE, "stablehlo.dynamic_slice", -1, 1, 0, 0) \
  X(DYNAMIC_UPDATE_SLICE, "stablehlo.dynamic_update_slice", -1, 1, 0, 0) \
  X(EINSUM, "stablehlo.einsum", 2, 1, 0, 0) \
  X(EXPONENTIAL, "stablehlo.exponential", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(EXPONENTIAL_MINUS_ONE, "stablehlo.exponential_minus_one", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(FFT, "stablehlo.fft", 1, 1, 0, 0) \
  X(FLOOR, "stablehlo.floor", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(GATHER, "stablehlo.gather", 2, 1, 0, 0) \
  X(GET_DIMENSION_SIZE, "stablehlo.get_dimension_size", 1, 1, 0, 0) \
  X(GET_TUPLE_ELEMENT, "stablehlo.get_tuple_element", 1, 1, 0, 0) \
  X(IF, "stablehlo.if", 1, -1, 2, MP_OP_TRAIT_CONTROL) \
  X(IMAG, "stablehlo.imag", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(INFEED, "stablehlo.infeed", 1, -1, 0, MP_OP_TRAIT_EFFECT) \
  X(IOTA, "stablehlo.iota", 0, 1, 0, 0) \
  X(IS_FINITE, "stablehlo.is_finite", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(LOG, "stablehlo.log", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(LOG_PLUS_ONE, "stablehlo.log_plus_one", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(LOGISTIC, "stablehlo.logistic", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(MAP, "stablehlo.map", -1, 1, 1, 0) \
  X(MAXIMUM, "stablehlo.maximum", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(MINIMUM, "stablehlo.minimum", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(MULTIPLY, "stablehlo.multiply", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(NEGATE, "stablehlo.negate", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(NOT, "stablehlo.not", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(OPTIMIZATION_BARRIER, "stablehlo.optimization_barrier", -1, -1, 0, 0) \
  X(OR, "stablehlo.or", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(OUTFEED, "stablehlo.outfeed", -1, 1, 0, MP_OP_TRAIT_EFFECT) \
  X(PAD, "stablehlo.pad", 2, 1, 0, 0) \
  X(PARTITION_ID, "stablehlo.partition_id", 0, 1, 0, 0) \
  X(POPCNT, "stablehlo.popcnt", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(POWER, "stablehlo.power", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(REAL, "stablehlo.real", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(REAL_DYNAMIC_SLICE, "stablehlo.real_dynamic_slice", 4, 1, 0, 0) \
  X(RECV, "stablehlo.recv", 1, -1, 0, MP_OP_TRAIT_COLLECTIVE | MP_OP_TRAIT_EFFECT) \
  X(REDUCE, "stablehlo.reduce", -1, -1, 1, 0) \
  X(REDUCE_PRECISION, "stablehlo.reduce_precision", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(REDUCE_SCATTER, "stablehlo.reduce_scatter", 1, 1, 1, MP_OP_TRAIT_COLLECTIVE) \
  X(REDUCE_WINDOW, "stablehlo.reduce_window", -1, -1, 1, 0) \
  X(REMAINDER, "stablehlo.remainder", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(REPLICA_ID, "stablehlo.replica_id", 0, 1, 0, 0) \
  X(RESHAPE, "stablehlo.reshape", 1, 1, 0, 0) \
  X(RETURN, "stablehlo.return", -1, 0, 0, MP_OP_TRAIT_TERMINATOR) \
  X(REVERSE, "stablehlo.reverse", 1, 1, 0, 0) \
  X(RNG, "stablehlo.rng", 3, 1, 0, 0) \
  X(RNG_BIT_GENERATOR, "stablehlo.rng_bit_generator", 1, 2, 0, 0) \
  X(ROUND_NEAREST_AFZ, "stablehlo.round_nearest_afz", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(ROUND_NEAREST_EVEN, "stablehlo.round_nearest_even", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(RSQRT, "stablehlo.rsqrt", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(SCATTER, "stablehlo.scatter", -1, -1, 1, 0) \
  X(SELECT, "stablehlo.select", 3, 1, 0, MP_OP_TRAIT_TERNARY) \
  X(SELECT_AND_SCATTER, "stablehlo.select_and_scatter", 3, 1, 2, 0) \
  X(SEND, "stablehlo.send", -1, 1, 0, MP_OP_TRAIT_COLLECTIVE | MP_OP_TRAIT_EFFECT) \
  X(SET_DIMENSION_SIZE, "stablehlo.set_dimension_size", 2, 1, 0, 0) \
  X(SHIFT_LEFT, "stablehlo.shift_left", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(SHIFT_RIGHT_ARITHMETIC, "stablehlo.shift_right_arithmetic", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(SHIFT_RIGHT_LOGICAL, "stablehlo.shift_right_logical", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(SIGN, "stablehlo.sign", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(SINE, "stablehlo.sine", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(SLICE, "stablehlo.slice", 1, 1, 0, 0) \
  X(SORT, "stablehlo.sort", -1, -1, 1, 0) \
  X(SQRT, "stablehlo.sqrt", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(SUBTRACT, "stablehlo.subtract", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(TAN, "stablehlo.tan", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(TANH, "stablehlo.tanh", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(TORCH_INDEX_SELECT, "stablehlo.torch_index_select", 2, 1, 0, 0) \
  X(TRANSPOSE, "stablehlo.transpose", 1, 1, 0, 0) \
  X(TRIANGULAR_SOLVE, "stablehlo.triangular_solve", 2, 1, 0, 0) \
  X(TUPLE, "stablehlo.tuple", -1, 1, 0, 0) \
  X(UNARY_EINSUM, "stablehlo.unary_einsum", 1, 1, 0, 0) \
  X(UNIFORM_DEQUANTIZE, "stablehlo.uniform_dequantize", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(UNIFORM_QUANTIZE, "stablehlo.uniform_quantize", 1, 1, 0, MP_OP_TRAIT_UNARY) \
  X(WHILE, "stablehlo.while", -1, -1, 2, MP_OP_TRAIT_CONTROL) \
  X(XOR, "stablehlo.xor", 2, 1, 0, MP_OP_TRAIT_BINARY) \
  X(CALL, "func.call", -1, -1, 0, MP_OP_TRAIT_CONTROL) \
  X(SDY_ALL_GATHER, "sdy.all_gather", 1, 1, 0, 0) \
  X(SDY_ALL_REDUCE, "sdy.all_reduce", 1, 1, 0, 0) \
  X(SDY_ALL_SLICE, "sdy.all_slice", 1, 1, 0, 0) \
  X(SDY_ALL_TO_ALL, "sdy.all_to_all", 1, 1, 0, 0) \
  X(SDY_COLLECTIVE_PERMUTE, "sdy.collective_permute", 1, 1, 0, 0) \
  X(SDY_CONSTANT, "sdy.constant", 0, 1, 0, 0) \
  X(SDY_DATA_FLOW_EDGE, "sdy.data_flow_edge", 1, 1, 0, 0) \
  X(SDY_MANUAL_COMPUTATION, "sdy.manual_computation", -1, -1, 1, MP_OP_TRAIT_CONTROL) \
  X(SDY_NAMED_COMPUTATION, "sdy.named_computation", -1, -1, 1, MP_OP_TRAIT_CONTROL) \
  X(SDY_PROPAGATION_BARRIER, "sdy.propagation_barrier", 1, 1, 0, 0) \
  X(SDY_REDUCE_SCATTER, "sdy.reduce_scatter", 1, 1, 0, 0) \
  X(SDY_REPLICATED_TO_UNREDUCED, "sdy.replicated_to_unreduced", 1, 1, 0, 0) \
  X(SDY_RESHARD, "sdy.reshard", 1, 1, 0, 0) \
  X(SDY_SHARDED_TO_UNREDUCED, "sdy.sharded_to_unreduced", 1, 1, 0, 0) \
  X(SDY_SHARDING_CONSTRAINT, "sdy.sharding_constraint", 1, 1, 0, 0) \
  X(SDY_SHARDING_GROUP, "sdy.sharding_group", 1, 0, 0, MP_OP_TRAIT_EFFECT) \
  X(EXCHANGE, "minipod.exchange", 1, 1, 0, MP_OP_TRAIT_COLLECTIVE)

// Attribute names: enumerator, spelling. First the operations' own (VHLO's flattened names: StableHLO
// text writes some of them as one struct attribute), then the discardable ones that minipod reads.
#define MP_ATTR_NAMES(X) \
  X(ACCUMULATION_TYPE, "accumulation_type") \
  X(ALL_GATHER_DIM, "all_gather_dim") \
  X(ALLOW_IMPRECISE_ACCUMULATION, "allow_imprecise_accumulation") \
  X(ALLOWED_DIRECTION, "allowed_direction") \
  X(API_VERSION, "api_version") \
  X(AXES, "axes") \
  X(BACKEND_CONFIG, "backend_config") \
  X(BASE_DILATIONS, "base_dilations") \
  X(BATCH_DIMS, "batch_dims") \
  X(BATCH_GROUP_COUNT, "batch_group_count") \
  X(BROADCAST_DIMENSIONS, "broadcast_dimensions") \
  X(BROADCAST_SIZES, "broadcast_sizes") \
  X(CALL_TARGET_NAME, "call_target_name") \
  X(CALLED_COMPUTATIONS, "called_computations") \
  X(CALLEE, "callee") \
  X(CHANNEL_ID, "channel_id") \
  X(CHANNEL_TYPE, "channel_type") \
  X(COLLAPSED_SLICE_DIMS, "collapsed_slice_dims") \
  X(COMPARE_TYPE, "compare_type") \
  X(COMPARISON_DIRECTION, "comparison_direction") \
  X(COMPOSITE_ATTRIBUTES, "composite_attributes") \
  X(CONCAT_DIMENSION, "concat_dimension") \
  X(DECOMPOSITION, "decomposition") \
  X(DIM, "dim") \
  X(DIMENSION, "dimension") \
  X(DIMENSIONS, "dimensions") \
  X(EDGE_PADDING_HIGH, "edge_padding_high") \
  X(EDGE_PADDING_LOW, "edge_padding_low") \
  X(EINSUM_CONFIG, "einsum_config") \
  X(EPSILON, "epsilon") \
  X(EXPONENT_BITS, "exponent_bits") \
  X(FEATURE_GROUP_COUNT, "feature_group_count") \
  X(FEATURE_INDEX, "feature_index") \
  X(FFT_LENGTH, "fft_length") \
  X(FFT_TYPE, "fft_type") \
  X(GATHERING_AXES, "gathering_axes") \
  X(GROUP_ID, "group_id") \
  X(HAS_DYNAMIC_ROOT, "has_dynamic_root") \
  X(HAS_SIDE_EFFECT, "has_side_effect") \
  X(IN_SHARDINGS, "in_shardings") \
  X(INDEX, "index") \
  X(INDEX_VECTOR_DIM, "index_vector_dim") \
  X(INDICES_ARE_SORTED, "indices_are_sorted") \
  X(INFEED_CONFIG, "infeed_config") \
  X(INPUT_BATCH_DIMENSION, "input_batch_dimension") \
  X(INPUT_BATCHING_DIMS, "input_batching_dims") \
  X(INPUT_FEATURE_DIMENSION, "input_feature_dimension") \
  X(INPUT_SPATIAL_DIMENSIONS, "input_spatial_dimensions") \
  X(INSERTED_WINDOW_DIMS, "inserted_window_dims") \
  X(INTERIOR_PADDING, "interior_padding") \
  X(IOTA_DIMENSION, "iota_dimension") \
  X(IS_HOST_TRANSFER, "is_host_transfer") \
  X(IS_STABLE, "is_stable") \
  X(KERNEL_INPUT_FEATURE_DIMENSION, "kernel_input_feature_dimension") \
  X(KERNEL_OUTPUT_FEATURE_DIMENSION, "kernel_output_feature_dimension") \
  X(KERNEL_SPATIAL_DIMENSIONS, "kernel_spatial_dimensions") \
  X(KNOWN_EXPANDING_DIMENSIONS, "known_expanding_dimensions") \
  X(KNOWN_NONEXPANDING_DIMENSIONS, "known_nonexpanding_dimensions") \
  X(LAYOUT, "layout") \
  X(LEFT_SIDE, "left_side") \
  X(LHS_BATCHING_DIMENSIONS, "lhs_batching_dimensions") \
  X(LHS_COMPONENT_COUNT, "lhs_component_count") \
  X(LHS_CONTRACTING_DIMENSIONS, "lhs_contracting_dimensions") \
  X(LHS_DILATION, "lhs_dilation") \
  X(LHS_PRECISION_TYPE, "lhs_precision_type") \
  X(LIMIT_INDICES, "limit_indices") \
  X(LOWER, "lower") \
  X(MANTISSA_BITS, "mantissa_bits") \
  X(MANUAL_AXES, "manual_axes") \
  X(NAME, "name") \
  X(NUM_PRIMITIVE_OPERATIONS, "num_primitive_operations") \
  X(OFFSET_DIMS, "offset_dims") \
  X(OPERAND_BATCHING_DIMS, "operand_batching_dims") \
  X(OPERAND_LAYOUTS, "operand_layouts") \
  X(OUT_SHARDING, "out_sharding") \
  X(OUT_SHARDINGS, "out_shardings") \
  X(OUTFEED_CONFIG, "outfeed_config") \
  X(OUTPUT_BATCH_DIMENSION, "output_batch_dimension") \
  X(OUTPUT_FEATURE_DIMENSION, "output_feature_dimension") \
  X(OUTPUT_OPERAND_ALIASES, "output_operand_aliases") \
  X(OUTPUT_SPATIAL_DIMENSIONS, "output_spatial_dimensions") \
  X(PADDING, "padding") \
  X(PARAMS, "params") \
  X(PERMUTATION, "permutation") \
  X(PRECISION_CONFIG, "precision_config") \
  X(REDUCE_SCATTER_AXES, "reduce_scatter_axes") \
  X(REDUCTION_AXES, "reduction_axes") \
  X(REPLICA_GROUPS, "replica_groups") \
  X(RESULT_ACCURACY, "result_accuracy") \
  X(RESULT_LAYOUTS, "result_layouts") \
  X(RESULT_TILINGS, "result_tilings") \
  X(RHS_BATCHING_DIMENSIONS, "rhs_batching_dimensions") \
  X(RHS_COMPONENT_COUNT, "rhs_component_count") \
  X(RHS_CONTRACTING_DIMENSIONS, "rhs_contracting_dimensions") \
  X(RHS_DILATION, "rhs_dilation") \
  X(RHS_PRECISION_TYPE, "rhs_precision_type") \
  X(RNG_ALGORITHM, "rng_algorithm") \
  X(RNG_DISTRIBUTION, "rng_distribution") \
  X(SCATTER_DIMENSION, "scatter_dimension") \
  X(SCATTER_DIMS_TO_OPERAND_DIMS, "scatter_dims_to_operand_dims") \
  X(SCATTER_INDICES_BATCHING_DIMS, "scatter_indices_batching_dims") \
  X(SHARDING, "sharding") \
  X(SLICE_SIZES, "slice_sizes") \
  X(SLICING_AXES, "slicing_axes") \
  X(SOURCE_TARGET_PAIRS, "source_target_pairs") \
  X(SPLIT_COUNT, "split_count") \
  X(SOURCE, "source") \
  X(SPLIT_DIMENSION, "split_dimension") \
  X(START_INDEX_MAP, "start_index_map") \
  X(START_INDICES, "start_indices") \
  X(START_INDICES_BATCHING_DIMS, "start_indices_batching_dims") \
  X(STRIDES, "strides") \
  X(TARGET, "target") \
  X(TRANSPOSE_A, "transpose_a") \
  X(UNIQUE_INDICES, "unique_indices") \
  X(UNIT_DIAGONAL, "unit_diagonal") \
  X(UPDATE_WINDOW_DIMS, "update_window_dims") \
  X(USE_GLOBAL_DEVICE_IDS, "use_global_device_ids") \
  X(VALUE, "value") \
  X(VERSION, "version") \
  X(WINDOW_DILATIONS, "window_dilations") \
  X(WINDOW_DIMENSIONS, "window_dimensions") \
  X(WINDOW_REVERSAL, "window_reversal") \
  X(WINDOW_STRIDES, "window_strides") \
  X(MHLO_SHARDING, "mhlo.sharding") \
  X(MHLO_FRONTEND_ATTRIBUTES, "mhlo.frontend_attributes") \
  X(MHLO_BACKEND_CONFIG, "mhlo.backend_config") \
  X(MHLO_MEMORY_KIND, "mhlo.memory_kind") \
  X(MHLO_LAYOUT_MODE, "mhlo.layout_mode") \
  X(MHLO_NUM_PARTITIONS, "mhlo.num_partitions") \
  X(MHLO_NUM_REPLICAS, "mhlo.num_replicas") \
  X(SDY_SHARDING, "sdy.sharding") \
  X(SDY_SHARDING_RULE, "sdy.sharding_rule") \
  X(TF_ALIASING_OUTPUT, "tf.aliasing_output") \
  X(JAX_BUFFER_DONOR, "jax.buffer_donor") \
  X(JAX_RESULT_INFO, "jax.result_info") \
  X(JAX_TOKEN, "jax.token") \
  X(ERROR_MESSAGE, "error_message")
// clang-format on

#endif  // MINIPOD_SIM_IR_OP_LIST_H_
