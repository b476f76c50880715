"""Compares programs as HLO with their definition.

Functions that JAX has lowered both ways give the same bits from HLO and from bytecode.  HLO text tests opcodes that no
JAX function is lowered to.  Its expected results come from XLA's own conversion of the same module to StableHLO, run on
JAX's CPU backend and on minipod.
"""

import collections
import os
import re
import sys

import jax
from jax import lax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxlib import _jax
import numpy as np
import pytest

from differential import assert_close, on_pod
import hlo_server
import test_ops
from test_ops import floats

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "random"))
import random_function
import test_random_functions

_hlo = pytest.importorskip("jaxlib._hlo")  # older jaxlibs have no HLO text
if not hlo_server.PROGRAM.exists():
  pytest.skip(f"{hlo_server.PROGRAM} is not built", allow_module_level=True)

OPCODES = collections.Counter()
# The handlers of jaxlib's LAPACK exist only in JAX's process.
FOREIGN = {"qr"}


def count_opcodes(text):
  OPCODES.update(re.findall(r" = (?:\([^=]*?\)|\S+) ([a-z][a-z0-9-]*)\(", text))


def check_function(f, *args):
  lowered = jax.jit(f, keep_unused=True).lower(*args).compiler_ir("hlo")
  count_opcodes(lowered.as_hlo_text())
  wanted = [np.asarray(each) for each in jax.tree.leaves(on_pod(f, *args))]
  found = hlo_server.run_arrays(lowered.as_serialized_hlo_module_proto(),
                                [np.asarray(each) for each in jax.tree.leaves(args)], wanted)
  for left, right in zip(found, wanted):
    assert left.tobytes() == right.tobytes(order="C")


@pytest.mark.parametrize("name", [name for name in test_ops.CASES if name not in FOREIGN])
def test_operation(name):
  case = test_ops.CASES[name]
  f, *args = case if isinstance(case, tuple) else (case,)
  check_function(f, *args)


R = np.random.default_rng(3)
X = R.standard_normal((4, 6)).astype(np.float32)
I = R.integers(-9, 9, (4, 6)).astype(np.int32)

