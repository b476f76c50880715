"""Expressions whose values XLA's algebraic simplifier changes: under jit, minipod's results are those of JAX's CPU
backend.

As written, they are those of StableHLO.  tests/unit/passes/test_xla_values.c tests the rules by themselves.
"""

import jax
import jax.numpy as jnp
from jax import lax
import numpy as np
import pytest

import differential
import scenario

X = np.array([0, 1, -1, np.inf, -np.inf, np.nan, 1e30, 1e-30, 80, -80], np.float32)
HALF = np.clip(X, -60000, 60000).astype(np.float16)
FALSE = np.zeros(10, bool)
LIST = np.linspace(1e8, 2e8, 10).astype(np.float32)
AS_WRITTEN = {"xla_disable_hlo_passes": "dce,algsimp"}


def c(value):
  return np.full(10, value, np.float32)


# Name: function, arguments, whether the values as written differ.
IDIOMS = {
    "mask of booleans": (lambda x: (x == 7) * x, (X,), True),
    "mask on the right": (lambda x: x * (x == 7).astype(jnp.float32), (X,), True),
    "mask of a constant": (lambda m, x: m * x, (FALSE, np.float32(np.inf)), True),
    "mask of complex numbers": (lambda m, x: m * (x + 1j * x), (FALSE, X), True),
    "mask that is used twice": (lambda m, x: (m.astype(jnp.float32) * x, m.astype(jnp.float32) + 1),
                                (FALSE, X), True),
    "mask and a sum": (lambda m, x: jnp.sum(m * x), (FALSE, X), True),
    "one_hot": (lambda i, x: jax.nn.one_hot(i, 10) * x, (np.int32(0), X), True),
    "vdot with a mask": (lambda m, x: jnp.vdot(m.astype(jnp.float32), x), (FALSE, X), True),
    "einsum with a mask": (lambda m, x: jnp.einsum("ij,ij->i", m.astype(jnp.float32), x),
                           (FALSE[None].repeat(3, 0), X[None].repeat(3, 0)), True),
    "mask that is broadcast": (lambda m, x: m[:, None].astype(jnp.float32) * x, (FALSE[:3], X[None].repeat(3, 0)), False),
    "matrix of a mask": (lambda m, x: m.astype(jnp.float32) @ x, (FALSE[None].repeat(3, 0), X), False),
    "one minus a mask": (lambda m, x: (1 - m.astype(jnp.float32)) * x, (~FALSE, X), False),
    "log(exp(x))": (lambda x: jnp.log(jnp.exp(x)), (X,), True),
    "log(exp(x)) in f16": (lambda x: jnp.log(jnp.exp(x)), (HALF,), True),
    "log(x ** y)": (lambda x, y: jnp.log(x ** y), (X, c(3)), True),
    "log(x ** 0)": (lambda x, y: jnp.log(x ** y), (X, c(0)), False),
    "log(x ** 2.5)": (lambda x: jnp.log(lax.pow(x, c(2.5))), (X,), True),
    "log(x * x)": (lambda x: jnp.log(x ** 2), (X,), False),
    "exp(x) * exp(y)": (lambda x, y: jnp.exp(x) * jnp.exp(y), (c(100), c(-100)), True),
    "exp(x) / exp(y)": (lambda x, y: jnp.exp(x) / jnp.exp(y), (c(100), c(99)), True),
    "softmax by hand": (lambda x: jnp.exp(x) / jnp.exp(x).sum(), (c(100),), False),
    "exp(x) ** y": (lambda x, y: jnp.exp(x) ** y, (c(100), c(0.1)), True),
    "sqrt(x * x)": (lambda x: jnp.sqrt(x * x), (X,), True),
    "(x + c) - c": (lambda x: (x + 1e8) - 1e8, (X,), True),
    "(c + x) - c": (lambda x: (1e8 + x) - 1e8, (X,), True),
    "(c - x) - c": (lambda x: (1e8 - x) - 1e8, (X,), True),
    "c - (c - x)": (lambda x: 1e8 - (1e8 - x), (X,), False),
    "(x + list) - list": (lambda x: (x + LIST) - LIST, (X,), True),
    "(x * c) * c": (lambda x: (x * 1e30) * 1e-30, (X,), True),
    "(x * c) / c": (lambda x: (x * 1e30) / 1e30, (X,), True),
    "(x / c) * c": (lambda x: (x / 1e30) * 1e30, (X,), True),
    "(x / c) / c": (lambda x: (x / 1e-30) / 1e30, (X,), True),
    "(x * y) * c": (lambda x, y: (x * y) * 1e-30, (X, c(1e30)), False),
    "complex * 1": (lambda x, y: jnp.real(lax.complex(x, y) * 1), (X, X[::-1].copy()), True),
}


def same(found, wanted):
  found, wanted = jax.tree.leaves(found), jax.tree.leaves(wanted)
  return all(np.allclose(a, b, rtol=2e-5, atol=1e-37, equal_nan=True) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("name", IDIOMS)
def test_idioms(name):
  function, arguments, changes = IDIOMS[name]
  wanted = differential.on_cpu(function, *arguments)
  found = differential.on_pod(function, *arguments)
  assert same(found, wanted), f"{found} is not {wanted}"
  written = differential.on(jax.devices("minipod")[0], function, *arguments, options=AS_WRITTEN)
  assert same(written, found) != changes


def test_eager_operations_are_programs_of_their_own():
  with jax.default_device(jax.devices("minipod")[0]):
    assert jnp.log(jnp.exp(jnp.float32(1000))) == np.inf
    # A conversion and a multiplication in one program.
    np.testing.assert_array_equal((jnp.asarray(X) == 7) * jnp.asarray(X), np.zeros(10))


# jax-md's sum over wave vectors, one of which is zero, and its gradient.
def test_gradient_of_a_mask():
  m2, w = np.array([0, 1, 4], np.float32), np.array([2, 3, 4], np.float32)
  energy = lambda m2, w: jnp.sum((m2 != 0) * (1 / m2) * w)
  found = differential.on_pod(jax.value_and_grad(energy, 1), m2, w)
  assert same(found, differential.on_cpu(jax.value_and_grad(energy, 1), m2, w))


def test_in_loops_and_on_many_devices():
  def step(x, _):
    return jnp.log(jnp.exp(x)) + (x == 7) * (1 / (x - 7)), None
  f = lambda x: lax.scan(step, x, None, length=3)[0]
  x = np.arange(990, 1006, dtype=np.float32)
  np.testing.assert_allclose(differential.on_pod(f, x), x)
  mesh = jax.make_mesh((8,), ("d",), devices=jax.devices("minipod"))
  with jax.set_mesh(mesh):
    sharded = jax.device_put(x, jax.NamedSharding(mesh, jax.P("d")))
    np.testing.assert_allclose(jax.jit(f)(sharded), x)


def test_option_and_log():
  code = """
    print(jax.jit(lambda x: jnp.log(jnp.exp(x)))(jnp.float32(1000)))
  """
  _, printed, told = scenario.finish(scenario.start(code, MINIPOD_LOG_LEVEL="debug"))
  assert printed == "1000.0\n"
  assert "rewrote stablehlo.log as XLA does, by the rule log_exp [log at <string>:" in told
  assert scenario.run(code, MINIPOD_REWRITES="0") == "inf\n"
