"""On pods of TPUs, Pallas kernels that need more VMEM than a TPU has are refused as by libtpu."""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
from minipod.jax import kernels
import pytest

MIB = 1 << 20


@pytest.fixture
def describe(monkeypatch):
  """Replaces the pod's kind of device."""
  def describe(kind):
    device = type("Device", (), {"device_kind": kind})
    monkeypatch.setattr(kernels.jax, "devices", lambda platform: [device])
  return describe


def lower(rows=MIB // 128, grid=(2,), index=lambda i: (i, 0), scratch=(), dtype=jnp.float32, lanes=128,
          limit=None, body=None, **spec):
  """Lowers a copy of an array in blocks of `rows`, by default 4 MiB in total."""
  def kernel(x, out, *scratch):
    if body is not None:
      body(out)
    out[...] = x[...]

  block = pl.BlockSpec((rows // 8, lanes), index, **spec)
  options = {} if limit is None else {"compiler_params": pltpu.CompilerParams(vmem_limit_bytes=limit)}
  x = jax.ShapeDtypeStruct((rows // 8 * max(grid, default=1), lanes), dtype)
  f = pl.pallas_call(kernel, out_shape=x, grid=grid, in_specs=[block], out_specs=block,
                     scratch_shapes=scratch, **options)
  jax.jit(f).lower(x)


def refused(**options):
  """The sizes that the error states."""
  with pytest.raises(jax.errors.JaxRuntimeError) as error:
    lower(**options)
  text = str(error.value)
  assert text.startswith("RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on"
                         " stack for %kernel")
  assert "test_pallas_vmem.py:" in text and "operand x" in text
  return [word.rstrip(".") for word in text.split("\n")[0].split() if word[0].isdigit()]


def test_blocks_scratch_memory_and_limits_are_compared(describe):
  describe("TPU v6 lite")
  big = {"rows": 128 * MIB // 128}  # blocks of 64 MiB
  lower(**big, grid=(1,))
  assert refused(**big) == ["256.00M", "128.00M", "128.00M"]
  assert refused(**big, grid=(1,), scratch=[pltpu.VMEM((8, 128), jnp.float32)]) == [
      "128.00M", "128.00M", "4.00K"]
  lower(limit=2 * MIB)
  assert refused(limit=2 * MIB - 1) == ["2.00M", "2.00M", "1B"]


def test_buffers_are_counted(describe):
  describe("TPU v5 lite")
  lower(limit=MIB, index=lambda i: (0, 0))
  lower(limit=MIB, grid=(1,))
  lower(limit=MIB, pipeline_mode=pl.Buffered(1))
  assert refused(limit=MIB, index=lambda i: (i, 0))[0] == "2.00M"


def test_lanes_and_types_are_counted(describe):
  describe("TPU v5 lite")
  assert refused(limit=1, lanes=1)[0] == "2.00M"
  assert refused(limit=1, dtype=jnp.bfloat16)[0] == "1.00M"
  assert refused(limit=1, dtype=jnp.int4)[0] == "256.00K"


def test_scoped_memories_are_counted_in_turn(describe):
  def body(out):
    def use(memory):
      memory[0] = out[0]
      out[0] = memory[0]

    for _ in range(3):
      pl.run_scoped(use, pltpu.VMEM((2 * MIB // 512, 128), jnp.float32))

  describe("TPU v5p")
  assert refused(limit=3 * MIB, body=body)[0] == "4.00M"


def test_memories_of_other_kinds_are_not(describe):
  describe("TPU v5 lite")
  lower(limit=4 * MIB, scratch=[pltpu.SemaphoreType.DMA((4,)), pltpu.SMEM((1, 4 * MIB), jnp.int32)])


def test_other_devices_have_no_limit(describe):
  for kind in "NVIDIA H100", "minipod":
    describe(kind)
    lower(rows=1024 * MIB // 128, limit=MIB)


def test_a_kernel_that_only_a_higher_limit_allows_is_reported_once(describe, caplog, monkeypatch):
  describe("TPU v5 lite")
  for _ in range(2):
    lower(rows=12 * MIB // 128)
  assert len([r for r in caplog.records if "needs 24.00M of VMEM" in r.message]) == 1
  monkeypatch.setenv("LIBTPU_INIT_ARGS", "--a=b --xla_tpu_scoped_vmem_limit_kib=65536")
  lower(rows=13 * MIB // 128)
  assert not any("needs 26.00M" in r.message for r in caplog.records)