FUNCTIONS = {
    "while": (lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x)), X),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x), X),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y * 2, x), X),
    "switch": (lambda x, i: lax.switch(i[0, 0], [jnp.sin, jnp.cos, jnp.tan], x), X, np.abs(I)),
    "nested calls": (lambda x: jax.jit(lambda y: jax.jit(jnp.exp)(y) + jax.jit(jnp.exp)(-y))(x), X),
    "sort of several": (lambda x, i: lax.sort((i, x), num_keys=1), X, I),
    "reduce of several": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), X),
    "custom reduction": (lambda x: lax.reduce(x, jnp.float32(1), lambda a, b: a * b + 1, (1,)), X),
    "reduce_window of several": (lambda x: lax.reduce_window(
        (x, x), (jnp.float32(0), jnp.float32(0)), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])),
        (2, 2), (1, 1), "SAME"), X),
    "cumulative": (lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), jnp.cummax(x, 0)) if hasattr(jnp, "cummax")
                   else (lax.cumsum(x, 0), lax.cumprod(x, 1), lax.cummax(x, 0)), X),
    "unary": (lambda x: [f(x) for f in (lax.cbrt, lax.tan, lax.logistic, lax.erf, lax.exp2, lax.is_finite,
                                        lax.sign, lax.round, lax.rsqrt, lax.log1p, lax.expm1, lax.acos)], X),
    "integers": (lambda i: [lax.population_count(i), lax.clz(i), ~i, i << 2, i >> 1, lax.shift_right_logical(i, 2),
                            i // 3, i % 3, lax.sign(i), abs(i), i & 5, i | 3, i ^ 7], I),
    "complex": (lambda x: [lax.complex(x, -x), lax.real(lax.complex(x, x)), lax.imag(jnp.exp(lax.complex(x, x)))], X),
    "narrow": (lambda x: [x.astype(t).astype(jnp.float32) for t in
                          (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int8, jnp.uint8, jnp.int16)], X),
    "erf of narrow types": (lambda x: [lax.erf(x.astype(t)) for t in (jnp.bfloat16, jnp.float16)], X),
    "constants": (lambda: [jnp.asarray(np.arange(-4, 4).astype(t)) for t in
                           (np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.float16, np.float32,
                            np.complex64, bool, jnp.bfloat16, jnp.float8_e5m2)],),
    "4 bits": (lambda x: [x.astype(jnp.int4).astype(jnp.int32), jnp.asarray(np.arange(-8, 7), jnp.int4).astype(jnp.int32),
                          jnp.asarray(np.arange(15), jnp.uint4).astype(jnp.int32)], I),
    "indexing": (lambda x, i: [x[i[:, 0] % 4], x.at[i[:, 0] % 4, 0].add(2), x.at[1:3].set(0), x[::2, ::-1],
                               lax.dynamic_slice(x, (i[0, 0], 1), (2, 3)), x.at[i[0] % 4].max(x[::-1][i[0] % 4])], X, I),
    "batched indexing": (lambda x, i: jax.vmap(lambda r, k: r[k % 6])(x, i), X, I),
    "barrier": (lambda x: lax.optimization_barrier((x, x + 1)), X),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 7), X),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.int8), X),
    "top_k": (lambda x: lax.top_k(x, 3), X),
    "random": (lambda: [jax.random.normal(jax.random.key(3), (5,)), jax.random.permutation(jax.random.key(1), 9)],),
    "rbg": (lambda: jax.random.bits(jax.random.key(7, impl="rbg"), (6,)),),
    "gradient": (jax.grad(lambda x: jnp.sum(jax.nn.softmax(jax.nn.gelu(x @ x.T, approximate=False)))), X),
    "no results of some": (lambda x: (x, jnp.zeros((0, 3)), x.sum()), X),
    "precision": (lambda x: [lax.dot(x, x.T, precision=p) for p in ("highest", "high", "default")], X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
  f, *args = FUNCTIONS[name]
  check_function(f, *args)


def test_double_precision():
  with jax.enable_x64(True):
    x = np.linspace(-9, 9, 400)
    check_function(lambda x: (lax.erf(x), lax.erf(x.astype(np.float32)), jnp.arange(3) + 2**40, jnp.complex128(x)), x)


@pytest.mark.parametrize("chunk", range(max(1, test_random_functions.COUNT // test_random_functions.CHUNK // 10)))
def test_random_functions_agree(chunk):
  def run(function):
    with jax.enable_x64(function.x64):
      check_function(function, *function.arguments())

  test_random_functions.for_random_functions(1000 + chunk, run)


# ---- HLO text ----

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"

TEXTS = {
    "fusion": """
f { p = f32[4,6] parameter(0)
    m = f32[4,6] multiply(p, p)
    ROOT t = (f32[4,6], f32[4,6]) tuple(m, p) }
ENTRY e { x = f32[4,6] parameter(0)
    f = (f32[4,6], f32[4,6]) fusion(x), kind=kLoop, calls=f
    a = f32[4,6] get-tuple-element(f), index=0
    ROOT r = f32[4,6] copy(a) }""",
    "call twice": """
f { p = f32[4,6] parameter(0)
    ROOT s = f32[4,6] sine(p) }
ENTRY e { x = f32[4,6] parameter(0)
    y = f32[4,6] call(x), to_apply=f
    ROOT z = f32[4,6] call(y), to_apply=f }""",
    "bitcast": """
ENTRY e { x = f32[4,6]{1,0} parameter(0)
    a = f32[24]{0} bitcast(x)
    b = f32[6,4]{0,1} bitcast(x)
    t = f32[6,4]{0,1} transpose(x), dimensions={1,0}
    c = f32[24]{0} bitcast(t)
    d = s32[2,12]{1,0} bitcast(x)
    ROOT r = (f32[24]{0}, f32[6,4]{0,1}, f32[24]{0}, s32[2,12]{1,0}) tuple(a, b, c, d) }""",
    "map": """
f { p = f32[] parameter(0)
    q = f32[] parameter(1)
    m = f32[] multiply(p, q)
    ROOT s = f32[] subtract(m, q) }
ENTRY e { x = f32[4,6] parameter(0)
    y = f32[4,6] parameter(1)
    ROOT m = f32[4,6] map(x, y), dimensions={0,1}, to_apply=f }""",
    "nested tuples": """
ENTRY e { x = f32[4] parameter(0)
    p = (f32[4], (s32[2], f32[])) parameter(1)
    a = f32[4] get-tuple-element(p), index=0
    b = (s32[2], f32[]) get-tuple-element(p), index=1
    c = f32[] get-tuple-element(b), index=1
    d = f32[4] broadcast(c), dimensions={}
    g = f32[4] add(a, d)
    t = (f32[4], (s32[2], f32[])) tuple(g, b)
    ROOT u = ((f32[4], (s32[2], f32[])), f32[4]) tuple(t, x) }""",
    "while over a tuple": """
body { p = (s32[], (f32[4], f32[4])) parameter(0)
    i = s32[] get-tuple-element(p), index=0
    one = s32[] constant(1)
    j = s32[] add(i, one)
    q = (f32[4], f32[4]) get-tuple-element(p), index=1
    a = f32[4] get-tuple-element(q), index=0
    b = f32[4] get-tuple-element(q), index=1
    c = f32[4] add(a, b)
    r = (f32[4], f32[4]) tuple(b, c)
    ROOT t = (s32[], (f32[4], f32[4])) tuple(j, r) }
cond { p = (s32[], (f32[4], f32[4])) parameter(0)
    i = s32[] get-tuple-element(p), index=0
    n = s32[] constant(7)
    ROOT c = pred[] compare(i, n), direction=LT }
ENTRY e { x = f32[4] parameter(0)
    z = s32[] constant(0)
    q = (f32[4], f32[4]) tuple(x, x)
    t = (s32[], (f32[4], f32[4])) tuple(z, q)
    ROOT w = (s32[], (f32[4], f32[4])) while(t), condition=cond, body=body }""",
    "conditional by a boolean": """
yes { p = (f32[4], f32[4]) parameter(0)
    a = f32[4] get-tuple-element(p), index=0
    b = f32[4] get-tuple-element(p), index=1
    s = f32[4] add(a, b)
    ROOT t = (f32[4], f32[4]) tuple(s, b) }
no { p = f32[4] parameter(0)
    n = f32[4] negate(p)
    ROOT t = (f32[4], f32[4]) tuple(n, p) }
ENTRY e { c = pred[] parameter(0)
    x = f32[4] parameter(1)
    y = f32[4] parameter(2)
    q = (f32[4], f32[4]) tuple(x, y)
    ROOT r = (f32[4], f32[4]) conditional(c, q, y), true_computation=yes, false_computation=no }""",
    "conditional by a number": """
a { p = f32[4] parameter(0)
    ROOT n = f32[4] negate(p) }
b { p = f32[4] parameter(0)
    ROOT n = f32[4] abs(p) }
c { p = f32[4] parameter(0)
    ROOT n = f32[4] add(p, p) }
ENTRY e { i = s32[] parameter(0)
    x = f32[4] parameter(1)
    ROOT r = f32[4] conditional(i, x, x, x), branch_computations={a, b, c} }""",
    "asynchronous": """
f { p = f32[4] parameter(0)
    q = f32[4] parameter(1)
    ROOT s = f32[4] subtract(p, q) }
ENTRY e { x = f32[4] parameter(0)
    y = f32[4] parameter(1)
    s = ((f32[4], f32[4]), f32[4], s32[]) async-start(x, y), calls=f
    u = ((f32[4], f32[4]), f32[4], s32[]) async-update(s)
    ROOT d = f32[4] async-done(u) }""",
    "copies": """
ENTRY e { x = f32[4,6]{1,0} parameter(0)
    c = f32[4,6]{0,1} copy(x)
    s = (f32[4,6]{1,0}, f32[4,6]{0,1}, u32[]) copy-start(c)
    d = f32[4,6]{1,0} copy-done(s)
    ROOT r = f32[4,6]{1,0} add(d, d) }""",
    "tokens": """
ENTRY e { x = f32[4] parameter(0)
    t = token[] after-all()
    u = token[] after-all(t, t)
    y = f32[4] add-dependency(x, u)
    ROOT r = f32[4] negate(y) }""",
    "batch norms": """
ENTRY e { x = f32[3,5,2] parameter(0)
    s = f32[5] parameter(1)
    o = f32[5] parameter(2)
    v = f32[5] parameter(3)
    t = (f32[3,5,2], f32[5], f32[5]) batch-norm-training(x, s, o), epsilon=0.125, feature_index=1
    w = f32[5] multiply(v, v)
    i = f32[3,5,2] batch-norm-inference(x, s, o, o, w), epsilon=0.25, feature_index=1
    g = (f32[3,5,2], f32[5], f32[5]) batch-norm-grad(x, s, o, w, i), epsilon=0.25, feature_index=1
    ROOT r = ((f32[3,5,2], f32[5], f32[5]), f32[3,5,2], (f32[3,5,2], f32[5], f32[5])) tuple(t, i, g) }""",
    "literals with layouts": """
ENTRY e { a = f32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})
    b = s32[2,2,2]{0,2,1} constant({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})
    c = (pred[2], (s8[3], u64[1])) constant(({1, 0}, ({-1, 2, 127}, {18446744073709551615})))
    ROOT r = (f32[2,3]{0,1}, s32[2,2,2]{0,2,1}, (pred[2], (s8[3], u64[1]))) tuple(a, b, c) }""",
    "scalars for all": """
ENTRY e { x = f32[4,6] parameter(0)
    y = f32[4,6] parameter(1)
    p = pred[] parameter(2)
    l = f32[] constant(-0.5)
    h = f32[] constant(0.25)
    c = f32[4,6] clamp(l, x, h)
    s = f32[4,6] select(p, x, y)
    ROOT r = (f32[4,6], f32[4,6]) tuple(c, s) }""",
    "windows": ADD + """
ge { a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT c = pred[] compare(a, b), direction=GE }
ENTRY e { x = f32[1,8,9,1] parameter(0)
    z = f32[] constant(0)
    w = f32[1,4,5,1] reduce-window(x, z), window={size=1x3x2x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=add
    d = f32[1,9,10,1] reduce-window(x, z), window={size=1x2x2x1 pad=0_0x2_2x2_2x0_0 rhs_dilate=1x3x3x1}, to_apply=add
    s = f32[1,8,9,1] select-and-scatter(x, w, z), window={size=1x3x2x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, select=ge, scatter=add
    ROOT r = (f32[1,4,5,1], f32[1,9,10,1], f32[1,8,9,1]) tuple(w, d, s) }""",
    "convolution": """
ENTRY e { x = f32[2,8,9,4] parameter(0)
    k = f32[3,2,2,6] parameter(1)
    ROOT c = f32[2,6,10,6] convolution(x, k), window={size=3x2 pad=0_0x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, feature_group_count=2 }""",
    "dots": """
ENTRY e { x = f32[3,4,5] parameter(0)
    y = f32[3,5,2] parameter(1)
    v = f32[5] parameter(2)
    a = f32[3,4,2] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, operand_precision={high,highest}
    b = f32[3,4] dot(x, v), lhs_contracting_dims={2}, rhs_contracting_dims={0}, algorithm=dot_f32_f32_f32
    ROOT r = (f32[3,4,2], f32[3,4]) tuple(a, b) }""",
    "shapes": """
ENTRY e { x = f32[4,6] parameter(0)
    z = f32[] constant(7)
    a = f32[5,11] pad(x, z), padding=2_-1x0_0_1
    b = f32[2,3] slice(x), slice={[1:4:2], [0:6:2]}
    c = f32[4,6] reverse(x), dimensions={0,1}
    d = f32[8,6] concatenate(x, c), dimensions={0}
    i = s32[3,4] iota(), iota_dimension=1
    s = s32[] get-dimension-size(x), dimensions={1}
    m = f32[4,5,6] broadcast(x), dimensions={0,2}
    o = (f32[4,6], s32[3,4]) opt-barrier((f32[4,6], s32[3,4]) tuple(x, i))
    ROOT r = (f32[5,11], f32[2,3], f32[8,6], s32[3,4], s32[], f32[4,5,6], (f32[4,6], s32[3,4])) tuple(a, b, d, i, s, m, o) }""",
    "algebra": """
ENTRY e { x = f32[4,4] parameter(0)
    b = f32[4,2] parameter(1)
    t = f32[4,4] transpose(x), dimensions={1,0}
    p = f32[4,4] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    c = f32[4,4] cholesky(p), lower=true
    s = f32[4,2] triangular-solve(c, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
    q = c64[4,4] convert(x)
    f = c64[4,4] fft(q), fft_type=FFT, fft_length={4}
    g = f32[4,4] real(f)
    ROOT r = (f32[4,2], f32[4,4]) tuple(s, g) }""",
    "functions of one number": """
ENTRY e { x = f32[4,6] parameter(0)
    l = f32[4,6] logistic(x)
    e = f32[4,6] round-nearest-even(x)
    h = f32[] constant(0.5)
    g = f32[4,6] rng(h, h), distribution=rng_uniform
    ROOT r = (f32[4,6], f32[4,6], f32[4,6]) tuple(l, e, g) }""",
    "circular and hyperbolic functions": """
ENTRY e { x = f32[4,6] parameter(0)
    t = f32[4,6] tanh(x)
    l = f32[4,6] multiply(x, x)
    o = f32[] constant(1)
    p = f32[4,6] broadcast(o), dimensions={}
    q = f32[4,6] add(l, p)
    a = f32[4,6] acos(t)
    b = f32[4,6] asin(t)
    c = f32[4,6] atanh(t)
    d = f32[4,6] acosh(q)
    e = f32[4,6] asinh(x)
    f = f32[4,6] cosh(x)
    g = f32[4,6] sinh(x)
    ROOT r = (f32[4,6], f32[4,6], f32[4,6], f32[4,6], f32[4,6], f32[4,6], f32[4,6]) tuple(a, b, c, d, e, f, g) }""",
    "top k": """
ENTRY e { x = f32[4,6] parameter(0)
    n = f32[] constant(nan)
    p = f32[4,1] broadcast(n), dimensions={}
    q = f32[4,7] concatenate(x, p), dimensions={1}
    i = s32[4,6] convert(x)
    a = (f32[4,3], s32[4,3]) topk(q), k=3, largest=true
    b = (f32[4,3], s32[4,3]) topk(q), k=3, largest=false
    c = (s32[4,4], s32[4,4]) topk(i), k=4, largest=false
    ROOT r = ((f32[4,3], s32[4,3]), (f32[4,3], s32[4,3]), (s32[4,4], s32[4,4])) tuple(a, b, c) }""",
    "domains": """
ENTRY e { x = f32[4] parameter(0)
    d = f32[4] domain(x), domain={kind="sharding", entry={maximal device=0}, exit={}}
    ROOT r = f32[4] negate(d) }""",
}


def wanted_literals():
  return [np.array([[1, 2, 3], [4, 5, 6]], np.float32), np.arange(1, 9, dtype=np.int32).reshape(2, 2, 2),
          np.array([True, False]), np.array([-1, 2, 127], np.int8), np.array([2**64 - 1], np.uint64)]


def wanted_functions(x):
  wide = x.astype(np.float64)
  near, far = np.tanh(x).astype(np.float64), (x * x + 1).astype(np.float64)
  values = [np.arccos(near), np.arcsin(near), np.arctanh(near), np.arccosh(far), np.arcsinh(wide), np.cosh(wide), np.sinh(wide)]
  return [each.astype(np.float32) for each in values]


def wanted_top_k(x):
  """NaN sorts after every number; equal elements keep their order."""
  with_nan = np.concatenate([x, np.full((4, 1), np.nan, np.float32)], 1)
  results = []
  for values, k, key in ((with_nan, 3, np.where(np.isnan(with_nan), -np.inf, -with_nan)), (with_nan, 3, with_nan),
                         (x.astype(np.int32), 4, x.astype(np.int32))):
    order = np.argsort(key, 1, kind="stable")[:, :k]
    results += [np.take_along_axis(values, order, 1), order.astype(np.int32)]
  return results


# Modules that XLA cannot convert, or cannot run afterwards.
WANTED = {
    "bitcast": lambda x: [x.reshape(24), x.T, x.reshape(24), x.view(np.int32).reshape(2, 12)],
    "asynchronous": lambda x, y: [x - y],
    "copies": lambda x: [x + x],
    "circular and hyperbolic functions": wanted_functions,
    "literals with layouts": wanted_literals,
    "top k": wanted_top_k,
}


def arguments_of(computation):
  """Random arrays for the parameters of a computation, with tuples flattened, and the shapes of its results."""
  def leaves(shape):
    return [leaf for each in shape.tuple_shapes() for leaf in leaves(each)] if shape.is_tuple() else [shape]

  shape = computation.program_shape()
  random = np.random.default_rng(5)
  arrays = []
  for leaf in [leaf for each in shape.parameter_shapes() for leaf in leaves(each)]:
    dtype = leaf.numpy_dtype()
    data = random.standard_normal(leaf.dimensions()) if dtype.kind == "f" else random.integers(0, 2, leaf.dimensions())
    arrays.append(np.asarray(data).astype(dtype))
  return arrays, [leaf for leaf in leaves(shape.result_shape())]


def run_on_cpu(stablehlo, arrays):
  """The results of a StableHLO program on JAX's CPU backend."""
  from jax._src.lib import xla_client
  device = jax.devices("cpu")[0]
  options = xla_client.CompileOptions()
  executable = device.client.compile_and_load(stablehlo, xla_client.DeviceList((device,)), options)
  with jax.enable_x64(True):
    return [np.asarray(each) for each in executable.execute([jax.device_put(each, device) for each in arrays])]


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
  module = _hlo.hlo_module_from_text("HloModule test\n" + TEXTS[name])
  count_opcodes(module.to_string())
  proto = module.as_serialized_hlo_module_proto()
  arrays, results = arguments_of(_hlo.XlaComputation(proto))
  like = [np.empty(leaf.dimensions(), leaf.numpy_dtype()) for leaf in results]
  found = hlo_server.run_arrays(proto, arrays, like)
  wanted = WANTED[name](*arrays) if name in WANTED else run_on_cpu(_jax.mlir.hlo_to_stablehlo(proto), arrays)
  assert len(found) == len(wanted)
  for left, right in zip(found, wanted):
    assert_close(left, np.asarray(right))


def test_token_among_the_results():
  text = "ENTRY e { x = f32[2] parameter(0)\n t = token[] after-all()\n ROOT r = (f32[2], token[]) tuple(x, t) }"
  proto = _hlo.hlo_module_from_text("HloModule test\n" + text).as_serialized_hlo_module_proto()
  x = np.array([1, 2], np.float32)
  assert hlo_server.run(proto, [[x]]) == [[x.tobytes(), b""]]


# ---- several devices ----

GROUPS = [[0, 2], [1, 3]]


def in_groups(combine, groups=((0, 1, 2, 3),)):
  """The result of each device if `combine` gets the arrays of its group and its position in the group."""
  def all_devices(arrays):
    return [combine([arrays[d] for d in group], list(group).index(device))
            for device in range(len(arrays)) for group in groups if device in group]
  return all_devices


# Text, and the expected result on each of four devices, from the arrays x of all.
COLLECTIVES = {
    "all-reduce of several types": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    h = f16[4,6] convert(x)
    t = f32[] constant(1)
    ROOT r = (f32[4,6], f16[4,6], f32[]) all-reduce(x, h, t), replica_groups={}, to_apply=add }""",
        in_groups(lambda x, i: [sum(x), sum(each.astype(np.float16) for each in x), np.float32(4)])),
    "all-reduce in groups": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    s = f32[4,6] all-reduce-start(x), replica_groups={{0,2},{1,3}}, to_apply=add
    ROOT r = f32[4,6] all-reduce-done(s) }""", in_groups(lambda x, i: [sum(x)], GROUPS)),
    "all-reduce over global ids": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    ROOT s = f32[4,6] all-reduce(x), channel_id=3, use_global_device_ids=true, replica_groups=[2,2]<=[2,2]T(1,0), to_apply=add }""",
        in_groups(lambda x, i: [sum(x)], GROUPS)),
    "all-gather": ("""
ENTRY e { x = f32[4,6] parameter(0)
    a = f32[4,12] all-gather(x), dimensions={1}, replica_groups={{0,2},{1,3}}
    s = (f32[4,6], f32[16,6]) all-gather-start(x), dimensions={0}, replica_groups={{0,1,2,3}}
    b = f32[16,6] all-gather-done(s)
    ROOT r = (f32[4,12], f32[16,6]) tuple(a, b) }""", lambda x: [
        [np.concatenate([x[d] for d in GROUPS[i % 2]], 1), np.concatenate(x, 0)] for i in range(4)]),
    "reduce-scatter": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    ROOT r = (f32[1,6], f32[1,6]) reduce-scatter(x, x), dimensions={0}, replica_groups={}, to_apply=add }""",
        in_groups(lambda x, i: [sum(x)[i:i + 1]] * 2)),
    "all-to-all of an array": ("""
ENTRY e { x = f32[4,6] parameter(0)
    ROOT r = f32[4,6] all-to-all(x), dimensions={0}, replica_groups={{0,1,2,3}} }""",
        in_groups(lambda x, i: [np.concatenate([each[i:i + 1] for each in x])])),
    "all-to-all of a tuple": ("""
ENTRY e { x = f32[4,6] parameter(0)
    n = f32[4,6] negate(x)
    ROOT r = (f32[4,6], f32[4,6]) all-to-all(x, n), replica_groups={{0,2},{1,3}} }""",
        in_groups(lambda x, i: [each * (1 - 2 * i) for each in x], GROUPS)),
    "collective-permute": ("""
ENTRY e { x = f32[4,6] parameter(0)
    a = f32[4,6] collective-permute(x), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
    s = (f32[4,6], f32[4,6], u32[], u32[]) collective-permute-start(a), source_target_pairs={{0,1},{2,0}}
    b = f32[4,6] collective-permute-done(s)
    ROOT r = (f32[4,6], f32[4,6]) tuple(a, b) }""", lambda x: [
        [x[3], x[1]], [x[0], x[3]], [x[1], np.zeros_like(x[0])], [x[2], np.zeros_like(x[0])]]),
    "collective-broadcast": ("""
ENTRY e { x = f32[4,6] parameter(0)
    ROOT r = f32[4,6] collective-broadcast(x), replica_groups={{2,0,1,3}} }""", in_groups(lambda x, i: [x[2]])),
    "groups of one": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    a = f32[4,6] all-reduce(x), replica_groups={{0},{1},{2},{3}}, to_apply=add
    b = f32[4,6] all-gather(a), dimensions={1}, replica_groups={{0},{1},{2},{3}}
    s = (f32[4,6], f32[4,6]) all-gather-start(b), dimensions={0}, replica_groups={{0},{1},{2},{3}}
    c = f32[4,6] all-gather-done(s)
    d = f32[4,6] reduce-scatter(c), dimensions={0}, replica_groups={{0},{1},{2},{3}}, to_apply=add
    e = f32[4,6] all-to-all(d), dimensions={0}, replica_groups={{0},{1},{2},{3}}
    f = (f32[4,6]) all-to-all(e), replica_groups={{0},{1},{2},{3}}
    g = f32[4,6] get-tuple-element(f), index=0
    ROOT r = f32[4,6] collective-broadcast(g), replica_groups={{0},{1},{2},{3}} }""", lambda x: [[each] for each in x]),
    # Groups may name replicas that do not take part; PyTorch/XLA writes such groups.
    "groups of one beyond the replicas": (ADD + """
