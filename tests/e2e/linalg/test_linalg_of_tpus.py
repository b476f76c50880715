"""Decompositions as JAX lowers them for TPUs: XLA's own custom calls Eigh and Qr."""

import jax
from jax import lax
import jax.numpy as jnp
from jaxlib import xla_client as xc
import numpy as np
import pytest


def run_text(text, *arrays):
  device = jax.devices()[0]
  executable = device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())
  results = executable.execute_sharded([jax.device_put(a, device) for a in arrays])
  return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def run(f, *arrays):
  """Runs what JAX would send to a TPU, and returns it as text with the results."""
  text = jax.jit(f).trace(*arrays).lower(lowering_platforms=("tpu",)).as_text()
  return text, run_text(text, *arrays)


def hermitian(dtype, *shape):
  rng = np.random.default_rng(sum(shape))
  a = rng.standard_normal(shape)
  if np.dtype(dtype).kind == "c":
    a = a + 1j * rng.standard_normal(shape)
  return (a + np.swapaxes(a, -1, -2).conj()).astype(dtype)


def check_eigenvectors(a, v, w):
  v, a = np.asarray(v, np.complex128), np.asarray(a, np.complex128)
  tolerance = 1e-5 * a.shape[-1] * max(1, np.abs(w).max())
  np.testing.assert_allclose(a @ v, v * w[..., None, :], atol=tolerance)
  identity = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
  np.testing.assert_allclose(np.swapaxes(v, -1, -2).conj() @ v, identity, atol=1e-5 * a.shape[-1])


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype, shape", [("float32", (5, 5)), ("complex64", (2, 3, 8, 8)), ("float32", (1, 1)),
                                          ("float32", (4, 0, 0)), ("float32", (0, 3, 3))])
def test_jacobi(dtype, shape, lower):
  full = hermitian(dtype, *shape)
  a = np.tril(full) if lower else np.triu(full)

  def f(a):
    return lax.linalg.eigh(a, lower=lower, symmetrize_input=False,
                           implementation=lax.linalg.EighImplementation.JACOBI)

  text, (v, w) = run(f, a)
  assert (np.diff(w) >= 0).all()
  if shape[-1] > 0:  # JAX does not call it for empty matrices
    assert f'@Eigh(%arg0) {{backend_config = "{int(lower)},1,100,1e-6"' in text
  if full.size > 0:
    check_eigenvectors(full, v, w)


def test_unsorted_eigenvalues_stay_with_their_block():
  """Rows of the identity, with which JAX pads a matrix, keep their places and their eigenvalue."""
  a = np.eye(6, dtype=np.float32)
  a[:3, :3] = hermitian("float32", 3, 3) + 10 * np.eye(3)
  a[3, 3] = -7
  text = """
    func.func @main(%a: tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>) {
      %0:2 = stablehlo.custom_call @Eigh(%a) {backend_config = "CONFIG"} :
        (tensor<6x6xf32>) -> (tensor<6x6xf32>, tensor<6xf32>)
      return %0#0, %0#1 : tensor<6x6xf32>, tensor<6xf32>
    }"""
  v, w = run_text(text.replace("CONFIG", "1,0,100,1e-6"), a)
  check_eigenvectors(a, v, w)
  np.testing.assert_array_equal(w[3:], [-7, 1, 1])
  np.testing.assert_array_equal(v[3:, 3:], np.eye(3))
  assert not v[:3, 3:].any() and not v[3:, :3].any()
  v, w = run_text(text.replace("CONFIG", "1,1,100,1e-6"), a)
  check_eigenvectors(a, v, w)
  assert w[0] == -7 and (np.diff(w) >= 0).all()
  with pytest.raises(jax.errors.JaxRuntimeError, match='Eigh needs a backend_config of the form "lower,sort'):
    run_text(text.replace("CONFIG", "1,1,100"), a)


def test_divide_and_conquer():
  """JAX splits matrices of more than 256 rows, and decomposes padded, unsorted blocks."""
  a = hermitian("float32", 270, 270)
  text, (w, v) = run(jnp.linalg.eigh, a)
  assert '"1,0,100,1e-6"' in text
  check_eigenvectors(a, v, w)
  np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=2e-3)


@pytest.mark.parametrize("dtype, shape", [("float32", (6, 4)), ("float32", (2, 4, 6)), ("complex64", (3, 5, 5))])
def test_qr(dtype, shape):
  rng = np.random.default_rng(1)
  a = rng.standard_normal(shape).astype(dtype)
  text, (q, r) = run(jnp.linalg.qr, a)
  assert "@Qr" in text
  np.testing.assert_allclose(q @ r, a, atol=1e-5)
  np.testing.assert_array_equal(np.tril(r, -1), 0)


def test_svd():
  a = np.random.default_rng(2).standard_normal((2, 9, 6)).astype(np.float32)
  _, (u, s, vt) = run(lambda a: jnp.linalg.svd(a, full_matrices=False), a)
  np.testing.assert_allclose(u * s[..., None, :] @ vt, a, atol=1e-4)
  np.testing.assert_allclose(s, np.linalg.svd(a)[1], atol=1e-4)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_narrow_types(dtype):
  """JAX refuses them, other frameworks do not."""
  a = hermitian("float32", 2, 5, 5).astype(dtype)
  element = "bf16" if dtype == jnp.bfloat16 else "f16"
  text = """
    func.func @main(%a: tensor<2x5x5xT>) -> (tensor<2x5x5xT>, tensor<2x5xT>, tensor<2x5x5xT>, tensor<2x5xT>) {
      %0:2 = stablehlo.custom_call @Eigh(%a) {backend_config = "1,1,100,1e-6"} :
        (tensor<2x5x5xT>) -> (tensor<2x5x5xT>, tensor<2x5xT>)
      %1:2 = stablehlo.custom_call @Qr(%a) : (tensor<2x5x5xT>) -> (tensor<2x5x5xT>, tensor<2x5xT>)
      return %0#0, %0#1, %1#0, %1#1 : tensor<2x5x5xT>, tensor<2x5xT>, tensor<2x5x5xT>, tensor<2x5xT>
    }""".replace("T>", element + ">")
  v, w, packed, taus = [r.astype(np.float32) for r in run_text(text, a)]
  wide = np.asarray(a, np.float32)
  np.testing.assert_allclose(wide @ v, v * w[:, None], atol=0.2)
  wanted = np.linalg.qr(wide, mode="r")
  np.testing.assert_allclose(np.abs(np.triu(packed)), np.abs(wanted), atol=0.1)
  assert taus.shape == (2, 5)
