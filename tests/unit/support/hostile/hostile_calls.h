// The custom calls that hostile_programs.h draws, the list of all that it draws, and whole
// programs.
#ifndef MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_CALLS_H_
#define MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_CALLS_H_

#include "tests/unit/support/hostile/hostile_ops_folds.h"

static inline void draw_call(draw_t *d, const char *target) {
  draw_op(d, "stablehlo.custom_call");
  mp_strbuf_printf(&d->op, " <{call_target_name = \"%s\"}>", target);
}

static inline void draw_call_of(draw_t *d, const char *target, const char *config) {
  draw_op(d, "stablehlo.custom_call");
  mp_strbuf_printf(&d->op, " <{backend_config = \"%s\", call_target_name = \"%s\"}>", config,
                   target);
}

// The leading dimensions of `of`, then these.
static inline draw_shape_t draw_vectors(const draw_shape_t *of, uint32_t leading, int64_t length) {
  draw_shape_t shape = *of;
  shape.rank = leading;
  shape.dims[shape.rank++] = length;
  return shape;
}

static inline void draw_householder(draw_t *d) {
  const int64_t m = draw_between(d, 0, 6), n = draw_between(d, 0, 6), least = m < n ? m : n;
  const draw_shape_t a = draw_matrices(d, m, n);
  const draw_shape_t taus = draw_vectors(&a, a.rank - 2, least);
  draw_operand(d, a);
  if (draw_bool(d)) {
    draw_call(d, "Qr");
    draw_result(d, a);
    draw_result(d, taus);
    return;
  }
  draw_operand(d, draw_vectors(&a, a.rank - 2, draw_between(d, 0, least)));
  draw_call(d, "ProductOfElementaryHouseholderReflectors");
  draw_result(d, a);
}

// Rows and columns of what LU and the singular values are of.
enum { DRAW_LEAST = 1, DRAW_MOST = 6 };

static inline void draw_lu(draw_t *d) {
  const int64_t m = draw_between(d, DRAW_LEAST, DRAW_MOST),
                n = draw_between(d, DRAW_LEAST, DRAW_MOST);
  const int64_t least = m < n ? m : n;
  const draw_shape_t a = draw_matrices(d, m, n);
  draw_operand(d, a);
  draw_call(d, "LuDecomposition");
  draw_result(d, a);
  draw_result(d, draw_retype(draw_vectors(&a, a.rank - 2, least), MP_DTYPE_S32));
  draw_result(d, draw_retype(draw_vectors(&a, a.rank - 2, m), MP_DTYPE_S32));
}

static inline void draw_eigh(draw_t *d) {
  const int64_t n = draw_between(d, 0, 6);
  const draw_shape_t a = draw_matrices(d, n, n);
  draw_operand(d, a);
  static const char *const configs[] = {"1,0,100,1e-6", "0,0,100,1e-6", "1,1,100,1e-6"};
  if (draw_bool(d)) {
    draw_call_of(d, "Eigh", configs[draw_between(d, 0, 2)]);
  } else {
    draw_call(d, draw_bool(d) ? "minipod.eigh.lower" : "minipod.eigh.upper");
  }
  draw_result(d, a);
  draw_result(d, draw_retype(draw_vectors(&a, a.rank - 2, n), mp_dtype_real_part(a.dtype)));
}

static inline void draw_svd(draw_t *d) {
  const int64_t m = draw_between(d, DRAW_LEAST, DRAW_MOST),
                n = draw_between(d, DRAW_LEAST, DRAW_MOST);
  const int64_t least = m < n ? m : n;
  const draw_shape_t a = draw_matrices(d, m, n);
  const bool is_full = draw_bool(d);
  draw_operand(d, a);
  draw_call(d, "minipod.svd");
  draw_result(d, draw_retype(draw_vectors(&a, a.rank - 2, least), mp_dtype_real_part(a.dtype)));
  if (draw_bool(d)) return;
  draw_shape_t u = a, vt = a;
  u.dims[u.rank - 1] = is_full ? m : least;
  vt.dims[vt.rank - 2] = is_full ? n : least;
  draw_result(d, u);
  draw_result(d, vt);
}

static inline void draw_tridiagonal(draw_t *d) {
  const int64_t n = draw_between(d, 0, 6);
  const draw_shape_t b = draw_matrices(d, n, draw_between(d, 0, 3));
  for (int i = 0; i < 3; ++i) draw_operand(d, draw_vectors(&b, b.rank - 2, n));
  draw_operand(d, b);
  draw_call(d, draw_bool(d) ? "minipod.tridiagonal_solve" : "minipod.tridiagonal_solve.perturbed");
  draw_result(d, b);
}

