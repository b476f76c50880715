"""Gathers by several indices, x[i, j, k].

Indices out of bounds are clamped, or the result is filled, whatever the indices' type, the order of their dimensions,
and the remaining dimensions of x.
"""

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

SHAPE = (40, 30)  # number of indices: more vectors than minipod computes positions of at a time


def indices(dtype, dims, random):
  least = -12 if np.dtype(dtype).kind == "i" else 0
  return [random.integers(least, 12, SHAPE).astype(dtype) for _ in dims]


def gather(order, rank, mode):
  """x at vectors whose component k is for dimension order[k]."""
  numbers = lax.GatherDimensionNumbers(
      offset_dims=tuple(range(2, 2 + rank - len(order))),
      collapsed_slice_dims=tuple(range(len(order))), start_index_map=order)
  def f(x, *vectors):
    joined = jnp.concatenate([i[..., None] for i in vectors], -1)
    sizes = (1,) * len(order) + x.shape[len(order):]
    return lax.gather(x, joined, numbers, sizes, mode=mode,
                      fill_value=-1 if mode == "fill" else None)
  return f


def expected(x, order, vectors, mode):
  wide = [None] * len(order)
  for d, i in zip(order, vectors):
    wide[d] = i.astype(np.int64)
  y = x[tuple(np.clip(i, 0, n - 1) for i, n in zip(wide, x.shape))]
  if mode == "clip":
    return y
  is_inside = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(wide, x.shape)])
  return np.where(is_inside.reshape(SHAPE + (1,) * (y.ndim - 2)), y, np.array(-1, x.dtype))


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("index", ["int8", "int16", "int32", "int64", "uint32"])
@pytest.mark.parametrize("order, dims", [((0, 1), (9, 7)), ((1, 0), (9, 7, 5)), ((0, 1), (1, 8, 2, 3)),
                                         ((2, 0, 1), (5, 6, 7)), ((1, 2, 0), (4, 5, 6, 3))])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "complex64"])
def test_index_vectors(dtype, order, dims, index, mode):
  random = np.random.default_rng(7)
  with jax.enable_x64(True):
    x = (random.standard_normal(dims) * 50).astype(dtype)
    vectors = indices(index, order, random)
    got = jax.jit(gather(order, len(dims), mode))(x, *vectors)
    np.testing.assert_array_equal(got, expected(x, order, vectors, mode))


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.complex64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 3, 4), (2, 1, 4), (2, 2, 1), (3, 3, 4)])
def test_constant_indices_take_the_same_elements(dtype, sizes):
  """Constant indices, some of them out of bounds, in slices of any length."""
  random = np.random.default_rng(5)
  x = (random.standard_normal((5, 6, 4)) * 1000).astype(dtype)
  at = random.integers(-2, 8, (7, 2)).astype(np.int32)
  numbers = lax.GatherDimensionNumbers(
      offset_dims=(1, 2, 3), collapsed_slice_dims=(), start_index_map=(0, 1))
  take = lambda x, at: lax.gather(x, at, numbers, sizes, mode="clip")
  most = np.array(x.shape[:2]) - sizes[:2]
  wanted = np.stack([x[i:i + sizes[0], j:j + sizes[1], :sizes[2]]
                     for i, j in np.clip(at, 0, most)])
  np.testing.assert_array_equal(jax.jit(lambda x: take(x, at))(x), wanted)
  np.testing.assert_array_equal(jax.jit(take)(x, at), wanted)
  one = np.broadcast_to(at[:1], at.shape)
  np.testing.assert_array_equal(jax.jit(lambda x: take(x, one))(x), jax.jit(take)(x, one))
