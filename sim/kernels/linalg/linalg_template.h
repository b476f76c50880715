// The factorizations, once for real and once for complex numbers. No include guard: linalg.c
// includes it with T (the element) and F(name) (the name for that element) defined.

void F(mp_solve_lower)(int64_t n, const T *l, bool unit, T *x) {
  // `x` is conjugated meanwhile, because dot conjugates its second argument.
  for (int64_t i = 0; i < n; ++i) {
    T rest = x[i] - F(dot)(i, l + i * n, x);
    if (!unit) rest = rest / l[i * n + i];
    x[i] = F(conj)(rest);
  }
  for (int64_t i = 0; i < n; ++i) x[i] = F(conj)(x[i]);
}

static double F(linalg_square)(T x) {
  return F(real)(x) * F(real)(x) + F(imag)(x) * F(imag)(x);
}

// The exponent of a power of two by which the vector's elements can be multiplied so that their
// squares neither overflow nor vanish.
static double F(linalg_safe_factor)(int64_t n, int64_t step, const T *v) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = fmax(largest, fmax(fabs(F(real)(v[i * step])), fabs(F(imag)(v[i * step]))));
  }
  return largest > 0x1p400 ? 0x1p-600 : largest < 0x1p-400 ? 0x1p600 : 1;
}

double F(mp_reflection)(int64_t n, int64_t step, T *v, T *out_tau) {
  T alpha = v[0];
  double sum = F(linalg_square)(alpha), factor = 1;
  bool only = F(imag)(alpha) == 0;  // alpha is real, and no other element differs from zero
  for (int64_t i = 1; i < n; ++i) {
    T x = v[i * step];
    sum += F(linalg_square)(x);
    only = only && F(real)(x) == 0 && F(imag)(x) == 0;
  }
  *out_tau = F(make)(0, 0);
  v[0] = F(make)(1, 0);
  if (only) return F(real)(alpha);
  if (!(sum > 0x1p-900 && sum < 0x1p1000)) {
    v[0] = alpha;
    factor = F(linalg_safe_factor)(n, step, v);
    sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      v[i * step] = F(mul)(v[i * step], F(make)(factor, 0));
      sum += F(linalg_square)(v[i * step]);
    }
    alpha = v[0];
    v[0] = F(make)(1, 0);
  }
  double beta = F(real)(alpha) >= 0 ? -sqrt(sum) : sqrt(sum);
  *out_tau = F(make)((beta - F(real)(alpha)) / beta, -F(imag)(alpha) / beta);
  T scale = F(make)(1, 0) / (alpha - F(make)(beta, 0));
  for (int64_t i = 1; i < n; ++i) v[i * step] = F(mul)(v[i * step], scale);
  return beta / factor;
}

// b[first.., columns from..] -= factor * v * (v^H * b), with v = (1, a[first + 1.., first]).
static void F(linalg_reflect)(int64_t m, int64_t n, const T *a, int64_t first, T factor, T *b,
                              int64_t from, T *work) {
  int64_t columns = n - from;
  memcpy(work, b + first * n + from, (size_t)columns * sizeof(T));
  for (int64_t i = first + 1; i < m; ++i) {
    if (a[i * n + first] != 0) F(axpy)(columns, F(conj)(a[i * n + first]), b + i * n + from, work);
  }
  F(axpy)(columns, -factor, work, b + first * n + from);
  for (int64_t i = first + 1; i < m; ++i) {
    T element = -F(mul)(factor, a[i * n + first]);
    if (element != 0) F(axpy)(columns, element, work, b + i * n + from);
  }
}

// Scales a matrix with elements near the ends of the range of doubles, where sums overflow or lose
// their last bits, to the middle of the range; returns the exponent that was added.
static int F(linalg_to_safe_range)(int64_t count, T *a) {
  double largest = mp_largest(count * F(parts), (const double *)a);
  if (!(largest > 0x1p900 || (largest < 0x1p-900 && largest > 0))) return 0;
  mp_scale(count * F(parts), -ilogb(largest), (double *)a);
  return -ilogb(largest);
}

void F(mp_qr)(int64_t m, int64_t n, T *a, T *taus, T *work) {
  int64_t count = m < n ? m : n;
  int exponent = F(linalg_to_safe_range)(m * n, a);
  for (int64_t k = 0; k < count; ++k) {
    double beta = F(mp_reflection)(m - k, n, a + k * n + k, &taus[k]);
    if (taus[k] != 0) F(linalg_reflect)(m, n, a, k, F(conj)(taus[k]), a, k + 1, work);
    a[k * n + k] = F(make)(beta, 0);
    mp_scale((n - k) * F(parts), -exponent, (double *)(a + k * n + k));
  }
}

void F(mp_householder_product)(int64_t m, int64_t n, int64_t k, const T *a, const T *taus, T *q,
                               T *work) {
  memset(q, 0, (size_t)(m * n) * sizeof(T));
  for (int64_t i = 0; i < m && i < n; ++i) q[i * n + i] = F(make)(1, 0);
  for (int64_t i = k; i-- > 0;) F(linalg_reflect)(m, n, a, i, taus[i], q, i, work);
}
