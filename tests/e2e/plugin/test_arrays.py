"""Arrays on devices: transfers, shardings, donation, memory kinds, deletion."""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
import numpy as np
import pytest

DTYPES = ["bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
          "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
          "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
          "float8_e5m2fnuz"]


def mesh(*shape):
  names = ("x", "y", "z")[:len(shape)]
  return Mesh(np.array(jax.devices()[:np.prod(shape)]).reshape(shape), names)


def sharded(value, axes, *spec):
  return jax.device_put(value, NamedSharding(axes, P(*spec)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 4), (4, 3, 2, 1)])
def test_round_trip(dtype, shape):
  with jax.enable_x64(True):
    value = (np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(jnp.dtype(dtype))
    array = jax.device_put(value)
    assert array.dtype == value.dtype and array.shape == shape
    np.testing.assert_array_equal(np.asarray(array), value)


@pytest.mark.parametrize("view", [
    lambda a: a[::-1], lambda a: a.T, lambda a: a[:, ::2], lambda a: a[1:, 1:],
    lambda a: np.broadcast_to(a[0], (5, 6)), lambda a: np.asfortranarray(a), lambda a: a[::-2, ::-1]])
def test_strided_host_arrays(view):
  value = view(np.arange(24, dtype=np.float32).reshape(4, 6))
  np.testing.assert_array_equal(np.asarray(jax.device_put(value)), value)


@pytest.mark.parametrize("size", [1 << 8, 1 << 16, 1 << 20, 1 << 22, 1 << 24])
@pytest.mark.parametrize("give", [jax.device_put, jax.jit(lambda v: v * 1)],
                         ids=["device_put", "jit"])
def test_host_array_may_change_afterwards(give, size):
  for _ in range(3):
    value = np.ones(size, np.float32)
    array = give(value)
    value[:] = 7
    assert float(array.min()) == 1 and float(array.max()) == 1


@pytest.mark.parametrize("source, target", [
    (("x", None), (None, "x")), (("x",), ()), ((), ("x", "y")), (("x", "y"), ("y", "x")),
    ((("x", "y"),), (None, ("y", "x"))), (("y",), ("x",))])
def test_resharding(source, target):
  axes = mesh(4, 2)
  value = np.arange(16 * 8, dtype=np.int32).reshape(16, 8)
  array = sharded(value, axes, *source)
  moved = jax.device_put(array, NamedSharding(axes, P(*target)))
  jitted = jax.jit(lambda a: a + 0, out_shardings=NamedSharding(axes, P(*target)))(array)
  for result in (moved, jitted):
    assert result.sharding.is_equivalent_to(NamedSharding(axes, P(*target)), 2)
    np.testing.assert_array_equal(np.asarray(result), value)
    for shard in result.addressable_shards:
      np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])


