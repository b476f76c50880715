"""Locations of ops: programs of many ops below deep Python stacks are read.  Locations that expand to more than a
program of this size may hold are refused.
"""

import time

import jax
from jax import lax
import jax.numpy as jnp
from jaxlib import xla_client as xc
import pytest


def compiled(text):
  device = jax.devices()[0]
  return device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())


def program(locations):
  """One addition with the location #top; MLIR reads the text, and minipod gets its bytecode."""
  return f"""{locations}
func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
  %y = stablehlo.add %x, %x : tensor<f32> loc(#top)
  return %y : tensor<f32>
}}
"""


def below_frames(frames, function, x):
  return below_frames(frames - 1, function, x) if frames else function(x)


def many_ops(x):
  a, b = x, x
  for i in range(20_000):
    a, b = lax.mul(a, b) if i % 2 else lax.add(a, x), a
  return a


# An op's location names its 100 innermost frames; the ops share the frames of the stack.
def test_20_000_ops_below_100_frames():
  compiled = jax.jit(lambda x: below_frames(100, many_ops, x)).lower(jnp.float32(1)).compile()
  assert compiled(jnp.float32(0)) == 0
  # As text, the stacks of all ops would have a quarter of a gigabyte.
  assert len(compiled.as_text()) < 64 << 20


def test_stack_of_3_000_frames():
  lines = ['#c0 = loc("main.py":1:1)']
  lines += [f'#c{i} = loc(callsite("f"("x.py":{i}:1) at #c{i - 1}))' for i in range(1, 3_000)]
  compiled(program("\n".join(lines) + "\n#top = loc(#c2999)"))


# 2^60 nodes in sixty lines.
@pytest.mark.parametrize("form", ['fused["a"({0}), {0}]', "callsite({0} at {0})"])
def test_locations_that_unfold_to_huge_trees(form):
  lines = ['#c0 = loc("main.py":1:1)']
  lines += [f"#c{i} = loc({form.format(f'#c{i - 1}')})" for i in range(1, 61)]
  began = time.thread_time()
  with pytest.raises(Exception, match="a table entry unfolds to a huge tree"):
    compiled(program("\n".join(lines) + "\n#top = loc(#c60)"))
  assert time.thread_time() - began < 5


# Each attribute is small enough, but not all of them.
def test_attributes_that_unfold_to_huge_trees():
  lines = ['#c0 = "x"']
  lines += [f"#c{i} = [#c{i - 1}, #c{i - 1}]" for i in range(1, 15)]
  ops = "\n".join(f"  %y{i + 1} = stablehlo.add %y{i}, %x {{a = #c14}} : tensor<f32>" for i in range(200))
  with pytest.raises(Exception, match="attributes and types unfold to huge trees"):
    compiled("\n".join(lines) + f"""
func.func public @main(%x: tensor<f32>) -> tensor<f32> {{
  %y0 = stablehlo.add %x, %x : tensor<f32>
{ops}
  return %y200 : tensor<f32>
}}
""")
