"""Pallas kernels: unchanged, and in Pallas's interpreters, which make ordinary programs with callbacks."""

import functools
import inspect

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np
import pytest

try:
  from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams
except ImportError:  # JAX 0.9 has it elsewhere
  from jax._src.pallas.mosaic.interpret.utils import InterpretGPUParams

X = np.arange(16 * 128, dtype=np.float32).reshape(16, 128)


@pytest.mark.parametrize("interpret", [False, True, pltpu.InterpretParams()], ids=["plain", "any", "tpu"])
def test_blocks_of_a_grid(interpret):
  def kernel(x, y, out):
    out[...] = x[...] * 2 + y[...]

  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  f = jax.jit(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid=(2,),
                             in_specs=[block, block], out_specs=block, interpret=interpret))
  np.testing.assert_array_equal(f(X, jnp.ones_like(X)), X * 2 + 1)


def gpu_kernel(body, out, scratch=(), **options):
  """A kernel whose results and scratch memory are described by the names in this version of JAX."""
  names = inspect.signature(plgpu.kernel).parameters
  kind = "type" if "out_type" in names else "shape"
  return plgpu.kernel(body, **{f"out_{kind}": out, f"scratch_{kind}s": scratch}, **options)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_of_a_gpu_kernel(threads):
  """Each block's threads are separate programs, which a callback launches."""
  def kernel(x, out):
    i, j = jax.lax.axis_index("block"), jax.lax.axis_index("thread")
    out[i, j] = x[i, j] + i * threads + j

  x = np.full((5, threads), 42, np.int32)
  f = gpu_kernel(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(5,), grid_names=("block",),
                 num_threads=threads, thread_name="thread", interpret=InterpretGPUParams())
  np.testing.assert_array_equal(f(x), x + np.arange(5 * threads).reshape(x.shape))


def test_threads_that_wait_for_each_other():
  x = jnp.arange(128, dtype=jnp.float32)

  @functools.partial(
      gpu_kernel, out=jax.ShapeDtypeStruct(x.shape, x.dtype), num_threads=2, thread_name="thread",
      scratch={"shared": plgpu.SMEM(x.shape, x.dtype), "barrier": plgpu.Barrier()},
      interpret=InterpretGPUParams(detect_races=True))
  def f(x, out, shared, barrier):
    thread = jax.lax.axis_index("thread")

    @pl.when(thread == 0)
    def produce():
      shared[...] = x[...] + 1
      plgpu.barrier_arrive(barrier)

    @pl.when(thread == 1)
    def consume():
      plgpu.barrier_wait(barrier)
      out[...] = shared[...] + 1

  np.testing.assert_array_equal(f(x), x + 2)


def test_an_error_in_a_kernel_is_raised_at_the_call_and_once():
  def kernel(x, out):
    out[...] = x[...]

  def run(number):
    block = pl.BlockSpec((8, 128), lambda i: (number, 0))
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), X.dtype), grid=(1,),
                          in_specs=[block], out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
                          interpret=pltpu.InterpretParams(out_of_bounds_reads="raise"))(X)

  with pytest.raises(jax.errors.JaxRuntimeError, match="Out-of-bounds block index"):
    run(2)
  pltpu.reset_tpu_interpret_mode_state()
  np.testing.assert_array_equal(run(1), X[8:])


@pytest.mark.skipif("buffer_bounds" not in inspect.signature(pltpu.InterpretParams).parameters,
                    reason="no kernel of JAX 0.9 asks for the kind of TPU")
def test_the_kind_of_tpu_is_that_of_the_mesh():
  def kernel(x, out, scratch):
    pltpu.sync_copy(x.at[0], scratch.at[10])  # after its end, but within its last tile
    out[...] = x[...]

  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
                     scratch_shapes=[pltpu.VMEM((10, 128), X.dtype)],
                     interpret=pltpu.InterpretParams(buffer_bounds="padded"))
  device = jax.sharding.AbstractDevice("TPU v6e", 1, "tpu")
  with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)):
    np.testing.assert_array_equal(f(X), X)


