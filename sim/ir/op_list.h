// The operations of the IR: one list that every layer builds its own table over.
//
// The list has all operations of StableHLO 1.17 (and the three newer VHLO spellings), Shardy's
// `sdy` operations, and minipod's own: `minipod.exchange`, a collective, and `minipod.fusion`,
// whose region holds ops that become one kernel. The readers turn spellings of older versions into
// the newest form. Operations that are sugar for others (broadcast, dot, einsum, create_token, ...)
// have rows of their own, so that a program prints as it came; sim/passes replaces them.
//
// A row says what an op *is*. What a layer *does* with it (its verifier, sharding rule, kernel
// maker, pretty form) stands in that layer's own table over this list. Columns: enumerator, name,
// operands, results, regions (-1: variadic), role, effect, cost, and one trait or more. None has a
// default: a row that leaves one out does not compile. test_op_list, test_op_traits and
// test_op_numbers hold every row against what the layers really do with a small program of the op
// (tests/fixtures/op_samples.txt).
#ifndef MINIPOD_SIM_IR_OP_LIST_H_
#define MINIPOD_SIM_IR_OP_LIST_H_

// Role: what becomes of the op on the way to the program of a device.
typedef enum {
  // A LAUNCH of its kernel; sim/kernels has a maker for it. (custom_call has one too, but the call
  // of ragged_all_to_all is a collective: mp_plan_is_collective.) An op that says this and has no
  // maker is refused when it is planned, as "this operation has no kernel".
  MP_OP_ROLE_KERNEL,
  // A COLLECTIVE, SEND or RECV command: sim/plan can lower it.
  MP_OP_ROLE_COLLECTIVE,
  // A command of its own: the ids of the device.
  MP_OP_ROLE_COMMAND,
  // Jumps around the commands of its regions.
  MP_OP_ROLE_CONTROL,
  // No command: its results are data of the program, or the bytes of its operands, or have no
  // bytes. Wrongly set: the op's work is not done, and readers of its results read garbage.
  MP_OP_ROLE_NOTHING,
  // Sugar, calls and tuples: sim/passes has replaced them all when the partitioner begins, which
  // has no rules for them.
  MP_OP_ROLE_SUGAR,
  // Tells the partitioner where values lie. The partitioner removes it; the planner does not know
  // it.
  MP_OP_ROLE_SHARDING,
  // Programs with this op are refused by its name, at the latest when they are planned.
  MP_OP_ROLE_REFUSED,
} mp_op_role_t;

// Effect: what the op does besides computing its results. The effects of the ops in its regions are
// not counted here.
typedef enum {
  // It does nothing else, and equal ops on equal operands have equal results. An op whose results
  // are not used is removed, and equal ops may become one. If an op with an effect says this, its
  // effect is lost.
  MP_OP_EFFECT_PURE,
  // It does nothing else either, so that it may be removed; but two equal ops stay two. Random
  // numbers, for example, differ, and a barrier keeps apart what stands before it and behind it. If
  // such an op says PURE, two of them may become one.
  MP_OP_EFFECT_DISTINCT,
  // It must stay although nothing uses its results, because other devices or the host wait for it,
  // or because it may never end. If an op without effect says this, it is computed in vain.
  MP_OP_EFFECT_STAYS,
  // Its attribute has_side_effect says which it is: STAYS or DISTINCT.
  MP_OP_EFFECT_STATED,
} mp_op_effect_t;

// Cost: how the time that the op takes is estimated. The estimate serves the cost analysis that
// frameworks ask for, and decides how many workers share the op and whether a launch is short
// enough to run in its caller's thread. A wrong cost makes a long program block its caller, or a
// short one wait for a worker; it never makes a wrong result.
typedef enum {
  MP_OP_COST_FREE,     // none, because it has no kernel
  MP_OP_COST_LIGHT,    // about the time that reading and writing its bytes takes
  MP_OP_COST_COSTLY,   // elementwise, and each element takes tens of operations (a call into libm)
  MP_OP_COST_COUNTED,  // about what its operations (sim/work) take
  MP_OP_COST_HEAVY,    // not in proportion to its bytes: a multiple of them is the guess
} mp_op_cost_t;

