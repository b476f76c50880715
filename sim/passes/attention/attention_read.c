// Reads a call: its name, its backend_config (XLA's GpuBackendConfig as JSON), its operands.
#include "sim/ir/layout.h"
#include "sim/passes/attention/attention_impl.h"
#include "sim/work/foreign_text.h"

#define PREFIX "__cudnn$fmha"

bool mp_attention_is_call(const mp_op_t *op) {
  return op->code == MP_OP_CUSTOM_CALL &&
         mp_str_starts_with(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME), PREFIX);
}

static mp_status_t attention_read_refuse(const mp_op_t *op, const char *what) {
  return mp_op_error(op, MP_UNIMPLEMENTED, "cuDNN's attention with %s is not supported (%.*s)",
                     what, MP_STR_ARG(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME)));
}

static mp_status_t attention_read_malformed(const mp_op_t *op, const char *what) {
  return mp_op_error(op, MP_INVALID_ARGUMENT, "%s of %.*s", what,
                     MP_STR_ARG(mp_op_str(op, MP_ATTR_CALL_TARGET_NAME)));
}

// ---- the config ----

static bool attention_read_has(mp_str_t text, const char *word) {
  mp_str_t rest;
  return mp_foreign_find_word(text, word, &rest);
}

static void attention_read_skip(mp_str_t *text) {
  while (text->size > 0 && (text->data[0] == ' ' || text->data[0] == ':' || text->data[0] == '"')) {
    ++text->data;
    --text->size;
  }
}

// The number behind a key; `when_absent` if the key is missing.
static mp_status_t attention_read_number(const mp_op_t *op, const char *key, double when_absent,
                                         double *out_number) {
  mp_str_t rest;
  *out_number = when_absent;
  if (!mp_foreign_find_word(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), key, &rest)) return NULL;
  attention_read_skip(&rest);
  if (mp_str_scan_double(rest, out_number) != 0) return NULL;
  return mp_op_error(op, MP_INVALID_ARGUMENT, "backend_config has no number for %s", key);
}

static bool attention_read_says(const mp_op_t *op, const char *key, const char *value) {
  mp_str_t rest;
  if (!mp_foreign_find_word(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), key, &rest)) return false;
  attention_read_skip(&rest);
  return mp_str_starts_with(rest, value);
}

// Heads come second if the keys' batch dimensions are 0 and 1: "rhs_batch_dimensions": ["0", "1"].
static mp_status_t attention_read_order(const mp_op_t *op, bool *out_heads_first) {
  mp_str_t rest;
  if (!mp_foreign_find_word(mp_op_str(op, MP_ATTR_BACKEND_CONFIG), "\"rhs_batch_dimensions\"",
                            &rest))
    return attention_read_malformed(op, "no dimension numbers in the backend_config");
  const mp_str_t list = mp_str_cut(&rest, ']');
  *out_heads_first = attention_read_has(list, "\"1\"");
  return NULL;
}

static mp_status_t attention_read_mask(const mp_op_t *op, mp_attention_call_t *out,
                                       bool *out_has_lengths) {
  static const char key[] = "\"mask_type\"";
  double window = 0;
  out->is_causal =
      attention_read_says(op, key, "CAUSAL\"") || attention_read_says(op, key, "PADDING_CAUSAL\"");
  *out_has_lengths = attention_read_says(op, key, "PADDING");
  if (!out->is_causal && !*out_has_lengths && !attention_read_says(op, key, "NO_MASK\""))
    return attention_read_refuse(op, "this mask_type");
  MP_RETURN_IF_ERROR(attention_read_number(op, "\"sliding_window_length\"", 0, &window));
  if (window < 0 || window > INT32_MAX)
    return attention_read_malformed(op, "the sliding_window_length");
  if (window > 0 && !out->is_causal)
    return attention_read_refuse(op, "a window but no causal mask");
  out->window = (int64_t)window;
  return NULL;
}

static mp_status_t attention_read_config(const mp_op_t *op, mp_attention_call_t *out,
                                         bool *out_has_lengths) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  double segments = 1, dropout = 0;
  if (attention_read_has(target, "F8")) return attention_read_refuse(op, "FP8");
  MP_RETURN_IF_ERROR(attention_read_number(op, "\"dropout_rate\"", 0, &dropout));
  if (dropout != 0 || attention_read_has(target, "Dropout"))
    return attention_read_refuse(op, "dropout, whose random numbers are cuDNN's own,");
  MP_RETURN_IF_ERROR(attention_read_number(op, "\"max_seg_per_batch\"", 1, &segments));
  if (segments > 1) return attention_read_refuse(op, "packed sequences");
  if (attention_read_says(op, "\"is_paged_attention\"", "true"))
    return attention_read_refuse(op, "paged keys");
  MP_RETURN_IF_ERROR(attention_read_number(op, "\"fmha_scale\"", 1, &out->scale));
  MP_RETURN_IF_ERROR(attention_read_order(op, &out->heads_first));
  return attention_read_mask(op, out, out_has_lengths);
}

// ---- the operands ----

// Takes the existing operands in order.
static mp_status_t attention_read_operands(mp_op_t *op, bool has_lengths,
                                           mp_attention_call_t *out) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  const bool has_bias = attention_read_has(target, "Bias");
  mp_value_t **forward[] = {&out->query, &out->key,           &out->value,
                            &out->bias,  &out->query_lengths, &out->key_lengths};
  mp_value_t **backward[] = {&out->query,  &out->key,           &out->value,
                             &out->lse,    &out->gradient,      &out->bias,
                             &out->output, &out->query_lengths, &out->key_lengths};
  mp_value_t ***slots = out->is_backward ? backward : forward;
  const uint32_t count = out->is_backward ? 9 : 6;
  uint32_t taken = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (slots[i] == &out->bias && !has_bias) continue;
    if (i + 2 >= count && !has_lengths) continue;
    if (taken == op->num_operands) return attention_read_malformed(op, "too few operands");
    *slots[i] = op->operands[taken++];
  }
  if (taken != op->num_operands) return attention_read_malformed(op, "too many operands");
  return NULL;
}

