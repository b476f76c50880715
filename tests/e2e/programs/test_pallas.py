"""Pallas kernels in its interpreters, which are ordinary programs with callbacks."""

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


@pytest.mark.parametrize("interpret", [True, pltpu.InterpretParams()], ids=["any", "tpu"])
def test_blocks_of_a_grid(interpret):
  def kernel(x, y, out):
    out[...] = x[...] * 2 + y[...]

  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  f = jax.jit(pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid=(2,),
                             in_specs=[block, block], out_specs=block, interpret=interpret))
  np.testing.assert_array_equal(f(X, jnp.ones_like(X)), X * 2 + 1)


def gpu_kernel(body, out, scratch=(), **options):
  """A kernel whose results and scratch memory are described by the names that this JAX has for them."""
  names = inspect.signature(plgpu.kernel).parameters
  kind = "type" if "out_type" in names else "shape"
  return plgpu.kernel(body, **{f"out_{kind}": out, f"scratch_{kind}s": scratch}, **options)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_of_a_gpu_kernel(threads):
  """Each block's threads are programs of their own, which a callback launches."""
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
    pltpu.sync_copy(x.at[0], scratch.at[10])  # beyond its end, but within its last tile
    out[...] = x[...]

  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype),
                     scratch_shapes=[pltpu.VMEM((10, 128), X.dtype)],
                     interpret=pltpu.InterpretParams(buffer_bounds="padded"))
  device = jax.sharding.AbstractDevice("TPU v6e", 1, "tpu")
  with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)):
    np.testing.assert_array_equal(f(X), X)


def test_tpus_that_wait_for_each_other():
  """Each device copies to its neighbour and waits until its own copy has come."""
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
                         interpret=pltpu.InterpretParams())
  f = jax.jit(jax.shard_map(shift, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"),
                            check_vma=False))
  for _ in range(3):
    np.testing.assert_array_equal(f(X), np.roll(X, 4, axis=0))
