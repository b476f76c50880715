"""What XLA's tables of measured matmuls say of a matmul of cuBLASLt: an interval of nanoseconds.

The tables have FLOP/s of 375 shapes in five types: batches of 1 to 4, and m, n, k of 256 to 4,096 in powers of two.  The
compiler takes the mean of the neighbours' rates; outside of that range it takes the rate at its edge.  A longer matmul
takes no less time and has no lower rate, so an edge bounds the time on both sides.
"""

import math
import re
import typing

from hlo_text import SHAPE, size_of

LEAST, MOST, BATCHES = 256, 4096, 4
PEAK = {"bf16": 1, "f32": 0.5, "f8": 2}  # of the dense peak in bf16
# Rates that are means of the matmul and the transpose of an operand (configs/chips/h100.yaml); an H200 has H100's.
MIXED = {("h100", "f8"), ("h200", "f8")}


class Matmul(typing.NamedTuple):
  types: tuple  # of both operands and the result
  exact: bool  # operand_precision above the default
  batch: int
  m: int
  n: int
  k: int


def type_and_sizes(shape):
  dtype, sizes, _ = SHAPE.search(shape).groups()
  return re.match(r"f8|\w+", dtype).group(), [int(d) for d in sizes.split(",") if d]


def dimensions(op, key):
  return [int(d) for d in re.findall(r"\d+", op.attribute(rf'"{key}_dimensions":\[([^\]]*)\]') or "")]


def of(op, body):
  """The Matmul of a custom call, None of others."""
  if op.opcode != "custom-call" or "__cublas$lt" not in op.attributes:
    return None
  (left, lhs), (right, rhs) = (type_and_sizes(body[name].shape) for name in op.operands[:2])
  batch, contracted = dimensions(op, "lhs_batch"), dimensions(op, "lhs_contracting")
  b, k = (math.prod(lhs[d] for d in of) for of in (batch, contracted))
  exact = bool(re.search(r'"operand_precision":\[[^\]]*"HIGH', op.attributes))
  return Matmul((left, right, type_and_sizes(op.shape)[0]), exact, b, math.prod(lhs) // (b * k),
                math.prod(rhs) // (b * k), k)


def workspace(op):
  """Bytes of the workspace among a custom call's results."""
  return size_of(op.shape, False) - size_of(SHAPE.search(op.shape).group(), False)


def bounds(matmul, cost, chip, peak):
  """The least and the most nanoseconds, if the compiler's estimate is `cost`; None if the tables lack the types."""
  kind = matmul.types[0]
  result = "bf16" if kind == "f8" else kind
  if kind not in PEAK or matmul.types != (kind, kind, result) or matmul.exact:
    return None
  sizes = (matmul.m, matmul.n, matmul.k)
  small = math.prod(LEAST / min(LEAST, size) for size in sizes)
  large = math.prod(MOST / max(MOST, size) for size in sizes) * BATCHES / max(BATCHES, matmul.batch)
  flops = 2 * matmul.batch * math.prod(sizes)
  low = max(cost * large, flops / (PEAK[kind] * peak) * 1e9)
  return low, max(low, cost * small * (2 if (chip, kind) in MIXED else 1))
