// Scores, their mask, and the order of dimensions, for both directions.
#include <math.h>

#include "sim/ir/layout.h"
#include "sim/passes/attention/attention_impl.h"

// The number of dimensions before a row's length: batch, heads, and group if it is not 1.
static uint32_t attention_scores_leading(const mp_attention_call_t *call) {
  return call->sizes.group == 1 ? 2 : 3;
}

mp_value_t *mp_attention_array(mp_attention_build_t *b, const mp_attention_call_t *call,
                               mp_value_t *a, bool has_group) {
  const mp_attention_sizes_t *n = &call->sizes;
  a = mp_attention_convert(b, a, MP_DTYPE_F32);
  if (!call->heads_first) a = mp_attention_transpose(b, a, MP_ATTENTION_DIMS(0, 2, 1, 3));
  if (b->status != NULL || !has_group || n->group == 1) return a;
  return mp_attention_reshape(
      b, a, MP_ATTENTION_DIMS(n->batch, n->heads, n->group, n->queries, a->type->dims[3]));
}

// [queries, keys]: the position of the query, and that of the key.
static void attention_scores_positions(mp_attention_build_t *b, const mp_attention_call_t *call,
                                       mp_value_t **out_query, mp_value_t **out_key) {
  const mp_attention_dims_t dims = MP_ATTENTION_DIMS(call->sizes.queries, call->sizes.keys);
  *out_query = mp_attention_iota(b, 0, dims);
  *out_key = mp_attention_iota(b, 1, dims);
}

static mp_value_t *attention_scores_and(mp_attention_build_t *b, mp_value_t *x, mp_value_t *y) {
  return x == NULL ? y : mp_attention_binary(b, MP_OP_AND, x, y);
}

// A key is valid for queries at its position and after it, within the window.
static mp_value_t *attention_scores_causal(mp_attention_build_t *b,
                                           const mp_attention_call_t *call) {
  mp_value_t *query, *key;
  attention_scores_positions(b, call, &query, &key);
  mp_value_t *mask = mp_attention_compare(b, MP_CMP_GE, query, key);
  if (call->window == 0 || b->status != NULL) return mask;
  mp_value_t *distance = mp_attention_binary(b, MP_OP_SUBTRACT, query, key);
  if (b->status != NULL) return NULL;
  mp_value_t *window = mp_attention_integer(b, distance->type, (int32_t)call->window);
  return attention_scores_and(b, mask, mp_attention_compare(b, MP_CMP_LT, distance, window));
}

// Positions before the length of the sequence; `dim` is that of the positions in `like`.
static mp_value_t *attention_scores_inside(mp_attention_build_t *b, mp_value_t *lengths,
                                           int64_t dim, const mp_type_t *like) {
  mp_attention_dims_t dims = {.count = like->rank};
  for (uint32_t d = 0; d < like->rank; ++d) dims.values[d] = like->dims[d];
  mp_value_t *position = mp_attention_iota(b, dim, dims);
  mp_value_t *length = mp_attention_broadcast(b, lengths, MP_ATTENTION_DIMS(0), like);
  return mp_attention_compare(b, MP_CMP_LT, position, length);
}

static mp_value_t *attention_scores_mask(mp_attention_build_t *b, const mp_attention_call_t *call,
                                         const mp_type_t *like) {
  const uint32_t rows = attention_scores_leading(call);
  mp_value_t *mask = NULL;
  if (call->is_causal)
    mask = mp_attention_broadcast(b, attention_scores_causal(b, call),
                                  MP_ATTENTION_DIMS(rows, rows + 1), like);
  if (call->key_lengths == NULL) return mask;
  mask = attention_scores_and(b, mask, attention_scores_inside(b, call->query_lengths, rows, like));
  return attention_scores_and(b, mask,
                              attention_scores_inside(b, call->key_lengths, rows + 1, like));
}

