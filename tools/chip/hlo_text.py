"""Reads XLA's optimized HLO text: computations, instructions, shapes with their layouts.

Knows neither chips nor costs.  What it does not parse it leaves out: other tools ask for opcodes that they know.
"""

import collections
import math
import re

WIDTH = {"pred": 1, "s4": .5, "u4": .5, "s2": .25, "u2": .25, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2,
         "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16, "token": 0}
COLLECTIVES = ("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "ragged-all-to-all",
               "collective-broadcast")
# Instructions that move and compute nothing.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
        "opt-barrier", "domain", "add-dependency"}
FREE_CALLS = {"ConcatBitcast", "AllocateBuffer", "AssumeGatherIndicesInBound", "Sharding", "SPMDShardToFullShape",
              "SPMDFullToShardShape"}
SAME_ELEMENTS = ("bitcast", "copy", "convert", "reshape")  # what a value is followed through to its source

SHAPE = re.compile(r"([a-z][a-z0-9]*)\[([\d,<=]*)\](\{[^{}]*\})?")
INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{\s*$")


def width(dtype):
  """Bytes of an element."""
  if dtype.startswith("f8"):
    return 1
  return 0.5 if dtype.startswith("f4") else WIDTH.get(dtype, 4)


def in_hbm(layout):
  """S(n) with n > 0 is VMEM, SMEM or a register."""
  return not (layout and re.search(r"S\([1-9]\)", layout))


def padded(sizes, layout):
  """Dimensions with the minor ones rounded up to whole tiles, T(8,128)."""
  tile = re.search(r"\{([\d,]*):[^T{}]*T\(([\d,]+)\)", layout or "")
  if tile and sizes:
    minor = [int(d) for d in tile.group(1).split(",") if d]
    for d, t in zip(minor, reversed([int(t) for t in tile.group(2).split(",")])):
      sizes[d] = -(-sizes[d] // t) * t
  return sizes


def size_of(shape, hbm_only):
  """Bytes that a shape takes in memory, tuples summed up."""
  total = 0
  for dtype, dims, layout in SHAPE.findall(shape):
    if hbm_only and not in_hbm(layout):
      continue
    sizes = [int(d) for d in dims.replace("<=", "").split(",") if d]
    total += math.prod(padded(sizes, layout)) * width(dtype)
  return int(total)


def closing(text, opened, depth=0):
  """Where the bracket that `opened` opens is closed."""
  for i, ch in enumerate(text):
    depth += (ch in opened) - (ch in opened.translate(str.maketrans("({[", ")}]")))
    if depth == 0:
      return i
  return len(text)


def split_instruction(text):
  """'shape opcode(operands), attributes' -> shape, opcode, operands, attributes"""
  if text.startswith("("):
    end = closing(text, "(")
    shape, rest = text[:end + 1], text[end + 2:]
  else:
    shape, _, rest = text.partition(" ")
  opcode, _, rest = rest.partition("(")
  end = closing(rest, "({", depth=1)
  return shape, opcode, rest[:end], rest[end + 1:]


class Instruction:
  """A line of a computation.  `raw` is the text of its operands, which for a constant is its value."""
  __slots__ = ("name", "shape", "opcode", "operands", "attributes", "root", "raw")

  def __init__(self, match):
    self.root, self.name = bool(match.group(1)), match.group(2)
    self.shape, self.opcode, self.raw, self.attributes = split_instruction(match.group(3))
    self.operands = re.findall(r"%([\w.\-]+)", self.raw)

  def called(self, key):
    """Name of the computation that an attribute names, or None."""
    found = re.search(key + r"=%?([\w.\-]+)", self.attributes)
    return found.group(1) if found else None

  def attribute(self, pattern):
    found = re.search(pattern, self.attributes)
    return found.group(1) if found else None

  def short_shape(self):
    return re.sub(r"\{[^{}]*\}", "", self.shape)[:80]


def parse(text):
  """Name of the entry computation, and name -> (name -> Instruction) in the order of the schedule."""
  computations, entry, current = {}, None, None
  for line in text.splitlines():
    head = HEAD.match(line)
    if head:
      current = computations.setdefault(head.group(2), {})
      entry = head.group(2) if head.group(1) else entry
    elif current is not None:
      match = INSTRUCTION.match(line)
      if match:
        op = Instruction(match)
        current[op.name] = op
      elif line.startswith("}"):
        current = None
  return entry, computations


class Module:
  """The computations of a text, and what is asked of them."""

  def __init__(self, text):
    self.entry, self.computations = parse(text)
    self.inside_memo = {}

  def body(self, name):
    return self.computations.get(name or "", {})

  def root(self, name):
    return next((op for op in self.body(name).values() if op.root), None)

  def inside(self, name):
    """Opcodes of a fused computation and of those in it, with their numbers."""
    if name not in self.inside_memo:
      self.inside_memo[name] = out = collections.Counter()
      for op in self.body(name).values():
        out[op.opcode] += 1
        if op.opcode == "fusion":
          out.update(self.inside(op.called("calls")))
    return self.inside_memo[name]


def source(body, name):
  """The instruction whose elements a value has."""
  op = body.get(name)
  while op is not None and op.opcode in SAME_ELEMENTS and op.operands:
    op = body.get(op.operands[0])
  return op
