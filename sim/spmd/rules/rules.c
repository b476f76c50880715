// The rule maker of each op: one row for every op of the list. If an op has no row, this file does
// not compile. REPLICATE marks ops that need replication, FLOW those along which shardings
// propagate by the values of their regions (propagate_items.c), and GONE those that no longer exist
// when programs reach the partitioner.
#include "sim/spmd/rules/rules.h"

#include "sim/spmd/rules/rule_builder.h"
#include "sim/spmd/sharding/annotations.h"

#define REPLICATE   NULL
#define FLOW        NULL
#define GONE        NULL
#define RULE(name)  mp_rule_make_##name
#define ELEMENTWISE RULE(pointwise)

// clang-format off
#define ROW_ABS                         ELEMENTWISE
#define ROW_ADD                         ELEMENTWISE
#define ROW_AFTER_ALL                   REPLICATE
#define ROW_ALL_GATHER                  RULE(all_gather)
#define ROW_ALL_REDUCE                  RULE(pointwise)
#define ROW_ALL_TO_ALL                  RULE(all_to_all)
#define ROW_AND                         ELEMENTWISE
#define ROW_ASYNC_DONE                  GONE
#define ROW_ASYNC_START                 GONE
#define ROW_ATAN2                       ELEMENTWISE
#define ROW_BATCH_NORM_GRAD             REPLICATE
#define ROW_BATCH_NORM_INFERENCE        RULE(batch_norm_inference)
#define ROW_BATCH_NORM_TRAINING         REPLICATE
#define ROW_BITCAST_CONVERT             RULE(bitcast_convert)
#define ROW_BROADCAST                   GONE
#define ROW_BROADCAST_IN_DIM            RULE(broadcast_in_dim)
#define ROW_CASE                        FLOW
#define ROW_CBRT                        ELEMENTWISE
#define ROW_CEIL                        ELEMENTWISE
#define ROW_CHOLESKY                    RULE(cholesky)
#define ROW_CLAMP                       ELEMENTWISE
#define ROW_COLLECTIVE_BROADCAST        RULE(pointwise)
#define ROW_COLLECTIVE_PERMUTE          RULE(pointwise)
#define ROW_COLLECTIVE_REDUCE           REPLICATE
#define ROW_COMPARE                     ELEMENTWISE
#define ROW_COMPLEX                     ELEMENTWISE
#define ROW_COMPOSITE                   GONE
#define ROW_CONCATENATE                 RULE(concatenate)
#define ROW_CONSTANT                    RULE(generator)
#define ROW_CONVERT                     ELEMENTWISE
#define ROW_CONVOLUTION                 RULE(convolution)
#define ROW_COSINE                      ELEMENTWISE
#define ROW_COUNT_LEADING_ZEROS         ELEMENTWISE
#define ROW_CREATE_TOKEN                GONE
#define ROW_CROSS_REPLICA_SUM           GONE
#define ROW_CUSTOM_CALL                 RULE(custom_call)
#define ROW_DIVIDE                      ELEMENTWISE
#define ROW_DOT                         GONE
#define ROW_DOT_GENERAL                 RULE(dot_general)
#define ROW_DYNAMIC_BROADCAST_IN_DIM    GONE
#define ROW_DYNAMIC_CONV                GONE
#define ROW_DYNAMIC_GATHER              GONE
#define ROW_DYNAMIC_IOTA                GONE
#define ROW_DYNAMIC_PAD                 GONE
#define ROW_DYNAMIC_RESHAPE             GONE
#define ROW_DYNAMIC_SLICE               RULE(dynamic_slice)
#define ROW_DYNAMIC_UPDATE_SLICE        RULE(dynamic_update_slice)
#define ROW_EINSUM                      GONE
#define ROW_EXPONENTIAL                 ELEMENTWISE
#define ROW_EXPONENTIAL_MINUS_ONE       ELEMENTWISE
#define ROW_FFT                         RULE(fft)
#define ROW_FLOOR                       ELEMENTWISE
#define ROW_GATHER                      RULE(gather)
#define ROW_GET_DIMENSION_SIZE          GONE
#define ROW_GET_TUPLE_ELEMENT           GONE
#define ROW_IF                          GONE
#define ROW_IMAG                        ELEMENTWISE
#define ROW_INFEED                      REPLICATE
#define ROW_IOTA                        RULE(generator)
#define ROW_IS_FINITE                   ELEMENTWISE
#define ROW_LOG                         ELEMENTWISE
#define ROW_LOG_PLUS_ONE                ELEMENTWISE
#define ROW_LOGISTIC                    ELEMENTWISE
#define ROW_MAP                         REPLICATE
#define ROW_MAXIMUM                     ELEMENTWISE
#define ROW_MINIMUM                     ELEMENTWISE
#define ROW_MULTIPLY                    ELEMENTWISE
#define ROW_NEGATE                      ELEMENTWISE
#define ROW_NOT                         ELEMENTWISE
#define ROW_OPTIMIZATION_BARRIER        FLOW
#define ROW_OR                          ELEMENTWISE
#define ROW_OUTFEED                     REPLICATE
#define ROW_PAD                         RULE(pad)
#define ROW_PARTITION_ID                REPLICATE
#define ROW_POPCNT                      ELEMENTWISE
#define ROW_POWER                       ELEMENTWISE
#define ROW_REAL                        ELEMENTWISE
#define ROW_REAL_DYNAMIC_SLICE          GONE
#define ROW_RECV                        REPLICATE
#define ROW_REDUCE                      RULE(reduce)
#define ROW_REDUCE_PRECISION            ELEMENTWISE
#define ROW_REDUCE_SCATTER              RULE(reduce_scatter)
#define ROW_REDUCE_WINDOW               RULE(reduce_window)
#define ROW_REMAINDER                   ELEMENTWISE
#define ROW_REPLICA_ID                  REPLICATE
#define ROW_RESHAPE                     RULE(reshape)
#define ROW_RETURN                      GONE
#define ROW_REVERSE                     RULE(reverse)
#define ROW_RNG                         REPLICATE
#define ROW_RNG_BIT_GENERATOR           RULE(rng_bit_generator)
#define ROW_ROUND_NEAREST_AFZ           ELEMENTWISE
#define ROW_ROUND_NEAREST_EVEN          ELEMENTWISE
#define ROW_RSQRT                       ELEMENTWISE
#define ROW_SCATTER                     RULE(scatter)
#define ROW_SELECT                      ELEMENTWISE
#define ROW_SELECT_AND_SCATTER          RULE(select_and_scatter)
#define ROW_SEND                        REPLICATE
#define ROW_SET_DIMENSION_SIZE          REPLICATE
#define ROW_SHIFT_LEFT                  ELEMENTWISE
#define ROW_SHIFT_RIGHT_ARITHMETIC      ELEMENTWISE
#define ROW_SHIFT_RIGHT_LOGICAL         ELEMENTWISE
#define ROW_SIGN                        ELEMENTWISE
#define ROW_SINE                        ELEMENTWISE
#define ROW_SLICE                       RULE(slice)
#define ROW_SORT                        RULE(sort)
#define ROW_SQRT                        ELEMENTWISE
#define ROW_SUBTRACT                    ELEMENTWISE
#define ROW_TAN                         ELEMENTWISE
#define ROW_TANH                        ELEMENTWISE
#define ROW_TORCH_INDEX_SELECT          GONE
#define ROW_TRANSPOSE                   RULE(transpose)
#define ROW_TRIANGULAR_SOLVE            RULE(triangular_solve)
#define ROW_TUPLE                       GONE
#define ROW_UNARY_EINSUM                GONE
#define ROW_UNIFORM_DEQUANTIZE          REPLICATE
#define ROW_UNIFORM_QUANTIZE            REPLICATE
#define ROW_WHILE                       FLOW
#define ROW_XOR                         ELEMENTWISE
#define ROW_CALL                        GONE
#define ROW_SDY_ALL_GATHER              GONE
#define ROW_SDY_ALL_REDUCE              GONE
#define ROW_SDY_ALL_SLICE               GONE
#define ROW_SDY_ALL_TO_ALL              GONE
#define ROW_SDY_COLLECTIVE_PERMUTE      GONE
#define ROW_SDY_CONSTANT                GONE
#define ROW_SDY_DATA_FLOW_EDGE          GONE
#define ROW_SDY_MANUAL_COMPUTATION      FLOW
#define ROW_SDY_NAMED_COMPUTATION       GONE
#define ROW_SDY_PROPAGATION_BARRIER     RULE(pointwise)
#define ROW_SDY_REDUCE_SCATTER          GONE
#define ROW_SDY_REPLICATED_TO_UNREDUCED GONE
#define ROW_SDY_RESHARD                 RULE(pointwise)
#define ROW_SDY_SHARDED_TO_UNREDUCED    GONE
#define ROW_SDY_SHARDING_CONSTRAINT     RULE(pointwise)
#define ROW_SDY_SHARDING_GROUP          FLOW
#define ROW_EXCHANGE                    GONE
#define ROW_FUSION                      REPLICATE
// clang-format on

