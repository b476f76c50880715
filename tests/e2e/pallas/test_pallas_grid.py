"""Pallas kernels: blocks are fetched and written back when their index changes, as on a TPU."""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np
import pytest

X = np.repeat(np.arange(1, 4, dtype=np.float32), 8)[:, None] * np.ones((1, 128), np.float32)


def rows(choose, size=8):
  return pl.BlockSpec((size, 128), lambda *ids: (choose(*ids), 0))


def call(kernel, grid, operand, result, aliases=None, x=X, **options):
  """The first column of the result, whose shape is x's, every eighth row."""
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=grid,
                     in_specs=[operand], out_specs=result, input_output_aliases=aliases or {},
                     **options)
  found = np.asarray(jax.jit(f)(x))
  np.testing.assert_array_equal(found, found[::8, :1].repeat(8, 0).repeat(128, 1))
  return found[::8, 0].tolist()


def add_up(x, out):
  @pl.when(pl.program_id(0) == 0)
  def begin():
    out[...] = jnp.zeros_like(out)

  out[...] += x[...]


def test_an_operand_does_not_see_a_block_that_is_still_held():
  assert call(add_up, (3,), rows(lambda i: i), rows(lambda i: 1), {0: 0}) == [1, 6, 3]


def test_an_operand_sees_a_block_that_has_been_written_back():
  def kernel(x, out):
    out[...] = x[...] * 2

  assert call(kernel, (3,), rows(lambda i: 0), rows(lambda i: i), {0: 0}) == [2, 2, 2]
  assert call(kernel, (3,), rows(lambda i: 2 - i), rows(lambda i: i), {0: 0}) == [6, 4, 12]


def test_the_last_block_is_written_back_at_the_end():
  def kernel(x, out):
    out[...] = x[...] + pl.program_id(0)

  assert call(kernel, (5,), rows(lambda i: i // 2), rows(lambda i: i // 2), {0: 0}) == [2, 5, 7]


def test_an_operand_and_a_result_in_its_place_have_other_blocks():
  def kernel(x, out):
    out[...] = x[...][:8] + x[...][8:16] + x[...][16:]

  assert call(kernel, (3,), rows(lambda i: 0, 24), rows(lambda i: i), {0: 0}) == [6, 6, 6]
  assert call(lambda x, out: out.__setitem__(..., jnp.concatenate([x[...]] * 3)), (3,),
              rows(lambda i: i), rows(lambda i: 0, 24), {0: 0}) == [3, 3, 3]


@pytest.mark.parametrize("interpret", [False, pltpu.InterpretParams()], ids=["plain", "tpu"])
def test_a_block_of_an_operand_that_is_overwritten_goes_with_the_block(interpret):
  def kernel(x, out):
    x[...] = x[...] * 2
    out[...] = x[...]

  held = rows(lambda i: i // 2 % 2)
  assert call(kernel, (6,), held, rows(lambda i: i // 2), interpret=interpret) == [4, 8, 4]


def test_an_operand_that_the_kernel_overwrites_is_as_it_was():
  def kernel(x, out):
    x[...] = x[...] + 1
    out[...] = x[...]

  def f(x):
    call = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2, 3),
                          in_specs=[rows(lambda i, j: j)], out_specs=rows(lambda i, j: j))
    return call(x), x

  x = jnp.asarray(X)
  for value, expected in zip(jax.jit(f)(x), (X + 1, X)):
    np.testing.assert_array_equal(value, expected)
  np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize("nest", [
    lambda body: body(),
    lambda body: pl.when(pl.program_id(0) >= 0)(body),
    lambda body: pl.when(pl.program_id(0) < 0)(lambda: None) or jax.lax.fori_loop(
        0, 1, lambda i, carry: body() or carry, 0),
    lambda body: jax.lax.while_loop(lambda i: i < 1, lambda i: body() or i + 1, 0),
    lambda body: jax.lax.switch(pl.program_id(0) % 3, [lambda: body() or 0] * 3),
    lambda body: jax.jit(lambda: body() or 0)(),
    lambda body: pl.run_scoped(lambda scratch: body(), pltpu.VMEM((8, 128), jnp.float32))],
    ids=["plain", "cond", "scan", "while", "switch", "jit", "run_scoped"])
def test_an_array_in_hbm_has_two_names_in_one_step(nest):
  """Writes through one name are visible through the other, also in branches and loops."""
  def kernel(x, out):
    @nest
    def body():
      i = pl.program_id(0)
      out[pl.ds(8, 8)] = x[pl.ds(0, 8)] + i
      out[pl.ds(16, 8)] = x[pl.ds(8, 8)] * 2

  memory = pl.BlockSpec(memory_space=pl.ANY)
  assert call(kernel, (3,), memory, memory, {0: 0}) == [1, 3, 6]


def test_a_result_in_blocks_is_in_the_place_of_an_operand_in_hbm():
  def kernel(x, out):
    out[...] = x[pl.ds(pl.multiple_of(8 * ((pl.program_id(0) + 1) % 3), 8), 8)]

  assert call(kernel, (3,), pl.BlockSpec(memory_space=pl.ANY), rows(lambda i: i), {0: 0}) == [2, 3, 2]


def test_blocks_stick_out_of_arrays_that_change():
  def kernel(x, out):
    out[...] = x[...] + 1

  x = np.ones((20, 128), np.float32)
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2, 3),
                     in_specs=[rows(lambda i, j: j)], out_specs=rows(lambda i, j: j),
                     input_output_aliases={0: 0})
  np.testing.assert_array_equal(jax.jit(f)(x), x + 2)


@pytest.mark.parametrize("alias", [False, True])
def test_blocks_of_elements_have_padding(alias):
  def kernel(x, out):
    out[...] = x[...] * 2

  block = pl.BlockSpec((pl.Element(8, (4, 4)), pl.Element(128)), lambda i: (8 * i, 0))
  x = np.arange(24 * 128, dtype=np.float32).reshape(24, 128)
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(4,),
                     in_specs=[block], out_specs=block,
                     input_output_aliases={0: 0} if alias else {})
  np.testing.assert_array_equal(jax.jit(f)(x), x * 2)
