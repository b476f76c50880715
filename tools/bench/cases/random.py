"""Random numbers."""

import jax
import jax.numpy as jnp

from cases.case import jitted, key

MILLION = 1_000_000


def dropout(k):
  return jnp.where(jax.random.bernoulli(k, 0.9, (MILLION,)), 1 / 0.9, 0.0)


CASES = [
    jitted("bits_1e6", lambda k: jax.random.bits(k, (MILLION,)), key),
    jitted("uniform_1e6", lambda k: jax.random.uniform(k, (MILLION,)), key),
    jitted("normal_1e6", lambda k: jax.random.normal(k, (MILLION,)), key),
    jitted("integers_1e6", lambda k: jax.random.randint(k, (MILLION,), 0, 100), key),
    jitted("dropout_1e6", dropout, key),
    jitted("categorical", lambda k: jax.random.categorical(k, jnp.zeros((1000, 1000))), key),
    jitted("gamma_1e4", lambda k: jax.random.gamma(k, 2.0, (10_000,)), key),
    jitted("permutation_2e4", lambda k: jax.random.permutation(k, 20_000), key),
    jitted("split_1000", lambda k: jax.random.key_data(jax.random.split(k, 1000)), key),
]
