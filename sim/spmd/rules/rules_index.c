// Rules of gather and scatter, which are alike: both have a (large) array, indices of slices of it,
// and an array of the slices.
#include "sim/spmd/rules/rule_builder.h"

// The dimension numbers of either op, under common names.
typedef struct {
  bool is_scatter;
  const mp_op_t *op;
  const mp_type_t *array, *indices, *slices;
  mp_index_list_t windows;  // dimensions of the slices that are dimensions of the array
  mp_index_list_t dropped;  // dimensions of the array that the slices do not have
  mp_index_list_t array_batching, indices_batching;
  int64_t index_vector_dim;
} slicing_t;

// A dimension of the array (and of scatter's result), of the indices and of the slices; a negative
// one stands for none.
typedef struct {
  int64_t array, indices, slices;
} dims_t;

// Adds a factor to the dimensions. Scatter has several arrays and as many slices.
static mp_status_t rules_index_put_slicing(mp_rule_builder_t *builder, const slicing_t *s,
                                           int64_t size, mp_factor_kind_t kind, bool is_blocked,
                                           dims_t dims) {
  uint16_t factor = 0;
  MP_RETURN_IF_ERROR(mp_rule_add_factor(builder, size, kind, is_blocked, &factor));
  const uint32_t count = s->is_scatter ? s->op->num_results : 1;
  const uint32_t num_tensors = builder->num_tensors;
  for (uint32_t t = 0; t < num_tensors; ++t) {
    // The tensors of gather are array, indices -> slices; those of scatter are arrays, indices,
    // slices -> arrays.
    const bool is_array = t < count || (s->is_scatter && t >= num_tensors - count);
    const int64_t dim = is_array ? dims.array : t == count ? dims.indices : dims.slices;
    if (dim >= 0) MP_RETURN_IF_ERROR(mp_rule_put(builder, t, dim, factor));
  }
  return NULL;
}

// Whether the region is a reduction for which the updates may be applied in parts, and the results
// of the parts combined.
static bool rules_index_is_common_reduction(const mp_op_t *op) {
  const mp_op_t *end = mp_block_terminator(op->regions[0]);
  const mp_value_t *args = op->regions[0]->args;
  const uint32_t count = op->num_results;
  mp_opcode_t common = MP_OP_COUNT;
  if (end == NULL || end->num_operands != count || op->regions[0]->num_args != 2 * count) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const mp_op_t *combine = end->operands[i]->op;
    if (combine == NULL || combine->num_operands != 2) return false;
    const bool is_logical = combine->code == MP_OP_AND || combine->code == MP_OP_OR;
    const bool is_numeric = combine->code == MP_OP_ADD || combine->code == MP_OP_MULTIPLY ||
                            combine->code == MP_OP_MAXIMUM || combine->code == MP_OP_MINIMUM;
    if (!is_numeric && !(is_logical && end->operands[i]->type->dtype == MP_DTYPE_BOOL)) {
      return false;
    }
    if (i != 0 && combine->code != common) return false;
    common = combine->code;
    const mp_value_t *first = combine->operands[0];
    const mp_value_t *second = combine->operands[1];
    if (!(first == &args[i] && second == &args[count + i]) &&
        !(first == &args[count + i] && second == &args[i])) {
      return false;
    }
  }
  return true;
}

// Adds the factor of a dimension of the slices that is a dimension of the array.
static mp_status_t rules_index_put_window(mp_rule_builder_t *builder, const slicing_t *s,
                                          int64_t array_dim, int64_t slices_dim) {
  const int64_t array_size = s->array->dims[array_dim];
  const int64_t size = s->slices->dims[slices_dim];
  if (array_size == size) {
    return rules_index_put_slicing(builder, s, size, MP_FACTOR_PASS, false,
                                   (dims_t){array_dim, -1, slices_dim});
  }
  if (!s->is_scatter && size != 1) {
    return rules_index_put_slicing(builder, s, array_size, MP_FACTOR_REPLICATE, true,
                                   (dims_t){array_dim, -1, slices_dim});
  }
  // Slices have one element of this dimension: one part has it, and the others contribute nothing.
  MP_RETURN_IF_ERROR(rules_index_put_slicing(
      builder, s, array_size, s->is_scatter ? MP_FACTOR_REPLICATE : MP_FACTOR_REDUCTION, false,
      (dims_t){array_dim, -1, -1}));
  return rules_index_put_slicing(builder, s, size, MP_FACTOR_REPLICATE, false,
                                 (dims_t){-1, -1, slices_dim});
}

