"""Compares matrix decompositions, minipod's and jaxlib's LAPACK handlers, with JAX's CPU backend."""

import functools

import jax
import jax.lax.linalg as ll
import jax.numpy as jnp
import numpy as np
import pytest
import scenario
from jax.sharding import NamedSharding, PartitionSpec as P

N = 6
TOLERANCE = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}


def adjoint(x):
  return jnp.conj(jnp.swapaxes(x, -1, -2))


def hermitian(a):
  return a + adjoint(a)


# Each function returns values that do not depend on the signs and the order that a decomposition chooses.
DECOMPOSITIONS = {
    "cholesky": lambda a: ll.cholesky(a @ adjoint(a) + N * jnp.eye(N, dtype=a.dtype)),
    "qr": lambda a: ll.qr(a, full_matrices=False),
    "geqp3": lambda a: ll.qr(a, pivoting=True, full_matrices=False),
    "svd": lambda a: rebuilt_svd(*ll.svd(a, full_matrices=False)),
    "eigh": lambda a: rebuilt_eigh(*ll.eigh(hermitian(a))),
    "eig": lambda a: ll.eig(a),
    "lu": lambda a: ll.lu(a),
    "schur": lambda a: ll.schur(a),
    "hessenberg": lambda a: ll.hessenberg(a),
    "tridiagonal": lambda a: ll.tridiagonal(hermitian(a)),
}


def rebuilt_svd(u, s, vh):
  return s, (u * s[..., None, :]) @ vh, adjoint(u) @ u


def rebuilt_eigh(v, w):
  return w, (v * w[..., None, :]) @ adjoint(v), adjoint(v) @ v


def matrices(dtype, *batch):
  rng = np.random.default_rng(3)
  a = rng.normal(size=(*batch, N, N))
  if np.dtype(dtype).kind == "c":
    a = a + 1j * rng.normal(size=a.shape)
  return a.astype(dtype)


def check(found, wanted, dtype):
  for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=0, atol=TOLERANCE[dtype])


def on_cpu(f, a):
  with jax.default_device(jax.devices("cpu")[0]):
    return jax.jit(f)(jax.device_put(a, jax.devices("cpu")[0]))


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_one_matrix(name, dtype):
  with jax.enable_x64(True):
    a = matrices(dtype)
    f = DECOMPOSITIONS[name]
    check(jax.jit(f)(a), on_cpu(f, a), dtype)


@pytest.mark.parametrize("name", DECOMPOSITIONS)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_sharded_batch_stays_in_parts(name, dtype):
  with jax.enable_x64(True):
    mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    a = matrices(dtype, 8)
    x = jax.device_put(a, NamedSharding(mesh, P("x")))
    f = jax.jit(DECOMPOSITIONS[name])
    found = f(x)
    check(found, on_cpu(DECOMPOSITIONS[name], a), dtype)
    assert {tuple(r.sharding.spec)[:1] for r in jax.tree.leaves(found)} == {("x",)}
    assert "all-gather" not in f.lower(x).compile().as_text()


def test_a_matrix_in_parts_is_brought_together():
  mesh = jax.make_mesh((2, 3), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2,
                       devices=jax.devices()[:6])
  a = matrices("float32")
  x = jax.device_put(a, NamedSharding(mesh, P("x", "y")))
  for name in ("eig", "geqp3", "hessenberg"):
    check(jax.jit(DECOMPOSITIONS[name])(x), on_cpu(DECOMPOSITIONS[name], a), "float32")


@pytest.mark.parametrize("shape", [(0, 0), (3, 0, 0), (0, 4, 4)])
def test_nothing_to_decompose(shape):
  a = np.zeros(shape, np.float32)
  for f in (ll.eig, ll.schur):
    check(jax.jit(f)(a), on_cpu(f, a), "float32")


def test_what_has_no_decomposition_is_nan_as_on_cpu():
  a = matrices("float32", 2)
  a[1, 2, 3] = np.nan
  for name in ("eig", "schur", "hessenberg"):
    found = jax.tree.leaves(jax.jit(DECOMPOSITIONS[name])(a))
    wanted = jax.tree.leaves(on_cpu(DECOMPOSITIONS[name], a))
    for left, right in zip(found, wanted, strict=True):
      np.testing.assert_array_equal(np.isnan(left), np.isnan(right))


