// Singular values, once for real and once for complex numbers. No include guard: eigen.c includes
// it with T (the element) and F(name) (the name for it) defined.
//
// One-sided Jacobi rotations after two QR factorizations, the method of Drmac and Veselic:
//
//   A P = Q1 [R; 0]     columns exchanged so that R's rows get shorter and shorter
//   R^H = Q2 [L^H; 0]   L is lower triangular and almost diagonal
//   L V' = U' S         rotations make L's columns orthogonal; their lengths are S
//
// so that A = (Q1 U') S (P Q2 V')^H. The first factorization ends where only zeros remain, so that
// the rotations work on a matrix of full rank. The vectors of singular values that are zero come
// from Q1 and Q2, where all columns are orthogonal.
//
// Matrices are stored by columns here: row j of an array is column j of its matrix.

// Columns that are shorter than this (after scaling by MP_CENTER_EXPONENT) count as zero. Their
// squares are still normal numbers.
#define MP_SHORTEST 0x1p-420

typedef struct {
  int64_t m, n, rank;
  T *a, *a_taus;  // the first factorization's reflections, n rows of m
  T *b, *b_taus;  // the second one's, `rank` rows of n
  T *l, *v;       // L, then U' S; V' or NULL; rank x rank
  double *reals;  // the diagonal of R or L, then the lengths of L's columns
  int64_t *perm;  // column j of A P is column perm[j] of A
} F(svd_t);

static double F(singular_norm2)(int64_t n, const T *x) {
  return F(real)(F(dot)(n, x, x));
}

static void F(singular_swap_rows)(int64_t n, T *p, T *q) {
  for (int64_t i = 0; i < n; ++i) {
    T kept = p[i];
    p[i] = q[i];
    q[i] = kept;
  }
}

// x -= factor * v * (v^H x)
static void F(singular_reflect_vector)(int64_t n, const T *v, T factor, T *x) {
  F(axpy)(n, -F(mul)(factor, F(dot)(n, x, v)), v, x);
}

// Exchanges column k with the longest column from k on; false when all of these are zero.
static bool F(singular_bring_longest)(int64_t m, int64_t n, T *columns, int64_t *perm, int64_t k) {
  int64_t best = k;
  double longest = 0;
  for (int64_t j = k; j < n; ++j) {
    double length = F(singular_norm2)(m - k, columns + j * m + k);
    if (length > longest) {
      longest = length;
      best = j;
    }
  }
  if (longest < MP_SHORTEST * MP_SHORTEST) return false;
  if (best == k) return true;
  F(singular_swap_rows)(m, columns + k * m, columns + best * m);
  int64_t kept = perm[k];
  perm[k] = perm[best];
  perm[best] = kept;
  return true;
}

// QR factorization of n columns of length m >= n, with exchanges of columns if `perm` is not NULL.
// R is stored above the diagonal, its diagonal in `diagonal`, and the reflections on and below the
// diagonal. Returns the number of columns before only zeros remain (n without exchanges).
static int64_t F(singular_factor_columns)(int64_t m, int64_t n, T *columns, T *taus,
                                          double *diagonal, int64_t *perm) {
  for (int64_t k = 0; k < n; ++k) {
    if (perm != NULL && !F(singular_bring_longest)(m, n, columns, perm, k)) return k;
    T *v = columns + k * m + k;
    diagonal[k] = F(mp_reflection)(m - k, 1, v, &taus[k]);
    for (int64_t j = k + 1; j < n; ++j) {
      F(singular_reflect_vector)(m - k, v, F(conj)(taus[k]), columns + j * m + k);
    }
  }
  return n;
}

// Copies out the columns of R^H, of length n, for the first `rank` rows of the R that
// factor_columns made.
static void F(singular_adjoint_of_r)(int64_t m, int64_t n, int64_t rank, const T *columns,
                                     const double *diagonal, T *out) {
  for (int64_t i = 0; i < rank; ++i) {
    T *row = out + i * n;
    memset(row, 0, (size_t)i * sizeof(T));
    row[i] = F(make)(diagonal[i], 0);
    for (int64_t j = i + 1; j < n; ++j) row[j] = F(conj)(columns[j * m + i]);
  }
}

