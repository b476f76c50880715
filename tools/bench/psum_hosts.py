"""psum between two hosts, pretended by network namespaces: by UCX, by MPI, and JAX's CPU by gloo; and MPI_Allreduce.

    python tools/bench/psum_hosts.py [--rounds N] [--turns N] [--own-cores]

Needs root (tests/mpi/two_hosts.sh) and, for MPI, mpirun.  Every process has one device; what is timed is a call of a jitted psum until
its result is there, and mpi4py's Allreduce.

A machine is fast or slow for seconds at a time: a copy of 1 MiB by the kernel from one core to another takes 30 us or 300, depending on
which cores a virtual machine has got and on what others leave of the caches.  So all ways are started at once and take turns of some 50 ms,
one at a time while the others sleep (psum_member.py), and each turn is put beside MPI_Allreduce's turn of the same few calls.  A round is
a start of its own.  Each row has the median over the turns, the best turn, and the median over the turns of the multiple of MPI_Allreduce.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests" / "mpi" / "two_hosts.sh"
MEMBER = pathlib.Path(__file__).with_name("psum_member.py")
POD = {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "1"}
GLOO = {"JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
RANKS = 2
BASE = "MPI_Allreduce"
# By name: options of two_hosts.sh, variables, and what psum_member.py calls.
WAYS = {"UCX": (["--plain"], POD, "psum"), "MPI": ([], POD, "psum"), "gloo": (["--plain"], GLOO, "psum"), BASE: ([], {}, "Allreduce")}
CALLS = {8: 1000, 4 << 10: 1000, 64 << 10: 400, 1 << 20: 80, 4 << 20: 20, 16 << 20: 8}  # of a turn, by bytes


class Way:
  """The processes of a way, which sleep between their turns."""

  def __init__(self, name: str, sharing: list[str], folder: pathlib.Path, stack: contextlib.ExitStack):
    options, variables, what = WAYS[name]
    self.name = name
    for pipe in [f"{name}.answers"] + [f"{name}.{rank}" for rank in range(RANKS)]:
      os.mkfifo(folder / pipe)
    self.errors = stack.enter_context(open(folder / f"{name}.errors", "w+"))
    self.process = subprocess.Popen([HOSTS, *sharing, *options, "--", sys.executable, MEMBER, folder, name, what], env=os.environ | variables,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)
    stack.callback(self.process.wait)
    # For both directions: opening does not wait, and no process is left with a pipe without another
    # end.
    self.answers = stack.enter_context(open(os.open(folder / f"{name}.answers", os.O_RDWR), "rb", buffering=0))
    self.turns = [stack.enter_context(open(os.open(folder / f"{name}.{rank}", os.O_RDWR), "w", buffering=1)) for rank in range(RANKS)]

  def answer(self) -> float:
    while not select.select([self.answers], [], [], 1)[0]:
      if self.process.poll() is not None:
        self.errors.seek(0)
        sys.exit(f"{self.name} has ended with {self.process.returncode}: {self.errors.read().strip().splitlines()[-1:]}")
    return float(self.answers.readline())

  def take_turn(self, size: int) -> float:
    """The median of a turn's calls in us, of the process for which it is longer."""
    for turn in self.turns:
      print(size, CALLS[size], file=turn)
    return max([self.answer() for _ in range(RANKS)])


def run_round(sharing: list[str], turns: int, found: dict[str, dict[int, list[float]]]):
  """Starts all ways and lets them take turns; appends what they took."""
  with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
    ways = [Way(name, sharing, pathlib.Path(folder), stack) for name in WAYS]
    for size in CALLS:
      for way in ways:
        way.take_turn(size)  # compiles, and connects
      for _ in range(turns):
        for way in ways:
          found[way.name][size].append(way.take_turn(size))


def cell(times: list[float], least: list[float]) -> str:
  multiple = statistics.median(a / b for a, b in zip(times, least))
  return f"{statistics.median(times):>18.0f}{min(times):>9.0f}{multiple:>9.2f}"


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--turns", type=int, default=10, help="of each way and size in a round")
  parser.add_argument("--own-cores", action="store_true", help="each host has a share of the cores for itself")
  asked = parser.parse_args()
  sharing = ["--own-cores"] if asked.own_cores else []
  found = {way: {size: [] for size in CALLS} for way in WAYS}
  for _ in range(asked.rounds):
    run_round(sharing, asked.turns, found)
  print("       bytes" + "".join(f"{way + ': us, best, multiple':>36}" for way in WAYS))
  for size in CALLS:
    print(f"{size:12d}" + "".join(cell(found[way][size], found[BASE][size]) for way in WAYS))


if __name__ == "__main__":
  main()
