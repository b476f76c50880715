"""Random programs of many kinds, for their virtual times alone: `python chip_programs.py FIRST COUNT KINDS`.

Runs those of the programs whose kind is in KINDS, and prints for each its number, its kind, and the picoseconds of
virtual time that went by until its arguments were there and in each of its runs; at the end the table of times.  Kinds:

flow     loops and branches on one device, as absent_programs.py draws them
surely   the same, decided by values that are there with MINIPOD_VALUES=shapes, too
spread   layers, sums, sorts, lookups, collectives, loops and branches on four devices
ops      StableHLO of any op, on up to four devices, as sharding/random_ops.py draws it
"""

import itertools
import pathlib
import sys

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
import numpy as np

import minipod

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "sharding"))
import absent_programs
import random_check
import random_ops
import random_program

random_program.MESHES[:] = [sizes for sizes in random_program.MESHES if np.prod(sizes) <= 4]
KINDS = ("flow", "surely", "spread", "spread", "ops")
SPECS = (P(), P("a"), P(None, "a"), P("a", "b"), P("b", "a"), P(("a", "b")), P(None, ("a", "b")))


def halve(t, out):
  @pl.when(pl.program_id(0) > 0)
  def _():
    out[...] = lax.fori_loop(0, 3, lambda i, t: t * 0.75 + i, t[...])

  @pl.when(pl.program_id(0) == 0)
  def _():
    out[...] = jnp.tanh(t[...]) * 0.5


