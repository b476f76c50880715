// Factorizations, triangular systems, batch normalization and top-k: by multiplying back, or
// against the formula.
#include <complex.h>
#include <math.h>

#include "tests/unit/support/kernel_test.h"

typedef double _Complex z_t;

#define DIMS(...) ((int64_t[]){__VA_ARGS__})

static uint64_t g_random = 7;

static double noise(void) {
  g_random = g_random * 6364136223846793005ull + 1442695040888963407ull;
  return (double)(g_random >> 11) * 0x1p-53 - 0.5;
}

static void fill(z_t *a, int64_t count, bool is_complex) {
  for (int64_t i = 0; i < count; ++i) a[i] = noise() + (is_complex ? noise() * I : 0);
}

// As the element type `dtype` has it, and back.
static void pack(mp_dtype_t dtype, const z_t *from, int64_t count, void *out) {
  for (int64_t i = 0; i < count; ++i) {
    switch ((int)dtype) {
      case MP_DTYPE_F32:
        ((float *)out)[i] = (float)creal(from[i]);
        break;
      case MP_DTYPE_F64:
        ((double *)out)[i] = creal(from[i]);
        break;
      case MP_DTYPE_C64:
        ((float _Complex *)out)[i] = (float _Complex)from[i];
        break;
      default:
        ((z_t *)out)[i] = from[i];
        break;
    }
  }
}

static void unpack(mp_dtype_t dtype, const void *from, int64_t count, z_t *out) {
  for (int64_t i = 0; i < count; ++i) {
    switch ((int)dtype) {
      case MP_DTYPE_F32:
        out[i] = ((const float *)from)[i];
        break;
      case MP_DTYPE_F64:
        out[i] = ((const double *)from)[i];
        break;
      case MP_DTYPE_C64:
        out[i] = ((const float _Complex *)from)[i];
        break;
      default:
        out[i] = ((const z_t *)from)[i];
        break;
    }
  }
}

static void assert_near(z_t got, z_t wanted, double tolerance) {
  if (!(cabs(got - wanted) <= tolerance)) {
    fail_msg("%g%+gi, not %g%+gi", creal(got), cimag(got), creal(wanted), cimag(wanted));
  }
}

static const mp_dtype_t g_types[] = {MP_DTYPE_F32, MP_DTYPE_F64, MP_DTYPE_C64, MP_DTYPE_C128};

static double tolerance_of(mp_dtype_t dtype) {
  return dtype == MP_DTYPE_F32 || dtype == MP_DTYPE_C64 ? 2e-5 : 1e-12;
}

enum { N = 19, BATCH = 3, COUNT = N * N };

static void check_cholesky(mp_dtype_t dtype, bool lower) {
  static z_t a[BATCH * COUNT], l[BATCH * COUNT], m[COUNT];
  static char in[BATCH * COUNT * 16], out[BATCH * COUNT * 16];
  for (int b = 0; b < BATCH; ++b) {
    fill(m, COUNT, mp_dtype_is_complex(dtype));
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) {
        z_t sum = i == j ? 1 : 0;
        for (int k = 0; k < N; ++k) sum += m[i * N + k] * conj(m[j * N + k]);
        // The triangle that must not be read holds garbage.
        a[b * COUNT + i * N + j] = (lower ? j <= i : j >= i) ? sum : 1000;
      }
    }
  }
  pack(dtype, a, BATCH * COUNT, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CHOLESKY);
  bench_operand(&bench, dtype, 3, DIMS(BATCH, N, N));
  bench_result(&bench, dtype, 3, DIMS(BATCH, N, N));
  bench_bool(&bench, MP_ATTR_LOWER, lower);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  unpack(dtype, out, BATCH * COUNT, l);
  for (int b = 0; b < BATCH; ++b) {
    const z_t *f = l + b * COUNT;
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < N; ++j) {
        if (lower ? j > i : j < i) {
          assert_true(f[i * N + j] == 0);
          continue;
        }
        z_t sum = 0;  // L L^H, or U^H U
        for (int k = 0; k < N; ++k) {
          sum += lower ? f[i * N + k] * conj(f[j * N + k]) : conj(f[k * N + i]) * f[k * N + j];
        }
        assert_near(sum, a[b * COUNT + i * N + j], 10 * tolerance_of(dtype));
      }
    }
  }
  bench_end(&bench);
}

