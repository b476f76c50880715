// The operations that hostile_programs.h draws: those that fold, sort, multiply, transform, solve
// and draw random numbers; and the list of all.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_FOLDS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_FOLDS_H_

#include "tests/unit/support/hostile/hostile_ops.h"

// ---- folds and windows ----

static inline void draw_reduce(draw_t *d) {
  draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 4);
  const uint32_t count = (uint32_t)draw_between(d, 1, 2);
  if (in.rank == 1 && draw_below(d, 4) == 0) in.dims[0] = draw_between(d, 250, 1100);
  draw_shape_t out = draw_scalar(in.dtype);
  int64_t dims[DRAW_MAX_RANK];
  uint32_t num_dims = 0;
  for (uint32_t i = 0; i < in.rank; ++i) {
    if (draw_bool(d)) {
      dims[num_dims++] = i;
    } else {
      out.dims[out.rank++] = in.dims[i];
    }
  }
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, in);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, draw_scalar(in.dtype));
  draw_op(d, "stablehlo.reduce");
  draw_puts(d, " <{");
  draw_ints(d, "dimensions", dims, num_dims);
  draw_puts(d, "}>");
  draw_reducer(d, in.dtype, count);
  for (uint32_t i = 0; i < count; ++i) draw_result(d, out);
}

// Attributes of a window over `in`; the shape of the windows.
typedef struct {
  int64_t sizes[DRAW_MAX_RANK], strides[DRAW_MAX_RANK], base[DRAW_MAX_RANK];
  int64_t dilations[DRAW_MAX_RANK], padding[2 * DRAW_MAX_RANK];
} draw_window_t;

static inline int64_t draw_dilate(int64_t size, int64_t dilation) {
  return size == 0 ? 0 : (size - 1) * dilation + 1;
}

static inline void draw_window_dim(draw_t *d, bool dilates, uint32_t i, int64_t in, int64_t size,
                                   draw_window_t *w, int64_t *out_dim) {
  w->sizes[i] = size;
  w->strides[i] = draw_between(d, 1, 3);
  w->base[i] = dilates && draw_below(d, 3) == 0 ? draw_between(d, 1, 3) : 1;
  w->dilations[i] = dilates && draw_below(d, 3) == 0 ? draw_between(d, 1, 3) : 1;
  w->padding[2 * i] = draw_bool(d) ? 0 : draw_between(d, -3, 4);
  w->padding[2 * i + 1] = draw_bool(d) ? 0 : draw_between(d, -3, 4);
  int64_t padded = draw_dilate(in, w->base[i]) + w->padding[2 * i] + w->padding[2 * i + 1];
  if (padded < 0) {  // cut away more than there is
    padded -= w->padding[2 * i] + w->padding[2 * i + 1];
    w->padding[2 * i] = w->padding[2 * i + 1] = 0;
  }
  const int64_t window = draw_dilate(size, w->dilations[i]);
  *out_dim = padded == 0 || window > padded ? 0 : (padded - window) / w->strides[i] + 1;
}

static inline draw_shape_t draw_window(draw_t *d, bool dilates, const draw_shape_t *in,
                                       draw_window_t *w) {
  draw_shape_t out = *in;
  for (uint32_t i = 0; i < in->rank; ++i) {
    const int64_t size = draw_bool(d) ? 1 : draw_between(d, 1, 5);
    draw_window_dim(d, dilates, i, in->dims[i], size, w, &out.dims[i]);
  }
  return out;
}

static inline void draw_window_attrs(draw_t *d, bool dilates, uint32_t rank,
                                     const draw_window_t *w) {
  draw_puts(d, " <{");
  draw_ints(d, "window_dimensions", w->sizes, rank);
  draw_puts(d, ", ");
  draw_ints(d, "window_strides", w->strides, rank);
  if (dilates) {
    draw_puts(d, ", ");
    draw_ints(d, "base_dilations", w->base, rank);
    draw_puts(d, ", ");
    draw_ints(d, "window_dilations", w->dilations, rank);
  }
  draw_puts(d, ", ");
  draw_pairs(d, "padding", w->padding, rank);
  draw_puts(d, "}>");
}

static inline void draw_reduce_window(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  const uint32_t count = (uint32_t)draw_between(d, 1, 2);
  draw_window_t w;
  const draw_shape_t out = draw_window(d, true, &in, &w);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, in);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, draw_scalar(in.dtype));
  draw_op(d, "stablehlo.reduce_window");
  draw_window_attrs(d, true, in.rank, &w);
  draw_reducer(d, in.dtype, count);
  for (uint32_t i = 0; i < count; ++i) draw_result(d, out);
}

