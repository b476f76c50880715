"""What a program of the corpus is, and how modules add theirs.

A module says once which class its programs are of, and adds them by name:

    opened, new = of_class("matmul")
    new("matmul_4096", lambda x, y: x @ y, A((4096, 4096)), A((4096, 4096)), shows="product_windows")

Names are permanent: their hash decides which part of the corpus a program belongs to.
"""

import typing
from collections.abc import Callable

import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

BF, F32, F16, I32, I8, I4 = jnp.bfloat16, jnp.float32, jnp.float16, jnp.int32, jnp.int8, jnp.int4
F8, F8W, C64, U32 = jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.complex64, jnp.uint32

PROGRAMS = []


class A:
  """An argument: what it holds is never looked at."""

  def __init__(self, shape, dtype=BF, spec: P | None = None):
    self.shape, self.dtype, self.spec = shape, dtype, spec


class Program(typing.NamedTuple):
  name: str
  cls: str
  build: Callable  # gives the function and its arguments; of sharded programs it takes the mesh
  mesh: dict | None = None  # axes of 16 devices; for GPUs the first one is halved
  donate: tuple = ()
  origin: str = "new"  # or "open": of the list that the model's authors worked with
  shows: str = ""  # what it is there for: rules of sim/chip by file or function, or a habit of compilers


def register(program):
  assert all(program.name != other.name for other in PROGRAMS), f"two programs are called {program.name}"
  PROGRAMS.append(program)


def of_class(cls):
  """Functions that add programs of a class: of the developers' list, and new ones."""
  def adder(origin):
    def add(name, fn, *args, donate=(), shows=""):
      register(Program(name, cls, lambda: (fn, args), None, donate, origin, shows))
    return add
  return adder("open"), adder("new")


def sharded_of_class(cls):
  """The same for programs on 16 devices, as decorators of what builds them."""
  def adder(origin):
    def add(name, mesh, donate=(), shows=""):
      return lambda build: register(Program(name, cls, build, mesh, donate, origin, shows)) or build
    return add
  return adder("open"), adder("new")
