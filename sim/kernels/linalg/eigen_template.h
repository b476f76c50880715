// LU and Hermitian eigenvalues, once for real and once for complex numbers. No include guard:
// eigen.c includes it with T (the element) and F(name) (the name for it) defined.

static double F(eigen_size1)(T x) {
  return fabs(F(real)(x)) + fabs(F(imag)(x));
}

void F(mp_lu)(int64_t m, int64_t n, T *a, int32_t *pivots, int32_t *perm) {
  int64_t count = m < n ? m : n;
  for (int64_t i = 0; i < m; ++i) perm[i] = (int32_t)i;
  for (int64_t k = 0; k < count; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (F(eigen_size1)(a[i * n + k]) > F(eigen_size1)(a[best * n + k])) best = i;
    }
    pivots[k] = (int32_t)best;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) {
        T kept = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = kept;
      }
      int32_t kept = perm[k];
      perm[k] = perm[best];
      perm[best] = kept;
    }
    T pivot = a[k * n + k];
    if (F(eigen_size1)(pivot) == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      T factor = a[i * n + k] / pivot;
      a[i * n + k] = factor;
      F(axpy)(n - k - 1, -factor, a + k * n + k + 1, a + i * n + k + 1);
    }
  }
}

// ---- Hermitian eigenvalues: tridiagonal by reflections, then QL with implicit shifts ----

// Computes a = H^H a H for the trailing r x r block at `a`, whose rows are n elements apart. x and
// c have r elements each.
static void F(eigen_two_sided)(int64_t n, int64_t r, T *a, const T *v, T tau, T *x, T *c) {
  for (int64_t i = 0; i < r; ++i) c[i] = F(conj)(v[i]);
  for (int64_t i = 0; i < r; ++i) x[i] = F(mul)(tau, F(dot)(r, a + i * n, c));
  T half = F(mul)(F(mul)(F(make)(-0.5, 0), tau), F(conj)(F(dot)(r, x, v)));
  F(axpy)(r, half, v, x);
  for (int64_t i = 0; i < r; ++i) {
    T vi = v[i], xi = x[i];
    F(axpy)(r, -xi, c, a + i * n);
    for (int64_t j = 0; j < r; ++j) a[i * n + j] -= F(mul)(vi, F(conj)(x[j]));
  }
}

bool F(mp_eigh)(int64_t n, T *a, double *w, T *v, T *work, double *reals) {
  T *reflections = work, *taus = work + n * n, *x = taus + n, *c = x + n;
  double *e = reals, *y = reals + n;
  if (n == 1) {  // as in LAPACK, NaN and infinity are eigenvalues here
    w[0] = F(real)(a[0]);
    v[0] = F(make)(1, 0);
    return true;
  }
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = F(make)(F(real)(a[i * n + i]), 0);
    for (int64_t j = 0; j < i; ++j) a[j * n + i] = F(conj)(a[i * n + j]);
  }
  double largest = mp_largest(n * n * F(parts), (const double *)a);
  if (isnan(largest)) return false;
  int exponent = largest == 0 ? 0 : MP_CENTER_EXPONENT - ilogb(largest);
  mp_scale(n * n * F(parts), exponent, (double *)a);
  for (int64_t k = 0; k + 1 < n; ++k) {
    int64_t r = n - k - 1;
    T *h = reflections + k * n;
    for (int64_t i = 0; i < r; ++i) h[i] = a[(k + 1 + i) * n + k];
    w[k] = F(real)(a[k * n + k]);
    e[k] = F(mp_reflection)(r, 1, h, &taus[k]);
    F(eigen_two_sided)(n, r, a + (k + 1) * n + k + 1, h, taus[k], x, c);
  }
  if (n > 0) w[n - 1] = F(real)(a[n * n - 1]);
  if (!eigen_ql(n, w, e, y)) return false;
  mp_scale(n, -exponent, w);
  for (int64_t j = 0; j < n; ++j) {
    T *row = v + j * n;
    for (int64_t i = 0; i < n; ++i) row[i] = F(make)(y[j * n + i], 0);
    for (int64_t k = n - 1; k-- > 0;) {
      const T *h = reflections + k * n;
      T s = F(dot)(n - k - 1, row + k + 1, h);
      F(axpy)(n - k - 1, -F(mul)(taus[k], s), h, row + k + 1);
    }
  }
  return true;
}
