"""Loops, branches and calls, against JAX's CPU backend."""

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from differential import compare, on_cpu

X = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)


def nested_loops(x):
  def outer(i, total):
    return lax.fori_loop(0, i + 1, lambda j, t: t + x[j % 6].sum() * i, total)
  return lax.fori_loop(0, 5, outer, jnp.float32(0))


def collatz(n):
  def step(state):
    value, count = state
    return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), count + 1
  return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]


def branches(i, x):
  return lax.switch(i, [lambda v: v + 1, lambda v: v * 2, lambda v: jnp.sin(v)], x)


def recurrent(w, x):
  def cell(state, row):
    state = jnp.tanh(row @ w + state)
    return state, (state, state.sum())
  return lax.scan(cell, jnp.zeros(4), x)


def branch_in_loop(x):
  def body(i, v):
    return lax.cond(v.sum() > 0, lambda u: u - 0.5 * i, lambda u: lax.fori_loop(
        0, 2, lambda _, t: t + 0.7, u), v)
  return lax.fori_loop(0, 9, body, x)


def rows(table, x):
  """Reads rows and elements by index, some of them out of bounds, and writes others to the carried arrays."""
  def body(i, state):
    out, total = state
    row = lax.dynamic_slice(table, (i * 2 - 1, 0), (1, 4))[0]
    one = lax.dynamic_slice(table, (i, i - 2), (1, 1))[0, 0]
    out = lax.dynamic_update_slice(out, (row + total)[None], (5 - 2 * i, 0))
    return lax.dynamic_update_slice(out, total.reshape(1, 1), (i, i)), total * 0.5 + one
  return lax.fori_loop(0, 5, body, (x, jnp.float32(1)))


def scalars(n):
  """Every kind of scalar: those that a loop's steps compute themselves, and those that kernels compute."""
  def body(i, s):
    a, b, u, f, h = s
    a, b = jnp.where(a > b, b * 3 - i, a // 2 + (b % 7)), jnp.maximum(a ^ i, -b) | (a >> 1)
    u = (u << 3) ^ (u >> 5) ^ a.astype(jnp.uint32)
    f = lax.cond(a % 3 == 0, lambda v: v / 3 + 1, lambda v: jnp.sqrt(jnp.abs(v)) - u % 5, f)
    return a, b, u, f, (h * 0.75 + f.astype(jnp.bfloat16)).astype(jnp.bfloat16)
  return lax.fori_loop(0, n, body, (np.int32(5), np.int32(-9), np.uint32(77), np.float32(2),
                                    jnp.bfloat16(1)))


W = X[:4]

CASES = {
    "rows by index": (rows, X, X),
    "scalars": (scalars, np.int32(50)),
    "scalars, no round": (scalars, np.int32(0)),
    "while": (collatz, np.int32(27)),
    "while that never runs": (lambda x: lax.while_loop(lambda v: False, lambda v: v + 1, x), X),
    "nested loops": (nested_loops, X),
    "scan": (recurrent, W, X),
    "scan reversed": (lambda x: lax.scan(lambda c, r: (c + r, c * r), x[0], x, reverse=True), X),
    "scan unrolled": (lambda x: lax.scan(lambda c, r: (c + r, c), x[0], x, unroll=4), X),
    "scan gradient": (jax.grad(lambda w, x: recurrent(w, x)[1][1].sum()), W, X),
    "branch in a loop": (branch_in_loop, X),
    "map": (lambda x: lax.map(lambda r: r.sum() * r, x), X),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), X),
    "vmap of while": (jax.vmap(collatz), np.arange(1, 9, dtype=np.int32)),
    "vmap of cond": (jax.vmap(lambda i, v: lax.cond(i > 2, jnp.sin, jnp.cos, v)),
                     np.arange(6), X),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), X),
    "custom_jvp": (jax.grad(lambda x: jax.nn.relu(x).sum()), X),
    "inner jit": (lambda x: jax.jit(jnp.sin)(x) + jax.jit(lambda y: jax.jit(jnp.sin)(y))(x), X),
    "cond with several results": (lambda x: lax.cond(x[0, 0] > 0, lambda v: (v, v.sum(), 1),
                                                     lambda v: (-v, v.max(), 2), x), X),
    "loop that updates in place": (lambda x: lax.fori_loop(
        0, 6, lambda i, v: v.at[i].set(v[i - 1] + v[i]), x), X),
    "while with a big carry": (lambda x: lax.while_loop(
        lambda s: s[0] < 20, lambda s: (s[0] + 1, s[1] + 1, s[0] * s[1][0]), (0, x, x[0])), X),
}