static const mp_rule_maker_t g_makers[MP_OP_COUNT] = {
#define ROW(name, ...) [MP_OP_##name] = ROW_##name,
    MP_OPS(ROW)
#undef ROW
};

static bool rules_has_only_tensors(const mp_op_t *op) {
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    if (!mp_type_is_tensor(op->operands[i]->type)) return false;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (!mp_type_is_tensor(op->results[i].type)) return false;
  }
  return true;
}

mp_status_t mp_rule_create(mp_arena_t *arena, const mp_op_t *op, const mp_rule_t **out_rule) {
  *out_rule = NULL;
  const mp_attr_t *stated = mp_op_attr(op, MP_ATTR_SDY_SHARDING_RULE);
  const bool is_stated = stated != NULL && stated->kind == MP_KIND_SHARDING_RULE;
  const mp_rule_maker_t make = g_makers[op->code];
  if ((make == NULL && !is_stated) || op->num_results == 0 || !rules_has_only_tensors(op))
    return NULL;
  mp_rule_builder_t builder;
  MP_RETURN_IF_ERROR(mp_rule_builder_start(arena, op, &builder));
  MP_RETURN_IF_ERROR(is_stated ? mp_rule_make_stated(&builder, stated->u.rule) : make(&builder));
  return builder.has_no_rule ? NULL : mp_rule_builder_finish(&builder, out_rule);
}

