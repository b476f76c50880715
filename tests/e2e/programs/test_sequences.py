"""Many consecutive small operations that run as one command have the results of single operations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differential import on_cpu, on_pod

NARROW = ["float16", "bfloat16", "int8", "bool"]
DTYPES = NARROW + ["float32", "int32", "complex64"]


def chosen(x, where, one):
  """Selections and limits with one scalar for all elements, of arrays that are longer than vectors."""
  out = []
  for k in range(4):
    rows = jnp.take(x, where + k, axis=0, mode="fill")
    out += [jnp.where(rows == rows, rows, one), jnp.where(one != one, one, rows)]
    out += [jnp.where(rows[:, :1] == one, one, rows)]
  return out


def moved(x, where, one):
  """Columns, repeated rows, and concatenations."""
  out = []
  for k in range(2, 7):
    columns = [jnp.where(x[:, i::k][:, :12] == one, one, x[:, i::k][:, :12]) for i in range(k)]
    out += [jnp.stack(columns, 2), jnp.repeat(columns[0], 3, axis=1), columns[1][:, ::-1]]
  return out


def computed(x, where, one):
  out = []
  for k in range(6):
    x = jnp.where(x == one, x * one, x + one) if x.dtype != bool else x ^ one
    out += [x, x[:, ::2] * one, x.T]
  return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", [chosen, moved, computed])
def test_bits(program, dtype):
  generator = np.random.default_rng(5)
  x = jnp.asarray(generator.integers(-4, 5, (5, 90)) / 2, dtype)
  where = jnp.asarray(generator.integers(-7, 9, 13), jnp.int32)
  one = jnp.asarray(1.5, dtype)
  together = on_pod(lambda *a: tuple(program(*a)), x, where, one)
  with jax.disable_jit():
    alone = program(x, where, one)
  for got, wanted in zip(together, alone, strict=True):
    assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes(), (got, wanted)


@pytest.mark.parametrize("shape", [(4, 2), (8, 4), (4, 13)])
def test_moved_numbers(shape):
  """Positions for a sort, which reads them in another order: as numbers and as an array."""
  x = np.random.default_rng(6).permutation(shape[0] * shape[1]).reshape(shape).astype(np.float32)

  def program(a):
    rows = jax.lax.broadcasted_iota(jnp.int32, a.shape, 0)
    return jax.lax.sort((jnp.flip(a, 0), jnp.flip(rows, 0)), dimension=0, num_keys=1)

  values, positions = on_pod(program, x)
  assert (values == np.sort(x, 0)).all()
  assert (positions == np.argsort(x, 0)).all()


def steps_with_a_scalar(x, flag):
  """The flag is read as a scalar, and then selects all elements of a vector, in the same command as a sum."""
  total = jnp.sum(x)
  other = flag ^ (total > 0)
  return jax.lax.select(flag, x * total, x - total), other


@pytest.mark.parametrize("flag", [True, False])
@pytest.mark.parametrize("size", [3, 8, 40, 200])
def test_a_scalar_for_all_elements_beside_a_reduction(size, flag):
  def loop(x, flag):
    return jax.lax.fori_loop(0, 3, lambda i, carry: steps_with_a_scalar(*carry), (x, flag))

  def straight(x, flag):
    for _ in range(3):
      x, flag = steps_with_a_scalar(x[::-1], flag)
    return x, flag

  x = np.linspace(-1, 2, size, dtype=np.float32)
  for program in (loop, straight):
    found, wanted = on_pod(program, x, np.bool_(flag)), on_cpu(program, x, np.bool_(flag))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-4)
    assert found[1] == wanted[1]
