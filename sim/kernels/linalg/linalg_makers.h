// The makers of decompositions and solvers (sim/kernels/kernel.h). Those of targets of custom_call
// also check the call's operands and results, because the verifier does not know the targets.
//
// The comments say what a call computes: its operands "to" its results.
#ifndef MINIPOD_SIM_KERNELS_LINALG_LINALG_MAKERS_H_
#define MINIPOD_SIM_KERNELS_LINALG_LINALG_MAKERS_H_

#include "sim/kernels/kernel.h"

MP_KERNEL_MAKER(mp_kernel_make_cholesky);
MP_KERNEL_MAKER(mp_kernel_make_triangular_solve);

// "Qr": a [..., m, n] to (packed factors [..., m, n], taus [..., min(m, n)]).
MP_KERNEL_MAKER(mp_call_make_qr);
// "ProductOfElementaryHouseholderReflectors": (a [..., m, n], taus [..., k]) to q [..., m, n].
MP_KERNEL_MAKER(mp_call_make_householder_product);

// "LuDecomposition": a [..., m, n] to (packed factors, pivots s32[..., min(m, n)], permutation
// s32[..., m]).
MP_KERNEL_MAKER(mp_call_make_lu);
// "minipod.pivots_to_permutation": pivots s32[..., k], whose number i is the row with which row i
// was exchanged, to the permutation s32[..., n] that results, n >= k.
MP_KERNEL_MAKER(mp_call_make_pivots_to_permutation);
// "minipod.eigh.lower", "minipod.eigh.upper": a Hermitian matrix, of which one triangle is read, to
// (eigenvectors [..., n, n] in columns, eigenvalues [..., n] ascending).
MP_KERNEL_MAKER(mp_call_make_eigh_lower);
MP_KERNEL_MAKER(mp_call_make_eigh_upper);
// "Eigh": the same, for XLA's backend_config "lower,sort,iterations,tolerance". Without `sort` each
// eigenvalue stays among the rows of its block (eigen_blocks.h), ascending there. JAX depends on
// that: it pads a matrix with rows of the identity, and cuts off as many eigenvalues afterwards.
MP_KERNEL_MAKER(mp_call_make_eigh);
// "minipod.svd": a [..., m, n] to (s descending, u, vt) or to s alone; u and vt full or thin.
MP_KERNEL_MAKER(mp_call_make_svd);

// "minipod.tridiagonal_solve", "minipod.tridiagonal_solve.perturbed": (lower diagonal, diagonal and
// upper diagonal [..., n], b [..., n, k]) to x [..., n, k]. A singular system is NaN; the second
// one moves its pivots away from zero, so that it has a large but finite answer.
MP_KERNEL_MAKER(mp_call_make_tridiagonal_solve);
MP_KERNEL_MAKER(mp_call_make_tridiagonal_solve_perturbed);

#endif  // MINIPOD_SIM_KERNELS_LINALG_LINALG_MAKERS_H_