// The bias, of which batch and heads may be 1, for every score.
static mp_value_t *attention_scores_bias(mp_attention_build_t *b, const mp_attention_call_t *call,
                                         const mp_type_t *like) {
  const mp_attention_sizes_t *n = &call->sizes;
  const int64_t *dims = call->bias->type->dims;
  mp_value_t *bias = mp_attention_convert(b, call->bias, MP_DTYPE_F32);
  if (n->group == 1) return mp_attention_broadcast(b, bias, MP_ATTENTION_DIMS(0, 1, 2, 3), like);
  const bool has_heads = dims[1] != 1;
  bias = mp_attention_reshape(b, bias,
                              MP_ATTENTION_DIMS(dims[0], has_heads ? n->heads : 1,
                                                has_heads ? n->group : 1, n->queries, n->keys));
  return mp_attention_broadcast(b, bias, MP_ATTENTION_DIMS(0, 1, 2, 3, 4), like);
}

mp_value_t *mp_attention_scores(mp_attention_build_t *b, const mp_attention_call_t *call,
                                mp_value_t *query, mp_value_t *key, mp_value_t **out_mask) {
  const uint32_t rows = attention_scores_leading(call);
  mp_value_t *scores =
      mp_attention_dot(b, query, key, MP_ATTENTION_DIMS(rows + 1), MP_ATTENTION_DIMS(3));
  *out_mask = NULL;
  if (b->status != NULL) return NULL;
  const mp_type_t *type = scores->type;
  scores =
      mp_attention_binary(b, MP_OP_MULTIPLY, scores, mp_attention_number(b, type, call->scale));
  if (call->bias != NULL)
    scores = mp_attention_binary(b, MP_OP_ADD, scores, attention_scores_bias(b, call, type));
  *out_mask = attention_scores_mask(b, call, type);
  if (*out_mask == NULL) return scores;
  return mp_attention_select(b, *out_mask, scores, mp_attention_number(b, type, -(double)INFINITY));
}

mp_value_t *mp_attention_rows(mp_attention_build_t *b, mp_value_t *rows, const mp_type_t *like) {
  mp_attention_dims_t at = {.count = like->rank - 1};
  for (uint32_t d = 0; d < at.count; ++d) at.values[d] = d;
  return mp_attention_broadcast(b, rows, at, like);
}

// The planner's order of the result's dimensions in memory: memory's k-th is the program's
// values[k]-th.
static bool attention_scores_order(const mp_op_t *op, uint32_t index,
                                   mp_attention_dims_t *out_order) {
  const mp_attr_t *layouts = mp_op_attr(op, MP_ATTR_RESULT_LAYOUTS);
  if (layouts == NULL || index >= layouts->u.array.count) return false;
  const int64_t *minor_to_major = layouts->u.array.items[index]->u.ints.values;
  out_order->count = op->results[index].type->rank;
  if (mp_layout_is_row_major(minor_to_major, out_order->count)) return false;
  for (uint32_t k = 0; k < out_order->count; ++k)
    out_order->values[k] = mp_layout_logical(minor_to_major, out_order->count, k);
  return true;
}

mp_value_t *mp_attention_result(mp_attention_build_t *b, const mp_attention_call_t *call,
                                uint32_t index, mp_value_t *value) {
  const mp_op_t *op = call->op;
  if (b->status != NULL) return NULL;
  if (index >= op->num_results) {
    b->status =
        mp_op_error(op, MP_INVALID_ARGUMENT, "cuDNN's attention has %u results", op->num_results);
    return NULL;
  }
  const mp_type_t *type = op->results[index].type;
  mp_attention_dims_t order;
  value = mp_attention_convert(b, value, type->dtype);
  if (attention_scores_order(op, index, &order)) value = mp_attention_transpose(b, value, order);
  if (b->status == NULL && !mp_type_equal(value->type, type))
    b->status = mp_op_error(op, MP_INVALID_ARGUMENT,
                            "result %u of cuDNN's attention does not fit its operands", index);
  return value;
}
