"""psum between two hosts, pretended by network namespaces: by UCX, by MPI, and JAX's CPU by gloo; and MPI_Allreduce.

    python tools/bench/psum_hosts.py [--rounds N] [--own-cores]

Needs root (tests/mpi/two_hosts.sh) and, for MPI, mpirun.  Every process has one device; what is timed
is psum_processes.py's call of a jitted psum until its result is there, and mpi4py's Allreduce.  The ways take turns, so that other
work on the machine meets all of them.  Each round is a start of its own, and fast or slow as a whole: where the kernel puts threads
and buffers differs from start to start, and so does what others leave of the caches.  So each row has the median of the rounds'
medians, the median of the best round, and the median over the rounds of what the way takes as a multiple of MPI_Allreduce.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ROOT / "tests" / "mpi" / "two_hosts.sh"
PROGRAM = pathlib.Path(__file__).with_name("psum_processes.py")
POD = {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "1"}
PSUM = [str(PROGRAM), "--calls"]
# Says what psum_processes.py says.
ALLREDUCE = ["-c", """
import statistics, time
import numpy as np
from mpi4py import MPI
for size in (8, 4 << 10, 64 << 10, 1 << 20, 16 << 20):
  x, y, times = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32), []
  for _ in range(201 if size <= 1 << 16 else 101 if size <= 1 << 20 else 21):
    begin = time.perf_counter()
    MPI.COMM_WORLD.Allreduce(x, y)
    times.append(time.perf_counter() - begin)
  if MPI.COMM_WORLD.rank == 0:
    print(f"{size:9d} bytes: psum {statistics.median(times[1:]) * 1e6:9.1f} us (best {min(times[1:]) * 1e6:.1f})", flush=True)
"""]
WAYS = {"UCX": (["--plain"], POD, PSUM), "MPI": ([], POD, PSUM),
        "gloo": (["--plain"], {"JAX_PLATFORMS": "cpu", "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}, PSUM),
        "MPI_Allreduce": ([], {}, ALLREDUCE)}
LINE = re.compile(r"^ *(\d+) bytes: .*psum +([\d.]+) us", re.MULTILINE)


def measure(way: str, sharing: list[str]) -> dict[int, float]:
  """The median in us, by bytes."""
  options, variables, words = WAYS[way]
  done = subprocess.run([str(HOSTS), *sharing, *options, "--", sys.executable, *words], text=True,
                        env=os.environ | variables, capture_output=True, timeout=600)
  if done.returncode:
    sys.exit(f"{way}: {done.stderr.strip().splitlines()[-1]}")
  return {int(size): float(median) for size, median in LINE.findall(done.stdout)}


def cell(times: list[float], least: list[float]) -> str:
  multiple = statistics.median(a / b for a, b in zip(times, least))
  return f"{statistics.median(times):>18.0f}{min(times):>9.0f}{multiple:>9.2f}"


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--own-cores", action="store_true", help="each host has a share of the cores for itself")
  asked = parser.parse_args()
  sharing = ["--own-cores"] if asked.own_cores else []
  found = {way: {} for way in WAYS}
  for _ in range(asked.rounds):
    for way, rows in found.items():
      for size, times in measure(way, sharing).items():
        rows.setdefault(size, []).append(times)
  print("       bytes" + "".join(f"{way + ': us, best, multiple':>36}" for way in WAYS))
  for size, least in found["MPI_Allreduce"].items():
    print(f"{size:12d}" + "".join(cell(rows[size], least) for rows in found.values()))


if __name__ == "__main__":
  main()
