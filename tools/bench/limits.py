"""What the machine can do at most, and a row's share of it.

`build/minipod-bench-limits` measures; it runs between the processes of the cases, and the best of all its
runs counts, as the least time of a case does.

A case takes at least as long as its operations at the peak of multiply-adds or its bytes at the bandwidth
of such traffic, whichever is longer; and either on one core, or on all, which have to be woken first.  Its
share is that time by the one it takes.  Cases that neither measure bounds have none (`has_share` of
cases/case.py): sorts, random access, integers, functions that the compiler does not count operations of.
"""

import bisect
import json
import math
import pathlib
import subprocess

PROGRAM = pathlib.Path(__file__).parents[2] / "build" / "minipod-bench-limits"
KINDS = ("read", "update", "copy", "triad")
MEMORY_BOUND = 4 << 20  # a case that moves less is mostly bound by what is not memory
COMPUTE_BOUND = 1e6  # operations: one with fewer, and no more bytes, is mostly its launch
TRANSCENDENTAL = 30  # operations, such as of an exponential function: fifteen instructions
FEW = 0.05  # of the bytes: writing so little leaves reading alone


def measure(program=PROGRAM):
  """The limits, or None where the program has not been built."""
  if not program.exists():
    return None
  return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def best(a, b):
  """The higher of each rate of two measurements, and the shorter start; either may be None."""
  if not a or not b:
    return a or b
  rates = {kind: [[size, max(x, y)] for (size, x), (_, y) in zip(a[kind], b[kind])] for kind in KINDS}
  return a | rates | {kind: max(a[kind], b[kind]) for kind in ("f32", "f64")} | {
      "start": min(a["start"], b["start"])}


def traffic(figures):
  """Which kind of traffic a case's is."""
  read, written = figures["read"], figures["written"]
  if written <= FEW * (read + written):
    return "read"
  if figures["in_place"] > 0.9 * written:
    return "update"
  return "triad" if read > 1.5 * written else "copy"


def bandwidth(limits, kind, moved):
  """Between those of the next smaller and larger size that were measured."""
  sizes, rates = zip(*limits[kind])
  after = bisect.bisect(sizes, moved)
  if after in (0, len(sizes)):
    return rates[min(after, len(sizes) - 1)]
  part = math.log(moved / sizes[after - 1]) / math.log(sizes[after] / sizes[after - 1])
  return rates[after - 1] * (rates[after] / rates[after - 1]) ** part


def share(limits, figures):
  """A case's share of the limit that bounds it, and the limit's name; None if nothing bounds it."""
  if not limits or "read" not in figures or "wall" not in figures:
    return None
  moved = figures["read"] + figures["written"]
  operations = figures["flops"] + TRANSCENDENTAL * figures["transcendentals"]
  if moved < MEMORY_BOUND and operations < COMPUTE_BOUND:
    return None
  numbers, memory = "f64" if figures["is_f64"] else "f32", traffic(figures)
  needs = {numbers: operations / limits[numbers], memory: moved / bandwidth(limits, memory, moved)}
  kind = max(needs, key=needs.get)
  if kind == memory and moved < MEMORY_BOUND:
    return None
  least = min(needs[kind] * limits["threads"], needs[kind] + limits["start"])
  return least / figures["wall"], kind
