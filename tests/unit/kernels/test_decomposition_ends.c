// Decompositions and solvers where nothing is left to compute with: NaN and infinity, one element
// or none, zero pivots, the ends of the range of doubles. What LAPACK does there is what JAX
// expects.
#include <float.h>

#include "sim/kernels/linalg/linalg.h"
#include "tests/unit/support/hard_matrices.h"

static void begin_call(kernel_bench_t *bench, const char *target, mp_dtype_t dtype, uint32_t rank,
                       const int64_t *dims) {
  bench_begin(bench, MP_OP_CUSTOM_CALL);
  bench_operand(bench, dtype, rank, dims);
  bench_string(bench, MP_ATTR_CALL_TARGET_NAME, target);
}

static void run_call(kernel_bench_t *bench, const void *in, void *const *out) {
  bench_make(bench);
  bench_run(bench, &in, out);
  bench_end(bench);
}

static void eigh(int64_t n, const double *a, double *v, double *w) {
  kernel_bench_t bench;
  begin_call(&bench, "minipod.eigh.lower", MP_DTYPE_F64, 2, DIMS(n, n));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(n, n));
  bench_result(&bench, MP_DTYPE_F64, 1, DIMS(n));
  run_call(&bench, a, (void *[]){v, w});
}

// XLA's call, which keeps blocks.
static void eigh_of_blocks(int64_t n, const double *a, double *v, double *w) {
  kernel_bench_t bench;
  begin_call(&bench, "Eigh", MP_DTYPE_F64, 2, DIMS(n, n));
  bench_string(&bench, MP_ATTR_BACKEND_CONFIG, "1,0,100,1e-6");
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(n, n));
  bench_result(&bench, MP_DTYPE_F64, 1, DIMS(n));
  run_call(&bench, a, (void *[]){v, w});
}

static void svd(int64_t m, int64_t n, const double *a, double *s, double *u, double *vt) {
  kernel_bench_t bench;
  begin_call(&bench, "minipod.svd", MP_DTYPE_F64, 2, DIMS(m, n));
  bench_result(&bench, MP_DTYPE_F64, 1, DIMS(m < n ? m : n));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(m, m));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(n, n));
  run_call(&bench, a, (void *[]){s, u, vt});
}

static int64_t count_nan(int64_t count, const double *a) {
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) found += isnan(a[i]) ? 1 : 0;
  return found;
}

enum { SIDE = 5, ALL = SIDE * SIDE };

static void what_is_not_finite_has_no_vectors(void **state) {
  (void)state;
  for (int at = 0; at < 2 * ALL; ++at) {
    double a[ALL], s[SIDE], u[ALL], v[ALL];
    for (int i = 0; i < ALL; ++i) a[i] = i % (SIDE + 1) == 0 ? 1 : 0;
    a[at % ALL] = at < ALL ? (double)NAN : INFINITY;
    svd(SIDE, SIDE, a, s, u, v);
    assert_int_equal(count_nan(SIDE, s) + count_nan(ALL, u) + count_nan(ALL, v), SIDE + 2 * ALL);
    bool read = at % ALL % SIDE <= at % ALL / SIDE;  // the lower triangle is
    eigh(SIDE, a, v, s);
    assert_int_equal(count_nan(SIDE, s) + count_nan(ALL, v), read ? SIDE + ALL : 0);
  }
}

// Rows 0, 2 and 4 of the matrix are one block, the others are blocks of one row.
static void eigenvalues_keep_to_their_block(void **state) {
  (void)state;
  double a[ALL] = {0}, v[ALL], w[SIDE];
  for (int i = 0; i < SIDE; ++i) a[i * SIDE + i] = 5 - i;
  a[2 * SIDE + 0] = a[4 * SIDE + 2] = 3;
  a[1] = a[SIDE - 1] = NAN;  // the upper triangle is not read
  eigh_of_blocks(SIDE, a, v, w);
  assert_float_equal(w[1], 4, 0);
  assert_float_equal(w[3], 2, 0);
  assert_true(w[0] < w[2] && w[2] < w[4]);
  assert_float_equal(w[0] + w[2] + w[4], 5 + 3 + 1, 1e-12);
  for (int i = 0; i < ALL; ++i) {
    const int row = i / SIDE, column = i % SIDE;
    if (row % 2 == 0 && column % 2 == 0) continue;
    assert_float_equal(v[i], row == column ? 1 : 0, 0);
  }
  a[2 * SIDE + 0] = NAN;  // of one block
  eigh_of_blocks(SIDE, a, v, w);
  assert_int_equal(count_nan(SIDE, w), 3);
  assert_int_equal(count_nan(ALL, v), 9);
}

