"""All collectives x element types x group shapes over the devices of all ranks, against numpy."""

import functools
import itertools
import os

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import harness
from harness import size

EACH = int(os.environ.get("MINIPOD_DEVICES", 2))
ALL = EACH * size()
ROWS, COLUMNS = 24, 3  # rows of each device's part: divisible by 2, 4 and 8

NUMBERS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32,
           np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
COMPLEX = [np.complex64, np.complex128]
MOVED = [np.bool_, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


def values(dtype):
  """One part per device, [ALL, ROWS, COLUMNS]; sums of small integers are exact in every type."""
  generator = np.random.default_rng(list(np.dtype(dtype).name.encode()))
  whole = generator.integers(0, 4, (ALL, ROWS, COLUMNS))
  if np.issubdtype(dtype, np.complexfloating):
    whole = whole + 1j * generator.integers(0, 4, whole.shape)
  return whole.astype(dtype)


def groups_of(kind):
  """Axis names of a mesh, the axis of the collective, and the groups as lists of device numbers."""
  shape = {"all": (ALL,), "rows": (2, ALL // 2), "columns": (2, ALL // 2),
           "middle": (2, ALL // 4, 2), "outer": (2, ALL // 4, 2)}[kind]
  axes = tuple("xyz"[:len(shape)])
  over = {"all": ("x",), "rows": ("y",), "columns": ("x",), "middle": ("y",), "outer": ("x", "z")}[kind]
  ids = np.arange(ALL).reshape(shape)
  kept = [i for i, a in enumerate(axes) if a not in over]
  gone = [i for i, a in enumerate(axes) if a in over]
  groups = ids.transpose(kept + gone).reshape(-1, int(np.prod([shape[i] for i in gone])))
  return shape, axes, over, groups.tolist()


def by_groups(groups, function):
  """Applies `function` (of the stacked parts of a group) to each group of the parts."""
  def run(parts):
    out = [None] * ALL
    for group in groups:
      for device, result in zip(group, function(parts[np.array(group)])):
        out[device] = result
    return np.stack(out)
  return run


def wide(function):
  """Reduces exactly, then rounds once, as sums of small integers allow."""
  def run(stack):
    as_wide = stack.astype(np.float64) if stack.dtype.kind in "fV" else stack
    result = function(as_wide).astype(stack.dtype)
    return [result] * len(stack)
  return run


def scatter(stack):
  return np.split(wide(lambda s: s.sum(0))(stack)[0], len(stack))


def exchange(stack):
  parts = [np.split(part, len(stack)) for part in stack]
  return [np.concatenate([p[i] for p in parts]) for i in range(len(stack))]


def shift(stack):
  # Every device except the last sends to the device after the next one.
  n = len(stack)
  out = [np.zeros_like(stack[0])] * n
  for i in range(n - 1):
    out[(i + 2) % n] = stack[i]
  return out


def permute(v, axis):
  n = lax.axis_size(axis)
  return lax.ppermute(v, axis, [(i, (i + 2) % n) for i in range(n - 1)])


OPS = {
    "psum": (lambda v, a: lax.psum(v, a), wide(lambda s: s.sum(0)), NUMBERS + COMPLEX),
    "pmax": (lambda v, a: lax.pmax(v, a), wide(lambda s: s.max(0)), NUMBERS),
    "pmin": (lambda v, a: lax.pmin(v, a), wide(lambda s: s.min(0)), NUMBERS),
    "psum_scatter": (lambda v, a: lax.psum_scatter(v, a, tiled=True), scatter, NUMBERS + COMPLEX),
    "all_gather": (lambda v, a: lax.all_gather(v, a, tiled=True),
                   lambda s: [np.concatenate(list(s))] * len(s), NUMBERS + COMPLEX + MOVED),
    "all_to_all": (lambda v, a: lax.all_to_all(v, a, 0, 0, tiled=True), exchange,
                   NUMBERS + COMPLEX + MOVED),
    "ppermute": (permute, shift, NUMBERS + COMPLEX + MOVED),
}
KINDS = ["all", "rows", "columns", "middle", "outer"]


def compare(array, want):
  for shard in array.addressable_shards:
    got = np.asarray(shard.data)
    np.testing.assert_array_equal(got.view(np.uint8), want[shard.index].view(np.uint8),
                                  err_msg=f"{want.dtype} on device {shard.device.id}")


def case(op, kind):
  function, reference, dtypes = OPS[op]
  shape, axes, over, groups = groups_of(kind)
  mesh = Mesh(np.array(jax.devices()).reshape(shape), axes)
  sharding = NamedSharding(mesh, P(axes))
  parts = {np.dtype(d).name: values(d) for d in dtypes}
  joined = {name: v.reshape(ALL * ROWS, COLUMNS) for name, v in parts.items()}
  arguments = {name: jax.make_array_from_callback(v.shape, sharding, lambda i, v=v: v[i])
               for name, v in joined.items()}
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P(axes), out_specs=P(axes), check_vma=False)
  def run(tree):
    return jax.tree.map(lambda v: function(v, over if len(over) > 1 else over[0]), tree)
  results = run(arguments)
  for name, array in results.items():
    want = by_groups(groups, reference)(parts[name])
    compare(array, np.ascontiguousarray(want.reshape(-1, COLUMNS)))


for op_, kind_ in itertools.product(OPS, KINDS):
  one = functools.partial(case, op_, kind_)
  one.__name__, one.__module__ = f"{op_}_{kind_}", __name__
  harness.check(one)


@harness.check
def groups_of_pmap():
  groups = [list(range(i, ALL, 2)) for i in range(2)]
  f = jax.pmap(lambda v: lax.psum(v, "i", axis_index_groups=groups), axis_name="i")
  values_of_all = np.arange(ALL, dtype=np.float32)
  mine = slice(harness.rank() * EACH, (harness.rank() + 1) * EACH)
  want = by_groups(groups, wide(lambda s: s.sum(0)))(values_of_all[:, None])[:, 0]
  np.testing.assert_array_equal(f(values_of_all[mine]), want[mine])


@harness.check
def sums_have_one_order():
  # Rounding shows the order: the bits must be those of the balanced tree, also across processes.
  mesh = Mesh(np.array(jax.devices()), ("x",))
  value = np.random.default_rng(5).standard_normal((ALL, 1000)).astype(np.float32)
  tree = list(value)
  while len(tree) > 1:
    tree = [a + b for a, b in zip(tree[::2], tree[1::2])]
  @jax.jit
  @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
  def f(v):
    return lax.psum(v, "x") + jnp.zeros_like(v)
  got = f(jax.make_array_from_callback(value.shape, NamedSharding(mesh, P("x")), lambda i: value[i]))
  for shard in got.addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data)[0], tree[0])


if __name__ == "__main__":
  jax.config.update("jax_enable_x64", True)  # not at import, because tests read the names of the checks
  harness.main()