static inline void draw_select_and_scatter(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 0, 3);
  draw_window_t w;
  const draw_shape_t source = draw_window(d, false, &in, &w);
  const char *type = mp_dtype_name(in.dtype);
  draw_operand(d, in);
  draw_operand(d, source);
  draw_operand(d, draw_scalar(in.dtype));
  draw_op(d, "stablehlo.select_and_scatter");
  draw_window_attrs(d, false, in.rank, &w);
  mp_strbuf_printf(&d->op, " ({ ^bb0(%%a0: tensor<%s>, %%a1: tensor<%s>): ", type, type);
  draw_comparator(d, in.dtype);
  mp_strbuf_printf(&d->op,
                   " }, { ^bb0(%%a0: tensor<%s>, %%a1: tensor<%s>): %%s = stablehlo.%s %%a0, %%a1 "
                   ": tensor<%s> stablehlo.return %%s : tensor<%s> })",
                   type, type, draw_bool(d) ? "add" : "maximum", type, type);
  draw_result(d, in);
}

static inline void draw_sort(draw_t *d) {
  draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_ANY), 1, 3);
  const uint32_t count = (uint32_t)draw_between(d, 1, 2);
  if (in.rank == 1 && draw_below(d, 4) == 0) in.dims[0] = draw_between(d, 60, 700);
  for (uint32_t i = 0; i < count; ++i) draw_operand(d, in);
  draw_op(d, "stablehlo.sort");
  mp_strbuf_printf(&d->op, " <{dimension = %u : i64, is_stable = %s}> ({ ^bb0(",
                   (uint32_t)draw_below(d, in.rank), draw_bool(d) ? "true" : "false");
  for (uint32_t i = 0; i < 2 * count; ++i) {
    mp_strbuf_printf(&d->op, "%s%%a%u: tensor<%s>", i == 0 ? "" : ", ", i, mp_dtype_name(in.dtype));
  }
  draw_puts(d, "): ");
  draw_comparator(d, in.dtype);
  draw_puts(d, " })");
  for (uint32_t i = 0; i < count; ++i) draw_result(d, in);
}

static inline void draw_map(draw_t *d) {
  static const int64_t all[] = {0, 1, 2, 3};
  const draw_shape_t in = draw_elements(d, draw_dtype(d, DRAW_ANY));
  draw_operand(d, in);
  draw_operand(d, in);
  draw_op(d, "stablehlo.map");
  draw_puts(d, " <{");
  draw_ints(d, "dimensions", all, in.rank);
  draw_puts(d, "}>");
  draw_reducer(d, in.dtype, 1);
  draw_result(d, in);
}

// ---- products ----

static inline void draw_dot(draw_t *d) {
  const mp_dtype_t dtype = draw_dtype(d, DRAW_ANY);
  draw_shape_t lhs = draw_scalar(dtype), rhs = lhs, out = lhs;
  int64_t batch[2], contracted[4];
  const uint32_t num_batch = (uint32_t)draw_below(d, 2), num_k = (uint32_t)draw_below(d, 3);
  for (uint32_t i = 0; i < num_batch + num_k; ++i) {
    const int64_t dim = draw_dim(d);
    if (i < num_batch) {
      batch[i] = i;
      out.dims[out.rank++] = dim;
    } else {
      contracted[i - num_batch] = i;
    }
    lhs.dims[lhs.rank++] = rhs.dims[rhs.rank++] = dim;
  }
  if (draw_bool(d)) lhs.dims[lhs.rank++] = out.dims[out.rank++] = draw_dim(d);
  if (draw_bool(d)) rhs.dims[rhs.rank++] = out.dims[out.rank++] = draw_dim(d);
  if (mp_dtype_is_integer(dtype) && draw_bool(d)) out.dtype = MP_DTYPE_S32;
  draw_operand(d, lhs);
  draw_operand(d, rhs);
  draw_op(d, "stablehlo.dot_general");
  draw_puts(d, " <{dot_dimension_numbers = #stablehlo.dot<");
  draw_list(d, "lhs_batching_dimensions", batch, num_batch);
  draw_list(d, ", rhs_batching_dimensions", batch, num_batch);
  draw_list(d, ", lhs_contracting_dimensions", contracted, num_k);
  draw_list(d, ", rhs_contracting_dimensions", contracted, num_k);
  draw_puts(d, ">}>");
  draw_result(d, out);
}

