"""Defines a case, and the usual ways to build one.

The process that reads the lists of cases never opens a device, so nothing here makes an array before `build` is
called.  Arguments are functions that make arrays (`uniform(8, 8)` is one).
"""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Work:
  """What a case measures: its call, or, if it has `lower`, its compilation."""
  call: Callable | None = None  # returns when the results are available
  compiled: jax.stages.Compiled | None = None  # returns the bytes of its temporaries
  lower: Callable | None = None  # traces, and returns what is to be compiled
  per: int = 1  # number of counted units that one call does
  resident: bool = False  # the memory of the case is what devices and call add to the process


@dataclasses.dataclass(frozen=True)
class Case:
  name: str
  build: Callable[[], Work]
  devices: int = 1  # the pod; cases of different pods run in different processes
  x64: bool = False
  limits: dict = dataclasses.field(default_factory=dict)  # largest allowed ratio, by measured quantity
  has_share: bool = True  # whether one of the machine's limits (limits.py) bounds it by bytes or operations


# ---- Arguments ----

def uniform(*shape, dtype=np.float32, low=0.1, high=1.1):
  """Numbers between two bounds, a different one in each position."""
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
  """A call that donates its first argument, whose memory the result takes."""
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
  """Compiles a function; tracing does not count."""
  def build():
    values = [argument() for argument in arguments]
    return Work(lower=lambda: jax.jit(function).lower(*values))
  return Case(name, build, **options)


def temporaries(name, function, *arguments, **options):
  """Measures a function's temporaries; the function is compiled but not run."""
  def build():
    shapes = [jax.eval_shape(argument) for argument in arguments]
    return Work(compiled=jax.jit(function).lower(*shapes).compile())
  return Case(name, build, **options)


def gradient(function):
  """The gradient of the sum of a function's result, with respect to its first argument."""
  return jax.grad(lambda *arguments: function(*arguments).sum())


def power_of_ten(n):
  return f"1e{round(math.log10(n))}"
