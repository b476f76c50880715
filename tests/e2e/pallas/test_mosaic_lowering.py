"""On described TPUs, kernels reach the library as the Mosaic modules that JAX makes for platform "tpu"."""

import textwrap

from jax.experimental import pallas
import pytest
import scenario

PRELUDE = """
import re
from unittest import mock
import jax, jax.numpy as jnp, numpy as np
from jax import export
from jax._src import tpu_custom_call
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(x, o): o[...] = jnp.exp(x[...]) * 2
block = pl.BlockSpec((8, 128), lambda i: (i, 0))
def call(x):
  return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(x.shape[0] // 8,),
                        in_specs=[block], out_specs=block)(x)
x = np.ones((32, 128), np.float32)
mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)

# The version of stable_mosaic: JAX 0.10 writes its newest one.
newest = 15 if hasattr(tpu_custom_call, "ir_version_override") else None

def modules(text): return re.findall(r'body.22: .22([A-Za-z0-9+/=]+)', text)

def check(f, *args):
  found = modules(jax.jit(f).lower(*args).as_text())
  with mock.patch.object(tpu_custom_call, "get_ir_version", lambda ctx: newest):
    expected = modules(jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text())
  assert found and found == expected, (len(found), len(expected))
"""

FORMS = {
    "plain": "check(call, x)",
    "twice": "check(lambda x: call(call(x)[:8]), x)",
    "vmap": "check(jax.vmap(call), np.stack([x, x]))",
    "compiler_params": """
        f = lambda x: pl.pallas_call(body, out_shape=x, compiler_params=pltpu.CompilerParams(
            vmem_limit_bytes=1 << 20))(x)
        check(f, jnp.asarray(x))""",
    "scalars": """
        def f(n, x):
          spec = pltpu.PrefetchScalarGridSpec(
              num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, n: (n[i], 0))],
              out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)))
          return pl.pallas_call(lambda n, x, o: body(x, o), grid_spec=spec, out_shape=x)(n, x)
        check(f, np.arange(4, dtype=np.int32), jnp.asarray(x))""",
    "booleans": """
        def f(x):
          def choose(x, o): o[...] = jnp.where(x[...], 1., 2.)
          return pl.pallas_call(choose, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32))(x > 0)
        check(f, jnp.asarray(x))""",
    "grad": """
        f = jax.custom_vjp(call)
        f.defvjp(lambda x: (call(x), x), lambda x, g: (call(x) * g,))
        check(jax.grad(lambda x: f(x).sum()), x)""",
    "shard_map": """
        f = jax.shard_map(call, mesh=mesh, in_specs=jax.P("a"), out_specs=jax.P("a"), check_vma=False)
        check(f, jax.device_put(x, jax.NamedSharding(mesh, jax.P("a"))))""",
    "explicit": """
        with jax.set_mesh(mesh):
          f = jax.shard_map(call, in_specs=jax.P(("a", "b")), out_specs=jax.P(("a", "b")), check_vma=False)
          check(f, jax.device_put(x, jax.P(("a", "b"))))""",
    "export": """
        one, other = [modules(export.export(jax.jit(call), platforms=[name], disabled_checks=[
            export.DisabledSafetyCheck.custom_call("tpu_custom_call")])(x).mlir_module())
            for name in ("minipod", "tpu")]
        assert one and one == other""",
    "exported for tpu": """
        exported = export.export(jax.jit(call), platforms=["tpu"],
            disabled_checks=[export.DisabledSafetyCheck.custom_call("tpu_custom_call")])(x)
        check(exported.call, x)""",
    "branch for tpu": """
        check(lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=call, default=jnp.cos), x)""",
    "emit_pipeline": """
        def outer(x, o):
          pltpu.emit_pipeline(body, grid=(4,), in_specs=[block], out_specs=[block])(x, o)
        space = pl.BlockSpec(memory_space=pl.ANY)
        check(lambda x: pl.pallas_call(outer, out_shape=x, in_specs=[space], out_specs=space)(x), x)""",
    "core_map": """
        def f(x):
          cores = pltpu.create_tensorcore_mesh("core", num_cores=1)
          x_ref, o_ref = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

          @pl.core_map(cores)
          def _():
            pltpu.sync_copy(x_ref, o_ref)
          return o_ref[...]
        check(f, jnp.asarray(x))""",
    "remote": """
        def send(x, o, sent, received):
          to = jax.lax.rem(jax.lax.axis_index("d") + 1, 4)
          copy = pltpu.make_async_remote_copy(x, o, sent, received, device_id=(to,),
                                              device_id_type=pl.DeviceIdType.MESH)
          copy.start(); copy.wait()
        line = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
        space = pl.BlockSpec(memory_space=pl.ANY)
        f = lambda x: pl.pallas_call(send, out_shape=x, in_specs=[space], out_specs=space,
                                     scratch_shapes=[pltpu.SemaphoreType.DMA] * 2)(x)
        check(jax.shard_map(f, mesh=line, in_specs=jax.P("d"), out_specs=jax.P("d"), check_vma=False), x)""",
    "kernel": """
        cores = pltpu.create_tensorcore_mesh("core", num_cores=1)
        f = pl.kernel(lambda x, o: pltpu.sync_copy(x, o), jax.ShapeDtypeStruct(x.shape, x.dtype), mesh=cores)
        check(f, x)""",
}

