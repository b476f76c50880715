"""What virtual times cost: the same programs with the option time: model and without.

    python tools/bench/time_model.py [--rounds 200] [--devices 8]

One process has two pods, one with virtual times, and its calls go to them in turn: two processes
differ by more than what is measured here, because their memory lies elsewhere.  With `model` a call
has what the running program does for it and, now and then, the replay of what ran so far.
"""

import argparse
import math
import os
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("--rounds", type=int, default=200)
parser.add_argument("--devices", type=int, default=8)
options = parser.parse_args()
os.environ["JAX_PLATFORMS"] = "minipod,timed"
os.environ["MINIPOD_DEVICES"] = str(options.devices)
os.environ["MINIPOD_TIME"] = "off"

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
import numpy as np

from jax._src import xla_bridge
import minipod

xla_bridge.register_plugin("timed", library_path=minipod.library_path(), options={"time": "model"})


def train_step(layers, x):
  def loss(layers):
    y = x
    for layer in layers:
      y = jnp.tanh(y @ layer)
    return (y ** 2).mean()
  return jax.tree.map(lambda layer, slope: layer - 0.1 * slope, layers, jax.grad(loss)(layers))


def cases(devices):
  """(name, calls a round, function, arguments) on these devices."""
  mesh = Mesh(np.array(devices), ("d",), axis_types=(AxisType.Auto,))
  on = lambda array, *axes: jax.device_put(array, NamedSharding(mesh, P(*axes)))
  vector = jax.device_put(np.ones(16, np.float32), devices[0])
  yield "x + 1, 16 elements", 300, jax.jit(lambda x: x + 1), (vector,)
  psum = jax.shard_map(lambda x: lax.psum(x, "d"), mesh=mesh, in_specs=P("d"), out_specs=P("d"))
  rows = on(np.ones((len(devices), 16384), np.float32), "d")
  yield "psum, 64 KiB", 50, jax.jit(psum), (rows,)
  layers = [on(np.full((256, 256), 0.01, np.float32)) for _ in range(4)]
  batch = on(np.ones((16 * len(devices), 256), np.float32), "d")
  yield "training step, 4 layers, data-parallel", 5, jax.jit(train_step), (layers, batch)
  loop = lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.5 + i, x)
  yield "loop of 1000 rounds", 50, jax.jit(loop), (vector,)


def measure(case):
  _, calls, f, arguments = case
  begin = time.perf_counter()
  for _ in range(calls):
    result = f(*arguments)
  jax.block_until_ready(result)
  return (time.perf_counter() - begin) / calls


def main():
  ratios = []
  print(f"medians{'':33}{'off, us':>12}{'model, us':>12}{'ratio':>8}")
  for pair in zip(cases(jax.devices("minipod")), cases(jax.devices("timed"))):
    times = ([], [])
    for number in range(options.rounds + 4):  # the first ones are not counted
      for i in (0, 1) if number % 2 == 0 else (1, 0):
        times[i].append(measure(pair[i]))
    off, model = (sorted(of_one[4:])[options.rounds // 2] for of_one in times)
    ratios.append(model / off)
    print(f"{pair[0][0]:40}{off * 1e6:12.2f}{model * 1e6:12.2f}{model / off:8.3f}")
  print(f"{'geometric mean':64}{math.exp(sum(map(math.log, ratios)) / len(ratios)):8.3f}")


if __name__ == "__main__":
  main()