static void factor(mp_dtype_t dtype, int64_t batch, int64_t n, bool lower, const void *in,
                   void *out) {
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CHOLESKY);
  bench_operand(&bench, dtype, 3, DIMS(batch, n, n));
  bench_result(&bench, dtype, 3, DIMS(batch, n, n));
  bench_bool(&bench, MP_ATTR_LOWER, lower);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){out});
  bench_end(&bench);
}

// A batch of small matrices, each of which has the same factor as it has alone, to the bit; those
// that are not positive definite spoil no others.
static void check_small_choleskys(int64_t batch, int64_t n, bool lower) {
  enum { MOST_BATCH = 41, MOST_N = 17 };
  static double a[MOST_BATCH * MOST_N * MOST_N], out[MOST_BATCH * MOST_N * MOST_N];
  const int64_t size = n * n;
  for (int64_t i = 0; i < batch * size; ++i) {
    const int64_t r = i % size / n, c = i % n;
    a[i] = r == c ? (double)n + noise() : (lower ? c < r : c > r) ? noise() : (double)NAN;
  }
  for (int64_t b = 3; b < batch; b += 7) a[b * size + size - 1] = b % 2 == 0 ? -1 : (double)NAN;
  factor(MP_DTYPE_F64, batch, n, lower, a, out);
  for (int64_t b = 0; b < batch; ++b) {
    const double *f = out + b * size;
    double alone[MOST_N * MOST_N];
    factor(MP_DTYPE_F64, 1, n, lower, a + b * size, alone);
    assert_memory_equal(alone, f, (size_t)size * sizeof(*f));
    for (int64_t i = 0; i < size; ++i) {
      const int64_t r = i / n, c = i % n;
      if (b % 7 == 3) {
        assert_true(isnan(f[i]));
      } else if (lower ? c > r : c < r) {
        assert_true(f[i] == 0);
      } else {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          sum += lower ? f[r * n + k] * f[c * n + k] : f[k * n + r] * f[k * n + c];
        }
        assert_true(fabs(sum - a[b * size + i]) < 1e-13 * (double)n);
      }
    }
  }
}

static void small_choleskys(void **state) {
  (void)state;
  for (int64_t n = 1; n <= 17; ++n) {
    for (int64_t batch = 1; batch <= 41; batch += 4) {
      check_small_choleskys(batch, n, true);
      check_small_choleskys(batch, n, false);
    }
  }
}

// Complex systems with pivots of all kinds: the quotient is C's own, up to rounding, and where that
// is infinite or NaN it is not finite either.
static void complex_pivots(void **state) {
  (void)state;
  enum { KINDS = 11, WIDTH = 9 };
  const double kinds[KINDS] = {0,     -0.0,   1,        -3,        1e-300,     4e-320,
                               1e300, -1e-20, INFINITY, -INFINITY, (double)NAN};
  const z_t above[WIDTH] = {1, -2, I, 3 - 4 * I, 1e-10, 0, 1e-5 * I, -1e3 + I, 7};
  for (int i = 0; i < KINDS * KINDS; ++i) {
    z_t pivot = __builtin_complex(kinds[i / KINDS], kinds[i % KINDS]), x[WIDTH];
    kernel_bench_t bench;
    bench_begin(&bench, MP_OP_TRIANGULAR_SOLVE);
    bench_operand(&bench, MP_DTYPE_C128, 2, DIMS(1, 1));
    bench_operand(&bench, MP_DTYPE_C128, 2, DIMS(1, WIDTH));
    bench_result(&bench, MP_DTYPE_C128, 2, DIMS(1, WIDTH));
    bench_bool(&bench, MP_ATTR_LEFT_SIDE, true);
    bench_bool(&bench, MP_ATTR_LOWER, true);
    bench_bool(&bench, MP_ATTR_UNIT_DIAGONAL, false);
    bench_enum(&bench, MP_ATTR_TRANSPOSE_A, MP_ENUM_TRANSPOSE, MP_TRANSPOSE_NO);
    bench_make(&bench);
    bench_run(&bench, (const void *[]){&pivot, above}, (void *[]){x});
    bench_end(&bench);
    for (int v = 0; v < WIDTH; ++v) {
      const z_t wanted = above[v] / pivot;
      if (isfinite(creal(wanted)) && isfinite(cimag(wanted))) {
        assert_near(x[v], wanted, 1e-15 * cabs(wanted) + 1e-320);
      } else {
        assert_false(isfinite(creal(x[v])) && isfinite(cimag(x[v])));
      }
    }
  }
}

