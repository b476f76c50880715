"""The sharding rule of every op equals that of Shardy's own registry.

The rules that `minipod-opt --rules` prints are compared with those of Shardy's pass in jaxlib, op by op, up to the
names of factors.  The programs cover every op (random_ops.py) and come from JAX, too.
"""

import collections
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir as jax_mlir
from jax.sharding import Mesh, PartitionSpec as P
from jaxlib.mlir import ir, passmanager

import propagation_oracle as oracle
import random_ops

PASSES = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
# Without operands, nothing propagates.
SOURCES = {"stablehlo.constant", "stablehlo.iota", "sdy.constant", "sdy.mesh"}


def walk(op):
  for region in op.regions:
    for block in region:
      for inner in block:
        if inner.operation.name not in SOURCES:
          yield inner.operation
        yield from walk(inner.operation)


def tensors(text):
  """`[i, jk], []` as factors per dimension per tensor."""
  return [[re.findall(r"z_\d+|[i-z]", dim) for dim in tensor.split(", ")] if tensor else []
          for tensor in re.findall(r"\[(.*?)\]", text)]


def canonical(rule):
  """For each dimension its factors, numbered by first use, with size and kinds.

  Factors of size 1 are left out if no other dimension has them.
  """
  if rule is None:
    return None
  match = re.fullmatch(r"#sdy\.op_sharding_rule<\((.*?)\)->\((.*?)\)(?: \{(.*?)\})?"
                       r"((?: \w+=\{.*?\})*)(, custom)?>", rule)
  sizes = dict(part.split("=") for part in (match[3] or "").split(", ") if part)
  kinds = collections.defaultdict(list)
  for kind, factors in re.findall(r"(\w+)=\{(.*?)\}", match[4] or ""):
    for factor in factors.split(", "):
      kinds[factor].append(kind)
  sides = tensors(match[1]), tensors(match[2])
  uses = collections.Counter(f for side in sides for t in side for dim in t for f in dim)
  numbers = {}
  return [[[[(numbers.setdefault(f, len(numbers)), sizes[f], sorted(kinds[f]))
             for f in dim if sizes[f] != "1" or uses[f] > 1] for dim in t] for t in side]
          for side in sides]


def rule_of(op):
  return str(op.attributes["sdy.sharding_rule"]) if "sdy.sharding_rule" in op.attributes else None


# Operations of all kinds whose rules differ between the Shardys of JAX 0.9 to 0.12: arguments, operation, and the rule
# of 0.10.
QUESTIONS = {
    "stablehlo.dynamic_update_slice": (
        "(%a: tensor<8x4xf32>, %b: tensor<4x4xf32>)",
        "stablehlo.dynamic_update_slice %a, %b, %i, %i :"
        " (tensor<8x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>",
        "([i, k], [j, k], [], [])->([i, k]) {i=8, j=4, k=4}"),
    "stablehlo.pad": (
        "(%a: tensor<2xf32>, %b: tensor<f32>)",
        "stablehlo.pad %a, %b, low = [1], high = [-1], interior = [0] :"
        " (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>",
        "([i], [])->([i]) {i=2}"),
    "stablehlo.reshape": (
        "(%a: tensor<6x16xf32>)",
        "stablehlo.reshape %a : (tensor<6x16xf32>) -> tensor<8x12xf32>",
        "([ij, ln])->([ik, mn]) {i=2, j=3, k=4, l=4, m=3, n=4}"),
    "stablehlo.convolution": (
        "(%a: tensor<4x8x2xf32>, %b: tensor<3x2x5xf32>)",
        "stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],"
        " window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :"
        " (tensor<4x8x2xf32>, tensor<3x2x5xf32>) -> tensor<4x8x5xf32>",
        "([i, j, k], [m, k, l])->([i, j, l]) {i=4, j=8, k=2, l=5, m=1} reduction={k} permutation={j}"),
}


def rule_in_shardy(arguments, operation):
  result = operation.rsplit("-> ", 1)[1]
  with jax_mlir.make_ir_context():
    module = ir.Module.parse(f"""func.func @main{arguments} -> {result} {{
      %i = stablehlo.constant dense<2> : tensor<i32>
      %r = {operation}
      return %r : {result}
    }}""")
    passmanager.PassManager.parse(PASSES).run(module.operation)
    return next(filter(None, map(rule_of, walk(module.operation))))


