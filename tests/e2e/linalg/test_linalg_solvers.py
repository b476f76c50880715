"""Compares solvers, determinants and Cholesky factors of singular, graded and not finite matrices with numpy and JAX's
CPU backend.
"""

import inspect

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

import hard_matrices as hard
from differential import compare, on_cpu, on_pod

DTYPES = ["float32", "float64", "complex64", "complex128"]
NAN, INF = np.nan, np.inf

all_types = pytest.mark.parametrize("dtype", DTYPES)


@pytest.fixture(autouse=True)
def sixty_four_bits():
  with jax.enable_x64(True):
    yield


def solved(a, b):
  return jnp.linalg.det(a), jnp.linalg.slogdet(a), jnp.linalg.solve(a, b), jnp.linalg.inv(a)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_solve_and_determinant_of_singular_matrices(dtype):
  """Determinants are zero; results of solve and inv are not finite wherever LAPACK's are not."""
  names, a = hard.matrices(dtype, hard.N, hard.N)
  a = a[[names.index(name) for name in hard.EXACT]]
  b = np.ones((len(a), hard.N, 1), dtype)
  found, wanted = on_pod(solved, a, b), on_cpu(solved, a, b)
  for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted)):
    np.testing.assert_array_equal(np.isfinite(left), np.isfinite(right))
    np.testing.assert_allclose(left[np.isfinite(right)], right[np.isfinite(right)], rtol=1e-5)


@all_types
def test_solve_and_determinant_of_graded_matrices(dtype):
  q = hard.unitary(np.random.default_rng(1), dtype, hard.N) + 4 * np.eye(hard.N)
  names, rows = [], []
  for end in (3, 15):
    size = 10.0 ** np.linspace(-end, end, hard.N)
    for turned in (size, size[::-1]):
      names += [f"columns, 1e{end}", f"rows, 1e{end}"]
      rows += [(q * turned, q.sum(-1)), (q * turned[:, None], turned * q.sum(-1))]
  a, b = (np.stack(x).astype(dtype) for x in zip(*rows))
  _, (sign, log), x, _ = on_pod(solved, a, b[..., None])
  wanted = np.linalg.slogdet(q)
  np.testing.assert_allclose(sign, np.full(len(a), wanted[0]), rtol=1e-4)
  np.testing.assert_allclose(log, np.full(len(a), wanted[1]), rtol=1e-4)
  hard.check(names, hard.backward_errors(a, x, b[..., None]), 200 * hard.epsilon(dtype))


CHOLESKY = {
    "positive": [[4.0, 1.0], [1.0, 2.0]], "indefinite": [[1.0, 2.0], [2.0, 1.0]],
    "semidefinite": [[1.0, 1.0], [1.0, 1.0]], "zero": [[0.0, 0.0], [0.0, 0.0]],
    "negative": [[-1.0, 0.0], [0.0, 1.0]], "negative at the end": [[1.0, 0.0], [0.0, -1e-30]],
    "infinity on the diagonal": [[INF, 1.0], [1.0, 2.0]],
    "infinity at the end": [[2.0, 1.0], [1.0, INF]], "NaN": [[NAN, 1.0], [1.0, 2.0]],
    "tiny": [[1e-37, 0.0], [0.0, 1e-30]], "huge": [[1e38, 1e37], [1e37, 1e38]],
    "graded": [[1e-30, 1.0], [1.0, 3e30]],
}


@all_types
def test_cholesky_fails_where_that_of_lapack_does(dtype):
  compare(lambda a: lax.linalg.cholesky(a, symmetrize_input=False),
          np.array(list(CHOLESKY.values()), dtype))


@all_types
def test_cholesky(dtype):
  def family():
    size = np.logspace(-15, 15, hard.N)
    for name, a in hard.square(dtype):
      a = a @ np.conj(a.T) + np.eye(hard.N)
      yield name, a
      yield f"{name}, graded", a * size * size[:, None]
      yield f"{name}, graded down", a / size / size[:, None]
  names, a = hard.stack(dtype, family())
  factor = on_pod(lambda a: lax.linalg.cholesky(a, symmetrize_input=False), a)
  errors = []
  for matrix, x in zip(a, factor.astype(hard.wide(dtype))):
    size = np.sqrt(matrix.diagonal().real.astype(np.float64))[:, None]  # rows are scaled to one
    errors.append({"product": hard.error((x / size) @ hard.adjoint(x / size),
                                         matrix / size / size.T, 1)})
  hard.check(names, errors, 8 * hard.N * hard.epsilon(dtype))