# The forms that only some versions of JAX have, and the name by which one recognises these.
MADE_WITH = {"kernel": "kernel", "core_map": "core_map"}
POD = {"prelude": PRELUDE, "devices": None, "MINIPOD_TOPOLOGY": "v6e:2x2"}


@pytest.fixture(scope="module")
def said():
  """What each form prints; all of them run in one process."""
  code = """
      import io, contextlib, textwrap, traceback
      for form, code in FORMS.items():
        try:
          exec(textwrap.dedent(code))
        except Exception as error:
          print(form, "|", repr(traceback.format_exc()[-2000:]))
        else:
          print(form, "|", "same")
      """
  out = scenario.run(f"FORMS = {FORMS!r}\n" + textwrap.dedent(code), timeout=120, **POD)
  return dict(line.split(" | ", 1) for line in out.splitlines())


@pytest.mark.parametrize("form", FORMS)
def test_a_kernel_is_lowered_as_for_tpus(said, form):
  if form in MADE_WITH and not hasattr(pallas, MADE_WITH[form]):
    pytest.skip("not in this version of JAX")
  assert said[form] == "same"


def test_jax_refuses_blocks_as_for_tpus():
  one, other = scenario.run("""
      block = pl.BlockSpec((3, 100), lambda i: (i, 0))
      f = pl.pallas_call(body, out_shape=jnp.zeros((9, 128)), grid=(3,), in_specs=[block], out_specs=block)
      for platforms in (None, ("tpu",)):
        try:
          jax.jit(f).trace(jnp.zeros((9, 128))).lower(lowering_platforms=platforms)
        except ValueError as error:
          print(str(error).splitlines()[0])
      """, **POD).splitlines()
  assert one == other and "divisible by" in one, one


def expect_wait(code, name, right, wrong, said):
  """The function `f` returns `x` with one number and waits in vain with another one; with checks, too."""
  code += """
      try:
        print((jax.jit(f)(x) == x).all())
      except jax.errors.JaxRuntimeError as error:
        print(str(error))
      """
  for check in ("", "check"):
    pod = POD | {"MINIPOD_KERNELS": check}
    assert scenario.run(code.replace(name, right), **pod) == "True\n"
    out = scenario.run(code.replace(name, wrong), **pod)
    assert f"it waits for a semaphore that nothing signals: {said}" in out, out


def test_a_dma_goes_on_between_kernels():
  """One kernel starts a DMA and returns its semaphore, which another waits for.  Both are also one with checks."""
  code = """
      ANY, SEMAPHORE = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
      DMA = pltpu.SemaphoreType.DMA
      def start(x, kept, o, sems): pltpu.make_async_copy(x, o, sems.at[1]).start()
      def wait(x, o, sems, other): pltpu.make_async_copy(x, o, sems.at[NUMBER]).wait()
      def f(x):
        x, o, sems = pl.pallas_call(
            start, out_shape=(x, x, DMA((2,))), in_specs=[ANY], out_specs=(ANY, ANY, SEMAPHORE),
            input_output_aliases={0: 0})(x)
        return pl.pallas_call(wait, out_shape=x, in_specs=[ANY, ANY, SEMAPHORE], out_specs=ANY,
                              input_output_aliases={1: 0})(x, o, sems)
      """
  expect_wait(code, "NUMBER", "1", "0", "it is 0, and the wait is for 16384")