@functools.cache
def otherwise():
  """The operations for which this Shardy has other rules; minipod keeps those of 0.10."""
  return {name for name, (arguments, operation, rule) in QUESTIONS.items()
          if rule_in_shardy(arguments, operation) != f"#sdy.op_sharding_rule<{rule}>"}


@pytest.mark.skipif(jax.__version_info__[:2] != (0, 10), reason="another Shardy than that of JAX 0.10")
def test_every_rule_is_compared():
  assert otherwise() == set()


def compare(text):
  """The number of ops of each name that have a rule; fails if the two differ."""
  text = oracle.opt(oracle.without_chlo(text), "--prepare")  # sugar has no rules
  counts = collections.Counter()
  with jax_mlir.make_ir_context():
    theirs = ir.Module.parse(text)
    passmanager.PassManager.parse(PASSES).run(theirs.operation)
    mine = ir.Module.parse(oracle.opt(text, "--rules"))
    pairs = list(zip(walk(theirs.operation), walk(mine.operation), strict=True))
    for their, my in pairs:
      assert their.name == my.name
      expected, found = rule_of(their), rule_of(my)
      if expected is None and my.name == "stablehlo.custom_call":
        continue  # minipod's own targets
      if my.name in otherwise():
        continue
      assert canonical(found) == canonical(expected), f"{my}\nShardy: {expected}"
      counts[my.name] += expected is not None
  return counts


@pytest.mark.parametrize("batch", range(4))
def test_random_programs(batch):
  counts = collections.Counter()
  for seed in range(batch * 30, batch * 30 + 30):
    program, results = random_ops.random_program(seed)
    counts += compare(program.text([(value, spec) for value, spec, _ in results], parts=True))
  assert len(counts) > 20, counts


def ones(*shape):
  return jnp.ones(shape, np.float32)


def loss(k, a):
  return lax.conv_general_dilated(a, k, (1, 1), "SAME", feature_group_count=2,
                                  dimension_numbers=("NHWC", "HWIO", "NHWC")).sum()


def partial_manual(a):
  def body(b):
    b = lax.psum_scatter(lax.all_gather(b, "x", tiled=True), "x", tiled=True)
    return lax.all_to_all(lax.psum(b, "x"), "x", 0, 1, tiled=True)
  mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("x", "y"))
  return jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"},
                       check_vma=False)(a)


PROGRAMS = {
    "gradient of a convolution": (jax.grad(loss), ones(3, 3, 2, 8), ones(2, 6, 6, 4)),
    "gradient of pooling": (jax.grad(lambda a: lax.reduce_window(
        a, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()), ones(2, 4, 4, 8)),
    "embedding and its gradient": (jax.grad(lambda e, i: jnp.sin(e[i]).sum()), ones(16, 8),
                                   np.zeros((4, 2), np.int32)),
    "take along an axis": (lambda a, i: jnp.take_along_axis(a, i, 1), ones(4, 6),
                           np.zeros((4, 2), np.int32)),
    "solve": (jnp.linalg.solve, ones(3, 4, 4), ones(3, 4, 2)),
    "qr": (jnp.linalg.qr, ones(3, 4, 2)),
    "shifts": (lambda a: jnp.roll(a, 2, 0) + jnp.pad(a, ((1, 0), (0, 0)), mode="wrap")[1:], ones(8, 4)),
    "random numbers": (lambda a: a + jax.random.normal(jax.random.key(0), a.shape), ones(8, 4)),
    "transform": (lambda a: jnp.fft.irfft2(jnp.fft.rfft2(a)), ones(4, 8, 6)),
    "largest": (lambda a: lax.top_k(a, 3), ones(4, 8)),
    "cumulative": (lambda a: jnp.cumsum(a, 0) + lax.cummax(a, 1), ones(4, 8)),
    "collectives, some axes manual": (partial_manual, ones(8, 4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
  function, *args = PROGRAMS[name]
  counts = compare(jax.jit(function).lower(*args).as_text())
  assert counts
