"""The memory of the described chip: what programs need by its compiler's plan, and programs that do not fit."""

import scenario

PROGRAM = """
import jax, jax.numpy as jnp
from jax.experimental import topologies
M = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)  # 4 MiB
def f(x):
  for _ in range(4):
    x = jnp.tanh(x @ x) + 1
  return x
"""
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "torus:2x2 hbm:64MiB"}


def run(code, **env):
  return scenario.run(PROGRAM + code, devices=None, **POD | env)


def test_two_products_of_a_chain_live_at_once():
  """Computed by hand: of four consecutive matmuls the last is the result, and two of the others are live at the same
  time.
  """
  code = """
stats = jax.jit(f).lower(M).compile().memory_analysis()
print(stats.argument_size_in_bytes >> 20, stats.output_size_in_bytes >> 20, stats.temp_size_in_bytes >> 20)
"""
  assert run(code) == "4 4 8\n"
  assert run(code, MINIPOD_FUSE="0") == "4 4 8\n"


def test_a_topology_without_client_has_the_same_plan():
  code = """
import numpy as np
from jax.sharding import SingleDeviceSharding
topology = topologies.get_topology_desc("torus:2x2 hbm:{size}", "minipod")
x = jax.ShapeDtypeStruct(M.shape, M.dtype, sharding=SingleDeviceSharding(topology.devices[0]))
try:
  print(jax.jit(f).lower(x).compile().memory_analysis().temp_size_in_bytes >> 20)
except Exception as e:
  print(str(e).partition(":")[0], "described chip" in str(e))
"""
  assert run(code.format(size="64MiB")) == "8\n"
  assert run(code.format(size="15MiB")) == "RESOURCE_EXHAUSTED True\n"


def test_what_does_not_fit_is_refused_when_it_is_compiled():
  """4 MiB of arguments, 4 of results, 8 of temporaries: the program fits into 16 MiB, but not into 15.  The table names
  the live buffers.
  """
  code = """
try:
  jax.jit(f).lower(M).compile()
  print("fits")
except Exception as e:
  print(e)
"""
  assert run(code, MINIPOD_TOPOLOGY="torus:2x2 hbm:16MiB") == "fits\n"
  message = run(code, MINIPOD_TOPOLOGY="torus:2x2 hbm:15MiB")
  assert "RESOURCE_EXHAUSTED: jit_f does not fit into the memory of the described chip" in message
  assert "8.00 MiB  temporaries; of these live at once:" in message
  assert "       8.00 MiB  2 x tensor<1024x1024xf32> of stablehlo.dot_general (" in message
  off = run(code, MINIPOD_TOPOLOGY="torus:2x2 hbm:15MiB", MINIPOD_TIME="off")
  assert off == "fits\n"


def test_equal_temporaries_are_one_line():
  """Layers without a scan have values that look identical to people."""
  message = run("""
def layers(x):
  kept = []
  for _ in range(20):
    x = jnp.sin(x @ x)
    kept.append(x)
  return sum(jnp.max(y @ y) for y in kept[::-1])
try:
  jax.jit(layers).lower(M).compile()
except Exception as e:
  print(e)
""", MINIPOD_TOPOLOGY="torus:2x2 hbm:15MiB")
  first, *lines = message.splitlines()
  assert "  " not in first and "it needs " in first
  assert any(" x tensor<1024x1024xf32> of stablehlo." in line for line in lines), message
  assert len(lines) < 12, message


def test_runs_are_charged_what_the_plan_says():
  """A program that fits by the plan runs, whatever minipod's own arena needs: op by op it holds the tanh, but the plan
  computes it in the matmul.
  """
  code = """
compiled = jax.jit(lambda x: jnp.tanh(x) @ x).lower(M).compile()
x = jax.device_put(jnp.zeros(M.shape, M.dtype), jax.devices()[0])
jax.block_until_ready(compiled(x))
print(compiled.memory_analysis().temp_size_in_bytes, jax.devices()[0].memory_stats()["peak_bytes_in_use"] >> 20)
"""
  for way in ({}, {"MINIPOD_FUSE": "0"}, {"MINIPOD_VALUES": "shapes"}):
    assert run(code, MINIPOD_TOPOLOGY="torus:2x2 hbm:8MiB", **way) == "0 8\n"
