"""Reductions, and programs with a reduction in the middle."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import gradient, integers, jitted, normal, uniform

SQUARE = (2048, 2048)
LARGE = (4096, 4096)  # larger than the caches of most machines
ROWS = (2048, 1024)


def layer_norm(x, scale):
  mean = x.mean(-1, keepdims=True)
  variance = jnp.square(x - mean).mean(-1, keepdims=True)
  return (x - mean) * lax.rsqrt(variance + 1e-5) * scale


def cross_entropy(logits, labels):
  chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1)
  return -chosen.mean()


CASES = [
    jitted("sum_rows", lambda x: x.sum(1), normal(*SQUARE)),
    jitted("sum_columns", lambda x: x.sum(0), normal(*SQUARE)),
    jitted("sum_all", lambda x: x.sum(), normal(*SQUARE)),
    jitted("sum_rows_4096", lambda x: x.sum(1), normal(*LARGE)),
    jitted("sum_columns_4096", lambda x: x.sum(0), normal(*LARGE)),
    jitted("sum_all_4096", lambda x: x.sum(), normal(*LARGE)),
    jitted("max_rows", lambda x: x.max(1), normal(*SQUARE)),
    jitted("argmax_rows", lambda x: x.argmax(1), normal(*SQUARE)),
    jitted("argmax_columns", lambda x: x.argmax(0), normal(*SQUARE)),
    jitted("variance_rows", lambda x: x.var(1), normal(*SQUARE)),
    jitted("any_rows", lambda x: (x > 4.5).any(1), normal(*SQUARE)),
    jitted("bf16_sum_rows", lambda x: x.sum(1), normal(*SQUARE, dtype=jnp.bfloat16)),
    jitted("s32_sum_rows", lambda x: x.sum(1), integers(100, *SQUARE)),
    jitted("softmax", jax.nn.softmax, normal(*ROWS)),
    jitted("softmax_gradient", gradient(lambda x, y: jax.nn.softmax(x) * y), normal(*ROWS),
           uniform(*ROWS)),
    jitted("logsumexp", lambda x: jax.nn.logsumexp(x, -1), normal(*ROWS)),
    jitted("layer_norm", layer_norm, normal(*ROWS), uniform(ROWS[1])),
    jitted("layer_norm_4096x1024", lambda x: layer_norm(x, 1.0), normal(4096, 1024)),
    jitted("layer_norm_gradient", gradient(lambda x, s, y: layer_norm(x, s) * y), normal(*ROWS),
           uniform(ROWS[1]), uniform(*ROWS)),
    jitted("cross_entropy_gradient", jax.grad(cross_entropy), normal(*ROWS),
           integers(ROWS[1], ROWS[0])),
    jitted("cumsum_1e6", jnp.cumsum, normal(1_000_000)),
    jitted("cumsum_rows", lambda x: jnp.cumsum(x, 1), normal(1000, 1000)),
    jitted("max_pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1),
                                                   (1, 2, 2, 1), "SAME"), normal(4, 56, 56, 64)),
]
