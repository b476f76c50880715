"""The partitioner's reports: cost analysis, and dumps of the programs."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import scenario


def test_cost_analysis():
  mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))
  put = lambda *spec: jax.device_put(np.ones((16, 16), np.float32), NamedSharding(mesh, P(*spec)))
  f = jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P("x")))
  costs = f.lower(put("x", "y"), put("y")).compile().cost_analysis()
  assert costs["spmd.all_reduce.count"] == 1
  # 8 x 16 floats among 4 devices.
  assert costs["spmd.all_reduce.bytes"] == costs["spmd.wire_bytes"] == 2 * 512 * 3 / 4
  assert "spmd.all_gather.count" not in costs
  # One device: nothing to report.
  assert not any(name.startswith("spmd") for name in
                 jax.jit(jnp.add).lower(1., 1.).compile().cost_analysis())


PROGRAM = """
mesh = Mesh(np.array(jax.devices()), ("x",))
a = jax.device_put(np.arange(16.).reshape(4, 4), NamedSharding(mesh, P("x")))
def step(a):
  return jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), a.sum(0)
jax.jit(step, out_shardings=NamedSharding(mesh, P()))(a)
try:
  jax.jit(lambda a: jax.ffi.ffi_call("no_such_target", a)(a))(a)
except Exception as error:
  print(type(error).__name__)
"""


def test_dump(tmp_path):
  folder = tmp_path / "programs"
  assert scenario.run(PROGRAM, MINIPOD_DUMP=folder).strip() == "JaxRuntimeError"
  names = sorted(os.listdir(folder))
  partitioned = [n for n in names if ".jit_step." in n and n.endswith(".partitioned.mlir")]
  assert len(partitioned) == 1
  text = (folder / partitioned[0]).read_text()
  head = text[:text.index("module @jit_step")].splitlines()
  assert head[0].startswith("// 4 partitions; communication: ")
  assert any(line.startswith("//   all_gather: ") for line in head)
  assert any(line.startswith("//   stablehlo.cholesky, cholesky") for line in head), head
  assert (folder / partitioned[0].replace(".partitioned.mlir", ".commands.txt")).exists()
  # A program that could not be compiled is in the folder as it came.
  inputs = [n for n in names if ".input.mlir" in n]
  assert len(inputs) == len([n for n in names if n.endswith(".partitioned.mlir")]) + 1


def test_dump_that_cannot_be_written():
  """If the folder cannot be made, minipod prints a warning, and the program still runs."""
  out = scenario.run("print(int(jnp.add(1, 1)))", MINIPOD_DUMP="/proc/no/such/folder")
  assert out.strip() == "2"