// Adds the factor of a dimension of the slices that is a dimension of the indices, and perhaps of
// the array.
static mp_status_t rules_index_put_index_batch(mp_rule_builder_t *builder, const slicing_t *s,
                                               int64_t indices_dim, int64_t slices_dim) {
  int64_t array_dim = -1;
  for (uint32_t i = 0; i < s->indices_batching.count; ++i) {
    if (s->indices_batching.values[i] == indices_dim) array_dim = s->array_batching.values[i];
  }
  mp_factor_kind_t kind = MP_FACTOR_PASS;
  if (s->is_scatter && array_dim < 0) {
    kind = rules_index_is_common_reduction(s->op) ? MP_FACTOR_REDUCTION : MP_FACTOR_REPLICATE;
  }
  return rules_index_put_slicing(builder, s, s->slices->dims[slices_dim], kind, false,
                                 (dims_t){array_dim, indices_dim, slices_dim});
}

static mp_status_t rules_index_put_dropped(mp_rule_builder_t *builder, const slicing_t *s) {
  for (uint32_t i = 0; i < s->dropped.count; ++i) {
    const int64_t dim = s->dropped.values[i];
    const int64_t size = s->array->dims[dim];
    const mp_factor_kind_t gathered = size == 1 ? MP_FACTOR_REPLICATE : MP_FACTOR_REDUCTION;
    MP_RETURN_IF_ERROR(rules_index_put_slicing(
        builder, s, size, s->is_scatter ? MP_FACTOR_PASS : gathered, false, (dims_t){dim, -1, -1}));
  }
  return NULL;
}

static mp_status_t rules_index_put_all(mp_rule_builder_t *builder, const slicing_t *s) {
  int64_t array_dim = 0;
  int64_t batch = 0;
  for (uint32_t d = 0; d < s->slices->rank; ++d) {
    if (mp_index_list_has(s->windows, d)) {
      while (mp_index_list_has(s->dropped, array_dim) ||
             mp_index_list_has(s->array_batching, array_dim)) {
        ++array_dim;
      }
      MP_RETURN_IF_ERROR(rules_index_put_window(builder, s, array_dim++, d));
    } else {
      const int64_t indices_dim = batch < s->index_vector_dim ? batch : batch + 1;
      MP_RETURN_IF_ERROR(rules_index_put_index_batch(builder, s, indices_dim, d));
      ++batch;
    }
  }
  MP_RETURN_IF_ERROR(rules_index_put_dropped(builder, s));
  if (s->index_vector_dim >= (int64_t)s->indices->rank) return NULL;
  return rules_index_put_slicing(builder, s, s->indices->dims[s->index_vector_dim],
                                 MP_FACTOR_REPLICATE, false, (dims_t){-1, s->index_vector_dim, -1});
}

mp_status_t mp_rule_make_gather(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const slicing_t slicing = {
      .is_scatter = false,
      .op = op,
      .array = op->operands[0]->type,
      .indices = op->operands[1]->type,
      .slices = op->results[0].type,
      .windows = mp_op_ints(op, MP_ATTR_OFFSET_DIMS),
      .dropped = mp_op_ints(op, MP_ATTR_COLLAPSED_SLICE_DIMS),
      .array_batching = mp_op_ints(op, MP_ATTR_OPERAND_BATCHING_DIMS),
      .indices_batching = mp_op_ints(op, MP_ATTR_START_INDICES_BATCHING_DIMS),
      .index_vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, 0),
  };
  return rules_index_put_all(builder, &slicing);
}

mp_status_t mp_rule_make_scatter(mp_rule_builder_t *builder) {
  const mp_op_t *op = builder->op;
  const slicing_t slicing = {
      .is_scatter = true,
      .op = op,
      .array = op->operands[0]->type,
      .indices = op->operands[op->num_results]->type,
      .slices = op->operands[op->num_results + 1]->type,
      .windows = mp_op_ints(op, MP_ATTR_UPDATE_WINDOW_DIMS),
      .dropped = mp_op_ints(op, MP_ATTR_INSERTED_WINDOW_DIMS),
      .array_batching = mp_op_ints(op, MP_ATTR_INPUT_BATCHING_DIMS),
      .indices_batching = mp_op_ints(op, MP_ATTR_SCATTER_INDICES_BATCHING_DIMS),
      .index_vector_dim = mp_op_int(op, MP_ATTR_INDEX_VECTOR_DIM, 0),
  };
  return rules_index_put_all(builder, &slicing);
}
