"""The temporaries of programs that are too large to run here: they are only compiled."""

import jax
import jax.numpy as jnp

from cases import nets
from cases.case import integers, key, normal, temporaries

TENS_OF_MILLIONS = (5000, 5000)


def attention(q, k, v):
  scores = jnp.einsum("bhqd,bhkd->bhqk", q, k)
  return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def large_transformer():
  return nets.transformer_weights(layers=4, width=512, words=8192, places=256)


CASES = [
    temporaries("normal", lambda k: jax.random.normal(k, TENS_OF_MILLIONS), key),
    temporaries("uniform", lambda k: jax.random.uniform(k, TENS_OF_MILLIONS), key),
    temporaries("dropout", lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0),
                key, normal(2000, 2000)),
    temporaries("softmax", jax.nn.softmax, normal(2000, 2000)),
    temporaries("variance", lambda x: x.var(1), normal(2000, 2000)),
    temporaries("lgamma", jax.lax.lgamma, normal(1000, 1000)),
    temporaries("attention", attention, *[normal(2, 8, 256, 64)] * 3),
    temporaries("attention_gradient", jax.grad(lambda *x: attention(*x).sum(), (0, 1, 2)),
                *[normal(2, 8, 256, 64)] * 3),
    temporaries("sort", lambda x: jnp.sort(x, 1), normal(1000, 1000)),
    temporaries("scan", lambda x: jax.lax.scan(lambda c, v: (c + v, c * v), x[0], x)[1],
                normal(1000, 1000)),
    temporaries("transformer_step", nets.training(nets.transformer_loss),
                large_transformer, integers(8192, 8, 257)),
    temporaries("residual_step", nets.training(nets.residual_loss),
                nets.residual_weights, normal(32, 64, 64, 3), integers(10, 32)),
]
