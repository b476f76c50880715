#!/usr/bin/env python3
"""Runs random collectives between processes that are stopped now and then, and checks each element.

    tools/reliability/collectives.py --count 1000000 --seed 1 [--transport shm,ucx,mpi] [--processes 4]

Programs of many collectives run repeatedly on a pod with two devices per process.  The seed chooses kind, group, size
and type of each collective.  The contents of a device are a function of its number and of the launch.  So each device
knows by itself what every collective must return, and counts the elements that differ.  All values are small whole
numbers, so sums are exact in any order.  Meanwhile each process sleeps between launches at random, and this script
stops one process after the other for up to 50 ms, at any point of its work.

`shm`: one host, joined by jax.distributed.initialize(). `ucx`: the same on two simulated hosts. `mpi`: these under mpirun.
"""

import argparse
import math
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from job import Job, join

DEVICES = 2  # per process
WIDTH = 100  # collectives of a program
LAUNCHES = 500  # per program
KINDS = ["psum", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute"]
TYPES = ["float32", "bfloat16", "float16", "float64", "int32", "int8", "uint8", "int64", "complex64"]
SIZES = [1, 1, 3, 16, 16, 128, 1000, 4096]  # elements for each device of the group
LARGE, LARGE_SHARE = 50_000, 0.02  # one of this many has more elements, for several messages or stripes
SUBSETS = [(2, 2, 2), (4, 2), (2, 4), (8,)]  # the shapes of meshes for 8 devices


# ---- a process of the job ----


def held(number, launch, size, dtype):
  """The contents of device `number`: whole numbers below 31."""
  import jax.numpy as jnp

  values = (jnp.arange(size, dtype=jnp.int32) * 7 + number * 13 + launch * 5) % 31
  return values.astype(dtype)


def collective(kind, axes, source, x):
  """The collective, as JAX's users write it."""
  from jax import lax

  if kind == "ppermute":
    return lax.ppermute(x, axes, [(s, d) for d, s in enumerate(source) if s is not None])
  if kind == "all_gather":
    return lax.all_gather(x, axes, tiled=True)
  if kind == "psum_scatter":
    return lax.psum_scatter(x, axes, tiled=True)
  if kind == "all_to_all":
    return lax.all_to_all(x, axes, 0, 0, tiled=True)
  return getattr(lax, kind)(x, axes)


def wanted(kind, source, mine, of):
  """The expected contents of device `mine` of its group afterwards; of(i) is the input of the group's device i."""
  import jax.numpy as jnp

  group = len(source)
  if kind == "ppermute":
    parts = [of(0) * 0 if s is None else of(s) for s in source]
    return jnp.stack(parts)[mine]
  everything = jnp.stack([of(i) for i in range(group)])
  if kind == "all_gather":
    return everything.reshape(-1)
  if kind in ("pmax", "pmin"):
    return everything.max(0) if kind == "pmax" else everything.min(0)
  pieces = everything.reshape(group, group, -1)
  if kind == "all_to_all":
    return pieces[:, mine].reshape(-1)
  total = everything[0]
  for part in everything[1:]:
    total = total + part
  return total if kind == "psum" else total.reshape(group, -1)[mine]


def make_program(dice, devices):
  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax.sharding import PartitionSpec as P

  shape = dice.choice([shape for shape in SUBSETS if math.prod(shape) == len(devices)] or [(len(devices),)])
  names = tuple("abc"[: len(shape)])
  mesh = jax.sharding.Mesh(np.array(devices).reshape(shape), names)
  extents = dict(zip(names, shape))
  choices = []
  for _ in range(WIDTH):
    axes = tuple(sorted(dice.sample(names, dice.randint(1, len(names)))))
    group = math.prod(extents[axis] for axis in axes)
    source = [s if dice.random() < 0.8 else None for s in dice.sample(range(group), group)]
    kind, dtype = dice.choice(KINDS), dice.choice(TYPES)
    if kind in ("pmax", "pmin") and dtype == "complex64":
      dtype = "float32"
    size = LARGE if dice.random() < LARGE_SHARE else dice.choice(SIZES)
    choices.append((kind, axes, source, size * group, dtype))

  def number_of(place):
    number = 0
    for axis in names:
      number = number * extents[axis] + place[axis]
    return number

  def check(launch):
    here = {axis: jax.lax.axis_index(axis) for axis in names}
    wrong = []
    for kind, axes, source, size, dtype in choices:
      def of(i, axes=axes, size=size, dtype=dtype):
        place = here | dict(zip(axes, np.unravel_index(i, [extents[axis] for axis in axes])))
        return held(number_of(place), launch, size, dtype)

      got = collective(kind, axes, source, held(number_of(here), launch, size, dtype))
      wrong.append(jnp.sum(got != wanted(kind, source, jax.lax.axis_index(axes), of), dtype=jnp.int32))
    return jnp.stack(wrong).reshape((1,) * len(names) + (WIDTH,))

  whole = jax.shard_map(check, mesh=mesh, in_specs=P(), out_specs=P(*names), check_vma=False)
  return jax.jit(whole), choices


def member(count, seed, folder):
  rank = join()
  import jax
  import numpy as np

  jax.config.update("jax_enable_x64", True)
  own, shared = random.Random(f"{seed}/{rank}"), random.Random(seed)
  done = 0
  while done < count:
    program, choices = make_program(shared, jax.devices())
    for launch in range(min(LAUNCHES, -(-(count - done) // WIDTH))):
      if own.random() < 0.2:
        time.sleep(own.random() * 0.002)
      for shard in program(np.int32(launch)).addressable_shards:
        bad = np.flatnonzero(np.asarray(shard.data))
        if bad.size:
          text = f"after {done} collectives, launch {launch}, device {shard.device.id}: wrong: {[choices[i] for i in bad]}"
          (folder / f"{rank}.wrong").write_text(text)
          os._exit(1)
      done += WIDTH
    if rank == 0:
      (folder / "done").write_text(str(done))
  (folder / f"{rank}.right").write_text(str(done))


# ---- the job ----


def disturb(job, dice):
  """Stops one of the processes for a moment; whether there is one."""
  pids = sorted(pid for pid in job.pids().values() if pid)
  time.sleep(dice.random() * 0.2)
  if pids:
    pid = dice.choice(pids)
    try:
      os.kill(pid, signal.SIGSTOP)
      time.sleep(dice.random() * 0.05)
      os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
      pass
  return bool(pids)


def run(transport, options):
  """A row of the table, and whether everything was right."""
  with tempfile.TemporaryDirectory(prefix="mp") as name:
    folder, begin, stops = pathlib.Path(name), time.time(), 0
    member_command = [sys.executable, __file__, "--member", "--count", str(options.count), "--seed", str(options.seed), "--folder", name]
    job = Job(transport.replace("mpi", "mpi-hosts"), options.processes, member_command, folder, MINIPOD_DEVICES=str(DEVICES))
    dice = random.Random(options.seed)
    while job.runs() and time.time() - begin < options.limit:
      stops += disturb(job, dice)
    hangs = job.wait_for_end(0)
    if refusal := job.refusal():
      return f"{refusal} | | |", True
    wrong = [*hangs, *job.said("wrong").values()]
    is_right = not wrong and len(job.said("right")) == options.processes and not any(each.returncode for each in job.processes)
    done = (folder / "done").read_text() if (folder / "done").exists() else "0"
    said = "all right" if is_right else f"**{wrong or job.errors()}**"
    return f"{int(done):,} | {stops:,} | {time.time() - begin:.0f} s | {said} |", is_right


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--count", type=int, default=10000, help="collectives, on each transport")
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--transport", default="shm,ucx,mpi")
  parser.add_argument("--processes", type=int, default=4)
  parser.add_argument("--limit", type=float, default=7200, help="seconds for a transport")
  parser.add_argument("--member", action="store_true", help=argparse.SUPPRESS)
  parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
  options = parser.parse_args()
  if options.member:
    return member(options.count, options.seed, options.folder)
  print("| transport | collectives | stops | time | |\n|---|---|---|---|---|")
  are_right = []
  for transport in options.transport.split(","):
    row, is_right = run(transport, options)
    are_right.append(is_right)
    print(f"| {transport} | {row}", flush=True)
  sys.exit(not all(are_right))


if __name__ == "__main__":
  main()