def triangular(a, b, **how):
  return lax.linalg.triangular_solve(a, b, **how)


@all_types
def test_triangular_solve(dtype):
  names, a = hard.stack(dtype, hard.graded(dtype))
  a[:, np.arange(hard.N), np.arange(hard.N)] = np.abs(a).max(-1)
  b = np.ones((len(a), hard.N, hard.N), dtype) * np.abs(a).max(-1, keepdims=True)
  for lower in (True, False):
    x = on_pod(lambda a, b: triangular(a, b, lower=lower, left_side=True), a, b)
    used = (np.tril if lower else np.triu)(a).astype(hard.wide(dtype))
    wanted = on_cpu(lambda a, b: triangular(a, b, lower=lower, left_side=True), used,
                    b.astype(used.dtype))
    fine = (np.abs(wanted) < 0.1 * np.finfo(dtype).max).all((-1, -2))  # fits into the type
    assert fine.sum() > 5
    hard.check(np.array(names)[fine], hard.backward_errors(used[fine], x[fine], b[fine]),
               50 * hard.epsilon(dtype))


SINGULAR = np.array([[1.0, 0, 0], [2, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("how", [dict(lower=lower, left_side=left, transpose_a=turned)
                                 for lower in (True, False) for left in (True, False)
                                 for turned in (True, False)])
def test_triangular_solve_divides_by_zero_as_lapack_does(dtype, how):
  a = SINGULAR if how["lower"] else SINGULAR.T
  b = np.array([[1.0, 0, 3], [2, 0, 1], [1, 1, 1]])
  compare(lambda a, b: triangular(a, b, **how), a.astype(dtype), b.astype(dtype))
  compare(lambda a, b: triangular(a, b, unit_diagonal=True, **how),
          a.astype(dtype), b.astype(dtype))


def tridiagonal(low, diagonal, up, b):
  return lax.linalg.tridiagonal_solve(low, diagonal, up, b)


# JAX 0.9 never perturbs.
TRIDIAGONAL_SOLVERS = [tridiagonal]


def tridiagonal_perturbed(low, diagonal, up, b):
  return lax.linalg.tridiagonal_solve(low, diagonal, up, b, perturb_singular=True)


if "perturb_singular" in inspect.signature(lax.linalg.tridiagonal_solve).parameters:
  TRIDIAGONAL_SOLVERS.append(tridiagonal_perturbed)

TRIDIAGONAL = {
    "regular": ([0, 1, 2, 1], [4, 4, 4, 4], [1, 2, 1, 0]),
    "rows change": ([0, 5, 2, 1], [1e-3, 4, 1e-3, 4], [1, 2, 1, 0]),
    "singular": ([0, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0]),
    "zero": ([0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]),
    "zero row": ([0, 1, 0, 1], [1, 1, 0, 1], [1, 1, 0, 0]),
    "zero at the end": ([0, 0, 0, 0], [1, 3, 2, 0], [0, 0, 0, 0]),
    "zero diagonal": ([0, 1, 2, 3], [0, 0, 0, 0], [1, 2, 3, 0]),
    "tiny pivot": ([0, 0, 0, 0], [1, 1e-20, 3, 1e-30], [0, 0, 0, 0]),
    "tiny": ([0, 1e-30, 2e-30, 1e-30], [4e-30, 4e-30, 4e-30, 4e-30], [1e-30, 2e-30, 1e-30, 0]),
    "huge": ([0, 1e30, 2e30, 1e30], [4e30, 4e30, 4e30, 4e30], [1e30, 2e30, 1e30, 0]),
    "graded": ([0, 1e-10, 1, 1e10], [2e-20, 3, 4e10, 3e20], [1e-10, 1, 1e10, 0]),
    "NaN": ([0, 1, 1, 1], [1, NAN, 1, 1], [1, 1, 1, 0]),
}


@all_types
@pytest.mark.parametrize("f", TRIDIAGONAL_SOLVERS)
def test_tridiagonal_solve(dtype, f):
  diagonals = [np.array(x, dtype) for x in zip(*TRIDIAGONAL.values())]
  b = np.array([[1.0, 2], [2, 0], [3, -1], [4, 4]], dtype)
  found, wanted = (np.asarray(run(f, *diagonals, np.stack([b] * len(TRIDIAGONAL))))
                   for run in (on_pod, on_cpu))
  for name, left, right in zip(TRIDIAGONAL, found, wanted):
    np.testing.assert_allclose(left, right, rtol=1e-3, err_msg=name)