ENTRY e { x = f32[4,6] parameter(0)
    a = f32[4,6] all-reduce(x), replica_groups={{0},{1},{2},{3},{4}}, to_apply=add
    b = f32[4,6] all-gather(a), dimensions={1}, replica_groups={{0},{1},{2},{3},{4}}
    d = f32[4,6] reduce-scatter(b), dimensions={0}, replica_groups={{0},{1},{2},{3},{4}}, to_apply=add
    ROOT e = f32[4,6] all-to-all(d), dimensions={0}, replica_groups={{0},{1},{2},{3},{4}} }""", lambda x: [[each] for each in x]),
    # Device i sends row k to row i of device k.
    "ragged-all-to-all": ("""
ENTRY e { x = f32[4,6] parameter(0)
    o = f32[4,6] negate(x)
    i = u32[] replica-id()
    s = s32[] convert(i)
    n = s32[4] iota(), iota_dimension=0
    one = s32[] constant(1)
    m = s32[4] broadcast(one), dimensions={}
    at = s32[4] broadcast(s), dimensions={}
    a = f32[4,6] ragged-all-to-all(x, o, n, m, at, m), replica_groups={{0,1,2,3}}
    two = s32[2] slice(n), slice={[0:2]}
    ones = s32[2] slice(m), slice={[0:2]}
    half = s32[] constant(2)
    place = s32[] divide(s, half)
    to = s32[2] broadcast(place), dimensions={}
    b = f32[4,6] ragged-all-to-all(x, o, two, ones, to, ones), replica_groups={{0,2},{1,3}}
    ROOT r = (f32[4,6], f32[4,6]) tuple(a, b) }""", lambda x: [
        [np.stack([each[i] for each in x]), np.stack([x[i % 2][i // 2], x[i % 2 + 2][i // 2], -x[i][2], -x[i][3]])]
        for i in range(4)]),
    "ids": ("""
