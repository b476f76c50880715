"""What tools/demo shows in JAX: devices, the first programs one types, data-parallel training by pmap and by shard_map
compared with JAX's CPU backend, and a transformer that annotations split over a mesh of two axes.

The two models are those of tests/e2e/scripts.  Run with MINIPOD_DEVICES=8.
"""

import collections
import os
import pathlib
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "minipod,cpu")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/e2e/scripts"))

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec as P
import numpy as np

import common
import train_mlp
import train_transformer

STEPS = 30
LOSS_TOLERANCE, PARAMETER_TOLERANCE = 1e-5, 1e-4
COLLECTIVES = "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"


def show_devices():
  print(f"jax.devices() on platform {jax.default_backend()}:")
  for device in jax.devices():
    print(f"  {device}  coords={device.coords} core_on_chip={device.core_on_chip}"
          f" slice_index={device.slice_index} host_index={device.host_index}"
          f" process_index={device.process_index} kind={device.device_kind!r}")


def first_programs() -> bool:
  """Whether all give what they must."""
  psum = jax.pmap(lambda x: x + lax.psum(x, "i"), axis_name="i", devices=jax.devices()[:4])
  with jax.disable_jit():
    power = jnp.power(jnp.array([1., 2., 3.]), 2.)
  programs = [
      ("jnp.add(1, 1)", jnp.add(1, 1), "2"),
      ("jit(lambda x: x*2)(1.)", jax.jit(lambda x: x * 2)(1.), "2.0"),
      ("pmap(lambda x: x + psum(x, 'i'), axis_name='i')(arange(4))", psum(jnp.arange(4)), "[6 7 8 9]"),
      ("jnp.power([1., 2., 3.], 2.), op by op", power, "[1. 4. 9.]"),
      ("len(jax.devices()) >= 4, all named minipod",
       len(jax.devices()) >= 4 and {d.platform for d in jax.devices()} == {"minipod"}, "True")]
  print("first programs:")
  for text, result, wanted in programs:
    print(f"  {text} -> {result}{'' if str(result) == wanted else f'  WRONG, expected {wanted}'}")
  return all(str(result) == wanted for _, result, wanted in programs)


def largest_difference(losses, wanted) -> float:
  return max(abs(a - b) / abs(b) for a, b in zip(losses, wanted, strict=True))


def losses_of(start, mean=lambda x: x, parts=None) -> list[float]:
  """Of the training whose step `start` makes of a function; `mean` is over devices, `parts` how many a batch is split in."""
  def step(parameters, x, y):
    value, gradients = jax.value_and_grad(lambda p: mean(train_mlp.loss(p, x, y)))(parameters)
    return value, jax.tree.map(lambda p, g: p - 0.1 * mean(g), parameters, gradients)

  parameters, losses, run = train_mlp.initial(), [], start(step)
  if parts:
    parameters = jax.tree.map(lambda v: np.broadcast_to(v, (parts, *v.shape)), parameters)
  for i in range(STEPS):
    value, parameters = run(parameters, *(a.reshape(parts, -1, a.shape[1]) if parts else a for a in train_mlp.batch(i)))
    losses.append(float(np.ravel(value)[0]))
  return losses


def data_parallel() -> bool:
  """Trains three times and compares the losses step by step: with pmap each device has its copy of the parameters and its
  rows, with shard_map one program has the rows of a mesh."""
  devices, mesh = len(jax.devices()), Mesh(np.array(jax.devices()), ("i",))
  mean = lambda x: lax.pmean(x, "i")
  with jax.default_device(jax.devices("cpu")[0]):
    wanted = losses_of(jax.jit)
  found = {"pmap": losses_of(lambda step: jax.pmap(step, axis_name="i", donate_argnums=0), mean, devices),
           "shard_map": losses_of(lambda step: jax.jit(jax.shard_map(
               step, mesh=mesh, in_specs=(P(), P("i"), P("i")), out_specs=P()), donate_argnums=0), mean)}
  print(f"training, {STEPS} steps, {devices} devices, {train_mlp.ROWS} rows:")
  print(f"  {'':28}{'first loss':>12}{'last loss':>12}{'largest relative difference':>30}")
  print(f"  {'JAX CPU, one device':28}{wanted[0]:12.7f}{wanted[-1]:12.7f}")
  for name, losses in found.items():
    print(f"  {f'minipod, {name}':28}{losses[0]:12.7f}{losses[-1]:12.7f}{largest_difference(losses, wanted):30.1e}")
  return all(largest_difference(losses, wanted) <= LOSS_TOLERANCE for losses in found.values())


def by_annotations() -> bool:
  """Whether the transformer trains as on one device: fully sharded data parallel times tensor parallel."""
  losses, sharded, mesh = train_transformer.train(jax.devices())
  wanted, single, one = train_transformer.train(jax.devices()[:1])
  loss = largest_difference(losses, wanted)
  pairs = zip(*(jax.tree.leaves(common.replicate(*each)) for each in ((sharded, mesh), (single, one))), strict=True)
  parameters = max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs)
  shape = " x ".join(f"{size} ({name})" for name, size in mesh.shape.items())
  print(f"a transformer on a mesh of {shape}, {len(losses)} steps:")
  print(f"  loss {losses[0]:.7f} -> {losses[-1]:.7f}, on one device {wanted[0]:.7f} -> {wanted[-1]:.7f}")
  print(f"  largest relative difference: loss {loss:.1e}, parameters {parameters:.1e}")
  text = train_transformer.compiled(jax.devices()).as_text()
  found = collections.Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})\(", text))
  print("  collectives in the program of a device: " + ", ".join(f"{found[kind]} {kind}" for kind in COLLECTIVES if found[kind]))
  common.report(losses, sharded, mesh)
  return loss <= LOSS_TOLERANCE and parameters <= PARAMETER_TOLERANCE


def main() -> int:
  show_devices()
  right = [part() for part in (first_programs, data_parallel, by_annotations)]
  print("all as expected" if all(right) else "NOT as expected")
  return 0 if all(right) else 1


if __name__ == "__main__":
  sys.exit(main())
