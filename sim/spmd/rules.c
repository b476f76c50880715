#include "sim/spmd/rules.h"

#include <string.h>

#include "sim/spmd/annotations.h"

// --- building ---

// At most one factor per dimension of all tensors, and a few for reshapes.
typedef struct {
  mp_arena_t *arena;
  const mp_op_t *op;
  mp_rule_t *rule;
  mp_factor_t *factors;
  uint32_t capacity;
  mp_dim_factors_t **tensors;
} mp_rule_builder_t;

enum { MP_NO_FACTOR = 0xffff };

static const mp_type_t *tensor_type(const mp_op_t *op, uint32_t tensor) {
  return tensor < op->num_operands ? op->operands[tensor]->type
                                   : op->results[tensor - op->num_operands].type;
}

static mp_status_t start(mp_arena_t *arena, const mp_op_t *op, mp_rule_builder_t *out_builder) {
  const uint32_t num_tensors = op->num_operands + op->num_results;
  mp_rule_builder_t builder = {.arena = arena, .op = op};
  builder.rule = MP_ARENA_NEW(arena, mp_rule_t);
  builder.tensors = MP_ARENA_ARRAY(arena, mp_dim_factors_t *, num_tensors);
  if (builder.rule == NULL || builder.tensors == NULL) return mp_status_out_of_memory();
  for (uint32_t t = 0; t < num_tensors; ++t) {
    const mp_type_t *type = tensor_type(op, t);
    const uint32_t rank = mp_type_is_tensor(type) ? type->rank : 0;
    builder.capacity += 2 * rank + 1;
    builder.tensors[t] = MP_ARENA_ARRAY(arena, mp_dim_factors_t, rank);
    MP_RETURN_IF_NULL(builder.tensors[t]);
  }
  builder.factors = MP_ARENA_ARRAY(arena, mp_factor_t, builder.capacity);
  MP_RETURN_IF_NULL(builder.factors);
  *builder.rule = (mp_rule_t){.factors = builder.factors,
                              .num_operands = op->num_operands,
                              .num_results = op->num_results,
                              .tensors = (const mp_dim_factors_t *const *)builder.tensors};
  *out_builder = builder;
  return NULL;
}

static uint16_t add_factor(mp_rule_builder_t *builder, int64_t size, mp_factor_kind_t kind) {
  builder->factors[builder->rule->num_factors] = (mp_factor_t){size, kind, false};
  return (uint16_t)builder->rule->num_factors++;
}

// Appends a factor to a tensor's dimension.
static mp_status_t put(mp_rule_builder_t *builder, uint32_t tensor, uint32_t dim, uint16_t factor) {
  mp_dim_factors_t *entry = &builder->tensors[tensor][dim];
  uint16_t *factors = MP_ARENA_ARRAY(builder->arena, uint16_t, entry->count + 1);
  MP_RETURN_IF_NULL(factors);
  if (entry->count != 0) memcpy(factors, entry->factors, entry->count * sizeof(*factors));
  factors[entry->count] = factor;
  entry->factors = factors;
  ++entry->count;
  return NULL;
}

static uint32_t result_tensor(const mp_rule_builder_t *builder, uint32_t result) {
  return builder->op->num_operands + result;
}

static bool list_has(mp_index_list_t list, int64_t value) {
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.values[i] == value) return true;
  }
  return false;
}

typedef mp_status_t (*mp_rule_maker_t)(mp_rule_builder_t *builder);

// --- makers ---

// One factor per dimension of the first result, in every tensor of its shape; scalars have none.
static mp_status_t make_pointwise(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *shape = op->results[0].type;
  for (uint32_t d = 0; d < shape->rank; ++d) {
    const uint16_t factor = add_factor(builder, shape->dims[d], MP_FACTOR_PASS);
    for (uint32_t t = 0; t < op->num_operands + op->num_results; ++t) {
      if (!mp_type_same_shape(tensor_type(op, t), shape)) continue;
      MP_RETURN_IF_ERROR(put(builder, t, d, factor));
    }
  }
  builder->rule->priority = MP_RULE_PASS_THROUGH;
  builder->rule->is_elementwise = true;
  return NULL;
}

