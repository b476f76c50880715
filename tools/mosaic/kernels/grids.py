"""Grids, index maps, blocks, accumulators, aliases, scalar prefetch."""

import functools

from case import case
from case import normal
from case import whole
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

S = jax.ShapeDtypeStruct
f32 = jnp.float32


def copy(x, o):
  o[...] = x[...]


def call(body, out, grid, ins, outs, **options):
  return pl.pallas_call(body, out_shape=out, grid=grid, in_specs=ins, out_specs=outs, **options)


@case
def permuted(rng):
  return call(copy, S((32, 256), f32), (4, 2), [pl.BlockSpec((8, 128), lambda i, j: (3 - i, j))],
              pl.BlockSpec((8, 128), lambda i, j: (i, 1 - j))), [normal(rng, 32, 256)]


@case
def constant_block(rng):
  def add(x, y, o):
    o[...] = x[...] + y[...]
  return call(add, S((32, 128), f32), (4,), [pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec(
      (8, 128), lambda i: (0, 0))], pl.BlockSpec((8, 128), lambda i: (i, 0))), [normal(rng, 32, 128), normal(rng, 8, 128)]


@case
def three_dimensions(rng):
  def body(x, o):
    o[...] = x[...] * (pl.program_id(0) * 100 + pl.program_id(1) * 10 + pl.program_id(2)).astype(f32)
  block = pl.BlockSpec((None, 8, 128), lambda i, j, k: (i, j, k))
  return call(body, S((2, 16, 256), f32), (2, 2, 2), [block], block), [normal(rng, 2, 16, 256)]


@case
def ragged_end(rng):
  def body(x, o):
    o[...] = x[...] + 1
  block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
  return call(body, S((20, 200), f32), (3, 2), [block], block), [normal(rng, 20, 200)]


@case(tolerance=1e-4)
def matmul_accumulator(rng):
  def body(x, y, o, total):
    @pl.when(pl.program_id(2) == 0)
    def clear():
      total[...] = jnp.zeros_like(total)
    total[...] += jnp.dot(x[...], y[...], preferred_element_type=f32)

    @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
    def store():
      o[...] = total[...].astype(o.dtype)
  return call(body, S((256, 256), f32), (2, 2, 3), [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec(
      (128, 128), lambda i, j, k: (k, j))], pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
      scratch_shapes=[pltpu.VMEM((128, 128), f32)], compiler_params=pltpu.CompilerParams(
          dimension_semantics=("parallel", "parallel", "arbitrary"))), [normal(rng, 256, 384), normal(rng, 384, 256)]


@case
def accumulate_in_result(rng):
  def body(x, o):
    @pl.when(pl.program_id(0) == 0)
    def clear():
      o[...] = jnp.zeros_like(o)
    o[...] += x[...]
  return call(body, S((8, 128), f32), (6,), [pl.BlockSpec((8, 128), lambda i: (i, 0))],
              pl.BlockSpec((8, 128), lambda i: (0, 0))), [whole(rng, 48, 128)]


@case
def row_sums(rng):
  def body(x, o):
    @pl.when(pl.program_id(1) == 0)
    def clear():
      o[...] = jnp.zeros_like(o)
    o[...] += jnp.sum(x[...], axis=1, keepdims=True) + jnp.zeros_like(o)
  return call(body, S((32, 128), f32), (4, 3), [pl.BlockSpec((8, 128), lambda i, j: (i, j))],
              pl.BlockSpec((8, 128), lambda i, j: (i, 0))), [whole(rng, 32, 384)]


@case
def alias(rng):
  def body(x, o):
    o[...] = x[...] * 2
  block = pl.BlockSpec((8, 128), lambda i: (2 * i, 0))
  return call(body, S((32, 128), f32), (2,), [block], block, input_output_aliases={0: 0}), [normal(rng, 32, 128)]


@case
def alias_of_second(rng):
  def body(x, y, o, p):
    o[...] = x[...] + y[...]
    p[...] = y[...] - x[...]
  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  return call(body, (S((32, 128), f32), S((32, 128), f32)), (4,), [block] * 2, [block] * 2,
              input_output_aliases={1: 0}), [normal(rng, 32, 128), normal(rng, 32, 128)]


def with_scalars(body, out, grid, ins, outs, count=1, **options):
  spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=count, grid=grid, in_specs=ins, out_specs=outs,
                                      scratch_shapes=options.pop("scratch_shapes", ()))
  return pl.pallas_call(body, grid_spec=spec, out_shape=out, **options)


