"""Random loops whose bodies read scalars beside vectors, and whether minipod and NumPy agree on them to the bit.

A body is Python source that runs on JAX and on NumPy: a select of vectors by one predicate, a scalar operand or bound
for all elements, and folds of vectors to scalars that the same body reads again. All float values are whole, and sums
are of small ones, so that each order of summing gives the same bits.
"""

import random

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

# Below and beyond the lanes of machine code, with and without a rest.
SIZES = [2, 3, 8, 40, 70, 200]
MOST = 1000  # of a float value that the next round reads
MOST_SUMMED = 64

JAX_NAMES = {"xp": jnp, "select": lax.select, "clamp": lax.clamp}
NUMPY_NAMES = {"xp": np, "select": lambda which, x, y: np.where(which, x, y),
               "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high)}
HELPERS = f"""
def tame(x):
  return clamp(xp.float32(-{MOST}), x, xp.float32({MOST}))

def total(x):
  return xp.sum(x, dtype=x.dtype)

def small_total(x):
  return total(clamp(xp.float32(-{MOST_SUMMED}), x, xp.float32({MOST_SUMMED})))
"""

# Kinds of values: scalars f (f32), i (i32), b (bool); vectors F and I.
STEPS = {
    "f": ["{f} + {f}", "{f} - {f}", "{f} * {f}", "xp.maximum({f}, {f})", "xp.minimum({f}, {f})", "-{f}",
          "select({b}, {f}, {f})", "{i}.astype(xp.float32)", "small_total({F})", "xp.max({F})", "xp.min({F})",
          "small_total({F} * {F})", "xp.max(select({b}, {F}, {F}))"],
    "i": ["{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} & {i}", "{i} | {i}", "{i} ^ {i}", "xp.maximum({i}, {i})",
          "select({b}, {i}, {i})", "total({I})", "xp.max({I})", "total({I} * {I})", "total(({F} > {f}).astype(xp.int32))"],
    "b": ["{f} < {f}", "{i} <= {i}", "{i} == {i}", "{f} >= {f}", "{b} ^ {b}", "{b} & {b}", "{b} | {b}", "~{b}",
          "xp.any({F} > {f})", "xp.all({I} <= {i})"],
    "F": ["{F} + {F}", "{F} * {F}", "{F} * {f}", "{f} - {F}", "{F} + {f}", "xp.maximum({F}, {f})", "{F}[::-1]",
          "select({b}, {F}, {F})", "select({b}, {F} * {f}, {F} - {f})", "clamp({f}, {F}, {f})",
          "select({F} < {f}, {F}, {F})", "{I}.astype(xp.float32)"],
    "I": ["{I} + {I}", "{I} * {i}", "{i} - {I}", "{I} ^ {i}", "xp.minimum({I}, {i})", "{I}[::-1]",
          "select({b}, {I}, {I})", "select({b}, {I} + {i}, {i} - {I})", "clamp({i}, {I}, {i})", "select({I} < {i}, {I}, {I})"],
}
# Steps in a row: a fold, which goes with the scalar `one` to another scalar, and with the same `one` to a vector.
TOGETHER = [
    [("f", "small_total({F})"), ("b", "one ^ ({0} > {f})"), ("F", "select(one, {F} * {0}, {F} - {0})")],
    [("f", "xp.max({F})"), ("f", "one + {0}"), ("F", "clamp(one, {F}, {0})")],
    [("f", "xp.min({F})"), ("f", "one * {0}"), ("F", "({F} - one) * {0}")],
    [("i", "total({I})"), ("b", "one & ({0} > {i})"), ("I", "select(one, {0} - {I}, {I})")],
    [("i", "xp.max({I})"), ("i", "one ^ {0}"), ("I", "select({I} < one, {I} + {0}, {I})")],
]
CARRIED = [kind + number for kind in STEPS for number in "01"]


class _Drawing(random.Random):
  """Draws steps; knows the names of the values of each kind."""

  def __init__(self, seed):
    super().__init__(seed)
    self.values = {kind: [kind + "0", kind + "1"] for kind in STEPS}
    self.lines = []

  def pick(self, kind):
    """The newer ones more often."""
    names = self.values[kind]
    return names[max(self.randrange(len(names)), self.randrange(len(names)))]

  def add(self, kind, expression):
    """A step of the kind; the name of its value."""
    for each in STEPS:
      while "{" + each + "}" in expression:
        expression = expression.replace("{" + each + "}", self.pick(each), 1)
    name = f"v{len(self.lines)}"
    self.values[kind].append(name)
    self.lines.append(f"  {name} = {expression}")
    return name

  def add_one(self):
    kind = self.choice(list(STEPS))
    self.add(kind, self.choice(STEPS[kind]))

  def add_together(self):
    (fold, make), *readers = self.choice(TOGETHER)
    one = self.pick(readers[0][0])
    made = self.add(fold, make)
    for kind, expression in readers:
      self.add(kind, expression.replace("one", one).replace("{0}", made))


def draw_body(seed):
  """The source of `body`, which takes the values that a loop carries and returns the next ones."""
  drawing = _Drawing(seed)
  for _ in range(drawing.randint(3, 9)):
    drawing.choice([drawing.add_one, drawing.add_one, drawing.add_together])()
  carried = [drawing.pick(name[0]) for name in CARRIED]
  results = [f"tame({value})" if name[0] in "fF" else value for name, value in zip(CARRIED, carried)]
  head = f"def body({', '.join(CARRIED)}):"
  return "\n".join([HELPERS, head, *drawing.lines, f"  return ({', '.join(results)})"])


def draw_values(seed):
  generator = np.random.default_rng(seed)
  size = SIZES[seed % len(SIZES)]
  values = {"f": lambda: np.float32(generator.integers(-9, 10)), "i": lambda: np.int32(generator.integers(-99, 100)),
            "b": lambda: np.bool_(generator.integers(2)),
            "F": lambda: generator.integers(-9, 10, size).astype(np.float32),
            "I": lambda: generator.integers(-99, 100, size).astype(np.int32)}
  return [values[name[0]]() for name in CARRIED]


def _body(source, names):
  names = dict(names)
  exec(source, names)
  return names["body"]


def _with_numpy(source, values, rounds):
  body = _body(source, NUMPY_NAMES)
  with np.errstate(all="ignore"):
    for _ in range(rounds):
      values = body(*values)
  return values


def _with_jax(source, values, rounds, is_loop):
  body = _body(source, JAX_NAMES)

  def straight(*values):
    for _ in range(rounds):
      values = body(*values)
    return values

  def loop(*values):
    return lax.fori_loop(0, rounds, lambda i, carried: body(*carried), values)

  return jax.jit(loop if is_loop else straight)(*values)


def check(seed):
  """Compares a loop, or its rounds one after another, with NumPy; raises AssertionError."""
  source, values = draw_body(seed), draw_values(seed)
  is_loop = seed % 3 != 0
  rounds = 1 + seed % 7 if is_loop else 2
  wanted = _with_numpy(source, values, rounds)
  found = _with_jax(source, values, rounds, is_loop)
  for name, one, other in zip(CARRIED, found, wanted):
    np.testing.assert_array_equal(one, other, f"{name}, seed {seed}, {rounds} rounds, loop: {is_loop}\n{source}\n{values}")


def check_all(first, count):
  for seed in range(first, first + count):
    check(seed)
