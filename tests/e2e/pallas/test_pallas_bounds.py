"""Pallas kernels with indices out of bounds: the launch fails and names the place."""

import functools
import re

import jax
import jax.export
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(24 * 128, dtype=np.float32).reshape(24, 128)
SCALARS = np.array([0, 1, 2, 30], np.int32)
HERE = r"test_pallas_bounds.py:\d+"


def rows(choose):
  return pl.BlockSpec((8, 128), choose)


FIRST = rows(lambda i, s: (i, 0))
IN_HBM = pl.BlockSpec(memory_space=pl.ANY)


def run(kernel, operand=FIRST, result=FIRST, grid=(3,), scalars=SCALARS, x=X, scratch=()):
  spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=grid, in_specs=[operand],
                                      out_specs=result, scratch_shapes=scratch)
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid_spec=spec)
  return np.asarray(jax.jit(f)(scalars, x))


def copy(s, x, out):
  out[...] = x[...]


def read_rows(find, s, x, out):
  out[...] = x[pl.ds(find(s, pl.program_id(0)), 8)]


def write_row(find, s, x, out):
  out[...] = x[...]
  out[find(s, pl.program_id(0))] = x[0]


def read_scalar(s, x, out):
  out[...] = x[...] + s[pl.program_id(0) + 2].astype(jnp.float32)


def read_in_a_loop(s, x, out):
  def body(i, carry):
    @pl.when(i > 5)
    def read():
      out[...] = out[...] + x[pl.ds(i, 1)]
    return carry

  out[...] = x[...]
  jax.lax.fori_loop(0, 10, body, 0)


def copy_in(s, x, out):
  pltpu.sync_copy(x.at[pl.ds(8 * pl.program_id(0) + s[1], 8)], out)


def read_under_mask(s, x, out):
  mask = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < s[2]
  out[...] = triton.load(x.at[pl.ds(s[1] * 7, 8)], mask=mask, other=0.0)


def add_array(s, x, out):
  out[...] = x[...][s[...] + 5 * 0]


CASES = {
    "index map of an operand": (
        dict(kernel=copy, operand=rows(lambda i, s: (i + 1, 0))),
        r"'copy' takes the block of operand 'x' that begins at \(24, 0\) of 24x128 elements in"
        rf" blocks of 8x128 \(<lambda> at .*{HERE}\).* in step \(2\) of the grid"),
    "index map of a result": (
        dict(kernel=copy, result=rows(lambda i, s: (i - 1, 0))),
        r"block of result 'out' that begins at \(-8, 0\).* step \(0\)"),
    "index map by scalars": (
        dict(kernel=copy, operand=rows(lambda i, s: (s[i + 1], 0))),
        r"operand 'x' that begins at \(240, 0\).* step \(2\)"),
    "scalar of an index map": (
        dict(kernel=copy, operand=rows(lambda i, s: (s[i * 2] * 0, 0))),
        r"'copy: index map of operand 'x'' reads scalars 's' at \[4\] of 4 elements.* step \(2\)"),
    "second dimension of the grid": (
        dict(kernel=copy, grid=(1, 3), operand=rows(lambda i, j, s: (j * 2, i)),
             result=rows(lambda i, j, s: (j, 0))),
        r"begins at \(32, 0\).* step \(0, 2\)"),
    "slice that is read": (
        dict(kernel=functools.partial(read_rows, lambda s, i: s[i])),
        rf"reads operand 'x' at \[ds\(1, 8\), ds\(0, 128\)\] of 8 x 128 elements.* step \(1\).*{HERE}"),
    "slice before the beginning": (
        dict(kernel=functools.partial(read_rows, lambda s, i: -s[i])),
        r"reads operand 'x' at \[ds\(-1, 8\), .* step \(1\)"),
    "row that is written": (
        dict(kernel=functools.partial(write_row, lambda s, i: s[3] - 23 + i)),
        r"writes result 'out' at \[8, ds\(0, 128\)\].* step \(1\)"),
    "scalar": (dict(kernel=read_scalar), r"reads scalars 's' at \[4\] of 4 elements.* step \(2\)"),
    "branch in a loop": (
        dict(kernel=read_in_a_loop), r"reads operand 'x' at \[ds\(8, 1\), .* step \(0\)"),
    "copy": (
        dict(kernel=copy_in, operand=IN_HBM), r"copies operand 'x' at \[ds\(17, 8\), .* step \(2\)"),
    "mask": (
        dict(kernel=read_under_mask, grid=()),
        r"reads 128 elements that the mask selects beyond the end of operand 'x'"),
}


@pytest.mark.parametrize("options, said", CASES.values(), ids=CASES)
def test_is_an_error(options, said):
  if options.get("grid") == ():
    block = pl.BlockSpec((8, 128), lambda s: (0, 0))
    options = {**options, "operand": block, "result": block}
  with pytest.raises(jax.errors.JaxRuntimeError) as error:
    run(**options)
  assert re.search(said, str(error.value)) and re.search(HERE, str(error.value)), str(error.value)
  assert "OUT_OF_RANGE" in str(error.value)


def test_blocks_that_stick_out_are_none():
  x = X[:20]
  np.testing.assert_array_equal(run(copy, x=x), x)


def test_accesses_that_are_not_done_are_none():
  def kernel(s, x, out):
    out[...] = x[...]

    @pl.when(s[3] < 24)
    def write():
      out[s[3]] = x[0]

  np.testing.assert_array_equal(run(kernel), X)


def test_masks_that_select_nothing_outside_are_none():
  def kernel(s, x, out):
    mask = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) < 1
    out[...] = triton.load(x.at[pl.ds(s[1] * 7, 8)], mask=mask, other=0.0)

  expected = np.zeros_like(X)
  expected[::8] = X[7::8]
  np.testing.assert_array_equal(run(kernel), expected)


def test_the_next_launch_works():
  kernel = functools.partial(read_rows, lambda s, i: s[0])
  with pytest.raises(jax.errors.JaxRuntimeError, match="step"):
    run(kernel, scalars=SCALARS + 1)
  np.testing.assert_array_equal(run(kernel), X)


@pytest.mark.parametrize("on_many", [False, True])
def test_a_sharded_program_fails_as_well(on_many):
  devices = jax.devices()[:4 if on_many else 1]
  mesh = jax.sharding.Mesh(devices, "x")
  f = pl.pallas_call(
      lambda s, x, out: read_rows(lambda s, i: s[0], s, x, out),
      out_shape=jax.ShapeDtypeStruct((8, 128), X.dtype),
      grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[FIRST],
                                             out_specs=FIRST))
  f = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=(jax.P("x"), jax.P("x")), out_specs=jax.P("x"),
                            check_vma=False))
  scalars = np.zeros(len(devices), np.int32)
  x = np.concatenate([X[:8]] * len(devices))
  np.testing.assert_array_equal(f(scalars, x), x)
  scalars[-1] = 3
  with pytest.raises(jax.errors.JaxRuntimeError, match=r"at \[ds\(3, 8\)"):
    np.asarray(f(scalars, x))


def test_checks_are_exported():
  kernel = functools.partial(read_rows, lambda s, i: s[0])
  spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(3,), in_specs=[FIRST],
                                      out_specs=FIRST)
  f = pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), grid_spec=spec)
  data = jax.export.export(jax.jit(f))(SCALARS, X).serialize()
  f = jax.export.deserialize(data).call
  np.testing.assert_array_equal(f(SCALARS, X), X)
  with pytest.raises(jax.errors.JaxRuntimeError, match=r"at \[ds\(1, 8\)"):
    np.asarray(f(SCALARS + 1, X))
