"""x[i] = y and x[i] += y in loops, with positions inside and outside of x, equal the same updates without a loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from differential import on_pod
from jax import lax

ROUNDS = 40
MODES = ["drop", "clip", None]
OPS = ["set", "add", "multiply", "min", "max"]


def positions(i):
  """Positions from far before the array to far after its end."""
  return (i * 7) % 23 - 9


def updated(x, op, mode, where, value):
  return getattr(x.at[where], op)(value, mode=mode)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "complex64", "uint8"])
def test_elements(op, dtype):
  if dtype == "complex64" and op in ("min", "max"):
    pytest.skip("not ordered in NumPy's sense")
  values = jnp.asarray(np.arange(ROUNDS) % 5 + 1, dtype)
  for mode in MODES:
    def in_loop(x, values):
      return lax.fori_loop(
          0, ROUNDS, lambda i, x: updated(x, op, mode, positions(i), values[i]), x)

    def unrolled(x, values):
      for i in range(ROUNDS):
        x = updated(x, op, mode, positions(i), values[i])
      return x

    x = jnp.asarray(np.arange(11) % 3 + 1, dtype)
    got, wanted = on_pod(in_loop, x, values), on_pod(unrolled, x, values)
    assert got.tobytes() == wanted.tobytes(), (mode, got, wanted)


WINDOWS = {  # positions of a 4 x 6 x 5 array
    "row": lambda i: (positions(i),),
    "piece of a row": lambda i: (positions(i), positions(i + 3)),
    "element": lambda i: (positions(i), positions(i + 1), positions(i + 2)),
    "last row": lambda i: (-1, positions(i)),
    "apart": lambda i: (slice(None), positions(i), 2),
    "small type": lambda i: (jnp.uint8(i % 9),),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
  where = WINDOWS[name]
  x = np.random.RandomState(0).randn(4, 6, 5).astype(np.float32)
  shape = jax.eval_shape(lambda x: x[where(jnp.int32(1))], x).shape

  def in_loop(x):
    def body(i, x):
      x = x.at[where(i)].add(jnp.full(shape, i, jnp.float32), mode="drop")
      return x.at[where(i + 1)].set(-i.astype(jnp.float32), mode="drop")
    return lax.fori_loop(0, ROUNDS, body, x)

  def unrolled(x):
    for i in range(ROUNDS):
      x = x.at[where(i)].add(jnp.full(shape, i, jnp.float32), mode="drop")
      x = x.at[where(i + 1)].set(np.float32(-i), mode="drop")
    return x

  assert on_pod(in_loop, x).tobytes() == on_pod(unrolled, x).tobytes()


def test_gradient():
  def loss(y):
    x = lax.fori_loop(0, 6, lambda i, x: x.at[(i * 5) % 9 - 1].add(y[i] * x[i]), jnp.ones(8))
    return (x * jnp.arange(8.0)).sum()

  y = np.linspace(-1, 1, 6).astype(np.float32)
  got = on_pod(jax.grad(loss), y)
  step = np.float32(1e-2)
  for i in range(6):
    e = np.zeros(6, np.float32)
    e[i] = step
    wanted = (on_pod(loss, y + e) - on_pod(loss, y - e)) / (2 * step)
    assert abs(got[i] - wanted) < 2e-2 * max(1, abs(wanted)), i


def test_parts_of_an_index_vector():
  """Of the parts that are joined to an index vector, one has both components, and one has none."""
  numbers = lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
  def f(x, none, both):
    def step(i, x):
      return lax.scatter_add(x, lax.concatenate([none, both + i], 1), jnp.ones(1, x.dtype), numbers)
    return lax.fori_loop(0, 3, step, x)
  found = on_pod(f, np.zeros((5, 6), np.float32), np.zeros((1, 0), np.int32),
                 np.array([[1, 2]], np.int32))
  expected = np.zeros((5, 6))
  expected[[1, 2, 3], [2, 3, 4]] = 1
  np.testing.assert_array_equal(found, expected)
