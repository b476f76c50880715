// The driver of desugaring, and the short rules.
#include "sim/passes/desugar/desugar.h"

#include "sim/passes/desugar/desugar_impl.h"
#include "sim/passes/rewrite/rewrite.h"

// In the result of a broadcast the new dimensions come first.
static mp_status_t desugar_broadcast(mp_module_t *module, mp_op_t *op) {
  const uint32_t rank = op->operands[0]->type->rank;
  const uint32_t added = mp_op_ints(op, MP_ATTR_BROADCAST_SIZES).count;
  int64_t *dims = MP_ARENA_ARRAY(module->arena, int64_t, rank);
  MP_RETURN_IF_NULL(dims);
  for (uint32_t d = 0; d < rank; ++d) dims[d] = added + d;
  mp_named_attr_t attr;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_BROADCAST_DIMENSIONS, dims, rank, &attr));
  return mp_rewrite_become(module, op, MP_OP_BROADCAST_IN_DIM, &attr, 1);
}

// A dot contracts the last dimension of the left side with the first of the right side.
static mp_status_t desugar_dot(mp_module_t *module, mp_op_t *op) {
  const uint32_t rank = op->operands[0]->type->rank;
  if (rank == 0 || op->operands[1]->type->rank == 0) {
    return mp_op_error(op, MP_INVALID_ARGUMENT, "operands of rank 0");
  }
  mp_named_attr_t attrs[2];
  const int64_t left = rank - 1;
  const int64_t right = 0;
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(module, MP_ATTR_LHS_CONTRACTING_DIMENSIONS, &left, 1, &attrs[0]));
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(module, MP_ATTR_RHS_CONTRACTING_DIMENSIONS, &right, 1, &attrs[1]));
  return mp_rewrite_become(module, op, MP_OP_DOT_GENERAL, attrs, 2);
}

static mp_status_t desugar_create_token(mp_module_t *module, mp_op_t *op) {
  return mp_rewrite_become(module, op, MP_OP_AFTER_ALL, NULL, 0);
}

static mp_status_t desugar_sdy_constant(mp_module_t *module, mp_op_t *op) {
  return mp_rewrite_become(module, op, MP_OP_CONSTANT, NULL, 0);
}

static mp_status_t desugar_cross_replica_sum(mp_module_t *module, mp_op_t *op) {
  MP_RETURN_IF_ERROR(mp_desugar_mesh_groups(module, op));
  mp_block_t **regions = MP_ARENA_ARRAY(module->arena, mp_block_t *, 1);
  MP_RETURN_IF_NULL(regions);
  MP_RETURN_IF_ERROR(mp_block_create_reducer(module, MP_OP_ADD, op->operands[0]->type->dtype,
                                             op->loc, &regions[0]));
  MP_RETURN_IF_ERROR(mp_rewrite_become(module, op, MP_OP_ALL_REDUCE, NULL, 0));
  regions[0]->parent_op = op;
  op->regions = regions;
  op->num_regions = 1;
  return NULL;
}

// Branch 0 of the case is for true, so the branch index is the negated predicate.
static mp_status_t desugar_if(mp_module_t *module, mp_op_t *op) {
  const mp_type_t *index_type = NULL;
  MP_RETURN_IF_ERROR(mp_type_tensor(module->arena, MP_DTYPE_S32, NULL, 0, &index_type));
  mp_value_t *value = op->operands[0];
  MP_RETURN_IF_ERROR(mp_rewrite_insert(module, op, MP_OP_NOT, &value, 1, value->type, &value));
  MP_RETURN_IF_ERROR(mp_rewrite_insert(module, op, MP_OP_CONVERT, &value, 1, index_type, &value));
  MP_RETURN_IF_ERROR(mp_rewrite_set_operands(module, op, &value, 1));
  return mp_rewrite_become(module, op, MP_OP_CASE, NULL, 0);
}

// The dimension numbers of the gather that takes whole slices along `dim`. The result has the
// operand's dimensions before `dim`, then the index's (without the batching ones, which both
// share), then the operand's after `dim`.
static mp_status_t desugar_index_select_attrs(mp_module_t *module, const mp_op_t *op, int64_t dim,
                                              int64_t batch, mp_named_attr_t attrs[7]) {
  const mp_type_t *operand = op->operands[0]->type;
  const int64_t index_rank = op->operands[1]->type->rank;
  int64_t sizes[MP_MAX_RANK], offsets[MP_MAX_RANK], batching[MP_MAX_RANK];
  uint32_t num_offsets = 0;
  for (int64_t d = 0; d < (int64_t)operand->rank; ++d) {
    const bool is_whole = d >= batch && d != dim;
    sizes[d] = is_whole ? operand->dims[d] : 1;
    if (is_whole) offsets[num_offsets++] = d < dim ? d : d - 1 + index_rank - batch;
  }
  for (int64_t d = 0; d < batch; ++d) batching[d] = d;
  const uint32_t num_batching = (uint32_t)batch;
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_OFFSET_DIMS, offsets, num_offsets, &attrs[0]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_COLLAPSED_SLICE_DIMS, &dim, 1, &attrs[1]));
  MP_RETURN_IF_ERROR(
      mp_rewrite_ints(module, MP_ATTR_OPERAND_BATCHING_DIMS, batching, num_batching, &attrs[2]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_START_INDICES_BATCHING_DIMS, batching,
                                     num_batching, &attrs[3]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_START_INDEX_MAP, &dim, 1, &attrs[4]));
  MP_RETURN_IF_ERROR(mp_rewrite_ints(module, MP_ATTR_SLICE_SIZES, sizes, operand->rank, &attrs[5]));
  const mp_attr_t *vector_dim = NULL;
  MP_RETURN_IF_ERROR(mp_attr_make_int(module->arena, MP_DTYPE_S64, index_rank, &vector_dim));
  attrs[6] = mp_rewrite_attr(MP_ATTR_INDEX_VECTOR_DIM, vector_dim);
  return NULL;
}

