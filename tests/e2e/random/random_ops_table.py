"""The operations of random functions, and a table of their accuracy.

The limits are in ulps: of the result for elementwise operations, of the sum of magnitudes for sums and matmuls, of the
largest magnitude for transforms and decompositions.  Both sides may differ from the exact result by their own error, so
each limit is about twice the error that XLA's and minipod's kernels promise.
"""

import dataclasses
from typing import Callable

from hypothesis import strategies as st
import ml_dtypes
import numpy as np

FLOATS = ["float32", "bfloat16", "float16"]
DTYPES = {"f": FLOATS, "i": ["int32", "int8", "uint8", "int16", "uint32"], "b": ["bool"],
          "c": ["complex64"]}
DTYPES_X64 = {"f": ["float64"], "i": ["int64", "uint64"], "c": ["complex128"], "b": []}
STYLES = ["normal", "small integers", "extreme"]


def dtypes(kinds, x64):
  named = [name for kind in kinds for name in DTYPES[kind] + (DTYPES_X64[kind] if x64 else [])]
  return [np.dtype(getattr(ml_dtypes, name, None) or name) for name in named]


def kind_of(dtype):
  """"f", "i", "b" or "c"; "" for types that functions do not use further."""
  for kind in "fibc":
    if dtype.name in DTYPES[kind] + DTYPES_X64[kind]:
      return kind
  return ""


def contents(rng, dtype, shape, style):
  kind = kind_of(dtype)
  if kind == "b":
    return rng.integers(0, 2, shape).astype(bool)
  if kind == "i":
    limits = np.iinfo(dtype)
    if style == "extreme":
      return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return rng.integers(0 if limits.min == 0 else -4, 9, shape).astype(dtype)
  if kind == "c":
    part = np.dtype("float32" if dtype == np.complex64 else "float64")
    style = "normal" if style == "extreme" else style
    return (contents(rng, part, shape, style) + 1j * contents(rng, part, shape, style)).astype(dtype)
  if style == "small integers":
    return rng.integers(-4, 5, shape).astype(dtype)
  values = rng.normal(size=shape)
  if style == "extreme":
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e4, -3e4, 1e-4, 0.5])
    values = np.where(rng.integers(0, 3, shape) == 0, special[rng.integers(0, 11, shape)],
                      values * 10.0 ** rng.integers(-3, 4, shape))
  return values.astype(dtype)


# ---- Limits ----

@dataclasses.dataclass(frozen=True)
class Limit:
  """`ulps` of a magnitude: of the expected element, or of `magnitude(operands, wanted)` if it is set.

  `double_ulps` applies to float64, if XLA's approximation is less accurate there.
  """
  ulps: float
  magnitude: Callable | None = None
  double_ulps: float | None = None

  def allowed(self, operands, wanted):
    info = ml_dtypes.finfo(part_type(wanted.dtype))
    is_double = part_type(wanted.dtype) == np.float64 and self.double_ulps is not None
    ulps = self.double_ulps if is_double else self.ulps
    if ulps == 0:
      # Each platform decides whether it flushes denormal results to zero.
      return np.full(wanted.shape, float(info.tiny))
    with np.errstate(all="ignore"):
      magnitude = np.abs(wide(wanted) if self.magnitude is None
                         else self.magnitude([wide(o) for o in operands], wide(wanted)))
      magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
    return np.broadcast_to(ulps * float(info.eps) * magnitude + float(info.tiny), wanted.shape)


EXACT = Limit(0)
# XLA's log1p of doubles has an error of up to 129 ulps between -0.5 and -0.1, minipod's of one.
LOG1P = Limit(8, double_ulps=256)


def part_type(dtype):
  return {"complex64": np.dtype("float32"), "complex128": np.dtype("float64")}.get(dtype.name, dtype)


def wide(array):
  array = np.asarray(array)
  return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def is_wrong(found, wanted, allowed):
  with np.errstate(all="ignore"):
    left, right = wide(found), wide(wanted)
    if left.dtype.kind == "c":
      parts = [(left.real, right.real), (left.imag, right.imag)]
      return np.logical_or(*(is_wrong(a, b, allowed) for a, b in parts))
    both_nan = np.isnan(left) & np.isnan(right)
    near = np.abs(left - right) <= allowed
    return ~(both_nan | (left == right) | near)


