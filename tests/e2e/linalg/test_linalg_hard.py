"""Compares decompositions of difficult matrices (singular, graded, huge, tiny, empty, not finite) with numpy and JAX's
CPU backend.

All matrices of a shape are one batch.  Unique results (singular values, ranks, solutions) are compared.  Factors must
multiply back to the matrix, and be orthogonal.
"""

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.lax.linalg import geqrf

import hard_matrices as hard
from differential import compare, on_cpu, on_pod

DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(12, 12), (12, 5), (5, 12), (1, 1), (1, 7), (7, 1)]
NAN, INF = np.nan, np.inf

all_types = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(autouse=True)
def sixty_four_bits():
  with jax.enable_x64(True):
    yield


def svd_full(a):
  return jnp.linalg.svd(a, full_matrices=True)


def svd_thin(a):
  return jnp.linalg.svd(a, full_matrices=False)


def svd_values(a):
  return jnp.linalg.svd(a, compute_uv=False)


def svd_errors(a, u, s, vt, values):
  one, exponent = hard.brought_to_one(a)
  s, values = hard.scaled(s, exponent), hard.scaled(values, exponent)
  u, vt, k = np.asarray(u, one.dtype), np.asarray(vt, one.dtype), len(s)
  wanted = np.linalg.svd(one, compute_uv=False)
  return {"product": hard.error((u[:, :k] * s) @ vt[:k], one, np.linalg.norm(one)),
          "values": hard.error(s, wanted, wanted[0]), "order": float((np.diff(s) > 0).any()),
          "values alone": hard.error(values, wanted, wanted[0]),
          "u": hard.orthogonality(u), "v": hard.orthogonality(hard.adjoint(vt))}


@all_types
@pytest.mark.parametrize("m, n", SHAPES)
def test_svd(dtype, m, n):
  names, a = hard.matrices(dtype, m, n)
  values = on_pod(svd_values, a)
  for f in (svd_full, svd_thin):
    rows = zip(a, *on_pod(f, a), values)
    hard.check(names, [svd_errors(*row) for row in rows], 8 * max(m, n) * hard.epsilon(dtype))


@all_types
def test_svd_of_denormals(dtype):
  """The factors are as orthogonal as always; values are right to the last bit."""
  names, a = hard.stack(dtype, hard.denormal(dtype))
  u, s, vt = on_pod(svd_full, a)
  exponent = -int(np.log2(float(np.finfo(dtype).smallest_subnormal)))
  wanted = np.linalg.svd(hard.scaled(a, exponent), compute_uv=False)
  assert np.abs(hard.scaled(s, exponent) - wanted).max() <= 1
  hard.check(names, [{"u": hard.orthogonality(x), "v": hard.orthogonality(hard.adjoint(y))}
                     for x, y in zip(u, vt)], 100 * hard.epsilon(dtype))


def test_svd_of_a_tall_matrix_takes_memory_for_its_results():
  a = np.random.default_rng(3).standard_normal((60000, 2))
  u, s, vt = on_pod(svd_thin, a)
  np.testing.assert_allclose((u * s) @ vt, a, atol=1e-10)
  x, y = a, a @ [1.0, -2.0]
  np.testing.assert_allclose(on_pod(lambda a, b: jnp.linalg.lstsq(a, b)[0], x, y), [1, -2])


def ranks_and_norms(a):
  norm = jax.vmap(lambda x: jnp.stack([jnp.linalg.norm(x, o) for o in (2, -2, "nuc", "fro")]))
  return jnp.linalg.matrix_rank(a), norm(a), jnp.linalg.cond(a)


@all_types
@pytest.mark.parametrize("m, n", [(12, 12), (12, 5)])
def test_rank_norm_and_condition(dtype, m, n):
  names, a = hard.stack(dtype, hard.of_low_rank(dtype, m, n))
  rank, norms, cond = on_pod(ranks_and_norms, a)
  cpu_rank, cpu_norms, cpu_cond = on_cpu(ranks_and_norms, a)
  exact = np.linalg.matrix_rank(a.astype(hard.wide(dtype)), rtol=100 * hard.epsilon(dtype))
  assert [x for x in zip(names, rank, exact) if x[1] != x[2]] == []
  np.testing.assert_array_equal(rank, cpu_rank)
  limit = 8 * max(m, n) * hard.epsilon(dtype)
  size = np.maximum(cpu_norms[:, :1], np.finfo(cpu_norms.dtype).tiny)
  hard.check(names, [{"norms": np.abs(x).max()} for x in (norms - cpu_norms) / size], limit)
  # The condition of a singular matrix is rounding, zero over zero, or infinite.
  assert not (np.nan_to_num(cond, nan=INF) < 0.01 / hard.epsilon(dtype))[rank < min(m, n)].any()
  regular = rank == min(m, n)
  np.testing.assert_allclose(cond[regular], cpu_cond[regular], rtol=1e4 * limit)


def least_squares(a, b):
  return jax.vmap(jnp.linalg.lstsq)(a, b)