def test_programs_from_elsewhere_find_lapack():
  """Compiles a stored program without JAX's rules, which prepare LAPACK."""
  code = jax.export.export(jax.jit(ll.eig), platforms=["cpu"])(
      jax.ShapeDtypeStruct((N, N), np.float32)).serialize()
  a = matrices("float32")
  check(jax.jit(jax.export.deserialize(code).call)(a), on_cpu(ll.eig, a), "float32")


def test_a_sparse_product_of_jaxlib():
  from jax.experimental import sparse
  matrix = sparse.BCSR.fromdense(jnp.eye(5, dtype=np.float32) * 3)
  np.testing.assert_array_equal(jax.jit(lambda x: matrix @ x)(np.ones(5, np.float32)),
                                np.full(5, 3, np.float32))


def test_primitives_that_are_registered_for_cpu():
  from jax.extend.core import Primitive
  from jax.interpreters import mlir
  triple = Primitive("test_triple")
  triple.def_abstract_eval(lambda x: x)
  mlir.register_lowering(triple, mlir.lower_fun(lambda x: 3 * x, multiple_results=False),
                         platform="cpu")
  np.testing.assert_array_equal(jax.jit(triple.bind)(np.ones(2)), [3, 3])


def test_branches_for_a_cpu():
  x = np.ones(2, np.float32)
  one = lambda **branches: float(jax.jit(
      lambda x: jax.lax.platform_dependent(x, **branches))(x)[0])
  assert one(cpu=lambda x: x + 1, default=lambda x: x + 2) == 2
  assert one(cpu=lambda x: x + 1, minipod=lambda x: x + 3, default=lambda x: x + 2) == 4
  assert one(cuda=lambda x: x + 1, default=lambda x: x + 2) == 3
  assert one(cpu=lambda x: x + 1, tpu=lambda x: x + 3) == 2


LARGE = 130  # from size 128 on, LAPACK computes all of these
LARGE_TOLERANCE = {"float32": 2e-3, "float64": 1e-10, "complex64": 2e-3, "complex128": 1e-10}


def large(dtype, *batch):
  rng = np.random.default_rng(5)
  a = rng.normal(size=(*batch, LARGE, LARGE))
  if np.dtype(dtype).kind == "c":
    a = a + 1j * rng.normal(size=a.shape)
  return (a / np.sqrt(LARGE) + 3 * np.eye(LARGE)).astype(dtype)


def large_factors(a):
  """Decompositions that LAPACK computes for large matrices, in a form that does not depend on signs."""
  q, r = ll.qr(a, full_matrices=False)
  factors, pivots, permutation = ll.lu(a)
  lower = jnp.tril(factors, -1) + jnp.eye(LARGE, dtype=a.dtype)
  return (jnp.linalg.cholesky(a @ adjoint(a)), jnp.linalg.solve(a, a[..., :3]),
          jnp.take_along_axis(a, permutation[..., None], -2) - lower @ jnp.triu(factors),
          pivots, permutation, q @ r, adjoint(q) @ q)


def check_large(found, wanted, dtype):
  for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
    assert (left.dtype, left.shape) == (right.dtype, right.shape)
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=0,
                               atol=LARGE_TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", LARGE_TOLERANCE)
def test_large_matrices(dtype):
  with jax.enable_x64(True):
    a = large(dtype)
    wanted = on_cpu(large_factors, a)
    found = jax.jit(large_factors)
    check_large(found(a), wanted, dtype)
    text = found.lower(a).as_text()
    assert [name for name in ("potrf", "getrf", "geqrf", "gqr") if name + "_ffi" not in text] == []


@pytest.mark.parametrize("dtype", LARGE_TOLERANCE)
@pytest.mark.parametrize("size", [37, 256])
def test_triangular_systems(size, dtype):
  """Full and partial panels of vectors, on either side, and LAPACK's for large matrices.

  JAX's CPU backend solves one system after the other.  With several batches in one program, they wait for each other's
  threads there, and on two cores sometimes for ever.
  """
  rng = np.random.default_rng(size)
  a = rng.normal(size=(2, size, size)) / size
  if np.dtype(dtype).kind == "c":
    a = a + 1j * rng.normal(size=a.shape) / size
  a = (a + 2 * np.eye(size)).astype(dtype)
  b = [rng.normal(size=(2, size, count)).astype(dtype) for count in (1, 2, 8, 45)]

  solves = [functools.partial(lambda a, x, how: ll.triangular_solve(a, x, **how), how=how,
                              x=x if how.get("left_side") else np.swapaxes(x, -1, -2))
            for how in (dict(left_side=True, lower=True), dict(left_side=True, transpose_a=True),
                        dict(lower=True, conjugate_a=True, transpose_a=True), dict(unit_diagonal=True)) for x in b]
  with jax.enable_x64(True):
    wanted = [jax.block_until_ready(on_cpu(solve, a)) for solve in solves]
    check_large(jax.jit(lambda a: [solve(a) for solve in solves])(a), wanted, dtype)


