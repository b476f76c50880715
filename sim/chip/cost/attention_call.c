// Recognises attention kernels among custom calls: JAX's splash and flash attention for TPUs, by
// the kernel's name, and cuDNN's.
#include <math.h>

#include "sim/chip/cost/attention_cost.h"
#include "sim/work/foreign_text.h"

static bool attention_call_has(mp_str_t text, const char *word) {
  mp_str_t behind;
  return mp_foreign_find_word(text, word, &behind);
}

static mp_str_t attention_call_frontend(const mp_op_t *op, const char *key) {
  const mp_attr_t *text =
      mp_attr_dict_get_text(mp_op_attr(op, MP_ATTR_MHLO_FRONTEND_ATTRIBUTES), key);
  return text == NULL || text->kind != MP_KIND_STRING ? MP_STR("") : text->u.str;
}

// Whether a type is an array of [heads..., length, width]. Keys may have no heads.
static bool attention_call_is_array(const mp_type_t *type, uint32_t least_rank) {
  return mp_type_is_tensor(type) && type->rank >= least_rank && mp_dtype_is_float(type->dtype);
}

static double attention_call_matmul(const mp_type_t *type, uint32_t count) {
  double matmul = 1;
  for (uint32_t i = 0; i < count; ++i) matmul *= (double)type->dims[i];
  return matmul;
}

// ---- TPUs ----

// A kernel for all gradients has a part of the queries' gradient per block of keys, so that result
// has one more dimension.
static mp_attention_pass_t attention_call_pass(const mp_op_t *op, mp_str_t name, uint32_t rank) {
  if (attention_call_has(name, "dq")) return MP_ATTENTION_DQ;
  if (!attention_call_has(name, "dkv")) {
    return attention_call_has(name, "bwd") ? MP_ATTENTION_BACKWARD : MP_ATTENTION_FORWARD;
  }
  for (uint32_t i = 0; i < op->num_results; ++i) {
    if (attention_call_is_array(op->results[i].type, rank + 1)) return MP_ATTENTION_BACKWARD;
  }
  return MP_ATTENTION_DKV;
}

// The first two arrays are queries and keys. Length and width may be in either order; the width is
// the shorter one.
static bool attention_call_read_arrays(const mp_op_t *op, const mp_type_t **out_queries,
                                       mp_attention_t *out) {
  const mp_type_t *arrays[2];
  uint32_t count = 0;
  for (uint32_t i = 0; i < op->num_operands && count < 2; ++i) {
    const mp_type_t *type = op->operands[i]->type;
    if (attention_call_is_array(type, count == 0 ? 3 : 2)) arrays[count++] = type;
  }
  if (count < 2) return false;
  const mp_type_t *q = arrays[0], *k = arrays[1];
  const int64_t *last = q->dims + q->rank - 2, *of_keys = k->dims + k->rank - 2;
  const bool is_plain = last[1] == of_keys[1];
  const int64_t width = is_plain || last[1] < last[0] ? last[1] : last[0];
  *out_queries = q;
  out->heads = attention_call_matmul(q, q->rank - 2);
  out->width = (double)width;
  out->queries = (double)(last[1] == width ? last[0] : last[1]);
  out->keys = (double)(of_keys[1] == width ? of_keys[0] : of_keys[1]);
  return out->heads > 0 && out->width > 0 && out->queries > 0 && out->keys > 0;
}

// JAX notes the blocks of splash kernels for profilers: kernel_metadata =
// {"xprof_metadata":"{\"block_q\": 512, ...}"}. Without it, splash has blocks of 512, as in most
// programs, and flash attention has JAX's default.
static void attention_call_read_blocks(const mp_op_t *op, mp_attention_t *out) {
  static const char *const keys[MP_ATTENTION_PASS_COUNT][2] = {
      [MP_ATTENTION_FORWARD] = {"block_q", "block_kv"},
      [MP_ATTENTION_DKV] = {"block_q_dkv", "block_kv_dkv"},
      [MP_ATTENTION_DQ] = {"block_q_dq", "block_kv_dq"},
      [MP_ATTENTION_BACKWARD] = {"block_q_dkv", "block_kv_dkv"},
  };
  const double usual = out->is_splash ? 512 : 128;
  const mp_str_t said = attention_call_frontend(op, "kernel_metadata");
  const double of_queries = mp_foreign_number(said, keys[out->pass][0]);
  const double of_keys = mp_foreign_number(said, keys[out->pass][1]);
  out->block_queries = fmin(of_queries >= 1 ? of_queries : usual, out->queries);
  out->block_keys = fmin(of_keys >= 1 ? of_keys : usual, out->keys);
}

