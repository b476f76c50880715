"""One pod over all ranks: its devices, arrays and programs over them, JAX's multi-host helpers."""

import functools
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

from harness import check, main, rank, size

EACH = int(os.environ.get("MINIPOD_DEVICES", 4))
ALL = EACH * size()


def mesh_of(*shape, devices=None):
  devices = jax.devices() if devices is None else devices
  return Mesh(np.array(devices).reshape(shape), tuple("xyz"[:len(shape)]))


def spread(value, mesh, *spec):
  """A numpy array, equal in all ranks, as a global array."""
  return jax.make_array_from_callback(
      value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index], dtype=value.dtype)


def own(array, value):
  """Checks that every shard of this rank has its part of `value`."""
  for shard in array.addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data), value[shard.index])


@check
def device_put_to_another_process():
  value = np.arange(24, dtype=np.float32).reshape(4, 6)
  for source, target in ((0, -1), (-1, 0), (0, EACH)):
    x = jax.device_put(value, SingleDeviceSharding(jax.devices()[source]))
    own(jax.device_put(x, SingleDeviceSharding(jax.devices()[target])), value)
  half = len(jax.devices()) // 2
  first, second = (mesh_of(half, devices=d) for d in (jax.devices()[:half], jax.devices()[half:]))
  x = spread(value, first, None, None)
  y = jax.jit(lambda v: v * 2)(jax.device_put(x, NamedSharding(second, P())))
  own(jax.device_put(y, NamedSharding(first, P())), 2 * value)


@check
def devices():
  assert jax.process_count() == size() and jax.process_index() == rank()
  assert jax.device_count() == ALL and jax.local_device_count() == EACH
  assert [d.id for d in jax.devices()] == list(range(ALL))
  assert jax.local_devices() == jax.devices()[rank() * EACH:(rank() + 1) * EACH]
  for d in jax.devices():
    assert d.process_index == d.id // EACH
    assert d.slice_index == 0 and d.host_index == 0 and list(d.coords) == [d.id], d
    assert d.device_kind == "minipod" and d.platform == "minipod"
    assert f"id={d.id}, process_index={d.process_index}" in repr(d) and str(d)
    is_own = d.process_index == rank()
    assert d.local_hardware_id == (d.id % EACH if is_own else None), d.local_hardware_id
    assert d in jax.local_devices() or not is_own
    # JAX shows the memories of a local device for the others.
    assert {m.kind for m in d.addressable_memories()} == {"device", "pinned_host", "unpinned_host"}
  assert jax.local_devices(process_index=0) == jax.devices()[:EACH]
  assert jax.local_devices()[0].memory_stats()["bytes_limit"] > 0


@check
def local_programs():
  # The programs differ, and no other rank is needed.
  x = jnp.arange(rank() + 3.)
  assert float(x.sum()) == (rank() + 3) * (rank() + 2) / 2
  f = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i", devices=jax.local_devices())
  np.testing.assert_array_equal(f(np.ones(EACH) * rank()), np.ones(EACH) * rank() * EACH)


@check
def pmap_over_all():
  f = jax.pmap(lambda v: (lax.psum(v, "i"), lax.axis_index("i")), axis_name="i")
  mine = np.arange(rank() * EACH, (rank() + 1) * EACH, dtype=np.float32)
  total, index = f(mine)
  # pmap returns to a rank only the rows of its own devices.
  np.testing.assert_array_equal(total, np.full(EACH, ALL * (ALL - 1) / 2))
  np.testing.assert_array_equal(index, mine)


@check
def pmap_gradient_step():
  def loss(w, x):
    return ((x @ w) ** 2).mean()
  @functools.partial(jax.pmap, axis_name="i", in_axes=(None, 0))
  def step(w, x):
    return w - 0.1 * lax.pmean(jax.grad(loss)(w, x), "i")
  x = np.arange(ALL * 6, dtype=np.float32).reshape(ALL, 2, 3) / 10
  new = step(np.ones(3, np.float32), x[rank() * EACH:(rank() + 1) * EACH])
  want = 1 - 0.1 * np.mean([2 * b.T @ (b @ np.ones(3)) / 2 for b in x], 0)
  np.testing.assert_allclose(np.asarray(new.addressable_shards[0].data)[0], want, rtol=1e-5)


@check
def shard_map_over_all():
  mesh = mesh_of(2, ALL // 2)
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=(P("x"), P("y")))
  def f(v):
    return lax.psum(v, "y").sum(1), lax.psum(v, "x").sum(0)
  value = np.arange(4 * ALL, dtype=np.float32).reshape(4, ALL)
  rows, columns = f(spread(value, mesh, "x", "y"))
  own(rows, value.sum(1))
  own(columns, value.sum(0))


