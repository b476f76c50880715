"""JAX's collectives inside pmap and shard_map, against numpy on the whole array."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
import pytest

DEVICES = 8
VALUE = np.random.default_rng(1).integers(-9, 9, (DEVICES, 8, 3)).astype(np.float32)


def pmapped(f, *args, **options):
  return np.asarray(jax.pmap(f, axis_name="i", **options)(*args))


def shard_mapped(f, value, names=("i",), shape=(DEVICES,), spec=P("i"), out=None, jit=True):
  axes = Mesh(np.array(jax.devices()[:DEVICES]).reshape(shape), names)
  mapped = jax.shard_map(f, mesh=axes, in_specs=spec, out_specs=spec if out is None else out,
                         check_vma=False)
  return np.asarray((jax.jit(mapped) if jit else mapped)(value))


@pytest.mark.parametrize("reduce, expected", [
    (lax.psum, VALUE.sum(0)), (lax.pmean, VALUE.mean(0)), (lax.pmax, VALUE.max(0)),
    (lax.pmin, VALUE.min(0))])
def test_reductions(reduce, expected):
  whole = np.broadcast_to(expected, VALUE.shape)
  np.testing.assert_allclose(pmapped(lambda x: reduce(x, "i"), VALUE), whole, rtol=1e-6)
  np.testing.assert_allclose(shard_mapped(lambda x: reduce(x, "i"), VALUE), whole, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "int64", "float16",
                                   "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_psum_of_every_type(dtype):
  with jax.enable_x64(True):
    value = (np.arange(DEVICES * 5) % 3).reshape(DEVICES, 5).astype(jnp.dtype(dtype))
    result = pmapped(lambda x: lax.psum(x, "i"), value)
    wanted = value.astype(int).sum(0) if dtype == "bool" else value.sum(0)
    np.testing.assert_array_equal(result, np.broadcast_to(wanted, result.shape))


def test_several_values_at_once():
  def f(a, b):
    return lax.psum({"a": a, "b": (b, a + 1)}, "i")

  ints = np.arange(DEVICES, dtype=np.int32)
  result = jax.pmap(f, axis_name="i")(VALUE, ints)
  np.testing.assert_array_equal(np.asarray(result["a"][3]), VALUE.sum(0))
  np.testing.assert_array_equal(np.asarray(result["b"][0]), np.full(DEVICES, ints.sum()))
  np.testing.assert_array_equal(np.asarray(result["b"][1][7]), (VALUE + 1).sum(0))


def test_groups():
  groups = [[0, 2, 4, 6], [1, 3, 5, 7]]
  result = pmapped(lambda x: lax.psum(x, "i", axis_index_groups=groups), VALUE)
  for group in groups:
    for device in group:
      np.testing.assert_array_equal(result[device], VALUE[group].sum(0))


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_all_gather(tiled, axis):
  result = pmapped(lambda x: lax.all_gather(x, "i", axis=axis, tiled=tiled), VALUE)
  wanted = (np.concatenate(VALUE, axis) if tiled else np.stack(VALUE, axis))
  for device in range(DEVICES):
    np.testing.assert_array_equal(result[device], wanted)


@pytest.mark.parametrize("tiled", [False, True])
def test_psum_scatter(tiled):
  result = pmapped(lambda x: lax.psum_scatter(x, "i", tiled=tiled), VALUE)
  wanted = VALUE.sum(0)
  for device in range(DEVICES):
    np.testing.assert_array_equal(
        result[device], wanted[device:device + 1] if tiled else wanted[device])


@pytest.mark.parametrize("tiled", [False, True])
def test_all_to_all(tiled):
  result = pmapped(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=tiled), VALUE)
  np.testing.assert_array_equal(result, np.swapaxes(VALUE, 0, 1))


def test_all_to_all_over_other_dimensions():
  value = np.arange(DEVICES * 4 * 16).reshape(DEVICES, 4, 16)
  result = pmapped(lambda x: lax.all_to_all(x, "i", split_axis=1, concat_axis=0, tiled=True), value)
  wanted = np.stack([np.concatenate([value[j][:, 2 * d:2 * d + 2] for j in range(DEVICES)], 0)
                     for d in range(DEVICES)])
  np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("pairs", [
    [(i, (i + 1) % DEVICES) for i in range(DEVICES)], [(0, 7), (7, 0)], [(3, 3)], []])
def test_ppermute(pairs):
  wanted = np.zeros_like(VALUE)
  for source, target in pairs:
    wanted[target] = VALUE[source]
  np.testing.assert_array_equal(pmapped(lambda x: lax.ppermute(x, "i", pairs), VALUE), wanted)
  np.testing.assert_array_equal(
      shard_mapped(lambda x: lax.ppermute(x, "i", pairs), VALUE), wanted)


def test_pbroadcast():
  result = pmapped(lambda x: lax.pbroadcast(x, "i", 5), VALUE)
  np.testing.assert_array_equal(result, np.broadcast_to(VALUE[5], VALUE.shape))
  np.testing.assert_array_equal(shard_mapped(lambda x: lax.pbroadcast(x, "i", 5), VALUE), result)


def test_send_and_receive():
  from jax._src.lax import parallel  # not public yet
  pairs = [(i, (i + 3) % DEVICES) for i in range(DEVICES)]

  def f(x):
    token = parallel.psend(x, "i", pairs)
    return parallel.precv(token, jax.typeof(x), "i", pairs)

  np.testing.assert_array_equal(shard_mapped(f, VALUE), np.roll(VALUE, 3, 0))


def test_ragged_all_to_all():
  # Device d sends d % 3 rows to its right neighbour and one row to itself.
  counts = np.zeros((DEVICES, DEVICES), np.int32)
  for d in range(DEVICES):
    counts[d, d], counts[d, (d + 1) % DEVICES] = 1, d % 3
  starts = np.cumsum(counts, 1) - counts
  landing = np.cumsum(counts, 0) - counts
  value = np.arange(DEVICES * 4 * 2, dtype=np.float32).reshape(DEVICES, 4, 2)

  def f(x, start, count, land, received):
    return lax.ragged_all_to_all(x, jnp.full((6, 2), -1, x.dtype), start, count, land, received,
                                 axis_name="i")

  def g(x, *tables):
    return f(x[0], *(t[0] for t in tables))[None]

  axes = Mesh(np.array(jax.devices()), ("i",))
  result = np.asarray(jax.jit(jax.shard_map(g, mesh=axes, in_specs=P("i"), out_specs=P("i"),
                                            check_vma=False))(
      value, starts, counts, landing, np.ascontiguousarray(counts.T)))
  wanted = np.full((DEVICES, 6, 2), -1, np.float32)
  for source in range(DEVICES):
    for target in range(DEVICES):
      rows = counts[source, target]
      wanted[target, landing[source, target]:landing[source, target] + rows] = (
          value[source, starts[source, target]:starts[source, target] + rows])
  np.testing.assert_array_equal(result, wanted)


def test_axis_index_and_size():
  result = pmapped(lambda x: lax.axis_index("i") + 100 * lax.axis_size("i") + 0 * x,
                   np.zeros(DEVICES, np.int32))
  np.testing.assert_array_equal(result, np.arange(DEVICES) + 100 * DEVICES)


@pytest.mark.parametrize("axis", ["a", "b", ("a", "b"), ("b", "a")])
def test_two_axes_of_a_mesh(axis):
  value = np.arange(2 * 4 * 3, dtype=np.float32).reshape(2, 4, 3)
  over = tuple({"a": 0, "b": 1}[name] for name in ([axis] if isinstance(axis, str) else axis))
  result = shard_mapped(lambda x: lax.psum(x, axis), value, ("a", "b"), (2, 4), P("a", "b"))
  np.testing.assert_array_equal(
      result, np.broadcast_to(value.sum(over, keepdims=True), value.shape))


@pytest.mark.parametrize("axis, order", [
    (("a", "b"), lambda v: v.reshape(8, 3)), (("b", "a"), lambda v: v.swapaxes(0, 1).reshape(8, 3))])
def test_all_gather_over_two_axes(axis, order):
  value = np.arange(2 * 4 * 3, dtype=np.float32).reshape(2, 4, 3)
  result = shard_mapped(lambda x: lax.all_gather(x[0, 0], axis)[None, None], value, ("a", "b"),
                        (2, 4), P("a", "b"), P("a", "b", None, None))
  for a in range(2):
    for b in range(4):
      np.testing.assert_array_equal(result[a, b], order(value))


def test_collectives_in_loops():
  def f(x):
    def body(i, carry):
      return lax.psum(carry, "i") / DEVICES + lax.ppermute(
          x, "i", [(j, (j + 1) % DEVICES) for j in range(DEVICES)])
    return lax.fori_loop(0, 10, body, x)

  value = np.arange(DEVICES, dtype=np.float32)
  wanted = value
  for _ in range(10):
    wanted = wanted.mean() + np.roll(value, 1)
  np.testing.assert_allclose(pmapped(f, value), wanted, rtol=1e-6)


def test_while_until_all_agree():
  def f(x):
    return lax.while_loop(lambda c: lax.pmax(c[0], "i") < 100, lambda c: (c[0] * 2 + 1, c[1] + 1),
                          (x, jnp.int32(0)))

  values, steps = jax.pmap(f, axis_name="i")(np.arange(DEVICES, dtype=np.int32))
  wanted, count = np.arange(DEVICES), 0
  while wanted.max() < 100:
    wanted, count = wanted * 2 + 1, count + 1
  np.testing.assert_array_equal(np.asarray(values), wanted)
  np.testing.assert_array_equal(np.asarray(steps), np.full(DEVICES, count))


def test_psum_under_cond_that_all_take():
  def f(x, flag):
    return lax.cond(flag[0], lambda v: lax.psum(v, "i"), lambda v: v, x)

  for flag in (True, False):
    result = pmapped(f, VALUE, np.full((DEVICES, 1), flag))
    wanted = np.broadcast_to(VALUE.sum(0), VALUE.shape) if flag else VALUE
    np.testing.assert_array_equal(result, wanted)


def test_shard_map_without_jit():
  np.testing.assert_array_equal(
      shard_mapped(lambda x: lax.psum(x * 2, "i"), VALUE, jit=False),
      np.broadcast_to(VALUE.sum(0) * 2, VALUE.shape))


def test_shard_map_inside_an_automatic_program():
  axes = Mesh(np.array(jax.devices()), ("i",))
  local = jax.shard_map(lambda x: lax.psum(x, "i"), mesh=axes, in_specs=P("i"), out_specs=P())

  @jax.jit
  def f(x):
    return (local(x * 2) + 1).sum(), local(x)

  value = jax.device_put(np.arange(16, dtype=np.float32), NamedSharding(axes, P("i")))
  total, parts = f(value)
  wanted = np.arange(16, dtype=np.float32).reshape(8, 2).sum(0)
  assert float(total) == (wanted * 2 + 1).sum()
  np.testing.assert_array_equal(np.asarray(parts), wanted)


def test_on_some_of_the_devices_and_in_another_order():
  devices = [jax.devices()[i] for i in (6, 1, 3)]
  value = np.arange(3, dtype=np.float32)
  f = functools.partial(jax.pmap, axis_name="i", devices=devices)
  np.testing.assert_array_equal(np.asarray(f(lambda x: lax.all_gather(x, "i"))(value)),
                                np.broadcast_to(value, (3, 3)))
  axes = Mesh(np.array(devices), ("i",))
  g = jax.jit(jax.shard_map(lambda x: x - lax.psum(x, "i"), mesh=axes, in_specs=P("i"),
                            out_specs=P("i")))
  np.testing.assert_array_equal(np.asarray(g(value)), value - 3)


def test_same_bits_every_time():
  value = np.random.default_rng(2).standard_normal((DEVICES, 10007)).astype(np.float32)
  f = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
  first = np.asarray(f(value))
  assert (first == first[0]).all()
  for _ in range(20):
    assert (np.asarray(f(value)) == first).all()
  np.testing.assert_allclose(first[0], value.astype(np.float64).sum(0), rtol=1e-4, atol=1e-5)


def test_large_payload():
  value = np.random.default_rng(3).standard_normal((DEVICES, 1 << 18)).astype(np.float32)
  result = pmapped(lambda x: lax.psum_scatter(x, "i", tiled=True), value)
  np.testing.assert_allclose(result.reshape(-1), value.sum(0), rtol=1e-4, atol=1e-4)


def test_gradient_through_collectives():
  def loss(x):
    return (jax.pmap(lambda v: lax.psum(v * v, "i"), axis_name="i")(x)[0]).sum()

  gradient = jax.grad(loss)(VALUE)
  np.testing.assert_allclose(np.asarray(gradient), 2 * VALUE, rtol=1e-6)