static bool attention_read_is(const mp_value_t *value, const int64_t *dims, uint32_t rank) {
  const mp_type_t *type = value->type;
  bool is_equal = mp_type_is_tensor(type) && mp_type_is_static(type) && type->rank == rank;
  for (uint32_t d = 0; is_equal && d < rank; ++d) is_equal = type->dims[d] == dims[d];
  return is_equal;
}

static bool attention_read_is_array(const mp_attention_call_t *call, const mp_value_t *value,
                                    int64_t heads, int64_t length, int64_t width) {
  const int64_t batch = call->sizes.batch;
  const int64_t first[] = {batch, heads, length, width}, second[] = {batch, length, heads, width};
  return mp_dtype_is_float(value->type->dtype) &&
         attention_read_is(value, call->heads_first ? first : second, 4);
}

static bool attention_read_is_bias(const mp_attention_call_t *call) {
  const mp_attention_sizes_t *n = &call->sizes;
  const mp_type_t *type = call->bias->type;
  if (!mp_type_is_tensor(type) || !mp_dtype_is_float(type->dtype) || type->rank != 4) return false;
  const int64_t heads = n->heads * n->group;
  return (type->dims[0] == 1 || type->dims[0] == n->batch) &&
         (type->dims[1] == 1 || type->dims[1] == heads) && type->dims[2] == n->queries &&
         type->dims[3] == n->keys;
}

static bool attention_read_is_lengths(const mp_attention_call_t *call, const mp_value_t *value) {
  return value->type->dtype == MP_DTYPE_S32 && attention_read_is(value, &call->sizes.batch, 1);
}

static mp_status_t attention_read_sizes(const mp_op_t *op, mp_attention_call_t *call) {
  const mp_value_t *const arrays[] = {call->query, call->key, call->value};
  for (uint32_t i = 0; i < 3; ++i) {
    const mp_type_t *type = arrays[i]->type;
    if (!mp_type_is_tensor(type) || !mp_type_is_static(type) || type->rank != 4)
      return attention_read_malformed(op,
                                      "queries, keys or values are not arrays of rank 4: operands");
  }
  const int64_t *q = call->query->type->dims, *k = call->key->type->dims;
  const uint32_t heads = call->heads_first ? 1 : 2, length = call->heads_first ? 2 : 1;
  if (k[heads] < 1 || q[heads] % k[heads] != 0)
    return attention_read_malformed(
        op, "heads of queries are not a multiple of those of keys: operands");
  call->sizes = (mp_attention_sizes_t){.batch = q[0],
                                       .heads = k[heads],
                                       .group = q[heads] / k[heads],
                                       .queries = q[length],
                                       .keys = k[length],
                                       .width = q[3],
                                       .value_width = call->value->type->dims[3]};
  return NULL;
}

static mp_status_t attention_read_check(const mp_op_t *op, const mp_attention_call_t *call) {
  const mp_attention_sizes_t *n = &call->sizes;
  const int64_t heads = n->heads * n->group, rows[] = {n->batch, heads, n->queries};
  bool fits = attention_read_is_array(call, call->query, heads, n->queries, n->width) &&
              attention_read_is_array(call, call->key, n->heads, n->keys, n->width) &&
              attention_read_is_array(call, call->value, n->heads, n->keys, n->value_width);
  if (call->bias != NULL) fits &= attention_read_is_bias(call);
  if (call->key_lengths != NULL)
    fits &= attention_read_is_lengths(call, call->query_lengths) &&
            attention_read_is_lengths(call, call->key_lengths);
  if (call->is_backward)
    fits &= attention_read_is(call->lse, rows, 3) && call->lse->type->dtype == MP_DTYPE_F32 &&
            attention_read_is_array(call, call->output, heads, n->queries, n->value_width) &&
            attention_read_is_array(call, call->gradient, heads, n->queries, n->value_width);
  return fits ? NULL : attention_read_malformed(op, "shapes do not fit each other: operands");
}

// The planner has transposed operands that are not row-major.
static bool attention_read_is_row_major(const mp_op_t *op) {
  const mp_attr_t *layouts = mp_op_attr(op, MP_ATTR_OPERAND_LAYOUTS);
  if (layouts == NULL) return true;
  for (uint32_t i = 0; i < layouts->u.array.count; ++i) {
    const mp_attr_t *order = layouts->u.array.items[i];
    if (!mp_layout_is_row_major(order->u.ints.values, (uint32_t)order->u.ints.count)) return false;
  }
  return true;
}

mp_status_t mp_attention_read(mp_op_t *op, mp_attention_call_t *out_call) {
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  mp_attention_call_t call = {.op = op, .is_backward = attention_read_has(target, "Backward")};
  bool has_lengths = false;
  MP_RETURN_IF_ERROR(attention_read_config(op, &call, &has_lengths));
  if (!attention_read_is_row_major(op))
    return attention_read_refuse(op, "operands that are not row-major");
  MP_RETURN_IF_ERROR(attention_read_operands(op, has_lengths, &call));
  MP_RETURN_IF_ERROR(attention_read_sizes(op, &call));
  MP_RETURN_IF_ERROR(attention_read_check(op, &call));
  *out_call = call;
  return NULL;
}