// ---- as an attribute ----

// The state of converting a rule to an attribute. Dimensions without factors get one of size 1,
// numbered after the rule's own.
typedef struct {
  mp_arena_t *arena;
  const mp_rule_t *rule;
  int64_t *sizes;
  uint32_t num_sizes;
} rule_export_t;

static mp_status_t rules_list_factors(const rule_export_t *e, mp_factor_kind_t kind,
                                      mp_index_list_t *out_list) {
  int64_t *factors = MP_ARENA_ARRAY(e->arena, int64_t, e->rule->num_factors);
  MP_RETURN_IF_NULL(factors);
  *out_list = (mp_index_list_t){0, factors};
  for (uint32_t f = 0; f < e->rule->num_factors; ++f) {
    if (e->rule->factors[f].kind == kind) factors[out_list->count++] = f;
  }
  return NULL;
}

static mp_status_t rules_export_tensor(rule_export_t *e, const mp_type_t *type,
                                       const mp_dim_factors_t *dims,
                                       mp_tensor_mapping_t *out_mapping) {
  mp_index_list_t *lists = MP_ARENA_ARRAY(e->arena, mp_index_list_t, type->rank);
  MP_RETURN_IF_NULL(lists);
  for (uint32_t d = 0; d < type->rank; ++d) {
    const uint32_t count = dims[d].count == 0 ? 1 : dims[d].count;
    int64_t *factors = MP_ARENA_ARRAY(e->arena, int64_t, count);
    MP_RETURN_IF_NULL(factors);
    for (uint32_t i = 0; i < dims[d].count; ++i) factors[i] = dims[d].factors[i];
    if (dims[d].count == 0) {
      factors[0] = e->num_sizes;
      e->sizes[e->num_sizes++] = 1;
    }
    lists[d] = (mp_index_list_t){count, factors};
  }
  *out_mapping = (mp_tensor_mapping_t){type->rank, lists};
  return NULL;
}

