"""Counts the bytes that a device receives in one run of a compiled program, from its HLO text.

The same function reads the as_text() of minipod and of XLA.  Bodies of loops count once per iteration.  Of a
conditional's branches, the one that sends most counts.  The counts assume ring algorithms: all_gather and all_to_all
(g-1)/g of the result, all_reduce twice that, reduce_scatter g-1 times the result.
"""

import collections
import re

COLLECTIVES = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all",
               "collective-permute", "collective-broadcast"}
BITS = {"pred": 8, "c64": 64, "c128": 128, "bf16": 16, "s4": 4, "u4": 4}
LINE = re.compile(r"(ROOT )?%?([\w.\-]+) = (\(.*?\)|[^ ]+) ([\w\-]+)\((.*)$")


class Op:

  def __init__(self, match):
    self.is_root = match[1] is not None
    self.name, self.shape, self.code, self.rest = match[2], match[3], match[4], match[5]
    self.operands = re.findall(r"%([\w.\-]+)", self.rest.split(")")[0])

  def attribute(self, name):
    found = re.search(rf"\b{name}=%?([\w.\-]+)", self.rest)
    return found[1] if found else None


def parse(text):
  """The computations by name, and the name of the entry."""
  computations, current, entry = {}, None, None
  for line in text.splitlines():
    head = re.match(r"(ENTRY )?%?([\w.\-]+) .*\{\s*$", line)
    if head and "=" not in line.split("(")[0] and not line.startswith("HloModule"):
      current = computations.setdefault(head[2], {})
      entry = head[2] if head[1] else entry
    elif line.startswith("}"):
      current = None
    elif current is not None:
      found = LINE.match(re.sub(r"/\*.*?\*/", "", line.strip()))
      if found:
        current[found[2]] = Op(found)
  return computations, entry


def size(shape):
  """Bytes of a shape; for a tuple, of all its parts."""
  total = 0
  for kind, dims in re.findall(r"\b([a-z]+[0-9]*[a-z0-9]*)\[([0-9,]*)\]", shape):
    bits = BITS.get(kind) or int(re.search(r"[0-9]+", kind)[0])
    count = 1
    for dim in filter(None, dims.split(",")):
      count *= int(dim)
    total += count * bits // 8
  return total


def group_size(op, devices):
  """The number of devices in one of the op's groups."""
  listed = re.search(r"replica_groups=\{\{([0-9,]*)\}", op.rest)
  if listed:
    return len(listed[1].split(","))
  tiled = re.search(r"replica_groups=\[[0-9]+,([0-9]+)\]<=", op.rest)
  if tiled:
    return int(tiled[1])
  mesh = re.search(r"replica_groups=mesh\[(.*?)\] ?\{(.*?)\}", op.rest)
  if not mesh:
    return devices
  sizes = {name: int(n) for name, n in re.findall(r"'([^']+)'=([0-9]+)", mesh[1])}
  parts = re.findall(r"'([^']+)'(?::\([0-9]+\)([0-9]+))?", mesh[2])
  product = 1
  for name, part in parts:
    product *= int(part) if part else sizes[name]
  return product


def wire(op, devices):
  kind = op.code.removesuffix("-start")
  received = size(op.shape)
  if op.code.endswith("-start") and kind in ("all-gather", "collective-permute"):
    received //= 2  # the shape includes operand and result
  if kind == "collective-permute":
    pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", op.rest)
    pairs = re.findall(r"\{?([0-9]+),([0-9]+)", pairs[1] if pairs else "")
    return received * sum(a != b for a, b in pairs) / devices
  group = group_size(op, devices)
  if kind == "all-reduce":
    return 2 * received * (group - 1) / group
  return received * (group - 1) if kind == "reduce-scatter" else received * (group - 1) / group


def behind_copies(computation, name):
  op = computation.get(name)
  while op is not None and op.code in ("copy", "bitcast"):
    op = computation.get(op.operands[0])
  return op


def integer(computation, name):
  """The value of an integer constant, also through copies; None."""
  op = behind_copies(computation, name)
  found = re.match(r"(-?[0-9]+)\)", op.rest) if op is not None and op.code == "constant" else None
  return int(found[1]) if found else None


class Counter:

  def __init__(self, text, devices):
    self.computations, self.entry = parse(text)
    self.devices = devices
    self.kinds = collections.Counter()

  def limit(self, loop, computation, name, condition):
    """The constant that a loop's counter is compared with; the loop may carry it."""
    op = condition.get(name)
    if op is None or op.code != "get-tuple-element":
      return integer(condition, name)
    outer = self.computations[computation]
    start = behind_copies(outer, loop.operands[0])
    return integer(outer, start.operands[int(op.attribute("index"))]) if start.code == "tuple" else None

  def rounds(self, loop, computation):
    known = re.search(r'known_trip_count":\{"n":"([0-9]+)"', loop.rest)
    if known:
      return int(known[1])
    condition = self.computations[loop.attribute("condition")]
    root = next(op for op in condition.values() if op.is_root)
    if root.code not in ("compare", "fusion") or len(root.operands) != 2:
      return 1
    limit = self.limit(loop, computation, root.operands[1], condition)
    return 1 if limit is None else limit  # counters of scans begin at 0

  def visit(self, computation, times):
    total = 0
    for op in self.computations[computation].values():
      kind = op.code.removesuffix("-start")
      if kind in COLLECTIVES:
        total += self.note(kind, wire(op, self.devices), times)
      elif op.code == "custom-call" and "minipod.exchange" in op.rest:
        total += self.note("exchange", size(op.shape), times)  # at most
      elif op.code == "while":
        rounds = self.rounds(op, computation)
        total += self.visit(op.attribute("body"), times * rounds)
      elif op.code == "conditional":
        names = re.search(r"branch_computations=\{([^}]*)\}", op.rest)
        names = re.findall(r"%?([\w.\-]+)", names[1]) if names else [
            op.attribute("true_computation"), op.attribute("false_computation")]
        total += max(self.visit(name, times) for name in names)
      elif op.code == "call":
        total += self.visit(op.attribute("to_apply"), times)
    return total

  def note(self, kind, count, times):
    self.kinds[kind] += count * times
    return count * times


def count(text, devices):
  """Bytes per device, and the same by kind of collective."""
  counter = Counter(text, devices)
  return counter.visit(counter.entry, 1), dict(counter.kinds)
