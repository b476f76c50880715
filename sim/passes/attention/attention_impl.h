// Shared by the files of this room.
#ifndef MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_IMPL_H_
#define MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_IMPL_H_

#include "sim/base/status.h"
#include "sim/ir/module.h"

// ---- attention_read.c: reading a call ----

// Batch, heads of keys and values, queries for each of these heads, lengths of queries and keys,
// widths of keys and values.
typedef struct {
  int64_t batch, heads, group, queries, keys, width, value_width;
} mp_attention_sizes_t;

typedef struct {
  mp_op_t *op;
  bool is_backward;
  bool heads_first;  // arrays are [batch, heads, length, width], not [batch, length, heads, width]
  bool is_causal;
  double scale;
  int64_t
      window;  // a query attends to at most this many keys, the last at its own position; 0: all
  mp_attention_sizes_t sizes;
  // As the call has them; NULL: there is none. `lse` is the logarithm of each row's sum, which the
  // forward call made.
  mp_value_t *query, *key, *value, *bias, *query_lengths, *key_lengths;
  mp_value_t *lse, *output, *gradient;  // backward
} mp_attention_call_t;

// Whether the op is a cuDNN attention call.
bool mp_attention_is_call(const mp_op_t *op);
// Reads the call. UNIMPLEMENTED for unsupported features.
MP_NODISCARD mp_status_t mp_attention_read(mp_op_t *op, mp_attention_call_t *out_call);

// ---- attention_build.c: ops before the call ----

// The first failure stays in `status`, and everything after it is NULL.
typedef struct {
  mp_module_t *module;
  mp_op_t *position;
  mp_status_t status;
} mp_attention_build_t;

// Dimensions of an op's operand, result or list.
typedef struct {
  uint32_t count;
  int64_t values[MP_MAX_RANK];
} mp_attention_dims_t;

#define MP_ATTENTION_DIMS(...) \
  ((mp_attention_dims_t){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

// Constants with one number everywhere: of f32, of i32, and zeros of any type.
mp_value_t *mp_attention_number(mp_attention_build_t *b, const mp_type_t *type, double number);
mp_value_t *mp_attention_integer(mp_attention_build_t *b, const mp_type_t *type, int32_t number);
mp_value_t *mp_attention_nothing(mp_attention_build_t *b, const mp_type_t *type);
mp_value_t *mp_attention_unary(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *a);
mp_value_t *mp_attention_binary(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *x,
                                mp_value_t *y);
mp_value_t *mp_attention_compare(mp_attention_build_t *b, uint32_t direction, mp_value_t *x,
                                 mp_value_t *y);
mp_value_t *mp_attention_select(mp_attention_build_t *b, mp_value_t *predicate, mp_value_t *x,
                                mp_value_t *y);
mp_value_t *mp_attention_convert(mp_attention_build_t *b, mp_value_t *a, mp_dtype_t dtype);
mp_value_t *mp_attention_reshape(mp_attention_build_t *b, mp_value_t *a, mp_attention_dims_t dims);
mp_value_t *mp_attention_transpose(mp_attention_build_t *b, mp_value_t *a,
                                   mp_attention_dims_t permutation);
// Dimension i of `a` becomes dimension at.values[i] of an array like `like` (element type of `a`).
mp_value_t *mp_attention_broadcast(mp_attention_build_t *b, mp_value_t *a, mp_attention_dims_t at,
                                   const mp_type_t *like);
// 0, 1, 2, ... along `dim`.
mp_value_t *mp_attention_iota(mp_attention_build_t *b, int64_t dim, mp_attention_dims_t dims);
// Reduces by ADD or MAXIMUM.
mp_value_t *mp_attention_reduce(mp_attention_build_t *b, mp_opcode_t code, mp_value_t *a,
                                mp_attention_dims_t dims);
// A product with the first two dimensions of both sides as batch.
mp_value_t *mp_attention_dot(mp_attention_build_t *b, mp_value_t *x, mp_value_t *y,
                             mp_attention_dims_t x_contracting, mp_attention_dims_t y_contracting);

// ---- attention_scores.c: shared by both directions ----

// Arrays as [batch, heads, group, length, width] (without group, if it is 1; keys and values never
// have it), in f32.
mp_value_t *mp_attention_array(mp_attention_build_t *b, const mp_attention_call_t *call,
                               mp_value_t *a, bool has_group);
// Scores with scale and bias, [batch, heads, group, queries, keys], and which of them are valid
// (NULL: all).
mp_value_t *mp_attention_scores(mp_attention_build_t *b, const mp_attention_call_t *call,
                                mp_value_t *query, mp_value_t *key, mp_value_t **out_mask);
// A number for each row, [batch, heads, group, queries], for each score of the row.
mp_value_t *mp_attention_rows(mp_attention_build_t *b, mp_value_t *rows, const mp_type_t *like);
// Converts `value`, which corresponds to result `index` of the call, to the type and layout of that
// result.
mp_value_t *mp_attention_result(mp_attention_build_t *b, const mp_attention_call_t *call,
                                uint32_t index, mp_value_t *value);

// ---- attention_forward.c, attention_backward.c ----

// The replacements of the call's results, without the workspace.
void mp_attention_forward(mp_attention_build_t *b, const mp_attention_call_t *call,
                          mp_value_t **results);
void mp_attention_backward(mp_attention_build_t *b, const mp_attention_call_t *call,
                           mp_value_t **results);

#endif  // MINIPOD_SIM_PASSES_ATTENTION_ATTENTION_IMPL_H_