def test_semaphores_that_begin_as_a_constant():
  code = """
      kernel = pl.core_map(mesh=pltpu.create_tensorcore_mesh("core"))
      def f(y):
        x, semaphore = pl.empty_ref_like(pltpu.SMEM((8,), jnp.int32)), pl.empty_ref_like(pltpu.SemaphoreType.DMA(()))
        out = pl.empty_ref_like(pltpu.HBM((8,), jnp.int32))
        @kernel
        def _():
          for i in range(8): x[i] = i
        @kernel
        def _(): pltpu.make_async_copy(x, out, semaphore).start()
        @kernel
        def _(): pltpu.make_async_copy(x, out, semaphore).wait()
        return out[...] + y
      for y in range(2): np.testing.assert_array_equal(jax.jit(f)(y), np.arange(8) + y)
      """
  for variables in ({}, {"MINIPOD_KERNELS": "check"}):
    scenario.run(code, **POD | variables)


def test_a_hint_that_only_new_modules_have():
  scenario.run("""
      def product(a, b, o): o[...] = jnp.einsum("km,kn->mn", a[...], b[...])
      a, b = np.arange(128 * 256.).reshape(128, 256) % 7, np.arange(128 * 128.).reshape(128, 128) % 5
      f = pl.pallas_call(product, out_shape=jax.ShapeDtypeStruct((256, 128), jnp.float32),
                         compiler_params=pltpu.CompilerParams(fuse_transposed_lhs_in_matmul=True))
      np.testing.assert_array_equal(f(jnp.float32(a), jnp.float32(b)), a.T @ b)
      """, **POD)


def test_stochastic_rounding():
  """The result is one of both neighbors, as often as it is near; also below the smallest normal numbers."""
  scenario.run("""
      numbers = np.array([0, 1, -1, 0.1, -0.3, 1.7, 13.3, 2 ** -6, 1.3 * 2 ** -7, 1.1 * 2 ** -9, -1.5 * 2 ** -10, 0.7 * 2 ** -12,
                          1.3 * 2 ** -14, 0.3 * 2 ** -16, 1e-30, 1e-40, np.nan] + [0] * 111, np.float32)
      x = np.tile(numbers, (512, 1))
      bits = np.random.default_rng(0).integers(0, 2 ** 32, x.shape, dtype=np.uint32)
      for dtype in (jnp.bfloat16, jnp.float8_e5m2, jnp.float8_e4m3fn, jnp.float8_e4m3b11fnuz):
        def round(x, bits, o): o[...] = pltpu.stochastic_round(x[...], bits[...], target_dtype=dtype)
        y = np.float32(pl.pallas_call(round, out_shape=jax.ShapeDtypeStruct(x.shape, dtype))(x, bits))
        all = np.arange(256 if dtype != jnp.bfloat16 else 65536)
        all = np.float32(all.astype(np.uint8 if len(all) == 256 else np.uint16).view(dtype))
        all = np.unique(all[np.isfinite(all)])
        for number, rounded in zip(numbers, y.T):
          if np.isnan(number):
            assert np.isnan(rounded).all()
            continue
          above, below = all[all >= number].min(), all[all <= number].max()
          assert set(np.unique(rounded)) <= {above, below}, (dtype, number, np.unique(rounded))
          assert abs(np.mean(rounded, dtype=np.float64) - number) <= 0.12 * (above - below), (dtype, number, rounded.mean())
      """, **POD)