def largest(operands, wanted):
  """The largest finite magnitude among operands and results."""
  finite = [np.abs(a[np.isfinite(a)]) for a in (*operands, wanted) if a.dtype.kind in "fc"]
  return max([float(f.max()) for f in finite if f.size] + [1.0])


def summed(operands, wanted):
  """A bound of the sum of magnitudes of any element."""
  return sum(float(np.abs(o[np.isfinite(o)]).sum()) for o in operands[:1]) + 1e-30


def transformed(operands, wanted):
  """The same for the result of `transform` on its operand."""
  return summed([np.nan_to_num(operands[0], posinf=2, neginf=-2)], wanted)


def multiplied(operands, wanted):
  left, right = operands[0], operands[-1]  # one operand, if a value is multiplied by itself
  return largest([left], wanted) * largest([right], wanted) * max(left.shape or (1,))


# ---- Operations: each draws its operands and adds a step ----

def simple(kinds, limit, *expressions):
  """One operand; `expressions` are equally likely."""
  def add(draw, f):
    f.add_step(draw(st.sampled_from(expressions)), [f.pick(draw, kinds)], limit)
  return add


def pair(kinds, limit, *expressions):
  """Two operands of one type and shape."""
  def add(draw, f):
    left = f.pick(draw, kinds)
    right = f.pick(draw, kinds, lambda v: v.dtype == left.dtype, left.shape)
    if right.dtype == left.dtype:
      f.add_step(draw(st.sampled_from(expressions)), [left, right], limit)
  return add


def with_axis(kinds, limit, *expressions, least=1):
  """One operand and AXIS, one of its dimensions."""
  def add(draw, f):
    x = f.pick(draw, kinds, lambda v: len(v.shape) >= 1 and min(v.shape) >= least)
    axis = draw(st.integers(0, max(len(x.shape) - 1, 0)))
    f.add_step(draw(st.sampled_from(expressions)).replace("AXIS", str(axis)), [x], limit)
  return add


def convert(draw, f):
  x = f.pick(draw, "fib")
  to = draw(st.sampled_from(dtypes("fib", f.x64)))
  if x.kind == "f" and kind_of(to) == "i":
    limits = np.iinfo(to)  # values out of range are implementation-defined
    low, high = max(limits.min, -120), min(limits.max, 120)
    f.add_step(f"jnp.clip(jnp.nan_to_num({{0}}), {low}, {high}).astype('{to.name}')", [x], EXACT)
  else:
    f.add_step(f"{{0}}.astype('{to.name}')", [x], EXACT)


def gather(draw, f):
  x = f.pick(draw, "fibc", lambda v: len(v.shape) >= 1 and 0 not in v.shape)
  index = f.pick(draw, "i", lambda v: v.dtype == np.int32 and len(v.shape) <= 2)
  mode = draw(st.sampled_from(["clip", "fill", "wrap"]))
  axis = draw(st.integers(0, len(x.shape) - 1))
  f.add_step(f"jnp.take({{0}}, {{1}}, axis={axis}, mode='{mode}')", [x, index], EXACT)


def scatter(draw, f):
  x = f.pick(draw, "fi", lambda v: len(v.shape) >= 1 and 0 not in v.shape)
  index = f.pick(draw, "i", lambda v: v.dtype == np.int32, (3,))
  how = draw(st.sampled_from(["add", "max", "min", "set"] if x.kind == "i" else ["max", "min"]))
  if how == "set":  # it is undefined which of several writers wins, so they write the same value
    f.add_step("{0}.at[{1} % {0}.shape[0]].set(jnp.ones_like({0}[0]))", [x, index], EXACT)
  else:
    f.add_step(f"{{0}}.at[{{1}} % {{0}}.shape[0]].{how}({{0}}[:1])", [x, index], EXACT)