def test_operations_on_sharded_arrays():
  axes = mesh(4, 2)
  value = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32)
  array = sharded(value, axes, "x", "y")
  np.testing.assert_allclose(np.asarray(array @ array.T), value @ value.T, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(float(array.mean()), value.mean(), rtol=1e-5)
  np.testing.assert_allclose(np.asarray(array.sum(0)), value.sum(0), rtol=1e-4, atol=1e-5)
  np.testing.assert_array_equal(np.asarray(jnp.sort(array, axis=1)), np.sort(value, axis=1))
  np.testing.assert_array_equal(np.asarray(array[3]), value[3])
  np.testing.assert_array_equal(np.asarray(array * 2), value * 2)
  np.testing.assert_array_equal(np.asarray(array.reshape(12, 8)), value.reshape(12, 8))


def test_pmap_result_as_input():
  value = np.arange(8 * 3, dtype=np.float32).reshape(8, 3)
  result = jax.pmap(lambda x: x * x)(value)
  np.testing.assert_array_equal(np.asarray(result[0]), value[0] ** 2)
  np.testing.assert_array_equal(np.asarray(result[5]), value[5] ** 2)
  np.testing.assert_allclose(float(result.mean()), (value ** 2).mean(), rtol=1e-6)
  np.testing.assert_array_equal(np.asarray(result * 2), value ** 2 * 2)
  np.testing.assert_array_equal(np.asarray(jax.pmap(lambda x: x + 1)(result)), value ** 2 + 1)
  np.testing.assert_array_equal(np.asarray(result.reshape(-1)), (value ** 2).reshape(-1))


def test_donation():
  double = jax.jit(lambda x: x * 2, donate_argnums=0)
  array = jnp.arange(1000.)
  result = double(array)
  assert array.is_deleted()
  with pytest.raises(RuntimeError, match="deleted"):
    np.asarray(array)
  np.testing.assert_array_equal(np.asarray(result), np.arange(1000.) * 2)


def test_donation_over_devices():
  axes = mesh(8)
  array = sharded(np.arange(64, dtype=np.float32), axes, "x")
  step = jax.jit(lambda x: x + 1, donate_argnums=0)
  for _ in range(5):
    previous, array = array, step(array)
    assert previous.is_deleted()
  np.testing.assert_array_equal(np.asarray(array), np.arange(64) + 5)


def test_donation_leaves_a_live_view_alone():
  array = jnp.arange(100.)
  view = np.asarray(array)
  result = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
  np.testing.assert_array_equal(np.asarray(result), np.arange(100.) + 1)
  np.testing.assert_array_equal(view, np.arange(100.))


def test_same_buffer_donated_twice():
  array = jnp.arange(4.)
  with pytest.raises(Exception, match="(?i)donat"):
    jax.block_until_ready(jax.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(array, array))
  assert float(jnp.add(1., 1.)) == 2


def test_deleted_array():
  array = jnp.arange(4.)
  array.delete()
  with pytest.raises(RuntimeError, match="deleted"):
    jax.block_until_ready(array + 1)


@pytest.mark.parametrize("kind", ["pinned_host", "unpinned_host"])
def test_memory_kinds(kind):
  device = jax.devices()[1]
  host = SingleDeviceSharding(device, memory_kind=kind)
  back = SingleDeviceSharding(device, memory_kind="device")
  array = jax.device_put(np.arange(10.), SingleDeviceSharding(device))
  there = jax.device_put(array, host)
  assert there.sharding.memory_kind == kind
  again = jax.device_put(there, back)
  assert again.sharding.memory_kind == "device"
  for result in (there, again):
    np.testing.assert_array_equal(np.asarray(result), np.arange(10.))


def test_memory_kind_of_a_sharded_array_and_of_a_result():
  axes = mesh(8)
  host = NamedSharding(axes, P("x"), memory_kind="pinned_host")
  array = jax.device_put(np.arange(16.), NamedSharding(axes, P("x")))
  there = jax.device_put(array, host)
  assert there.sharding.memory_kind == "pinned_host"
  np.testing.assert_array_equal(np.asarray(there), np.arange(16.))
  result = jax.jit(lambda x: x * 2, out_shardings=host)(array)
  assert result.sharding.memory_kind == "pinned_host"
  np.testing.assert_array_equal(np.asarray(result), np.arange(16.) * 2)


def test_memory_kind_inside_a_program():
  @jax.jit
  def there_and_back(x):
    y = jax.device_put(x * 2, jax.memory.Space.Host)
    return jax.device_put(y, jax.memory.Space.Device) + 1

  np.testing.assert_array_equal(np.asarray(there_and_back(jnp.arange(5.))), np.arange(5.) * 2 + 1)


def test_statistics_follow_arrays():
  device = jax.devices()[7]
  before = device.memory_stats()["bytes_in_use"]
  array = jax.device_put(np.ones((256, 1024), np.float32), device)
  jax.block_until_ready(array)
  during = device.memory_stats()
  assert during["bytes_in_use"] >= before + (1 << 20)
  assert during["peak_bytes_in_use"] >= during["bytes_in_use"]
  array.delete()
  del array
  assert device.memory_stats()["bytes_in_use"] == before


def test_copies_between_devices():
  first, second = jax.devices()[0], jax.devices()[5]
  array = jax.device_put(np.arange(1000), first)
  for target in (second, first, jax.devices("cpu")[0]):
    array = jax.device_put(array, target)
    assert array.devices() == {target}
  np.testing.assert_array_equal(np.asarray(array), np.arange(1000))


def test_many_small_arrays():
  arrays = [jnp.full((3,), i) for i in range(500)]
  np.testing.assert_array_equal(np.asarray(sum(arrays)), np.full((3,), 500 * 499 // 2))


def test_open_inputs_of_shard_map_come_in_parts():
  axes = mesh(8)
  f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "x"), mesh=axes, in_specs=P("x"),
                            out_specs=P()))
  value = np.arange(16, dtype=np.float32)
  (wanted,), _ = f.lower(value).compile().input_shardings
  assert wanted.is_equivalent_to(NamedSharding(axes, P("x")), 1)
  np.testing.assert_array_equal(np.asarray(f(value)), value.reshape(8, 2).sum(0))


def test_donated_memory_for_another_shape():
  """Results of other shapes reuse donated memory, after it has been read for the last time."""
  def f(x, y, z):
    flat = y.reshape(16)[::-1] + x.reshape(16)
    return x.T.reshape(2, 8), flat, jnp.cumsum(z.reshape(4, 4) @ x, 0).reshape(8, 2), z.sum()

  rng = np.random.default_rng(0)
  args = [rng.integers(0, 9, s).astype(np.float32) for s in ((4, 4), (2, 8), (16,))]
  with jax.default_device(jax.devices("cpu")[0]):
    wanted = [np.asarray(a) for a in jax.jit(f)(*args)]
  donated = [jnp.asarray(a) for a in args]
  found = jax.jit(f, donate_argnums=(0, 1, 2))(*donated)
  for left, right in zip(found, wanted):
    np.testing.assert_array_equal(np.asarray(left), right)


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_unused_donated_memory():
  x = jnp.arange(16.).reshape(8, 2)
  np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x @ x.T, donate_argnums=0)(x)),
                                np.arange(16.).reshape(8, 2) @ np.arange(16.).reshape(8, 2).T)
  np.testing.assert_array_equal(np.asarray(x), np.arange(16.).reshape(8, 2))