PRINTED = """
minipod: step 0 of 255
minipod: the sum is f32[] 28
minipod: rows elements 0 to 31: {0, 1, 2, 3, 4, 5, 6, 7, 0,
minipod: rows elements 32 to 39: {0, 0, 0, 0, 0, 0, 0, 0}
minipod: rows elements 40 to 71: {8, 9,
minipod: rows elements 72 to 79: {0,
minipod: step 1 of 255
minipod: the sum is f32[] 92
"""


def test_prints():
  out = scenario.run("""
      import os
      os.dup2(1, 2)
      def body(n, x, o):
        pl.debug_print("step {} of {}", pl.program_id(0), n[0])
        pl.debug_print("the sum is ", jnp.sum(x[0:1]))
        @pl.when(pl.program_id(0) == 0)
        def _(): pl.debug_print("rows {}", jnp.where(jax.lax.broadcasted_iota(jnp.int32, (2, 40), 1) < 8, x[0:2, 0:40], 0))
        o[...] = x[...]
      y = np.zeros((16, 128), np.float32)
      y[:, :8] = np.arange(8)
      y[1, :8], y[8, :8] = np.arange(8, 16), np.arange(8, 16)
      f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype), grid=(2,), out_specs=block,
                         in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), block])
      np.testing.assert_array_equal(f(np.array([255], np.int32), y), y)
      """, **POD)
  lines = [line for line in out.splitlines() if line.startswith("minipod: ")]
  expected = PRINTED.strip().splitlines()
  assert len(lines) == len(expected) and all(map(str.startswith, lines, expected)), out


def test_prints_floats_of_8_bits():
  out = scenario.run("""
      import os
      os.dup2(1, 2)
      def body(x, o):
        pl.debug_print("eighths {}", x[...])
        o[...] = x[...]
      y = (np.tile(np.arange(128) % 8, (32, 1)) / 2).astype(jnp.float8_e4m3fn)
      jax.block_until_ready(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(y.shape, y.dtype))(y))
      """, **POD)
  assert "minipod: eighths elements 0 to 31: {0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 0, " in out, out


def test_a_compiled_program_names_kernels_as_xla_does():
  scenario.run("""
      text = jax.jit(call).lower(x).compile().as_text()
      assert 'custom_call_target="tpu_custom_call"' in text and "minipod" not in text, text
      """, **POD)


def test_dmas_that_are_counted():
  """A semaphore that is not one of DMAs counts them, not their bytes; with checks, too."""
  code = """
      def count(x, o, buffer, sem):
        pltpu.async_copy(x, buffer, sem)
        pl.semaphore_wait(sem)
        pltpu.async_copy(buffer, o, sem)
        pl.semaphore_wait(sem, WANTED)
      ANY = pl.BlockSpec(memory_space=pl.ANY)
      f = pl.pallas_call(count, out_shape=x, in_specs=[ANY], out_specs=ANY,
                         scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.REGULAR])
      """
  expect_wait(code, "WANTED", "1", "2", "it is 1, and the wait is for 2")


def test_repeated_rows_and_parts_of_words():
  out = scenario.run("""
      x = np.arange(32 * 256, dtype=np.int32).reshape(32, 256)
      def repeat(x, o): o[...] = x[pl.ds(3, 8, 0), :]
      def view(x, o):
        parts = x.at[:16].bitcast(jnp.int16).reshape((2, 16, 256)).bitcast(jnp.float16)
        o[...] = parts.at[1:].reshape((16, 256)).at[:, :128].bitcast(jnp.int32)[...]
      call = lambda body, shape: np.asarray(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(shape, x.dtype))(x))
      print((call(repeat, (8, 256)) == x[3]).all(), (call(view, (8, 128)) == x[8:16, :128]).all())
      """, **POD)
  assert out == "True True\n", out


