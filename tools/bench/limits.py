"""What the machine can do at most, and a row's share of it.

`build/minipod-bench-limits` measures; it runs between the processes of the cases, and the best of all its
runs counts, as the least time of a case does.
"""

import json
import math
import pathlib
import subprocess

PROGRAM = pathlib.Path(__file__).parents[2] / "build" / "minipod-bench-limits"
MEMORY_BOUND = 4 << 20  # a case that moves less is mostly bound by what is not memory
OPERATIONS_PER_BYTE = 16  # a case with more is bound by arithmetic
FEW = 0.05  # of the bytes: writing so little leaves reading alone


def measure(program=PROGRAM):
  """The limits, or None where the program has not been built."""
  if not program.exists():
    return None
  return json.loads(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def best(a, b):
  """The higher of each figure of two measurements; either may be None."""
  if not a or not b:
    return a or b
  rates = {kind: [[size, max(x, y)] for (size, x), (_, y) in zip(a[kind], b[kind])]
           for kind in ("read", "copy", "triad")}
  return a | rates | {kind: max(a[kind], b[kind]) for kind in ("f32", "f64")}


def traffic(figures):
  """Which kind of traffic a case's is."""
  read, written = figures["read"], figures["written"]
  if written <= FEW * (read + written):
    return "read"
  return "triad" if read > 1.5 * written else "copy"


def bandwidth(limits, kind, moved):
  """Of the measured size that is nearest to what is moved."""
  return min(limits[kind], key=lambda entry: abs(math.log(entry[0] / max(moved, 1))))[1]


def share(limits, figures):
  """A case's share of the limit that bounds it, and the limit's name; None if nothing bounds it."""
  if not limits or "read" not in figures or "wall" not in figures:
    return None
  moved = figures["read"] + figures["written"]
  if figures["flops"] > OPERATIONS_PER_BYTE * moved:
    kind = "f64" if figures["is_f64"] else "f32"
    return figures["flops"] / limits[kind] / figures["wall"], kind
  if moved < MEMORY_BOUND:
    return None
  kind = traffic(figures)
  return moved / bandwidth(limits, kind, moved) / figures["wall"], kind
