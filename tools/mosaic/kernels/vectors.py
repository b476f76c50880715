"""Elementwise functions, reductions, matmuls, transposes, rolls, masks, conversions of vectors, loops."""

from case import case
from case import normal
from case import whole
import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

S = jax.ShapeDtypeStruct
f32, bf16, i32 = jnp.float32, jnp.bfloat16, jnp.int32


def simple(name, function, *args, tolerance=1e-5, reference=None, out=None):
  """A case whose kernel reads its operands, applies the function, and writes the result.

  Its reference is the function itself, outside of a kernel, unless Pallas alone has it.
  """
  def make(rng):
    values = [arg(rng) if callable(arg) else arg for arg in args]
    result = out or jax.eval_shape(reference or function, *values)

    def body(*refs):
      *ins, o = refs
      o[...] = function(*[ref[...] for ref in ins])
    return lambda *values: pl.pallas_call(body, out_shape=result)(*values), values
  make.__name__, make.__module__ = name, __name__
  case(make, tolerance=tolerance, reference=reference or function, by=("reference", "any", "tpu"))


def floats(*shape, dtype=f32, scale=1.0):
  return lambda rng: normal(rng, *shape, dtype=dtype, scale=scale)


def positive(*shape, dtype=f32):
  return lambda rng: (np.abs(normal(rng, *shape)) + 0.1).astype(dtype)


def integers(*shape, low=-100, high=100, dtype=np.int32):
  return lambda rng: whole(rng, *shape, low=low, high=high, dtype=dtype)


def bits_of_bf16(x):
  return lax.bitcast_convert_type(x.astype(bf16), jnp.uint16).astype(jnp.uint32)


A = floats(16, 256)
for name in ("exp", "sin", "cos", "tanh", "floor", "ceil", "abs", "negative", "square", "sign", "exp2", "expm1", "tan",
             "round", "isnan", "isfinite", "sinh", "cosh", "trunc", "cbrt", "arcsinh"):
  simple(name, getattr(jnp, name), A)
for name in ("log", "sqrt", "log1p", "log2", "reciprocal"):
  simple(name, getattr(jnp, name), positive(16, 256))
for name, function in {"rsqrt": lax.rsqrt, "logistic": lax.logistic, "erf": lax.erf, "erf_inv": lambda x: lax.erf_inv(
    jnp.tanh(x)), "relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "integer_pow": lambda x: x ** 5,
    "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "clamp": lambda x: jnp.clip(x, -.5, .5),
    "softplus": jax.nn.softplus}.items():
  simple(name, function, positive(16, 256) if name == "rsqrt" else A)
for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "arctan2", "power", "remainder", "copysign",
             "fmod", "nextafter", "hypot"):
  simple(name, getattr(jnp, name), positive(16, 256), positive(16, 256))
for name in ("add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
             "floor_divide", "remainder"):
  simple(f"int_{name}", getattr(jnp, name), integers(16, 256), integers(16, 256, low=1))
for name, function in {"shift_left": lax.shift_left, "shift_right": lax.shift_right_logical,
                       "shift_right_arithmetic": lax.shift_right_arithmetic}.items():
  simple(name, function, integers(16, 256), integers(16, 256, low=0, high=31))
for name in ("clz", "population_count", "bitwise_not", "neg", "abs"):
  simple(f"int_{name}", getattr(lax, name), integers(16, 256))
for name in ("equal", "not_equal", "less", "less_equal", "greater"):
  simple(f"compare_{name}", lambda x, y, f=getattr(jnp, name): f(x, y).astype(i32), integers(16, 256, low=0, high=3),
         integers(16, 256, low=0, high=3))
  simple(f"compare_unsigned_{name}", lambda x, y, f=getattr(jnp, name): f(x, y).astype(i32), integers(
      8, 128, dtype=np.uint32, low=0), integers(8, 128, dtype=np.uint32, low=0))
for kind in (bf16, jnp.int16, jnp.int8, jnp.uint8, jnp.uint32, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int4):
  label = jnp.dtype(kind).name
  simple(f"widen_{label}", lambda x: x.astype(f32), lambda rng, kind=kind: whole(
      rng, 64, 256, low=0, high=7).astype(kind))
  simple(f"narrow_{label}", lambda x, kind=kind: x.astype(kind), lambda rng: whole(rng, 64, 256, low=0, high=7))
simple("narrow_bf16_rounding", lambda x: x.astype(bf16), A)
simple("float_to_int", lambda x: (x * 100).astype(i32), A)
simple("int_to_float", lambda x: x.astype(f32), integers(16, 256))
simple("bf16_arithmetic", lambda x, y: x * y + x, floats(16, 256, dtype=bf16), floats(16, 256, dtype=bf16))
simple("int8_arithmetic", lambda x, y: (x.astype(i32) + y.astype(i32)).astype(jnp.int8), integers(
    64, 256, low=-50, high=50, dtype=np.int8), integers(64, 256, low=-50, high=50, dtype=np.int8))
