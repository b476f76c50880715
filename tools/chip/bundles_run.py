"""Runs the scalar instructions of a kernel that decide its branches, to count how often each block of bundles runs."""

import dataclasses
import re

import bundles_text

DELAY = 4  # bundles after a branch that run before it is taken
WAIT = "dma.done.wait"
LIMIT = 20_000_000  # blocks: a kernel that runs more is not counted
TARGET = re.compile(r"target = \$region(\d+)")
SPILL = re.compile(r"\[smem:\[#(allocation\d+_spill)(?: \+ (\S+?))?\]\]")
NUMBER = re.compile(r"-?\d+$")
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
BINARY = {"sadd": "+", "ssub": "-", "smul": "*", "sand": "&", "sor": "|", "sxor": "^"}
LOGIC = {"pand": "{0} and {1}", "por": "{0} or {1}", "pnand": "not ({0} and {1})", "pnor": "not ({0} or {1})",
         "pxor": "bool({0}) != bool({1})", "pneg": "not {0}"}
HELPERS = {"wrap": lambda x: (x + 2**31) % 2**32 - 2**31, "unsigned": lambda x: x % 2**32}


class TooLong(Exception):
  """A kernel runs more blocks than LIMIT."""


@dataclasses.dataclass
class Branch:
  at: int  # bundle
  target: int  # bundle
  guard: tuple | None


@dataclasses.dataclass
class Block:
  first: int
  last: int  # the bundle after it
  branch: Branch | None = None


# ---- blocks ----

def branches_of(bundles):
  """The branches; one to a region that has no mark ends the kernel."""
  where = {region: i for i, bundle in enumerate(bundles) for region in bundle.regions}
  found = []
  for i, bundle in enumerate(bundles):
    for slot in bundle.slots:
      if slot.opcode.startswith("sbr"):
        region = int(TARGET.search(slot.text).group(1))
        found.append(Branch(i, where.get(region, len(bundles) - 1), slot.guard))
  return found


def blocks_of(bundles):
  branches = branches_of(bundles)
  end = len(bundles)
  edges = {0, end} | {b.target for b in branches} | {min(end, b.at + 1 + DELAY) for b in branches}
  edges = sorted(edges)
  blocks = [Block(a, b) for a, b in zip(edges, edges[1:])]
  for branch in branches:
    after = min(end, branch.at + 1 + DELAY)
    next(block for block in blocks if block.last == after).branch = branch
  return blocks


# ---- values ----

class Values:
  """Variables of a kernel: values that a phi joins share a register, and so a variable."""

  def __init__(self, slots):
    self.parent, self.definitions = {}, {}
    for slot in slots:
      if slot.opcode == "sphi":
        for name in slot.reads():
          self.parent[self.of(name)] = self.of(slot.name)
    for slot in slots:
      self.definitions.setdefault(self.of(written(slot) or slot.name), []).append(slot)

  def of(self, name):
    while name in self.parent and self.parent[name] != name:
      name = self.parent[name]
    return name

  def reads(self, slot):
    spilled = SPILL.search(slot.text) if slot.opcode == "sld" else None
    names = [spill_name(spilled)] if spilled else slot.reads()
    return {self.of(name) for name in names}

  def needed(self, names):
    """The variables that these are computed from, themselves included."""
    found, todo = set(), {self.of(name) for name in names}
    while todo:
      name = todo.pop()
      found.add(name)
      for slot in self.definitions.get(name, ()):
        todo |= self.reads(slot) - found
    return found

  def unknown(self, names):
    """Those of the variables that depend on data outside the text."""
    bad = {n for n in names if n not in self.definitions
           or any(slot.opcode != "sphi" and expression(slot, str) is None for slot in self.definitions[n])}
    while True:
      more = {n for n in names - bad if any(self.reads(slot) & bad for slot in self.definitions.get(n, ()))}
      if not more:
        return bad
      bad |= more


def spill_name(match):
  return f"{match.group(1)}_{match.group(2) or 0}"


def written(slot):
  """The spill slot that a scalar store writes."""
  found = SPILL.search(slot.text) if slot.opcode == "sst" else None
  return spill_name(found) if found else None


def operand(text, name):
  """A Python expression for an operand, or None."""
  if text.startswith("%"):
    return name(text[1:])
  return str(HELPERS["wrap"](int(text))) if NUMBER.match(text) else None


def expression(slot, name):
  """A Python expression for what a scalar instruction computes; None for what is not known."""
  parts = [operand(part, name) for part in slot.operands()]
  opcode, _, kind = slot.opcode.partition(".")
  if opcode == "sld":
    spilled = SPILL.search(slot.text)
    return name(spill_name(spilled)) if spilled else None
  if opcode == "sst" and written(slot):
    return operand(slot.operands()[-1].split()[-1], name)
  if None in parts or not parts:
    return None
  if opcode in ("smov", "sphi", "smovs"):
    return parts[0]
  if opcode == "scalar_select" and len(parts) == 3:
    return f"({parts[1]} if {parts[0]} else {parts[2]})"
  if opcode in LOGIC:
    return f"({LOGIC[opcode].format(*parts)})"
  if opcode == "scmp":
    test, sign = kind.split(".")[:2]
    parts = [f"unsigned({p})" for p in parts] if sign.startswith("u") else parts
    return f"({parts[0]} {COMPARE[test]} {parts[1]})"
  return arithmetic(opcode, parts)


