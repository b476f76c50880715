"""Pallas kernels in its interpreters, which are ordinary programs with callbacks."""

import jax
from jax.experimental import pallas as pl
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)


def interpreters():
  yield True
  tpu = pytest.importorskip("jax.experimental.pallas.tpu")
  yield tpu.InterpretParams()


@pytest.mark.parametrize("number", [0, 1], ids=["any", "tpu"])
def test_blocks_of_a_grid(number):
  interpret = list(interpreters())[number]

  def kernel(x, y, out):
    out[...] = x[...] * 2 + y[...]

  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  f = jax.jit(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid=(2,),
                             in_specs=[block, block], out_specs=block, interpret=interpret))
  np.testing.assert_array_equal(f(X, jnp.ones_like(X)), X * 2 + 1)
