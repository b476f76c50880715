// Building sharding rules; shared by the makers of the rules (rules_*.c).
//
// A maker adds factors and appends them to dimensions of tensors. Tensors are numbered: first the
// operands, then the results. The factors of a dimension are ordered from major to minor.
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
  bool has_no_rule;  // a maker sets this when this particular op needs replication
  MP_ARRAY(mp_factor_t) factors;
  mp_dim_factors_t **tensors;  // [num_tensors][rank]
} mp_rule_builder_t;

typedef mp_status_t (*mp_rule_maker_t)(mp_rule_builder_t *builder);

// Begins the rule of an op, without factors; everything is allocated in `arena`.
MP_NODISCARD mp_status_t mp_rule_builder_start(mp_arena_t *arena, const mp_op_t *op,
                                               mp_rule_builder_t *out_builder);
// Makes the rule of what was added.
MP_NODISCARD mp_status_t mp_rule_builder_finish(const mp_rule_builder_t *builder,
                                                const mp_rule_t **out_rule);

// The type of a tensor.
const mp_type_t *mp_rule_type(const mp_rule_builder_t *builder, uint32_t tensor);
// The rank of a tensor; 0 for values of other types.
uint32_t mp_rule_rank(const mp_rule_builder_t *builder, uint32_t tensor);
// The number of a result as a tensor.
uint32_t mp_rule_result(const mp_rule_builder_t *builder, uint32_t result);

// Adds a factor that no dimension has yet. RESOURCE_EXHAUSTED when there are too many.
MP_NODISCARD mp_status_t mp_rule_add_factor(mp_rule_builder_t *builder, int64_t size,
                                            mp_factor_kind_t kind, bool is_blocked,
                                            uint16_t *out_factor);
// Appends the factor to a dimension. A factor of size 1 is left out if the dimension has others.
MP_NODISCARD mp_status_t mp_rule_put(mp_rule_builder_t *builder, uint32_t tensor, int64_t dim,
                                     uint16_t factor);

// A dimension of a tensor; negative: none.
typedef struct {
  uint32_t tensor;
  int64_t dim;
} mp_rule_place_t;
// Adds a factor and appends it to the dimension at each place.
MP_NODISCARD mp_status_t mp_rule_add(mp_rule_builder_t *builder, int64_t size,
                                     mp_factor_kind_t kind, const mp_rule_place_t *places,
                                     uint32_t num_places);
// Adds a factor and appends it to dimension `dim` of the tensors `first` .. `last` - 1, as far as
// they have that dimension.
MP_NODISCARD mp_status_t mp_rule_add_range(mp_rule_builder_t *builder, int64_t size,
                                           mp_factor_kind_t kind, bool is_blocked, uint32_t first,
                                           uint32_t last, uint32_t dim);
// The same for all tensors.
MP_NODISCARD mp_status_t mp_rule_add_all(mp_rule_builder_t *builder, int64_t size,
                                         mp_factor_kind_t kind, bool is_blocked, uint32_t dim);

// ---- the makers, by subject ----
//
// A maker adds the factors of one op, which is verified. The rules are those of Shardy's op
// sharding rule registry (shardy/dialect/sdy/transforms/propagation/op_sharding_rule_registry.cc).

// rules_pointwise.c
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
// The rule that an op states itself with the attribute sdy.sharding_rule.
MP_NODISCARD mp_status_t mp_rule_make_stated(mp_rule_builder_t *builder,
                                             const mp_sharding_rule_t *stated);
// rules_collective.c
MP_NODISCARD mp_status_t mp_rule_make_all_gather(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_all_to_all(mp_rule_builder_t *builder);
MP_NODISCARD mp_status_t mp_rule_make_reduce_scatter(mp_rule_builder_t *builder);

#endif  // MINIPOD_SIM_SPMD_RULES_RULE_BUILDER_H_