static void cholesky_multiplies_back(void **state) {
  (void)state;
  for (int t = 0; t < 8; ++t) check_cholesky(g_types[t / 2], t % 2 == 0);
  float bad[2 * 4] = {1, 2, 2, 1, 4, 0, 0, 9}, out[2 * 4];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CHOLESKY);
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(2, 2, 2));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(2, 2, 2));
  bench_bool(&bench, MP_ATTR_LOWER, true);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){bad}, (void *[]){out});
  for (int i = 0; i < 4; ++i) assert_true(isnan(out[i]));
  assert_true(out[4] == 2 && out[5] == 0 && out[6] == 0 && out[7] == 3);
  bench_end(&bench);
}

// op(a)[i, j] of the triangle that is read.
static z_t solve_element(const z_t *a, int i, int j, bool lower, bool unit, uint32_t op) {
  int r = op == MP_TRANSPOSE_NO ? i : j, c = op == MP_TRANSPOSE_NO ? j : i;
  z_t x = r == c && unit ? 1 : (lower ? c <= r : c >= r) ? a[r * N + c] : 0;
  return op == MP_TRANSPOSE_ADJOINT ? conj(x) : x;
}

static void check_solve(mp_dtype_t dtype, bool left, bool lower, bool unit, uint32_t op) {
  enum { M = 5 };
  static z_t a[2 * COUNT], b[2 * N * M], x[2 * N * M];
  static char a_bytes[2 * COUNT * 16], b_bytes[2 * N * M * 16], out[2 * N * M * 16];
  fill(a, 2 * COUNT, mp_dtype_is_complex(dtype));
  fill(b, 2 * N * M, mp_dtype_is_complex(dtype));
  for (int i = 0; i < 2 * COUNT; ++i) {
    a[i] = a[i] * 0.2 + (i % COUNT % (N + 1) == 0 ? 2 : 0);
  }
  pack(dtype, a, 2 * COUNT, a_bytes);
  pack(dtype, b, 2 * N * M, b_bytes);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_TRIANGULAR_SOLVE);
  bench_operand(&bench, dtype, 3, DIMS(2, N, N));
  bench_operand(&bench, dtype, 3, left ? DIMS(2, N, M) : DIMS(2, M, N));
  bench_result(&bench, dtype, 3, left ? DIMS(2, N, M) : DIMS(2, M, N));
  bench_bool(&bench, MP_ATTR_LEFT_SIDE, left);
  bench_bool(&bench, MP_ATTR_LOWER, lower);
  bench_bool(&bench, MP_ATTR_UNIT_DIAGONAL, unit);
  bench_enum(&bench, MP_ATTR_TRANSPOSE_A, MP_ENUM_TRANSPOSE, op);
  bench_make(&bench);
  bench_run(&bench, (const void *[]){a_bytes, b_bytes}, (void *[]){out});
  unpack(dtype, out, 2 * N * M, x);
  for (int g = 0; g < 2; ++g) {
    const z_t *ga = a + g * COUNT, *gb = b + g * N * M, *gx = x + g * N * M;
    for (int i = 0; i < N; ++i) {
      for (int j = 0; j < M; ++j) {
        z_t sum = 0;
        for (int k = 0; k < N; ++k) {
          sum += left ? solve_element(ga, i, k, lower, unit, op) * gx[k * M + j]
                      : gx[j * N + k] * solve_element(ga, k, i, lower, unit, op);
        }
        assert_near(sum, left ? gb[i * M + j] : gb[j * N + i], 10 * tolerance_of(dtype));
      }
    }
  }
  bench_end(&bench);
}

static void triangular_solve_multiplies_back(void **state) {
  (void)state;
  for (int t = 0; t < 4; ++t) {
    for (int flags = 0; flags < 8; ++flags) {
      for (uint32_t op = MP_TRANSPOSE_NO; op <= MP_TRANSPOSE_ADJOINT; ++op) {
        check_solve(g_types[t], flags & 1, flags & 2, flags & 4, op);
      }
    }
  }
}

