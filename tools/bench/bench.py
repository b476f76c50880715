#!/usr/bin/env python3
"""minipod beside JAX's CPU backend, in the same run: time, memory, threads, and the ratios.

    .venv/bin/python tools/bench/bench.py [CASE…] [--rounds N]

Each case runs in a process of its own per platform and round, the platforms taking turns, so that
a busy machine is unfair to both alike; the best round counts.  The exit code is 1 if a ratio with
a limit is above it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

PLATFORMS = ("minipod", "cpu")


def median_seconds(call, seconds=1.0, least=5):
  """The median duration of a call, over `seconds` but at least `least` calls."""
  call()
  durations = []
  end = time.perf_counter() + seconds
  while len(durations) < least or time.perf_counter() < end:
    start = time.perf_counter()
    call()
    durations.append(time.perf_counter() - start)
  return sorted(durations)[len(durations) // 2]


def psum_1024():
  """psum of one float on each of 1,024 devices."""
  import jax
  import numpy as np
  at_import = peak_megabytes()  # Python with JAX, before any device
  n = len(jax.devices())
  f = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
  value = f(np.ones(n, np.float32))
  assert float(value[0]) == n
  call = lambda: jax.block_until_ready(f(value))
  return {"s per psum": median_seconds(call, seconds=3), "MB in all": peak_megabytes(),
          "MB of the devices": peak_megabytes() - at_import,
          "threads": len(os.listdir("/proc/self/task"))}


def psum_8():
  """psum of 1 MiB on each of 8 devices."""
  import jax
  import numpy as np
  f = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")
  value = f(np.ones((len(jax.devices()), 1 << 18), np.float32))
  return {"s per psum": median_seconds(lambda: jax.block_until_ready(f(value)))}


def dispatch():
  """What one call of an already compiled function costs."""
  import jax
  import numpy as np
  x = jax.numpy.ones(8)
  f = jax.jit(lambda v: v + 1)
  g = jax.pmap(lambda v: v + 1)
  y = g(np.ones((len(jax.devices()), 8), np.float32))
  return {"s per jit call": median_seconds(lambda: f(x).block_until_ready()),
          "s per pmap call": median_seconds(lambda: jax.block_until_ready(g(y)))}


def compiling():
  """What compiling costs, tracing apart: a small function, and a training step."""
  import jax
  import jax.numpy as jnp
  import numpy as np

  def small(x):
    return jnp.sin(x) * 2 + 1

  def loss(weights, x):
    for w in weights:
      x = jnp.tanh(x @ w)
    return jax.nn.logsumexp(x)

  weights = [np.ones((64, 64), np.float32)] * 6
  return {"s small": compile_seconds(small, 1.0),
          "s training step": compile_seconds(jax.grad(loss), weights, np.ones((8, 64), np.float32))}


def compile_seconds(f, *args):
  import jax
  durations = []
  for _ in range(9):
    jax.clear_caches()
    lowered = jax.jit(f).lower(*args)
    start = time.perf_counter()
    lowered.compile()
    durations.append(time.perf_counter() - start)
  return sorted(durations)[len(durations) // 2]


def peak_megabytes():
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# Name: the function, the number of devices, and limits of the ratio minipod / cpu.
CASES = {
    "psum_1024": (psum_1024, 1024, {"s per psum": 0.5, "MB of the devices": 0.5}),
    "psum_8": (psum_8, 8, {}),
    "dispatch": (dispatch, 8, {}),
    "compiling": (compiling, 1, {}),
}


def environment(platform, devices):
  env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
  env["JAX_PLATFORMS"] = platform
  if platform == "minipod":
    env["MINIPOD_DEVICES"] = str(devices)
  else:
    env["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
  return env


def measure(case, platform):
  """The figures of one case on one platform, from a process of its own."""
  out = subprocess.run([sys.executable, __file__, "--child", case], check=True, text=True,
                       stdout=subprocess.PIPE, timeout=600,
                       env=environment(platform, CASES[case][1])).stdout
  return json.loads(out.splitlines()[-1])


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE",
                      help=f"of {', '.join(CASES)}; all by default")
  parser.add_argument("--rounds", type=int, default=2)
  parser.add_argument("--child", help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.child:
    print(json.dumps(CASES[arguments.child][0]()))
    return 0
  too_much = False
  print(f"{'case':12}{'figure':18}{'minipod':>12}{'JAX CPU':>12}{'ratio':>8}  limit")
  for case in arguments.cases or CASES:
    rounds = {platform: [] for platform in PLATFORMS}
    for _ in range(arguments.rounds):
      for platform in PLATFORMS:
        rounds[platform].append(measure(case, platform))
    for figure in rounds["cpu"][0]:
      ours, theirs = (min(r[figure] for r in rounds[platform]) for platform in PLATFORMS)
      limit = CASES[case][2].get(figure)
      bad = limit is not None and ours / theirs > limit
      too_much |= bad
      print(f"{case:12}{figure:18}{ours:12.6g}{theirs:12.6g}{ours / theirs:8.2f}"
            f"  {'' if limit is None else limit}{' TOO MUCH' if bad else ''}", flush=True)
  return 1 if too_much else 0


if __name__ == "__main__":
  sys.exit(main())
