"""Which instructions of an optimized HLO text are the same kernel: libtpu writes code for one of them."""

import re

NAMES = re.compile(r"(metadata|backend_config|frontend_attributes|sharding|origin)=")
CALLED = re.compile(r"(calls|to_apply|condition|body|branch_computations)=(%?[\w.\-]+|\{[^}]*\})")


def plain(attributes):
  """Attributes without names and notes."""
  kept = NAMES.split(attributes)[0]
  return CALLED.sub("", kept).strip(" ,")


def signature_of_computation(module, name):
  places, lines = {}, []
  for op in module.body(name).values():
    places[op.name] = len(places)
    operands = [places.get(operand, -1) for operand in op.operands]
    given = op.raw if op.opcode in ("constant", "parameter") else ""
    inner = signature_of_computation(module, op.called("calls")) if op.opcode == "fusion" else ()
    lines.append((op.opcode, op.shape, tuple(operands), given, plain(op.attributes), inner))
  return tuple(lines)


def signature(module, body, op):
  """Equal for instructions of equal code: shapes and layouts of operands and result, attributes, fused computation."""
  shapes = tuple(body[name].shape for name in op.operands if name in body)
  inner = signature_of_computation(module, op.called("calls")) if op.opcode == "fusion" else ()
  return op.opcode, op.shape, shapes, plain(op.attributes), inner


def signatures(module):
  """Name of an instruction outside fusions -> its signature."""
  fused = {op.called("calls") for body in module.computations.values() for op in body.values() if op.opcode == "fusion"}
  return {op.name: signature(module, body, op) for name, body in module.computations.items() if name not in fused
          for op in body.values()}