@pytest.mark.parametrize("interpret", [False, pltpu.InterpretParams()], ids=["plain", "tpu"])
def test_tpus_that_wait_for_each_other(interpret):
  """Each device copies to its neighbour and waits until its own copy has arrived."""
  devices = jax.devices()[:4]
  mesh = jax.sharding.Mesh(devices, "x")

  def kernel(x, out, sent, received):
    neighbour = jax.lax.rem(jax.lax.axis_index("x") + 1, len(devices))
    copy = pltpu.make_async_remote_copy(x, out, sent, received, device_id=(neighbour,))
    copy.start()
    copy.wait()

  memory = pl.BlockSpec(memory_space=pl.ANY)
  shift = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((4, 128), X.dtype),
                         in_specs=[memory], out_specs=memory,
                         scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
                         interpret=interpret)
  f = jax.jit(jax.shard_map(shift, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"),
                            check_vma=False))
  for _ in range(3):
    np.testing.assert_array_equal(f(X), np.roll(X, 4, axis=0))


# ---- unchanged ----


def rows(kernel, out=X, **options):
  """Calls the kernel for each eight rows."""
  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype), grid=(2,),
                        in_specs=[block], out_specs=block, **options)


def double(x, out):
  out[...] = x[...] * 2


def test_a_kernel_is_one_operation():
  assert jax.jit(rows(double)).lower(X).as_text().count('composite "minipod.kernel"') == 1


@jax.custom_vjp
def tripled(x):
  return rows(lambda x, out: out.__setitem__(..., x[...] * 3))(x)


tripled.defvjp(lambda x: (tripled(x), None), lambda _, gradient: (tripled(gradient),))


def on_four(f):
  mesh = jax.sharding.Mesh(jax.devices()[:4], "x")
  split = jax.shard_map(f, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"), check_vma=False)
  return lambda x: split(jnp.concatenate([x, x + 1, x + 2, x + 3]))


def on_a_sharded_array(f):
  sharding = jax.NamedSharding(jax.sharding.Mesh(jax.devices()[:4], "x"), jax.P("x"))
  return lambda x: f(jax.lax.with_sharding_constraint(x, sharding)) + 1


@pytest.mark.parametrize("wrap", [
    lambda f: lambda x: jax.vmap(f)(jnp.stack([x, x + 1])),
    lambda f: jax.grad(lambda x: f(jnp.sin(x)).sum()),
    lambda f: jax.grad(lambda x: jax.remat(lambda x: f(jnp.sin(f(x))))(x).sum()),
    lambda f: lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=3)[0],
    lambda f: lambda x: jax.lax.cond(x.sum() > 0, f, jnp.sin, x),
    on_four, on_a_sharded_array],
    ids=["vmap", "grad", "remat", "scan", "cond", "shard_map", "sharded"])
def test_a_kernel_in(wrap):
  x = X / X.size
  np.testing.assert_allclose(jax.jit(wrap(tripled))(x), jax.jit(wrap(lambda x: x * 3))(x), rtol=1e-5)


def test_results_in_the_memory_of_operands():
  def clear(x, out):
    out[pl.ds(0, 8)] = jnp.zeros((8, 128), jnp.float32)

  f = pl.pallas_call(clear, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
                     input_output_aliases={0: 0})
  x = jnp.ones_like(X)
  np.testing.assert_array_equal(jax.jit(lambda x: (f(x), x))(x)[0], np.arange(16)[:, None] // 8 + 0 * X)
  np.testing.assert_array_equal(jax.jit(f, donate_argnums=0)(x)[8:], 1)


def test_blocks_that_a_table_chooses():
  order = np.array([1, 0], np.int32)
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(2,),
      in_specs=[pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))],
      out_specs=pl.BlockSpec((8, 128), lambda i, order: (i, 0)))
  f = pl.pallas_call(lambda order, x, out: double(x, out), grid_spec=spec,
                     out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype))
  np.testing.assert_array_equal(jax.jit(f)(order, X), np.roll(X, 8, axis=0) * 2)