// Batch, up to two spatial dimensions, features: in this order, or features first.
static inline void draw_convolution(draw_t *d) {
  static const char *const forms[2][3] = {
      {"[b, f]x[i, o]->[b, f]", "[b, 0, f]x[0, i, o]->[b, 0, f]",
       "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"},
      {"[b, f]x[o, i]->[b, f]", "[b, f, 0]x[o, i, 0]->[b, f, 0]",
       "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"}};
  const uint32_t spatial = (uint32_t)draw_below(d, 3), rank = spatial + 2;
  const bool first = draw_bool(d);
  const int64_t groups = draw_between(d, 1, 3), kind = draw_between(d, 0, 1);
  const int64_t feature_groups = kind == 0 ? groups : 1, batch_groups = kind == 0 ? 1 : groups;
  const int64_t batch = draw_between(d, 0, 2), in_part = draw_between(d, 0, 2);
  const int64_t features = groups * draw_between(d, 0, 2);
  const uint32_t at = first ? 2 : 1, feature = first ? 1 : rank - 1;
  draw_shape_t in = {.dtype = draw_dtype(d, DRAW_ANY), .rank = rank}, kernel = in, out = in;
  draw_window_t w;
  for (uint32_t i = 0; i < spatial; ++i) {
    in.dims[at + i] = draw_dim(d);
    kernel.dims[first ? 2 + i : i] = draw_between(d, 0, 4);
    draw_window_dim(d, true, i, in.dims[at + i], kernel.dims[first ? 2 + i : i], &w,
                    &out.dims[at + i]);
  }
  in.dims[0] = batch * batch_groups;
  out.dims[0] = batch;
  in.dims[feature] = in_part * feature_groups;
  out.dims[feature] = features;
  kernel.dims[first ? 1 : rank - 2] = in_part;
  kernel.dims[first ? 0 : rank - 1] = features;
  draw_operand(d, in);
  draw_operand(d, kernel);
  draw_op(d, "stablehlo.convolution");
  mp_strbuf_printf(&d->op,
                   " <{batch_group_count = %lld : i64, feature_group_count = %lld : i64, "
                   "dimension_numbers = #stablehlo.conv<%s>, ",
                   (long long)batch_groups, (long long)feature_groups, forms[first][spatial]);
  draw_ints(d, "window_strides", w.strides, spatial);
  draw_ints(d, ", lhs_dilation", w.base, spatial);
  draw_ints(d, ", rhs_dilation", w.dilations, spatial);
  draw_puts(d, ", ");
  draw_pairs(d, "padding", w.padding, spatial);
  draw_puts(d, ", window_reversal = array<i1");
  for (uint32_t i = 0; i < spatial; ++i) {
    mp_strbuf_printf(&d->op, "%s%s", i == 0 ? ": " : ", ", draw_bool(d) ? "true" : "false");
  }
  draw_puts(d, ">}>");
  draw_result(d, out);
}

// ---- transforms and solvers ----