static mp_status_t make_transpose(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
  for (uint32_t d = 0; d < op->results[0].type->rank; ++d) {
    const uint16_t factor = add_factor(builder, op->results[0].type->dims[d], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, 0, (uint32_t)permutation.values[d], factor));
    MP_RETURN_IF_ERROR(put(builder, 1, d, factor));
  }
  builder->rule->priority = MP_RULE_PASS_THROUGH;
  return NULL;
}

static mp_status_t make_broadcast(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *in = op->operands[0]->type;
  const mp_type_t *out = op->results[0].type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  for (uint32_t d = 0; d < out->rank; ++d) {
    const uint16_t factor = add_factor(builder, out->dims[d], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, 1, d, factor));
    for (uint32_t i = 0; i < dims.count; ++i) {
      if (dims.values[i] != (int64_t)d) continue;
      uint16_t own = factor;
      if (in->dims[i] != out->dims[d]) own = add_factor(builder, in->dims[i], MP_FACTOR_PASS);
      MP_RETURN_IF_ERROR(put(builder, 0, i, own));
    }
  }
  builder->rule->priority = MP_RULE_BACKWARD_FIRST;
  return NULL;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Puts what is left of a diverged dimension: it belongs to its side alone.
static mp_status_t put_rest(mp_rule_builder_t *builder, uint32_t tensor, uint32_t dim,
                            int64_t size) {
  if (size <= 1) return NULL;
  return put(builder, tensor, dim, add_factor(builder, size, MP_FACTOR_PASS));
}

// Walks both shapes from the major end. Where the sizes share a divisor that factor is common; once
// they do not, the rest of the two dimensions up to the next common boundary is each side's own.
static mp_status_t make_reshape(mp_rule_builder_t *builder) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    if (in->dims[d] == 0) return NULL;  // nothing to shard
  }
  builder->rule->priority = MP_RULE_PASS_THROUGH;
  uint32_t i = 0;
  uint32_t j = 0;
  int64_t in_left = in->rank == 0 ? 1 : in->dims[0];
  int64_t out_left = out->rank == 0 ? 1 : out->dims[0];
  while (i < in->rank && j < out->rank) {
    if (in_left == 1) {
      if (++i < in->rank) in_left = in->dims[i];
      continue;
    }
    if (out_left == 1) {
      if (++j < out->rank) out_left = out->dims[j];
      continue;
    }
    int64_t common = gcd(in_left, out_left);
    if (common > 1 && (common == in_left || common == out_left)) {
      const uint16_t factor = add_factor(builder, common, MP_FACTOR_PASS);
      MP_RETURN_IF_ERROR(put(builder, 0, i, factor));
      MP_RETURN_IF_ERROR(put(builder, 1, j, factor));
      in_left /= common;
      out_left /= common;
      continue;
    }
    if (common > 1) {
      const uint16_t factor = add_factor(builder, common, MP_FACTOR_PASS);
      MP_RETURN_IF_ERROR(put(builder, 0, i, factor));
      MP_RETURN_IF_ERROR(put(builder, 1, j, factor));
      in_left /= common;
      out_left /= common;
    }
    // The rest of both dimensions, and all that follow until the products meet again.
    int64_t in_total = in_left;
    int64_t out_total = out_left;
    MP_RETURN_IF_ERROR(put_rest(builder, 0, i, in_left));
    MP_RETURN_IF_ERROR(put_rest(builder, 1, j, out_left));
    while (in_total != out_total) {
      if (in_total < out_total) {
        if (++i >= in->rank) return NULL;
        in_total *= in->dims[i];
        MP_RETURN_IF_ERROR(put_rest(builder, 0, i, in->dims[i]));
      } else {
        if (++j >= out->rank) return NULL;
        out_total *= out->dims[j];
        MP_RETURN_IF_ERROR(put_rest(builder, 1, j, out->dims[j]));
      }
    }
    in_left = out_left = 1;
  }
  return NULL;
}

