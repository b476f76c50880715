// The operations that hostile_programs.h draws: those that move elements, and those that find them
// by positions that come from data.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_H_

#include "tests/unit/support/hostile/hostile_elementwise.h"

static inline void draw_broadcast(draw_t *d) {
  const draw_shape_t out = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 4);
  draw_shape_t in = draw_scalar(out.dtype);
  int64_t map[DRAW_MAX_RANK];
  for (uint32_t i = 0; i < out.rank; ++i) {
    if (draw_bool(d)) continue;
    map[in.rank] = i;
    in.dims[in.rank++] = draw_bool(d) ? 1 : out.dims[i];
  }
  draw_operand(d, in);
  draw_op(d, "stablehlo.broadcast_in_dim");
  draw_puts(d, " <{");
  draw_ints(d, "broadcast_dimensions", map, in.rank);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline void draw_transpose(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 4);
  draw_shape_t out = in;
  int64_t permutation[DRAW_MAX_RANK];
  draw_permutation(d, in.rank, permutation);
  for (uint32_t i = 0; i < in.rank; ++i) out.dims[i] = in.dims[permutation[i]];
  draw_operand(d, in);
  draw_op(d, "stablehlo.transpose");
  draw_puts(d, " <{");
  draw_ints(d, "permutation", permutation, in.rank);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline void draw_reshape(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  draw_shape_t out = {.dtype = in.dtype, .rank = 2, .dims = {draw_count(&in), 1}};
  if (draw_count(&in) == 0) out.dims[1] = draw_dim(d);
  draw_operand(d, in);
  draw_op(d, "stablehlo.reshape");
  draw_result(d, out);
}

static inline void draw_slice(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 4);
  draw_shape_t out = in;
  int64_t start[DRAW_MAX_RANK], limit[DRAW_MAX_RANK], stride[DRAW_MAX_RANK];
  for (uint32_t i = 0; i < in.rank; ++i) {
    start[i] = draw_between(d, 0, in.dims[i]);
    limit[i] = draw_between(d, start[i], in.dims[i]);
    stride[i] = draw_below(d, 8) == 0 ? INT64_MAX : draw_between(d, 1, 3);
    const int64_t size = limit[i] - start[i];
    out.dims[i] = size / stride[i] + (size % stride[i] != 0);
  }
  draw_operand(d, in);
  draw_op(d, "stablehlo.slice");
  draw_puts(d, " <{");
  draw_ints(d, "start_indices", start, in.rank);
  draw_puts(d, ", ");
  draw_ints(d, "limit_indices", limit, in.rank);
  draw_puts(d, ", ");
  draw_ints(d, "strides", stride, in.rank);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline void draw_reverse(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 4);
  int64_t dims[DRAW_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < in.rank; ++i) {
    if (draw_bool(d)) dims[count++] = i;
  }
  draw_operand(d, in);
  draw_op(d, "stablehlo.reverse");
  draw_puts(d, " <{");
  draw_ints(d, "dimensions", dims, count);
  draw_puts(d, "}>");
  draw_result(d, in);
}

static inline int64_t draw_edge(draw_t *d) {
  static const int64_t edges[] = {INT64_MIN + 1, INT64_MAX, INT64_C(1) << 40, -(INT64_C(1) << 40)};
  return draw_below(d, 12) == 0 ? edges[draw_below(d, 4)] : draw_between(d, -6, 6);
}

