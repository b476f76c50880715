"""What virtual times cost: the same programs with MINIPOD_TIME=model and without, side by side.

    python tools/bench/time_model.py [--rounds 5] [--devices 8]

The two take turns, a process each; a case's time is its least, over all rounds.  With `model` it has
what the running programs do for it and the replay, which is done when the log is read at the end of
each repetition.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

REPEAT = 7


def cases():
  import jax
  import jax.numpy as jnp
  from jax import lax
  from jax.sharding import NamedSharding, PartitionSpec as P

  devices = jax.device_count()
  scalar = jnp.ones(16)
  yield "x + 1, 16 elements", 3000, jax.jit(lambda x: x + 1), (scalar,)
  sums = jax.pmap(lambda x: lax.psum(x, "i"), "i")
  yield "pmap psum, 64 KiB", 200, sums, (jax.block_until_ready(sums(jnp.ones((devices, 16384)))),)
  mesh = jax.make_mesh((devices,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))

  def step(layers, x):
    def loss(layers):
      y = x
      for layer in layers:
        y = jnp.tanh(y @ layer)
      return (y ** 2).mean()
    return jax.tree.map(lambda layer, slope: layer - 0.1 * slope, layers, jax.grad(loss)(layers))

  layers = jax.device_put([jnp.ones((256, 256)) * 0.01] * 4, NamedSharding(mesh, P()))
  batch = jax.device_put(jnp.ones((16 * devices, 256)), NamedSharding(mesh, P("d")))
  yield "training step, 4 layers, data-parallel", 30, jax.jit(step), (layers, batch)
  loop = jax.jit(lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.5 + i, x))
  yield "loop of 1000 rounds", 50, loop, (scalar,)


def measure():
  import jax
  import minipod

  has_model = os.environ["MINIPOD_TIME"] == "model"
  least = {}
  for name, calls, f, arguments in cases():
    times = []
    for _ in range(REPEAT):
      start = time.perf_counter()
      for _ in range(calls):
        result = f(*arguments)
      jax.block_until_ready(result)
      if has_model:
        minipod.virtual_time()
      times.append((time.perf_counter() - start) / calls)
    least[name] = min(times)
  print(json.dumps(least))


def run(time_option, devices):
  environment = dict(os.environ, JAX_PLATFORMS="minipod", MINIPOD_TIME=time_option,
                     MINIPOD_DEVICES=str(devices))
  done = subprocess.run([sys.executable, __file__, "--measure"], env=environment, check=True,
                        capture_output=True, text=True)
  return json.loads(done.stdout.splitlines()[-1])


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--devices", type=int, default=8)
  parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.measure:
    measure()
    return
  least = {"off": {}, "model": {}}
  for number in range(options.rounds):
    # Whoever comes second may find a warmer processor.
    for option in list(least)[::1 if number % 2 == 0 else -1]:
      known = least[option]
      for name, seconds in run(option, options.devices).items():
        known[name] = min(known.get(name, math.inf), seconds)
  print(f"{'':40}{'off, us':>12}{'model, us':>12}{'ratio':>8}")
  ratios = []
  for name, off in least["off"].items():
    on = least["model"][name]
    ratios.append(on / off)
    print(f"{name:40}{off * 1e6:12.2f}{on * 1e6:12.2f}{on / off:8.3f}")
  mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
  print(f"{'geometric mean':64}{mean:8.3f}")


if __name__ == "__main__":
  main()
