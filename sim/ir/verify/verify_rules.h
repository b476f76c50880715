// What the verifier's files share: helpers for rules, and the rules by operation. Private to this
// folder.
//
// A rule may rely on what verify.c has checked for every operation before: it has as many operands,
// results and regions as the op list says, its own attributes are present and of the right kind,
// tensor types are static and have at most MP_MAX_RANK dimensions, and its regions obey their own
// ops' rules. Unless its row in verify_table.h says otherwise, all operands and results are
// tensors.
//
// All helpers return INVALID_ARGUMENT, which names the op and its location, for what breaks a rule.
#ifndef MINIPOD_SIM_IR_VERIFY_VERIFY_RULES_H_
#define MINIPOD_SIM_IR_VERIFY_VERIFY_RULES_H_

#include "sim/ir/module.h"

// Returns INVALID_ARGUMENT about the op from the calling function unless `condition` holds.
#define MP_CHECK(op, condition, ...)                                              \
  do {                                                                            \
    if (!(condition)) return mp_op_error((op), MP_INVALID_ARGUMENT, __VA_ARGS__); \
  } while (0)

// Classes of element types, as bits.
enum {
  MP_IS_BOOL = 1 << MP_CLASS_BOOL,
  MP_IS_SIGNED = 1 << MP_CLASS_SIGNED,
  MP_IS_UNSIGNED = 1 << MP_CLASS_UNSIGNED,
  MP_IS_FLOAT = 1 << MP_CLASS_FLOAT,
  MP_IS_COMPLEX = 1 << MP_CLASS_COMPLEX,
  MP_IS_INTEGER = MP_IS_SIGNED | MP_IS_UNSIGNED,
};

// Whether an element type is of one of these classes.
static inline bool mp_dtype_in(mp_dtype_t dtype, uint32_t classes) {
  return (classes >> mp_dtype_class(dtype) & 1) != 0;
}

// The type of an operand, which must exist.
static inline const mp_type_t *mp_operand_type(const mp_op_t *op, uint32_t index) {
  return op->operands[index]->type;
}

// The type of a result, which must exist.
static inline const mp_type_t *mp_result_type(const mp_op_t *op, uint32_t index) {
  return op->results[index].type;
}

// Whether it is a tensor of rank 0.
static inline bool mp_is_scalar(const mp_type_t *type) {
  return type->kind == MP_TYPE_TENSOR && type->rank == 0;
}

// The types must be equal; `what` says whose they are ("the result and the operand").
MP_NODISCARD mp_status_t mp_verify_same_type(const mp_op_t *op, const mp_type_t *a,
                                             const mp_type_t *b, const char *what);
// The types must be tensors of the same dimensions.
MP_NODISCARD mp_status_t mp_verify_same_shape(const mp_op_t *op, const mp_type_t *a,
                                              const mp_type_t *b, const char *what);
// The type must be a tensor with elements of one of these classes.
MP_NODISCARD mp_status_t mp_verify_dtype(const mp_op_t *op, const mp_type_t *type, uint32_t classes,
                                         const char *what);
// Result `index` must have this element type and shape, which the op's rule has worked out.
MP_NODISCARD mp_status_t mp_verify_result(const mp_op_t *op, uint32_t index, mp_dtype_t dtype,
                                          const int64_t *dims, uint32_t rank);
// An integer attribute that must be the number of one of `rank` dimensions.
MP_NODISCARD mp_status_t mp_verify_dim(const mp_op_t *op, mp_attr_name_t name, uint32_t rank,
                                       int64_t *out_dim);

enum { MP_DIMS_SORTED = 1 };  // besides being distinct, which they always must be

// A list attribute whose entries must be the numbers of different ones of `rank` dimensions.
// Dimensions whose bit is set in `used` must not occur; those that occur are added to it. `used`
// may be NULL.
MP_NODISCARD mp_status_t mp_verify_dims(const mp_op_t *op, mp_attr_name_t name, uint32_t rank,
                                        uint32_t flags, uint64_t *used, mp_index_list_t *out_list);
// A list attribute that must have exactly `count` entries, each at least `min`.
MP_NODISCARD mp_status_t mp_verify_list(const mp_op_t *op, mp_attr_name_t name, uint32_t count,
                                        int64_t min, mp_index_list_t *out_list);
// A table attribute that must have `rows` rows (any number if `rows` is -1) of two columns.
MP_NODISCARD mp_status_t mp_verify_pairs(const mp_op_t *op, mp_attr_name_t name, int64_t rows,
                                         mp_index_list_t *out_list);

// The same for a region of scalars, which are given by their element types.
MP_NODISCARD mp_status_t mp_verify_scalar_region(const mp_op_t *op, uint32_t region,
                                                 uint32_t num_args, const mp_dtype_t *args,
                                                 uint32_t num_results, const mp_dtype_t *results);
// The region must be a reducer: it takes twice `count` scalars and returns `count`, each time with
// the element types of the first `count` operands. A region that works in other element types,
// which the specification allows, is UNIMPLEMENTED.
MP_NODISCARD mp_status_t mp_verify_reducer(const mp_op_t *op, uint32_t region, uint32_t count);