static mp_status_t make_dot_general(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *lhs = op->operands[0]->type;
  const mp_type_t *rhs = op->operands[1]->type;
  const mp_index_list_t lb = mp_op_ints(op, MP_ATTR_LHS_BATCHING_DIMENSIONS);
  const mp_index_list_t rb = mp_op_ints(op, MP_ATTR_RHS_BATCHING_DIMENSIONS);
  const mp_index_list_t lc = mp_op_ints(op, MP_ATTR_LHS_CONTRACTING_DIMENSIONS);
  const mp_index_list_t rc = mp_op_ints(op, MP_ATTR_RHS_CONTRACTING_DIMENSIONS);
  uint32_t out = 0;
  for (uint32_t i = 0; i < lb.count; ++i) {
    const uint16_t factor = add_factor(builder, lhs->dims[lb.values[i]], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, 0, (uint32_t)lb.values[i], factor));
    MP_RETURN_IF_ERROR(put(builder, 1, (uint32_t)rb.values[i], factor));
    MP_RETURN_IF_ERROR(put(builder, 2, out++, factor));
  }
  for (uint32_t d = 0; d < lhs->rank; ++d) {
    if (list_has(lb, d) || list_has(lc, d)) continue;
    const uint16_t factor = add_factor(builder, lhs->dims[d], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, 0, d, factor));
    MP_RETURN_IF_ERROR(put(builder, 2, out++, factor));
  }
  for (uint32_t d = 0; d < rhs->rank; ++d) {
    if (list_has(rb, d) || list_has(rc, d)) continue;
    const uint16_t factor = add_factor(builder, rhs->dims[d], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, 1, d, factor));
    MP_RETURN_IF_ERROR(put(builder, 2, out++, factor));
  }
  for (uint32_t i = 0; i < lc.count; ++i) {
    const uint16_t factor = add_factor(builder, lhs->dims[lc.values[i]], MP_FACTOR_REDUCTION);
    MP_RETURN_IF_ERROR(put(builder, 0, (uint32_t)lc.values[i], factor));
    MP_RETURN_IF_ERROR(put(builder, 1, (uint32_t)rc.values[i], factor));
  }
  return NULL;
}

// Inputs, then as many scalar initial values.
static mp_status_t make_reduce(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const uint32_t num_inputs = op->num_results;
  const mp_index_list_t reduced = mp_op_ints(op, MP_ATTR_DIMENSIONS);
  const mp_type_t *in = op->operands[0]->type;
  uint32_t out = 0;
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_reduced = list_has(reduced, d);
    const uint16_t factor =
        add_factor(builder, in->dims[d], is_reduced ? MP_FACTOR_REDUCTION : MP_FACTOR_PASS);
    for (uint32_t i = 0; i < num_inputs; ++i) {
      MP_RETURN_IF_ERROR(put(builder, i, d, factor));
      if (!is_reduced) MP_RETURN_IF_ERROR(put(builder, result_tensor(builder, i), out, factor));
    }
    out += !is_reduced;
  }
  return NULL;
}

// Every dimension of the result is free.
static mp_status_t make_generator(mp_rule_builder_t *builder) {
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < out->rank; ++d) {
    const uint16_t factor = add_factor(builder, out->dims[d], MP_FACTOR_PASS);
    MP_RETURN_IF_ERROR(put(builder, result_tensor(builder, 0), d, factor));
  }
  return NULL;
}

static mp_status_t make_concatenate(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *out = op->results[0].type;
  const int64_t along = mp_op_int(op, MP_ATTR_DIMENSION, 0);
  for (uint32_t d = 0; d < out->rank; ++d) {
    const uint16_t factor = add_factor(builder, out->dims[d],
                                       (int64_t)d == along ? MP_FACTOR_REPLICATE : MP_FACTOR_PASS);
    for (uint32_t t = 0; t <= op->num_operands; ++t) MP_RETURN_IF_ERROR(put(builder, t, d, factor));
  }
  return NULL;
}