def test_words_of_less_than_32_bits():
  """Elements in 16-bit words, 4-bit elements in words; memory of words does not become 4-bit elements."""
  out = scenario.run("""
      x = np.arange(16 * 128, dtype=np.uint16).reshape(16, 128) * 31
      call = lambda body, x, shape, dtype: np.asarray(
          pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(shape, dtype))(x))
      def unpack(x, o):
        o[...] = pltpu.unpack_elementwise(x[...], index=1, packed_dtype=jnp.int8, unpacked_dtype=jnp.int16)
      def pack(x, o):
        y = x[...].astype(jnp.int16)
        o[...] = pltpu.pack_elementwise([y, y + 1], packed_dtype=jnp.int8)
      def join(x, o): o[...] = pltpu.bitcast((x[...] & 7).astype(jnp.int4), jnp.int32)
      def see(x, o): o[...] = x.bitcast(jnp.int32)[...]
      def set(x, o): o.bitcast(jnp.int32)[...] = x[...]
      def part(x, o): o[...] = x.bitcast(jnp.int4)[...].astype(jnp.int32)
      print((call(unpack, x, x.shape, np.int16) == (x >> 8).astype(np.int8)).all(),
            (call(pack, x, x.shape, np.uint16) == (x & 255 | (x + 1) << 8 & 0xff00)).all())
      y = x.astype(np.int32)
      words = sum((y[i::8] & 15) << 4 * i for i in range(8))
      print((call(join, y, (2, 128), np.int32) == words & 0x77777777).all(),
            (call(see, y.astype(jnp.int4), (2, 128), np.int32) == words).all(),
            (call(set, words, y.shape, jnp.int4) == y.astype(jnp.int4)).all())
      try:
        call(part, words, y.shape, np.int32)
      except jax.errors.JaxRuntimeError as error:
        print(str(error))
      """, **POD)
  assert out.startswith("True True\nTrue True True\n"), out
  assert "UNIMPLEMENTED: memory of 32-bit elements that is seen as 4-bit ones [tpu.memref_bitcast" in out, out


def test_a_copy_of_4_bit_elements_is_awaited_as_words():
  """A semaphore counts bytes of HBM."""
  scenario.run("""
      x = (np.arange(64 * 128) % 16 - 8).astype(jnp.int4).reshape(64, 128)
      def kernel(x, o, buffer, semaphore):
        pltpu.make_async_copy(x, buffer, semaphore).start()
        pltpu.make_async_copy(x.bitcast(jnp.int32), buffer.bitcast(jnp.int32), semaphore).wait()
        o[...] = buffer[...]
      f = pl.pallas_call(kernel, in_specs=[pl.BlockSpec(memory_space=pl.ANY)], out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                         scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA])
      assert (np.asarray(jax.jit(f)(x)) == x).all()
      """, **POD | {"MINIPOD_KERNELS": "check"})


def test_scalars_that_are_loaded_in_vain():
  """A scalar beyond the end of its memory is an error if it is chosen, and only then."""
  code = """
      SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
      def body(n, limit, o):
        for i in range(8):
          o[i] = jax.lax.select(i < limit[0], SCALAR, jnp.int32(0)) + 1
      f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8,), jnp.int32), in_specs=[SMEM, SMEM], out_specs=SMEM)
      try:
        print(jax.jit(f)(np.arange(10, dtype=np.int32).reshape(2, 5), np.array([LIMIT], np.int32)).tolist())
      except jax.errors.JaxRuntimeError as error:
        print(str(error))
      """
  for check, scalar, op in (("", "n[1, i]", "memref.load"), ("check", "n[1, i] * 2 - n[1, i]", "arith.subi")):
    pod, said = POD | {"MINIPOD_KERNELS": check}, code.replace("SCALAR", scalar)
    assert scenario.run(said.replace("LIMIT", "5"), **pod) == "[6, 7, 8, 9, 10, 1, 1, 1]\n"
    out = scenario.run(said.replace("LIMIT", "6"), **pod)
    assert "OUT_OF_RANGE" in out and op in out and "the element is outside of its memref" in out, out


def test_vectors_that_are_loaded_in_vain():
  """As in MaxText's gmm_v2: a block beyond the end is nothing that was written, and may be loaded if it is not chosen."""
  code = """
      def body(n, x, o):
        o[...] = jnp.where(n[0] == 2, jnp.zeros_like(o), x[n[0]])
      specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
      f = jax.jit(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), in_specs=specs))
      ones = np.ones((2, 8, 128), np.float32)
      found = []
      for n in (1, 2, 3):
        try:
          found.append(float(f(np.array([n], np.int32), ones).mean()))
        except jax.errors.JaxRuntimeError as error:
          found.append(str(error))
      print(found)
      """
  assert scenario.run(code, **POD) == "[1.0, 0.0, nan]\n"
  out = scenario.run(code, **POD | {"MINIPOD_KERNELS": "check"})
  assert out.startswith("[1.0, 0.0, ") and "vector.load" in out and "and the kernel's results depend on it" in out, out
  used = code.replace("x[n[0]])", "x[n[0]] + 1)")
  assert "OUT_OF_RANGE" in scenario.run(used, **POD)