def arithmetic(opcode, parts):
  if opcode in BINARY:
    return f"wrap({parts[0]} {BINARY[opcode]} {parts[1]})"
  if opcode == "sshll":
    return f"wrap({parts[0]} << ({parts[1]} & 31))"
  if opcode == "sshrl":
    return f"wrap(unsigned({parts[0]}) >> ({parts[1]} & 31))"
  if opcode == "sshra":
    return f"({parts[0]} >> ({parts[1]} & 31))"
  if opcode == "smulhi":
    return f"wrap(unsigned({parts[0]}) * unsigned({parts[1]}) >> 32)"
  if opcode in ("smin", "smax"):
    return f"{opcode[1:]}({parts[0]}, {parts[1]})"
  return None


# ---- the kernel as a program ----

class Kernel:
  """A kernel whose scalar code can run.  `unsure` lists its branches that depend on data, as indices of blocks."""

  def __init__(self, bundles):
    self.bundles, self.blocks, self.run = bundles, blocks_of(bundles), None
    self.values = Values([slot for bundle in bundles for slot in bundle.slots])
    guards = [b.branch.guard[1] for b in self.blocks if b.branch and b.branch.guard]
    guards += [slot.guard[1] for bundle in bundles for slot in bundle.slots if slot.opcode == WAIT and slot.guard]
    needed = self.values.needed(guards)
    self.lost = self.values.unknown(needed)
    self.kept = needed - self.lost
    self.unsure = [i for i, b in enumerate(self.blocks) if self.is_unsure(b)]

  def is_unsure(self, block):
    return bool(block.branch and block.branch.guard and self.values.of(block.branch.guard[1]) in self.lost)

  def loops(self):
    """Blocks at whose ends a loop goes back, in the order in which the loops begin."""
    back = [i for i, b in enumerate(self.blocks) if b.branch and b.branch.target <= b.branch.at]
    return sorted(back, key=lambda i: (self.blocks[i].branch.target, -i))

  def counts(self, trips=None, short=False):
    """How often each block runs, and how often one waits for a DMA.

    `trips`: block at whose end an unsure loop goes back -> turns.  `short`: skip regions whose branch depends on data.
    """
    self.run = self.run or program(self)
    return self.run(trips or {}, short)

  def name(self, value):
    return "v_" + re.sub(r"\W", "_", self.values.of(value))


def assignments(kernel, bundle):
  """Python for what a bundle does to the variables that decide branches: all reads before all writes."""
  left, right = [], []
  for slot in bundle.slots:
    target = kernel.values.of(written(slot) or slot.name)
    if target not in kernel.kept or slot.opcode == "sphi":
      continue
    value, old = expression(slot, kernel.name), kernel.name(target)
    if slot.guard:
      test = ("" if slot.guard[0] else "not ") + kernel.name(slot.guard[1])
      other = operand(slot.otherwise.strip(), kernel.name) if slot.otherwise else old
      value = f"({value}) if {test} else {other}"
    left.append(old)
    right.append(value)
  return [f"{', '.join(left)}, = {', '.join(right)},"] if left else []


def waits(kernel, bundle):
  """Python that counts a bundle's waits for DMAs; one whose predicate depends on data counts."""
  out = []
  for slot in bundle.slots:
    if slot.opcode == WAIT:
      known = slot.guard and kernel.values.of(slot.guard[1]) in kernel.kept
      test = f" if {'' if slot.guard[0] else 'not '}{kernel.name(slot.guard[1])} else 0" if known else ""
      out.append(f"waited += 1{test}")
  return out


def code_of(kernel, i, block):
  """Python lines of a block: its assignments, and where it goes next."""
  lines, branch = [f"counts[{i}] += 1"], block.branch
  test = None
  for at in range(block.first, block.last):
    if branch and branch.at == at and branch.guard and i not in kernel.unsure:
      lines.append(f"taken = {'' if branch.guard[0] else 'not '}{kernel.name(branch.guard[1])}")
      test = "taken"
    lines += waits(kernel, kernel.bundles[at]) + assignments(kernel, kernel.bundles[at])
  if branch is None:
    return [*lines, f"b = {i + 1}"]
  target = next((k for k, other in enumerate(kernel.blocks) if other.first == branch.target), len(kernel.blocks))
  if branch.guard is None:
    return [*lines, f"b = {target}"]
  if test:
    return [*lines, f"b = {target} if taken else {i + 1}"]
  if target <= i:  # a loop whose end depends on data
    return [*lines, f"turns[{i}] = turns.get({i}, 0) + 1",
            f"b = {target} if turns[{i}] < trips.get({i}, 1) else {i + 1}",
            f"if b == {i + 1}: turns[{i}] = 0"]
  return [*lines, f"b = {target} if short else {i + 1}"]


def program(kernel):
  """The function of `counts`."""
  size = len(kernel.blocks)
  names = sorted({kernel.name(value) for value in kernel.kept})
  out = ["def run(trips, short):", f"  counts, turns, b, steps, waited = [0] * {size}, {{}}, 0, 0, 0"]
  out += [f"  {name} = 0" for name in names]
  out += [f"  while b < {size}:", "    steps += 1", "    if steps > LIMIT: raise TooLong"]
  out += tree(kernel, 0, size, "    ")
  out.append("  return counts, waited")
  scope = {**HELPERS, "LIMIT": LIMIT, "TooLong": TooLong}
  exec("\n".join(out), scope)
  return scope["run"]


def tree(kernel, first, last, indent):
  """Chooses the block by halves: kernels have up to a thousand."""
  if last - first == 1:
    return [indent + line for line in code_of(kernel, first, kernel.blocks[first])]
  middle = (first + last) // 2
  return [f"{indent}if b < {middle}:", *tree(kernel, first, middle, indent + " "),
          f"{indent}else:", *tree(kernel, middle, last, indent + " ")]


def kernel_of(text):
  return Kernel(bundles_text.parse(text))