// Every side and triangle of systems that are solved in blocks, and vectors that fill no panel. The
// numbers of one vector are those that it has among others.
static void large_triangular_systems(void **state) {
  (void)state;
  enum { L = 101, V = 77 };
  static double a[L * L], b[L * V], x[L * V], alone[L * 9];
  for (int i = 0; i < L * L; ++i) a[i] = i % (L + 1) == 0 ? 3 : (double)(i * 7919 % 61 - 30) / 300;
  for (int i = 0; i < L * V; ++i) b[i] = (double)(i * 104729 % 201 - 100);
  for (int flags = 0; flags < 16; ++flags) {
    const bool left = flags & 1, lower = flags & 2, unit = flags & 4;
    const uint32_t op = flags & 8 ? MP_TRANSPOSE_YES : MP_TRANSPOSE_NO;
    for (int64_t v = V; v > 0; v = v == V ? 9 : 0) {
      kernel_bench_t bench;
      bench_begin(&bench, MP_OP_TRIANGULAR_SOLVE);
      bench_operand(&bench, MP_DTYPE_F64, 2, DIMS(L, L));
      bench_operand(&bench, MP_DTYPE_F64, 2, left ? DIMS(L, v) : DIMS(v, L));
      bench_result(&bench, MP_DTYPE_F64, 2, left ? DIMS(L, v) : DIMS(v, L));
      bench_bool(&bench, MP_ATTR_LEFT_SIDE, left);
      bench_bool(&bench, MP_ATTR_LOWER, lower);
      bench_bool(&bench, MP_ATTR_UNIT_DIAGONAL, unit);
      bench_enum(&bench, MP_ATTR_TRANSPOSE_A, MP_ENUM_TRANSPOSE, op);
      bench_make(&bench);
      static double right[L * V];
      for (int i = 0; i < L; ++i) {
        for (int j = 0; j < v; ++j) right[left ? i * v + j : j * L + i] = b[i * V + j];
      }
      bench_run(&bench, (const void *[]){a, right}, (void *[]){v == V ? x : alone});
      bench_end(&bench);
    }
    for (int i = 0; i < L; ++i) {
      for (int j = 0; j < V; ++j) {
        double sum = 0;
        for (int k = 0; k < L; ++k) {
          const int row = left ? i : k, column = left ? k : i;
          const int at = op == MP_TRANSPOSE_YES ? column * L + row : row * L + column;
          const bool is_there = lower ? at % L <= at / L : at % L >= at / L;
          const double element = !is_there ? 0 : unit && row == column ? 1 : a[at];
          sum += element * x[left ? k * V + j : j * L + k];
        }
        assert_true(fabs(sum - b[i * V + j]) < 1e-9 * (1 + fabs(b[i * V + j])) * 1e3);
        if (j >= 9) continue;
        assert_true(x[left ? i * V + j : j * L + i] == alone[left ? i * 9 + j : j * L + i]);
      }
    }
  }
}

// a = q * r, and q has orthonormal columns.
static void check_qr(mp_dtype_t dtype, int64_t m, int64_t n) {
  enum { MOST = 17 * 17 };
  int64_t k = m < n ? m : n;
  static z_t a[2 * MOST], f[2 * MOST], q[2 * MOST];
  static char in[2 * MOST * 16], packed[2 * MOST * 16], taus[2 * 17 * 16], q_bytes[2 * MOST * 16];
  fill(a, 2 * m * n, mp_dtype_is_complex(dtype));
  pack(dtype, a, 2 * m * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 3, DIMS(2, m, n));
  bench_result(&bench, dtype, 3, DIMS(2, m, n));
  bench_result(&bench, dtype, 2, DIMS(2, k));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "Qr");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){packed, taus});
  bench_end(&bench);
  unpack(dtype, packed, 2 * m * n, f);
  if (n > m) return;  // its product needs a square part: JAX slices it out first
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 3, DIMS(2, m, n));
  bench_operand(&bench, dtype, 2, DIMS(2, k));
  bench_result(&bench, dtype, 3, DIMS(2, m, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "ProductOfElementaryHouseholderReflectors");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){packed, taus}, (void *[]){q_bytes});
  bench_end(&bench);
  unpack(dtype, q_bytes, 2 * m * n, q);
  for (int64_t g = 0; g < 2; ++g) {
    const z_t *gq = q + g * m * n, *gr = f + g * m * n, *ga = a + g * m * n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        z_t sum = 0, product = 0;
        for (int64_t p = 0; p <= j; ++p) sum += gq[i * n + p] * gr[p * n + j];
        assert_near(sum, ga[i * n + j], 10 * tolerance_of(dtype));
        if (i >= n) continue;
        for (int64_t p = 0; p < m; ++p) product += conj(gq[p * n + i]) * gq[p * n + j];
        assert_near(product, i == j, 10 * tolerance_of(dtype));
      }
    }
  }
}

