"""Programs as text: minipod reads MLIR's text to the same module as its bytecode, and MLIR reads minipod's text.

build/minipod-opt tests reader, verifier and printer.
"""

import os
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters import mlir as jax_mlir
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

ROOT = pathlib.Path(__file__).resolve().parents[3]
OPT = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-opt"


def opt(program, *flags):
  if isinstance(program, str):
    program = program.encode()
  run = subprocess.run([OPT, *flags, "-"], input=program, capture_output=True, timeout=60)
  assert run.returncode == 0, run.stderr.decode()
  return run.stdout.decode()


def mesh(*shape):
  names = ("x", "y")[: len(shape)]
  return Mesh(np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape), names)


def psum_program(a):
  f = jax.shard_map(lambda b: lax.psum(b, "x"), mesh=mesh(4, 2), in_specs=P("x", "y"),
                    out_specs=P(None, "y"))
  return f(a)


def constrained(a):
  return lax.with_sharding_constraint(a + 1, NamedSharding(mesh(4, 2), P("y", None)))


def conv(a, k):
  return lax.conv_general_dilated(a, k, (2, 1), [(1, 1), (0, 2)], rhs_dilation=(1, 2),
                                  dimension_numbers=("NHWC", "HWIO", "NHWC"))



def ones(*shape):
  return np.ones(shape, np.float32)


PROGRAMS = {
    "elementwise": (lambda a: jnp.tanh(a) * 2 + jnp.where(a > 0, a, -a), ones(4, 8)),
    "constants": (lambda a: a + np.arange(200, dtype=np.float32) / 7, ones(200)),
    "small constants": (lambda a: a * np.array([1e-30, 0.1, np.inf, np.nan]), ones(4)),
    "complex": (lambda a: jnp.fft.rfft(a).imag, ones(4, 8)),
    "bits": (lambda a: lax.bitcast_convert_type(a, jnp.uint32) >> 3, ones(4)),
    "narrow": (lambda a: a.astype(jnp.float8_e4m3fn).astype(jnp.bfloat16), ones(4)),
    "dot": (lambda a: jnp.einsum("bij,bjk->bik", a, a, precision="highest"), ones(2, 4, 4)),
    "conv": (conv, ones(1, 8, 8, 2), ones(3, 3, 2, 4)),
    "sort": (lambda a: lax.sort((a, jnp.arange(8)), num_keys=1), ones(8)),
    "argmax": (jnp.argmax, ones(4, 8)),
    "cumsum": (lambda a: jnp.cumsum(a, axis=1), ones(4, 8)),
    "pool": (lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME"), ones(5, 5)),
    "scatter": (lambda a: a.at[jnp.array([1, 3])].add(2.0), ones(8)),
    "gather": (lambda a: a[:, jnp.array([1, 3])], ones(4, 8)),
    "loop": (lambda a: lax.fori_loop(0, 5, lambda i, x: x + i, a), ones(4)),
    "scan": (lambda a: lax.scan(lambda c, x: (c + x, c * x), a[0], a), ones(5, 4)),
    "branches": (lambda a: lax.switch(a[0].astype(int), [jnp.sin, jnp.cos, jnp.exp], a), ones(4)),
    "random": (lambda a: jax.random.normal(jax.random.key(1), (4,)) + a, ones(4)),
    "cholesky": (lambda a: jnp.linalg.cholesky(a), ones(4, 4)),
    "triangular": (lambda a: lax.linalg.triangular_solve(a, a, lower=True), ones(4, 4)),
    "top_k": (lambda a: lax.top_k(a, 2), ones(8)),
    "erf": (jax.scipy.special.erf, ones(8)),
    "gradient": (jax.grad(lambda a: jnp.sum(jnp.tanh(a @ a) ** 2)), ones(4, 4)),
    "shard_map": (psum_program, ones(8, 4)),
    "constraint": (constrained, ones(8, 4)),
}


class Program:
  """The bytes that JAX compiles, the MLIR module in them, and minipod's text of the bytes."""

  def __init__(self, function, *arguments):
    module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
    with module.context:
      self.code = _jax.mlir.serialize_portable_artifact(
          jax_mlir.module_to_bytecode(module), stablehlo.get_current_version(), True)
    self.context = jax_mlir.make_ir_context()
    with self.context:
      module = stablehlo.deserialize_portable_artifact(self.context, self.code)
    self.operation = module.operation
    self.printed = opt(self.code)


@pytest.fixture(params=PROGRAMS, name="program", scope="module")
def fixture_program(request):
  return Program(*PROGRAMS[request.param])


def test_pretty_text(program):
  assert opt(program.operation.get_asm()) == program.printed


def test_generic_text(program):
  assert opt(program.operation.get_asm(print_generic_op_form=True)) == program.printed


def test_text_with_locations(program):
  text = program.operation.get_asm(enable_debug_info=True)
  assert opt(text) == program.printed
  assert "test_text.py" in opt(text, "--locations")


def test_printed_text_reads_back(program):
  opt(program.code, "--check")
  opt(program.operation.get_asm(enable_debug_info=True), "--check", "--locations")


@pytest.mark.parametrize("flags", [[], ["--generic"], ["--locations"]], ids=str)
def test_mlir_reads_what_is_printed(program, flags):
  with program.context:
    again = ir.Module.parse(opt(program.code, *flags)).operation
  assert opt(again.get_asm()) == program.printed


def test_errors_say_where():
  run = subprocess.run([OPT, "-"], input=b"func.func @main() {\n  oops\n}", capture_output=True)
  assert run.returncode == 1
  assert b"2:3: the operation 'oops' is not known" in run.stderr
