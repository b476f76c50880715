"""Loops whose bodies do little work.  Times are per iteration."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import jitted, normal, scalar, uniform

TURNS = 5000


def count(x):
  return lax.while_loop(lambda s: s[0] < TURNS, lambda s: (s[0] + 1, s[1] * 0.99 + 1), (0, x))[1]


def scan_carry(x):
  return lax.scan(lambda c, _: (c * 0.99 + 1, None), x, length=TURNS)[0]


def scan_stacked(x):
  return lax.scan(lambda c, _: (c * 0.99 + 1, c), x, length=TURNS)[1]


def recurrent(h, w):
  return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), h, length=500)[0]


def gru(w, inputs):
  def turn(h, x):
    reset, update = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h], 1) @ w[:, :128]), 2, 1)
    new = jnp.tanh(jnp.concatenate([x, h * reset], 1) @ w[:, 128:])
    h = update * h + (1 - update) * new
    return h, h
  return lax.scan(turn, jnp.zeros((8, 64)), inputs)[1]


def newton(x):
  """Square roots; each lane iterates until it has converged."""
  return lax.while_loop(lambda r: jnp.abs(r * r - x) > 1e-3 * x, lambda r: (r + x / r) / 2, x)


CASES = [
    jitted("while_scalar", count, scalar(1), per=TURNS),
    jitted("scan_8", scan_carry, uniform(8), per=TURNS),
    jitted("scan_1024", scan_carry, uniform(1024), per=TURNS),
    jitted("scan_stacked_8", scan_stacked, uniform(8), per=TURNS),
    jitted("recurrent_32", recurrent, normal(8, 32), normal(32, 32, scale=0.1), per=500),
    jitted("gru_64", gru, normal(128, 192, scale=0.1), normal(100, 8, 64), per=100),
    jitted("cond_scalar", lambda x: lax.cond(x > 0, lambda v: v + 1, lambda v: v - 1, x),
           scalar(1)),
    jitted("vmap_while_1000", jax.vmap(newton), uniform(1000, low=1, high=1000)),
]