static void qr_multiplies_back(void **state) {
  (void)state;
  for (int t = 0; t < 4; ++t) {
    check_qr(g_types[t], 17, 17);
    check_qr(g_types[t], 17, 6);
    check_qr(g_types[t], 1, 1);
    check_qr(g_types[t], 5, 9);
  }
}

// P * L * U = a, in the same order as the permutation says.
static void check_lu(mp_dtype_t dtype, int64_t m, int64_t n) {
  enum { MOST = 12 * 12 };
  int64_t k = m < n ? m : n;
  z_t a[MOST], f[MOST];
  char in[MOST * 16], packed[MOST * 16];
  int32_t pivots[12], perm[12];
  fill(a, m * n, mp_dtype_is_complex(dtype));
  pack(dtype, a, m * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(k));
  bench_result(&bench, MP_DTYPE_S32, 1, DIMS(m));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "LuDecomposition");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){packed, pivots, perm});
  bench_end(&bench);
  unpack(dtype, packed, m * n, f);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      z_t sum = 0;
      for (int64_t p = 0; p <= j && p <= i && p < k; ++p) {
        sum += (p == i ? 1 : f[i * n + p]) * f[p * n + j];
      }
      assert_near(sum, a[perm[i] * n + j], 10 * tolerance_of(dtype));
      if (j < i && j < k) {
        assert_true(fabs(creal(f[i * n + j])) + fabs(cimag(f[i * n + j])) < 1.5);
      }
    }
  }
}

static void lu_multiplies_back(void **state) {
  (void)state;
  for (int t = 0; t < 4; ++t) {
    check_lu(g_types[t], 12, 12);
    check_lu(g_types[t], 12, 5);
    check_lu(g_types[t], 5, 12);
    check_lu(g_types[t], 1, 1);
  }
}

// a * v = v * w; v orthonormal; the other triangle is garbage.
static void check_eigh(mp_dtype_t dtype, int64_t n, bool upper, int64_t rank) {
  enum { MOST = 20 * 20 };
  z_t x[MOST], a[MOST], given[MOST], v[MOST], w[20];
  char in[MOST * 16], v_bytes[MOST * 16], w_bytes[20 * 8];
  fill(x, n * n, mp_dtype_is_complex(dtype));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      a[i * n + j] = 0;
      for (int64_t p = 0; p < rank; ++p) {
        a[i * n + j] += (p % 2 ? -1 : 1) * x[i * n + p] * conj(x[j * n + p]);
      }
    }
  }
  for (int64_t i = 0; i < n * n; ++i) {
    given[i] = (upper ? i % n >= i / n : i % n <= i / n) ? a[i] : 77;
  }
  pack(dtype, given, n * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 2, DIMS(n, n));
  bench_result(&bench, dtype, 2, DIMS(n, n));
  bench_result(&bench, mp_dtype_real_part(dtype), 1, DIMS(n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME,
               upper ? "minipod.eigh.upper" : "minipod.eigh.lower");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){v_bytes, w_bytes});
  bench_end(&bench);
  unpack(dtype, v_bytes, n * n, v);
  unpack(mp_dtype_real_part(dtype), w_bytes, n, w);
  for (int64_t j = 0; j < n; ++j) {
    assert_true(j == 0 || creal(w[j - 1]) <= creal(w[j]));
    for (int64_t i = 0; i < n; ++i) {
      z_t product = 0, overlap = 0;
      for (int64_t p = 0; p < n; ++p) {
        product += a[i * n + p] * v[p * n + j];
        overlap += conj(v[p * n + i]) * v[p * n + j];
      }
      assert_near(product, v[i * n + j] * w[j], 20 * tolerance_of(dtype));
      assert_near(overlap, i == j, 20 * tolerance_of(dtype));
    }
  }
}