ENTRY e { x = f32[4,6] parameter(0)
    i = u32[] replica-id()
    p = u32[] partition-id()
    ROOT r = (u32[], u32[]) tuple(i, p) }""", in_groups(lambda x, i: [np.uint32(i), np.uint32(0)])),
    "asynchronous": (ADD + """
f { p = f32[4,6] parameter(0)
    ROOT s = f32[4,6] all-reduce(p), replica_groups={{0,2},{1,3}}, to_apply=add }
ENTRY e { x = f32[4,6] parameter(0)
    s = ((f32[4,6]), f32[4,6], s32[]) async-start(x), calls=f
    ROOT d = f32[4,6] async-done(s) }""", in_groups(lambda x, i: [sum(x)], GROUPS)),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collective(name):
  text, meaning = COLLECTIVES[name]
  module = _hlo.hlo_module_from_text("HloModule test, replica_count=4\n" + text)
  count_opcodes(module.to_string())
  arrays = [R.integers(-9, 9, (4, 6)).astype(np.float32) for _ in range(4)]
  found = hlo_server.run(module.as_serialized_hlo_module_proto(), [[x] for x in arrays], replicas=4)
  for left, right in zip(found, meaning(arrays)):
    assert left == [each.tobytes() for each in right]


def spmd_function(mesh):
  """A function on sharded arrays, and their shardings."""
  sharding = lambda *spec: NamedSharding(mesh, PartitionSpec(*spec))

  def f(x, y):
    z = lax.with_sharding_constraint(x @ y, sharding("a", "b"))
    return jnp.tanh(z), (x + 1).sum(0), z.T

  arguments = [(floats(4, 8), sharding("a", "b")), (floats(8, 6), sharding(None, "b"))]
  return f, arguments, (sharding("b", None), sharding("a"), sharding("b", "a"))


def test_sharded_function():
  """GSPMD's annotations in HLO give each device what Shardy's in StableHLO give it."""
  mesh = jax.make_mesh((2, 2), ("a", "b"), devices=jax.devices("minipod")[:4], axis_types=(AxisType.Auto,) * 2)
  f, arguments, results = spmd_function(mesh)
  jitted = lambda: jax.jit(f, in_shardings=[each for _, each in arguments], out_shardings=results)
  arrays = [jax.device_put(*each) for each in arguments]
  on_device = lambda array: [each.data for each in sorted(array.addressable_shards, key=lambda s: s.device.id)]
  wanted = [[np.asarray(each).tobytes() for each in shards]
            for shards in zip(*(on_device(array) for array in jitted()(*arrays)))]
  with jax._src.config.use_shardy_partitioner(False):
    lowered = jitted().lower(*[each for each, _ in arguments]).compiler_ir("hlo")
  assert "sharding={devices=[2,2]<=[4]}" in lowered.as_hlo_text()
  inputs = [list(map(np.asarray, shards)) for shards in zip(*(on_device(array) for array in arrays))]
  assert hlo_server.run(lowered.as_serialized_hlo_module_proto(), inputs, partitions=4) == wanted


# HLO with shardings by names of axes, and by lists of devices.
NAMED = """
ENTRY e { x = f32[8,4] parameter(0), sharding=%s
    y = f32[4,8] parameter(1), sharding=%s
    d = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    s = f32[8,8] custom-call(d), custom_call_target="Sharding", sharding=%s
    n = f32[8,8] tanh(s), sharding=%s
    ROOT r = (f32[8,8], f32[8,4]) tuple(n, x), sharding={%s, %s} }"""
MESH = "mesh['a'=2,'b'=4]"
SHARDINGS = [
    (f"{{{MESH}, [{{'b'}}, {{'a'}}]}}", "{devices=[4,2]<=[2,4]T(1,0)}"),
    (f"{{{MESH}, [{{'a'}}, {{'b':(1)2}}]}}", "{devices=[2,2,2]<=[8] last_tile_dim_replicate}"),
    (f"{{{MESH}, [{{}}, {{'a','b'}}]}}", "{devices=[1,8]<=[8]}"),
    (f"{{{MESH}, [{{'b':(2)2}}, {{}}]}}", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"),
    ("{mesh['c'=2,'d'=4], device_ids=([4,2]T(1,0)), [{'c','d'}, {}]}", "{devices=[8,1]<=[4,2]T(1,0)}"),
    (f"{{{MESH}, [{{}}, {{}}]}}", "{replicated}"),
]


def test_named_shardings():
  proto = lambda form: _hlo.hlo_module_from_text(
      "HloModule test, num_partitions=8\n" + NAMED % tuple(pair[form] for pair in SHARDINGS)).as_serialized_hlo_module_proto()
  x, y = floats(8, 4), floats(4, 8)
  parts = [[x[2 * (d % 4):][:2, 2 * (d // 4):][:, :2], y[2 * (d // 4):][:2, 4 * (d // 2 % 2):][:, :4]] for d in range(8)]
  found = hlo_server.run(proto(0), parts, partitions=8)
  assert found == hlo_server.run(proto(1), parts, partitions=8)
  wanted = np.tanh(x @ y)
  for place, device in enumerate(np.arange(8).reshape(4, 2).T.flatten()):
    assert_close(np.frombuffer(found[device][0], np.float32), wanted[place])
    assert found[device][1] == x.tobytes()


# The second value should be sharded like the first, which is expressed in every possible way.
ALIKE = """
ENTRY e { x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
    y = f32[8,4] parameter(1)%s
    a = f32[8,4] negate(x)%s
    b = f32[8,4] tanh(y)%s
    %s
    s = f32[8,4] subtract(%s, b)
    ROOT r = (f32[8,4], f32[8,4]) tuple(s, b), sharding={{devices=[4,1]<=[4]}, {devices=[4,1]<=[4]}} }"""
GROUPED = "frontend_attributes={xla.sdy.sharding_group_id=\"3 : i64\"}"
WAYS_TO_SAY_ALIKE = {
    "calls": ("", "", "", 'c = f32[8,4] custom-call(a), custom_call_target="Sharding", sharding={unknown shard_as 3}\n'
              'd = f32[8,4] custom-call(b), custom_call_target="Sharding", sharding={unknown shard_as 3}', "c"),
    "operations": ("", ", sharding={unknown shard_as 3}", ", sharding={unknown shard_like 3}", "", "a"),
    "a parameter": (", sharding={devices=[1,4]<=[4] shard_as 3}", ", sharding={unknown shard_as 3}", "", "", "a"),
    "Shardy": ("", "", "", f'c = () custom-call(a), custom_call_target="xla.sdy.ShardingGroup", {GROUPED}\n'
               f'd = () custom-call(b), custom_call_target="xla.sdy.ShardingGroup", {GROUPED}', "a"),
}


@pytest.mark.parametrize("way", WAYS_TO_SAY_ALIKE)
def test_groups_of_shardings(way):
  module = _hlo.hlo_module_from_text("HloModule test, num_partitions=4\n" + ALIKE % WAYS_TO_SAY_ALIKE[way])
  x, y = floats(8, 4), floats(8, 4)
  given = [[x[2 * d:2 * d + 2], np.ascontiguousarray(y[:, d:d + 1]) if way == "a parameter" else y] for d in range(4)]
  found = hlo_server.run(module.as_serialized_hlo_module_proto(), given, partitions=4)
  b = np.tanh(y)
  for d in range(4):
    for part, wanted in zip(found[d], (-x - b, b)):
      assert_close(np.frombuffer(part, np.float32).reshape(2, 4), wanted[2 * d:2 * d + 2])


# Text, and the part of the error after the place.
REFUSED = {
    "infeed": ("""
