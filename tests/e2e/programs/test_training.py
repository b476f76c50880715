"""Data-parallel training with pmap and shard_map equals training on JAX's CPU backend."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
import numpy as np
import pytest

DEVICES, ROWS, STEPS = 8, 4, 12


def initial():
  generator = np.random.default_rng(0)
  sizes = [6, 16, 16, 1]
  return [(generator.standard_normal((a, b)).astype(np.float32) / np.sqrt(a),
           np.zeros(b, np.float32)) for a, b in zip(sizes, sizes[1:])]


def batch(step):
  generator = np.random.default_rng(100 + step)
  x = generator.standard_normal((DEVICES * ROWS, 6)).astype(np.float32)
  return x, np.sin(x.sum(1, keepdims=True))


def loss(parameters, x, y):
  for i, (w, b) in enumerate(parameters):
    x = x @ w + b
    if i + 1 < len(parameters):
      x = jnp.tanh(x)
  return ((x - y) ** 2).mean()


def update(parameters, gradients):
  return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def on_cpu():
  with jax.default_device(jax.devices("cpu")[0]):
    step = jax.jit(lambda p, x, y: (lambda l, g: (l, update(p, g)))(*jax.value_and_grad(loss)(p, x, y)))
    parameters, losses = initial(), []
    for i in range(STEPS):
      value, parameters = step(parameters, *batch(i))
      losses.append(float(value))
  return losses, jax.tree.map(np.asarray, parameters)


def with_pmap():
  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return lax.pmean(value, "i"), update(parameters, lax.pmean(gradients, "i"))

  step = jax.pmap(step, axis_name="i", donate_argnums=0)
  parameters = jax.device_put_replicated(initial(), jax.devices()) if hasattr(
      jax, "device_put_replicated") else jax.tree.map(
          lambda v: np.broadcast_to(v, (DEVICES, *v.shape)), initial())
  losses = []
  for i in range(STEPS):
    value, parameters = step(parameters, *(a.reshape(DEVICES, ROWS, -1) for a in batch(i)))
    losses.append(float(value[0]))
  for leaf in jax.tree.leaves(parameters):
    assert all((np.asarray(leaf[0]) == np.asarray(leaf[d])).all() for d in range(DEVICES))
  return losses, jax.tree.map(lambda v: np.asarray(v[0]), parameters)


def with_shard_map():
  mesh = Mesh(np.array(jax.devices()), ("i",))

  def step(parameters, x, y):
    def mean_loss(p):
      return lax.pmean(loss(p, x, y), "i")
    value, gradients = jax.value_and_grad(mean_loss)(parameters)
    return value, update(parameters, gradients)

  step = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P()),
                 donate_argnums=0)
  parameters, losses = initial(), []
  for i in range(STEPS):
    value, parameters = step(parameters, *batch(i))
    losses.append(float(value))
  return losses, jax.tree.map(np.asarray, parameters)


@pytest.mark.parametrize("train", [with_pmap, with_shard_map])
def test_training(train):
  wanted_losses, wanted = on_cpu()
  losses, parameters = train()
  assert wanted_losses[-1] < wanted_losses[0]
  np.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
  for found, expected in zip(jax.tree.leaves(parameters), jax.tree.leaves(wanted)):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