// Traits. Each comment says what follows from the trait, and what goes wrong when an op has it that
// should not ("wrongly set") or lacks it ("missing").
enum {
  // None of these.
  MP_OP_TRAIT_PLAIN = 0,
  // Element i of the result comes from elements i of the operands (clamp's bounds and select's
  // predicate may be scalars for all). Regions compute with such ops alone, the partitioner works
  // on any parts, one operation per element is counted. Wrongly set: each device computes with the
  // wrong elements. Missing: regions with the op are refused, sharded values are gathered for it.
  MP_OP_TRAIT_ELEMENTWISE = 1 << 0,
  // op(x, y) = op(y, x). Reducers that are this op are recognised in either order. Wrongly set: a
  // reduction by y - x is taken for one by x - y. Missing: the slow way through the region.
  MP_OP_TRAIT_COMMUTATIVE = 1 << 1,
  // op(x, x) = x. A reduction may see its initial value any number of times, so each shard may
  // begin with it. Wrongly set: sums that count it once per shard. Missing: a select for every
  // shard.
  MP_OP_TRAIT_IDEMPOTENT = 1 << 2,
  // op(x + y, ...) = op(x, ...) + op(y, ...), with all operands at once. Values that still are
  // terms of sums go through it before they are added up. Wrongly set: wrong sums. Missing: sums
  // made earlier, and more often.
  MP_OP_TRAIT_LINEAR = 1 << 3,
  // Result i is operand i's bytes in operand i's order, whenever both have equally many: one place
  // in memory for both, and no command. Wrongly set: results are the operand's bytes. Missing:
  // copies, or, for an op without a kernel, a value that is never written.
  MP_OP_TRAIT_ALIAS = 1 << 4,
  // The result holds elements of the first operand alone, unchanged; where from say its attributes
  // and indices that are scalars. Regions see through it between scalars, and it is linear in that
  // operand. Wrongly set: regions leave it out, and sums of terms are wrong. Missing: as LINEAR.
  MP_OP_TRAIT_MOVES = 1 << 5,
  // Cheap, without effect and always the same: may be computed again for each of its uses, which
  // gives each its own sharding. Wrongly set: work is repeated, random numbers come out different
  // for each use. Missing: shardings spread from one use of a constant to all others.
  MP_OP_TRAIT_AGAIN = 1 << 6,
  // Its results are other values handed on: what its regions return or take (the regions are parts
  // of the program, no functions on elements), or its operands. They are sharded as those, and no
  // rule of the op relates them. Wrongly set: the partitioner handles it like a barrier. Missing:
  // values in its regions are not sharded.
  MP_OP_TRAIT_FLOW = 1 << 7,
  // Its regions use no values from outside. Wrongly set: programs are refused. Missing: values of
  // one shape are used as if they had another.
  MP_OP_TRAIT_ISOLATED = 1 << 8,
  // Meets other devices. What async_start may hold.
  MP_OP_TRAIT_COLLECTIVE = 1 << 9,
  // Ends a block, and stands nowhere else.
  MP_OP_TRAIT_TERMINATOR = 1 << 10,
};

