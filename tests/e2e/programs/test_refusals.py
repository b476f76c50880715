"""What JAX cannot have on this platform yet is refused in minipod's words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.eye(3, dtype=np.float32)
FLOAT = jax.ShapeDtypeStruct((3, 3), np.float32)


@pytest.mark.parametrize("f", [
    lambda x: jnp.linalg.eig(x), lambda x: jax.scipy.linalg.schur(x),
    lambda x: jax.pure_callback(np.sin, FLOAT, x),
    lambda x: jax.experimental.io_callback(np.sin, FLOAT, x),
    lambda x: (jax.debug.print("{}", x), x)[1],
    lambda x: (jax.debug.callback(print, x), x)[1]])
def test_refused_by_name(f):
  import jax.experimental  # for io_callback
  with pytest.raises(NotImplementedError, match="minipod does not support"):
    jax.jit(f)(X)


def test_the_way_round_works():
  on_cpu = jax.device_put(X, jax.devices("cpu")[0])
  np.testing.assert_allclose(np.asarray(jnp.linalg.eig(on_cpu)[0]), np.ones(3), rtol=1e-6)


def test_unknown_custom_call():
  with pytest.raises(Exception, match="no_such_target"):
    jax.block_until_ready(jax.jit(
        lambda x: jax.ffi.ffi_call("no_such_target", FLOAT)(x))(X))
