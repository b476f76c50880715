"""Random programs with control flow, in which some values are not computed with MINIPOD_VALUES=shapes.

`python absent_programs.py KIND FIRST COUNT` runs COUNT of them, each with STARTS initial states.  For each of these
cases it prints its number, its virtual time in picoseconds, the number of guesses, and each result's value or
"absent".  In a run with values, nothing is absent.  In a run without values, every value that exists must be the same.

In programs of kind `rigged`, a value that is not computed always selects branch 1, or two iterations of a loop.  With
these guesses, times must be the same, too.  A third of the programs run on four devices, whose values differ.  All
programs of kind `together` do, on any number of processes, and they communicate more often.
"""

import random
import re
import sys

import jax
import jax.numpy as jnp
import minipod
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

LARGE = (160, 128)  # more than 64 KiB
STARTS = 5
SMALL = {"i": jnp.int32, "j": jnp.int32, "x": jnp.float32, "y": jnp.float32}


class Program:
  """Draws statements over a state: small integers, small floats, a vector, and large arrays.

  `known`: the values that are certainly computed at this statement.  In rigged programs, they decide everything else.
  """

  def __init__(self, kind, seed):
    self.random = random.Random(f"{kind} {seed}")
    self.is_rigged = kind == "rigged"
    self.is_together = kind == "together"
    self.has_devices = self.is_together or seed % 3 == 0

  # ---- conditions ----

  def predicate(self, loop_round=None):
    """A function of the state that returns a boolean."""
    if self.is_rigged:  # from a zero that is not computed, or from a constant
      if loop_round is None:
        return lambda s: s["zero"][3, 5] < 1
      return lambda s: s["zero"][3, 5] + loop_round(s) < 2
    name = self.random.choice(["i", "i", "j", "j", "x", "y", "v", "v", "big"])
    threshold = self.random.randint(-1, 3)
    def of(s):
      value = s[name]
      return (value.ravel()[0] if value.ndim else value) > threshold
    return of

  def index(self):
    if self.is_rigged:
      return lambda s: 1 + s["zero"][7, 1].astype(jnp.int32)
    name = self.random.choice(["i", "j", "i", "big", "v"])
    return lambda s: (jnp.argmax(s[name]) % 5 if s[name].ndim else s[name]).astype(jnp.int32) - 1

  # ---- statements without control flow ----

  def simple(self):
    number = self.random.randint(1, 4)
    target, source = self.random.choice("ij"), self.random.choice("ij")
    real = self.random.choice("xy")
    def of_v(f):
      return lambda s: {**s, "v": f(s)}
    return self.random.choice([
        lambda s: {**s, target: (s[source] + number) % 7},
        lambda s: {**s, "x": s["y"] * 0.5 + number},
        lambda s: {**s, "y": s["big"].sum() * 1e-3},
        lambda s: {**s, real: jnp.where(s["i"] > number, s["x"], s["y"] * 0 + number)},
        lambda s: {**s, "big": s["big"] * 0.5 + s["x"]},
        lambda s: {**s, "big": jnp.tanh(s["big"] @ s["big"][:128, :]) + s["v"][0]},
        lambda s: {**s, "x": jnp.where(s["v"][number] > 1, s["x"], s["y"])},
        lambda s: {**s, target: jnp.argmax(s["v"]).astype(jnp.int32)},
        lambda s: {**s, target: jnp.clip(s["v"][number], -3, 5).astype(jnp.int32)},
        lambda s: {**s, "i": s["j"], "j": s["i"]},
        lambda s: {**s, real: s["v"][s[source]]},
        lambda s: {**s, real: lax.dynamic_slice(s["big"], (s[source], number), (2, 3)).sum()},
        lambda s: {**s, real: lax.dynamic_index_in_dim(s["v"], s["zero"][0, 0].astype(jnp.int32), keepdims=False)},
        of_v(lambda s: lax.dynamic_update_slice(s["v"], s["x"][None], (s[source],))),
        of_v(lambda s: s["v"].at[number].set(s["big"][number, 0])),
        of_v(lambda s: s["v"].at[jnp.array([number, 0])].add(s["x"])),
        of_v(lambda s: jnp.sort(s["v"] * jnp.float32(number - 2.5))),
        of_v(lambda s: jnp.cumsum(s["v"]) * 0.25),
        of_v(lambda s: s["v"][jnp.argsort(s["v"])[::-1]]),
        of_v(lambda s: jnp.concatenate([s["v"][number:], s["big"][0, :number]])),
        of_v(lambda s: jnp.where(s["v"] > s["zero"][0, 1], s["v"], s["x"])),
        of_v(lambda s: lax.select(s["v"] > number, s["v"], jnp.full(8, s["y"]))),
        of_v(lambda s: jnp.clip(jnp.roll(s["v"], s[source]), -9, 9)),
        of_v(lambda s: jnp.arange(8, dtype=jnp.float32) - number),
        of_v(lambda s: jax.pure_callback(lambda v: v + np.float32(1), jax.ShapeDtypeStruct((8,), jnp.float32), s["v"])),
    ])

  def meeting(self):
    """An operation on all devices, which all devices reach."""
    number = self.random.randint(0, 3)
    name = self.random.choice(["x", "y", "v", "big"])
    pairs = [[0, 1], [2, 3]] if number % 2 else [[0, 3], [1, 2]]
    return self.random.choice([
        lambda s: {**s, name: lax.psum(s[name], "d") * 0.25},
        lambda s: {**s, name: lax.psum(s[name], "d", axis_index_groups=pairs) * 0.5},
        lambda s: {**s, name: lax.ppermute(s[name], "d", [(k, (k + number) % 4) for k in range(4)])},
        lambda s: {**s, name: lax.ppermute(s[name], "d", [(0, number), (2, (number + 1) % 4)])},
        lambda s: {**s, "v": jnp.tile(lax.psum_scatter(s["v"], "d", tiled=True), 4) * 0.25},
        lambda s: {**s, "v": lax.all_to_all(s["v"], "d", 0, 0, tiled=True)},
        lambda s: {**s, "v": lax.all_gather(s["v"][number] + s["x"], "d").repeat(2)},
        lambda s: {**s, "i": lax.psum(s["i"] + 1, "d") % 7, "x": lax.pmin(s["x"], "d")},
        lambda s: {**s, "y": lax.all_gather(s["x"], "d")[number]},
        lambda s: {**s, "i": lax.axis_index("d").astype(jnp.int32)},
        lambda s: {**s, "i": lax.pmax(s["j"], "d")},
        lambda s: {**s, "x": jnp.where(lax.axis_index("d") == number, s["y"], s["x"])},
        # The value of one device is not computed, or the values of all but one device.
        lambda s: {**s, "x": lax.cond(lax.axis_index("d") == number, lambda: s["big"][0, 0], lambda: s["x"])},
    ])

  # ---- control flow ----

  def counted(self, depth, is_outermost):
    # All devices iterate equally often.
    body, rounds = self.block(depth, is_outermost and self.is_together), self.random.randint(0, 3)
    if self.random.random() < 0.5:
      return lambda s: lax.fori_loop(0, rounds, lambda _, s: body(s), s)
    return lambda s: lax.scan(lambda s, k: ({**body(s), "y": k}, s["x"]), s, jnp.arange(2, dtype=jnp.float32))[0]

  def bounded(self, depth):
    """A loop whose bound is a value of the program."""
    body, name = self.block(depth), self.random.choice(["i", "j", "i", "j", "big"])
    if self.is_rigged:
      return lambda s: lax.fori_loop(0, 2 + s["zero"][1, 1].astype(jnp.int32), lambda _, s: body(s), s)
    return lambda s: lax.fori_loop(
        0, jnp.clip(jnp.argmax(s[name]) if s[name].ndim else s[name], 0, 3).astype(jnp.int32), lambda _, s: body(s), s)

  def decided(self, depth):
    """A loop that ends by a value of the program, or at the latest by a counter."""
    body, most = self.block(depth), self.random.randint(1, 4)
    decide = self.predicate(lambda s: s["round"])
    if self.is_rigged:
      def loop(s):
        out = lax.while_loop(lambda c: decide({**c[1], "round": c[0]}),
                             lambda c: (c[0] + 1, body(c[1])), (jnp.float32(0), s))
        return {**out[1], "x": out[0]}
      return loop
    def loop(s):
      go_on = lambda c: (c[0] < most) & ((c[0] < 1) | decide(c[1]))
      rounds, s = lax.while_loop(go_on, lambda c: (c[0] + 1, body(c[1])), (jnp.int32(0), s))
      return {**s, "j": rounds}
    return loop

  def statement(self, depth, is_outermost):
    kind = self.random.randrange(11) if depth > 0 else 0
    if kind < 3:
      return self.simple()
    if kind < 5:
      decide, yes, no = self.predicate(), self.block(depth - 1), self.block(depth - 1)
      return lambda s: lax.cond(decide(s), yes, no, s)
    if kind == 5:
      index = self.index()
      branches = [self.block(depth - 1) for _ in range(3)]
      return lambda s: lax.switch(index(s), branches, s)
    if kind < 8:
      return self.counted(depth - 1, is_outermost)
    return self.bounded(depth - 1) if kind == 8 else self.decided(depth - 1)

  def block(self, depth, is_outermost=False):
    # Elsewhere devices may take different paths, but not in rigged programs.
    may_meet = self.has_devices and (is_outermost or self.is_rigged)
    statements = []
    for _ in range(self.random.randint(1, 3) + 2 * (may_meet and is_outermost)):
      statements.append(self.meeting() if may_meet and self.random.random() < 0.4 else self.statement(depth, is_outermost))
    def run(s):
      for statement in statements:
        s = {name: value.astype(SMALL.get(name, jnp.float32)) for name, value in statement(s).items()}
      return s
    return run


