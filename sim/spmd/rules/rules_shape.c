// Rules of ops that move elements.
#include "sim/spmd/rules/rule_builder.h"

// Adds a factor for each dimension of all tensors. Those that have the same size in operand and
// result are PASS.
static mp_status_t rules_shape_put_by_size(mp_rule_builder_t *builder, mp_factor_kind_t kind,
                                           bool is_blocked) {
  const mp_type_t *in = builder->op->operands[0]->type;
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_same = in->dims[d] == out->dims[d];
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, in->dims[d], is_same ? MP_FACTOR_PASS : kind,
                                       !is_same && is_blocked, d));
  }
  return NULL;
}

mp_status_t mp_rule_make_slice(mp_rule_builder_t *builder) {
  return rules_shape_put_by_size(builder, MP_FACTOR_PERMUTE, false);
}

mp_status_t mp_rule_make_pad(mp_rule_builder_t *builder) {
  return rules_shape_put_by_size(builder, MP_FACTOR_PERMUTE, false);
}

mp_status_t mp_rule_make_dynamic_slice(mp_rule_builder_t *builder) {
  builder->priority = MP_RULE_FORWARD_FIRST;
  return rules_shape_put_by_size(builder, MP_FACTOR_REPLICATE, true);
}

// Along dimensions that the update fills, operand, update and result are PASS. Along others each
// part of the operand takes those elements of the update that fall into it. For this the update
// must be whole, unless its place is known because the start indices are constants.
mp_status_t mp_rule_make_dynamic_update_slice(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *in = op->operands[0]->type;
  const mp_type_t *update = op->operands[1]->type;
  const uint32_t out = mp_rule_result(builder, 0);
  bool is_constant = true;
  for (uint32_t i = 2; i < op->num_operands; ++i) {
    const mp_op_t *start = op->operands[i]->op;
    is_constant &= start != NULL && start->code == MP_OP_CONSTANT;
  }
  for (uint32_t d = 0; d < in->rank; ++d) {
    const bool is_whole = in->dims[d] == update->dims[d];
    MP_RETURN_IF_ERROR(
        mp_rule_add(builder, in->dims[d], MP_FACTOR_PASS,
                    (mp_rule_place_t[]){{0, d}, {1, is_whole ? (int64_t)d : -1}, {out, d}}, 3));
    if (is_whole) continue;
    MP_RETURN_IF_ERROR(mp_rule_add(builder, update->dims[d],
                                   is_constant ? MP_FACTOR_PASS : MP_FACTOR_REPLICATE,
                                   (mp_rule_place_t[]){{1, d}}, 1));
  }
  builder->priority = MP_RULE_FORWARD_FIRST;
  return NULL;
}

mp_status_t mp_rule_make_reverse(mp_rule_builder_t *builder) {
  const mp_index_list_t dims = mp_op_ints(builder->op, MP_ATTR_DIMENSIONS);
  const mp_type_t *out = builder->op->results[0].type;
  for (uint32_t d = 0; d < out->rank; ++d) {
    const bool is_reversed = mp_index_list_has(dims, d);
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, out->dims[d],
                                       is_reversed ? MP_FACTOR_PERMUTE : MP_FACTOR_PASS, false, d));
  }
  return NULL;
}

mp_status_t mp_rule_make_transpose(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_index_list_t permutation = mp_op_ints(op, MP_ATTR_PERMUTATION);
  for (uint32_t d = 0; d < op->results[0].type->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add(builder, op->results[0].type->dims[d], MP_FACTOR_PASS,
                                   (mp_rule_place_t[]){{0, permutation.values[d]}, {1, d}}, 2));
  }
  builder->priority = MP_RULE_PASS_THROUGH;
  return NULL;
}

mp_status_t mp_rule_make_broadcast_in_dim(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *in = op->operands[0]->type;
  const mp_type_t *out = op->results[0].type;
  const mp_index_list_t dims = mp_op_ints(op, MP_ATTR_BROADCAST_DIMENSIONS);
  for (uint32_t d = 0; d < out->rank; ++d) {
    int64_t from = -1;
    for (uint32_t i = 0; i < dims.count; ++i) {
      if (dims.values[i] == (int64_t)d) from = i;
    }
    if (from >= 0 && in->dims[from] != out->dims[d]) {  // its one element is repeated
      MP_RETURN_IF_ERROR(
          mp_rule_add(builder, 1, MP_FACTOR_PASS, (mp_rule_place_t[]){{0, from}}, 1));
      from = -1;
    }
    MP_RETURN_IF_ERROR(mp_rule_add(builder, out->dims[d], MP_FACTOR_PASS,
                                   (mp_rule_place_t[]){{0, from}, {1, d}}, 2));
  }
  builder->priority = MP_RULE_BACKWARD_FIRST;
  return NULL;
}

static const mp_value_t *rules_shape_before_slice(const mp_value_t *value) {
  return value->op != NULL && value->op->code == MP_OP_SLICE ? value->op->operands[0] : value;
}

// Whether the pieces are slices, or slices of one value and that value itself, as in a rotation, a
// shift or a wrapped border. Parts of these get elements from their neighbours.
static bool rules_shape_joins_slices(const mp_op_t *op) {
  uint32_t num_slices = 0;
  bool is_one_value = true;
  for (uint32_t i = 0; i < op->num_operands; ++i) {
    num_slices += rules_shape_before_slice(op->operands[i]) != op->operands[i];
    is_one_value &=
        rules_shape_before_slice(op->operands[i]) == rules_shape_before_slice(op->operands[0]);
  }
  return num_slices == op->num_operands || (is_one_value && num_slices != 0);
}

