"""psum between two processes, one on each of two simulated hosts: by UCX, by MPI, and JAX's CPU by gloo; and MPI_Allreduce.

    python tools/bench/psum_hosts.py [--rounds N] [--turns N] [--own-cores] [--hosts 1]

Needs root (tests/mpi/two_hosts.sh) and, for MPI, mpirun and mpi4py.  Every process has one device; what is timed is a call of a
jitted psum until its result is there, and mpi4py's Allreduce.  With `--hosts 1` both processes are on one host, and minipod's
data goes by shared memory.

A machine is fast or slow for seconds at a time: a copy of 1 MiB by the kernel from one core to another takes 30 us or 300, depending on
which cores a virtual machine has got and on what others leave of the caches.  So all ways are started at once and take turns of some 50 ms,
one at a time while the others sleep, and each turn is put beside MPI_Allreduce's turn of the same few calls.  A round is a start of its own.
Each row has the median over the turns, the best turn, and the median over the turns of the multiple of MPI_Allreduce.
"""

import argparse
import contextlib
import os
import pathlib
import select
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests" / "mpi" / "two_hosts.sh"
POD = {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "1"}
GLOO = {"JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
RANKS = 2
BASE = "MPI_Allreduce"
# By the number of hosts and name: options of two_hosts.sh, and variables.
OTHERS = {"gloo": (["--plain"], GLOO), BASE: ([], {})}
WAYS = {1: {"shared memory": (["--plain"], POD), **OTHERS}, 2: {"UCX": (["--plain"], POD), "MPI": ([], POD), **OTHERS}}
CALLS = {8: 1000, 4 << 10: 1000, 64 << 10: 400, 1 << 20: 80, 4 << 20: 20, 16 << 20: 8}  # of a turn, by bytes
IGNORED = 5  # before so many calls that count there is one that does not: the kernel finds cores for threads that have just woken


# ---- a process, which sleeps between its turns ----

def make_psum():
  """The rank, and a function that makes a call for so many bytes: a jitted psum until its result is there."""
  import jax
  import jax.numpy as jnp
  from jax import lax
  from jax.sharding import NamedSharding, PartitionSpec as P

  if "COORDINATOR" in os.environ:
    jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]))
  mesh = jax.make_mesh((jax.device_count(),), ("i",))
  psum = jax.jit(jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))

  def make_call(size):
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), jnp.ones(size // 4, jnp.float32))
    return lambda: jax.block_until_ready(psum(x))

  return jax.process_index(), make_call


def make_allreduce():
  """The same of mpi4py's Allreduce."""
  import numpy as np
  from mpi4py import MPI

  def make_call(size):
    x, y = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    return lambda: MPI.COMM_WORLD.Allreduce(x, y)

  return MPI.COMM_WORLD.rank, make_call


def member(folder: pathlib.Path, way: str):
  """Reads its turns from the pipe FOLDER/WAY.RANK, a line each: how many bytes, how many calls.  When they are done it writes the median
  of the calls in us to the pipe FOLDER/WAY.answers."""
  rank, make_call = make_allreduce() if way == BASE else make_psum()
  calls = {}
  with open(folder / f"{way}.answers", "w", buffering=1) as answers, open(folder / f"{way}.{rank}") as turns:
    for turn in turns:
      size, count = map(int, turn.split())
      if size not in calls:
        calls[size] = make_call(size)
        calls[size]()  # compiles
      times = []
      for _ in range(count + count // IGNORED):
        begin = time.perf_counter()
        calls[size]()
        times.append((time.perf_counter() - begin) * 1e6)
      print(statistics.median(times[count // IGNORED:]), file=answers)


# ---- what gives the turns ----

class Way:
  """The processes of a way."""

  def __init__(self, name: str, asked: argparse.Namespace, folder: pathlib.Path, stack: contextlib.ExitStack):
    options, variables = WAYS[asked.hosts][name]
    self.name = name
    for pipe in [f"{name}.answers"] + [f"{name}.{rank}" for rank in range(RANKS)]:
      os.mkfifo(folder / pipe)
    self.errors = stack.enter_context(open(folder / f"{name}.errors", "w+"))
    places = ["--hosts", str(asked.hosts), "--ranks", str(RANKS // asked.hosts), *["--own-cores"] * asked.own_cores]
    self.process = subprocess.Popen([HOSTS, *places, *options, "--", sys.executable, __file__, "--member", folder, name],
                                    env=os.environ | variables, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)
    stack.callback(self.process.wait)
    # Opened for both directions: opening then does not wait, and each pipe has both ends even if a process ends.
    self.answers = stack.enter_context(open(os.open(folder / f"{name}.answers", os.O_RDWR), "rb", buffering=0))
    self.turns = [stack.enter_context(open(os.open(folder / f"{name}.{rank}", os.O_RDWR), "w", buffering=1)) for rank in range(RANKS)]

  def answer(self) -> float:
    while not select.select([self.answers], [], [], 1)[0]:
      if self.process.poll() is not None:
        self.errors.seek(0)
        sys.exit(f"{self.name} has ended with {self.process.returncode}: {self.errors.read().strip().splitlines()[-1:]}")
    return float(self.answers.readline())

  def take_turn(self, size: int) -> float:
    """The median of a turn's calls in us, from the slower process."""
    for turn in self.turns:
      print(size, CALLS[size], file=turn)
    return max([self.answer() for _ in range(RANKS)])


def run_round(asked: argparse.Namespace, found: dict[str, dict[int, list[float]]]):
  """Starts all ways and lets them take turns; appends what they took."""
  with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
    ways = [Way(name, asked, pathlib.Path(folder), stack) for name in found]
    for size in CALLS:
      for way in ways:
        way.take_turn(size)  # compiles, and connects
      for _ in range(asked.turns):
        for way in ways:
          found[way.name][size].append(way.take_turn(size))


def cell(times: list[float], least: list[float]) -> str:
  multiple = statistics.median(a / b for a, b in zip(times, least))
  return f"{statistics.median(times):>18.0f}{min(times):>9.0f}{multiple:>9.2f}"


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--turns", type=int, default=10, help="of each way and size in a round")
  parser.add_argument("--hosts", type=int, choices=WAYS, default=2)
  parser.add_argument("--own-cores", action="store_true", help="each host has a share of the cores for itself")
  parser.add_argument("--member", nargs=2, help=argparse.SUPPRESS)
  asked = parser.parse_args()
  if asked.member:
    return member(pathlib.Path(asked.member[0]), asked.member[1])
  found = {way: {size: [] for size in CALLS} for way in WAYS[asked.hosts]}
  for _ in range(asked.rounds):
    run_round(asked, found)
  print("       bytes" + "".join(f"{way + ': us, best, multiple':>36}" for way in found))
  for size in CALLS:
    print(f"{size:12d}" + "".join(cell(found[way][size], found[BASE][size]) for way in found))


if __name__ == "__main__":
  main()
