// Decompositions of singular, graded, huge and tiny matrices of all shapes: the factors multiply
// back to within rounding and are orthogonal, whatever the matrix.
#include <float.h>

#include "tests/unit/support/hard_matrices.h"

// ---- Checks ----

typedef struct {
  const char *what, *name;  // of the decomposition and of the family
  int seed;
  mp_dtype_t dtype;
  int64_t m, n;
} case_t;

static void assert_small(const case_t *c, const char *which, double error) {
  double limit = 8 * N * (is_single(c->dtype) ? (double)FLT_EPSILON : DBL_EPSILON);
  if (!(error <= limit)) {
    fail_msg("%s of %s %d, %s[%d, %d]: %s is off by %g", c->what, c->name, c->seed,
             mp_dtype_name(c->dtype), (int)c->m, (int)c->n, which, error);
  }
}

// |x y - a| / |a| for x [m, k], y [k, n].
static double product_error(int64_t m, int64_t k, int64_t n, const z_t *x, const z_t *y,
                            const z_t *a) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < m * n; ++i) {
    z_t sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += x[i / n * k + p] * y[p * n + i % n];
    difference = hypot(difference, cabs(sum - a[i]));
    size = hypot(size, cabs(a[i]));
  }
  return size == 0 ? difference : difference / size;
}

// |q^H q - 1| for q [m, n].
static double orthogonality(int64_t m, int64_t n, const z_t *q) {
  double difference = 0;
  for (int64_t i = 0; i < n * n; ++i) {
    z_t sum = 0;
    for (int64_t p = 0; p < m; ++p) sum += conj(q[p * n + i / n]) * q[p * n + i % n];
    difference = hypot(difference, cabs(sum - (i / n == i % n)));
  }
  return difference;
}

static void adjoint(int64_t m, int64_t n, const z_t *a, z_t *out) {
  for (int64_t i = 0; i < m * n; ++i) out[i % n * m + i / n] = conj(a[i]);
}

// ---- Singular values ----

// `form`: 0 values alone, 1 thin, 2 full.
static void run_svd(mp_dtype_t dtype, int64_t m, int64_t n, int form, const z_t *a, z_t *s, z_t *u,
                    z_t *vt) {
  static char in[BYTES], s_out[N * 8], u_out[BYTES], vt_out[BYTES];
  int64_t k = m < n ? m : n, columns = form == 2 ? m : k, rows = form == 2 ? n : k;
  pack(dtype, a, m * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, mp_dtype_real_part(dtype), 1, DIMS(k));
  if (form > 0) bench_result(&bench, dtype, 2, DIMS(m, columns));
  if (form > 0) bench_result(&bench, dtype, 2, DIMS(rows, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "minipod.svd");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){s_out, u_out, vt_out});
  bench_end(&bench);
  unpack(mp_dtype_real_part(dtype), s_out, k, s);
  if (form > 0) unpack(dtype, u_out, m * columns, u);
  if (form > 0) unpack(dtype, vt_out, rows * n, vt);
}

static void check_svd(const case_t *c, int form, z_t *a) {
  static z_t s[N], values[N], u[MOST], vt[MOST], v[MOST], us[MOST], some[MOST];
  int64_t m = c->m, n = c->n, k = m < n ? m : n;
  int64_t columns = form == 2 ? m : k, rows = form == 2 ? n : k;
  run_svd(c->dtype, m, n, 0, a, values, NULL, NULL);
  run_svd(c->dtype, m, n, form, a, s, u, vt);
  int exponent = bring_to_one(m * n, a);
  scale(k, exponent, s);
  scale(k, exponent, values);
  for (int64_t i = 0; i < m * k; ++i) us[i] = u[i / k * columns + i % k] * s[i % k];
  memcpy(some, vt, (size_t)(k * n) * sizeof(z_t));
  adjoint(rows, n, vt, v);
  assert_small(c, "u s vt", product_error(m, k, n, us, some, a));
  assert_small(c, "u", orthogonality(m, columns, u));
  assert_small(c, "v", orthogonality(n, rows, v));
  for (int64_t i = 0; i < k; ++i) {
    assert_true(creal(s[i]) >= 0 && (i == 0 || creal(s[i - 1]) >= creal(s[i])));
    assert_small(c, "a value", cabs(s[i] - values[i]) / (creal(s[0]) > 0 ? creal(s[0]) : 1));
  }
}

static void check_eigh(const case_t *c, z_t *a) {
  static z_t w[N], v[MOST], vw[MOST], va[MOST];
  static char in[BYTES], v_out[BYTES], w_out[N * 8];
  int64_t n = c->n;
  for (int64_t i = 0; i < n * n; ++i) {
    int64_t turned = i % n * n + i / n;
    if (i / n == i % n) a[i] = creal(a[i]);
    if (i / n < i % n) a[i] = conj(a[turned]);
  }
  pack(c->dtype, a, n * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, c->dtype, 2, DIMS(n, n));
  bench_result(&bench, c->dtype, 2, DIMS(n, n));
  bench_result(&bench, mp_dtype_real_part(c->dtype), 1, DIMS(n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "minipod.eigh.lower");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){v_out, w_out});
  bench_end(&bench);
  unpack(c->dtype, v_out, n * n, v);
  unpack(mp_dtype_real_part(c->dtype), w_out, n, w);
  scale(n, bring_to_one(n * n, a), w);
  for (int64_t i = 0; i < n * n; ++i) vw[i] = v[i] * w[i % n];
  adjoint(n, n, v, va);
  assert_small(c, "v w v^H", product_error(n, n, n, vw, va, a));
  assert_small(c, "v", orthogonality(n, n, v));
  for (int64_t i = 1; i < n; ++i) assert_true(creal(w[i - 1]) <= creal(w[i]));
}