mp_status_t mp_rule_make_concatenate(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const mp_type_t *out = op->results[0].type;
  const int64_t along = mp_op_int(op, MP_ATTR_DIMENSION, 0);
  const mp_factor_kind_t joined =
      rules_shape_joins_slices(op) ? MP_FACTOR_PERMUTE : MP_FACTOR_REPLICATE;
  for (uint32_t d = 0; d < out->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, out->dims[d],
                                       (int64_t)d == along ? joined : MP_FACTOR_PASS, false, d));
  }
  return NULL;
}

// The type with smaller elements may have one more dimension at the end, for the pieces of the
// larger elements.
mp_status_t mp_rule_make_bitcast_convert(mp_rule_builder_t *builder) {
  const mp_type_t *types[2] = {builder->op->operands[0]->type, builder->op->results[0].type};
  const uint32_t longer = types[0]->rank < types[1]->rank;
  const mp_type_t *shape = types[1 - longer];
  for (uint32_t d = 0; d < shape->rank; ++d) {
    MP_RETURN_IF_ERROR(mp_rule_add_all(builder, shape->dims[d], MP_FACTOR_PASS, false, d));
  }
  if (types[0]->rank == types[1]->rank) {
    builder->is_elementwise = true;
    builder->priority = MP_RULE_PASS_THROUGH;
    return NULL;
  }
  return mp_rule_add(builder, types[longer]->dims[shape->rank], MP_FACTOR_REPLICATE,
                     (mp_rule_place_t[]){{longer, shape->rank}}, 1);
}

// ---- reshape ----

static int64_t rules_shape_gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// One side of a reshape, and the progress along its dimensions.
typedef struct {
  uint32_t tensor;
  const mp_type_t *type;
  uint32_t dim;
  int64_t left;  // what remains of the current dimension; 0: it has not begun
  int64_t done;  // the product of the factors so far
} reshape_side_t;

// Begins the next dimension when one has ended; dimensions of size 1 get a factor of their own.
// Sets `left` to its size, or to 1 after the last one.
static mp_status_t rules_shape_begin_dim(mp_rule_builder_t *builder, reshape_side_t *side,
                                         int64_t *out_left) {
  for (; side->dim < side->type->rank && side->type->dims[side->dim] == 1; ++side->dim) {
    MP_RETURN_IF_ERROR(
        mp_rule_add(builder, 1, MP_FACTOR_PASS, (mp_rule_place_t[]){{side->tensor, side->dim}}, 1));
  }
  *out_left = 1;
  if (side->dim == side->type->rank) return NULL;
  if (side->left == 0) side->left = side->type->dims[side->dim];
  *out_left = side->left;
  return NULL;
}

static void rules_shape_advance(reshape_side_t *side, int64_t factor) {
  side->done *= factor;
  side->left /= factor;
  if (side->left > 1) return;
  side->left = 0;
  ++side->dim;
}

static mp_status_t rules_shape_put_own(mp_rule_builder_t *builder, reshape_side_t *side,
                                       int64_t factor) {
  MP_RETURN_IF_ERROR(mp_rule_add(builder, factor, MP_FACTOR_PASS,
                                 (mp_rule_place_t[]){{side->tensor, side->dim}}, 1));
  rules_shape_advance(side, factor);
  return NULL;
}

// The size of the factor that the side with the smaller product gets for itself when the products
// differ. With it, the products are equal again if possible; otherwise it is so small that the
// common divisor of both dimensions remains.
static int64_t rules_shape_catch_up(int64_t left, int64_t common, int64_t behind, int64_t ahead) {
  if (ahead % behind == 0 && left % (ahead / behind) == 0) return ahead / behind;
  return left > common ? left / common : left;
}

// Walks along both shapes from their major ends. A common divisor of the sizes becomes a common
// factor. When there is none, each side gets factors of its own until the products are equal again.
mp_status_t mp_rule_make_reshape(mp_rule_builder_t *builder) {
  reshape_side_t in = {.tensor = 0, .type = builder->op->operands[0]->type, .done = 1};
  reshape_side_t out = {.tensor = 1, .type = builder->op->results[0].type, .done = 1};
  int64_t elements = 0;
  if (!mp_type_num_elements(in.type, &elements) || elements == 0) {
    builder->has_no_rule = true;  // there is nothing to shard
    return NULL;
  }
  builder->priority = MP_RULE_PASS_THROUGH;
  for (;;) {
    int64_t in_left = 1;
    int64_t out_left = 1;
    MP_RETURN_IF_ERROR(rules_shape_begin_dim(builder, &in, &in_left));
    MP_RETURN_IF_ERROR(rules_shape_begin_dim(builder, &out, &out_left));
    if (in_left == 1 && out_left == 1) return NULL;
    const int64_t common = rules_shape_gcd(in_left, out_left);
    if (in.done < out.done) {
      MP_RETURN_IF_ERROR(rules_shape_put_own(
          builder, &in, rules_shape_catch_up(in_left, common, in.done, out.done)));
    } else if (in.done > out.done) {
      MP_RETURN_IF_ERROR(rules_shape_put_own(
          builder, &out, rules_shape_catch_up(out_left, common, out.done, in.done)));
    } else if (common > 1) {
      MP_RETURN_IF_ERROR(mp_rule_add(builder, common, MP_FACTOR_PASS,
                                     (mp_rule_place_t[]){{0, in.dim}, {1, out.dim}}, 2));
      rules_shape_advance(&in, common);
      rules_shape_advance(&out, common);
    } else {
      MP_RETURN_IF_ERROR(rules_shape_put_own(builder, &in, in_left));
      MP_RETURN_IF_ERROR(rules_shape_put_own(builder, &out, out_left));
    }
  }
}
