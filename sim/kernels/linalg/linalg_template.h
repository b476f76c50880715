// The factorizations, once for real and once for complex numbers. No include guard: linalg.c
// includes it with T (the element) and F(name) (the name for that element) defined.

bool F(mp_cholesky)(int64_t n, T *a) {
  for (int64_t i = 0; i < n; ++i) {
    T *row = a + i * n;
    for (int64_t j = 0; j < i; ++j) {
      T rest = row[j] - F(dot)(j, row, a + j * n);
      row[j] = F(mul)(rest, F(make)(1 / F(real)(a[j * n + j]), 0));
    }
    double pivot = F(real)(row[i]) - F(real)(F(dot)(i, row, row));
    if (!(pivot > 0) || isinf(pivot)) return false;
    row[i] = F(make)(sqrt(pivot), 0);
    memset(row + i + 1, 0, (size_t)(n - i - 1) * sizeof(T));
  }
  return true;
}

void F(mp_solve_lower)(int64_t n, const T *l, bool unit, T *x) {
  // `x` is kept conjugated, because dot conjugates its second argument.
  for (int64_t i = 0; i < n; ++i) {
    T rest = x[i] - F(dot)(i, l + i * n, x);
    if (!unit) rest = rest / l[i * n + i];
    x[i] = F(conj)(rest);
  }
  for (int64_t i = 0; i < n; ++i) x[i] = F(conj)(x[i]);
}

// The norm of column `column` of a from row `first` on, without overflow.
static double F(column_norm)(int64_t m, int64_t n, const T *a, int64_t first, int64_t column) {
  double largest = 0, sum = 0;
  for (int64_t i = first; i < m; ++i) {
    T x = a[i * n + column];
    largest = fmax(largest, fmax(fabs(F(real)(x)), fabs(F(imag)(x))));
    if (isnan(F(real)(x)) || isnan(F(imag)(x))) return (double)NAN;
  }
  if (largest == 0 || isinf(largest)) return largest;
  for (int64_t i = first; i < m; ++i) {
    double re = F(real)(a[i * n + column]) / largest, im = F(imag)(a[i * n + column]) / largest;
    sum += re * re + im * im;
  }
  return largest * sqrt(sum);
}

// b[first.., columns from..] -= factor * v * (v^H * b), with v = (1, a[first + 1.., first]).
static void F(reflect)(int64_t m, int64_t n, const T *a, int64_t first, T factor, T *b,
                       int64_t from, T *work) {
  int64_t columns = n - from;
  memcpy(work, b + first * n + from, (size_t)columns * sizeof(T));
  for (int64_t i = first + 1; i < m; ++i) {
    F(axpy)(columns, F(conj)(a[i * n + first]), b + i * n + from, work);
  }
  F(axpy)(columns, -factor, work, b + first * n + from);
  for (int64_t i = first + 1; i < m; ++i) {
    F(axpy)(columns, -F(mul)(factor, a[i * n + first]), work, b + i * n + from);
  }
}

void F(mp_qr)(int64_t m, int64_t n, T *a, T *taus, T *work) {
  int64_t count = m < n ? m : n;
  for (int64_t k = 0; k < count; ++k) {
    T alpha = a[k * n + k];
    double below = F(column_norm)(m, n, a, k + 1, k);
    taus[k] = F(make)(0, 0);
    if (below == 0 && F(imag)(alpha) == 0) continue;
    double beta = hypot(hypot(F(real)(alpha), F(imag)(alpha)), below);
    if (F(real)(alpha) >= 0) beta = -beta;
    taus[k] = F(make)((beta - F(real)(alpha)) / beta, -F(imag)(alpha) / beta);
    T scale = F(make)(1, 0) / (alpha - F(make)(beta, 0));
    for (int64_t i = k + 1; i < m; ++i) a[i * n + k] = F(mul)(a[i * n + k], scale);
    a[k * n + k] = F(make)(beta, 0);
    F(reflect)(m, n, a, k, F(conj)(taus[k]), a, k + 1, work);
  }
}

void F(mp_householder_product)(int64_t m, int64_t n, int64_t k, const T *a, const T *taus, T *q,
                               T *work) {
  memset(q, 0, (size_t)(m * n) * sizeof(T));
  for (int64_t i = 0; i < m && i < n; ++i) q[i * n + i] = F(make)(1, 0);
  for (int64_t i = k; i-- > 0;) F(reflect)(m, n, a, i, taus[i], q, i, work);
}