@all_types
@pytest.mark.parametrize("m, n", [(12, 12), (12, 5), (5, 12)])
def test_pinv_and_lstsq(dtype, m, n):
  names, a = hard.stack(dtype, hard.of_low_rank(dtype, m, n))
  b = hard.noise(np.random.default_rng(2), dtype, len(a), m, 2).astype(dtype)
  inverse, (x, _, rank, s) = on_pod(jnp.linalg.pinv, a), on_pod(least_squares, a, b)
  np.testing.assert_array_equal(rank, on_cpu(least_squares, a, b)[2])
  errors = []
  for i, matrix in enumerate(a.astype(hard.wide(dtype))):
    wanted = np.linalg.pinv(matrix, rcond=100 * hard.epsilon(dtype))
    cond = s[i, 0] / s[i, rank[i] - 1] if rank[i] > 0 else 1
    size = np.linalg.norm(wanted) * cond
    errors.append({"pinv": hard.error(inverse[i], wanted, size),
                   "lstsq": hard.error(x[i], wanted @ b[i], size * np.linalg.norm(b[i]))})
  hard.check(names, errors, 20 * max(m, n) * hard.epsilon(dtype))


def test_polyfit_through_fewer_points_than_the_degree_asks_for():
  x = np.repeat([-1.0, 0.0, 2.0], 4)
  for degree in (2, 5):
    compare(lambda x, y: jnp.polyval(jnp.polyfit(x, y, degree), x), x, x**2 - x, tolerance=1e-9)
  compare(lambda x, y: jnp.polyfit(x, y, 4), x, np.cos(x), tolerance=1e-9)


def hermitian(*families):
  """Hermitian matrices made of others: the sum with its adjoint, and of its parts."""
  for name, a in families:
    a = np.asarray(a) / 2
    yield name, a + hard.adjoint(a)
    yield f"{name}, no diagonal", np.triu(a, 1) + hard.adjoint(np.triu(a, 1))
    yield f"{name}, tridiagonal", np.triu(np.tril(a, 1)) + hard.adjoint(np.triu(np.tril(a, 1)))


def eigh_of_lower(a):
  return lax.linalg.eigh(a, lower=True, symmetrize_input=False)


def eigh_of_upper(a):
  return lax.linalg.eigh(a, lower=False, symmetrize_input=False)


def check_eigh(names, a, v, w):
  errors = []
  for matrix, x, values in zip(a, v, w):
    one, exponent = hard.brought_to_one(matrix)
    values, size = hard.scaled(values, exponent), np.linalg.norm(one)
    errors.append({"product": hard.error(x * values, one @ x, size), "v": hard.orthogonality(x),
                   "order": float((np.diff(values) < 0).any()),
                   "values": hard.error(values, np.linalg.eigvalsh(one), size)})
  hard.check(names, errors, 8 * a.shape[-1] * hard.epsilon(a.dtype))


@all_types
@pytest.mark.parametrize("f, other_triangle", [(eigh_of_lower, np.triu), (eigh_of_upper, np.tril)])
def test_eigh_reads_one_triangle(dtype, f, other_triangle):
  names, a = hard.stack(dtype, hermitian(*hard.of_low_rank(dtype), *hard.square(dtype),
                                         *hard.graded(dtype), *hard.at_the_ends(dtype)))
  garbage = other_triangle(np.full_like(a, NAN), 1 if f is eigh_of_lower else -1)
  check_eigh(names, a, *on_pod(f, a + garbage))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigh_of_larger_matrices_converges(dtype):
  """Includes matrices whose large elements come before small ones, for which QL steps alone are inaccurate."""
  names, a = hard.stack(dtype, hermitian(*hard.graded(dtype, 64, 64), *hard.square(dtype, 64)))
  check_eigh(names, a, *on_pod(eigh_of_lower, a))


@all_types
@pytest.mark.parametrize("m, n", SHAPES)
def test_qr(dtype, m, n):
  names, a = hard.matrices(dtype, m, n)
  for mode, columns in (("reduced", min(m, n)), ("complete", m)):
    q, r = on_pod(lambda a: jnp.linalg.qr(a, mode=mode), a)
    assert q.shape[1:] == (m, columns) and not np.tril(r, -1).any()
    errors = []
    for matrix, x, y in zip(a, q, r):
      one, exponent = hard.brought_to_one(matrix)
      x = x.astype(one.dtype)
      errors.append({"product": hard.error(x @ hard.scaled(y, exponent), one, np.linalg.norm(one)),
                     "q": hard.orthogonality(x)})
    hard.check(names, errors, 8 * max(m, n) * hard.epsilon(dtype))


def qr_packed(a):
  packed, taus = geqrf(a)
  return packed, taus, lax.linalg.householder_product(packed, taus[..., :3])