def reshape(draw, f):
  x = f.pick(draw, "fibc", lambda v: len(v.shape) >= 1)
  order = draw(st.permutations(range(len(x.shape))))
  low = draw(st.integers(-1, 2))
  f.add_step(draw(st.sampled_from([
      "{0}.reshape(-1)", "{0}[..., None]", f"jnp.transpose({{0}}, {tuple(order)})",
      "jnp.flip({0})", "jnp.flip({0}, 0)", "{0}[::2]", "{0}[1:]", "{0}[::-1]", "jnp.ravel({0})[::3]",
      "jnp.concatenate([{0}, {0}])", "jnp.stack([{0}, {0}], -1)", "jnp.tile({0}, 2)",
      f"lax.pad({{0}}, jnp.zeros((), {{0}}.dtype), [({low}, 1, 1)] + [(0, 0, 0)] * ({{0}}.ndim - 1))",
      "jnp.roll({0}, 1)", "jnp.repeat({0}, 2, axis=0)", "jnp.broadcast_to({0}, (2,) + {0}.shape)",
      "lax.dynamic_slice_in_dim({0}, {0}.shape[0] // 2, {0}.shape[0] // 2)",
      "jnp.triu({0})", "jnp.tril({0}, -1)", "jnp.diag({0})", "jnp.moveaxis({0}, 0, -1)"])),
             [x], EXACT)


def select(draw, f):
  x = f.pick(draw, "fi")
  y = f.pick(draw, "fi", lambda v: v.dtype == x.dtype, x.shape)
  condition = f.pick(draw, "b", shape=x.shape)
  if y.dtype == x.dtype:
    f.add_step("jnp.where({0}, {1}, {2})", [condition, x, y], EXACT)


def matmul(draw, f):
  left = f.pick(draw, "fic", lambda v: len(v.shape) in (1, 2) and 0 not in v.shape)
  size = (left.shape or (1,))[-1]
  right = f.pick(draw, "fic", lambda v: v.dtype == left.dtype and v.shape[:1] == (size,),
                 draw(st.sampled_from([(size,), (size, 3), (size, 16)])))
  expression = draw(st.sampled_from([
      "{0} @ {1}", "jnp.tensordot({0}, {1}, 1)",
      "lax.dot_general({0}, {1}, ((({0}.ndim - 1,), (0,)), ((), ())))"]))
  if right.dtype == left.dtype:
    f.add_step(expression, [left, right], Limit(2, multiplied))


def linear_algebra(draw, f):
  x = f.pick(draw, "f", lambda v: v.dtype.name in ("float32", "float64"), (4, 4))
  if x.dtype.name not in ("float32", "float64"):
    return
  tame = "jnp.clip(jnp.nan_to_num({0}), -1, 1)"
  positive = f"({tame} @ {tame}.T + 3 * jnp.eye(4, dtype={{0}}.dtype))"
  f.add_step(draw(st.sampled_from([
      f"jnp.linalg.cholesky({positive})", f"jnp.linalg.inv({positive})",
      f"jnp.linalg.solve({positive}, {tame})", f"jnp.linalg.det({positive})",
      f"jnp.linalg.eigvalsh({positive})", f"jnp.linalg.svd({positive}, compute_uv=False)",
      f"jnp.abs(jnp.linalg.qr({positive})[1])", f"jnp.linalg.slogdet({positive})[1]",
      f"jsp.linalg.lu({positive})[2]",
      f"jsp.linalg.solve_triangular({positive}, {tame}, lower=True)"])),
             [x], Limit(2000, largest))


def transform(draw, f):
  x = f.pick(draw, "fc", lambda v: len(v.shape) >= 1 and 0 not in v.shape and v.dtype.name in
             ("float32", "float64", "complex64", "complex128"))
  f.add_step(draw(st.sampled_from([
      "jnp.fft.fft(jnp.nan_to_num({0}, posinf=2, neginf=-2))",
      "jnp.fft.ifft(jnp.nan_to_num({0}, posinf=2, neginf=-2))",
      "jnp.fft.rfft(jnp.real(jnp.nan_to_num({0}, posinf=2, neginf=-2)))"])), [x],
             Limit(32, transformed))


def draw_numbers(draw, f):
  key = f"jax.random.key({draw(st.integers(0, 99))})"
  shape = draw(st.sampled_from([(), (3,), (33,), (4, 4)]))
  expression, limit = draw(st.sampled_from([
      (f"jax.random.bits({key}, {shape})", EXACT), (f"jax.random.uniform({key}, {shape})", EXACT),
      (f"jax.random.randint({key}, {shape}, -5, 77)", EXACT),
      (f"jax.random.permutation({key}, 17)", EXACT),
      (f"jax.random.bernoulli({key}, 0.3, {shape})", EXACT),
      (f"jax.random.normal({key}, {shape})", Limit(8, double_ulps=64)),  # LOG1P
      (f"jax.random.exponential({key}, {shape})", LOG1P),
      (f"jax.random.bits(jax.random.split({key})[1], {shape}, 'uint8')", EXACT)]))
  f.add_step(expression, [], limit)