static void eigh_finds_eigenvectors(void **state) {
  (void)state;
  for (int t = 0; t < 8; ++t) {
    check_eigh(g_types[t / 2], 20, t % 2, 20);
    check_eigh(g_types[t / 2], 13, t % 2, 2);  // most eigenvalues are zero
    check_eigh(g_types[t / 2], 1, t % 2, 1);
    check_eigh(g_types[t / 2], 2, t % 2, 0);
  }
}

// u * s * vt = a, u and v orthonormal, full or thin.
static void check_svd(mp_dtype_t dtype, int64_t m, int64_t n, bool full, int64_t rank) {
  enum { MOST = 14 * 14 };
  int64_t k = m < n ? m : n, mu = full ? m : k, nv = full ? n : k;
  z_t x[MOST], y[MOST], a[MOST], u[MOST], vt[MOST], s[14];
  char in[MOST * 16], u_bytes[MOST * 16], v_bytes[MOST * 16], s_bytes[14 * 8];
  fill(x, m * rank, mp_dtype_is_complex(dtype));
  fill(y, rank * n, mp_dtype_is_complex(dtype));
  for (int64_t i = 0; i < m * n; ++i) {
    a[i] = 0;
    for (int64_t p = 0; p < rank; ++p) a[i] += x[i / n * rank + p] * y[p * n + i % n];
  }
  pack(dtype, a, m * n, in);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, dtype, 2, DIMS(m, n));
  bench_result(&bench, mp_dtype_real_part(dtype), 1, DIMS(k));
  bench_result(&bench, dtype, 2, DIMS(m, mu));
  bench_result(&bench, dtype, 2, DIMS(nv, n));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "minipod.svd");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){s_bytes, u_bytes, v_bytes});
  bench_end(&bench);
  unpack(dtype, u_bytes, m * mu, u);
  unpack(dtype, v_bytes, nv * n, vt);
  unpack(mp_dtype_real_part(dtype), s_bytes, k, s);
  double tolerance = 30 * tolerance_of(dtype);
  for (int64_t i = 1; i < k; ++i) assert_true(creal(s[i - 1]) >= creal(s[i]));
  for (int64_t i = 0; i < m * n; ++i) {
    z_t sum = 0;
    for (int64_t p = 0; p < k; ++p) sum += u[i / n * mu + p] * s[p] * vt[p * n + i % n];
    assert_near(sum, a[i], tolerance);
  }
  for (int64_t i = 0; i < mu * mu; ++i) {
    z_t sum = 0;
    for (int64_t p = 0; p < m; ++p) sum += conj(u[p * mu + i / mu]) * u[p * mu + i % mu];
    assert_near(sum, i / mu == i % mu, tolerance);
  }
  for (int64_t i = 0; i < nv * nv; ++i) {
    z_t sum = 0;
    for (int64_t p = 0; p < n; ++p) sum += vt[i / nv * n + p] * conj(vt[i % nv * n + p]);
    assert_near(sum, i / nv == i % nv, tolerance);
  }
}

static void svd_multiplies_back(void **state) {
  (void)state;
  for (int t = 0; t < 8; ++t) {
    check_svd(g_types[t / 2], 14, 6, t % 2, 6);
    check_svd(g_types[t / 2], 6, 14, t % 2, 6);
    check_svd(g_types[t / 2], 9, 9, t % 2, 3);
    check_svd(g_types[t / 2], 5, 3, t % 2, 0);
    check_svd(g_types[t / 2], 1, 1, t % 2, 1);
  }
}

