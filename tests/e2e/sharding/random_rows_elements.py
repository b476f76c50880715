"""Elementwise ops of random programs, and ops that change shapes."""

import numpy as np

from random_program import integer, ints
from random_rows import row


@row(*(f"stablehlo.{name}" for name in (
    "abs cbrt ceil cosine exponential exponential_minus_one floor is_finite log log_plus_one logistic "
    "negate round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh").split()))
def unary(p, name):
  shape = p.shape()
  kinds = ["elementwise"] * len(shape)
  p.exact = False
  dtype = "i1" if name.endswith("is_finite") else "f32"
  p.one(name, [p.operand(shape, "f32", kinds)], shape, dtype, kinds=kinds)


@row("stablehlo.not", "stablehlo.popcnt", "stablehlo.count_leading_zeros")
def integer_unary(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "i32")], shape, "i32")


@row(*(f"stablehlo.{name}" for name in (
    "add subtract multiply divide maximum minimum power remainder atan2").split()))
def binary(p, name):
  shape = p.shape()
  kinds = ["elementwise"] * len(shape)
  p.exact = False
  p.one(name, [p.operand(shape, "f32", kinds), p.operand(shape, "f32", kinds)], shape, "f32",
        kinds=kinds)


@row(*(f"stablehlo.{name}" for name in
       "and or xor shift_left shift_right_arithmetic shift_right_logical".split()))
def integer_binary(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "i32"), p.operand(shape, "i32")], shape, "i32")


@row("stablehlo.complex")
def complex_(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32"), p.operand(shape, "f32")], shape, "complex<f32>")


@row("stablehlo.real", "stablehlo.imag")
def real(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "complex<f32>")], shape, "f32")


@row("stablehlo.compare")
def compare(p, name):
  shape = p.shape()
  way = p.pick("EQ", "NE", "GE", "GT", "LE", "LT")
  p.one(name, [p.operand(shape, "i32"), p.operand(shape, "i32")], shape, "i1",
        {"comparison_direction": f"#stablehlo<comparison_direction {way}>"})


@row("stablehlo.select")
def select(p, name):
  shape = p.shape()
  pred = p.operand(p.pick(shape, ()), "i1")
  p.one(name, [pred, p.operand(shape, "f32"), p.operand(shape, "f32")], shape, "f32")


@row("stablehlo.clamp")
def clamp(p, name):
  shape = p.shape()
  bound = p.pick(shape, ())
  p.one(name, [p.operand(bound, "f32", high=0), p.operand(shape, "f32"), p.operand(bound, "f32", low=1)],
        shape, "f32")


@row("stablehlo.convert")
def convert(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "i32")], shape, p.pick("f32", "i8", "i1", "ui32"))


@row("stablehlo.reduce_precision")
def reduce_precision(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32")], shape, "f32",
        {"exponent_bits": integer(5, 32), "mantissa_bits": integer(3, 32)})


@row("stablehlo.map")
def map_(p, name):
  shape = p.shape()
  body = p.reducer("stablehlo.multiply", "f32")
  p.one(name, [p.operand(shape, "f32"), p.operand(shape, "f32")], shape, "f32",
        {"dimensions": ints(range(len(shape)))}, [body])


# --- shapes ---

@row("stablehlo.bitcast_convert")
def bitcast_convert(p, name):
  shape = p.shape(high=3)
  kind = p.pick("same", "wider", "narrower")
  if kind == "same":
    p.one(name, [p.operand(shape, "f32")], shape, "i32")
  elif kind == "wider":
    p.one(name, [p.operand(shape + (4,), "i8", [None] * len(shape) + ["bitcast pieces"])], shape, "i32")
  else:
    p.one(name, [p.operand(shape, "i32")], shape + (4,), "i8",
          kinds=[None] * len(shape) + ["bitcast pieces"])