@case
def gather_by_scalars(rng):
  return with_scalars(lambda n, x, o: copy(x, o), S((32, 128), f32), (4,), [pl.BlockSpec(
      (8, 128), lambda i, n: (n[i], 0))], pl.BlockSpec((8, 128), lambda i, n: (i, 0))), [
          np.array([2, 0, 3, 3], np.int32), normal(rng, 32, 128)]


@case
def scatter_by_scalars(rng):
  return with_scalars(lambda n, x, _, o: copy(x, o), S((64, 128), f32), (4,), [pl.BlockSpec(
      (8, 128), lambda i, n: (i, 0)), pl.BlockSpec(memory_space=pl.ANY)], pl.BlockSpec(
          (8, 128), lambda i, n: (n[i], 0)), input_output_aliases={2: 0}), [
          np.array([7, 1, 4, 2], np.int32), normal(rng, 32, 128), normal(rng, 64, 128)]


@case
def two_scalars(rng):
  def body(n, m, x, o):
    @pl.when(m[pl.program_id(0)] > 0)
    def some():
      o[...] = x[...] * m[0].astype(f32)

    @pl.when(m[pl.program_id(0)] <= 0)
    def none():
      o[...] = jnp.zeros_like(o)
  return with_scalars(body, S((32, 128), f32), (4,), [pl.BlockSpec((8, 128), lambda i, n, m: (n[i], 0))],
                      pl.BlockSpec((8, 128), lambda i, n, m: (i, 0)), count=2), [
                          np.array([2, 0, 3, 3], np.int32), np.array([3, 0, -1, 5], np.int32), normal(rng, 32, 128)]


@case
def dynamic_grid(rng):
  def f(n, x):
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return call(lambda x, _, o: copy(x, o), S((32, 128), f32), (n,), [block, pl.BlockSpec(memory_space=pl.ANY)], block,
                input_output_aliases={1: 0})(x, jnp.zeros_like(x))
  return f, [np.int32(3), normal(rng, 32, 128)]


@case
def element_blocks(rng):
  block = pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 4, 0))
  return call(copy, S((32, 128), f32), (4,), [block], pl.BlockSpec((8, 128), lambda i: (i, 0))), [normal(rng, 32, 128)]


@case
def no_grid(rng):
  def body(x, y, o, p):
    o[...] = x[...] + y[...]
    p[...] = x[...] * y[...]
  return lambda x, y: pl.pallas_call(body, out_shape=(x, x))(x, y), [normal(rng, 8, 128), normal(rng, 8, 128)]


@case
def scalar_result(rng):
  def body(x, o):
    o[0] = x[0] + x[1]
    o[1] = x[0] * x[1]
  space = pl.BlockSpec(memory_space=pltpu.SMEM)
  return lambda x: pl.pallas_call(body, out_shape=S((2,), jnp.int32), in_specs=[space], out_specs=space)(x), [
      np.array([5, 7], np.int32)]


@case
def scratch_across_steps(rng):
  def body(x, o, kept, number):
    @pl.when(pl.program_id(0) == 0)
    def start():
      kept[...] = jnp.zeros_like(kept)
      number[0] = 0
    o[...] = kept[...] + number[0].astype(f32)
    kept[...] = x[...]
    number[0] += 2
  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  return call(body, S((32, 128), f32), (4,), [block], block,
              scratch_shapes=[pltpu.VMEM((8, 128), f32), pltpu.SMEM((1,), jnp.int32)]), [normal(rng, 32, 128)]


@case
def vmapped(rng):
  block = pl.BlockSpec((8, 128), lambda i: (i, 0))
  f = call(lambda x, o: o.__setitem__(..., x[...] + pl.program_id(0).astype(f32)), S((16, 128), f32), (2,), [block], block)
  return jax.vmap(f), [normal(rng, 3, 16, 128)]


@case
def single_buffer(rng):
  block = functools.partial(pl.BlockSpec, (8, 128), lambda i: (i, 0))
  return call(copy, S((32, 128), f32), (4,), [block(pipeline_mode=pl.Buffered(1))], block()), [normal(rng, 32, 128)]


@case
def bool_operand(rng):
  def body(m, x, o):
    o[...] = jnp.where(m[...], x[...], -x[...])
  return lambda x: pl.pallas_call(body, out_shape=x)(x > 0, x), [normal(rng, 32, 128)]


@case
def bool_result(rng):
  def body(x, o):
    o[...] = x[...] > 0
  return lambda x: pl.pallas_call(body, out_shape=S(x.shape, jnp.bool_))(x), [normal(rng, 32, 128)]