static inline void draw_top_k(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_INTEGER | DRAW_FLOAT), 1, 2);
  draw_shape_t out = in;
  out.dims[out.rank - 1] = draw_between(d, 0, in.dims[in.rank - 1]);
  draw_operand(d, in);
  draw_call(d, draw_bool(d) ? "TopK" : "mhlo.topk");
  draw_result(d, out);
  draw_result(d, draw_retype(out, MP_DTYPE_S32));
}

static inline void draw_approx_top_k(draw_t *d) {
  const draw_shape_t in = draw_shape(d, draw_dtype(d, DRAW_INTEGER | DRAW_FLOAT), 1, 2);
  const uint32_t dim = (uint32_t)draw_below(d, in.rank);
  const mp_dtype_t index = draw_dtype(d, DRAW_INTEGER);
  draw_shape_t out = in;
  out.dims[dim] = draw_between(d, 0, in.dims[dim]);
  draw_operand(d, in);
  draw_operand(d, draw_retype(in, index));
  draw_operand(d, draw_scalar(in.dtype));
  draw_operand(d, draw_scalar(index));
  draw_op(d, "stablehlo.custom_call");
  mp_strbuf_printf(&d->op,
                   " <{api_version = 4 : i32, call_target_name = \"ApproxTopK\", "
                   "backend_config = {reduction_dim = %u : i64}}>",
                   dim);
  draw_result(d, out);
  draw_result(d, draw_retype(out, index));
}

// ---- whole programs ----

typedef void (*draw_fn_t)(draw_t *d);

// Elementwise operations are many, so they come up more often.
static const draw_fn_t k_draw_fns[] = {
    draw_elementwise,
    draw_elementwise,
    draw_elementwise,
    draw_elementwise,
    draw_elementwise,
    draw_elementwise,
    draw_convert,
    draw_compare,
    draw_select,
    draw_clamp,
    draw_complex,
    draw_reduce_precision,
    draw_bitcast,
    draw_broadcast,
    draw_transpose,
    draw_reshape,
    draw_slice,
    draw_reverse,
    draw_pad,
    draw_concatenate,
    draw_iota,
    draw_dimension_size,
    draw_dynamic_slice,
    draw_dynamic_update_slice,
    draw_gather,
    draw_gather,
    draw_scatter,
    draw_scatter,
    draw_reduce,
    draw_reduce_window,
    draw_reduce_window,
    draw_select_and_scatter,
    draw_sort,
    draw_map,
    draw_dot,
    draw_convolution,
    draw_convolution,
    draw_fft,
    draw_cholesky,
    draw_triangular_solve,
    draw_rng,
    draw_rng_bits,
    draw_batch_norm,
    draw_householder,
    draw_lu,
    draw_eigh,
    draw_svd,
    draw_tridiagonal,
    draw_top_k,
    draw_approx_top_k,
};
enum { DRAW_NUM_FNS = sizeof(k_draw_fns) / sizeof(k_draw_fns[0]) };

// A module with one operation. What is drawn depends on the bytes, then on the seed alone.
static inline void draw_program(const uint8_t *bytes, size_t size, uint64_t seed,
                                mp_strbuf_t *out) {
  draw_t d = {.bytes = bytes, .size = size, .state = seed | 1};
  mp_strbuf_init(&d.op);
  mp_strbuf_init(&d.types);
  k_draw_fns[draw_below(&d, DRAW_NUM_FNS)](&d);
  mp_strbuf_puts(out, "func.func @main(");
  for (uint32_t i = 0; i < d.num_params; ++i) {
    mp_strbuf_printf(out, "%s%%p%u: ", i == 0 ? "" : ", ", i);
    draw_print_shape(out, &d.params[i]);
  }
  mp_strbuf_printf(out, ") -> (%s) {\n  %%r:%u = %s : (", mp_strbuf_text(&d.types), d.num_results,
                   mp_strbuf_text(&d.op));
  for (uint32_t i = 0; i < d.num_params; ++i) {
    if (i > 0) mp_strbuf_puts(out, ", ");
    draw_print_shape(out, &d.params[i]);
  }
  mp_strbuf_printf(out, ") -> (%s)\n  return ", mp_strbuf_text(&d.types));
  for (uint32_t i = 0; i < d.num_results; ++i) {
    mp_strbuf_printf(out, "%s%%r#%u", i == 0 ? "" : ", ", i);
  }
  mp_strbuf_printf(out, " : %s\n}\n", mp_strbuf_text(&d.types));
  mp_strbuf_deinit(&d.op);
  mp_strbuf_deinit(&d.types);
}

#endif  // MINIPOD_TESTS_UNIT_SUPPORT_HOSTILE_HOSTILE_CALLS_H_