// Makes columns p and q of L orthogonal; returns whether they were not.
static bool F(singular_jacobi_pair)(const F(svd_t) * self, int64_t p, int64_t q, double tolerance) {
  int64_t n = self->rank;
  double *lengths = self->reals, first = lengths[p], second = lengths[q];
  if (first < MP_SHORTEST || second < MP_SHORTEST) return false;
  T gamma = F(dot)(n, self->l + p * n, self->l + q * n);
  double size = F(eigen_magnitude)(gamma);
  if (!(size > tolerance * first * second)) return false;
  double alpha = first * first, beta = second * second;
  double zeta = (beta - alpha) / (2 * size);
  double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  double cosine = 1 / sqrt(1 + t * t), sine = cosine * t;
  T phase = F(mul)(gamma, F(make)(1 / size, 0));
  F(eigen_rotate)(n, cosine, sine, phase, self->l + p * n, self->l + q * n);
  if (self->v != NULL) F(eigen_rotate)(n, cosine, sine, phase, self->v + p * n, self->v + q * n);
  // The length is exact enough until the next sweep, unless almost nothing remains of the column.
  alpha -= t * size;
  beta += t * size;
  bool good = alpha > 0.25 * first * first && beta > 0.25 * second * second;
  lengths[p] = sqrt(good ? alpha : F(singular_norm2)(n, self->l + p * n));
  lengths[q] = sqrt(good ? beta : F(singular_norm2)(n, self->l + q * n));
  return true;
}

// Rotates until all columns of L are orthogonal. That takes six to ten sweeps. If the limit is ever
// reached, the columns are used as they are.
static void F(singular_jacobi)(const F(svd_t) * self) {
  int64_t n = self->rank;
  double tolerance = DBL_EPSILON * sqrt((double)(n > 16 ? n : 16));
  bool moved = true;
  for (int sweep = 0; moved && sweep < 60; ++sweep) {
    moved = false;
    for (int64_t i = 0; i < n; ++i) self->reals[i] = sqrt(F(singular_norm2)(n, self->l + i * n));
    for (int64_t p = 0; p + 1 < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) moved |= F(singular_jacobi_pair)(self, p, q, tolerance);
    }
  }
  for (int64_t i = 0; i < n; ++i) self->reals[i] = sqrt(F(singular_norm2)(n, self->l + i * n));
}

// Sorts the columns by length, the longest first.
static void F(singular_sort_columns)(const F(svd_t) * self) {
  int64_t n = self->rank;
  double *lengths = self->reals;
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; ++j) {
      if (lengths[j] > lengths[best]) best = j;
    }
    if (best == i) continue;
    double kept = lengths[i];
    lengths[i] = lengths[best];
    lengths[best] = kept;
    F(singular_swap_rows)(n, self->l + i * n, self->l + best * n);
    if (self->v != NULL) F(singular_swap_rows)(n, self->v + i * n, self->v + best * n);
  }
}

void F(mp_complete_basis)(int64_t m, int64_t have, int64_t want, T *rows) {
  for (int64_t r = have; r < want; ++r) {
    // Begin with the unit vector whose projection on the rows so far is the shortest.
    int64_t best = 0;
    double least = INFINITY;
    for (int64_t i = 0; i < m; ++i) {
      double covered = 0;
      for (int64_t k = 0; k < r; ++k) covered += F(singular_norm2)(1, rows + k * m + i);
      if (covered < least) {
        least = covered;
        best = i;
      }
    }
    T *row = rows + r * m;
    memset(row, 0, (size_t)m * sizeof(T));
    row[best] = F(make)(1, 0);
    for (int64_t k = 0; k < 2 * r; ++k) {  // orthogonalising twice is enough
      const T *other = rows + k % r * m;
      F(axpy)(m, -F(dot)(m, row, other), other, row);
    }
    T scale = F(make)(1 / sqrt(F(singular_norm2)(m, row)), 0);
    for (int64_t i = 0; i < m; ++i) row[i] = F(mul)(row[i], scale);
  }
}

