"""The largest elements of rows: argmax, top_k and sorts that keep their first elements, with difficult values."""

import jax
from jax import lax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

CPU, POD = jax.devices("cpu")[0], jax.devices("minipod")[0]
DTYPES = [np.float32, np.float64, ml_dtypes.bfloat16, np.float16, np.int8, np.uint8, np.int32, np.uint64]


def values(rng, shape, dtype, is_hostile):
  """Random values, or many equal ones, NaNs, infinities and zeros of both signs."""
  if np.issubdtype(dtype, np.integer):
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return x % 4 if is_hostile else x
  if not is_hostile:
    return rng.standard_normal(shape).astype(dtype)
  choices = np.array([0.0, -0.0, 1, 1, 2, -1, np.inf, -np.inf, np.nan, -np.nan]).astype(dtype)
  return rng.choice(choices, shape)


def check(f, x):
  want, got = (jax.jit(f)(jax.device_put(x, device)) for device in (CPU, POD))
  for a, b in zip(jax.tree.leaves(want), jax.tree.leaves(got)):
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_top_k(dtype):
  rng = np.random.default_rng(1)
  with jax.enable_x64(True):
    for shape, k in (((3, 7), 2), ((2, 5000), 50), ((2, 5000), 1300), ((2, 2, 600), 1), ((9, 1), 1)):
      for is_hostile in (False, True):
        check(lambda a, k=k: lax.top_k(a, k), values(rng, shape, dtype, is_hostile))
    check(lambda a: lax.top_k(a, 9), np.sort(values(rng, (4000,), dtype, False)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_argmax(dtype):
  rng = np.random.default_rng(3)
  with jax.enable_x64(True):
    for shape in ((3, 2), (7, 1500), (300, 40), (1, 1)):
      for is_hostile in (False, True):
        check(lambda a: [best(a, axis=axis) for best in (jnp.argmax, jnp.argmin) for axis in (0, 1, None)],
              values(rng, shape, dtype, is_hostile))


def test_argmax_counts_for_itself():
  x = jax.ShapeDtypeStruct((512, 4096), np.float32, sharding=jax.sharding.SingleDeviceSharding(POD))
  memory = jax.jit(lambda a: jnp.argmax(a, axis=1)).lower(x).compile().memory_analysis()
  assert memory.temp_size_in_bytes < 1 << 16


@pytest.mark.parametrize("index", [np.uint32, np.int64])
def test_argmax_counts_beyond_32_bits(index):
  """Only compiles: the positions alone would take four or eight times the memory of the array."""
  x = jax.ShapeDtypeStruct(((1 << 31) + 8,), np.int8, sharding=jax.sharding.SingleDeviceSharding(POD))
  with jax.enable_x64(True):
    memory = jax.jit(lambda a: lax.argmax(a, 0, index)).lower(x).compile().memory_analysis()
  assert memory.temp_size_in_bytes < 1 << 16


def test_first_of_sorts():
  x = values(np.random.default_rng(2), (40, 30), np.float32, True)
  # Slices of several lengths; a slice that leaves out the first rows; an index that the comparator reads.
  check(lambda a: (lambda s: (s[:3], s[:5], s[:5, :2]))(jnp.sort(a, 0)), x)
  check(lambda a: (lambda s: (s[:3], s[1:2]))(jnp.sort(a, 0)), x)
  check(lambda a: jnp.argsort(a, 0, descending=True)[:4], x)
  check(lambda a: lax.sort((a, lax.broadcasted_iota(jnp.int32, a.shape, 0)), dimension=0, num_keys=2)[1][:4], x)


def test_top_k_needs_little_memory():
  x = jax.ShapeDtypeStruct((16, 65536), np.float32, sharding=jax.sharding.SingleDeviceSharding(POD))
  memory = jax.jit(lambda a: lax.top_k(a, 50)).lower(x).compile().memory_analysis()
  assert memory.temp_size_in_bytes < 1 << 20
