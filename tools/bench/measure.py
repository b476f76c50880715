"""Measures cases on the platform that JAX has in this process.  table.py starts it.

It reads the names of the cases from its standard input, and prints a line of JSON for each as soon as it is
measured.  So if it dies later, no results are lost.
"""

import argparse
import json
import math
import os
import resource
import statistics
import sys
import time

import jax

import cases

SAMPLE_SECONDS = 0.02  # seconds of calls between two readings of the clock
SETTLE_SECONDS = 1.0  # code that runs often becomes faster: call it until it does, but at most this long
CASE_SECONDS = 0.2  # seconds of calls that count
LEAST_SAMPLES = 3
COMPILE_SECONDS = 2.0  # with tracing
LEAST_COMPILES = 2
MOST_COMPILES = 30


def processor_seconds():
  """CPU seconds of all threads of the process."""
  usage = resource.getrusage(resource.RUSAGE_SELF)
  return usage.ru_utime + usage.ru_stime


def resident_bytes():
  """Peak memory of the process."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def sample(call, count):
  """The wall and processor seconds of this many calls."""
  processor, start = processor_seconds(), time.perf_counter()
  for _ in range(count):
    call()
  return time.perf_counter() - start, processor_seconds() - processor


def settle(call):
  """Calls until a call becomes no faster; returns how many calls make a sample."""
  call()
  count, best, stale, spent = 1, math.inf, 0, 0.0
  while stale < 2 and spent < SETTLE_SECONDS:
    wall, _ = sample(call, count)
    spent += wall
    stale = 0 if wall / count < 0.97 * best else stale + 1
    best = min(best, wall / count)
    if wall < SAMPLE_SECONDS:
      count, stale = min(10 * count, math.ceil(1.1 * count * SAMPLE_SECONDS / wall)), 0
  return count


def calls(work):
  """Seconds of one call: the shortest wall time of the samples, and the median processor time.

  The kernel counts the time of other threads in ticks, so the shortest processor time would be too short.
  """
  count = settle(work.call)
  samples = []
  while len(samples) < LEAST_SAMPLES or sum(wall for wall, _ in samples) < CASE_SECONDS:
    samples.append(sample(work.call, count))
  processor = statistics.median(used for _, used in samples)
  return {"wall": min(wall for wall, _ in samples) / count / work.per,
          "processor": processor / count / work.per}


def compiles(work):
  """Seconds of one compilation, without the tracing before it."""
  samples, end = [], time.perf_counter() + COMPILE_SECONDS
  while len(samples) < LEAST_COMPILES or (time.perf_counter() < end and
                                          len(samples) < MOST_COMPILES):
    jax.clear_caches()
    samples.append(sample(work.lower().compile, 1))
  return {"wall": min(wall for wall, _ in samples),
          "processor": statistics.fmean(used for _, used in samples)}


def least_work(compiled):
  """The minimum work of a call on any machine: operations, and bytes that it must read and write once.

  `in_place` is the part of the written bytes that goes into a donated argument.
  """
  memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
  types = {str(leaf.dtype) for leaf in jax.tree.leaves(compiled.in_avals)}
  is_counted = types & {"float32", "float64", "complex64", "complex128"}
  return {"read": memory.argument_size_in_bytes, "written": memory.output_size_in_bytes,
          "in_place": memory.alias_size_in_bytes,
          "flops": cost.get("flops", 0) if is_counted else 0,
          "transcendentals": cost.get("transcendentals", 0) if is_counted else 0,
          "is_f64": int(bool(types & {"float64", "complex128"}))}


def figures(case, at_import, smoke):
  """Measures a case; with `smoke`, only checks that it works."""
  work = case.build()
  if smoke:
    if work.lower:
      work.lower().compile()
    elif work.call:
      work.call()
    return {}
  result = compiles(work) if work.lower else calls(work) if work.call else {}
  if work.compiled:
    result["bytes"] = work.compiled.memory_analysis().temp_size_in_bytes
    if work.call and case.devices == 1 and case.has_share:
      result |= least_work(work.compiled)
  elif work.resident:
    result["bytes"] = resident_bytes() - at_import
  return result | {"threads": len(os.listdir("/proc/self/task"))}


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--smoke", action="store_true")
  arguments = parser.parse_args()
  names = json.load(sys.stdin)
  chosen = cases.load(dict.fromkeys(name.split("/")[0] for name in names))
  at_import = resident_bytes()
  for name in names:
    try:
      result = figures(chosen[name], at_import, arguments.smoke)
    except Exception as error:  # a case that fails should not stop the others
      result = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps({"case": name, **result}), flush=True)


if __name__ == "__main__":
  main()