// Everything ends, is the same each time, and orthogonal unless something was not finite.
static void any_bits_will_do(void **state) {
  (void)state;
  for (int round = 0; round < 3000; ++round) {
    double a[ALL], s[2][SIDE], u[2][ALL], v[2][ALL];
    bool finite = true, finite_below = true;
    for (int i = 0; i < ALL; ++i) {
      uint64_t x = bits();
      memcpy(&a[i], &x, sizeof(x));
      if (round % 4 == 0 && x % 2 != 0) a[i] = 0;
      finite = finite && isfinite(a[i]);
      finite_below = finite_below && (i % SIDE > i / SIDE || isfinite(a[i]));
    }
    for (int i = 0; i < 2; ++i) svd(SIDE, SIDE, a, s[i], u[i], v[i]);
    assert_memory_equal(s[0], s[1], sizeof(s[0]));
    assert_memory_equal(u[0], u[1], sizeof(u[0]));
    assert_memory_equal(v[0], v[1], sizeof(v[0]));
    for (int i = 0; finite && i < SIDE; ++i) {
      double u_length = 0, v_length = 0;
      for (int j = 0; j < SIDE; ++j) {
        u_length += u[0][j * SIDE + i] * u[0][j * SIDE + i];
        v_length += v[0][i * SIDE + j] * v[0][i * SIDE + j];
      }
      assert_true(fabs(u_length - 1) < 1e-13 && fabs(v_length - 1) < 1e-13 && s[0][i] >= 0);
    }
    eigh(SIDE, a, v[0], s[0]);
    assert_int_equal(count_nan(SIDE, s[0]) + count_nan(ALL, v[0]), finite_below ? 0 : SIDE + ALL);
  }
}

static void one_element_is_its_eigenvalue(void **state) {
  (void)state;
  const double values[] = {-3, 0, 1e-320, INFINITY, (double)NAN};
  for (int i = 0; i < 5; ++i) {
    double w = 7, v = 7;
    eigh(1, &values[i], &v, &w);
    assert_true(v == 1);
    assert_true(w == values[i] || (isnan(w) && isnan(values[i])));
  }
}

static void no_columns_leave_identities(void **state) {
  (void)state;
  double u[9], identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, nothing = 0;
  memset(u, 0xAB, sizeof(u));
  svd(3, 0, &nothing, &nothing, u, &nothing);
  assert_memory_equal(u, identity, sizeof(u));
  memset(u, 0xAB, sizeof(u));
  svd(0, 3, &nothing, &nothing, &nothing, u);
  assert_memory_equal(u, identity, sizeof(u));
  int32_t perm[2 * 3] = {7, 7, 7, 7, 7, 7}, pivots = 0;
  kernel_bench_t bench;
  begin_call(&bench, "LuDecomposition", MP_DTYPE_F64, 3, DIMS(2, 3, 0));
  bench_result(&bench, MP_DTYPE_F64, 3, DIMS(2, 3, 0));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(2, 0));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(2, 3));
  run_call(&bench, &nothing, (void *[]){&nothing, &pivots, perm});
  assert_memory_equal(perm, ((int32_t[]){0, 1, 2, 0, 1, 2}), sizeof(perm));
}

// Thin factors of a tall matrix take memory for themselves, not for a square of the long side.
static void tall_matrices_take_little_scratch(void **state) {
  (void)state;
  kernel_bench_t bench;
  begin_call(&bench, "minipod.svd", MP_DTYPE_F64, 2, DIMS(1000000, 2));
  bench_result(&bench, MP_DTYPE_F64, 1, DIMS(2));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(1000000, 2));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(2, 2));
  bench_make(&bench);
  assert_true(bench.kernel->scratch_bytes < 1000000 * 2 * 8 * 5);
  bench_end(&bench);
}

static void bases_are_completed(void **state) {
  (void)state;
  double rows[ALL] = {0, 0.6, 0, 0.8, 0, 0, 0.8, 0, -0.6, 0};
  mp_complete_basis_d(SIDE, 2, SIDE, rows);
  for (int i = 0; i < ALL; ++i) {
    double sum = 0;
    for (int k = 0; k < SIDE; ++k) sum += rows[i / SIDE * SIDE + k] * rows[i % SIDE * SIDE + k];
    assert_true(fabs(sum - (i / SIDE == i % SIDE)) < 1e-15);
  }
}

