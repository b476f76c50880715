"""The cost of loops over elements: one pass over the data, or a few."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import gradient, integers, jitted, power_of_ten, stepped, uniform

MILLION = 1_000_000

# One function of one operand each, over a million floats.
FUNCTIONS = {
    "exp": jnp.exp,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sin": jnp.sin,
    "tanh": jnp.tanh,
    "erf": lax.erf,
    "lgamma": lax.lgamma,
    "power": lambda x: x**1.7,
    "arctan2": lambda x: jnp.arctan2(x, 0.3),
    "sigmoid": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "gelu_gradient": gradient(jax.nn.gelu),
}

# XLA counts each as one transcendental, but it takes several times as long as others.
UNCOUNTED = ("power", "arctan2", "sin")


def chain(x, y):
  for _ in range(5):
    x = jnp.minimum(x * y + 0.25, 4.0)
  return x


def adam(state, gradient):
  """One step of an optimiser on one array of weights."""
  weights, mean, square = state
  mean = 0.9 * mean + 0.1 * gradient
  square = 0.99 * square + 0.01 * gradient**2
  return weights - 0.001 * mean / (jnp.sqrt(square) + 1e-8), mean, square


def adam_state():
  return tuple(uniform(MILLION)() for _ in range(3))


CASES = [
    *(jitted(f"add_{power_of_ten(n)}", lambda x, y: x + y, uniform(n), uniform(n))
      for n in (10_000, MILLION, 10 * MILLION)),
    jitted("negate_1e6", lambda x: -x, uniform(MILLION)),
    jitted("linear_1e6", lambda x: x * 3 + 1, uniform(MILLION)),
    stepped("linear_donated_1e6", lambda x: x * 0.999 + 0.001, uniform(MILLION)),
    stepped("linear_donated_1e7", lambda x: x * 0.999 + 0.001, uniform(10 * MILLION)),
    stepped("adam_1e6", adam, adam_state, uniform(MILLION)),
    jitted("chain_1e6", chain, uniform(MILLION), uniform(MILLION)),
    jitted("select_1e6", lambda x, y: jnp.where(x < 0.5, x * 2, y), uniform(MILLION),
           uniform(MILLION)),
    jitted("divide_1e6", lambda x, y: x / y, uniform(MILLION), uniform(MILLION)),
    *(jitted(f"{name}_1e6", function, uniform(MILLION), has_share=name not in UNCOUNTED)
      for name, function in FUNCTIONS.items()),
    jitted("bf16_linear_1e6", lambda x: x * 3 + 1, uniform(MILLION, dtype=jnp.bfloat16)),
    jitted("bf16_gelu_1e6", jax.nn.gelu, uniform(MILLION, dtype=jnp.bfloat16)),
    jitted("f32_to_bf16_1e6", lambda x: x.astype(jnp.bfloat16), uniform(MILLION)),
    jitted("f32_to_bf16_1e7", lambda x: x.astype(jnp.bfloat16), uniform(10 * MILLION)),
    jitted("s32_add_1e6", lambda x: x + 1, integers(1000, MILLION)),
    jitted("s32_divide_1e6", lambda x: x // 7, integers(1000, MILLION)),
    jitted("f64_exp_1e6", jnp.exp, uniform(MILLION, dtype="float64"), x64=True),
    jitted("complex_multiply_1e6", lambda x: x * x, uniform(MILLION, dtype=jnp.complex64)),
]
