"""Draws random well-typed JAX functions, and compares minipod with JAX's CPU backend on each.

A function is a list of steps.  Each step computes one value from earlier ones, by an expression that is JAX source.  It
has a limit: how far its result may differ from the CPU's *on the same operands*.  So errors never accumulate: minipod
runs the whole function and returns all values, and JAX's CPU backend computes every step separately, from minipod's
values.

Hypothesis draws the functions (`functions`), so a failing one shrinks to a short one.  Its text is a program that runs
unchanged.
"""

import dataclasses

from hypothesis import strategies as st
import jax
from jax import lax
import jax.numpy as jnp
import jax.scipy as jsp
import ml_dtypes
import numpy as np

from differential import on
import random_ops_table as table

NAMES = {"jax": jax, "jnp": jnp, "lax": lax, "jsp": jsp, "np": np}
SHAPES = [(), (1,), (3,), (8,), (33,), (2, 3), (4, 4), (1, 5), (7, 16), (2, 3, 4), (0, 3)]


@dataclasses.dataclass
class Value:
  """An input of the function (no expression) or the result of a step."""
  name: str
  shape: tuple
  dtype: np.dtype
  style: str = ""
  expression: str = ""
  operands: tuple = ()
  limit: table.Limit | None = None

  @property
  def kind(self):
    return table.kind_of(self.dtype)

  def evaluate(self, values):
    """Computes the expression with JAX, from a dict of arrays."""
    return eval(self.expression, {**NAMES, **values})


class Function:
  """Inputs, steps, and the seed of the inputs' contents.  Its repr is a program."""

  def __init__(self, x64: bool, seed: int):
    self.x64 = x64
    self.seed = seed
    self.inputs = []
    self.steps = []

  def __repr__(self):
    lines = [f"# x64={self.x64} seed={self.seed}"]
    lines += [f"# {v.name}: {v.dtype}{list(v.shape)}, contents: {v.style}" for v in self.inputs]
    lines.append(f"def f({', '.join(v.name for v in self.inputs)}):")
    lines += [f"  {v.name} = {v.expression}  # {v.dtype}{list(v.shape)}" for v in self.steps]
    lines.append(f"  return {', '.join(v.name for v in self.steps)}")
    return "\n" + "\n".join(lines)

  def arguments(self):
    """The inputs' contents: NumPy arrays, drawn from the seed."""
    return [table.contents(np.random.default_rng([self.seed, i]), v.dtype, v.shape, v.style)
            for i, v in enumerate(self.inputs)]

  def __call__(self, *arguments):
    values = {v.name: a for v, a in zip(self.inputs, arguments)}
    for step in self.steps:
      values[step.name] = step.evaluate(values)
    return [values[step.name] for step in self.steps]

  def named(self, arguments, results):
    """The arrays by the names of inputs and steps."""
    return {v.name: a for v, a in zip([*self.inputs, *self.steps], [*arguments, *results])}

  def each_step(self, arguments, results):
    """Computes every step from the arguments and the given results of the other steps."""
    values = self.named(arguments, results)
    return [step.evaluate(values) for step in self.steps]

  # ---- Drawing ----

  def add_input(self, draw, kinds, shape=None):
    value = Value(f"a{len(self.inputs)}",
                  draw(st.sampled_from(SHAPES)) if shape is None else tuple(shape),
                  np.dtype(draw(st.sampled_from(table.dtypes(kinds, self.x64)))),
                  draw(st.sampled_from(table.STYLES)))
    self.inputs.append(value)
    return value

  def pick(self, draw, kinds, fits=lambda v: True, shape=None):
    """A value of one of the kinds that `fits` accepts: an existing one, or a new input."""
    there = [v for v in [*self.inputs, *self.steps]
             if v.kind in kinds and fits(v) and (shape is None or v.shape == tuple(shape))]
    choice = draw(st.integers(0, len(there)))
    if choice < len(there):
      return there[len(there) - 1 - choice]  # smaller choices are newer values, so chains are longer
    for _ in range(8):
      value = self.add_input(draw, kinds, shape)
      if fits(value):
        return value
      self.inputs.pop()
    return self.add_input(draw, kinds, shape or (4, 4))

  def add_step(self, expression, operands, limit):
    """Adds the step if JAX accepts its operands; JAX itself determines the type of the result."""
    names = [v.name for v in operands]
    value = Value(f"v{len(self.steps)}", (), np.dtype(np.int32), "",
                  expression.format(*names), tuple(dict.fromkeys(names)), limit)
    given = {v.name: jax.ShapeDtypeStruct(v.shape, v.dtype) for v in operands}
    try:
      result = jax.eval_shape(lambda values: value.evaluate(values), given)
    except (TypeError, ValueError, IndexError, NotImplementedError):
      return  # JAX does not accept the operands
    if not isinstance(result, jax.ShapeDtypeStruct) or np.prod(result.shape) > 4096:
      return
    value.shape, value.dtype = result.shape, np.dtype(result.dtype)
    self.steps.append(value)