// Turns U' S into U'. Columns that became zero after all have no direction; they are replaced by
// vectors that are orthogonal to the others.
static void F(singular_normalize_columns)(const F(svd_t) * self) {
  int64_t n = self->rank, have = 0;
  for (; have < n && self->reals[have] >= MP_SHORTEST; ++have) {
    T *row = self->l + have * n, scale = F(make)(1 / self->reals[have], 0);
    for (int64_t i = 0; i < n; ++i) row[i] = F(mul)(row[i], scale);
  }
  F(mp_complete_basis)(n, have, n, self->l);
}

// Writes the first `count` columns of Q [x 0; 0 I] to the rows of `out`, which have length m. Q is
// the product of `rank` reflections, and x is rank x rank.
static void F(singular_apply_reflections)(int64_t m, int64_t rank, int64_t count, const T *columns,
                                          const T *taus, const T *x, T *out) {
  for (int64_t i = 0; i < count; ++i) {
    T *row = out + i * m;
    memset(row, 0, (size_t)m * sizeof(T));
    if (i < rank) {
      memcpy(row, x + i * rank, (size_t)rank * sizeof(T));
    } else {
      row[i] = F(make)(1, 0);
    }
    for (int64_t k = rank; k-- > 0;) {
      F(singular_reflect_vector)(m - k, columns + k * m + k, taus[k], row + k);
    }
  }
}

static void F(singular_right_vectors)(const F(svd_t) * self, T *right) {
  int64_t n = self->n;
  F(singular_apply_reflections)(n, self->rank, n, self->b, self->b_taus, self->v, right);
  T *kept = self->a_taus;  // this memory is not needed any more
  for (int64_t i = 0; i < n; ++i) {
    memcpy(kept, right + i * n, (size_t)n * sizeof(T));
    for (int64_t j = 0; j < n; ++j) right[i * n + self->perm[j]] = kept[j];
  }
}

static void F(singular_take_scratch)(F(svd_t) * self, bool vectors, char *scratch) {
  int64_t n = self->n;
  self->a_taus = (T *)scratch;
  self->b_taus = self->a_taus + n;
  self->b = self->b_taus + n;
  self->l = self->b + n * n;
  self->v = vectors ? self->l + n * n : NULL;
  self->reals = (double *)(self->l + 2 * n * n);
  self->perm = (int64_t *)(self->reals + n);
}

bool F(mp_svd)(int64_t m, int64_t n, T *a, double *s, int64_t num_left, T *left, T *right,
               void *scratch) {
  double largest = mp_largest(m * n * F(parts), (const double *)a);
  if (isnan(largest)) return false;
  int exponent = largest == 0 ? 0 : MP_CENTER_EXPONENT - ilogb(largest);
  mp_scale(m * n * F(parts), exponent, (double *)a);
  F(svd_t) self = {.m = m, .n = n, .a = a};
  F(singular_take_scratch)(&self, left != NULL, scratch);
  for (int64_t j = 0; j < n; ++j) self.perm[j] = j;
  self.rank = F(singular_factor_columns)(m, n, a, self.a_taus, self.reals, self.perm);
  F(singular_adjoint_of_r)(m, n, self.rank, a, self.reals, self.b);
  F(singular_factor_columns)(n, self.rank, self.b, self.b_taus, self.reals, NULL);
  F(singular_adjoint_of_r)(n, self.rank, self.rank, self.b, self.reals, self.l);
  for (int64_t i = 0; self.v != NULL && i < self.rank * self.rank; ++i) {
    self.v[i] = F(make)(i % (self.rank + 1) == 0 ? 1 : 0, 0);
  }
  F(singular_jacobi)(&self);
  F(singular_sort_columns)(&self);
  for (int64_t i = 0; i < n; ++i) s[i] = i < self.rank ? self.reals[i] : 0;
  mp_scale(n, -exponent, s);
  if (left == NULL) return true;
  F(singular_normalize_columns)(&self);
  F(singular_apply_reflections)(m, self.rank, num_left, a, self.a_taus, self.l, left);
  F(singular_right_vectors)(&self, right);
  return true;
}
#undef MP_SHORTEST
