"""Checks that run in every process of one job, so that many of them share one start.

A script of this folder decorates functions with `check` and ends with `main()`.  Each process runs all of them in order
and writes the results to RANK_RESULTS/<rank>.json, which tests/e2e/mpirun.py reads.  The job is started by mpirun, or
variables identify the processes (tests/e2e/distributed.py).
"""

import json
import os
import sys
import time
import traceback

CHECKS = []


def check(function):
  CHECKS.append(function)
  return function


def names(module):
  """The checks of a script in this folder."""
  return [function.__name__ for function in CHECKS if function.__module__ == module]


def rank():
  return int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PROCESS_ID", 0)))


def size():
  return int(os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("NUM_PROCESSES", 1)))


def main():
  if coordinator := os.environ.get("COORDINATOR"):
    import jax
    jax.distributed.initialize(coordinator, size(), rank())
  results = {}
  path = os.path.join(os.environ["RANK_RESULTS"], f"{rank()}.json")
  for function in CHECKS:
    begin = time.perf_counter()
    # If the job dies, this file shows where.
    print(f"rank {rank()}: {function.__name__}", file=sys.stderr, flush=True)
    try:
      function()
      results[function.__name__] = "ok"
    except Exception:
      results[function.__name__] = traceback.format_exc()
    seconds = time.perf_counter() - begin
    if seconds > 2:
      print(f"rank {rank()}: {function.__name__} took {seconds:.1f} s", file=sys.stderr, flush=True)
    with open(path + ".part", "w") as f:
      json.dump(results, f)
    os.replace(path + ".part", path)
