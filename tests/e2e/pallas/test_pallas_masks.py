"""Masked loads and stores in Pallas kernels that extend past the ends of a memory."""

import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton
import jax.numpy as jnp
import numpy as np
import pytest

X = np.arange(40, dtype=np.float32).reshape(2, 20)
STARTS = np.array([0, 1, 16, -3], np.int32)

# Views, each an index of the one before; the kernel reads the start indices `s`, which are STARTS.
VIEWS = {
    "number and slice": [lambda s: (1, pl.ds(s[2], 8))],
    "numbers read": [lambda s: (s[1], pl.ds(s[2], 8))],
    "two views": [lambda s: (1,), lambda s: (pl.ds(s[2], 8),)],
    "view of a view that sticks out": [lambda s: (1, pl.ds(s[2], 8)), lambda s: (pl.ds(s[1], 4),)],
    "row of a view that sticks out": [lambda s: (pl.ds(0, 2), pl.ds(s[2], 8)), lambda s: (s[1],)],
    "before the beginning": [lambda s: (0, pl.ds(s[3], 8))],
    "both dimensions": [lambda s: (pl.ds(s[1], 2), pl.ds(s[2], 8))],
    "strides": [lambda s: (1, pl.ds(s[1], 8, 3))],
    "array": [lambda s: (1, s[2] + jnp.arange(8))],
    "array and slice": [lambda s: (pl.ds(s[1], 2), s[2] + jnp.arange(8))],
    "two arrays": [lambda s: (s[1] + jnp.zeros(8, jnp.int32), s[2] + jnp.arange(8))],
}


def find_places(views):
  """The rows and columns in X of the elements that the views show, by indexing arrays of row and column numbers."""
  margin = 30
  places = np.stack(np.mgrid[-margin:margin, -margin:margin], -1)
  for view in views:
    places = places[tuple(
        np.asarray(index) + margin if not hasattr(index, "stride") else
        slice(index.start + margin, index.start + margin + index.stride * index.size, index.stride)
        for index in view(STARTS))]
    margin = 0
  i, j = places[..., 0], places[..., 1]
  return i, j, (0 <= i) & (i < 2) & (0 <= j) & (j < 20)


def call(kernel, views, mask, out):
  """Runs a kernel that makes `out` of X, its view and the mask."""
  def run(starts, x, mask, out):
    find_view = lambda ref: functools.reduce(lambda view, index: view.at[index(starts)], views, ref)
    kernel(find_view, x, mask[...], out)

  spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=())
  f = pl.pallas_call(run, out_shape=jax.ShapeDtypeStruct(out.shape, out.dtype), grid_spec=spec)
  return jax.jit(f)(STARTS, X, mask)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_a_load(views):
  def kernel(find_view, x, mask, out):
    out[...] = triton.load(find_view(x), mask=mask, other=-1.0)

  i, j, is_inside = find_places(views)
  mask = is_inside & (j % 3 != 0)
  expected = np.where(mask, X[i.clip(0, 1), j.clip(0, 19)], -1)
  np.testing.assert_array_equal(call(kernel, views, mask, expected), expected)


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_a_store(views):
  def kernel(find_view, x, mask, out):
    out[...] = x[...]
    pltpu.store(find_view(out), jnp.full(mask.shape, -1, jnp.float32), mask=mask)

  i, j, is_inside = find_places(views)
  mask, expected = is_inside & (j % 3 != 0), X.copy()
  expected[i[mask], j[mask]] = -1
  np.testing.assert_array_equal(call(kernel, views, mask, X), expected)