static inline void draw_pad(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  draw_shape_t out = in;
  int64_t low[DRAW_MAX_RANK], high[DRAW_MAX_RANK], interior[DRAW_MAX_RANK];
  for (uint32_t i = 0; i < in.rank; ++i) {
    interior[i] = in.dims[i] < 2 && draw_below(d, 4) == 0 ? INT64_MAX : draw_between(d, 0, 3);
    const int64_t holes = in.dims[i] > 1 ? (in.dims[i] - 1) * interior[i] : 0;
    const int64_t size = in.dims[i] + holes;
    int64_t sum = 0;
    low[i] = draw_edge(d);
    out.dims[i] = draw_dim(d);
    // The high edge makes of it what is wanted.
    if (__builtin_add_overflow(size, low[i], &sum) ||
        __builtin_sub_overflow(out.dims[i], sum, &high[i])) {
      low[i] = 0;
      high[i] = out.dims[i] - size;
    }
  }
  draw_operand(d, in);
  draw_operand(d, draw_scalar(in.dtype));
  draw_op(d, "stablehlo.pad");
  draw_puts(d, " <{");
  draw_ints(d, "edge_padding_low", low, in.rank);
  draw_puts(d, ", ");
  draw_ints(d, "edge_padding_high", high, in.rank);
  draw_puts(d, ", ");
  draw_ints(d, "interior_padding", interior, in.rank);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline void draw_concatenate(draw_t *d) {
  draw_shape_t shape = draw_shape(d, draw_dtype(d, DRAW_ANY), 1, 3);
  const uint32_t dim = (uint32_t)draw_below(d, shape.rank), count = (uint32_t)draw_between(d, 1, 4);
  int64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    shape.dims[dim] = draw_dim(d);
    total += shape.dims[dim];
    draw_operand(d, shape);
  }
  draw_op(d, "stablehlo.concatenate");
  mp_strbuf_printf(&d->op, " <{dimension = %u : i64}>", dim);
  shape.dims[dim] = total;
  draw_result(d, shape);
}

static inline void draw_iota(draw_t *d) {
  const draw_shape_t shape = draw_shape(d, draw_dtype(d, DRAW_NUMBER), 1, 4);
  draw_op(d, "stablehlo.iota");
  mp_strbuf_printf(&d->op, " <{iota_dimension = %u : i64}>", (uint32_t)draw_below(d, shape.rank));
  draw_result(d, shape);
}

static inline void draw_dimension_size(draw_t *d) {
  const draw_shape_t shape = draw_shape(d, draw_dtype(d, DRAW_ANY), 1, 4);
  draw_operand(d, shape);
  draw_op(d, "stablehlo.get_dimension_size");
  mp_strbuf_printf(&d->op, " <{dimension = %u : i64}>", (uint32_t)draw_below(d, shape.rank));
  draw_result(d, draw_scalar(MP_DTYPE_S32));
}

// ---- positions from data ----

// A shape that fits into another one.
static inline draw_shape_t draw_part(draw_t *d, draw_shape_t shape) {
  for (uint32_t i = 0; i < shape.rank; ++i) shape.dims[i] = draw_between(d, 0, shape.dims[i]);
  return shape;
}