def control(draw, f):
  x = f.pick(draw, "fi", lambda v: v.dtype.name in ("int32", "float32", "float64"))
  n = draw(st.integers(0, 5))
  limit = Limit(64, largest)
  body = draw(st.sampled_from(
      ["c * 3 - 1", "c // 2 + 5", "jnp.maximum(c, i) ^ 3"] if x.kind == "i" else
      ["jnp.tanh(c)", "jnp.minimum(c, 2) * 0.5", "jnp.sin(c) + i", "jnp.where(c > 0, -c, c + 1)"]))
  f.add_step(draw(st.sampled_from([
      f"lax.fori_loop(0, {n}, lambda i, c: ({body}).astype(c.dtype), {{0}})",
      f"lax.while_loop(lambda s: s[0] < {n},"
      f" lambda s: (s[0] + 1, (lambda i, c: ({body}).astype(c.dtype))(*s)), (0, {{0}}))[1]",
      f"lax.scan(lambda c, i: ((({body}).astype(c.dtype)), c), {{0}}, jnp.arange({n}))[1]",
      f"lax.cond(jnp.sum(jnp.isfinite({{0}})) > {n},"
      f" lambda c: (lambda i: ({body}).astype(c.dtype))(2), lambda c: c, {{0}})",
      f"lax.switch({n}, [lambda c: c, lambda c: -c, lambda c: c + 1], {{0}})",
      f"lax.map(lambda c: (lambda i: ({body}).astype(c.dtype))(1), jnp.ravel({{0}}))",
      f"jax.vmap(lambda c: lax.cond(c > {n}, lambda c: c, lambda c: -c, c))(jnp.ravel({{0}}))"])),
             [x], EXACT if x.kind == "i" else limit)


def gradient(draw, f):
  x = f.pick(draw, "f", lambda v: v.dtype.name in ("float32", "float64"))
  inner = draw(st.sampled_from([
      "jnp.tanh(y) * 2", "jnp.sin(y)", "jnp.where(y > 0, y * y, y)", "jax.nn.softplus(y)",
      "jax.nn.sigmoid(y)", "jnp.cumsum(jnp.ravel(y))", "jnp.sort(jnp.ravel(y)) * 2",
      "jax.nn.relu(y)", "lax.fori_loop(0, 3, lambda i, z: jnp.sin(z), y)"]))
  tame = "jnp.clip(jnp.nan_to_num({0}), -3, 3)"
  f.add_step(f"jax.grad(lambda y: jnp.sum({inner}))({tame})", [x], Limit(64, largest))


def convolution(draw, f):
  x = f.pick(draw, "f", lambda v: v.dtype.name in ("float32", "float64"), (8,))
  f.add_step(draw(st.sampled_from([
      "jnp.convolve({0}, jnp.array([1, 2, -1], {0}.dtype))",
      "lax.reduce_window({0}, 0., lax.add, (3,), (2,), 'SAME')",
      "lax.reduce_window({0}, -jnp.inf, lax.max, (2,), (1,), 'VALID')",
      "lax.conv({0}.reshape(1, 2, 4), jnp.ones((3, 2, 2), {0}.dtype), (1,), 'SAME')"])), [x],
             Limit(8, summed))


