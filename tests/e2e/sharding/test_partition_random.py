"""Random programs with random shardings have the same results as on one device.

There are two generators: random_ops.py writes programs of every op of the op table, and this file draws JAX
programs.  MINIPOD_RANDOM_CASES sets the number of the former (an eighth as many of the latter).  The everyday number
takes half a minute; 2000 reach every kind of dimension of every op.

A JAX program is a list of steps over a growing pool of arrays, drawn from a seed.  It runs twice: plainly on JAX's CPU
backend, and on eight minipod devices with sharded arguments, constraints in between and shard_map regions.  All values
are small integers (also in float arrays), so results must be equal to the bit, on every device.
"""

import collections
import functools
import json
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import random_check
import scenario

MESHES = [((8,), ("x",)), ((2, 4), ("x", "y")), ((4, 2), ("x", "y")), ((2, 2, 2), ("x", "y", "z"))]
STEPS = 10
CASES = int(os.environ.get("MINIPOD_RANDOM_CASES", "200"))


def small(a):
  """Keeps values small, so that floats stay exact."""
  return jnp.mod(a, 7)


# --- steps: each takes the generator, picks arrays of the pool and returns a closure over them ---


def pick(rng, pool, rank=None):
  fits = [i for i, a in enumerate(pool)
          if 0 < a.size < 1 << 14 and (rank is None or a.ndim == rank)]
  return int(rng.choice(fits)) if fits else None


def unary(rng, pool):
  i = pick(rng, pool)
  f = rng.choice([jnp.negative, jnp.abs, lambda a: a * a, lambda a: jnp.where(a > 2, a, 1),
                  lambda a: jnp.clip(a, 1, 4), lambda a: a + jnp.ones_like(a)])
  return lambda arrays, _: small(f(arrays[i]))


def binary(rng, pool):
  i = pick(rng, pool)
  same = [k for k, a in enumerate(pool) if a.shape == pool[i].shape]
  j = int(rng.choice(same))
  f = rng.choice([jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum])
  return lambda arrays, _: small(f(arrays[i], arrays[j].astype(arrays[i].dtype)))


def matmul(rng, pool):
  i = pick(rng, pool, 2)
  if i is None:
    return None
  fits = [k for k, a in enumerate(pool) if a.ndim == 2 and a.shape[0] == pool[i].shape[1]]
  j = int(rng.choice(fits)) if fits else i
  if fits:
    return lambda arrays, _: small(arrays[i] @ arrays[j].astype(arrays[i].dtype))
  return lambda arrays, _: small(arrays[i].T @ arrays[i])


def reduction(rng, pool):
  i = pick(rng, pool)
  if pool[i].ndim < 2:
    return None
  axis = int(rng.integers(pool[i].ndim))
  f = rng.choice([jnp.sum, jnp.max, jnp.min, jnp.argmax, jnp.any, jnp.all])
  return lambda arrays, _: small(f(arrays[i], axis=axis).astype(arrays[i].dtype))


def transpose(rng, pool):
  i = pick(rng, pool)
  order = tuple(int(d) for d in rng.permutation(pool[i].ndim))
  return lambda arrays, _: jnp.transpose(arrays[i], order)


