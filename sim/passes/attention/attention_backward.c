// Gradients of queries, keys, values and bias. Weights are recomputed from the scores and the
// logarithms of their sums.
#include <math.h>

#include "sim/passes/attention/attention_impl.h"

// [batch, all heads, queries] as [batch, heads, group, queries].
static mp_value_t *attention_backward_split(mp_attention_build_t *b,
                                            const mp_attention_call_t *call, mp_value_t *rows) {
  const mp_attention_sizes_t *n = &call->sizes;
  if (n->group == 1) return rows;
  return mp_attention_reshape(b, rows, MP_ATTENTION_DIMS(n->batch, n->heads, n->group, n->queries));
}

// exp(scores - logarithm of the row's sum); zero where a score does not count.
static mp_value_t *attention_backward_weights(mp_attention_build_t *b,
                                              const mp_attention_call_t *call, mp_value_t *scores,
                                              mp_value_t *mask) {
  if (b->status != NULL) return NULL;
  const mp_type_t *type = scores->type;
  mp_value_t *lse = mp_attention_rows(b, attention_backward_split(b, call, call->lse), type);
  mp_value_t *weights =
      mp_attention_unary(b, MP_OP_EXPONENTIAL, mp_attention_binary(b, MP_OP_SUBTRACT, scores, lse));
  if (mask == NULL) return weights;
  return mp_attention_select(b, mask, weights, mp_attention_number(b, type, 0));
}

// The gradient of the bias: the sum of the scores' gradients for each element.
static mp_value_t *attention_backward_bias(mp_attention_build_t *b, const mp_attention_call_t *call,
                                           mp_value_t *scores) {
  const mp_attention_sizes_t *n = &call->sizes;
  const int64_t *dims = call->bias->type->dims, heads = n->heads * n->group;
  mp_attention_dims_t added = {0};
  scores = mp_attention_reshape(b, scores, MP_ATTENTION_DIMS(n->batch, heads, n->queries, n->keys));
  if (dims[0] == 1) added.values[added.count++] = 0;
  if (dims[1] == 1) added.values[added.count++] = 1;
  if (added.count != 0) scores = mp_attention_reduce(b, MP_OP_ADD, scores, added);
  return mp_attention_reshape(b, scores, MP_ATTENTION_DIMS(dims[0], dims[1], n->queries, n->keys));
}

// The gradient of the scores: weights * (gradient of the weights - its mean by the weights). The
// mean is the sum of gradient * output, but the call's output has been rounded.
static mp_value_t *attention_backward_scores(mp_attention_build_t *b, mp_value_t *weights,
                                             mp_value_t *value, mp_value_t *gradient) {
  if (b->status != NULL) return NULL;
  const mp_type_t *type = weights->type;
  const uint32_t last = type->rank - 1;
  mp_value_t *of_weights =
      mp_attention_dot(b, gradient, value, MP_ATTENTION_DIMS(last), MP_ATTENTION_DIMS(3));
  mp_value_t *mean =
      mp_attention_reduce(b, MP_OP_ADD, mp_attention_binary(b, MP_OP_MULTIPLY, weights, of_weights),
                          MP_ATTENTION_DIMS(last));
  mean = mp_attention_rows(b, mean, type);
  of_weights = mp_attention_binary(b, MP_OP_SUBTRACT, of_weights, mean);
  return mp_attention_binary(b, MP_OP_MULTIPLY, weights, of_weights);
}

// [batch, heads, (group,) queries, width] as [batch, all heads, queries, width].
static mp_value_t *attention_backward_join(mp_attention_build_t *b, const mp_attention_call_t *call,
                                           mp_value_t *a) {
  const mp_attention_sizes_t *n = &call->sizes;
  return mp_attention_reshape(
      b, a, MP_ATTENTION_DIMS(n->batch, n->heads * n->group, n->queries, n->width));
}

void mp_attention_backward(mp_attention_build_t *b, const mp_attention_call_t *call,
                           mp_value_t **results) {
  mp_value_t *mask = NULL;
  mp_value_t *query = mp_attention_array(b, call, call->query, true);
  mp_value_t *key = mp_attention_array(b, call, call->key, false);
  mp_value_t *value = mp_attention_array(b, call, call->value, false);
  mp_value_t *gradient = mp_attention_array(b, call, call->gradient, true);
  mp_value_t *scores = mp_attention_scores(b, call, query, key, &mask);
  mp_value_t *weights = attention_backward_weights(b, call, scores, mask);
  scores = attention_backward_scores(b, weights, value, gradient);
  if (b->status != NULL) return;
  const uint32_t rank = scores->type->rank;
  // All dimensions of the queries: the group, if there is one, and the position.
  mp_attention_dims_t rows = {.count = rank - 3, .values = {2, 3}};
  mp_value_t *of_value = mp_attention_dot(b, weights, gradient, rows, rows);
  mp_value_t *of_bias = call->bias == NULL ? NULL : attention_backward_bias(b, call, scores);
  scores = mp_attention_binary(b, MP_OP_MULTIPLY, scores,
                               mp_attention_number(b, scores->type, call->scale));
  mp_value_t *of_query =
      mp_attention_dot(b, scores, key, MP_ATTENTION_DIMS(rank - 1), MP_ATTENTION_DIMS(2));
  mp_value_t *of_key = mp_attention_dot(b, scores, query, rows, rows);
  results[0] = mp_attention_result(b, call, 0, attention_backward_join(b, call, of_query));
  results[1] = mp_attention_result(b, call, 1, of_key);
  results[2] = mp_attention_result(b, call, 2, of_value);
  if (of_bias != NULL && call->op->num_results > 3 && call->op->results[3].type->rank == 4)
    results[3] = mp_attention_result(b, call, 3, of_bias);
}