static void check_tridiagonal(mp_dtype_t dtype, int64_t n, bool perturbed) {
  enum { K = 3, MOST = 12 };
  z_t rows[3][2 * MOST], b[2 * MOST * K], x[2 * MOST * K];
  char in[4][2 * MOST * K * 16], out[2 * MOST * K * 16];
  for (int d = 0; d < 3; ++d) {
    fill(rows[d], 2 * n, mp_dtype_is_complex(dtype));
    if (n > 1) rows[d][0] = d == 1 ? 1e-3 : rows[d][0];  // rows must be exchanged
    if (n == 1) rows[d][0] += 1;
    pack(dtype, rows[d], 2 * n, in[d]);
  }
  fill(b, 2 * n * K, mp_dtype_is_complex(dtype));
  pack(dtype, b, 2 * n * K, in[3]);
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  for (int d = 0; d < 3; ++d) bench_operand(&bench, dtype, 2, DIMS(2, n));
  bench_operand(&bench, dtype, 3, DIMS(2, n, K));
  bench_result(&bench, dtype, 3, DIMS(2, n, K));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME,
               perturbed ? "minipod.tridiagonal_solve.perturbed" : "minipod.tridiagonal_solve");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in[0], in[1], in[2], in[3]}, (void *[]){out});
  bench_end(&bench);
  unpack(dtype, out, 2 * n * K, x);
  for (int64_t g = 0; g < 2; ++g) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < K; ++k) {
        const z_t *at = x + (g * n + i) * K + k;
        z_t sum = rows[1][g * n + i] * at[0];
        if (i > 0) sum += rows[0][g * n + i] * at[-K];
        if (i + 1 < n) sum += rows[2][g * n + i] * at[K];
        assert_near(sum, b[(g * n + i) * K + k], 100 * tolerance_of(dtype));
      }
    }
  }
}

static void tridiagonal_systems_multiply_back(void **state) {
  (void)state;
  for (int t = 0; t < 8; ++t) {
    check_tridiagonal(g_types[t / 2], 12, t % 2);
    check_tridiagonal(g_types[t / 2], 2, t % 2);
    check_tridiagonal(g_types[t / 2], 1, t % 2);
  }
}

static void unknown_calls_are_named(void **state) {
  (void)state;
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_result(&bench, MP_DTYPE_F32, 0, NULL);
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "my_own_call");
  bench_make_op(&bench);
  assert_status(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel), MP_UNIMPLEMENTED,
                "my_own_call");
  bench_end(&bench);
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, MP_DTYPE_F32, 1, DIMS(3));
  bench_result(&bench, MP_DTYPE_F32, 1, DIMS(3));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "Qr");
  bench_make_op(&bench);
  assert_status(mp_kernel_create(bench.module->arena, bench.op, &bench.kernel), MP_INVALID_ARGUMENT,
                "Qr takes");
  bench_end(&bench);
}

static void top_k_takes_the_largest(void **state) {
  (void)state;
  float in[2 * 5] = {1, 5, -2, 5, 3, -1, NAN, 0, -INFINITY, 2}, values[2 * 3];
  int32_t indices[2 * 3];
  kernel_bench_t bench;
  bench_begin(&bench, MP_OP_CUSTOM_CALL);
  bench_operand(&bench, MP_DTYPE_F32, 2, DIMS(2, 5));
  bench_result(&bench, MP_DTYPE_F32, 2, DIMS(2, 3));
  bench_result(&bench, MP_DTYPE_S32, 2, DIMS(2, 3));
  bench_string(&bench, MP_ATTR_CALL_TARGET_NAME, "TopK");
  bench_make(&bench);
  bench_run(&bench, (const void *[]){in}, (void *[]){values, indices});
  assert_memory_equal(indices, ((int32_t[]){1, 3, 4, 1, 4, 2}), sizeof(indices));
  assert_true(values[0] == 5 && values[2] == 3 && isnan(values[3]) && values[4] == 2);
  bench_end(&bench);
}

// ---- Batch normalization ----

enum { OUTER = 4, FEATURES = 3, INNER = 300, ALL = OUTER * FEATURES * INNER };

static void norm_bench(kernel_bench_t *bench, mp_opcode_t code) {
  bench_begin(bench, code);
  bench_int(bench, MP_ATTR_FEATURE_INDEX, 1);
  mp_attr_t *epsilon = MP_ARENA_NEW(bench->module->arena, mp_attr_t);
  epsilon->kind = MP_KIND_FLOAT;
  epsilon->dtype = MP_DTYPE_F32;
  epsilon->u.f64 = 0.5;
  *bench_attr(bench, MP_ATTR_EPSILON) = epsilon;
  bench_operand(bench, MP_DTYPE_F32, 3, DIMS(OUTER, FEATURES, INNER));
}

