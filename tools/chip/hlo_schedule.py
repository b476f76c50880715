"""Walks the schedule of an optimized HLO text: every instruction that runs, how often, with its cost and traffic.

Loop bodies count times their trips, of conditionals the most expensive branch counts, calls are inlined.  What an
instruction costs depends on the compiler: a subclass says it in `cost`.
"""

import collections
import dataclasses

import hlo_loops
import hlo_traffic
from hlo_text import COLLECTIVES, FREE, FREE_CALLS, Module


@dataclasses.dataclass
class Work:
  """An instruction that runs `times` times.  `cost` is the compiler's, in its own unit, or None."""
  opcode: str
  kind: str
  inside: str  # opcodes of a fusion, joined by +, or the target of a custom call
  cost: float | None
  times: int
  shape: str
  moved: int
  matmul: object = None  # GPUs: what gpu_matmuls.of says

  def weight(self):
    return ((self.cost or 0) + self.moved) * self.times


@dataclasses.dataclass
class Collective:
  """`how`: sync, async, async-empty (nothing timed runs between start and done) or fused."""
  opcode: str
  how: str
  shape: str
  between: int  # instructions with costs, and loops, between start and done
  between_cost: float
  times: int
  own: float = 0.0  # its own cost, where the compiler has one


def timed(order, cost):
  """Between a start and its done: the number of instructions that have costs, loops included, and the costs' sum."""
  costs = [c for c in map(cost, order) if c is not None]
  loops = sum(op.opcode == "while" for op in order)
  return len(costs) + loops, sum(costs)


def ends_at(order, at, test):
  return next((k for k in range(at + 1, len(order)) if test(order[k])), None)


class Schedule:
  """`works`, `loops` (name, trips or None) and `collectives` of a text."""

  def __init__(self, text):
    self.module = Module(text)
    self.works, self.loops, self.collectives = [], [], []
    self.walk(self.module.entry, 1, self.works)

  def cost(self, op):
    raise NotImplementedError

  def walk(self, name, times, out):
    body = self.module.body(name)
    order = list(body.values())
    for at, op in enumerate(order):
      if op.opcode == "while":
        n = hlo_loops.trips(self.module, op, body)
        self.loops.append((op.name, n))
        self.walk(op.called("body"), times * (1 if n is None else n), out)
      elif op.opcode == "conditional":
        out.extend(self.expensive_branch(op, times))
      elif op.opcode == "call":
        self.walk(op.called("to_apply"), times, out)
      elif op.opcode not in FREE:
        self.add(op, order, at, times, body, out)

  def expensive_branch(self, op, times):
    found = op.attribute(r"branch_computations=\{([^}]*)\}")
    names = ([b.strip().lstrip("%") for b in found.split(",")] if found
             else [op.called("true_computation"), op.called("false_computation")])
    branches = []
    for name in names:
      branches.append([])
      self.walk(name, times, branches[-1])
    return max(reversed(branches), key=lambda works: sum(w.weight() for w in works))

  def add(self, op, order, at, times, body, out):
    inner, inside = collections.Counter(), ""
    if op.opcode in ("fusion", "async-start"):
      inner = self.module.inside(op.called("calls"))
      inside = "+".join(k for k, _ in inner.most_common() if k not in FREE and k != "fusion")[:100]
    elif op.opcode == "custom-call":
      inside = op.attribute(r'custom_call_target="([^"]*)"')
      if inside in FREE_CALLS:
        return
    self.collective(op, inner, order, at, times)
    out.append(Work(op.opcode, op.attribute(r"kind=(\w+)") or "", inside, self.cost(op), times,
                    op.short_shape(), hlo_traffic.moved(self.module, op, body)))

  # ---- collectives ----

  def collective(self, op, inner, order, at, times):
    base = op.opcode.removesuffix("-start")
    if op.opcode.endswith("-done") or op.name.startswith("async-collective-done"):
      return
    fused = [c for c in COLLECTIVES if any(i.startswith(c) for i in inner)]
    if op.opcode.endswith("-start") and (base in COLLECTIVES or (base == "async" and fused)):
      done = ends_at(order, at, lambda o: op.name in o.operands and o.opcode.endswith("-done"))
      self.asynchronous(base if base in COLLECTIVES else fused[0], op, order, at, done, times)
    elif op.name.startswith("async-collective-start"):
      self.bracketed(fused, op, order, at, times)
    elif op.opcode in COLLECTIVES:
      self.collectives.append(Collective(op.opcode, "sync", op.short_shape(), 0, 0, times))
    elif fused and "convolution" not in inner:
      self.collectives.append(Collective(fused[0], "fused", op.short_shape(), 0, 0, times))

  def bracketed(self, fused, op, order, at, times):
    """libtpu's async-collective-start.n ... async-collective-done.n, with the collective itself in a fusion between."""
    name = "async-collective-done" + op.name.removeprefix("async-collective-start")
    done = ends_at(order, at, lambda o: o.name == name)
    if done is None:
      done = ends_at(order, at, lambda o: o.name.startswith("async-collective-done"))
    if not fused and done:
      inner = [self.module.inside(o.called("calls")) for o in order[at:done + 1] if o.opcode == "fusion"]
      fused = [c for i in inner for c in COLLECTIVES if any(k.startswith(c) for k in i)]
    self.asynchronous(fused[0] if fused else "?", op, order, at, done, times)

  def asynchronous(self, opcode, op, order, at, done, times):
    between, cost = timed(order[at + 1:done] if done else [], self.cost)
    self.collectives.append(Collective(opcode, "async" if between else "async-empty", op.short_shape(), between, cost,
                                       times))