OPERATIONS = [
    simple("fi", EXACT, "-{0}", "jnp.abs({0})", "jnp.sign({0})", "{0} * {0}", "{0} + 1"),
    simple("f", EXACT, "jnp.floor({0})", "jnp.ceil({0})", "jnp.round({0})", "jnp.trunc({0})",
           "jnp.isfinite({0})", "jnp.isnan({0})", "jnp.signbit({0})"),
    simple("f", Limit(2), "jnp.sqrt({0})", "lax.rsqrt({0})", "1 / {0}", "jnp.square({0})"),
    simple("f", Limit(8), "jnp.exp({0})", "jnp.log({0})", "jnp.expm1({0})", "jnp.tanh({0})",
           "jax.nn.sigmoid({0})", "jnp.cbrt({0})", "jnp.exp2({0})", "jnp.arctan({0})",
           "jsp.special.erf({0})", "jnp.arcsinh({0})"),
    simple("f", LOG1P, "jnp.log1p({0})"),
    simple("f", Limit(8), *(f"jnp.{name}(jnp.clip({{0}}, -100, 100))" for name in (
        "sin", "cos", "sinh", "cosh"))),
    simple("f", Limit(16, largest), "jsp.special.erfc({0})", "jsp.special.erfinv({0})",
           "jnp.arcsin({0})", "jnp.arccos({0})", "jnp.arctanh({0})", "jnp.arccosh({0})",
           "jax.nn.gelu({0})", "jax.nn.softplus({0})"),
    simple("i", EXACT, "~{0}", "lax.population_count({0})", "lax.clz({0})", "{0} << 1", "{0} >> 2",
           "{0} ** 3", "{0} % 7", "{0} // 3"),
    simple("b", EXACT, "~{0}", "{0} & True", "{0}.astype('int32')"),
    simple("c", Limit(16), "jnp.conj({0})", "jnp.abs({0})", "{0} * {0}", "jnp.real({0})"),
    simple("c", Limit(64, largest), "jnp.exp({0})", "jnp.sqrt({0})", "jnp.sin({0})",
           "jnp.tanh({0})", "jnp.log({0} + 8)", "1 / ({0} + 8)"),
    pair("fi", EXACT, "{0} + {1}", "{0} - {1}", "{0} * {1}", "jnp.maximum({0}, {1})",
         "jnp.minimum({0}, {1})"),
    pair("f", Limit(1), "{0} / {1}", "jnp.copysign({0}, {1})", "jnp.nextafter({0}, {1})"),
    pair("f", Limit(16), "jnp.arctan2({0}, {1})", "jnp.hypot({0}, {1})",
         "jnp.power(jnp.abs({0}), jnp.clip({1}, -4, 4))"),
    pair("f", EXACT, "lax.rem({0}, {1})"),
    pair("i", EXACT, "lax.div({0}, {1})", "lax.rem({0}, {1})", "{0} & {1}", "{0} | {1}", "{0} ^ {1}",
         "lax.shift_left({0}, {1})", "lax.shift_right_logical({0}, {1})",
         "lax.shift_right_arithmetic({0}, {1})"),
    pair("b", EXACT, "{0} & {1}", "{0} | {1}", "{0} ^ {1}"),
    pair("c", Limit(8, largest), "{0} + {1}", "{0} - {1}", "{0} * {1}"),
    pair("fi", EXACT, "{0} < {1}", "{0} == {1}", "{0} >= {1}", "{0} != {1}"),
    with_axis("ib", EXACT, "jnp.sum({0}, AXIS)", "jnp.prod({0}, AXIS)", "jnp.cumsum({0}, AXIS)",
              "jnp.any({0}, AXIS)", "jnp.all({0}, AXIS)", "jnp.count_nonzero({0}, AXIS)"),
    with_axis("f", Limit(8, summed), "jnp.sum({0}, AXIS)", "jnp.mean({0}, AXIS)",
              "jnp.cumsum({0}, AXIS)", least=1),
    with_axis("fi", EXACT, "jnp.max({0}, AXIS)", "jnp.min({0}, AXIS)", "jnp.argmax({0}, AXIS)",
              "jnp.argmin({0}, AXIS)", "jnp.sort({0}, AXIS)", "jnp.argsort({0}, AXIS)",
              "lax.cummax({0}, AXIS)", "lax.cummin({0}, AXIS)", "jnp.sort({0}, AXIS, descending=True)",
              "lax.top_k({0}, 1)[0]", "lax.top_k({0}, 1)[1]"),
    with_axis("f", Limit(64, largest),
              "jax.nn.softmax(jnp.clip({0}, -9, 9), AXIS)",
              "jax.nn.logsumexp(jnp.clip({0}, -9, 9), AXIS)"),
    convert, gather, scatter, reshape, reshape, select, matmul, linear_algebra, transform,
    draw_numbers, control, control, gradient, convolution,
]
