"""Pallas kernels on meshes: kernels of `pl.kernel`, and kernels that are called under a caller's mesh."""

import inspect

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)
EXPLICIT = (jax.sharding.AxisType.Explicit,) * 2


def kernel(body, mesh, out, **options):
  name = "out_type" if "out_type" in inspect.signature(pl.kernel).parameters else "out_shape"
  return pl.kernel(body, mesh=mesh, **{name: jax.ShapeDtypeStruct(out.shape, out.dtype)}, **options)


@pytest.mark.skipif(not hasattr(pl, "kernel"), reason="not in this version of JAX")
@pytest.mark.parametrize("cores", [1, 2])
def test_a_kernel_on_the_cores_of_a_chip(cores):
  def body(x, out):
    core = jax.lax.axis_index("core")

    @pl.when(core >= 0)
    def copy():
      rows = pl.ds(core * (16 // cores), 16 // cores)
      pltpu.sync_copy(x.at[rows], out.at[rows])

  mesh = pltpu.create_tensorcore_mesh("core", num_cores=cores)
  f = kernel(body, mesh, X)
  np.testing.assert_array_equal(jax.jit(f)(X), X)
  np.testing.assert_array_equal(jax.jit(lambda x: f(x * 2) + 1)(X), X * 2 + 1)


def add_rows(x, out, total):
  def add(i, carry):
    total[...] += jnp.where(x[pl.ds(i, 1)] > 5, x[pl.ds(i, 1)], jnp.zeros((1, 128)))
    return carry

  total[...] = jnp.zeros_like(total)
  jax.lax.fori_loop(0, 8, add, 0)
  out[...] = jnp.dot(x[...], jnp.ones((128, 128)), preferred_element_type=jnp.float32) + total[...]


def call(x, interpret=False):
  block = pl.BlockSpec((8, 128), lambda i: (i // 1, 0))
  return pl.pallas_call(add_rows, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid=(2,),
                        in_specs=[block], out_specs=block, interpret=interpret,
                        scratch_shapes=[pltpu.VMEM((1, 128), jnp.float32)])(x)


EXPECTED = X @ np.ones((128, 128), np.float32) + np.where(X > 5, X, 0).reshape(2, 8, 128).sum(
    1).repeat(8, 0)


@pytest.mark.parametrize("interpret", [False, True, pltpu.InterpretParams()],
                         ids=["plain", "any", "tpu"])
@pytest.mark.parametrize("axes", [None, {"a", "b"}, {"a"}], ids=["explicit", "manual", "both"])
def test_a_kernel_under_a_mesh(axes, interpret):
  if axes == {"a"} and interpret not in (False, True):
    pytest.skip("JAX has no callbacks where an axis is not manual")
  mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=EXPLICIT, devices=jax.devices()[:4])
  f = lambda x: call(x, interpret)
  with jax.set_mesh(mesh):
    if axes is not None:
      f = jax.shard_map(f, in_specs=jax.P(), out_specs=jax.P(), axis_names=axes, check_vma=False)
    np.testing.assert_array_equal(jax.jit(f)(X), EXPECTED)