static void choleskys_pivots_are_positive(void **state) {
  (void)state;
  double nan = (double)NAN;
  const double in[][4] = {{INFINITY, 0, 1, 2}, {4, 0, 2, INFINITY}, {1, 0, 1, 1},
                          {1, 0, 2, 1},        {nan, 0, 1, 2},      {1e-310, 0, 0, 1e300}};
  const double wanted[][4] = {{INFINITY, 0, 0, sqrt(2)}, {2, 0, 1, INFINITY},
                              {nan, nan, nan, nan},      {nan, nan, nan, nan},
                              {nan, nan, nan, nan},      {sqrt(1e-310), 0, 0, sqrt(1e300)}};
  for (int i = 0; i < 6; ++i) {
    double out[4];
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_CHOLESKY);
    bench_operand(&bench, MP_DTYPE_F64, 2, DIMS(2, 2));
    bench_result(&bench, MP_DTYPE_F64, 2, DIMS(2, 2));
    bench_bool(&bench, MP_ATTR_LOWER, true);
    run_call(&bench, in[i], (void *[]){out});
    for (int j = 0; j < 4; ++j) {
      assert_true(isnan(wanted[i][j]) ? isnan(out[j]) : out[j] == wanted[i][j]);
    }
  }
}

// Of equally large candidates the first one is the pivot; columns without any are skipped.
static void pivots_are_the_first_of_equals(void **state) {
  (void)state;
  const double a[9] = {0, 1, 1, 0, -1, 1, 0, 1, -1};
  double packed[9];
  int32_t pivots[3], perm[3];
  kernel_bench_t bench;
  begin_call(&bench, "LuDecomposition", MP_DTYPE_F64, 2, DIMS(3, 3));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(3, 3));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(3));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(3));
  run_call(&bench, a, (void *[]){packed, pivots, perm});
  assert_memory_equal(pivots, ((int32_t[]){0, 1, 2}), sizeof(pivots));
  assert_memory_equal(packed, ((double[]){0, 1, 1, 0, -1, 1, 0, -1, 0}), sizeof(packed));
}

enum { ROWS = 4 };

static void solve_tridiagonal(bool perturbed, const double *below, const double *diagonal,
                              const double *above, const double *b, double *x) {
  kernel_bench_t bench;
  begin_call(&bench,
             perturbed ? "minipod.tridiagonal_solve.perturbed" : "minipod.tridiagonal_solve",
             MP_DTYPE_F64, 1, DIMS(ROWS));
  for (int i = 0; i < 2; ++i) bench_operand(&bench, MP_DTYPE_F64, 1, DIMS(ROWS));
  bench_operand(&bench, MP_DTYPE_F64, 2, DIMS(ROWS, 1));
  bench_result(&bench, MP_DTYPE_F64, 2, DIMS(ROWS, 1));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){below, diagonal, above, b}, (void *[]){x});
  bench_end(&bench);
}

static void singular_tridiagonal_systems(void **state) {
  (void)state;
  const double none[ROWS] = {0}, ones[ROWS] = {0, 1, 1, 1}, b[ROWS] = {1, 2, 3, 4};
  const double zeros[][ROWS] = {{0, 2, 3, 4}, {1, 2, 0, 4}, {1, 2, 3, 0}, {0, 0, 0, 0}};
  double x[ROWS];
  for (int i = 0; i < 4; ++i) {
    solve_tridiagonal(false, none, zeros[i], none, b, x);
    assert_int_equal(count_nan(ROWS, x), ROWS);
    solve_tridiagonal(true, none, zeros[i], none, b, x);
    for (int j = 0; j < ROWS; ++j) {
      assert_true(zeros[i][j] == 0 ? x[j] > 1e15 && isfinite(x[j]) : x[j] == b[j] / zeros[i][j]);
    }
  }
  // Zeros on the diagonal are no obstacle where rows can be exchanged.
  solve_tridiagonal(false, ones, none, (double[]){1, 1, 1, 0}, b, x);
  assert_memory_equal(x, ((double[]){-2, 1, 4, 2}), sizeof(x));
  // Small pivots stay as they are as long as quotients fit.
  const double small[ROWS] = {1, 1e-20, 1e-100, 1e-300};
  solve_tridiagonal(true, none, small, none, b, x);
  for (int j = 0; j < ROWS; ++j) assert_true(fabs(x[j] * small[j] / b[j] - 1) < 1e-15);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_not_finite_has_no_vectors),
      cmocka_unit_test(eigenvalues_keep_to_their_block),
      cmocka_unit_test(any_bits_will_do),
      cmocka_unit_test(one_element_is_its_eigenvalue),
      cmocka_unit_test(no_columns_leave_identities),
      cmocka_unit_test(tall_matrices_take_little_scratch),
      cmocka_unit_test(bases_are_completed),
      cmocka_unit_test(choleskys_pivots_are_positive),
      cmocka_unit_test(pivots_are_the_first_of_equals),
      cmocka_unit_test(singular_tridiagonal_systems),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