def start(i, j, x, y):
  return {"i": i, "j": j, "x": x, "y": y, "v": jnp.arange(8, dtype=jnp.float32) - y, "big": jnp.full(LARGE, x),
          "zero": jnp.zeros(LARGE)}


def drawn(program):
  """The initial state."""
  integers, reals = [np.int32(program.random.randint(-1, 5)) for _ in "ij"], [program.random.randint(-4, 6) / 2 for _ in "xy"]
  return integers + [np.float32(real) for real in reals]


def compiled(program, seed):
  """The program, and the function that makes its initial state."""
  block = program.block(3 if program.is_rigged else program.random.randint(1, 3), is_outermost=True)
  donated = {"donate_argnums": 0} if seed % 2 else {}
  if not program.has_devices:
    return jax.jit(block, **donated), jax.jit(start)
  mesh = jax.make_mesh((4,), ("d",))
  def of_device(s):
    return {name: value[None] for name, value in block({name: value[0] for name, value in s.items()}).items()}
  begin = jax.jit(jax.shard_map(lambda *values: {name: value[None] for name, value in start(*values).items()}, mesh=mesh,
                                in_specs=P(), out_specs=P("d"), check_vma=False))
  return jax.jit(jax.shard_map(of_device, mesh=mesh, in_specs=P("d"), out_specs=P("d"), check_vma=False), **donated), begin


