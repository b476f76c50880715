"""Random programs with control flow, of values that are absent with MINIPOD_VALUES=shapes and of others.

`python absent_programs.py FIRST COUNT` runs so many of them and prints, for each result, its value or "absent".
With values nothing is absent; without them whatever has a value must have the same.
"""

import random
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

LARGE = (160, 128)  # more than 64 KiB


class Program:
  """Draws statements over a state: small integers, small floats, a vector, and a large array."""

  def __init__(self, seed):
    self.random = random.Random(seed)

  def predicate(self):
    name = self.random.choice(["i", "j", "x", "y", "v", "big", "big"])
    threshold = self.random.randint(-1, 3)
    def of(s):
      value = s[name]
      return (value.ravel()[0] if value.ndim else value) > threshold
    return of

  def index(self):
    name = self.random.choice(["i", "j", "big", "v"])
    return lambda s: (jnp.argmax(s[name]) % 5 if s[name].ndim else s[name]).astype(jnp.int32) - 1

  def simple(self):
    kind = self.random.randrange(9)
    number = self.random.randint(1, 4)
    target, source = self.random.choice("ij"), self.random.choice("ij")
    if kind == 0:
      return lambda s: {**s, target: (s[source] + number) % 7}
    if kind == 1:
      return lambda s: {**s, "x": s["y"] * 0.5 + number}
    if kind == 2:
      return lambda s: {**s, "y": s["big"].sum() * 1e-3}
    if kind == 3:
      return lambda s: {**s, "big": s["big"] * 0.5 + s["x"]}
    if kind == 4:
      return lambda s: {**s, "v": lax.dynamic_update_slice(s["v"], s["x"][None], (s[source],))}
    if kind == 5:
      return lambda s: {**s, "x": jnp.where(s["v"][number] > 1, s["x"], s["y"])}
    if kind == 6:
      return lambda s: {**s, target: jnp.argmax(s["v"]).astype(jnp.int32)}
    if kind == 7:
      return lambda s: {**s, "v": s["v"].at[number].set(s["big"][number, 0])}
    return lambda s: {**s, "i": s["j"], "j": s["i"]}

  def statement(self, depth):
    kind = self.random.randrange(9) if depth > 0 else 0
    if kind < 3:
      return self.simple()
    if kind < 5:
      decide, yes, no = self.predicate(), self.block(depth - 1), self.block(depth - 1)
      return lambda s: lax.cond(decide(s), yes, no, s)
    if kind == 5:
      index = self.index()
      branches = [self.block(depth - 1) for _ in range(3)]
      return lambda s: lax.switch(index(s), branches, s)
    if kind == 6:
      body, rounds = self.block(depth - 1), self.random.randint(0, 3)
      return lambda s: lax.fori_loop(0, rounds, lambda _, s: body(s), s)
    if kind == 7:
      body = self.block(depth - 1)
      return lambda s: lax.scan(lambda s, _: (body(s), None), s, length=2)[0]
    decide, body, most = self.predicate(), self.block(depth - 1), self.random.randint(1, 4)
    def loop(s):
      go_on = lambda c: (c[0] < most) & ((c[0] < 1) | decide(c[1]))
      rounds, s = lax.while_loop(go_on, lambda c: (c[0] + 1, body(c[1])), (jnp.int32(0), s))
      return {**s, "j": rounds}
    return loop

  def block(self, depth):
    statements = [self.statement(depth) for _ in range(self.random.randint(1, 3))]
    def run(s):
      for statement in statements:
        s = statement(s)
      return s
    return run


def start():
  return {"i": jnp.int32(1), "j": jnp.int32(3), "x": jnp.float32(0.5), "y": jnp.float32(2),
          "v": jnp.arange(8, dtype=jnp.float32) - 2, "big": jnp.ones(LARGE)}


def show(value):
  try:
    return np.asarray(value).tobytes().hex()
  except jax.errors.JaxRuntimeError as error:
    assert "no values" in str(error), error
    return "absent"


def main(first, count):
  for seed in range(first, first + count):
    program = Program(seed)
    run = jax.jit(program.block(3), donate_argnums=0 if seed % 2 else ())
    state = run(run(start()))  # what comes out goes in again
    print(seed, *(show(state[name]) for name in sorted(state) if name != "big"))


if __name__ == "__main__":
  main(*map(int, sys.argv[1:]))
