"""Operands that repeat a scalar over large arrays: kernels read the scalar itself."""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np
import pytest
from differential import compare

LARGE = 40_000  # elements: more than 64 KiB for all tested types


def values(dtype, seed=0):
  return np.random.default_rng(seed).integers(1, 7, LARGE).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("function", [
    lambda v, s: v + s, lambda v, s: s - v, lambda v, s: v * s * s, lambda v, s: (s + s) * v,
    lambda v, s: lax.broadcast(s, (LARGE,)) * lax.broadcast(s + 1, (LARGE,)),
    lambda v, s: (lax.broadcast(s, (LARGE,)), v + s),
    lambda v, s: jnp.where(v == s, s, v), lambda v, s: jnp.where(v == s, v, s),
    lambda v, s: jnp.where(lax.broadcast(s == 3, (LARGE,)), v, v + 1),
    lambda v, s: jnp.where(lax.broadcast(s == 3, (LARGE,)), s, s + 1),
    lambda v, s: jnp.concatenate([v, lax.broadcast(s, (LARGE,))]) + s],
    ids=["add", "subtract", "twice", "sum", "both", "result", "select", "select_no", "predicate",
         "all_three", "other_users"])
def test_scalar_operands(function, dtype):
  dtype = jnp.dtype(dtype)
  v = values("uint8" if dtype == jnp.uint8 else "float32").astype(dtype)
  v = np.concatenate([v] * (2 if dtype.itemsize < 4 else 1))[:LARGE]
  compare(function, v, np.asarray(3, dtype))


def test_clamp():
  compare(lambda v, low: lax.clamp(low, v, low + 2), values("float32"), np.float32(2))


def test_in_loops():
  def function(v, s):
    repeated = lax.broadcast(s, v.shape)
    def body(i, carry):
      v, s = carry
      return jnp.where(i % 2 == 0, v + repeated, v * s), s + 1
    return lax.fori_loop(0, 5, body, (v, s))
  compare(function, values("float32"), np.float32(2))


def test_in_branches():
  def function(v, s):
    repeated = lax.broadcast(s, v.shape)
    return lax.cond(s > 2, lambda v: v + repeated, lambda v: v - repeated, v) + repeated
  compare(function, values("float32"), np.float32(3))
  compare(function, values("float32"), np.float32(1))


def test_donated_scalars_and_arrays():
  f = jax.jit(lambda v, s: (v + s, s * 2, v * s), donate_argnums=(0, 1))
  v = values("float32")
  added, doubled, multiplied = f(jnp.asarray(v), jnp.float32(3))
  np.testing.assert_array_equal(added, v + 3)
  np.testing.assert_array_equal(multiplied, v * 3)
  assert float(doubled) == 6


def test_random_numbers_need_little_memory():
  """JAX's first demo: random.normal took 40 times its result in temporaries."""
  normal = jax.jit(lambda k: jax.random.normal(k, (1000, 1000)))
  memory = normal.lower(jax.random.key(0)).compile().memory_analysis()
  assert memory.temp_size_in_bytes <= 6 * memory.output_size_in_bytes
