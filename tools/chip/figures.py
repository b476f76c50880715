"""From the schedule of a program to its row in the corpus: an interval of seconds, bytes, numbers of kernels."""

import collections
import dataclasses

from hlo_text import COLLECTIVES

SMALL = 64 << 10  # bytes: an instruction of less that has no cost may be left out


@dataclasses.dataclass
class Totals:
  """Sums over the works of a schedule.  Costs are in cycles (GPUs: of 1 GHz, so nanoseconds)."""
  cost: float = 0
  matmul: float = 0
  bytes: int = 0
  low: float = 0.0
  high: float = 0.0
  untimed: int = 0  # bytes of the instructions that the compiler has no cost for
  irregular: set = dataclasses.field(default_factory=set)


def of_collectives(collectives):
  """opcode -> how -> number of times."""
  out = collections.defaultdict(collections.Counter)
  for c in collectives:
    out[c.opcode]["async" if c.how == "async-empty" else c.how] += c.times
  return {opcode: dict(sorted(counts.items())) for opcode, counts in sorted(out.items())}


def row(schedule, totals, clock, bandwidth):
  """The part of a row that the text shows."""
  floor = totals.bytes / bandwidth
  lost = sum(n is None for _, n in schedule.loops)
  out = {"low": max(totals.low, floor), "high": max(totals.high, floor), "cycles": round(totals.cost),
         "matmul": round(totals.matmul), "seconds": max(totals.cost / clock, floor), "floor": floor,
         "bytes": totals.bytes, "kernels": len(schedule.works), "launches": sum(w.times for w in schedule.works),
         "untimed": totals.untimed}
  if schedule.loops:
    out["loops"] = len(schedule.loops)
  if lost:
    out["unknown_loops"] = lost
  if totals.irregular:
    out["irregular"] = sorted(totals.irregular)
  if schedule.collectives:
    out["collectives"] = of_collectives(schedule.collectives)
    out["overlapped"] = round(sum(c.between_cost * c.times for c in schedule.collectives))
  return out


def is_collective(opcode):
  return opcode.removesuffix("-start").removesuffix("-done") in COLLECTIVES
