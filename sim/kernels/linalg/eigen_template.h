// LU, Hermitian eigenvalues and singular values, once for real and once for complex numbers. No
// include guard: eigen.c includes it with T (the element) and F(name) (the name for it) defined.

static double F(size1)(T x) {
  return fabs(F(real)(x)) + fabs(F(imag)(x));
}

void F(mp_lu)(int64_t m, int64_t n, T *a, int32_t *pivots, int32_t *perm) {
  int64_t count = m < n ? m : n;
  for (int64_t i = 0; i < m; ++i) perm[i] = (int32_t)i;
  for (int64_t k = 0; k < count; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (F(size1)(a[i * n + k]) > F(size1)(a[best * n + k])) best = i;
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
    if (F(size1)(pivot) == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      T factor = a[i * n + k] / pivot;
      a[i * n + k] = factor;
      F(axpy)(n - k - 1, -factor, a + k * n + k + 1, a + i * n + k + 1);
    }
  }
}

// ---- Hermitian eigenvalues: tridiagonal by reflections, then QL with implicit shifts ----

// Makes the reflection I - tau v v^H, v[0] = 1, that takes `v` (n >= 1 elements) to (beta, 0, ...).
static double F(reflection)(int64_t n, T *v, T *out_tau) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) largest = fmax(largest, F(size1)(v[i]));
  T alpha = v[0];
  double rest = 0;
  for (int64_t i = 1; i < n; ++i) rest = fmax(rest, F(size1)(v[i]));
  *out_tau = F(make)(0, 0);
  v[0] = F(make)(1, 0);
  if (rest == 0 && F(imag)(alpha) == 0) return F(real)(alpha);
  for (int64_t i = 0; i < n; ++i) {
    T x = i == 0 ? alpha : v[i];
    double re = F(real)(x) / largest, im = F(imag)(x) / largest;
    sum += re * re + im * im;
  }
  double beta = largest * sqrt(sum);
  if (F(real)(alpha) >= 0) beta = -beta;
  *out_tau = F(make)((beta - F(real)(alpha)) / beta, -F(imag)(alpha) / beta);
  T scale = F(make)(1, 0) / (alpha - F(make)(beta, 0));
  for (int64_t i = 1; i < n; ++i) v[i] = F(mul)(v[i], scale);
  return beta;
}

// a = H^H a H for the trailing r x r block at `a` (rows n apart). x and c hold 2 r elements in all.
static void F(two_sided)(int64_t n, int64_t r, T *a, const T *v, T tau, T *x, T *c) {
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
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = F(make)(F(real)(a[i * n + i]), 0);
    for (int64_t j = 0; j < i; ++j) a[j * n + i] = F(conj)(a[i * n + j]);
  }
  for (int64_t k = 0; k + 1 < n; ++k) {
    int64_t r = n - k - 1;
    T *h = reflections + k * n;
    for (int64_t i = 0; i < r; ++i) h[i] = a[(k + 1 + i) * n + k];
    w[k] = F(real)(a[k * n + k]);
    e[k] = F(reflection)(r, h, &taus[k]);
    F(two_sided)(n, r, a + (k + 1) * n + k + 1, h, taus[k], x, c);
  }
  if (n > 0) w[n - 1] = F(real)(a[n * n - 1]);
  if (!mp_tridiagonal_ql(n, w, e, y)) return false;
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

// ---- Singular values: Jacobi rotations of pairs of columns ----

static double F(norm2)(int64_t n, const T *x) {
  return F(real)(F(dot)(n, x, x));
}

// p = cosine * p - sine * (phase * q), q = sine * p + cosine * (phase * q)
static void F(rotate)(int64_t n, double cosine, double sine, T phase, T *restrict p,
                      T *restrict q) {
  for (int64_t i = 0; i < n; ++i) {
    T a = p[i], b = F(mul)(phase, q[i]);
    p[i] = F(mul)(F(make)(cosine, 0), a) - F(mul)(F(make)(sine, 0), b);
    q[i] = F(mul)(F(make)(sine, 0), a) + F(mul)(F(make)(cosine, 0), b);
  }
}