simple("int16_arithmetic", lambda x, y: x + y, integers(32, 256, dtype=np.int16), integers(32, 256, dtype=np.int16))

# ---- shapes ----
simple("sum_rows", lambda x: x.sum(0, keepdims=True), lambda rng: whole(rng, 16, 256))
simple("sum_columns", lambda x: x.sum(1, keepdims=True), lambda rng: whole(rng, 16, 256))
simple("sum_all", lambda x: jnp.full((8, 128), x.sum()), lambda rng: whole(rng, 16, 256))
simple("sum_flat_rows", lambda x: x.sum(0), lambda rng: whole(rng, 16, 256))
simple("sum_major", lambda x: x.sum(0), lambda rng: whole(rng, 4, 16, 256))
simple("max_columns", lambda x: x.max(1, keepdims=True), A)
simple("min_rows", lambda x: x.min(0, keepdims=True), A)
simple("max_int", lambda x: x.max(1, keepdims=True), integers(16, 256))
simple("max_bf16", lambda x: x.max(1, keepdims=True), floats(16, 256, dtype=bf16))
simple("argmax", lambda x: jnp.argmax(x, 1, keepdims=True).astype(i32), A)
simple("argmin_rows", lambda x: jnp.argmin(x, 0, keepdims=True).astype(i32), A)
simple("any_all", lambda x: jnp.where(jnp.any(x > 2), 1.0, 0.0) + jnp.zeros((8, 128)), A)
simple("softmax", jax.nn.softmax, A)
simple("layer_norm", lambda x: (x - x.mean(1, keepdims=True)) * lax.rsqrt(x.var(1, keepdims=True) + 1e-5), A)
simple("transpose", lambda x: x.T, floats(128, 256))
simple("transpose_bf16", lambda x: x.T, floats(128, 256, dtype=bf16))
simple("transpose_major", lambda x: jnp.swapaxes(x, 0, 1), floats(4, 8, 128))
simple("transpose_minor", lambda x: jnp.swapaxes(x, 1, 2), floats(4, 128, 128))
simple("transpose_outer", lambda x: jnp.transpose(x, (1, 0, 2, 3)), floats(2, 4, 8, 128))
simple("reshape_merge", lambda x: x.reshape(32, 128), floats(4, 8, 128))
simple("reshape_split", lambda x: x.reshape(4, 8, 128), floats(32, 128))
simple("reshape_lanes", lambda x: x.reshape(8, 256), floats(16, 128))
simple("expand", lambda x: x[:, None, :] + jnp.zeros((8, 8, 128)), floats(8, 128))
simple("broadcast_row", lambda x, y: x + y, floats(16, 256), floats(1, 256))
simple("broadcast_column", lambda x, y: x + y, floats(16, 256), floats(16, 1))
simple("concatenate_lanes", lambda x, y: jnp.concatenate([x, y], 1), floats(8, 128), floats(8, 256))
simple("concatenate_rows", lambda x, y: jnp.concatenate([x, y], 0), floats(8, 128), floats(16, 128))
simple("slice_value", lambda x: x[8:16, 128:], floats(32, 256))
simple("slice_odd", lambda x: x[3:9, 5:77], floats(32, 256))
simple("tile", lambda x: jnp.tile(x, (2, 3)), floats(8, 128))
simple("repeat", lambda x: jnp.concatenate([x, x], 1), floats(8, 128))
simple("roll_lanes", lambda x: pltpu.roll(x, 3, 1), floats(8, 128))
simple("roll_rows", lambda x: pltpu.roll(x, 2, 0), floats(8, 128))
simple("roll_wide", lambda x: pltpu.roll(x, 130, 1), floats(8, 256))
simple("roll_strided", lambda x: pltpu.roll(x, 1, 1, stride=2, stride_axis=0), floats(8, 128))
simple("jnp_roll", lambda x: jnp.roll(x, 5, 1), floats(8, 128))
simple("iota", lambda x: x + lax.broadcasted_iota(i32, (16, 256), 1) * 1000 + lax.broadcasted_iota(i32, (16, 256), 0),
       integers(16, 256))
simple("causal_mask", lambda x: jnp.where(lax.broadcasted_iota(i32, x.shape, 0) >= lax.broadcasted_iota(
    i32, x.shape, 1), x, -1e9), floats(128, 128))