def test_vectors_that_a_loop_carries_in_vain():
  """As in tpu-inference's MLA: each iteration loads the rows of the next one, the last iteration in vain."""
  code = """
      def body(n, x, o):
        bits = lambda v: pltpu.bitcast(v, jnp.uint32)
        def step(i, rows):
          now, after = rows
          moved = pltpu.bitcast(bits(now) << 16 | pltpu.roll(bits(after), 1, axis=0) >> 16, jnp.int32)
          o[i] = jnp.where(i == 3, now, moved)
          return after, x[i + 2]
        AFTER = jax.lax.fori_loop(0, n[0], step, (x[0], x[1]))
      specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
      f = jax.jit(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((4, 8, 128), jnp.int32), in_specs=specs))
      x = np.arange(4 * 8 * 128, dtype=np.int32).reshape(4, 8, 128) * 12345
      moved = x << 16 | (np.roll(np.roll(x, -1, 0), 1, 1).view(np.uint32) >> 16).view(np.int32)
      for n in (3, 4):
        try:
          print((np.asarray(f(np.array([n], np.int32), x))[:n] == np.where(np.arange(4)[:, None, None] == 3, x, moved)[:n]).all())
        except jax.errors.JaxRuntimeError as error:
          print(str(error))
      """
  assert scenario.run(code, **POD) == "True\nTrue\n"
  assert scenario.run(code, **POD | {"MINIPOD_KERNELS": "check"}) == "True\nTrue\n"
  computed = scenario.run(code.replace("x[i + 2]", "x[i + 2] + 1"), **POD)
  assert computed.count("OUT_OF_RANGE") == 2, computed
  stored = scenario.run(code.replace("AFTER =", "o[0] = o[0] +").replace("x[1]))", "x[1]))[1]"), **POD)
  assert stored.count("OUT_OF_RANGE") == 2, stored


def test_slices_that_are_larger_than_the_memref():
  """As in tokamax's lightning indexer: a kernel for batches of 4 may copy 4 rows of 2, but does not come to it."""
  code = """
      def body(n, x, o, buffer, semaphore):
        o[...] = jnp.ones_like(o)
        @pl.when(n[0] > 5)
        def _():
          pltpu.async_copy(x.at[pl.ds(n[0], 4)], buffer, semaphore).wait()
          o[...] = buffer[0]
      specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)]
      f = jax.jit(pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), in_specs=specs,
                                 scratch_shapes=[pltpu.VMEM((4, 8, 128), jnp.float32), pltpu.SemaphoreType.DMA]))
      for n in (1, 6):
        try:
          print(f(np.array([n], np.int32), np.ones((2, 8, 128), np.float32)).mean())
        except jax.errors.JaxRuntimeError as error:
          print(str(error))
      """
  out = scenario.run(code, **POD)
  assert out.startswith("1.0\n") and "OUT_OF_RANGE" in out and "elements 6 to 9 of dimension 0" in out, out


def test_arrays_of_nothing_and_pinned_ones():
  out = scenario.run("""
      f = jax.jit(lambda x: jax.lax.empty((8, 128), jnp.float32).at[2:4].set(x))
      checks = [export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("AllocateBuffer")]
      exported = export.export(f, platforms=["tpu"], disabled_checks=checks)(x[2:4])
      print("AllocateBuffer" in exported.mlir_module(), (jax.jit(exported.call)(x[2:4])[2:4] == 1).all())
      from jax._src.state import primitives
      if hasattr(primitives, "pin"):
        def add(x, o): o[...] = x[...] + 1
        def g(x):
          pinned = primitives.pin(x)
          for _ in range(3):
            pinned = pl.pallas_call(add, out_shape=pinned, input_output_aliases={0: 0})(pinned)
          return primitives.unpin(pinned)
        assert (jax.jit(g)(x) == 4).all()
      """, **POD)
  assert out == "True True\n", out