static void batch_norm_follows_its_formulas(void **state) {
  (void)state;
  static float x[ALL], g[ALL], out[ALL], other[ALL];
  float scale[FEATURES] = {1, 2, -3}, offset[FEATURES] = {0, 1, 2};
  float mean[FEATURES], variance[FEATURES], grad_scale[FEATURES], grad_offset[FEATURES];
  for (int i = 0; i < ALL; ++i) {
    x[i] = (float)noise() * 4 + 1;
    g[i] = (float)noise();
  }
  kernel_bench_t bench;
  norm_bench(&bench, MP_OP_BATCH_NORM_TRAINING);
  for (int i = 0; i < 2; ++i) bench_operand(&bench, MP_DTYPE_F32, 1, DIMS(FEATURES));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(OUTER, FEATURES, INNER));
  for (int i = 0; i < 2; ++i) bench_result(&bench, MP_DTYPE_F32, 1, DIMS(FEATURES));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x, scale, offset}, (void *[]){out, mean, variance});
  bench_end(&bench);
  norm_bench(&bench, MP_OP_BATCH_NORM_INFERENCE);
  for (int i = 0; i < 4; ++i) bench_operand(&bench, MP_DTYPE_F32, 1, DIMS(FEATURES));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(OUTER, FEATURES, INNER));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x, scale, offset, mean, variance}, (void *[]){other});
  bench_end(&bench);
  for (int f = 0; f < FEATURES; ++f) {
    double sum = 0, squares = 0;
    for (int i = 0; i < ALL; ++i) {
      if (i / INNER % FEATURES == f) sum += x[i];
    }
    double m = sum / (OUTER * INNER);
    for (int i = 0; i < ALL; ++i) {
      if (i / INNER % FEATURES == f) squares += (x[i] - m) * (x[i] - m);
    }
    double v = squares / (OUTER * INNER);
    assert_near(mean[f], m, 1e-6);
    assert_near(variance[f], v, 1e-5);
    for (int i = 0; i < ALL; ++i) {
      if (i / INNER % FEATURES != f) continue;
      double y = scale[f] * (x[i] - m) / sqrt(v + 0.5) + offset[f];
      assert_near(out[i], y, 1e-5);
      assert_near(other[i], y, 1e-5);
    }
  }
  norm_bench(&bench, MP_OP_BATCH_NORM_GRAD);
  for (int i = 0; i < 3; ++i) bench_operand(&bench, MP_DTYPE_F32, 1, DIMS(FEATURES));
  bench_operand(&bench, MP_DTYPE_F32, 3, DIMS(OUTER, FEATURES, INNER));
  bench_result(&bench, MP_DTYPE_F32, 3, DIMS(OUTER, FEATURES, INNER));
  for (int i = 0; i < 2; ++i) bench_result(&bench, MP_DTYPE_F32, 1, DIMS(FEATURES));
  bench_make(&bench);
  bench_run(&bench, (const void *[]){x, scale, mean, variance, g},
            (void *[]){out, grad_scale, grad_offset});
  bench_end(&bench);
  for (int f = 0; f < FEATURES; ++f) {
    double sum_g = 0, sum_gx = 0, n = OUTER * INNER, v = (double)variance[f] + 0.5;
    for (int i = 0; i < ALL; ++i) {
      if (i / INNER % FEATURES != f) continue;
      sum_g += g[i];
      sum_gx += g[i] * (double)(x[i] - mean[f]);
    }
    assert_near(grad_offset[f], sum_g, 1e-4);
    assert_near(grad_scale[f], sum_gx / sqrt(v), 1e-4);
    for (int i = 0; i < ALL; ++i) {
      if (i / INNER % FEATURES != f) continue;
      double wanted =
          scale[f] / sqrt(v) / n * (n * g[i] - sum_g - (double)(x[i] - mean[f]) / v * sum_gx);
      assert_near(out[i], wanted, 1e-5);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cholesky_multiplies_back),
      cmocka_unit_test(triangular_solve_multiplies_back),
      cmocka_unit_test(large_triangular_systems),
      cmocka_unit_test(qr_multiplies_back),
      cmocka_unit_test(lu_multiplies_back),
      cmocka_unit_test(eigh_finds_eigenvectors),
      cmocka_unit_test(svd_multiplies_back),
      cmocka_unit_test(tridiagonal_systems_multiply_back),
      cmocka_unit_test(unknown_calls_are_named),
      cmocka_unit_test(top_k_takes_the_largest),
      cmocka_unit_test(batch_norm_follows_its_formulas),
      cmocka_unit_test(small_choleskys),
      cmocka_unit_test(complex_pivots),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
