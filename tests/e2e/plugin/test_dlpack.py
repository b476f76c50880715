"""Exchange of arrays with other libraries by DLPack."""

import gc
import os
import subprocess
import sys
import weakref

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
  """Arrays go to JAX's CPU backend and return."""
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
  """Also if the array is deleted or donated."""
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


def test_imports_share_memory():
  """As with JAX's CPU backend: row-major memory at a multiple of 64."""
  a = np.arange(1024 + 16, dtype=np.float32)
  a = a[-a.ctypes.data % 64 // 4:][:1024]
  x = jax.dlpack.from_dlpack(a)
  assert x.devices() == {pod()} and x.unsafe_buffer_pointer() == a.ctypes.data
  a[0] = 77
  assert x[0] == 77 and jax.jit(lambda x: x * 2)(x)[0] == 154
  assert jax.dlpack.from_dlpack(a, copy=True).unsafe_buffer_pointer() != a.ctypes.data
  third = jax.devices("minipod")[2]
  y = jax.dlpack.from_dlpack(a, device=third, copy=False)
  assert y.devices() == {third} and y.unsafe_buffer_pointer() == a.ctypes.data
  assert jax.dlpack.from_dlpack(a[1:]).unsafe_buffer_pointer() != a[1:].ctypes.data
  donated = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
  assert donated[0] == 78 and a[0] == 77
  columns = jax.dlpack.from_dlpack(a.reshape(32, 32).T)
  np.testing.assert_array_equal(jax.jit(lambda x: x + 0)(columns), a.reshape(32, 32).T)


def test_import_holds_the_memory():
  class Owner(np.ndarray):
    pass

  a = np.empty(4096 + 64, np.uint8).view(Owner)
  a = a[-a.ctypes.data % 64:][:4096]
  a[:] = 7
  gone = weakref.ref(a.base if isinstance(a.base, Owner) else a)
  x = jax.dlpack.from_dlpack(a)
  assert x.unsafe_buffer_pointer() == a.ctypes.data
  del a
  gc.collect()
  assert gone() is not None and (np.asarray(x) == 7).all()
  x.delete()
  del x
  gc.collect()
  assert gone() is None


def test_import_as_the_first_call():
  """The call is in progress while JAX looks for its platforms."""
  code = ("import jax, numpy as np; f = jax.dlpack.from_dlpack; a = np.ones(3, np.float32);"
          "print(*[next(iter(f(a, copy=c).devices())).platform for c in (None, None, True)])")
  environment = {**os.environ, "JAX_PLATFORMS": "minipod"}
  done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                        text=True, timeout=120)
  assert done.stdout.split() == ["minipod"] * 3, done.stderr


# The tests below need torch.  It is not a requirement of the tests, because its wheel is some hundred times as large as
# all other requirements together.

TORCH_TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
               "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
               "float8_e4m3fn", "float8_e5m2"]


def torch_or_skip():
  return pytest.importorskip("torch", reason="torch is not installed: too large for a requirement")


def bytes_of(tensor) -> bytes:
  import torch
  return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_torch_both_ways(name):
  torch = torch_or_skip()
  with jax.enable_x64(True):
    for shape in SHAPES:
      t = (torch.arange(int(np.prod(shape, dtype=int))) % 3).reshape(shape).to(getattr(torch, name))
      try:
        x = jax.dlpack.from_dlpack(t)
      except BufferError as error:
        if "float8 types are not supported" in str(error):
          pytest.skip("this torch does not export them")
        raise
      assert x.devices() == {pod()} and (x.dtype.name, x.shape) == (name, shape)
      assert np.asarray(x).tobytes() == bytes_of(t)
      if t.numel():
        assert x.unsafe_buffer_pointer() == t.data_ptr()
      copy = jnp.array(x, copy=True)
      back = torch.from_dlpack(copy)
      assert (back.dtype, tuple(back.shape)) == (t.dtype, shape) and bytes_of(back) == bytes_of(t)
      if t.numel():
        assert back.data_ptr() == copy.unsafe_buffer_pointer()


def test_torch_strides():
  torch = torch_or_skip()
  base = torch.arange(24.0).reshape(4, 6)
  for t in (base.T, base[1:], base.reshape(2, 2, 6).permute(2, 0, 1), base[:1, :1], base.flip(0)):
    x = jax.dlpack.from_dlpack(t)
    np.testing.assert_array_equal(x, t.numpy())
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), t.numpy() * 2)
  with pytest.raises(jax.errors.JaxRuntimeError, match="striding"):
    jax.dlpack.from_dlpack(base[:, ::2])
  with pytest.raises(BufferError, match="gradient"):
    jax.dlpack.from_dlpack(torch.ones(3, requires_grad=True))


@pytest.mark.parametrize("size", [4, 1024, 1 << 20])
def test_torch_life(size):
  """Both sides see writes, and either side may release the array first."""
  torch = torch_or_skip()
  t = torch.arange(float(size))
  x = jax.dlpack.from_dlpack(t)
  t[0] = 77
  assert x[0] == 77
  y = jnp.arange(float(size)).block_until_ready()
  u = torch.from_dlpack(y)
  u[0] = 55
  assert np.asarray(y)[0] == 55
  expected = x.sum()
  del t
  y.delete()
  del y
  gc.collect()
  noise = [torch.full((size,), 3.0) for _ in range(4)] + [jnp.full(size, 3.0) for _ in range(4)]
  assert x.sum() == expected and u[0] == 55 and u[-1] == size - 1
  del noise, x
  again = torch.arange(float(size))
  z = jax.dlpack.from_dlpack(again)
  z.delete()
  del z
  gc.collect()
  assert again[-1] == size - 1


def test_torch_and_devices():
  torch = torch_or_skip()
  for device in jax.devices("minipod")[:3]:
    x = jax.dlpack.from_dlpack(torch.arange(3.0), device=device)
    assert x.devices() == {device} and torch.from_dlpack(x).tolist() == [0, 1, 2]
  mesh = Mesh(np.array(jax.devices("minipod")[:2]), "x")
  with pytest.raises(BufferError, match="unsharded|singular"):
    torch.from_dlpack(jax.device_put(np.ones(4), NamedSharding(mesh, P("x"))))