static inline void draw_dynamic_slice(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  const draw_shape_t out = draw_part(d, in);
  const mp_dtype_t index = draw_dtype(d, DRAW_INTEGER);
  draw_operand(d, in);
  for (uint32_t i = 0; i < in.rank; ++i) draw_operand(d, draw_scalar(index));
  draw_op(d, "stablehlo.dynamic_slice");
  draw_puts(d, " <{");
  draw_ints(d, "slice_sizes", out.dims, out.rank);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline void draw_dynamic_update_slice(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  const mp_dtype_t index = draw_dtype(d, DRAW_INTEGER);
  draw_operand(d, in);
  draw_operand(d, draw_part(d, in));
  for (uint32_t i = 0; i < in.rank; ++i) draw_operand(d, draw_scalar(index));
  draw_op(d, "stablehlo.dynamic_update_slice");
  draw_result(d, in);
}

// What gather and scatter share: dimensions of the operand are in the window, left out, or go along
// with dimensions of the indices.
typedef struct {
  draw_shape_t operand, indices, combined;  // the last one: gather's result, scatter's updates
  int64_t sizes[DRAW_MAX_RANK];
  int64_t window[DRAW_MAX_RANK], left_out[DRAW_MAX_RANK], batching[DRAW_MAX_RANK];
  int64_t indices_batching[DRAW_MAX_RANK], map[DRAW_MAX_RANK];
  uint32_t num_window, num_left_out, num_batching, num_map;
  uint32_t vector_dim;
} draw_indexing_t;

static inline void draw_indexing(draw_t *d, bool is_gather, draw_indexing_t *x) {
  *x = (draw_indexing_t){.operand = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3)};
  x->indices = draw_shape(d, draw_dtype(d, DRAW_INTEGER), 0, 1);
  x->combined.dtype = x->operand.dtype;
  int64_t window_sizes[DRAW_MAX_RANK];
  for (uint32_t i = 0; i < x->operand.rank; ++i) {
    const int64_t dim = x->operand.dims[i];
    const uint64_t role = draw_below(d, 4);
    if (role == 0 && x->indices.rank < 2) {
      x->batching[x->num_batching] = i;
      x->indices_batching[x->num_batching++] = x->indices.rank;
      x->indices.dims[x->indices.rank++] = dim;
      x->sizes[i] = dim == 0 ? 0 : draw_between(d, 0, 1);
      continue;
    }
    if (role == 1 && (dim > 0 || !is_gather || draw_bool(d))) {
      x->left_out[x->num_left_out++] = i;
      x->sizes[i] = dim == 0 ? 0 : draw_between(d, 0, 1);
    } else {
      x->sizes[i] = draw_between(d, 0, dim);
      window_sizes[x->num_window++] = x->sizes[i];
    }
    if (draw_below(d, 4) != 0) x->map[x->num_map++] = i;
  }
  // The combined shape: the indices' dimensions, then the window's.
  for (uint32_t i = 0; i < x->indices.rank; ++i) {
    x->combined.dims[x->combined.rank++] = x->indices.dims[i];
  }
  for (uint32_t i = 0; i < x->num_window; ++i) {
    x->window[i] = x->combined.rank;
    x->combined.dims[x->combined.rank++] = window_sizes[i];
  }
  x->vector_dim = x->indices.rank;
  if (x->num_map != 1 || draw_bool(d)) x->indices.dims[x->indices.rank++] = x->num_map;
}

static inline void draw_gather(draw_t *d) {
  draw_indexing_t x;
  draw_indexing(d, true, &x);
  draw_operand(d, x.operand);
  draw_operand(d, x.indices);
  draw_op(d, "stablehlo.gather");
  draw_puts(d, " <{dimension_numbers = #stablehlo.gather<");
  draw_list(d, "offset_dims", x.window, x.num_window);
  draw_list(d, ", collapsed_slice_dims", x.left_out, x.num_left_out);
  draw_list(d, ", operand_batching_dims", x.batching, x.num_batching);
  draw_list(d, ", start_indices_batching_dims", x.indices_batching, x.num_batching);
  draw_list(d, ", start_index_map", x.map, x.num_map);
  mp_strbuf_printf(&d->op, ", index_vector_dim = %u>, ", x.vector_dim);
  draw_ints(d, "slice_sizes", x.sizes, x.operand.rank);
  draw_puts(d, "}>");
  draw_result(d, x.combined);
}

static inline void draw_scatter(draw_t *d) {
  draw_indexing_t x;
  draw_indexing(d, false, &x);
  const uint32_t count = (uint32_t)draw_between(d, 1, 2);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, x.operand);
  draw_operand(d, x.indices);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, x.combined);
  draw_op(d, "stablehlo.scatter");
  draw_puts(d, " <{scatter_dimension_numbers = #stablehlo.scatter<");
  draw_list(d, "update_window_dims", x.window, x.num_window);
  draw_list(d, ", inserted_window_dims", x.left_out, x.num_left_out);
  draw_list(d, ", input_batching_dims", x.batching, x.num_batching);
  draw_list(d, ", scatter_indices_batching_dims", x.indices_batching, x.num_batching);
  draw_list(d, ", scatter_dims_to_operand_dims", x.map, x.num_map);
  mp_strbuf_printf(&d->op, ", index_vector_dim = %u>}>", x.vector_dim);
  draw_reducer(d, x.operand.dtype, count);
  for (uint32_t i = 0; i < count; ++i) draw_result(d, x.operand);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_H_
