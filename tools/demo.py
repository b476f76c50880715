"""What tools/demo shows in JAX: devices, the seed programs, and training in three ways.

What is split by annotations is in demo_sharded.py."""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "minipod,cpu")

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P
import numpy as np

STEPS, ROWS, FEATURES, WIDTH = 30, 16, 8, 32
TOLERANCE = 1e-5


def show_devices():
  print(f"jax.devices() on platform {jax.default_backend()}:")
  for device in jax.devices():
    print(f"  {device}  coords={device.coords} core_on_chip={device.core_on_chip}"
          f" slice_index={device.slice_index} host_index={device.host_index}"
          f" process_index={device.process_index} kind={device.device_kind!r}")


def seed_programs() -> bool:
  """The first programs anyone types; true if all give what they must."""
  four = jax.devices()[:4]
  psum = jax.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i", devices=four)
  with jax.disable_jit():
    power = jnp.power(jnp.array([1., 2., 3.]), 2.)
  programs = [
      ("jnp.add(1, 1)", jnp.add(1, 1), "2"),
      ("jit(lambda x: x*2)(1.)", jax.jit(lambda x: x * 2)(1.), "2.0"),
      ("pmap(lambda x: x + psum(x, 'i'), axis_name='i')(arange(4))", psum(jnp.arange(4)),
       "[6 7 8 9]"),
      ("jnp.power([1., 2., 3.], 2.), op by op", power, "[1. 4. 9.]"),
      ("len(jax.devices()) >= 4, all named minipod",
       len(jax.devices()) >= 4 and {d.platform for d in jax.devices()} == {"minipod"}, "True")]
  right = True
  for text, result, wanted in programs:
    right &= str(result) == wanted
    print(f"  {text} -> {result}{'' if str(result) == wanted else f'  WRONG, expected {wanted}'}")
  return right


def initial():
  generator = np.random.default_rng(0)
  sizes = [FEATURES, WIDTH, WIDTH, 1]
  return [(generator.standard_normal((a, b)).astype(np.float32) / np.sqrt(a),
           np.zeros(b, np.float32)) for a, b in zip(sizes, sizes[1:])]


def batch(step, devices):
  generator = np.random.default_rng(1000 + step)
  x = generator.standard_normal((devices * ROWS, FEATURES)).astype(np.float32)
  return x, np.sin(x.sum(1, keepdims=True)).astype(np.float32)


def loss(parameters, x, y):
  *hidden, (w, b) = parameters
  for weights, bias in hidden:
    x = jnp.tanh(x @ weights + bias)
  return ((x @ w + b - y) ** 2).mean()


def update(parameters, gradients):
  return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)


def train_on_cpu(devices):
  """The losses of the same training on one device of JAX's CPU backend."""
  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return value, update(parameters, gradients)

  with jax.default_device(jax.devices("cpu")[0]):
    return _losses(jax.jit(step), initial(), lambda i: batch(i, devices))


def train_with_pmap(devices):
  """Each device has its copy of the parameters and its rows; gradients are averaged."""
  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(loss)(parameters, x, y)
    return lax.pmean(value, "i"), update(parameters, lax.pmean(gradients, "i"))

  copies = jax.tree.map(lambda v: np.broadcast_to(v, (devices, *v.shape)), initial())
  return _losses(jax.pmap(step, axis_name="i", donate_argnums=0), copies,
                 lambda i: [a.reshape(devices, ROWS, -1) for a in batch(i, devices)])


def train_with_shard_map(devices):
  """One program over a mesh: rows sharded, parameters replicated."""
  mesh = Mesh(np.array(jax.devices()), ("i",))

  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(
        lambda p: lax.pmean(loss(p, x, y), "i"))(parameters)
    return value, update(parameters, gradients)

  mapped = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P()),
                   donate_argnums=0)
  return _losses(mapped, initial(), lambda i: batch(i, devices))


def _losses(step, parameters, batch_of):
  losses = []
  for i in range(STEPS):
    value, parameters = step(parameters, *batch_of(i))
    losses.append(float(np.ravel(value)[0]))
  return losses


def training() -> bool:
  """Trains three times and compares the losses step by step."""
  devices = len(jax.devices())
  wanted = train_on_cpu(devices)
  print(f"training, {STEPS} steps, {devices} devices x {ROWS} rows:")
  print(f"  {'':28}{'first loss':>12}{'last loss':>12}{'largest relative difference':>30}")
  print(f"  {'JAX CPU, one device':28}{wanted[0]:12.7f}{wanted[-1]:12.7f}")
  right = True
  for name, train in ("minipod, pmap", train_with_pmap), ("minipod, shard_map",
                                                          train_with_shard_map):
    losses = train(devices)
    difference = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))
    right &= difference <= TOLERANCE
    print(f"  {name:28}{losses[0]:12.7f}{losses[-1]:12.7f}{difference:30.1e}"
          f"{'' if difference <= TOLERANCE else '  TOO LARGE'}")
  return right


def main() -> int:
  show_devices()
  print("seed programs:")
  right = seed_programs()
  right &= training()
  print("all as expected" if right else "NOT as expected")
  return 0 if right else 1


if __name__ == "__main__":
  sys.exit(main())