// Operand 0 against result 0, dimension by dimension: the untouched ones pass.
static mp_status_t put_same_or(mp_rule_builder_t *builder, uint32_t dim, bool is_touched,
                               mp_factor_kind_t touched) {
  const mp_op_t *op = builder->op;
  const int64_t size = op->operands[0]->type->dims[dim];
  const uint16_t factor = add_factor(builder, size, is_touched ? touched : MP_FACTOR_PASS);
  MP_RETURN_IF_ERROR(put(builder, 0, dim, factor));
  return put(builder, result_tensor(builder, 0), dim, factor);
}

static mp_status_t make_slice(mp_rule_builder_t *builder) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    MP_RETURN_IF_ERROR(put_same_or(builder, d, in->dims[d] != out->dims[d], MP_FACTOR_PERMUTE));
  }
  return NULL;
}

static mp_status_t make_reverse(mp_rule_builder_t *builder) {
  const mp_index_list_t dims = mp_op_ints(builder->op, MP_ATTR_DIMENSIONS);
  for (uint32_t d = 0; d < builder->op->results[0].type->rank; ++d) {
    MP_RETURN_IF_ERROR(put_same_or(builder, d, list_has(dims, d), MP_FACTOR_PERMUTE));
  }
  return NULL;
}

static mp_status_t make_pad(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_index_list_t low = mp_op_ints(op, MP_ATTR_EDGE_PADDING_LOW);
  const mp_index_list_t high = mp_op_ints(op, MP_ATTR_EDGE_PADDING_HIGH);
  const mp_index_list_t interior = mp_op_ints(op, MP_ATTR_INTERIOR_PADDING);
  for (uint32_t d = 0; d < op->results[0].type->rank; ++d) {
    const bool is_touched = low.values[d] != 0 || high.values[d] != 0 || interior.values[d] != 0;
    MP_RETURN_IF_ERROR(put_same_or(builder, d, is_touched, MP_FACTOR_PERMUTE));
  }
  return NULL;
}

static mp_status_t make_dynamic_slice(mp_rule_builder_t *builder) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_sliced = in->dims[d] != out->dims[d];
    MP_RETURN_IF_ERROR(put_same_or(builder, d, is_sliced, MP_FACTOR_REPLICATE));
    builder->factors[builder->rule->num_factors - 1].blocked = is_sliced;
  }
  builder->rule->priority = MP_RULE_FORWARD_FIRST;
  return NULL;
}

static mp_status_t make_dynamic_update_slice(mp_rule_builder_t *builder) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *update = builder->op->operands[1]->type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    MP_RETURN_IF_ERROR(put_same_or(builder, d, false, MP_FACTOR_PASS));
    uint16_t factor = (uint16_t)(builder->rule->num_factors - 1);
    if (in->dims[d] != update->dims[d]) {
      factor = add_factor(builder, update->dims[d], MP_FACTOR_REPLICATE);
    }
    MP_RETURN_IF_ERROR(put(builder, 1, d, factor));
  }
  builder->rule->priority = MP_RULE_FORWARD_FIRST;
  return NULL;
}

static mp_status_t make_sort(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *shape = op->results[0].type;
  int64_t along = mp_op_int(op, MP_ATTR_DIMENSION, -1);
  if (along < 0) along += shape->rank;
  bool is_alone = true;
  for (uint32_t d = 0; d < shape->rank; ++d) is_alone &= (int64_t)d == along || shape->dims[d] == 1;
  for (uint32_t d = 0; d < shape->rank; ++d) {
    const bool is_sorted = (int64_t)d == along;
    const uint16_t factor =
        add_factor(builder, shape->dims[d], is_sorted ? MP_FACTOR_REPLICATE : MP_FACTOR_PASS);
    builder->factors[factor].blocked = is_sorted && is_alone;
    for (uint32_t t = 0; t < op->num_operands + op->num_results; ++t) {
      MP_RETURN_IF_ERROR(put(builder, t, d, factor));
    }
  }
  return NULL;
}