def test_large_matrices_in_batches_and_on_devices():
  mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
  a = large("float32", 8)
  wanted = on_cpu(large_factors, a)
  check_large(jax.jit(jax.vmap(large_factors))(a), wanted, "float32")
  check_large(jax.pmap(large_factors)(a), wanted, "float32")
  on_parts = jax.jit(jax.shard_map(large_factors, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
  check_large(on_parts(a), wanted, "float32")
  sharded = jax.jit(large_factors)
  x = jax.device_put(a, NamedSharding(mesh, P("x")))
  check_large(sharded(x), wanted, "float32")
  assert "all-gather" not in sharded.lower(x).compile().as_text()


def test_large_matrices_without_a_factor():
  a = np.stack([large("float32"), -np.eye(LARGE, dtype=np.float32)])
  a[0] = a[0] @ a[0].T
  for f in (jnp.linalg.cholesky, lambda x: jnp.linalg.solve(x, x[..., :1]),
            lambda x: ll.lu(x * 0)):
    for left, right in zip(jax.tree.leaves(jax.jit(f)(a)), jax.tree.leaves(on_cpu(f, a))):
      np.testing.assert_array_equal(np.isnan(left), np.isnan(right))
  broken = a.copy()
  broken[0, 3, 2] = broken[1, 0, 0] = np.nan
  f = lambda x: ll.cholesky(x)
  np.testing.assert_array_equal(np.isnan(jax.jit(f)(broken)), np.isnan(on_cpu(f, broken)))


@pytest.mark.parametrize("size", [8, LARGE])
def test_factorizations_can_be_stored(size):
  a = large("float32")[:size, :size]
  f = lambda a: (jnp.linalg.cholesky(a @ a.T), ll.lu(a), jnp.linalg.solve(a, a))
  code = jax.export.export(jax.jit(f))(jax.ShapeDtypeStruct(a.shape, a.dtype)).serialize()
  check_large(jax.jit(jax.export.deserialize(code).call)(a), on_cpu(f, a), "float32")


@pytest.mark.parametrize("pivots, size", [
    (np.array([3, 3, 2], np.int32), 5), (np.array([[1, 1], [0, 1]], np.int32), 2),
    (np.zeros((0,), np.int32), 3), (np.zeros((2, 0), np.int32), 0),
    (np.array([-1, 1], np.int32), 4)])
def test_permutation_of_exchanges(pivots, size):
  f = lambda p: ll.lu_pivots_to_permutation(p, size)
  np.testing.assert_array_equal(jax.jit(f)(pivots), on_cpu(f, pivots))


def _factors_in_process(**variables):
  """Digests of large factors, from one device and from four at once; checks that the BLAS has its threads again."""
  return scenario.run("""
    import ctypes, hashlib
    from scipy.linalg import cython_lapack
    blas = ctypes.CDLL(cython_lapack.__file__)
    threads = getattr(blas, "scipy_openblas_get_num_threads", lambda: 0)
    before = threads()
    x = np.random.default_rng(0).normal(size=(4, 300, 300)).astype(np.float32)
    symmetric = x + x.swapaxes(-1, -2)
    f = jax.jit(lambda x, y: (jnp.linalg.qr(x), jnp.linalg.svd(x), jnp.linalg.eigh(y), jnp.linalg.solve(x, y)))
    for part in jax.tree.leaves((f(x, symmetric), jax.pmap(f)(x[:, None], symmetric[:, None]))):
      print(hashlib.sha1(np.asarray(part).tobytes()).hexdigest())
    print(threads() == before)
  """, 4, 120, **variables).split()


def test_small_decompositions_are_those_of_one_thread():
  usual = _factors_in_process()
  assert usual[-1] == "True"
  assert usual == _factors_in_process(OPENBLAS_NUM_THREADS=1)
