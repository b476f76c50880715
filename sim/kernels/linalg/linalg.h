// Dense linear algebra on row-major matrices of doubles (_d) and of complex doubles (_z), for the
// kernels of cholesky, triangular_solve and the custom calls of factorizations. f32 and c64 are
// computed in these types too and rounded once at the end.
//
// Nothing is allocated: the caller provides all memory, work arrays included.
#ifndef MINIPOD_SIM_KERNELS_LINALG_LINALG_H_
#define MINIPOD_SIM_KERNELS_LINALG_LINALG_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef double _Complex mp_complex_t;

// The largest of `count` magnitudes; NaN when a number is not finite.
double mp_largest(int64_t count, const double *a);

// Multiplies `count` numbers by 2^exponent, also when that power itself is out of a double's range.
void mp_scale(int64_t count, int exponent, double *a);

// Makes the reflection H = I - tau v v^H, v[0] = 1, whose adjoint takes the vector given in `v` (n
// >= 1 elements, `step` apart) to (beta, 0, ...). Replaces `v` and returns beta, which is real.
// Nothing in between overflows or vanishes, however large or small the elements are.
double mp_reflection_d(int64_t n, int64_t step, double *v, double *out_tau);
double mp_reflection_z(int64_t n, int64_t step, mp_complex_t *v, mp_complex_t *out_tau);

// Solves L x = b, where `x` holds b before and x afterwards, for a lower triangular `l` (n x n).
// With `unit` its diagonal is taken as 1.
void mp_solve_lower_d(int64_t n, const double *l, bool unit, double *x);
void mp_solve_lower_z(int64_t n, const mp_complex_t *l, bool unit, mp_complex_t *x);

// Factors a (m x n) = Q * R by Householder reflections, stored as by LAPACK's geqrf: R on and above
// the diagonal, the reflections' vectors below it, their factors in taus[min(m, n)]. `work` has n
// elements.
void mp_qr_d(int64_t m, int64_t n, double *a, double *taus, double *work);
void mp_qr_z(int64_t m, int64_t n, mp_complex_t *a, mp_complex_t *taus, mp_complex_t *work);

// Writes the first n columns of the product of the k reflections whose vectors are in `a` (m x n)
// and whose factors are taus[k] to `q` (m x n), which is another array. `work` has n elements.
void mp_householder_product_d(int64_t m, int64_t n, int64_t k, const double *a, const double *taus,
                              double *q, double *work);
void mp_householder_product_z(int64_t m, int64_t n, int64_t k, const mp_complex_t *a,
                              const mp_complex_t *taus, mp_complex_t *q, mp_complex_t *work);

// Factors a (m x n) = P * L * U with partial pivoting; L and U replace `a`. pivots[i] is the row
// with which row i was exchanged, and perm[i] the row of `a` that became row i.
void mp_lu_d(int64_t m, int64_t n, double *a, int32_t *pivots, int32_t *perm);
void mp_lu_z(int64_t m, int64_t n, mp_complex_t *a, int32_t *pivots, int32_t *perm);

// Computes the eigenvalues `w` (ascending) and orthonormal eigenvectors (row j of `v`) of a
// Hermitian matrix. Only the lower triangle of `a` (n x n) is read, and `a` is overwritten. `work`
// has n * (n + 4) elements, `reals` n * (n + 1). False when an element is not finite (unless it is
// the only one), or when the iteration does not converge.
bool mp_eigh_d(int64_t n, double *a, double *w, double *v, double *work, double *reals);
bool mp_eigh_z(int64_t n, mp_complex_t *a, double *w, mp_complex_t *v, mp_complex_t *work,
               double *reals);

// Computes the singular values `s` (descending) of the matrix whose n columns of length m >= n are
// the rows of `a`, which is overwritten. The first n rows of `left` (num_left x m, n <= num_left <=
// m) become the left singular vectors, and its other rows complete them to an orthonormal basis;
// the rows of `right` (n x n) become the right singular vectors. Both are NULL when no vectors are
// requested. `scratch` has mp_svd_scratch bytes. False when an element is not finite.
bool mp_svd_d(int64_t m, int64_t n, double *a, double *s, int64_t num_left, double *left,
              double *right, void *scratch);
bool mp_svd_z(int64_t m, int64_t n, mp_complex_t *a, double *s, int64_t num_left,
              mp_complex_t *left, mp_complex_t *right, void *scratch);
// The bytes of scratch that mp_svd_d or, with `is_complex`, mp_svd_z needs.
size_t mp_svd_scratch(int64_t n, bool is_complex);

// Writes rows [have, want) so that all rows, of length m, are orthonormal; rows [0, have) are so.
// Outside of mp_svd only tests call it.
void mp_complete_basis_d(int64_t m, int64_t have, int64_t want, double *rows);
void mp_complete_basis_z(int64_t m, int64_t have, int64_t want, mp_complex_t *rows);

#endif  // MINIPOD_SIM_KERNELS_LINALG_LINALG_H_
