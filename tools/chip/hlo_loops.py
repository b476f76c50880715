"""How often a `while` of an optimized HLO text runs its body, where the text shows it."""

import math
import re


def constant(body, name, depth=0):
  """The value of an integer constant, through copies; None for anything else."""
  op = body.get(name)
  if op is None or depth > 6:
    return None
  if op.opcode == "constant":
    return int(op.raw) if re.fullmatch(r"-?\d+", op.raw.strip()) else None
  if op.opcode in ("copy", "bitcast", "convert") and op.operands:
    return constant(body, op.operands[0], depth + 1)
  return None


def slot(body, name, depth=0):
  """Which element of the loop's tuple a value is."""
  op = body.get(name)
  if op is None or depth > 6:
    return None
  if op.opcode == "get-tuple-element":
    return int(op.attribute(r"index=(\d+)"))
  if op.opcode in ("copy", "bitcast") and op.operands:
    return slot(body, op.operands[0], depth + 1)
  return None


def condition(module, loop):
  """The comparison that ends a loop: its two sides, its attributes, and the instructions around it."""
  cond = module.body(loop.called("condition"))
  test = module.root(loop.called("condition"))
  if test is None:
    return None
  if test.opcode == "compare":
    return test.operands, test.attributes, cond
  if test.opcode != "fusion":
    return None
  fused = module.body(test.called("calls"))
  root = module.root(test.called("calls"))
  if root is None or root.opcode != "compare":
    return None
  given = {p.name: test.operands[int(p.raw)] for p in fused.values() if p.opcode == "parameter"}
  return [given.get(n, n) for n in root.operands], root.attributes, {**fused, **cond}


def step_of(module, loop, k, start, body):
  """By how much a turn changes element k of the loop's tuple; 1 where the text does not show it."""
  inner = module.body(loop.called("body"))
  root = module.root(loop.called("body"))
  step = inner.get(root.operands[k])
  while step is not None and step.opcode in ("copy", "bitcast"):
    step = inner.get(step.operands[0])
  if step is not None and step.opcode == "fusion":
    fused = module.body(step.called("calls"))
    adds = [op for op in fused.values() if op.opcode == "add"]
    if len(adds) == 1:
      step, inner = adds[0], {**inner, **fused}
  if step is None or step.opcode != "add":
    return 1
  by = 1
  for name in step.operands:
    value = constant(inner, name)
    other = slot(inner, name) if value is None else None
    if other is not None and other != k and other < len(start.operands):
      value = constant(body, start.operands[other])
    by = value or by
  return by


def count(first, bound, by, direction):
  if direction in ("LT", "NE") and by > 0:
    return max(0, math.ceil((bound - first) / by))
  if direction == "LE" and by > 0:
    return max(0, (bound - first) // by + 1)
  if direction in ("GT", "GE") and by < 0:
    return max(0, math.ceil((first - bound + (direction == "GE")) / -by))
  return None


FLIPPED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def trips(module, loop, body):
  """How often the body of `loop`, an instruction of `body`, runs; None where the text does not show it."""
  known = loop.attribute(r'known_trip_count"?:\{"n":"?(\d+)')
  if known:
    return int(known)
  start, found = body.get(loop.operands[0]), condition(module, loop)
  root = module.root(loop.called("body"))
  if found is None or start is None or start.opcode != "tuple" or root is None:
    return None
  sides, attributes, cond = found

  def side(name):
    """Value at the start, and the element of the tuple that it is; None where it is a constant."""
    value = constant(cond, name)
    if value is not None:
      return value, None
    k = slot(cond, name)
    known = k is not None and k < len(start.operands)
    return (constant(body, start.operands[k]) if known else None), k
  (first, k), (bound, other) = side(sides[0]), side(sides[1])
  direction = re.search(r"direction=(\w+)", attributes).group(1)
  if k is None:
    (first, k), (bound, other), direction = (bound, other), (first, k), FLIPPED.get(direction)
  if first is None or bound is None or k is None or k >= len(root.operands):
    return None
  return count(first, bound, step_of(module, loop, k, start, body), direction)