// The first operand of a masked splash kernel is a table of its blocks, which is narrower than the
// square if no row has all blocks. A mask of a square counts as causal.
static void attention_call_read_mask(const mp_op_t *op, mp_attention_t *out) {
  const mp_type_t *table = op->operands[0]->type;
  if (!out->is_splash || !mp_type_is_tensor(table) || !mp_dtype_is_integer(table->dtype)) return;
  out->is_masked = true;
  out->is_causal = out->queries == out->keys;
  if (table->rank < 2) return;
  out->steps = (double)table->dims[table->rank - 1] * (double)table->dims[table->rank - 2];
}

static bool attention_call_of_tpu(const mp_op_t *op, mp_attention_t *out) {
  mp_str_t name = mp_op_str(op, MP_ATTR_KERNEL_NAME);
  if (name.size == 0) name = attention_call_frontend(op, "kernel_name");
  out->is_splash = attention_call_has(name, "splash");
  out->is_segmented = out->is_splash && attention_call_has(name, "segmented");
  // Paged attention reads tables of pages.
  const bool is_flash =
      attention_call_has(name, "flash_attention") && !attention_call_has(name, "paged");
  if (!out->is_splash && !is_flash) return false;
  const mp_type_t *queries;
  if (!attention_call_read_arrays(op, &queries, out)) return false;
  out->pass = attention_call_pass(op, name, queries->rank);
  attention_call_read_mask(op, out);
  attention_call_read_blocks(op, out);
  return true;
}

// ---- cuDNN ----

// "intermediate_tensor_shape": {..., "dimensions": ["4", "16", "2048", "2048"], ...}: sequences,
// heads, queries, keys.
static bool attention_call_read_scores(mp_str_t config, mp_attention_t *out) {
  double sizes[4];
  mp_str_t rest;
  if (!mp_foreign_find_word(config, "\"intermediate_tensor_shape\"", &rest) ||
      !mp_foreign_find_word(rest, "\"dimensions\"", &rest)) {
    return false;
  }
  mp_str_t list = mp_str_cut(&rest, ']');
  for (int i = 0; i < 4; ++i) {
    size_t used = 0;
    while (list.size != 0 && (used = mp_str_scan_double(list, &sizes[i])) == 0) {
      ++list.data;
      --list.size;
    }
    if (used == 0 || !(sizes[i] >= 1)) return false;
    list = (mp_str_t){list.data + used, list.size - used};
  }
  out->heads = sizes[0] * sizes[1];
  out->queries = sizes[2];
  out->keys = sizes[3];
  return true;
}

static bool attention_call_of_cudnn(const mp_op_t *op, mp_str_t target, mp_attention_t *out) {
  const mp_str_t config = mp_op_str(op, MP_ATTR_BACKEND_CONFIG);
  if (!attention_call_read_scores(config, out)) return false;
  if (!attention_call_is_array(op->operands[0]->type, 3)) return false;
  const mp_type_t *q = op->operands[0]->type;
  out->width = (double)q->dims[q->rank - 1];
  out->pass = attention_call_has(target, "Backward") ? MP_ATTENTION_BACKWARD : MP_ATTENTION_FORWARD;
  out->is_causal = attention_call_has(config, "CAUSAL\"");  // also PADDING_CAUSAL
  out->window = mp_foreign_number(config, "\"sliding_window_length");
  out->block_queries = out->queries;
  out->block_keys = out->keys;
  return out->width > 0;
}

bool mp_attention_of_call(const mp_op_t *op, mp_attention_t *out_attention) {
  mp_attention_t attention = {.pass = MP_ATTENTION_FORWARD};
  const mp_str_t target = mp_op_str(op, MP_ATTR_CALL_TARGET_NAME);
  if (op->num_operands == 0) return false;
  const bool is_of_pallas =
      mp_str_is(target, "tpu_custom_call") || mp_str_is(target, MP_KERNEL_TARGET);
  const bool is_one = is_of_pallas ? attention_call_of_tpu(op, &attention)
                      : mp_str_starts_with(target, "__cudnn$fmha")
                          ? attention_call_of_cudnn(op, target, &attention)
                          : false;
  attention.flops = mp_foreign_number(mp_foreign_estimate(op), "\"flops");
  *out_attention = attention;
  return is_one;
}
