// softmax(scale * q k^T + bias) v, and the logarithm of each row's sum for the backward call.
#include <math.h>

#include "sim/passes/attention/attention_impl.h"

// select(predicate(a, number), number, a).
static mp_value_t *attention_forward_instead(mp_attention_build_t *b, mp_value_t *a, double number,
                                             double instead) {
  if (b->status != NULL) return NULL;
  mp_value_t *is = mp_attention_compare(b, MP_CMP_EQ, a, mp_attention_number(b, a->type, number));
  return mp_attention_select(b, is, mp_attention_number(b, a->type, instead), a);
}

// [batch, heads, (group,) queries, ...] as [batch, all heads, queries, ...].
static mp_value_t *attention_forward_join(mp_attention_build_t *b, const mp_attention_call_t *call,
                                          mp_value_t *a, bool has_width) {
  const mp_attention_sizes_t *n = &call->sizes;
  if (b->status != NULL || n->group == 1) return a;
  mp_attention_dims_t dims =
      MP_ATTENTION_DIMS(n->batch, n->heads * n->group, n->queries, n->value_width);
  dims.count = has_width ? 4 : 3;
  return mp_attention_reshape(b, a, dims);
}

// The result that is [batch, heads, queries] of f32, if the call has one.
static bool attention_forward_find_lse(const mp_op_t *op, uint32_t *out_index) {
  for (uint32_t i = 1; i < op->num_results; ++i) {
    const mp_type_t *type = op->results[i].type;
    *out_index = i;
    if (mp_type_is_tensor(type) && type->dtype == MP_DTYPE_F32 && type->rank == 3) return true;
  }
  return false;
}

void mp_attention_forward(mp_attention_build_t *b, const mp_attention_call_t *call,
                          mp_value_t **results) {
  mp_value_t *mask = NULL;
  mp_value_t *query = mp_attention_array(b, call, call->query, true);
  mp_value_t *key = mp_attention_array(b, call, call->key, false);
  mp_value_t *value = mp_attention_array(b, call, call->value, false);
  mp_value_t *scores = mp_attention_scores(b, call, query, key, &mask);
  if (b->status != NULL) return;
  const mp_type_t *type = scores->type;
  const uint32_t last = type->rank - 1;
  mp_value_t *most = mp_attention_reduce(b, MP_OP_MAXIMUM, scores, MP_ATTENTION_DIMS(last));
  // A row without valid scores is zero.
  if (mask != NULL) most = attention_forward_instead(b, most, -(double)INFINITY, 0);
  mp_value_t *weights = mp_attention_unary(
      b, MP_OP_EXPONENTIAL,
      mp_attention_binary(b, MP_OP_SUBTRACT, scores, mp_attention_rows(b, most, type)));
  mp_value_t *sum = mp_attention_reduce(b, MP_OP_ADD, weights, MP_ATTENTION_DIMS(last));
  mp_value_t *divisor = mask == NULL ? sum : attention_forward_instead(b, sum, 0, 1);
  weights = mp_attention_binary(b, MP_OP_DIVIDE, weights, mp_attention_rows(b, divisor, type));
  mp_value_t *output =
      mp_attention_dot(b, weights, value, MP_ATTENTION_DIMS(last), MP_ATTENTION_DIMS(2));
  results[0] = mp_attention_result(b, call, 0, attention_forward_join(b, call, output, true));
  uint32_t at = 0;
  if (!attention_forward_find_lse(call->op, &at)) return;
  mp_value_t *lse = mp_attention_binary(b, MP_OP_ADD, most, mp_attention_unary(b, MP_OP_LOG, sum));
  results[at] = mp_attention_result(b, call, at, attention_forward_join(b, call, lse, false));
}