static const mp_type_t *rules_tensor_type(const mp_op_t *op, uint32_t tensor) {
  return tensor < op->num_operands ? op->operands[tensor]->type
                                   : op->results[tensor - op->num_operands].type;
}

static mp_status_t rules_export_blocked(const rule_export_t *e, mp_index_list_t *out_list) {
  int64_t *factors = MP_ARENA_ARRAY(e->arena, int64_t, e->rule->num_factors);
  MP_RETURN_IF_NULL(factors);
  *out_list = (mp_index_list_t){0, factors};
  for (uint32_t f = 0; f < e->rule->num_factors; ++f) {
    if (e->rule->factors[f].blocked) factors[out_list->count++] = f;
  }
  return NULL;
}

mp_status_t mp_rule_export(mp_arena_t *arena, const mp_op_t *op, const mp_rule_t *rule,
                           const mp_attr_t **out_attr) {
  const uint32_t num_tensors = rule->num_operands + rule->num_results;
  uint32_t capacity = rule->num_factors;
  for (uint32_t t = 0; t < num_tensors; ++t) capacity += rules_tensor_type(op, t)->rank;
  mp_sharding_rule_t *out = MP_ARENA_NEW(arena, mp_sharding_rule_t);
  mp_attr_t *attr = MP_ARENA_NEW(arena, mp_attr_t);
  mp_tensor_mapping_t *tensors = MP_ARENA_ARRAY(arena, mp_tensor_mapping_t, num_tensors);
  rule_export_t e = {arena, rule, MP_ARENA_ARRAY(arena, int64_t, capacity), rule->num_factors};
  if (out == NULL || attr == NULL || tensors == NULL || e.sizes == NULL) {
    return mp_status_out_of_memory();
  }
  for (uint32_t f = 0; f < rule->num_factors; ++f) e.sizes[f] = rule->factors[f].size;
  for (uint32_t t = 0; t < num_tensors; ++t) {
    MP_RETURN_IF_ERROR(
        rules_export_tensor(&e, rules_tensor_type(op, t), rule->tensors[t], &tensors[t]));
  }
  *out = (mp_sharding_rule_t){.factor_sizes = {e.num_sizes, e.sizes},
                              .num_operands = rule->num_operands,
                              .operands = tensors,
                              .num_results = rule->num_results,
                              .results = tensors + rule->num_operands};
  MP_RETURN_IF_ERROR(rules_list_factors(&e, MP_FACTOR_REDUCTION, &out->reduction));
  MP_RETURN_IF_ERROR(rules_list_factors(&e, MP_FACTOR_REPLICATE, &out->need_replication));
  MP_RETURN_IF_ERROR(rules_list_factors(&e, MP_FACTOR_PERMUTE, &out->permutation));
  MP_RETURN_IF_ERROR(rules_export_blocked(&e, &out->blocked_propagation));
  attr->kind = MP_KIND_SHARDING_RULE;
  attr->u.rule = out;
  *out_attr = attr;
  return NULL;
}