static mp_status_t desugar_torch_index_select(mp_module_t *module, mp_op_t *op) {
  const int64_t dim = mp_op_int(op, MP_ATTR_DIM, 0);
  const int64_t batch = mp_op_int(op, MP_ATTR_BATCH_DIMS, 0);
  const uint32_t rank = op->operands[0]->type->rank;
  if (batch < 0 || dim < batch || dim >= (int64_t)rank || rank > MP_MAX_RANK ||
      batch > (int64_t)op->operands[1]->type->rank) {
    return mp_op_error(op, MP_INVALID_ARGUMENT,
                       "dim %lld and batch_dims %lld do not fit operands of rank %u and %u",
                       (long long)dim, (long long)batch, rank, op->operands[1]->type->rank);
  }
  if (!mp_type_is_static(op->operands[0]->type)) return NULL;
  mp_named_attr_t attrs[7];
  MP_RETURN_IF_ERROR(desugar_index_select_attrs(module, op, dim, batch, attrs));
  return mp_rewrite_become(module, op, MP_OP_GATHER, attrs, 7);
}

static mp_status_t desugar_call(mp_module_t *module, mp_op_t *op) {
  bool is_buffer = false;
  MP_RETURN_IF_ERROR(mp_desugar_buffer_call(module, op, &is_buffer));
  return is_buffer ? NULL : mp_desugar_function_call(module, op);
}

typedef mp_status_t (*mp_desugar_rule_t)(mp_module_t *module, mp_op_t *op);

static const mp_desugar_rule_t g_rules[MP_OP_COUNT] = {
    [MP_OP_ALL_GATHER] = mp_desugar_mesh_groups,
    [MP_OP_ALL_REDUCE] = mp_desugar_mesh_groups,
    [MP_OP_ALL_TO_ALL] = mp_desugar_mesh_groups,
    [MP_OP_BROADCAST] = desugar_broadcast,
    [MP_OP_COLLECTIVE_BROADCAST] = mp_desugar_mesh_groups,
    [MP_OP_COLLECTIVE_REDUCE] = mp_desugar_mesh_groups,
    [MP_OP_CREATE_TOKEN] = desugar_create_token,
    [MP_OP_CROSS_REPLICA_SUM] = desugar_cross_replica_sum,
    [MP_OP_CUSTOM_CALL] = desugar_call,
    [MP_OP_DOT] = desugar_dot,
    [MP_OP_DYNAMIC_BROADCAST_IN_DIM] = mp_desugar_dynamic_broadcast_in_dim,
    [MP_OP_DYNAMIC_CONV] = mp_desugar_dynamic_conv,
    [MP_OP_DYNAMIC_GATHER] = mp_desugar_dynamic_gather,
    [MP_OP_DYNAMIC_IOTA] = mp_desugar_dynamic_iota,
    [MP_OP_DYNAMIC_PAD] = mp_desugar_dynamic_pad,
    [MP_OP_DYNAMIC_RESHAPE] = mp_desugar_dynamic_reshape,
    [MP_OP_EINSUM] = mp_desugar_einsum,
    [MP_OP_GET_DIMENSION_SIZE] = mp_desugar_get_dimension_size,
    [MP_OP_IF] = desugar_if,
    [MP_OP_REAL_DYNAMIC_SLICE] = mp_desugar_real_dynamic_slice,
    [MP_OP_REDUCE_SCATTER] = mp_desugar_mesh_groups,
    [MP_OP_SDY_CONSTANT] = desugar_sdy_constant,
    [MP_OP_TORCH_INDEX_SELECT] = desugar_torch_index_select,
    [MP_OP_UNARY_EINSUM] = mp_desugar_unary_einsum,
};

static bool desugar_is_product(mp_opcode_t code) {
  return code == MP_OP_DOT || code == MP_OP_DOT_GENERAL || code == MP_OP_EINSUM ||
         code == MP_OP_CONVOLUTION || code == MP_OP_DYNAMIC_CONV;
}

static mp_status_t desugar_visit(void *context, mp_op_t *op) {
  if (desugar_is_product(op->code)) MP_RETURN_IF_ERROR(mp_desugar_product(context, op, &op));
  const mp_desugar_rule_t rule = g_rules[op->code];
  return rule == NULL ? NULL : rule(context, op);
}

mp_status_t mp_pass_desugar(mp_module_t *module) {
  MP_RETURN_IF_ERROR(mp_pass_flatten(module));
  MP_RETURN_IF_ERROR(mp_desugar_buffers(module));
  return mp_module_walk(module, desugar_visit, module);
}
