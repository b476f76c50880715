"""The cost of compiling without tracing, and of the first calls of eager operations."""

import jax
import jax.numpy as jnp
from jax import lax

from cases import nets
from cases.case import Case, Work, compiling, integers, key, normal, scalar, uniform


def few_operations(x):
  return jnp.sin(x) * 2 + 1


def loop(x):
  return lax.fori_loop(0, 10, lambda _, v: v * 2 + 1, x)


def first_calls():
  """Twelve small operations that have not been compiled yet."""
  x = jnp.ones((16, 16))

  def call():
    jax.clear_caches()
    jax.block_until_ready([
        x + 1, -x, jnp.tanh(x), x @ x, x.sum(1), x.max(), x.argmax(0), jnp.where(x > 0, x, 0),
        jnp.concatenate([x, x]), jnp.sort(x), jnp.cumsum(x), x.at[2].set(0)])
  return Work(call)


CASES = [
    compiling("few_operations", few_operations, scalar(1)),
    compiling("loop", loop, scalar(1)),
    compiling("sort", lambda x: jnp.sort(x), uniform(1000)),
    compiling("normal", lambda k: jax.random.normal(k, (1000,)), key),
    compiling("perceptron_step", nets.training(nets.perceptron_loss),
              nets.perceptron_weights, normal(64, 784), integers(10, 64)),
    compiling("transformer_step", nets.training(nets.transformer_loss),
              nets.transformer_weights, integers(512, 4, 65)),
    compiling("residual_step", nets.training(nets.residual_loss),
              nets.residual_weights, normal(4, 32, 32, 3), integers(10, 4)),
    Case("first_calls", first_calls),
]