@check
def jit_over_all():
  mesh = mesh_of(2, ALL // 2)
  a = np.arange(8 * 16, dtype=np.float32).reshape(8, 16) % 7
  b = np.arange(16 * 8, dtype=np.float32).reshape(16, 8) % 5
  product = jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P("x", "y")))
  own(product(spread(a, mesh, "x", "y"), spread(b, mesh, "y", "x")), a @ b)
  total = jax.jit(lambda v: (v.sum(), v.max(0), jnp.sort(v, 0)))(spread(a, mesh, "x", "y"))
  own(total[0], np.asarray(a.sum()))
  own(total[1], a.max(0))
  own(total[2], np.sort(a, 0))
  assert float(total[0]) == a.sum()  # fully replicated: every rank may read it


@check
def arrays_from_parts():
  mesh = mesh_of(ALL)
  rows = NamedSharding(mesh, P("x"))
  value = np.arange(ALL * 3, dtype=np.int32).reshape(ALL, 3)
  mine = value[rank() * EACH:(rank() + 1) * EACH]
  made = jax.make_array_from_process_local_data(rows, mine)
  assert made.shape == value.shape and made.is_fully_addressable == (size() == 1)
  own(made, value)
  made = multihost_utils.host_local_array_to_global_array(mine, mesh, P("x"))
  own(made * 2, value * 2)
  back = multihost_utils.global_array_to_host_local_array(made, mesh, P("x"))
  np.testing.assert_array_equal(np.asarray(back), mine)
  shards = [jax.device_put(value[d.id:d.id + 1], d) for d in jax.local_devices()]
  own(jax.make_array_from_single_device_arrays(value.shape, rows, shards), value)


@check
def put_to_global_shardings():
  mesh = mesh_of(2, ALL // 2)
  value = np.arange(2 * ALL * ALL, dtype=np.float32).reshape(2 * ALL, ALL)
  a = jax.device_put(value, NamedSharding(mesh, P("x", "y")))
  own(a, value)
  for spec in (P("y"), P(None, "x"), P(), P(("y", "x"))):
    a = jax.device_put(a, NamedSharding(mesh, spec))
    own(a, value)


@check
def reshard():
  mesh = mesh_of(ALL)
  value = np.random.default_rng(0).standard_normal((2 * ALL, 3 * ALL)).astype(np.float32)
  a = spread(value, mesh, "x")
  for spec in (P(None, "x"), P(), P("x")):
    a = jax.jit(lambda v: v, out_shardings=NamedSharding(mesh, spec))(a)
    own(a, value)


@check
def helpers():
  multihost_utils.sync_global_devices("here")
  everywhere = multihost_utils.process_allgather(np.array([rank(), 7]))
  np.testing.assert_array_equal(everywhere, [[r, 7] for r in range(size())])
  tiled = multihost_utils.process_allgather(np.full((2, 3), rank()), tiled=True)
  assert tiled.shape == (2 * size(), 3) and tiled[-1, 0] == size() - 1
  word = multihost_utils.broadcast_one_to_all(np.array([rank() + 5, 1]))
  np.testing.assert_array_equal(word, [5, 1])
  tree = multihost_utils.broadcast_one_to_all({"a": np.float32(rank())}, is_source=rank() == size() - 1)
  assert tree["a"] == size() - 1
  multihost_utils.assert_equal(np.arange(3), "equal")
  mesh = mesh_of(ALL)
  whole = multihost_utils.process_allgather(spread(np.arange(ALL), mesh, "x"), tiled=True)
  np.testing.assert_array_equal(whole, np.arange(ALL))


@check
def unequal_values_are_noticed():
  if size() == 1:
    return
  try:
    multihost_utils.assert_equal(np.array([rank()]), "differ")
  except AssertionError as error:
    assert "differ" in str(error)
  else:
    raise AssertionError("assert_equal saw no difference")


@check
def without_own_devices():
  # Every rank runs it, but devices of the other ranks have no work in it.
  devices = jax.devices()[:EACH]
  mesh = mesh_of(EACH, devices=devices)
  value = np.arange(EACH * 2, dtype=np.float32)
  a = spread(value, mesh, "x")
  b = jax.jit(lambda v: v - v.sum())(a)
  assert b.shape == value.shape
  assert len(b.addressable_shards) == (EACH if rank() == 0 else 0)
  own(b, value - value.sum())
  assert jax.jit(lambda v: v.sum()).lower(a).compile().memory_analysis() is not None
  jax.block_until_ready(b)
  # All of them still work.
  own(jax.jit(lambda v: v.sum())(spread(np.ones(ALL), mesh_of(ALL), "x")), np.asarray(1. * ALL))


@check
def subsets_in_any_order():
  # One device of each rank, last rank first; and the other devices at the same time.
  first = [d for d in jax.devices() if d.local_hardware_id == 0 or
           (d.process_index != rank() and d.id % EACH == 0)][::-1]
  rest = [d for d in jax.devices() if d not in first]
  results = []
  for devices in (first, rest):
    mesh = mesh_of(len(devices), devices=devices)
    value = np.arange(len(devices) * 2, dtype=np.float32)
    results.append((jax.jit(lambda v: v - v.mean())(spread(value, mesh, "x")), value - value.mean()))
  for got, want in results:
    for shard in got.addressable_shards:
      np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], rtol=1e-6)


