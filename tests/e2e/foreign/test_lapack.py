"""Matrix decompositions, ours and those of jaxlib's LAPACK handlers, against JAX's CPU backend."""

import jax
import jax.lax.linalg as ll
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

N = 6
TOLERANCE = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}


def adjoint(x):
  return jnp.conj(jnp.swapaxes(x, -1, -2))


def hermitian(a):
  return a + adjoint(a)


# Each gives what does not depend on the signs and the order that a decomposition may choose.
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
  """A stored program is compiled without JAX's rules, which start LAPACK."""
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