// The dimensions before the last `matrix` ones are independent problems.
static mp_status_t put_batched(mp_rule_builder_t *builder, uint32_t matrix) {
  const mp_op_t *op = builder->op;
  const uint32_t rank = op->operands[0]->type->rank;
  for (uint32_t d = 0; d + matrix < rank; ++d) {
    const uint16_t factor = add_factor(builder, op->operands[0]->type->dims[d], MP_FACTOR_PASS);
    for (uint32_t t = 0; t < op->num_operands + op->num_results; ++t) {
      MP_RETURN_IF_ERROR(put(builder, t, d, factor));
    }
  }
  for (uint32_t t = 0; t < op->num_operands + op->num_results; ++t) {
    for (uint32_t d = rank - matrix; d < tensor_type(op, t)->rank; ++d) {
      const uint16_t factor = add_factor(builder, tensor_type(op, t)->dims[d], MP_FACTOR_REPLICATE);
      MP_RETURN_IF_ERROR(put(builder, t, d, factor));
    }
  }
  return NULL;
}

static mp_status_t make_matrix(mp_rule_builder_t *builder) {
  return put_batched(builder, 2);
}

static mp_status_t make_fft(mp_rule_builder_t *builder) {
  return put_batched(builder, mp_op_ints(builder->op, MP_ATTR_FFT_LENGTH).count);
}

// --- the table ---

static mp_rule_maker_t maker_of(const mp_op_t *op) {
  if (mp_op_info(op->code)->traits & MP_OP_TRAIT_ELEMENTWISE) return make_pointwise;
  if (mp_is_placement_op(op)) return make_pointwise;
  switch (op->code) {
    case MP_OP_ALL_REDUCE:
    case MP_OP_COLLECTIVE_PERMUTE:
      return op->num_results == 1 ? make_pointwise : NULL;
    case MP_OP_TRANSPOSE:
      return make_transpose;
    case MP_OP_BROADCAST_IN_DIM:
      return make_broadcast;
    case MP_OP_RESHAPE:
      return make_reshape;
    case MP_OP_DOT_GENERAL:
      return make_dot_general;
    case MP_OP_REDUCE:
      return make_reduce;
    case MP_OP_IOTA:
    case MP_OP_CONSTANT:
      return make_generator;
    case MP_OP_CONCATENATE:
      return make_concatenate;
    case MP_OP_SLICE:
      return make_slice;
    case MP_OP_REVERSE:
      return make_reverse;
    case MP_OP_PAD:
      return make_pad;
    case MP_OP_DYNAMIC_SLICE:
      return make_dynamic_slice;
    case MP_OP_DYNAMIC_UPDATE_SLICE:
      return make_dynamic_update_slice;
    case MP_OP_SORT:
      return make_sort;
    case MP_OP_CHOLESKY:
    case MP_OP_TRIANGULAR_SOLVE:
      return make_matrix;
    case MP_OP_FFT:
      return make_fft;
    default:
      return NULL;
  }
}

mp_status_t mp_rule_create(mp_arena_t *arena, const mp_op_t *op, const mp_rule_t **out_rule) {
  *out_rule = NULL;
  mp_rule_maker_t maker = maker_of(op);
  if (maker == NULL || op->num_results == 0) return NULL;
  for (uint32_t t = 0; t < op->num_operands + op->num_results; ++t) {
    if (!mp_type_is_tensor(tensor_type(op, t))) return NULL;
  }
  mp_rule_builder_t builder;
  MP_RETURN_IF_ERROR(start(arena, op, &builder));
  MP_RETURN_IF_ERROR(maker(&builder));
  *out_rule = builder.rule;
  return NULL;
}