@st.composite
def functions(draw, x64: bool, max_steps: int):
  with jax.enable_x64(x64):
    function = Function(x64, draw(st.integers(0, 2**20)))
    for _ in range(draw(st.integers(1, max_steps))):
      draw(st.sampled_from(table.OPERATIONS))(draw, function)
    if not function.steps:
      function.add_step("{0} + {0}", [function.add_input(draw, "i")], table.EXACT)
  return function


# ---- Comparing ----

# Each step is compared by itself, so minipod must not combine them as XLA does (sim/passes/xla/).
AS_WRITTEN = {"xla_disable_hlo_passes": "algsimp"}

def run(function: Function, pod):
  """minipod's results of the function: its arguments and the results of all steps."""
  with jax.enable_x64(function.x64):
    arguments = function.arguments()
    found = on(pod, function, *arguments, options=AS_WRITTEN)
    if function.seed % 4 == 0:  # only of a sample, because most of the time goes into tracing functions
      alone = on(pod, lambda *a: function(*a)[-1:], *arguments, options=AS_WRITTEN)
      same_bits(function.steps[-1], found[-1], alone[0])
  return arguments, found


def check(functions: list[Function], ran: list, cpu) -> int:
  """Compares the results of `run` for functions with one setting of x64 with the CPU backend.

  The CPU backend compiles the steps of all functions as one program, which takes XLA half of the time.  Raises
  AssertionError if the platforms disagree; returns the number of compared steps.
  """
  def each_step(given):
    return [f.each_step(arguments, found) for f, (arguments, found) in zip(functions, given)]

  with jax.enable_x64(functions[0].x64):
    wanted = on(cpu, each_step, ran)
  for function, (arguments, found), right in zip(functions, ran, wanted):
    operands = function.named(arguments, found)
    for step, *both in zip(function.steps, found, right):
      compare(step, [operands[name] for name in step.operands], *both)
  return sum(len(f.steps) for f in functions)


def same_bits(step, found, alone):
  assert found.tobytes() == alone.tobytes(), (
      f"{step.name} = {step.expression} depends on whether the values before it are results:\n"
      f"{found}\n{alone}")


def at_denormals(operands, shape):
  """Where an operand of an elementwise step is denormal.

  XLA's CPU backend treats it as zero, which changes, for example, its ceiling and remainder.
  """
  found = np.zeros(shape, bool)
  for operand in operands:
    if np.shape(operand) in (shape, ()) and table.part_type(operand.dtype).kind in "fV":
      value = table.wide(operand)
      tiny = float(ml_dtypes.finfo(table.part_type(operand.dtype)).tiny)
      for part in (value.real, value.imag):
        found |= (part != 0) & (np.abs(part) < tiny)
  return found


def compare(step, operands, found, wanted):
  assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), step.expression
  if found.dtype.kind in "biu" or found.dtype in (ml_dtypes.int4, ml_dtypes.uint4):
    wrong = found != wanted
    allowed = np.zeros(found.shape)
    if step.expression.startswith("lax.div") and len(step.operands) == 1:
      wrong &= operands[0] != 0  # from JAX 0.11 on, XLA computes x / x as 1, also if x is 0
  else:
    allowed = step.limit.allowed(operands, wanted)
    wrong = table.is_wrong(found, wanted, allowed)
  wrong &= ~at_denormals(operands, np.shape(wrong))
  if not np.any(wrong):
    return
  at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
  pick = lambda a: np.broadcast_to(a, np.shape(wrong) or (1,))[at] if np.shape(wrong) else a
  raise AssertionError(
      f"{step.name} = {step.expression}\n  at {list(at)}: minipod {pick(found)!r}, CPU"
      f" {pick(wanted)!r}, allowed difference {pick(allowed)!r}; {np.count_nonzero(wrong)} of"
      f" {np.size(wrong)} differ\n  operands: {operands}")