def reshape(rng, pool):
  i = pick(rng, pool)
  shape = pool[i].shape
  if len(shape) >= 2 and rng.integers(2):
    new = (shape[0] * shape[1],) + shape[2:]
  else:
    new = (2, shape[0] // 2) + shape[1:] if shape and shape[0] % 2 == 0 else shape + (1,)
  return lambda arrays, _: arrays[i].reshape(new) if len(new) <= 4 else arrays[i]


def cut(rng, pool):
  """Slices to an uneven size, reverses, rolls, pads or joins."""
  i = pick(rng, pool)
  if pool[i].ndim == 0:
    return None
  axis = int(rng.integers(pool[i].ndim))
  kind = int(rng.integers(6))
  if kind == 0 and pool[i].shape[axis] > 3:
    return lambda arrays, _: lax.slice_in_dim(arrays[i], 1, arrays[i].shape[axis] - 1, axis=axis)
  if kind == 1:
    return lambda arrays, _: jnp.flip(arrays[i], axis)
  if kind == 2:
    return lambda arrays, _: jnp.roll(arrays[i], 3, axis)
  if kind == 3:
    padding = [(1, 2) if d == axis else (0, 0) for d in range(pool[i].ndim)]
    return lambda arrays, _: jnp.pad(arrays[i], padding)
  if kind == 4:
    return lambda arrays, _: small(jnp.cumsum(arrays[i], axis=axis))
  return lambda arrays, _: jnp.sort(arrays[i], axis=axis)


def counting(rng, pool):
  """Masks and sums with an iota along a dimension."""
  i = pick(rng, pool)
  if pool[i].ndim == 0:
    return None
  axis = int(rng.integers(pool[i].ndim))
  dtype = rng.choice([np.int32, np.float32, np.uint8])
  limit = int(rng.integers(1, pool[i].shape[axis] + 1))

  def body(arrays, _):
    count = lax.broadcasted_iota(dtype, arrays[i].shape, axis)
    return jnp.where(count < limit, arrays[i], small(count).astype(arrays[i].dtype))
  return body


def joining(rng, pool):
  """Concatenates, stacks, multiplies batches, or updates a part."""
  i = pick(rng, pool)
  if pool[i].ndim == 0:
    return None
  axis = int(rng.integers(pool[i].ndim))
  start = int(rng.integers(pool[i].shape[axis]))
  kind = int(rng.integers(4))
  if kind == 0:
    return lambda arrays, _: jnp.concatenate([arrays[i], small(arrays[i] + 1)], axis)
  if kind == 1 and pool[i].ndim < 4:
    return lambda arrays, _: jnp.stack([arrays[i], small(arrays[i] * 2)], axis)
  if kind == 2 and pool[i].ndim == 3:
    return lambda arrays, _: small(jnp.einsum("bij,bkj->bik", arrays[i], arrays[i]))
  return lambda arrays, _: lax.dynamic_update_slice_in_dim(
      arrays[i], lax.slice_in_dim(small(arrays[i] + 2), 0, 1, axis=axis), start, axis)


def indexing(rng, pool):
  i = pick(rng, pool)
  if pool[i].ndim == 0:
    return None
  n = pool[i].shape[0]
  indices = rng.integers(0, n, size=6)
  kind = int(rng.integers(3))
  if kind == 0:
    return lambda arrays, _: jnp.take(arrays[i], indices, axis=0)
  if kind == 1:
    return lambda arrays, _: small(arrays[i].at[indices].add(1))
  start = int(rng.integers(n))
  return lambda arrays, _: lax.dynamic_slice_in_dim(
      arrays[i], small(arrays[i].ravel()[0]).astype(int) + start, max(1, n // 2), axis=0)


def loop(rng, pool):
  """A loop that carries one array and captures another of its shape."""
  i = pick(rng, pool)
  same = [k for k, a in enumerate(pool) if a.shape == pool[i].shape]
  j = int(rng.choice(same))
  kind = int(rng.integers(3))

  def body(arrays, _):
    captured = arrays[j].astype(arrays[i].dtype)
    if kind == 0:
      return lax.fori_loop(0, 3, lambda k, a: small(a * 2 + captured + k.astype(a.dtype)), arrays[i])
    if kind == 1 and arrays[i].ndim > 0:
      return lax.scan(lambda c, row: (small(c + row), small(c * 2)), jnp.zeros_like(captured[0]),
                      captured)[1]
    return lax.cond(small(captured.ravel()[0]) > 2, lambda a: small(a + captured),
                    lambda a: small(a * captured), arrays[i])
  return body


def random_spec(rng, names, sizes, shape, even):
  """A PartitionSpec; with `even`, the axes must divide the dimensions."""
  free = [str(name) for name in rng.permutation(names)]
  dims = []
  for n in shape:
    axes = []
    while free and rng.integers(3) == 0:
      parts = int(np.prod([sizes[a] for a in axes + free[:1]]))
      if even and n % parts != 0:
        break
      axes.append(free.pop(0))
    dims.append(None if not axes else axes[0] if len(axes) == 1 else tuple(axes))
  return P(*dims)


def constraint(rng, pool, names, sizes):
  i = pick(rng, pool)
  spec = random_spec(rng, names, sizes, pool[i].shape, even=False)

  def body(arrays, mesh):
    if mesh is None:
      return arrays[i]
    return lax.with_sharding_constraint(arrays[i], NamedSharding(mesh, spec))
  return body


def manual(rng, pool, names, sizes):
  """A shard_map region with its plain equivalent, which applies the collective to the whole array."""
  axis = str(rng.choice(names))
  n = sizes[axis]
  fits = [k for k, a in enumerate(pool) if a.ndim >= 1 and a.shape[0] % (n * n) == 0 and a.size > 0]
  if not fits:
    return None
  i = int(rng.choice(fits))
  kind = int(rng.integers(6))
  if kind == 5 and (pool[i].ndim < 2 or pool[i].shape[1] % n != 0):
    kind = 0
  split, whole = P(axis), P()
  plain, local, spec_in, spec_out = [
      (lambda a: small(a * 3), lambda a: small(a * 3), split, split),
      (lambda a: small(jnp.sum(a, 0)), lambda a: small(lax.psum(jnp.sum(a, 0), axis)), split, whole),
      (lambda a: jnp.roll(a, a.shape[0] // n, 0),
       lambda a: lax.ppermute(a, axis, [(k, (k + 1) % n) for k in range(n)]), split, split),
      (lambda a: a, lambda a: lax.all_gather(a, axis, tiled=True), split, whole),
      (lambda a: small(a * n),
       lambda a: small(lax.psum_scatter(a, axis, tiled=True)), whole, split),
      (lambda a: a, lambda a: lax.all_to_all(a, axis, 1, 0, tiled=True), split, P(None, axis)),
  ][kind]
  partial = bool(rng.integers(2))

  def body(arrays, mesh):
    if mesh is None:
      return plain(arrays[i])
    only = {"axis_names": {axis}} if partial else {}
    return jax.shard_map(local, mesh=mesh, in_specs=spec_in, out_specs=spec_out, check_vma=False,
                         **only)(arrays[i])
  return body


PLAIN = [unary, binary, binary, matmul, reduction, transpose, reshape, cut, counting, joining,
         indexing, loop]


class Program:
  """The program of a seed, and the shardings of its arguments and results."""

  def __init__(self, seed):
    rng = np.random.default_rng(seed)
    shape, self.names = MESHES[int(rng.integers(len(MESHES)))]
    self.mesh = Mesh(np.array(jax.devices("minipod")[:8]).reshape(shape), self.names)
    sizes = dict(zip(self.names, shape))
    shapes = [(16, 8), (8, 16), (64,), (8, 8, 2), (16, 16)]
    self.args = []
    for k in range(3):
      dtype = np.float32 if rng.integers(2) else np.int32
      size = shapes[int(rng.integers(len(shapes)))]
      self.args.append(rng.integers(0, 7, size=size).astype(dtype))
    self.specs = [random_spec(rng, self.names, sizes, a.shape, even=True) for a in self.args]
    # Shapes are found by running the steps as they are drawn, without devices.
    self.steps = []
    pool = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in self.args]
    while len(self.steps) < STEPS:
      kind = int(rng.integers(4))
      if kind == 0:
        step = constraint(rng, pool, self.names, sizes)
      elif kind == 1:
        step = manual(rng, pool, self.names, sizes)
      else:
        step = PLAIN[int(rng.integers(len(PLAIN)))](rng, pool)
      if step is None:
        continue
      pool.append(jax.eval_shape(lambda *arrays, step=step: step(arrays, None), *pool))
      self.steps.append(step)
    # Results: the last arrays.  Some have a sharding of their own, the others the one that results.
    self.results = [int(k) for k in rng.choice(np.arange(3, len(pool)), size=4, replace=False)]
    self.out = [NamedSharding(self.mesh, random_spec(rng, self.names, sizes, pool[k].shape, even=True))
                if rng.integers(2) else None for k in self.results]

  def run(self, mesh, *args):
    arrays = list(args)
    for step in self.steps:
      arrays.append(step(arrays, mesh))
    return [arrays[k] for k in self.results]


def check(seed):
  program = Program(seed)
  cpu = jax.devices("cpu")[0]
  with jax.default_device(cpu):
    wanted = jax.jit(functools.partial(program.run, None))(*[jax.device_put(a, cpu)
                                                            for a in program.args])
  wanted = [np.asarray(a) for a in wanted]
  args = [jax.device_put(a, NamedSharding(program.mesh, spec))
          for a, spec in zip(program.args, program.specs)]
  found = jax.jit(functools.partial(program.run, program.mesh), out_shardings=program.out)(*args)
  for k, (left, right, sharding) in enumerate(zip(found, wanted, program.out)):
    where = f"seed {seed}, result {k}"
    assert left.shape == right.shape and left.dtype == right.dtype, where
    if sharding is not None:
      assert left.sharding.is_equivalent_to(sharding, left.ndim), where
    np.testing.assert_array_equal(np.asarray(left), right, err_msg=where)
    for shard in left.addressable_shards:
      np.testing.assert_array_equal(np.asarray(shard.data), right[shard.index],
                                    err_msg=f"{where}, {shard.device}")


@pytest.mark.parametrize("batch", range(-(-CASES // 80)))
def test_random_programs(batch):
  for seed in range(batch * 10, batch * 10 + 10):
    check(seed)


CHUNK = 500
g_counts = []  # for each chunk: rows, kinds


@pytest.mark.parametrize("first", range(0, CASES, CHUNK))
def test_every_op(first):
  folder = str(pathlib.Path(__file__).parent)
  process = scenario.start(f"""
      import json, sys
      sys.path.insert(0, {folder!r})
      import random_check
      failed, *counts = random_check.run({min(CASES - first, CHUNK)}, {first})
      print(json.dumps(counts))
      sys.exit(failed != 0)
      """, devices=16)
  code, out, err = scenario.finish(process, timeout=170)
  assert code == 0, f"{out[-6000:]}\n{err[-2000:]}"
  g_counts.append(json.loads(out.splitlines()[-1]))


def test_all_was_reached():
  """Checks that every row of the op table was reached; with many cases also every kind of dimension.

  pytest -s prints them.
  """
  rows, kinds = (sum((collections.Counter(c[k]) for c in g_counts), collections.Counter())
                 for k in (0, 1))
  assert not random_check.report(rows, kinds, all_kinds=CASES >= 2000)