// Makes rows p and q of `a` orthogonal; whether they were not.
static bool F(jacobi_pair)(int64_t m, int64_t n, T *a, T *v, int64_t p, int64_t q) {
  double alpha = F(norm2)(m, a + p * m), beta = F(norm2)(m, a + q * m);
  T gamma = F(dot)(m, a + p * m, a + q * m);
  double size = hypot(F(real)(gamma), F(imag)(gamma));
  if (size == 0 || size <= 1e-15 * sqrt(alpha) * sqrt(beta)) return false;
  double zeta = (beta - alpha) / (2 * size);
  double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + hypot(1, zeta));
  double cosine = 1 / hypot(1, t), sine = cosine * t;
  T phase = F(mul)(gamma, F(make)(1 / size, 0));
  F(rotate)(m, cosine, sine, phase, a + p * m, a + q * m);
  if (v != NULL) F(rotate)(n, cosine, sine, phase, v + p * n, v + q * n);
  return true;
}

static void F(swap_rows)(int64_t n, T *p, T *q) {
  for (int64_t i = 0; i < n; ++i) {
    T kept = p[i];
    p[i] = q[i];
    q[i] = kept;
  }
}

void F(mp_complete_basis)(int64_t m, int64_t have, int64_t want, T *rows) {
  for (int64_t r = have; r < want; ++r) {
    // The unit vector that the rows so far cover least.
    int64_t best = 0;
    double least = INFINITY;
    for (int64_t i = 0; i < m; ++i) {
      double covered = 0;
      for (int64_t k = 0; k < r; ++k) covered += F(norm2)(1, rows + k * m + i);
      if (covered < least) {
        least = covered;
        best = i;
      }
    }
    T *row = rows + r * m;
    memset(row, 0, (size_t)m * sizeof(T));
    row[best] = F(make)(1, 0);
    for (int64_t k = 0; k < 2 * r; ++k) {  // twice is enough
      const T *other = rows + k % r * m;
      F(axpy)(m, -F(dot)(m, row, other), other, row);
    }
    T scale = F(make)(1 / sqrt(F(norm2)(m, row)), 0);
    for (int64_t i = 0; i < m; ++i) row[i] = F(mul)(row[i], scale);
  }
}

bool F(mp_svd)(int64_t m, int64_t n, T *a, double *s, T *v) {
  double largest = 0;
  for (int64_t i = 0; i < m * n; ++i) {
    double size = F(size1)(a[i]);
    if (!isfinite(size)) return false;
    largest = fmax(largest, size);
  }
  // Scaled, so that squares neither overflow nor vanish.
  for (int64_t i = 0; i < m * n && largest > 0; ++i) {
    a[i] = F(make)(F(real)(a[i]) / largest, F(imag)(a[i]) / largest);
  }
  for (int64_t i = 0; v != NULL && i < n * n; ++i) v[i] = F(make)(i % (n + 1) == 0 ? 1 : 0, 0);
  bool moved = true;
  for (int sweep = 0; moved && sweep < 60; ++sweep) {
    moved = false;
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) moved |= F(jacobi_pair)(m, n, a, v, p, q);
    }
  }
  for (int64_t i = 0; i < n; ++i) s[i] = sqrt(F(norm2)(m, a + i * m));
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j) {
      if (s[j] > s[best]) best = j;
    }
    if (best == i) continue;
    double kept = s[i];
    s[i] = s[best];
    s[best] = kept;
    F(swap_rows)(m, a + i * m, a + best * m);
    if (v != NULL) F(swap_rows)(n, v + i * n, v + best * n);
  }
  int64_t have = 0;
  for (; have < n && s[have] > 1e-15 * (double)m * s[0]; ++have) {
    for (int64_t i = 0; i < m; ++i) {
      a[have * m + i] = F(mul)(a[have * m + i], F(make)(1 / s[have], 0));
    }
  }
  F(mp_complete_basis)(m, have, n, a);
  for (int64_t i = 0; i < n; ++i) s[i] *= largest;
  return true;
}