static inline void draw_fft(draw_t *d) {
  static const char *const types[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const uint32_t type = (uint32_t)draw_below(d, 4), count = (uint32_t)draw_between(d, 1, 2);
  const bool is_double = draw_bool(d);
  draw_shape_t in = draw_shape(d, is_double ? MP_DTYPE_C128 : MP_DTYPE_C64, count, count + 1);
  draw_shape_t out = in;
  int64_t *last = &in.dims[in.rank - 1], length = *last;
  if (draw_below(d, 3) == 0) *last = out.dims[in.rank - 1] = length = draw_between(d, 30, 45);
  if (type >= 2) {
    const mp_dtype_t real = is_double ? MP_DTYPE_F64 : MP_DTYPE_F32;
    (type == 2 ? &in : &out)->dtype = real;
    (type == 2 ? &out : &in)->dims[in.rank - 1] = length == 0 ? 0 : length / 2 + 1;
  }
  int64_t lengths[2];
  for (uint32_t i = 0; i < count; ++i) lengths[i] = in.dims[in.rank - count + i];
  lengths[count - 1] = length;
  draw_operand(d, in);
  draw_op(d, "stablehlo.fft");
  mp_strbuf_printf(&d->op, " <{fft_type = #stablehlo<fft_type %s>, ", types[type]);
  draw_ints(d, "fft_length", lengths, count);
  draw_puts(d, "}>");
  draw_result(d, out);
}

static inline draw_shape_t draw_matrices(draw_t *d, int64_t rows, int64_t columns) {
  draw_shape_t shape = draw_shape(d, draw_dtype(d, DRAW_FLOAT | DRAW_COMPLEX | DRAW_COMMON), 0, 1);
  if (shape.rank == 1) shape.dims[0] = draw_between(d, 0, 3);
  shape.dims[shape.rank++] = rows;
  shape.dims[shape.rank++] = columns;
  return shape;
}

static inline void draw_cholesky(draw_t *d) {
  const int64_t n = draw_between(d, 0, 9);
  const draw_shape_t in = draw_matrices(d, n, n);
  draw_operand(d, in);
  draw_op(d, "stablehlo.cholesky");
  mp_strbuf_printf(&d->op, " <{lower = %s}>", draw_bool(d) ? "true" : "false");
  draw_result(d, in);
}

static inline void draw_triangular_solve(draw_t *d) {
  static const char *const ways[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
  const int64_t n = draw_between(d, 0, 9), other = draw_between(d, 0, 3);
  const bool left = draw_bool(d);
  const draw_shape_t a = draw_matrices(d, n, n);
  draw_shape_t b = a;
  b.dims[b.rank - 2] = left ? n : other;
  b.dims[b.rank - 1] = left ? other : n;
  draw_operand(d, a);
  draw_operand(d, b);
  draw_op(d, "stablehlo.triangular_solve");
  mp_strbuf_printf(&d->op,
                   " <{left_side = %s, lower = %s, unit_diagonal = %s, transpose_a = "
                   "#stablehlo<transpose %s>}>",
                   left ? "true" : "false", draw_bool(d) ? "true" : "false",
                   draw_bool(d) ? "true" : "false", ways[draw_below(d, 3)]);
  draw_result(d, b);
}

// ---- random numbers, normalisation ----

static inline void draw_rng(draw_t *d) {
  const bool is_normal = draw_bool(d);
  const mp_dtype_t dtype = draw_dtype(d, is_normal ? DRAW_FLOAT : DRAW_INTEGER | DRAW_FLOAT);
  const draw_shape_t out = draw_shape(d, dtype, 0, 3);
  draw_operand(d, draw_scalar(dtype));
  draw_operand(d, draw_scalar(dtype));
  draw_operand(d, (draw_shape_t){MP_DTYPE_S64, 1, {out.rank}});
  draw_op(d, "stablehlo.rng");
  mp_strbuf_printf(&d->op, " <{rng_distribution = #stablehlo<rng_distribution %s>}>",
                   is_normal ? "NORMAL" : "UNIFORM");
  draw_result(d, out);
}

static inline void draw_rng_bits(draw_t *d) {
  static const char *const algorithms[] = {"DEFAULT", "PHILOX", "THREE_FRY"};
  const uint32_t algorithm = (uint32_t)draw_below(d, 3);
  const draw_shape_t state = {MP_DTYPE_U64, 1, {algorithm == 2 ? 2 : draw_between(d, 2, 3)}};
  draw_shape_t out = draw_shape(d, draw_dtype(d, DRAW_INTEGER | DRAW_FLOAT), 0, 3);
  if (out.rank == 1 && draw_below(d, 4) == 0) out.dims[0] = draw_between(d, 1000, 1300);
  draw_operand(d, state);
  draw_op(d, "stablehlo.rng_bit_generator");
  mp_strbuf_printf(&d->op, " <{rng_algorithm = #stablehlo<rng_algorithm %s>}>",
                   algorithms[algorithm]);
  draw_result(d, state);
  draw_result(d, out);
}

static inline void draw_batch_norm(draw_t *d) {
  const uint32_t kind = (uint32_t)draw_below(d, 3);
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_FLOAT), 1, 3);
  const uint32_t feature = (uint32_t)draw_below(d, in.rank);
  const draw_shape_t each = {in.dtype, 1, {in.dims[feature]}};
  draw_operand(d, in);
  for (int i = 0; i < (kind == 0 ? 4 : kind == 1 ? 2 : 3); ++i) draw_operand(d, each);
  if (kind == 2) draw_operand(d, in);
  draw_op(d, kind == 0   ? "stablehlo.batch_norm_inference"
             : kind == 1 ? "stablehlo.batch_norm_training"
                         : "stablehlo.batch_norm_grad");
  mp_strbuf_printf(&d->op, " <{epsilon = %s : f32, feature_index = %u : i64}>",
                   draw_bool(d) ? "0.0" : "1.0e-3", feature);
  draw_result(d, in);
  for (int i = 0; i < (kind == 0 ? 0 : 2); ++i) draw_result(d, each);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_OPS_FOLDS_H_