ENTRY e { t = token[] after-all()
    i = ((f32[3], pred[]), token[]) infeed(t) PLACE
    ROOT r = (f32[3], pred[]) get-tuple-element(i), index=0 }""", "infeeds are not supported"),
    "outfeed": ("""
ENTRY e { x = f32[2] parameter(0)
    t = token[] after-all()
    o = token[] outfeed(x, t), outfeed_shape=f32[2]{0} PLACE
    ROOT r = f32[2] negate(x) }""", "outfeeds are not supported"),
    "set-dimension-size": ("""
ENTRY e { x = f32[2] parameter(0)
    n = s32[] constant(1)
    d = f32[<=2] set-dimension-size(x, n), dimensions={0} PLACE
    ROOT r = f32[2] negate(x) }""", "dynamic (shapes|dimensions) are not supported"),
    "parameter": ("""
ENTRY e { d = f32[<=2] parameter(0) PLACE
    ROOT r = f32[<=2] negate(d) }""", "dynamic dimensions are not supported"),
    "custom-call": ("""
ENTRY e { x = f32[4,4] parameter(0)
    ROOT r = f32[2,4] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape" PLACE }""",
                    "'xla.sdy.GlobalToLocalShape' is not known"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
  text, words = REFUSED[name]
  text = text.replace(" PLACE", ', metadata={op_name="jit(f)/feed" source_file="a.py" source_line=7}')
  proto = _hlo.hlo_module_from_text("HloModule test\n" + text).as_serialized_hlo_module_proto()
  with pytest.raises(RuntimeError, match=words) as error:
    hlo_server.run(proto, [[]])
  assert f"{name}, feed at a.py:7" in str(error.value).replace("_", "-")


# ---- programs that PyTorch/XLA has sent ----

RECORDED = sorted((hlo_server.ROOT / "tests/fixtures/hlo").glob("*.hlo"))


def portable(stablehlo):
  """StableHLO's bytecode in the form that plugins get."""
  from jax._src.interpreters import mlir
  from jaxlib.mlir import ir
  with mlir.make_ir_context():
    return _jax.mlir.serialize_portable_artifact(mlir.module_to_bytecode(ir.Module.parse(stablehlo)), "1.13.0")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_program(path):
  """XLA's conversion to StableHLO, read by minipod's StableHLO reader, gives the same bits."""
  proto = path.read_bytes()
  computation = _hlo.XlaComputation(proto)
  count_opcodes(computation.as_hlo_text())
  arrays, _ = arguments_of(computation)
  replicas = 4 if "launch" in path.stem or "all_reduce" in path.stem else 1
  found = hlo_server.run(proto, [arrays] * replicas, replicas=replicas)
  if "all-to-all" in computation.as_hlo_text():
    return  # XLA does not convert it
  program = portable(_jax.mlir.hlo_to_stablehlo(proto))
  assert found == hlo_server.run(program, [arrays] * replicas, form="mlir", replicas=replicas)


def test_what_was_covered():
  """Prints which opcodes the earlier tests have read."""
  print(f"\n{len(OPCODES)} opcodes:", " ".join(sorted(OPCODES)))
