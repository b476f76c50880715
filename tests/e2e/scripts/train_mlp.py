"""Trains a small network with its batch sharded over all devices: run it with any number of processes."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import common

ROWS, FEATURES, WIDTH, STEPS = 64, 8, 32, 20


def initial():
  generator = np.random.default_rng(0)
  sizes = [FEATURES, WIDTH, WIDTH, 1]
  return [{"w": generator.standard_normal((a, b)).astype(np.float32) / np.sqrt(a),
           "b": np.zeros(b, np.float32)} for a, b in zip(sizes, sizes[1:])]


def batch(step):
  generator = np.random.default_rng(1000 + step)
  x = generator.standard_normal((ROWS, FEATURES)).astype(np.float32)
  return x, np.sin(x.sum(1, keepdims=True)).astype(np.float32)


def loss(parameters, x, y):
  *hidden, last = parameters
  for layer in hidden:
    x = jnp.tanh(x @ layer["w"] + layer["b"])
  return ((x @ last["w"] + last["b"] - y) ** 2).mean()


def train(devices, steps=STEPS):
  """The losses, the trained parameters and the mesh."""
  mesh = Mesh(np.array(devices), ("data",))
  rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

  @functools.partial(jax.jit, donate_argnums=0, out_shardings=(whole, whole))
  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), value

  parameters = jax.tree.map(lambda v: common.place(v, whole), initial())
  losses = []
  for i in range(steps):
    x, y = batch(i)
    parameters, value = step(parameters, common.place(x, rows), common.place(y, rows))
    losses.append(value.addressable_shards[0].data)
  return [float(v) for v in losses], parameters, mesh


if __name__ == "__main__":
  common.report(*train(jax.devices(), int(sys.argv[1]) if len(sys.argv) > 1 else STEPS))
