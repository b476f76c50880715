"""Bytes of HBM that an instruction of an optimized HLO text reads and writes.

Operands and results that the compiler keeps in VMEM (S(1)) count for nothing.  If an instruction reads only slices of
an operand, the slices count; if it updates an operand in place, the update counts.
"""

from hlo_text import COLLECTIVES, SHAPE, SAME_ELEMENTS, size_of, source

SLICES = ("dynamic-slice", "slice", "gather")
UPDATES = ("dynamic-update-slice", "scatter")


def update_in(module, where, end):
  """Bytes of the update that makes a value, and the name of the instruction that it updates; None of other values."""
  real = source(where, end.name) if end.opcode in SAME_ELEMENTS else end
  if real is None:
    return None
  if real.opcode in UPDATES and len(real.operands) > 1:
    piece = where.get(real.operands[1 if real.opcode == "dynamic-update-slice" else len(real.operands) - 1])
    base = source(where, real.operands[0])
    return size_of(piece.shape, False) if piece is not None else 0, base.name if base is not None else None
  if real.opcode != "fusion":
    return None
  inner = module.body(real.called("calls"))
  found = update_in(module, inner, module.root(real.called("calls")))
  if found is None or found[1] is None or inner[found[1]].opcode != "parameter":
    return found and (found[0], None)
  base = source(where, real.operands[int(inner[found[1]].raw)])
  return found[0], base.name if base is not None else None


def written(module, op, body, fused):
  """Bytes of the results, and the names of the operands that they update in place."""
  total, updated = 0, set()
  root = module.root(op.called("calls")) if fused else None
  where = fused if root is not None else body
  ends = [op] if root is None else [fused.get(n) for n in root.operands] if root.opcode == "tuple" else [root]
  for end in ends:
    update = update_in(module, where, end) if end is not None else None
    if update is not None:
      total += min(update[0], size_of(end.shape, True))
      updated |= {update[1]}
    elif end is not None:
      total += size_of(end.shape, True)
  return total, updated


def sliced(module, body, name):
  """Bytes of the slices through which instructions of a body read a value, also in nested fusions; None: all of it."""
  total, users = 0, [user for user in body.values() if name in user.operands]
  for user in users:
    part = None
    if user.opcode in SLICES:
      part = size_of(user.shape, False)
    elif user.opcode in ("bitcast", "copy"):
      part = sliced(module, body, user.name)
    elif user.opcode == "fusion":
      inner, root = module.body(user.called("calls")), module.root(user.called("calls"))
      at = user.operands.index(name)
      parameter = next((p.name for p in inner.values() if p.opcode == "parameter" and int(p.raw) == at), None)
      is_same = root is not None and source(inner, root.name) is inner.get(parameter)
      part = sliced(module, body, user.name) if is_same else sliced(module, inner, parameter)
    if part is None:
      return None
    total += part
  return total if users else None


def operand_bytes(module, op, i, shape, fused, parameter, updated):
  """Bytes that an instruction reads of its operand `i`."""
  whole = size_of(shape, True)
  if op.opcode in SLICES and i == 0:
    whole = min(whole, size_of(op.shape, False)) if whole else 0
  if op.opcode in UPDATES and i == 0:
    whole = 0
  if parameter is None:
    return whole
  if parameter in updated:
    return 0
  part = sliced(module, fused, parameter) if whole else None
  return whole if part is None else min(whole, part)


def touched(module, op, body):
  """Bytes of HBM that an instruction of `body` reads and writes."""
  fused = module.body(op.called("calls")) if op.opcode == "fusion" else {}
  parameters = {int(p.raw): p.name for p in fused.values() if p.opcode == "parameter"}
  total, updated = written(module, op, body, fused)
  seen = set()
  for i, name in enumerate(op.operands):
    operand = body.get(name)
    if operand is not None and name not in seen:
      seen.add(name)
      total += operand_bytes(module, op, i, operand.shape, fused, parameters.get(i), updated)
  return total


def is_prefetched_before(op, body):
  """Whether the copy of an argument at the start is what the previous run of the program prefetched at its end.

  The program then copies the argument at its own end, for the next run; no op reads that copy.  The one at the start only replaces a
  prefetch that failed (XLA's HloCopyStartInstruction), so a run moves the bytes once.
  """
  if "cross_program_prefetch_index" not in op.attributes:
    return False
  read = {name for other in body.values() for name in other.operands}
  again = {other.name for other in body.values() if other.opcode == op.opcode and other.operands == op.operands} - {op.name}
  return any(set(other.operands) & again and other.name not in read for other in body.values())


def moved(module, op, body):
  """The same, where starts and ends of asynchronous copies count once."""
  if op.opcode in ("async-start", "async-update") or is_prefetched_before(op, body):
    return 0
  if op.opcode == "async-done" and not any(c in op.name for c in COLLECTIVES):
    return 2 * size_of(op.shape, True)  # a gather or scatter of a SparseCore: no less than its result, read and written
  if op.opcode.endswith("-start"):
    if "slice-start" not in op.opcode:
      return size_of(op.shape, True)  # source and destination are in the shape
    piece = [m.group(0) for m in SHAPE.finditer(op.shape)][-2]  # ((source), slice, flag)
    return size_of(piece, False) + size_of(piece, True)
  if op.opcode.endswith("-done") or op.name.startswith("async-collective"):
    return 0
  return touched(module, op, body)