def in_a_kernel(t):
  block = pl.BlockSpec((t.shape[0] // 2, t.shape[1]), lambda i: (i, 0))
  return pl.pallas_call(halve, out_shape=jax.ShapeDtypeStruct(t.shape, t.dtype), grid=(2,), in_specs=[block],
                        out_specs=block)(t)


class Sure(absent_programs.Program):
  """All conditions have values in a run without values."""

  def name(self):
    return self.random.choice("ijxv")

  def predicate(self, _=None):
    name, threshold = self.name(), self.random.randint(-1, 3)
    return lambda s: s[name].ravel()[0] > threshold

  def index(self):
    name = self.random.choice("ij")
    return lambda s: s[name] - 1

  def bounded(self, depth):
    body, name = self.block(depth), self.random.choice("ij")
    return lambda s: lax.fori_loop(0, jnp.clip(s[name], 0, 3), lambda _, s: body(s), s)

  def simple(self):
    kind = self.random.randrange(6)
    number = self.random.randint(1, 4)
    target, source = self.random.choice("ij"), self.random.choice("ij")
    if kind == 0:
      return lambda s: {**s, target: (s[source] + number) % 7}
    if kind == 1:
      return lambda s: {**s, "x": s["x"] * 0.5 + number}
    if kind == 2:
      return lambda s: {**s, "y": s["big"].sum() * 1e-3}
    if kind == 3:
      return lambda s: {**s, "v": lax.dynamic_update_slice(s["v"], s["x"][None], (s[source],))}
    if kind == 4:
      return lambda s: {**s, target: jnp.argmax(s["v"]).astype(jnp.int32)}
    return lambda s: {**s, "big": self.large(number)(s["big"], s["x"])}

  def large(self, number):
    """Applies an operation that keeps the large array's shape."""
    return self.random.choice([
        lambda t, x: t * 0.5 + x,
        lambda t, x: jnp.sort(t, axis=number % 2),
        lambda t, x: jnp.cumsum(t, axis=number % 2) * 1e-2,
        lambda t, x: jax.nn.softmax(t, axis=number % 2),
        lambda t, x: t.at[jnp.arange(number * 3) * 7 % len(t)].add(x),
        lambda t, x: t[jnp.argsort(t[:, number])],
        lambda t, x: t - t.mean(number % 2, keepdims=True),
        lambda t, x: jnp.flip(t, number % 2).T.reshape(t.shape),
        lambda t, x: in_a_kernel(t)])


class Spread(Sure):
  """The large array `t` is sharded over a mesh; `w` is a square matrix that multiplies it."""

  def __init__(self, seed, mesh):
    super().__init__("spread", seed)
    self.mesh = mesh

  def large(self, number):
    kind, spec = self.random.randrange(6), self.random.choice(SPECS)
    put = lambda t: lax.with_sharding_constraint(t, NamedSharding(self.mesh, spec))
    if kind < 2:
      return lambda t, x: put(t)
    if kind == 2:
      return self.collective(number)
    change = super().large(number)
    return lambda t, x: put(change(t, x))

  def collective(self, number):
    axis, other = self.random.choice(["ab", "ba"])
    ring = [(j, (j + number) % 2) for j in range(2)]
    body = self.random.choice([
        lambda t: lax.psum(in_a_kernel(t), axis) * 0.5,
        lambda t: lax.pmax(t, (axis, other)),
        lambda t: lax.ppermute(t, axis, ring),
        lambda t: lax.all_gather(t, axis)[0] + t,
        lambda t: lax.all_to_all(t.reshape(2, -1), axis, 0, 0).reshape(t.shape),
        lambda t: jnp.tile(lax.psum_scatter(t, axis, tiled=True), (2, 1)),
        lambda t: lax.fori_loop(0, number, lambda i, t: lax.ppermute(t, other, ring) * 0.5, t)])
    mapped = jax.shard_map(body, mesh=self.mesh, in_specs=P("a", "b"), out_specs=P("a", "b"), check_vma=False)
    return lambda t, x: mapped(t)

  def simple(self):
    kind, spec = self.random.randrange(8), self.random.choice(SPECS)
    put = lambda t: lax.with_sharding_constraint(t, NamedSharding(self.mesh, spec))
    if kind == 0:
      return lambda s: {**s, "big": jnp.tanh(put(s["big"] @ s["w"]))}
    if kind == 1:
      return lambda s: {**s, "w": put(s["w"] * 0.5 + s["big"].T @ s["big"] * 1e-4)}
    if kind == 2:
      loss = lambda w, t: (put(jax.nn.gelu(t @ w)) ** 2).mean()
      return lambda s: {**s, "w": s["w"] - 0.1 * jax.grad(loss)(s["w"], s["big"])}
    return super().simple()


def wait(state):
  jax.block_until_ready(state)
  return now()


def now():
  return round(minipod.virtual_time() * 1e12)  # a whole number, which a float of 64 bits holds exactly


def run_flow(seed, program):
  state = absent_programs.start(*absent_programs.drawn(program))
  yield wait(state)
  run = jax.jit(program.block(3), donate_argnums=0 if seed % 2 else ())
  for _ in range(2):
    state = run(state)
    yield wait(state)


def run_spread(seed):
  mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
  program = Spread(seed, mesh)
  given = absent_programs.drawn(program)
  small = absent_programs.start(*given)
  place = {name: NamedSharding(mesh, P()) for name in small}
  place |= {"big": NamedSharding(mesh, program.random.choice(SPECS)), "w": NamedSharding(mesh, P("a", "b"))}
  state = jax.jit(lambda: absent_programs.start(*given) | {"w": jnp.ones((128, 128)) * 1e-2}, out_shardings=place)()
  yield wait(state)
  run = jax.jit(program.block(2), donate_argnums=0 if seed % 2 else ())
  for _ in range(2):
    state = run(state)
    yield wait(state)


def run_ops(seed):
  p, results = random_ops.random_program(seed)
  number = int(np.prod(list(p.axes.values())))
  devices = jax.devices()[:number]
  mesh = Mesh(np.array(devices).reshape(tuple(p.axes.values())), tuple(p.axes))
  text = p.text([(value, spec) for value, spec, _ in results], parts=True)
  arguments = [random_check.place(data, mesh, spec) for _, data, spec in p.params]
  yield wait(arguments)
  _, found = random_check.execute(devices[0].client, text, devices, [is_open for *_, is_open in results], arguments)
  yield wait(found)


def run(kind, seed):
  if kind == "flow":
    return run_flow(seed, absent_programs.Program("free", seed))
  if kind == "surely":
    return run_flow(seed, Sure(kind, seed))
  return run_spread(seed) if kind == "spread" else run_ops(seed)


def main(first, count, kinds):
  jax.devices()  # the virtual clock starts here
  for seed in range(first, first + count):
    kind = KINDS[seed % len(KINDS)]
    if kind in kinds.split(","):
      jax.config.update("jax_enable_x64", kind == "ops")
      moments = [now(), *run(kind, seed)]
      print(seed, kind, *(end - begin for begin, end in itertools.pairwise(moments)))
    if seed % 50 == 49:
      jax.clear_caches()
  table = minipod.time_report()
  print(table[table.index("program"):])


if __name__ == "__main__":
  main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