@row("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
def broadcast_in_dim(p, name):
  out = p.shape(low=2, high=5)
  rank = int(p.rng.integers(0, len(out)))
  dims = sorted(p.rng.permutation(len(out))[:rank])
  shape = tuple(1 if p.rng.integers(4) == 0 else out[d] for d in dims)
  operands = [p.operand(shape, "f32", ["broadcast from"] * rank)]
  if "dynamic" in name:
    operands.append(p.constant(np.array(out), "i64"))
  kinds = ["broadcast from" if d in dims else "broadcast new" for d in range(len(out))]
  p.one(name, operands, out, "f32", {"broadcast_dimensions": ints(dims)}, kinds=kinds)


@row("stablehlo.broadcast")
def broadcast(p, name):
  new, shape = p.shape(1), p.shape(high=3)
  p.one(name, [p.operand(shape, "f32")], new + shape, "f32", {"broadcast_sizes": ints(new)})


def rotate(p, name, shape, along):
  """Joins the two halves of a value, the second one first."""
  kinds = ["rotated" if d == along else "beside concatenated" for d in range(len(shape))]
  value, at = p.operand(shape, "f32", kinds), int(p.rng.integers(0, shape[along] + 1))
  halves = []
  for start, limit in ((at, shape[along]), (0, at)):
    starts = [start if d == along else 0 for d in range(len(shape))]
    limits = [limit if d == along else n for d, n in enumerate(shape)]
    half = [b - a for a, b in zip(starts, limits)]
    halves += p.op("stablehlo.slice", [value], [(half, "f32")],
                   {"start_indices": ints(starts), "limit_indices": ints(limits),
                    "strides": ints([1] * len(shape))})
  p.one(name, halves, shape, "f32", {"dimension": integer(along)}, kinds=kinds)


@row("stablehlo.concatenate")
def concatenate(p, name):
  shape, count = list(p.shape()), int(p.rng.integers(1, 4))
  along = p.dim(len(shape))
  if p.rng.integers(3) == 0:
    rotate(p, name, shape, along)
    return
  kinds = ["concatenated" if d == along else "beside concatenated" for d in range(len(shape))]
  operands, total = [], 0
  for _ in range(count):
    own = list(shape)
    own[along] = p.size()
    total += own[along]
    operands.append(p.operand(own, "f32", kinds))
  shape[along] = total
  p.one(name, operands, shape, "f32", {"dimension": integer(along)}, kinds=kinds)


@row("stablehlo.slice", "stablehlo.real_dynamic_slice")
def slice_(p, name):
  shape = p.shape()
  start = [int(p.rng.integers(0, n)) if p.rng.integers(2) else 0 for n in shape]
  limit = [int(p.rng.integers(s, n + 1)) if p.rng.integers(2) else n for s, n in zip(start, shape)]
  stride = [p.pick(1, 1, 2) for _ in shape]
  out = [-(-(b - a) // s) for a, b, s in zip(start, limit, stride)]
  kinds = ["sliced" if o != n else "beside sliced" for o, n in zip(out, shape)]
  operand = p.operand(shape, "f32", kinds)
  if "dynamic" in name:
    operands = [operand] + [p.constant(np.array(v), "i64") for v in (start, limit, stride)]
    p.one(name, operands, out, "f32", kinds=kinds)
    return
  p.one(name, [operand], out, "f32", {"start_indices": ints(start), "limit_indices": ints(limit),
                                      "strides": ints(stride)}, kinds=kinds)


@row("stablehlo.pad", "stablehlo.dynamic_pad")
def pad(p, name):
  shape = p.shape()
  low = [int(p.rng.integers(-2, 4)) if p.rng.integers(2) else 0 for _ in shape]
  high = [int(p.rng.integers(-2, 4)) if p.rng.integers(2) else 0 for _ in shape]
  inside = [int(p.rng.integers(0, 3)) if p.rng.integers(3) == 0 else 0 for _ in shape]
  out = [n + max(n - 1, 0) * i + l + h for n, l, h, i in zip(shape, low, high, inside)]
  if min(out, default=0) < 0:
    low, high, inside, out = [1] * len(shape), [-1] * len(shape), [0] * len(shape), list(shape)
  kinds = ["padded" if l or h or i else "beside padded" for l, h, i in zip(low, high, inside)]
  operands = [p.operand(shape, "f32", kinds), p.operand((), "f32")]
  if "dynamic" in name:
    operands += [p.constant(np.array(v), "i64") for v in (low, high, inside)]
    p.one(name, operands, out, "f32", kinds=kinds)
    return
  p.one(name, operands, out, "f32",
        {"edge_padding_low": ints(low), "edge_padding_high": ints(high),
         "interior_padding": ints(inside)}, kinds=kinds)


@row("stablehlo.reverse")
def reverse(p, name):
  shape = p.shape()
  dims = [d for d in range(len(shape)) if p.rng.integers(2)]
  kinds = ["reversed" if d in dims else "beside reversed" for d in range(len(shape))]
  p.one(name, [p.operand(shape, "f32", kinds)], shape, "f32", {"dimensions": ints(dims)}, kinds=kinds)


@row("stablehlo.transpose")
def transpose(p, name):
  shape = p.shape(high=5)
  order = p.rng.permutation(len(shape))
  kinds = ["transposed"] * len(shape)
  p.one(name, [p.operand(shape, "f32", kinds)], [shape[d] for d in order], "f32",
        {"permutation": ints(order)}, kinds=kinds)


@row("stablehlo.reshape", "stablehlo.dynamic_reshape")
def reshape(p, name):
  shape = p.shape(high=5)
  left, out = int(np.prod(shape)), []
  while left > 1 and len(out) < 4:
    divisors = [d for d in range(1, left + 1) if left % d == 0]
    out.append(int(p.rng.choice(divisors)))
    left //= out[-1]
  out.append(left)
  kinds = ["reshaped"] * 5
  operands = [p.operand(shape, "f32", kinds)]
  if "dynamic" in name:
    operands.append(p.constant(np.array(out), "i64"))
  p.one(name, operands, out, "f32", kinds=kinds)


@row("stablehlo.iota", "stablehlo.dynamic_iota")
def iota(p, name):
  shape = p.shape()
  along = p.dim(len(shape))
  operands = [p.constant(np.array(shape), "i64")] if "dynamic" in name else []
  kinds = ["counted" if d == along else "beside counted" for d in range(len(shape))]
  p.one(name, operands, shape, p.pick("i32", "f32", "ui8"), {"iota_dimension": integer(along)},
        kinds=kinds)


@row("stablehlo.constant")
def constant(p, name):
  shape = p.shape()
  value = p.constant(np.arange(np.prod(shape)).reshape(shape), "i32")
  p.result(value)


@row("stablehlo.get_dimension_size")
def get_dimension_size(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32")], (), "i32", {"dimension": integer(p.dim(len(shape)))})


@row("stablehlo.optimization_barrier")
def optimization_barrier(p, name):
  shape = p.shape()
  a, b = p.operand(shape, "f32"), p.operand(shape, "i32")
  for value in p.op(name, [a, b], [(shape, "f32"), (shape, "i32")]):
    p.result(value)