simple("take_lanes", lambda x, n: jnp.take_along_axis(x, n, 1), floats(8, 128), integers(8, 128, low=0, high=127))
simple("take_rows", lambda x, n: jnp.take_along_axis(x, n, 0), floats(8, 128), integers(8, 128, low=0, high=7))
simple("bitcast_32", lambda x: pltpu.bitcast(x, i32), floats(16, 128))
simple("bitcast_16", lambda x: pltpu.bitcast(x, jnp.uint32), floats(16, 128, dtype=bf16))
simple("bitcast_to_16", lambda x: pltpu.bitcast(x, bf16), integers(8, 128))
simple("bitcast_8", lambda x: pltpu.bitcast(x, i32), integers(32, 128, dtype=np.int8))
simple("bitcast_to_4", lambda x: pltpu.bitcast(x, jnp.int4), integers(32, 128, dtype=np.int8))
simple("bitcast_type", lambda x: lax.bitcast_convert_type(x, i32), floats(16, 128))
simple("pack", lambda x, y: pltpu.pack_elementwise([x, y], packed_dtype=bf16), floats(8, 128), floats(8, 128),
       reference=lambda x, y: bits_of_bf16(x) | bits_of_bf16(y) << 16)
simple("unpack", lambda x: pltpu.unpack_elementwise(x, index=1, packed_dtype=bf16, unpacked_dtype=f32), integers(
    8, 128, dtype=np.uint32, low=0, high=1 << 30), reference=lambda x: lax.bitcast_convert_type(
        x >> 16 << 16, f32))
for kind, word in ((np.int8, np.int16), (jnp.int4, np.int8), (jnp.int4, np.int16)):
  simple(f"unpack_{np.dtype(kind).name}_of_{np.dtype(word).name}", lambda x, kind=kind, word=word:
         pltpu.unpack_elementwise(x, index=1, packed_dtype=kind, unpacked_dtype=word), integers(
             32, 128, dtype=np.dtype(f"u{np.dtype(word).name}"), low=0, high=np.iinfo(word).max),
         reference=lambda x, kind=kind, word=word: (x >> jnp.iinfo(kind).bits).astype(kind).astype(word))
simple("pack_int8_in_int16", lambda x, y: pltpu.pack_elementwise([x, y], packed_dtype=np.int8),
       integers(32, 128, dtype=np.int16), integers(32, 128, dtype=np.int16),
       reference=lambda x, y: (x & 255 | y << 8).astype(np.uint16))
simple("bitcast_4_to_32", lambda x: pltpu.bitcast(x.astype(jnp.int4), i32), integers(64, 128, dtype=np.int8, low=-8,
                                                                                      high=7))
simple("flip", lambda x: jnp.flip(x, 1), floats(8, 128))
simple("cumsum", lambda x: jnp.cumsum(x, 1), lambda rng: whole(rng, 8, 128))
simple("sort", lambda x: jnp.sort(x, 1), floats(8, 128))
simple("reciprocal_approximate", lambda x: pl.reciprocal(x, approx=True), positive(8, 128), tolerance=1e-2)
simple("stochastic_round", lambda x: pltpu.stochastic_round(x, jnp.zeros((8, 128), jnp.uint32), target_dtype=bf16),
       floats(8, 128), reference=lambda x: lax.bitcast_convert_type(
           lax.bitcast_convert_type(x, jnp.uint32) >> 16 << 16, f32).astype(bf16))

# ---- matmuls ----

simple("matmul", lambda x, y: jnp.dot(x, y), floats(64, 128), floats(128, 256), tolerance=1e-4)
simple("matmul_highest", lambda x, y: jnp.dot(x, y, precision="highest"), floats(64, 128), floats(128, 256))
simple("matmul_bf16", lambda x, y: jnp.dot(x, y, preferred_element_type=f32), floats(64, 128, dtype=bf16),
       floats(128, 256, dtype=bf16), tolerance=1e-4)
simple("matmul_bf16_out", lambda x, y: jnp.dot(x, y, preferred_element_type=f32).astype(bf16), floats(64, 128, dtype=bf16), floats(128, 256, dtype=bf16),
       tolerance=1e-2)
simple("matmul_nt", lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=f32), floats(
    64, 128), floats(256, 128), tolerance=1e-4)
simple("matmul_tn", lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ())), preferred_element_type=f32), floats(
    128, 64), floats(128, 256), tolerance=1e-4)
simple("matmul_batch", lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=f32),
       floats(3, 64, 128), floats(3, 128, 256), tolerance=1e-4)
simple("matmul_batch_nt", lambda x, y: jnp.einsum("bqd,bkd->bqk", x, y), floats(3, 64, 128), floats(3, 256, 128),
       tolerance=1e-4)
simple("matmul_int8", lambda x, y: jnp.dot(x, y, preferred_element_type=i32), integers(64, 128, dtype=np.int8), integers(
    128, 256, dtype=np.int8))