def test_scalars_that_steps_write_for_the_next():
  """As in JAX's ragged paged attention, whose kernels count in scalars; blocks are chosen one step ahead."""
  def kernel(count, x, out):
    out[...] = x[...] + count[0].astype(jnp.float32)
    count[0] = count[0] + 5
    count[1] = 1 - count[1]

  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(3, 2),
      in_specs=[pl.BlockSpec((8, 128), lambda i, j, count: (count[1], 0))],
      out_specs=pl.BlockSpec((1, 8, 128), lambda i, j, count: (i * 2 + j, 0, 0)))
  f = pl.pallas_call(lambda count, x, out: kernel(count, x, out.at[0]), grid_spec=spec,
                     out_shape=jax.ShapeDtypeStruct((6, 8, 128), X.dtype))
  expected = [X[max(step - 1, 0) % 2 * 8:][:8] + 5 * step for step in range(6)]
  np.testing.assert_array_equal(jax.jit(f)(jnp.zeros(2, jnp.int32), X), expected)


@pytest.mark.parametrize("writes_operand", [False, True], ids=["result", "operand"])
def test_steps_see_what_others_wrote_to_an_operand_that_is_a_result(writes_operand):
  def kernel(x, out):
    i = pl.program_id(0)
    (x if writes_operand else out)[pl.ds(i + 1, 1)] = x[pl.ds(i, 1)] * 2

  memory = pl.BlockSpec(memory_space=pl.ANY)
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid=(15,),
                     in_specs=[memory], out_specs=memory, input_output_aliases={0: 0})
  np.testing.assert_array_equal(jax.jit(f)(jnp.ones_like(X)), 2.0 ** np.arange(16)[:, None] + 0 * X)


def test_blocks_are_fetched_again_after_another_one():
  """For an operand that aliases a result: it shows what was written to the result before."""
  block = pl.BlockSpec((8, 128), lambda i, j, k: (j, 0))
  f = pl.pallas_call(lambda x, out: out.__setitem__(..., x[...] + 1), grid=(2, 2, 3),
                     out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), in_specs=[block],
                     out_specs=block, input_output_aliases={0: 0})
  np.testing.assert_array_equal(jax.jit(f)(jnp.asarray(X)), X + 2)


def test_copies_between_memories():
  def kernel(x, out, scratch, arrived):
    copy = pltpu.make_async_copy(x.at[pl.ds(8, 8)], scratch, arrived)
    copy.start()
    copy.wait()
    out[...] = scratch[...] + 1

  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), X.dtype),
                     in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                     scratch_shapes=[pltpu.VMEM((8, 128), X.dtype), pltpu.SemaphoreType.DMA])
  np.testing.assert_array_equal(jax.jit(f)(X), X[8:] + 1)


def test_masked_accesses_through_views():
  """As in JAX's ragged paged attention: a view of a view, and an index that is a constant."""
  def kernel(x, out):
    out[...] = x[...]
    mask = jax.lax.broadcasted_iota(jnp.int32, (4, 128), 0) < 2
    part = out.at[1].at[pl.ds(4, 4)]
    pltpu.store(part, jnp.zeros((4, 128), jnp.float32), mask=mask)

  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((2, 8, 128), X.dtype))
  expected = X.reshape(2, 8, 128).copy()
  expected[1, 4:6] = 0
  np.testing.assert_array_equal(jax.jit(f)(X.reshape(2, 8, 128)), expected)


def test_what_no_interpreter_knows_is_refused_by_name():
  def dice(seed, out):
    pltpu.prng_seed(seed[0])
    out[...] = pltpu.prng_random_bits(out.shape)

  f = pl.pallas_call(dice, out_shape=jax.ShapeDtypeStruct((8, 128), np.int32),
                     in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)])
  with pytest.raises(NotImplementedError, match=r"kernel 'dice' \(dice at .*test_pallas.py:\d+"):
    jax.jit(f)(np.array([3], np.int32))


@pytest.mark.parametrize("waits", [True, False])
def test_a_copy_that_nothing_waits_for_shows_in_the_interpreter(waits):
  def kernel(x, out, scratch, arrived):
    copy = pltpu.make_async_copy(x, scratch, arrived)
    copy.start()
    if waits:
      copy.wait()
    out[...] = scratch[...] + 1
    if not waits:
      copy.wait()

  params = pltpu.InterpretParams(out_of_bounds_reads="raise", uninitialized_memory="nan")
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
                     in_specs=[pl.BlockSpec(memory_space=pl.ANY)], interpret=params,
                     scratch_shapes=[pltpu.VMEM(X.shape, X.dtype), pltpu.SemaphoreType.DMA])
  np.testing.assert_array_equal(jax.jit(f)(X), X + 1 if waits else X * np.nan)