// clang-format off
#define MP_OPS(X) \
  X(ABS, "stablehlo.abs", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(ADD, "stablehlo.add", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, LINEAR, AGAIN) \
  X(AFTER_ALL, "stablehlo.after_all", -1, 1, 0, NOTHING, PURE, FREE, PLAIN) \
  X(ALL_GATHER, "stablehlo.all_gather", -1, -1, 0, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(ALL_REDUCE, "stablehlo.all_reduce", -1, -1, 1, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(ALL_TO_ALL, "stablehlo.all_to_all", -1, -1, 0, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(AND, "stablehlo.and", 2, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, IDEMPOTENT, AGAIN) \
  X(ASYNC_DONE, "stablehlo.async_done", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(ASYNC_START, "stablehlo.async_start", -1, 1, 1, SUGAR, PURE, FREE, PLAIN) \
  X(ATAN2, "stablehlo.atan2", 2, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(BATCH_NORM_GRAD, "stablehlo.batch_norm_grad", 5, 3, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(BATCH_NORM_INFERENCE, "stablehlo.batch_norm_inference", 5, 1, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(BATCH_NORM_TRAINING, "stablehlo.batch_norm_training", 3, 3, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(BITCAST_CONVERT, "stablehlo.bitcast_convert", 1, 1, 0, KERNEL, PURE, LIGHT, ALIAS) \
  X(BROADCAST, "stablehlo.broadcast", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(BROADCAST_IN_DIM, "stablehlo.broadcast_in_dim", 1, 1, 0, \
    KERNEL, PURE, LIGHT, MOVES, AGAIN) \
  X(CASE, "stablehlo.case", 1, -1, -1, CONTROL, PURE, FREE, FLOW) \
  X(CBRT, "stablehlo.cbrt", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(CEIL, "stablehlo.ceil", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(CHOLESKY, "stablehlo.cholesky", 1, 1, 0, KERNEL, PURE, HEAVY, PLAIN) \
  X(CLAMP, "stablehlo.clamp", 3, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(COLLECTIVE_BROADCAST, "stablehlo.collective_broadcast", -1, -1, 0, \
    COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(COLLECTIVE_PERMUTE, "stablehlo.collective_permute", 1, 1, 0, \
    COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(COLLECTIVE_REDUCE, "stablehlo.collective_reduce", -1, -1, 1, REFUSED, STAYS, FREE, COLLECTIVE) \
  X(COMPARE, "stablehlo.compare", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(COMPLEX, "stablehlo.complex", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(COMPOSITE, "stablehlo.composite", -1, -1, -1, SUGAR, STAYS, FREE, PLAIN) \
  X(CONCATENATE, "stablehlo.concatenate", -1, 1, 0, KERNEL, PURE, LIGHT, LINEAR) \
  X(CONSTANT, "stablehlo.constant", 0, 1, 0, NOTHING, PURE, FREE, AGAIN) \
  X(CONVERT, "stablehlo.convert", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(CONVOLUTION, "stablehlo.convolution", 2, 1, 0, KERNEL, PURE, HEAVY, PLAIN) \
  X(COSINE, "stablehlo.cosine", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(COUNT_LEADING_ZEROS, "stablehlo.count_leading_zeros", 1, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(CREATE_TOKEN, "stablehlo.create_token", 0, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(CROSS_REPLICA_SUM, "stablehlo.cross-replica-sum", 1, 1, 0, SUGAR, STAYS, FREE, COLLECTIVE) \
  X(CUSTOM_CALL, "stablehlo.custom_call", -1, -1, -1, KERNEL, STATED, HEAVY, ISOLATED) \
  X(DIVIDE, "stablehlo.divide", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(DOT, "stablehlo.dot", 2, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DOT_GENERAL, "stablehlo.dot_general", 2, 1, 0, KERNEL, PURE, COUNTED, PLAIN) \
  X(DYNAMIC_BROADCAST_IN_DIM, "stablehlo.dynamic_broadcast_in_dim", 2, 1, 0, \
    SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_CONV, "stablehlo.dynamic_conv", 3, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_GATHER, "stablehlo.dynamic_gather", 3, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_IOTA, "stablehlo.dynamic_iota", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_PAD, "stablehlo.dynamic_pad", 5, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_RESHAPE, "stablehlo.dynamic_reshape", 2, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(DYNAMIC_SLICE, "stablehlo.dynamic_slice", -1, 1, 0, KERNEL, PURE, LIGHT, MOVES) \
  X(DYNAMIC_UPDATE_SLICE, "stablehlo.dynamic_update_slice", -1, 1, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(EINSUM, "stablehlo.einsum", 2, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(EXPONENTIAL, "stablehlo.exponential", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(EXPONENTIAL_MINUS_ONE, "stablehlo.exponential_minus_one", 1, 1, 0, \
    KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(FFT, "stablehlo.fft", 1, 1, 0, KERNEL, PURE, HEAVY, PLAIN) \
  X(FLOOR, "stablehlo.floor", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(GATHER, "stablehlo.gather", 2, 1, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(GET_DIMENSION_SIZE, "stablehlo.get_dimension_size", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(GET_TUPLE_ELEMENT, "stablehlo.get_tuple_element", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(IF, "stablehlo.if", 1, -1, 2, SUGAR, PURE, FREE, FLOW) \
  X(IMAG, "stablehlo.imag", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(INFEED, "stablehlo.infeed", 1, -1, 0, REFUSED, STAYS, FREE, PLAIN) \
  X(IOTA, "stablehlo.iota", 0, 1, 0, KERNEL, PURE, LIGHT, AGAIN) \
  X(IS_FINITE, "stablehlo.is_finite", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(LOG, "stablehlo.log", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(LOG_PLUS_ONE, "stablehlo.log_plus_one", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(LOGISTIC, "stablehlo.logistic", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(MAP, "stablehlo.map", -1, 1, 1, KERNEL, PURE, LIGHT, PLAIN) \
  X(MAXIMUM, "stablehlo.maximum", 2, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, IDEMPOTENT, AGAIN) \
  X(MINIMUM, "stablehlo.minimum", 2, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, IDEMPOTENT, AGAIN) \
  X(MULTIPLY, "stablehlo.multiply", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, AGAIN) \
  X(NEGATE, "stablehlo.negate", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, LINEAR, AGAIN) \
  X(NOT, "stablehlo.not", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(OPTIMIZATION_BARRIER, "stablehlo.optimization_barrier", -1, -1, 0, \
    NOTHING, DISTINCT, FREE, ALIAS, FLOW) \
  X(OR, "stablehlo.or", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, IDEMPOTENT, AGAIN) \
  X(OUTFEED, "stablehlo.outfeed", -1, 1, 0, REFUSED, STAYS, FREE, PLAIN) \
  X(PAD, "stablehlo.pad", 2, 1, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(PARTITION_ID, "stablehlo.partition_id", 0, 1, 0, COMMAND, PURE, FREE, PLAIN) \
  X(POPCNT, "stablehlo.popcnt", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(POWER, "stablehlo.power", 2, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(REAL, "stablehlo.real", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(REAL_DYNAMIC_SLICE, "stablehlo.real_dynamic_slice", 4, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(RECV, "stablehlo.recv", 1, -1, 0, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(REDUCE, "stablehlo.reduce", -1, -1, 1, KERNEL, PURE, COUNTED, PLAIN) \
  X(REDUCE_PRECISION, "stablehlo.reduce_precision", 1, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(REDUCE_SCATTER, "stablehlo.reduce_scatter", 1, 1, 1, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(REDUCE_WINDOW, "stablehlo.reduce_window", -1, -1, 1, KERNEL, PURE, HEAVY, PLAIN) \
  X(REMAINDER, "stablehlo.remainder", 2, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(REPLICA_ID, "stablehlo.replica_id", 0, 1, 0, COMMAND, PURE, FREE, PLAIN) \
  X(RESHAPE, "stablehlo.reshape", 1, 1, 0, NOTHING, PURE, FREE, ALIAS, MOVES, AGAIN) \
  X(RETURN, "stablehlo.return", -1, 0, 0, NOTHING, STAYS, FREE, TERMINATOR) \
  X(REVERSE, "stablehlo.reverse", 1, 1, 0, KERNEL, PURE, LIGHT, MOVES) \
  X(RNG, "stablehlo.rng", 3, 1, 0, KERNEL, DISTINCT, LIGHT, PLAIN) \
  X(RNG_BIT_GENERATOR, "stablehlo.rng_bit_generator", 1, 2, 0, KERNEL, PURE, LIGHT, PLAIN) \
  X(ROUND_NEAREST_AFZ, "stablehlo.round_nearest_afz", 1, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(ROUND_NEAREST_EVEN, "stablehlo.round_nearest_even", 1, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(RSQRT, "stablehlo.rsqrt", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SCATTER, "stablehlo.scatter", -1, -1, 1, KERNEL, PURE, HEAVY, PLAIN) \
  X(SELECT, "stablehlo.select", 3, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SELECT_AND_SCATTER, "stablehlo.select_and_scatter", 3, 1, 2, KERNEL, PURE, HEAVY, PLAIN) \
  X(SEND, "stablehlo.send", -1, 1, 0, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(SET_DIMENSION_SIZE, "stablehlo.set_dimension_size", 2, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SHIFT_LEFT, "stablehlo.shift_left", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SHIFT_RIGHT_ARITHMETIC, "stablehlo.shift_right_arithmetic", 2, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SHIFT_RIGHT_LOGICAL, "stablehlo.shift_right_logical", 2, 1, 0, \
    KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SIGN, "stablehlo.sign", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SINE, "stablehlo.sine", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(SLICE, "stablehlo.slice", 1, 1, 0, KERNEL, PURE, LIGHT, MOVES, AGAIN) \
  X(SORT, "stablehlo.sort", -1, -1, 1, KERNEL, PURE, HEAVY, PLAIN) \
  X(SQRT, "stablehlo.sqrt", 1, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, AGAIN) \
  X(SUBTRACT, "stablehlo.subtract", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, LINEAR, AGAIN) \
  X(TAN, "stablehlo.tan", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(TANH, "stablehlo.tanh", 1, 1, 0, KERNEL, PURE, COSTLY, ELEMENTWISE, AGAIN) \
  X(TORCH_INDEX_SELECT, "stablehlo.torch_index_select", 2, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(TRANSPOSE, "stablehlo.transpose", 1, 1, 0, KERNEL, PURE, LIGHT, MOVES) \
  X(TRIANGULAR_SOLVE, "stablehlo.triangular_solve", 2, 1, 0, KERNEL, PURE, HEAVY, PLAIN) \
  X(TUPLE, "stablehlo.tuple", -1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(UNARY_EINSUM, "stablehlo.unary_einsum", 1, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(UNIFORM_DEQUANTIZE, "stablehlo.uniform_dequantize", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(UNIFORM_QUANTIZE, "stablehlo.uniform_quantize", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(WHILE, "stablehlo.while", -1, -1, 2, CONTROL, STAYS, FREE, FLOW) \
  X(XOR, "stablehlo.xor", 2, 1, 0, KERNEL, PURE, LIGHT, ELEMENTWISE, COMMUTATIVE, AGAIN) \
  X(CALL, "func.call", -1, -1, 0, SUGAR, STAYS, FREE, PLAIN) \
  X(SDY_ALL_GATHER, "sdy.all_gather", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_ALL_REDUCE, "sdy.all_reduce", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_ALL_SLICE, "sdy.all_slice", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_ALL_TO_ALL, "sdy.all_to_all", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_COLLECTIVE_PERMUTE, "sdy.collective_permute", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_CONSTANT, "sdy.constant", 0, 1, 0, SUGAR, PURE, FREE, PLAIN) \
  X(SDY_DATA_FLOW_EDGE, "sdy.data_flow_edge", 1, 1, 0, SHARDING, PURE, FREE, MOVES) \
  X(SDY_MANUAL_COMPUTATION, "sdy.manual_computation", -1, -1, 1, \
    SHARDING, PURE, FREE, FLOW, ISOLATED) \
  X(SDY_NAMED_COMPUTATION, "sdy.named_computation", -1, -1, 1, SUGAR, PURE, FREE, FLOW) \
  X(SDY_PROPAGATION_BARRIER, "sdy.propagation_barrier", 1, 1, 0, \
    SHARDING, DISTINCT, FREE, MOVES, AGAIN) \
  X(SDY_REDUCE_SCATTER, "sdy.reduce_scatter", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_REPLICATED_TO_UNREDUCED, "sdy.replicated_to_unreduced", 1, 1, 0, \
    REFUSED, PURE, FREE, PLAIN) \
  X(SDY_RESHARD, "sdy.reshard", 1, 1, 0, SHARDING, PURE, FREE, MOVES) \
  X(SDY_SHARDED_TO_UNREDUCED, "sdy.sharded_to_unreduced", 1, 1, 0, REFUSED, PURE, FREE, PLAIN) \
  X(SDY_SHARDING_CONSTRAINT, "sdy.sharding_constraint", 1, 1, 0, SHARDING, PURE, FREE, MOVES) \
  X(SDY_SHARDING_GROUP, "sdy.sharding_group", 1, 0, 0, SHARDING, STAYS, FREE, PLAIN) \
  X(EXCHANGE, "minipod.exchange", 1, 1, 0, COLLECTIVE, STAYS, FREE, COLLECTIVE) \
  X(FUSION, "minipod.fusion", -1, -1, 1, KERNEL, PURE, COUNTED, ISOLATED)

// Attribute names: enumerator, spelling. First the operations' own (VHLO's flattened names:
// StableHLO text writes some of them as one struct attribute), then the discardable ones that
// minipod reads.
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
  X(FIRST, "minipod.first") \
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
  X(KEPT, "minipod.kept") \
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
  X(MHLO_ATTRIBUTES, "mhlo.attributes") \
  X(MHLO_BACKEND_CONFIG, "mhlo.backend_config") \
  X(MHLO_MEMORY_KIND, "mhlo.memory_kind") \
  X(KERNEL_NAME, "kernel_name") \
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