simple("matmul_int4", lambda x, y: jnp.dot(x, y, preferred_element_type=i32), lambda rng: whole(rng, 64, 128).astype(
    jnp.int4), lambda rng: whole(rng, 128, 256).astype(jnp.int4), reference=lambda x, y: jnp.dot(
        x.astype(i32), y.astype(i32)))
simple("matmul_fp8", lambda x, y: jnp.dot(x, y, preferred_element_type=f32), floats(
    64, 128, dtype=jnp.float8_e5m2), floats(128, 256, dtype=jnp.float8_e5m2), tolerance=1e-4)
simple("matmul_mixed", lambda x, y: jnp.dot(x, y.astype(bf16), preferred_element_type=f32), floats(
    64, 128, dtype=bf16), integers(128, 256, low=-8, high=8, dtype=np.int8), tolerance=1e-4)
simple("matvec", lambda x, y: jnp.dot(x, y), floats(8, 128), floats(128, 128), tolerance=1e-4)

# ---- loops and conditions ----


@case
def loop_over_rows(rng):
  def body(x, o):
    def step(i, total):
      o[pl.ds(i, 1)] = x[pl.ds(i, 1)] + total
      return total + x[pl.ds(i, 1)]
    lax.fori_loop(0, 16, step, jnp.zeros((1, 128)))
  return lambda x: pl.pallas_call(body, out_shape=x)(x), [whole(rng, 16, 128)]


@case
def loop_unrolled(rng):
  def body(x, o):
    o[...] = lax.fori_loop(0, 4, lambda i, y: y * 2 + i.astype(f32), x[...], unroll=True)
  return lambda x: pl.pallas_call(body, out_shape=x)(x), [whole(rng, 16, 128)]


@case
def loop_until(rng):
  def body(n, x, o):
    def step(carry):
      i, y = carry
      return i + 1, y + i.astype(f32)
    o[...] = lax.while_loop(lambda carry: carry[0] < n[0], step, (0, x[...]))[1]
  smem = pl.BlockSpec(memory_space=pltpu.SMEM)
  vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
  return lambda n, x: pl.pallas_call(body, out_shape=x, in_specs=[smem, vmem])(n, x), [
      np.array([5], np.int32), whole(rng, 16, 128)]


@case
def loop_with_bounds_of_scalars(rng):
  def body(n, x, o):
    o[...] = lax.fori_loop(n[0], n[1], lambda i, y: y + x[pl.ds(i * 8, 8)], jnp.zeros((8, 128)))
  return lambda n, x: pl.pallas_call(body, out_shape=S((8, 128), f32), in_specs=[pl.BlockSpec(
      memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)])(n, x), [
          np.array([1, 4], np.int32), whole(rng, 64, 128)]


@case
def switch(rng):
  def body(n, x, o):
    o[...] = lax.switch(n[0], [lambda y: y + 1, lambda y: y * 2, lambda y: -y], x[...])
  return lambda n, x: pl.pallas_call(body, out_shape=x, in_specs=[pl.BlockSpec(
      memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)])(n, x), [np.array([1], np.int32), normal(rng, 8, 128)]


@case
def scalars(rng):
  def body(n, o):
    a, b = n[0], n[1]
    for i, value in enumerate((a + b, a * b, a // b, a % b, jnp.minimum(a, b), jnp.where(a > b, a, b), a << 2, a & b,
                               lax.div(a, b), lax.rem(-a, b), jnp.abs(-a), a ^ b)):
      o[i] = value
  smem = pl.BlockSpec(memory_space=pltpu.SMEM)
  return lambda n: pl.pallas_call(body, out_shape=S((12,), i32), in_specs=[smem], out_specs=smem)(n), [
      np.array([29, 4], np.int32)]


@case
def float_scalars(rng):
  def body(n, x, o):
    o[...] = x[...] * (n[0] + jnp.exp(n[1])) + jnp.sqrt(n[2])
  return lambda n, x: pl.pallas_call(body, out_shape=x, in_specs=[pl.BlockSpec(
      memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)])(n, x), [
          np.array([1.5, 0.3, 2.0], np.float32), normal(rng, 8, 128)]


@case
def print_values(rng):
  def body(x, o):
    pl.debug_print("step {}", pl.program_id(0))
    o[...] = x[...]
  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  return lambda x: pl.pallas_call(body, out_shape=x, grid=(2,), in_specs=[block], out_specs=block)(x), [normal(rng, 16, 128)]


@case
def hardware_random_bits(rng):
  def body(seed, o):
    pltpu.prng_seed(seed[0])
    o[...] = pltpu.bitcast(pltpu.prng_random_bits((8, 128)), jnp.uint32)
  f = pl.pallas_call(body, out_shape=S((8, 128), jnp.uint32), in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)])
  return lambda seed: (f(seed) >= 0).astype(i32), [np.array([3], np.int32)]
