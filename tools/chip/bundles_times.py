"""When bundles of a TensorCore issue: latencies of results, and how often a unit takes an instruction.

One bundle issues a cycle, unless it reads a result that is not ready.  Results of matrix units, of transpose units and
of transcendental functions are queued and popped; a pop waits.

The numbers are those of libtpu 0.0.52's own scheduler: distances in its dumps of critical paths
(--xla_jf_dump_llo_pass_label_regex=critical-path), and slots per bundle in its bundle profiles (bundle-profile).
"""

import collections
import dataclasses
import re


@dataclasses.dataclass
class Times:
  matmul: int  # from a matmul to its result
  matmul_every: dict  # bits of the elements -> cycles until the matrix unit takes the next one
  rotate: int  # from a rotation, permutation or reduction of lanes to its result
  transpose: int  # from the last row of a transpose to its first column
  lanes_every: int  # the unit of both takes an instruction in so many cycles
  function: int  # exp, log, tanh, rcp, rsqrt
  columns: int = 1  # results of a matmul of 8 rows


# v4, v5e and v5p have matrix units of 128 columns, v6e and 7x of 256.
NARROW = Times(131, {32: 8, 16: 16, 8: 16}, 92, 44, 8, 7)
WIDE = Times(192, {32: 4, 16: 8, 8: 8}, 123, 64, 4, 14, columns=2)
TIMES = {"v4": NARROW, "v5e": NARROW, "v5p": NARROW, "v6e": WIDE,
         "7x": dataclasses.replace(WIDE, matmul=211, function=11)}

SCALAR_LOAD, VECTOR, OTHER = 6, 2, 1
# Vector instructions whose results are ready in the next cycle.
QUICK = re.compile(r"v(ld|st|sel|cmp|cmask|mov|mmov|stv|pop|set|sync|nez|mand|mor|mxor|nop|trace|wait)")
PUSH_MATMUL = re.compile(r"vmatmul\.(?:mubr\.|lmr\.)*(\w+)\..*?(mxu\d)$")
POP_MATMUL = re.compile(r"vpop\.\S*?mr[fb]\.(mxu\d)(?:\.(mxu\d))?$")
# Results at an address, which several matmuls add to (7x).
PUSH_SUM = re.compile(r"vmatmul\.(?:\w+\.)*?(bf16|f32|s8|u8|f8\w*)\..*mrb\[(\d+)\]\.(mxu\d)\b")
POP_SUM = re.compile(r"vpop\.\S*?mrb\[(\d+)\]\.(mxu\d)\b")
PUSH_LANES = re.compile(r"v\w+\.(?:lane|xlane|pattern|index)\S*\.(xlu\d)$")
POP_LANES = re.compile(r"vpop\.(?!trf)\w+\.(xlu\d)$")
TRANSPOSE = re.compile(r"vxpose\.(xlu\d)\.\w+\.(?:\w+\.)*?(start\.end|start|cont|end)$")
POP_TRANSPOSE = re.compile(r"vpop\.trf\.(xlu\d)$")
PUSH_FUNCTION = re.compile(r"v(tanh|exp2|pow2|log2|rcp|rsqrt|erf|sinq|cosq|sigshft)\b")
POP_FUNCTION = re.compile(r"vpop\.(erf|eup)$")
BITS = {"f32": 32, "bf16": 16, "s8": 8, "u8": 8, "s4": 8, "u4": 8}


def latency(opcode):
  """Cycles until other bundles may read a result that no queue holds."""
  if opcode.startswith("sld"):
    return SCALAR_LOAD
  return VECTOR if opcode.startswith("v") and not QUICK.match(opcode) else OTHER


class Clock:
  """Issues the bundles of straight code.  Results of code before it are taken as ready."""

  def __init__(self, times, columns_of_transpose):
    self.times, self.columns_of_transpose = times, columns_of_transpose
    self.now = -1  # when the last bundle issued
    self.ready = {}  # value -> cycle
    self.queues = collections.defaultdict(collections.deque)  # (kind, unit) -> cycles
    self.free = collections.defaultdict(int)  # unit -> cycle

  def run(self, bundles):
    """Cycles that the bundles take."""
    for bundle in bundles:
      self.now = max([self.now + 1, *(self.earliest(slot) for slot in bundle.slots)])
      for slot in bundle.slots:
        self.issue(slot)
    return self.now + 1

  def earliest(self, slot):
    """When what a slot reads is ready; pops leave their queues here."""
    at = max((self.ready.get(name, 0) for name in slot.reads()), default=0)
    if found := POP_SUM.match(slot.opcode + slot.text):
      return max(at, self.ready.get(found.groups(), 0))
    for kind, pattern in POPS:
      found = pattern.match(slot.opcode)
      for unit in filter(None, found.groups()) if found else ():
        queue = self.queues[kind, unit]
        at = max(at, queue.popleft() if queue else 0)
    return at

  def issue(self, slot):
    opcode, times, now = slot.opcode, self.times, self.now
    self.ready[slot.name] = now + latency(opcode)
    if opcode == "vdelay":
      self.now += int(slot.text)
    elif found := PUSH_SUM.match(opcode + slot.text):
      bits, first, unit = BITS.get(found.group(1), 8), int(found.group(2)), found.group(3)
      every = times.matmul_every[bits]
      begun = max(now, self.free["matmul", unit])
      self.free["matmul", unit] = begun + every
      for k in range(times.columns * 32 // bits):
        self.ready[str(first + k), unit] = int(begun + times.matmul + k)
    elif found := PUSH_MATMUL.match(opcode):
      bits, unit = BITS.get(found.group(1), 8), found.group(2)
      every = times.matmul_every[bits]
      count = times.columns * 32 // bits
      self.push("matmul", unit, times.matmul, count, every / count, every)
    elif found := TRANSPOSE.match(opcode):
      unit, last = found.group(1), found.group(2).endswith("end")
      count = self.columns_of_transpose.get(unit, 1) if last else 0
      self.push("transpose", unit, times.transpose, count, times.lanes_every, times.lanes_every)
    elif found := PUSH_LANES.match(opcode):
      pattern = opcode.startswith("vset")
      self.push("lanes", found.group(1), times.rotate, 0 if pattern else 1, 0, times.lanes_every)
    elif PUSH_FUNCTION.match(opcode):
      self.push("function", "erf", times.function, 1, 0, 1)

  def push(self, kind, unit, latency, count, apart, every):
    """A unit takes instructions as they come, and works on one after the other."""
    begun = max(self.now, self.free[unit])
    self.free[unit] = begun + every
    self.queues[kind, unit].extend(int(begun + latency + k * apart) for k in range(count))


POPS = (("matmul", POP_MATMUL), ("lanes", POP_LANES), ("transpose", POP_TRANSPOSE), ("function", POP_FUNCTION))

def transposed_columns(bundles):
  """Unit -> columns that are read of each of its transposes."""
  ends, pops = collections.Counter(), collections.Counter()
  for bundle in bundles:
    for slot in bundle.slots:
      if (found := TRANSPOSE.match(slot.opcode)) and found.group(2).endswith("end"):
        ends[found.group(1)] += 1
      elif found := POP_TRANSPOSE.match(slot.opcode):
        pops[found.group(1)] += 1
  return {unit: max(1, round(pops[unit] / n)) for unit, n in ends.items()}
