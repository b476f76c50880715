"""The machine's limits, and each row's share of the limit that bounds it.

`build/minipod-bench-limits` measures the limits.  It runs between the processes of the cases, and its best run counts,
as the shortest time of a case does.

A case takes at least as long as its operations at the peak of multiply-adds, or its bytes at the bandwidth of such
traffic, whichever is longer.  This is on one core, or on all cores, which must wake up first.  The case's share is this
time divided by its measured time.  Cases that no limit bounds have no share (`has_share` in cases/case.py): sorts,
random access, integers, and functions whose operations the compiler does not count.
"""

import bisect
import json
import math
import pathlib
import subprocess

PROGRAM = pathlib.Path(__file__).parents[2] / "build" / "minipod-bench-limits"
KINDS = ("read", "update", "copy", "triad")
MEMORY_BOUND = 4 << 20  # bytes; a case that moves less is mostly bound by other costs
COMPUTE_BOUND = 1e6  # operations; a case with fewer, and no more bytes, is mostly bound by its launch
TRANSCENDENTAL = 30  # operations per transcendental function, such as an exponential: fifteen instructions
FEW = 0.05  # share of bytes; if a case writes so little, its traffic counts as reading alone


def measure(program=PROGRAM):
  """The limits, or None if the program has not been built."""
  if not program.exists():
    return None
  return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def best(a, b):
  """The higher one of each rate of two measurements, and the shorter start; either measurement may be None."""
  if not a or not b:
    return a or b
  rates = {kind: [[size, max(x, y)] for (size, x), (_, y) in zip(a[kind], b[kind])] for kind in KINDS}
  return a | rates | {kind: max(a[kind], b[kind]) for kind in ("f32", "f64")} | {
      "start": min(a["start"], b["start"])}


def traffic(figures):
  """The kind of memory traffic of a case."""
  read, written = figures["read"], figures["written"]
  if written <= FEW * (read + written):
    return "read"
  if figures["in_place"] > 0.9 * written:
    return "update"
  return "triad" if read > 1.5 * written else "copy"


def bandwidth(limits, kind, moved):
  """Interpolates between the next smaller and the next larger size that were measured."""
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