@check
def loops_with_collectives():
  mesh = mesh_of(ALL)
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
  def f(v):
    return lax.fori_loop(0, 50, lambda i, s: lax.psum(s, "x") / ALL + lax.axis_index("x"), v)
  want = np.zeros(ALL)
  for _ in range(50):
    want = want.mean() + np.arange(ALL)
  got = f(spread(np.zeros(ALL, np.float32), mesh, "x"))
  for shard in got.addressable_shards:
    np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], rtol=1e-5)


@check
def many_in_flight():
  mesh = mesh_of(ALL)
  step = jax.jit(lambda v: v - v.mean() + 1, donate_argnums=0)
  v = spread(np.arange(ALL * 4, dtype=np.float32), mesh, "x")
  for _ in range(100):
    v = step(v)
  want = np.arange(ALL * 4) - np.arange(ALL * 4).mean() + 1
  for shard in v.addressable_shards:
    np.testing.assert_allclose(np.asarray(shard.data), want[shard.index], atol=1e-4)


@check
def large_arrays():
  mesh = mesh_of(ALL)
  value = np.arange(1 << 20, dtype=np.float32) % 1024
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P(), out_specs=P("x"))
  def f(v):
    return lax.psum(v * (lax.axis_index("x") + 1), "x")[None]
  got = f(spread(value, mesh))
  for shard in got.addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data)[0], value * (ALL * (ALL + 1) // 2))


@check
def different_programs_meet():
  # Launches match by participants and order, not by program: constants differ between the ranks.
  mesh = mesh_of(ALL)
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P())
  def f(v):
    return lax.psum(v * np.float32(rank() + 1), "x")
  got = f(spread(np.ones(ALL, np.float32), mesh, "x"))
  own(got, np.full(1, EACH * size() * (size() + 1) / 2))


@check
def a_disagreement_is_an_error_on_both_sides():
  if size() == 1:
    return
  mesh = mesh_of(ALL)
  length = 4 if rank() == 0 else 8
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P(), out_specs=P())
  def f(v):
    return lax.psum(v, "x")
  try:
    jax.block_until_ready(f(spread(np.ones(length, np.float32), mesh)))
  except jax.errors.JaxRuntimeError as error:
    assert "4xf32" in str(error) and "8xf32" in str(error), error
  else:
    raise AssertionError("no error")
  own(jax.jit(lambda v: v.sum())(spread(np.ones(ALL), mesh, "x")), np.asarray(1. * ALL))


@check
def waiting_costs_little():
  if size() == 1:
    return
  mesh = mesh_of(ALL)
  total = jax.jit(lambda v: v.sum())
  v = spread(np.ones(ALL, np.float32), mesh, "x")
  jax.block_until_ready(total(v))
  multihost_utils.sync_global_devices("before")
  begin, cpu = time.monotonic(), time.process_time()
  if rank() == 0:
    time.sleep(3)
  jax.block_until_ready(total(v))
  seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
  assert seconds > 2.5, seconds
  assert cpu < 0.05 * seconds, f"{cpu / seconds:.1%} of a core"


@check
def threads_stay_few():
  own_threads = []
  for task in os.listdir("/proc/self/task"):
    with open(f"/proc/self/task/{task}/comm") as f:
      own_threads.append(f.read().strip())
  # Each process has one thread mp-top, for all of its clients: it sleeps until another process asks (pjrt_top.h).
  count = sum(name.startswith("mp-") and name != "mp-top" for name in own_threads)
  assert 1 <= count <= os.cpu_count() + 4 and own_threads.count("mp-top") <= 1, own_threads


if __name__ == "__main__":
  main()