# Copies an array of so many MiB in one block, which needs VMEM for operand and result.
COPY = """
def copy(size, limit=None):
  x = jnp.zeros((size * 2048, 128))
  options = {} if limit is None else {"compiler_params": pltpu.CompilerParams(vmem_limit_bytes=limit << 20)}
  try:
    jax.jit(pl.pallas_call(body, out_shape=x, **options)).lower(x).compile()
  except jax.errors.JaxRuntimeError as error:
    print(str(error).splitlines()[0])
  else:
    print("fits")
"""


@pytest.mark.parametrize("chip, most", [("v5e", 16), ("v6e", 32)])
def test_a_kernel_that_asks_for_no_vmem_has_what_libtpu_gives_it(chip, most):
  code = COPY + f"copy({most // 2})\ncopy({most // 2 + 1})\ncopy({most // 2 + 1}, {most + 2})"
  fits, refused, asks = scenario.run(code, **POD | {"MINIPOD_TOPOLOGY": f"{chip}:2x2"}).splitlines()
  assert (fits, asks) == ("fits", "fits")
  assert refused.startswith("RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for"), refused
  assert f"needs {most + 2 << 20} bytes of VMEM, of which it may have {most << 20} without vmem_limit_bytes" in refused
  assert f"operand 0 {most + 2 << 19}, result 0" in refused


def test_a_kernel_has_no_more_vmem_than_the_chip():
  out = scenario.run(COPY + "copy(64, 200)\ncopy(65, 200)\ncopy(2, 3)", **POD).splitlines()
  assert out[0] == "fits"
  assert f"needs {130 << 20} bytes of VMEM, of which it may have {128 << 20}:" in out[1], out
  assert f"needs {4 << 20} bytes of VMEM, of which it may have {3 << 20}:" in out[2], out


def test_a_flag_of_libtpu_gives_kernels_more_vmem():
  args = "--a=b --xla_tpu_scoped_vmem_limit_kib=65536"
  out = scenario.run(COPY + "copy(32)\ncopy(33)", **POD, LIBTPU_INIT_ARGS=args).splitlines()
  assert out[0] == "fits" and f"may have {64 << 20}" in out[1], out
  option = """
      x = jnp.zeros((20 * 2048, 128))
      options = {"xla_tpu_scoped_vmem_limit_kib": 65536}
      jax.jit(pl.pallas_call(body, out_shape=x), compiler_options=options).lower(x).compile()
      """
  scenario.run(option, **POD)


@pytest.mark.parametrize("topology", ["torus:2x2", "h100:1"])
def test_other_pods_keep_the_interpreters(topology):
  code = "print('tpu_custom_call' in jax.jit(call).lower(x).as_text())"
  out = scenario.run(code, **POD | {"MINIPOD_TOPOLOGY": topology, "prelude": PRELUDE.replace("mesh =", "pass #")})
  assert out == "False\n"


def test_cost_estimates_are_in_the_cost_analysis():
  """As libtpu 0.0.52 has them, which counts nothing else of a kernel."""
  scenario.run("""
      estimate = pl.CostEstimate(flops=10**9, transcendentals=10**7, bytes_accessed=10**8)
      def kernel(x):
        return pl.pallas_call(body, out_shape=x, cost_estimate=estimate)(x)
      def costs(f):
        found = jax.jit(f).lower(jnp.asarray(x)).compile().cost_analysis()
        return np.array([found[name] for name in ("flops", "transcendentals", "bytes accessed")])
      once, plain = costs(kernel), costs(jnp.exp)
      np.testing.assert_array_equal(once, [1e9, 1e7, 1e8])
      np.testing.assert_array_equal(costs(lambda x: kernel(kernel(x))), 2 * once)
      np.testing.assert_allclose(costs(lambda x: jnp.exp(kernel(x))), once + plain)
      """, **POD)
