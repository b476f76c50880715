"""The sharding rule of every op equals the one that Shardy's own registry gives it.

Rules are compared as `minipod-opt --rules` prints them and as Shardy's pass in jaxlib writes them,
op by op, up to the names of factors; on programs of every op (random_ops.py) and of JAX.
"""

import collections
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

pytestmark = oracle.NEEDS_SHARDY
PASSES = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
# Without operands nothing propagates.
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
  """Per dimension its factors, by number of first use, with size and kinds; without factors of size 1
  that say nothing because no other dimension has them."""
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


def compare(text):
  """How many ops of each name have a rule; fails where the two differ."""
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
        continue  # targets of minipod's own
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