def test_packed_qr_is_that_of_lapack():
  names, a = hard.matrices("float64", 12, 5)
  a = a[[names.index(name) for name in ("zero", "zero row", "doubled row", "one element",
                                        "graded columns", "square overflows", "square vanishes")]]
  one = a / np.maximum(np.abs(a).max((-1, -2), keepdims=True), 1e-300)
  compare(qr_packed, one, tolerance=1e-11)


@all_types
@pytest.mark.parametrize("m, n", SHAPES)
def test_lu(dtype, m, n):
  names, a = hard.matrices(dtype, m, n)
  packed, pivots, permutation = on_pod(lax.linalg.lu, a)
  errors, k = [], min(m, n)
  for i, matrix in enumerate(a):
    one, exponent = hard.brought_to_one(matrix)
    lower = np.tril(packed[i, :, :k], -1) + np.eye(m, k)
    upper = hard.scaled(np.triu(packed[i, :k]), exponent)
    order = list(range(m))
    for j, p in enumerate(pivots[i]):
      order[j], order[p] = order[p], order[j]
    assert order == list(permutation[i])
    size = np.linalg.norm(lower) * np.linalg.norm(upper)
    errors.append({"product": hard.error(lower @ upper, one[order], size),
                   "growth": float((np.abs(lower) > 1.5).any())})
  hard.check(names, errors, 8 * max(m, n) * hard.epsilon(dtype))


@all_types
def test_lu_of_equal_candidates_is_that_of_lapack(dtype):
  names, a = hard.matrices(dtype, hard.N, hard.N)
  compare(lax.linalg.lu, a[[names.index(name) for name in hard.EXACT]], exact=True)


@pytest.mark.parametrize("value", [NAN, INF])
@pytest.mark.parametrize("at", [(0, 0), (2, 2), (2, 0)])
@all_types
def test_what_is_not_finite_has_no_decomposition(dtype, at, value):
  a = np.diag([3.0, 2.0, 1.0]).astype(dtype)
  a[at] = a[at[::-1]] = value
  for f in (svd_full, eigh_of_lower, eigh_of_upper):
    assert all(np.isnan(x).all() for x in jax.tree.leaves(on_pod(f, a)))
  assert not np.isfinite(on_pod(jnp.linalg.qr, a)[1]).all()
  assert not np.isfinite(on_pod(lax.linalg.lu, a)[0]).all()


@all_types
def test_one_by_one(dtype):
  a = np.array([0.0, -3.0, NAN, INF], dtype).reshape(4, 1, 1)
  for f in (eigh_of_lower, geqrf, lax.linalg.lu, jnp.linalg.cholesky):
    compare(f, a)
  compare(svd_values, a[:3])  # LAPACK's function never ends for infinity


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0), (2, 3, 0), (0, 3, 3)])
def test_empty(shape):
  a = np.zeros(shape, np.float32)
  for f in (svd_full, svd_thin, svd_values, jnp.linalg.qr, lax.linalg.lu, jnp.linalg.pinv,
            lambda a: jnp.linalg.qr(a, mode="complete")):
    compare(f, a)
  if shape[-1] == shape[-2]:
    for f in (jnp.linalg.eigh, jnp.linalg.cholesky, jnp.linalg.slogdet, jnp.linalg.inv):
      compare(f, a)
    compare(lambda a: lax.linalg.triangular_solve(a, a, left_side=True), a)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision(dtype):
  """cholesky and triangular_solve accept it on both; svd, eigh and lu on the pod alone, as custom calls of TPUs do."""
  a = np.array([[4, 2, 0], [2, 5, 1], [0, 1, 3]]).astype(jnp.dtype(dtype))
  try:
    factor = on_pod(lax.linalg.cholesky, a)
  except TypeError as error:  # since 0.12 JAX refuses both itself, for all platforms
    assert "does not accept dtype" in str(error)
    return
  wide = a.astype(float)
  np.testing.assert_allclose(factor.astype(float), np.linalg.cholesky(wide), rtol=4e-3)
  compare(lambda a: lax.linalg.triangular_solve(a, a, left_side=True, lower=True), a)
  assert np.isnan(on_pod(lax.linalg.cholesky, -a).astype(float)[np.tril_indices(3)]).all()
  np.testing.assert_allclose(on_pod(svd_values, a).astype(float), np.linalg.svd(wide, compute_uv=False), rtol=8e-3)
  np.testing.assert_allclose(on_pod(eigh_of_lower, a)[1].astype(float), np.linalg.eigvalsh(wide), rtol=8e-3)
  packed, _, order = on_pod(lax.linalg.lu, a)
  product = (np.tril(packed, -1).astype(float) + np.eye(3)) @ np.triu(packed).astype(float)
  np.testing.assert_allclose(product, wide[order], rtol=8e-3, atol=4e-2)
  for f, runs in ((svd_values, [on_cpu]), (eigh_of_lower, [on_cpu]), (lax.linalg.lu, [on_cpu]), (geqrf, [on_cpu, on_pod])):
    for run in runs:
      with pytest.raises(Exception, match="nsupported dtype|not implemented"):
        run(f, a)
