"""What a case is, and the usual ways to build one.

The lists of cases are read by a process that never opens a device, so nothing here makes an array
before `build` is called: arguments are given as functions (`uniform(8, 8)` is one).
"""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Work:
  """What a case measures: its call, or its compiling when it has `lower`."""
  call: Callable | None = None  # comes back when the results are there
  compiled: jax.stages.Compiled | None = None  # tells the bytes of its temporaries
  lower: Callable | None = None  # traces, and gives what is to be compiled
  per: int = 1  # one call does this many of what is counted
  resident: bool = False  # the bytes of the case are what devices and call add to the process


@dataclasses.dataclass(frozen=True)
class Case:
  name: str
  build: Callable[[], Work]
  devices: int = 1  # of the pod; cases of different pods run in different processes
  x64: bool = False
  limits: dict = dataclasses.field(default_factory=dict)  # of the ratios, by figure
  has_share: bool = True  # of the machine's limits (limits.py): its bytes or operations bound it


# ---- Arguments ----

def uniform(*shape, dtype=np.float32, low=0.1, high=1.1):
  """Numbers between two, in every position another."""
  def make():
    values = np.random.default_rng(7).random(shape, np.float32) * (high - low) + low
    return jnp.asarray(values, dtype)
  return make


def normal(*shape, dtype=np.float32, scale=1.0):
  return lambda: jnp.asarray(
      np.random.default_rng(11).standard_normal(shape, np.float32) * scale, dtype)


def integers(high, *shape, dtype=np.int32):
  return lambda: jnp.asarray(np.random.default_rng(13).integers(0, high, shape), dtype)


def positive_definite(n, dtype=np.float32):
  def make():
    values = np.random.default_rng(17).standard_normal((n, n))
    return jnp.asarray(values @ values.T / n + np.eye(n), dtype)
  return make


def scalar(value, dtype=np.float32):
  return lambda: jnp.asarray(value, dtype)


def key():
  return jax.random.key(0)


# ---- Cases ----

def jitted(name, function, *arguments, per=1, **options):
  """A call of a jitted function."""
  def build():
    f = jax.jit(function)
    values = [argument() for argument in arguments]
    compiled = f.lower(*values).compile()
    return Work(lambda: jax.block_until_ready(f(*values)), compiled, per=per)
  return Case(name, build, **options)


def stepped(name, function, state, *arguments, **options):
  """A call whose result takes the place of its first argument, which is donated."""
  def build():
    f = jax.jit(function, donate_argnums=0)
    values = [argument() for argument in arguments]
    held = state()
    compiled = f.lower(held, *values).compile()

    def call():
      nonlocal held
      held = jax.block_until_ready(f(held, *values))
    return Work(call, compiled)
  return Case(name, build, **options)


def compiling(name, function, *arguments, **options):
  """Compiling a function, without its tracing."""
  def build():
    values = [argument() for argument in arguments]
    return Work(lower=lambda: jax.jit(function).lower(*values))
  return Case(name, build, **options)


def temporaries(name, function, *arguments, **options):
  """What a function's temporaries take; it is compiled and not run."""
  def build():
    shapes = [jax.eval_shape(argument) for argument in arguments]
    return Work(compiled=jax.jit(function).lower(*shapes).compile())
  return Case(name, build, **options)


def gradient(function):
  """The gradient of the sum of a function's result, by its first argument."""
  return jax.grad(lambda *arguments: function(*arguments).sum())


def power_of_ten(n):
  return f"1e{round(math.log10(n))}"