@pytest.mark.parametrize("name", CASES)
def test_control_flow(name):
  compare(*CASES[name])


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
def test_switch(index):
  compare(branches, np.int32(index), X)


def test_long_loop():
  # The CPU backend rounds a multiply-add once, minipod twice; over 20,000 steps the differences add up.
  compare(lambda x: lax.fori_loop(0, 20000, lambda i, v: v * 0.999 + 0.01, x), np.float32(1),
          tolerance=1e-4)
  compare(lambda x: lax.fori_loop(0, 20000, lambda i, v: v * 3 + i, x), np.uint32(1))


def test_big_program():
  def deep(x):
    for i in range(300):
      x = jnp.sin(x) + i * 1e-3
    return x
  compare(deep, X, tolerance=1e-4)


def test_loop_on_donated():
  def step(x, w):
    return lax.fori_loop(0, 7, lambda i, v: v * w + i, x)
  want = step(X, X[0, 0])
  device = jax.devices("minipod")[0]
  x = jax.device_put(X, device)
  np.testing.assert_allclose(jax.jit(step, donate_argnums=0)(x, X[0, 0]), want, rtol=1e-5)
  assert x.is_deleted()


@pytest.mark.parametrize("donated", [(), (0, 1)], ids=["kept", "donated"])
def test_branches_that_return_what_others_change(donated):
  """Results reuse the memory of values that a branch returns; other operations must have read these before."""
  def choose(i, a, b):
    a, b = lax.switch(i, [
        lambda a, b: (a, b), lambda a, b: (b, a), lambda a, b: (a @ b & 63, a),
        lambda a, b: (b.T + a, lax.switch(a[0, 0] & 1, [lambda: a, lambda: a[::-1]]))], a, b)
    return lax.cond(i % 2 == 0, lambda a, b: (a, b), lambda a, b: (b * 3 - a, a + 1), a, b)

  def both(a, b, i):
    looped = lax.fori_loop(0, 5, lambda j, state: choose((i + j) % 4, *state), (a, b))
    return *choose(i, a, b), looped

  f = jax.jit(both, donate_argnums=donated)
  a, b = np.random.default_rng(0).integers(0, 64, (2, 32, 32), np.int32)
  for i in range(4):
    found = f(*(jax.device_put(x, jax.devices("minipod")[0]) for x in (a, b)), i)
    jax.tree.map(np.testing.assert_array_equal, found, on_cpu(both, a, b, i))


def test_loops_on_all_devices():
  devices = jax.devices("minipod")
  mesh = jax.sharding.Mesh(np.array(devices), "d")
  spec = jax.sharding.PartitionSpec("d")

  # A sum over the devices is between the small loops; each device reaches it at another time.
  def part(x):
    own = lax.axis_index("d")
    x = lax.fori_loop(0, 50 * (own + 1), lambda i, v: v * 0.5 + lax.axis_index("d"), x)
    total = lax.psum(x, "d")
    return lax.while_loop(lambda v: v[0] < 100, lambda v: v + own + 1, x) + total

  x = np.arange(8, dtype=np.float32)
  found = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=spec, out_specs=spec))(x)
  ids = np.arange(8, dtype=np.float32)
  # v * 0.5 + id converges to 2 * id.
  steps = np.ceil((100 - 2 * ids) / (ids + 1))
  np.testing.assert_allclose(found, 2 * ids + steps * (ids + 1) + 2 * ids.sum(), rtol=1e-5)
