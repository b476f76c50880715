// Building sharding rules: what the makers of the rules (rules_*.c) share.
//
// A maker adds factors, and appends them to dimensions of tensors: operands 0 .. num_operands - 1,
// then results. The order of a dimension's factors is major to minor.
#ifndef MINIPOD_SIM_SPMD_RULES_RULE_BUILDER_H_
#define MINIPOD_SIM_SPMD_RULES_RULE_BUILDER_H_

#include "sim/base/containers/array.h"
#include "sim/spmd/rules/rules.h"

typedef struct {
  mp_arena_t *arena;
  const mp_op_t *op;
  uint32_t num_tensors;
  mp_rule_class_t priority;
  bool is_elementwise;
  bool has_no_rule;  // set by a maker that finds that this op needs replication after all
  MP_ARRAY(mp_factor_t) factors;
  mp_dim_factors_t **tensors;  // [num_tensors][rank]
} mp_rule_builder_t;

typedef mp_status_t (*mp_rule_maker_t)(mp_rule_builder_t *builder);

MP_NODISCARD mp_status_t mp_rule_builder_start(mp_arena_t *arena, const mp_op_t *op,
                                               mp_rule_builder_t *out_builder);
MP_NODISCARD mp_status_t mp_rule_builder_finish(const mp_rule_builder_t *builder,
                                                const mp_rule_t **out_rule);

// The type of operand `tensor`, or of result `tensor` - num_operands.
const mp_type_t *mp_rule_type(const mp_rule_builder_t *builder, uint32_t tensor);
uint32_t mp_rule_rank(const mp_rule_builder_t *builder, uint32_t tensor);  // 0: not a tensor
uint32_t mp_rule_result(const mp_rule_builder_t *builder, uint32_t result);

// A factor that no dimension has yet.
MP_NODISCARD mp_status_t mp_rule_add_factor(mp_rule_builder_t *builder, int64_t size,
                                            mp_factor_kind_t kind, bool is_blocked,
                                            uint16_t *out_factor);
// Appends the factor to a dimension. A factor of size 1 says nothing beside others: it is left out.
MP_NODISCARD mp_status_t mp_rule_put(mp_rule_builder_t *builder, uint32_t tensor, int64_t dim,
                                     uint16_t factor);

// A new factor in dimensions of two or three tensors at once; a negative dimension: not in it.
typedef struct {
  uint32_t tensor;
  int64_t dim;
} mp_rule_place_t;
MP_NODISCARD mp_status_t mp_rule_add(mp_rule_builder_t *builder, int64_t size,
                                     mp_factor_kind_t kind, const mp_rule_place_t *places,
                                     uint32_t num_places);
// A new factor in dimension `dim` of the tensors `first` .. `last` - 1 that have ranks.
MP_NODISCARD mp_status_t mp_rule_add_range(mp_rule_builder_t *builder, int64_t size,
                                           mp_factor_kind_t kind, bool is_blocked, uint32_t first,
                                           uint32_t last, uint32_t dim);
// The same for all tensors.
MP_NODISCARD mp_status_t mp_rule_add_all(mp_rule_builder_t *builder, int64_t size,
                                         mp_factor_kind_t kind, bool is_blocked, uint32_t dim);

// ---- the makers, by subject ----

// rules.c
MP_NODISCARD mp_status_t mp_rule_make_pointwise(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_generator(mp_rule_builder_t *builder);
// rules_shape.c
MP_NODISCARD mp_status_t mp_rule_make_bitcast_convert(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_broadcast_in_dim(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_concatenate(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_dynamic_slice(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_dynamic_update_slice(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_pad(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reshape(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reverse(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_slice(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_transpose(mp_rule_builder_t *builder);
// rules_linear.c
MP_NODISCARD mp_status_t mp_rule_make_cholesky(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_convolution(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_dot_general(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_fft(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_triangular_solve(mp_rule_builder_t *builder);
// rules_reduce.c
MP_NODISCARD mp_status_t mp_rule_make_batch_norm_inference(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reduce(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reduce_window(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_rng_bit_generator(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_select_and_scatter(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_sort(mp_rule_builder_t *builder);
// rules_index.c
MP_NODISCARD mp_status_t mp_rule_make_gather(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_scatter(mp_rule_builder_t *builder);
// rules_call.c
MP_NODISCARD mp_status_t mp_rule_make_custom_call(mp_rule_builder_t *builder);
// The rule that an op carries itself.
MP_NODISCARD mp_status_t mp_rule_make_stated(mp_rule_builder_t *builder,
                                             const mp_sharding_rule_t *stated);
// rules_collective.c
MP_NODISCARD mp_status_t mp_rule_make_all_gather(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_all_to_all(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reduce_scatter(mp_rule_builder_t *builder);

#endif  // MINIPOD_SIM_SPMD_RULES_RULE_BUILDER_H_