// Qr and the product of its reflections.
static void check_qr(const case_t *c, z_t *a) {
  static z_t packed[MOST], q[MOST], r[MOST];
  static char in[BYTES], packed_out[BYTES], taus[N * 16], q_out[BYTES];
  int64_t m = c->m, n = c->n;  // m >= n
  pack(c->dtype, a, m * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, c->dtype, 2, DIMS(m, n));
  bench_result(&bench, c->dtype, 2, DIMS(m, n));
  bench_result(&bench, c->dtype, 1, DIMS(n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "Qr");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){packed_out, taus});
  bench_end(&bench);
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, c->dtype, 2, DIMS(m, n));
  bench_operand(&bench, c->dtype, 1, DIMS(n));
  bench_result(&bench, c->dtype, 2, DIMS(m, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "ProductOfElementaryHouseholderReflectors");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){packed_out, taus}, (void *[]){q_out});
  bench_end(&bench);
  unpack(c->dtype, packed_out, m * n, packed);
  unpack(c->dtype, q_out, m * n, q);
  for (int64_t i = 0; i < n * n; ++i) r[i] = i % n >= i / n ? packed[i] : 0;
  scale(n * n, bring_to_one(m * n, a), r);
  assert_small(c, "q r", product_error(m, n, n, q, r, a));
  assert_small(c, "q", orthogonality(m, n, q));
}

static void run_lu(mp_dtype_t dtype, int64_t m, int64_t n, const void *in, void *out,
                   int32_t *pivots, int32_t *perm) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(m < n ? m : n));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(m));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "LuDecomposition");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out, pivots, perm});
  bench_end(&bench);
}

static void check_lu(const case_t *c, z_t *a) {
  static z_t packed[MOST], l[MOST], u[MOST], rows[MOST];
  static char in[BYTES], out[BYTES];
  int32_t pivots[N], perm[N];
  int64_t m = c->m, n = c->n, k = m < n ? m : n;
  pack(c->dtype, a, m * n, in);
  run_lu(c->dtype, m, n, in, out, pivots, perm);
  unpack(c->dtype, out, m * n, packed);
  int exponent = bring_to_one(m * n, a);
  for (int64_t i = 0; i < m * k; ++i) {
    l[i] = i % k < i / k ? packed[i / k * n + i % k] : i % k == i / k;
    assert_true(cabs(l[i]) < 1.5);
  }
  for (int64_t i = 0; i < k * n; ++i) u[i] = i % n >= i / n ? packed[i] : 0;
  scale(k * n, exponent, u);
  for (int64_t i = 0; i < m * n; ++i) rows[i] = a[perm[i / n] * n + i % n];
  assert_small(c, "l u", product_error(m, k, n, l, u, rows));
}

static void check_thin_svd(const case_t *c, z_t *a) {
  check_svd(c, 1, a);
}

static void check_full_svd(const case_t *c, z_t *a) {
  check_svd(c, 2, a);
}

// Every matrix of every family, type and shape.
static void check_all(const char *what, void (*check)(const case_t *c, z_t *a)) {
  static const int64_t shapes[][2] = {{12, 12}, {12, 5}, {5, 12}, {3, 3}, {1, 1}, {1, 6}, {6, 1}};
  static z_t a[MOST];
  for (size_t f = 0; f < sizeof(g_families) / sizeof(g_families[0]); ++f) {
    const family_t *family = &g_families[f];
    for (size_t i = 0; i < 4 * sizeof(shapes) / sizeof(shapes[0]); ++i) {
      for (int seed = 0; seed < family->seeds; ++seed) {
        case_t c = {what, family->name, seed, g_types[i % 4], shapes[i / 4][0], shapes[i / 4][1]};
        bool fits = (check != check_qr || c.m >= c.n) && (check != check_eigh || c.m == c.n);
        if (fits && make(family, c.dtype, seed, c.m, c.n, a)) check(&c, a);
      }
    }
  }
}

static void thin_svd_multiplies_back(void **state) {
  (void)state;
  check_all("thin svd", check_thin_svd);
}

static void full_svd_multiplies_back(void **state) {
  (void)state;
  check_all("full svd", check_full_svd);
}

static void eigh_multiplies_back(void **state) {
  (void)state;
  check_all("eigh", check_eigh);
}

static void qr_multiplies_back(void **state) {
  (void)state;
  check_all("qr", check_qr);
}

static void lu_multiplies_back(void **state) {
  (void)state;
  check_all("lu", check_lu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(thin_svd_multiplies_back), cmocka_unit_test(full_svd_multiplies_back),
      cmocka_unit_test(eigh_multiplies_back),     cmocka_unit_test(qr_multiplies_back),
      cmocka_unit_test(lu_multiplies_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
