// The targets of custom_call for which minipod has kernels. Each has a maker with the contract of
// sim/kernels/kernel_makers.h. The maker also checks the call's operands and results, because the
// verifier does not know the targets.
//
// The comments say what a call computes: its operands "to" its results.
#ifndef MINIPOD_SIM_KERNELS_CUSTOM_CALL_H_
#define MINIPOD_SIM_KERNELS_CUSTOM_CALL_H_

#include "sim/kernels/kernel.h"

// Whether minipod has a kernel for custom_calls of this target.
bool mp_call_has_kernel(mp_str_t target);
// Target number `index` of those, from 0 on; NULL behind the last one.
const char *mp_call_target(size_t index);

// "Qr": a [..., m, n] to (packed factors [..., m, n], taus [..., min(m, n)]).
MP_NODISCARD mp_status_t mp_call_make_qr(mp_arena_t *arena, const mp_op_t *op,
                                         const mp_kernel_t **out_kernel);
// "ProductOfElementaryHouseholderReflectors": (a [..., m, n], taus [..., k]) to q [..., m, n].
MP_NODISCARD mp_status_t mp_call_make_householder_product(mp_arena_t *arena, const mp_op_t *op,
                                                          const mp_kernel_t **out_kernel);
// "ApproxTopK": (values, indices, initial value, initial index) to the best values and their
// indices along `reduction_dim`, exactly. The initial value's sign tells which end is best.
MP_NODISCARD mp_status_t mp_call_make_approx_top_k(mp_arena_t *arena, const mp_op_t *op,
                                                   const mp_kernel_t **out_kernel);
// "TopK", "mhlo.topk": values to (the largest k along the last dimension, their indices); the
// smallest when mhlo.attributes has `largest = false`.
MP_NODISCARD mp_status_t mp_call_make_top_k(mp_arena_t *arena, const mp_op_t *op,
                                            const mp_kernel_t **out_kernel);

// "LuDecomposition": a [..., m, n] to (packed factors, pivots s32[..., min(m, n)], permutation
// s32[..., m]).
MP_NODISCARD mp_status_t mp_call_make_lu(mp_arena_t *arena, const mp_op_t *op,
                                         const mp_kernel_t **out_kernel);
// "minipod.pivots_to_permutation": pivots s32[..., k], whose number i is the row with which row i
// was exchanged, to the permutation s32[..., n] that results, n >= k.
MP_NODISCARD mp_status_t mp_call_make_pivots_to_permutation(mp_arena_t *arena, const mp_op_t *op,
                                                            const mp_kernel_t **out_kernel);
// "minipod.eigh.lower", "minipod.eigh.upper": a Hermitian matrix, of which one triangle is read, to
// (eigenvectors [..., n, n] in columns, eigenvalues [..., n] ascending).
MP_NODISCARD mp_status_t mp_call_make_eigh_lower(mp_arena_t *arena, const mp_op_t *op,
                                                 const mp_kernel_t **out_kernel);
MP_NODISCARD mp_status_t mp_call_make_eigh_upper(mp_arena_t *arena, const mp_op_t *op,
                                                 const mp_kernel_t **out_kernel);
// "minipod.svd": a [..., m, n] to (s descending, u, vt) or to s alone; u and vt full or thin.
MP_NODISCARD mp_status_t mp_call_make_svd(mp_arena_t *arena, const mp_op_t *op,
                                          const mp_kernel_t **out_kernel);

// "minipod.tridiagonal_solve", "minipod.tridiagonal_solve.perturbed": (lower diagonal, diagonal and
// upper diagonal [..., n], b [..., n, k]) to x [..., n, k]. A singular system is NaN; the second
// one moves its pivots away from zero, so that it has a large but finite answer.
MP_NODISCARD mp_status_t mp_call_make_tridiagonal_solve(mp_arena_t *arena, const mp_op_t *op,
                                                        const mp_kernel_t **out_kernel);
MP_NODISCARD mp_status_t mp_call_make_tridiagonal_solve_perturbed(mp_arena_t *arena,
                                                                  const mp_op_t *op,
                                                                  const mp_kernel_t **out_kernel);

#endif  // MINIPOD_SIM_KERNELS_CUSTOM_CALL_H_