def show(array):
  def one(value):
    try:
      return np.asarray(value).tobytes().hex()
    except jax.errors.JaxRuntimeError as error:
      assert "no values" in str(error), error
      return "absent"
  return " ".join(one(shard.data) for shard in array.addressable_shards)


def guesses():
  """The number of guesses so far."""
  found = re.search(r"guessed: (\d+) times", minipod.time_report())
  return int(found[1]) if found else 0


def one(kind, run, state):
  """The virtual time of two launches, the number of guesses, and the resulting values."""
  jax.block_until_ready(state)
  began, guessed = minipod.virtual_time(), guesses() if kind != "rigged" else 0
  state = jax.block_until_ready(run(run(state)))  # the results are the next arguments
  took = round((minipod.virtual_time() - began) * 1e12)
  guessed = guesses() - guessed if kind != "rigged" else 0
  return took, guessed, *(show(state[name]) for name in sorted(state) if name not in ("big", "zero"))


def main(kind, first, count):
  for seed in range(first, first + count):
    program = Program(kind, seed)
    run, begin = compiled(program, seed)
    for k in range(STARTS):
      print(f"{seed}.{k}", *one(kind, run, begin(*drawn(program))), flush=True)


if __name__ == "__main__":
  main(sys.argv[1], *map(int, sys.argv[2:]))
