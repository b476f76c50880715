"""The cost of a call in addition to its work: small programs, many arguments, many devices, transfers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from cases.case import Case, Work, jitted, scalar, uniform

MANY = 100


def add_one(x):
  return x + 1


def asynchronous():
  f, x = jax.jit(add_one), jnp.ones(8)

  def call():
    y = x
    for _ in range(MANY):
      y = f(y)
    y.block_until_ready()
  return Work(call, per=MANY)


def many_arguments():
  f = jax.jit(lambda xs: [x + 1 for x in xs])
  xs = [jnp.ones(8) for _ in range(MANY)]
  return Work(lambda: jax.block_until_ready(f(xs)))


def sharded():
  mesh = Mesh(jax.devices()[:8], ("d",))
  f = jax.jit(add_one)
  x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("d")))
  return Work(lambda: jax.block_until_ready(f(x)))


def mapped():
  f = jax.pmap(add_one)
  x = f(np.ones((8, 8), np.float32))
  return Work(lambda: jax.block_until_ready(f(x)))


def eager():
  x, i = jnp.ones((16, 16)), jnp.arange(16)
  return Work(lambda: jax.block_until_ready([x + 1, jnp.exp(x), x @ x, x.sum(0), x[i], x.T]))


def to_device(size):
  def build():
    values = np.ones(size // 4, np.float32)
    return Work(lambda: jax.device_put(values).block_until_ready())
  return build


def to_host(size):
  """Makes a fresh array each time, because an array that was copied before keeps its copy."""
  def build():
    f, x = jax.jit(add_one), jnp.ones(size // 4)
    return Work(lambda: np.array(f(x)))
  return build


def to_neighbour(size):
  def build():
    x = jnp.ones(size // 4)
    return Work(lambda: jax.device_put(x, jax.devices()[1]).block_until_ready())
  return build


CASES = [
    jitted("jit_scalar", add_one, scalar(1)),
    jitted("jit_8", add_one, uniform(8)),
    Case("jit_asynchronous_8", asynchronous),
    Case("jit_100_arguments", many_arguments),
    Case("eager", eager),
    Case("sharded_8_devices", sharded, devices=8),
    Case("pmap_8_devices", mapped, devices=8),
    Case("to_device_4KiB", to_device(1 << 12)),
    Case("to_device_4MiB", to_device(1 << 22)),
    Case("to_host_4KiB", to_host(1 << 12)),
    Case("to_host_4MiB", to_host(1 << 22)),
    Case("to_neighbour_4MiB", to_neighbour(1 << 22), devices=8),
]
