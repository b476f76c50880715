"""Arrays that leave and enter by DLPack."""

import jax
import jax.dlpack
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

TYPES = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
         np.float16, np.float32, np.float64, np.complex64, np.complex128]
SHAPES = [(), (0,), (3, 0), (1,), (7,), (2, 3, 5), (1, 4)]


def values(shape, dtype):
  return (np.arange(np.prod(shape, dtype=int)) % 100).reshape(shape).astype(dtype)


def pod():
  return jax.devices("minipod")[0]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_numpy_both_ways(shape, dtype):
  with jax.enable_x64(True):
    a = values(shape, dtype)
    x = jax.device_put(a, pod())
    out = np.from_dlpack(x)
    assert (out.dtype, out.shape) == (a.dtype, a.shape)
    np.testing.assert_array_equal(out, a)
    back = jax.dlpack.from_dlpack(a)
    assert back.devices() == {pod()} and back.dtype == a.dtype
    np.testing.assert_array_equal(back, a)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
                                   ml_dtypes.float8_e5m2], ids=lambda t: t.__name__)
def test_types_that_numpy_has_not(dtype):
  """They go to JAX's CPU backend and come back."""
  a = values((3, 4), dtype)
  cpu = jax.devices("cpu")[0]
  there = jax.dlpack.from_dlpack(jax.device_put(a, pod()), device=cpu)
  assert there.devices() == {cpu}
  back = jax.dlpack.from_dlpack(there, device=pod())
  assert back.devices() == {pod()}
  np.testing.assert_array_equal(np.asarray(back).view(np.uint8), a.view(np.uint8))


def test_memory_is_shared():
  x = jax.device_put(np.arange(1024.0, dtype=np.float32), pod())
  view = np.from_dlpack(x)
  assert view.ctypes.data == x.unsafe_buffer_pointer()
  assert np.from_dlpack(x, copy=False).ctypes.data == x.unsafe_buffer_pointer()
  assert np.from_dlpack(x, copy=True).ctypes.data != x.unsafe_buffer_pointer()


def test_view_outlives_the_array():
  """Also when the array is deleted or donated."""
  x = jax.device_put(np.arange(1000, dtype=np.int32), pod())
  view = np.from_dlpack(x)
  step = jax.jit(lambda x: x + 1, donate_argnums=0)
  y = step(x)
  np.testing.assert_array_equal(view, np.arange(1000))
  np.testing.assert_array_equal(y, np.arange(1000) + 1)
  y_view = np.from_dlpack(y)
  y.delete()
  del x, y
  np.testing.assert_array_equal(y_view, np.arange(1000) + 1)


def test_devices_of_jax_arrays_are_kept():
  x = jax.device_put(np.arange(4.0, dtype=np.float32), jax.devices("minipod")[2])
  assert jnp.from_dlpack(x).devices() == {jax.devices("minipod")[2]}
  assert jnp.from_dlpack(x, copy=True).devices() == {jax.devices("minipod")[2]}
  on_cpu = jax.device_put(x, jax.devices("cpu")[0])
  assert jnp.from_dlpack(on_cpu).devices() == {jax.devices("cpu")[0]}
  with jax.default_device(jax.devices("minipod")[3]):
    assert jnp.from_dlpack(np.ones(3)).devices() == {jax.devices("minipod")[3]}


def test_device_tuple():
  x = jnp.ones(3)
  kind, number = x.__dlpack_device__()
  assert (int(kind), number) == (1, 0)


def test_sharded_arrays_are_refused():
  mesh = Mesh(np.array(jax.devices("minipod")[:2]), "x")
  x = jax.device_put(np.ones(4), NamedSharding(mesh, P("x")))
  with pytest.raises(BufferError, match="unsharded|singular"):
    np.from_dlpack(x)


def test_torch():
  torch = pytest.importorskip("torch")
  x = jax.device_put(np.arange(6.0, dtype=np.float32).reshape(2, 3), pod())
  t = torch.from_dlpack(x)
  np.testing.assert_array_equal(t.numpy(), np.asarray(x))
  back = jnp.from_dlpack(t * 2)
  assert back.devices() == {pod()}
  np.testing.assert_array_equal(back, np.asarray(x) * 2)
  half = torch.arange(5, dtype=torch.bfloat16)
  np.testing.assert_array_equal(jnp.from_dlpack(half).astype(np.float32), np.arange(5.0))
  strided = torch.arange(12.0).reshape(3, 4).T
  np.testing.assert_array_equal(jnp.from_dlpack(strided), strided.numpy())
