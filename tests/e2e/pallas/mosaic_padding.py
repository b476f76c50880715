"""Kernels whose DMAs reach into the tile padding of arrays in HBM, for test_mosaic_padding.py."""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

HBM = pl.BlockSpec(memory_space=pl.ANY)
DMA = pltpu.SemaphoreType.DMA

# Shape of the array, its dtype, shape of the part, where that begins.
INSIDE = {
    "rows": ((12, 128), jnp.float32, (8, 128), (8, 0)),
    "columns": ((8, 500), jnp.float32, (8, 512), (0, 0)),
    "last_columns": ((8, 500), jnp.float32, (8, 256), (0, 256)),
    "both": ((3, 12, 100), jnp.float32, (1, 8, 128), (2, 8, 0)),
    "three_rows": ((3, 128), jnp.float32, (4, 128), (0, 0)),
    "bf16": ((20, 130), jnp.bfloat16, (8, 256), (16, 0)),
    "s16": ((5, 128), jnp.int16, (8, 128), (0, 0)),
    "two_tiles": ((12, 128), jnp.float32, (16, 128), (0, 0)),
    "one_dimension": ((1300,), jnp.float32, (1024,), (1024,)),
}
OUTSIDE = {
    "another_tile": ((12, 128), jnp.float32, (16, 128), (8, 0)),
    "more_columns": ((8, 500), jnp.float32, (8, 640), (0, 0)),
    "after_the_array": ((12, 128), jnp.float32, (4, 128), (12, 0)),
    "five_of_three_rows": ((3, 128), jnp.float32, (5, 128), (0, 0)),
    "whole_tiles": ((16, 128), jnp.float32, (8, 128), (9, 0)),
}


def numbers(shape, dtype):
  return (np.arange(np.prod(shape)).reshape(shape) % 97 + 1).astype(dtype)


def is_inside(shape, part, start):
  """Which elements of the part are elements of the array."""
  inside = jnp.ones(part, jnp.int32)
  for d in range(len(shape)):
    inside *= (jax.lax.broadcasted_iota(jnp.int32, part, d) < shape[d] - start[d]).astype(jnp.int32)
  return inside


def add(case):
  """Adds 1 to the elements of a part, in VMEM."""
  shape, dtype, part, start = case

  def kernel(where, x, inside, o, buffer, semaphore):
    there = tuple(pl.ds(where[d], size) for d, size in enumerate(part))
    fetch = pltpu.make_async_copy(x.at[there], buffer, semaphore)
    fetch.start()
    fetch.wait()
    value = buffer[...]
    buffer[...] = value + jnp.where(inside[...] != 0, jnp.ones_like(value), jnp.zeros_like(value))
    store = pltpu.make_async_copy(buffer, o.at[there], semaphore)
    store.start()
    store.wait()
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(), in_specs=[HBM, pl.BlockSpec(memory_space=pltpu.VMEM)], out_specs=HBM,
      scratch_shapes=[pltpu.VMEM(part, dtype), DMA])
  f = pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(shape, dtype), input_output_aliases={1: 0})
  return jax.jit(f)(np.array(start, np.int32), numbers(shape, dtype), is_inside(shape, part, start))


def right(case):
  shape, dtype, part, start = case
  want = numbers(shape, dtype)
  want[tuple(slice(s, s + p) for s, p in zip(start, part))] += np.ones((), dtype)
  return want


def read_rows():
  """Rows 8 to 15 of an array of 12."""
  def kernel(first, x, o, buffer, semaphore):
    fetch = pltpu.make_async_copy(x.at[pl.ds(first[0], 8)], buffer, semaphore)
    fetch.start()
    fetch.wait()
    o[...] = buffer[...]
  spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(), in_specs=[HBM], out_specs=pl.BlockSpec(),
                                      scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), DMA])
  f = pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))
  return np.unique(jax.jit(f)(np.array([8], np.int32), numbers((12, 128), np.float32))[4:])


def say(f):
  try:
    return f()
  except jax.errors.JaxRuntimeError as e:
    return str(e).splitlines()[0]


def main():
  for name, case in INSIDE.items():
    print(name, "|", say(lambda: "right" if np.array_equal(np.asarray(add(case)), right(case)) else "wrong"))
  for name, case in OUTSIDE.items():
    print(name, "|", say(lambda: str(add(case))))
  print("padding", "|", say(lambda: str(read_rows())))