// The element types of a product (dot, convolution) may be any, but that of complex operands must
// be complex. Desugaring leaves those of which all are of one class, or the result of integers is
// floating-point: then either side can be converted to the result's type.
MP_NODISCARD mp_status_t mp_verify_product_types(const mp_op_t *op);

// A window over `rank` dimensions (StableHLO, "reduce_window" and "convolution"). In place of
// `strides` and the dilations, NULL means a list of ones.
typedef struct {
  uint32_t rank;
  const int64_t *sizes, *strides, *base_dilations, *window_dilations;
  const int64_t *padding;  // [rank * 2]
} mp_verify_window_t;

// The number of windows along each dimension of `dims`, written to out_dims[window->rank]. All
// entries of the window but the padding must be positive. An error when a number does not fit 64
// bits or padding leaves less than nothing of a dimension.
MP_NODISCARD mp_status_t mp_verify_window(const mp_op_t *op, const mp_verify_window_t *window,
                                          const int64_t *dims, int64_t *out_dims);

// ---- verify_attr.c ----

// Checks that the op's own attributes are there and of the right kinds, and the kinds of the
// discardable ones that minipod reads.
MP_NODISCARD mp_status_t mp_verify_attrs(const mp_op_t *op);
// Checks the attributes of a function's arguments and results that minipod reads.
MP_NODISCARD mp_status_t mp_verify_func_attrs(const mp_func_t *func);

// ---- verify_call.c ----

// Checks the functions: their names differ, callees exist and have the signature that the call
// needs, there is no recursion, and the program has a bounded size when everything is inlined.
MP_NODISCARD mp_status_t mp_verify_calls(mp_module_t *module);

// ---- verify_sdy.c ----

// Checks a mesh by itself. `op` is the op that uses it, for errors, and may be NULL.
MP_NODISCARD mp_status_t mp_verify_mesh(const mp_op_t *op, const mp_mesh_t *mesh);
// Checks a sharding for a value of this type; `op` is NULL for a function's argument or result.
MP_NODISCARD mp_status_t mp_verify_sharding(const mp_op_t *op, const mp_sdy_sharding_t *sharding,
                                            const mp_type_t *type);
// Checks that the mesh has these axes and sub-axes and that none overlaps another.
MP_NODISCARD mp_status_t mp_verify_axes(const mp_op_t *op, const mp_mesh_t *mesh,
                                        mp_axis_list_t axes);
// Checks a custom sharding rule (#sdy.op_sharding_rule) against the op's operands and results.
MP_NODISCARD mp_status_t mp_verify_sharding_rule(const mp_op_t *op, const mp_sharding_rule_t *rule);

// ---- the rules ----
//
// A rule checks one op against the constraints that the specification of its dialect lists for it:
// INVALID_ARGUMENT for what breaks one, UNIMPLEMENTED for what is valid but not supported.
// verify_table.h has the rule of each op.

typedef mp_status_t (*mp_verify_rule_t)(const mp_op_t *op);

// verify_elementwise.c
MP_NODISCARD mp_status_t mp_verify_elementwise(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_clamp(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_compare(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_select(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reduce_precision(const mp_op_t *op);
// verify_shape.c
MP_NODISCARD mp_status_t mp_verify_bitcast_convert(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_broadcast(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_broadcast_in_dim(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_concatenate(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_constant(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_get_dimension_size(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_iota(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_pad(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reshape(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reverse(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_slice(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_transpose(const mp_op_t *op);
// verify_indexing.c
MP_NODISCARD mp_status_t mp_verify_dynamic_slice(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_dynamic_update_slice(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_gather(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_scatter(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_torch_index_select(const mp_op_t *op);
// verify_reduce.c
MP_NODISCARD mp_status_t mp_verify_map(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_fusion(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reduce(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reduce_window(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_select_and_scatter(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sort(const mp_op_t *op);
// verify_linear.c
MP_NODISCARD mp_status_t mp_verify_cholesky(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_dot(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_dot_general(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_fft(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_triangular_solve(const mp_op_t *op);
// verify_convolution.c
MP_NODISCARD mp_status_t mp_verify_convolution(const mp_op_t *op);
// verify_random.c
MP_NODISCARD mp_status_t mp_verify_rng(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_rng_bit_generator(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_batch_norm(const mp_op_t *op);
// verify_control.c
MP_NODISCARD mp_status_t mp_verify_after_all(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_async_done(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_async_start(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_case(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_custom_call(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_get_tuple_element(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_infeed(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_nothing(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_optimization_barrier(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_outfeed(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sugar(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_tuple(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_unsupported(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_while(const mp_op_t *op);
// verify_collective.c
MP_NODISCARD mp_status_t mp_verify_all_gather(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_all_reduce(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_all_to_all(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_collective_broadcast(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_collective_permute(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_cross_replica_sum(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_device_id(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_exchange(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_recv(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_reduce_scatter(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_send(const mp_op_t *op);
// verify_sdy_ops.c
MP_NODISCARD mp_status_t mp_verify_sdy_manual_computation(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sdy_named_computation(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sdy_propagation_barrier(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sdy_sharding(const mp_op_t *op);
MP_NODISCARD mp_status_t mp_verify_sdy_sharding_group(const mp_op_t *op);

#endif  // MINIPOD_SIM_IR_VERIFY_VERIFY_RULES_H_
