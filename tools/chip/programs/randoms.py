"""Random numbers."""

import jax
import jax.numpy as jnp
from jax import lax

from .program import BF, F32, U32, A, of_class

opened, new = of_class("random")

KEY = A((2,), U32)


def key(data, impl="threefry2x32"):
  return jax.random.wrap_key_data(data, impl=impl)


opened("rng_normal_4M", lambda k: jax.random.normal(key(k), (1024, 4096)), KEY)
opened("rng_bits_rbg", lambda k: jax.random.bits(key(k, "rbg"), (1024, 4096)), A((4,), U32))
opened("dropout_bf16", lambda k, x: jnp.where(jax.random.bernoulli(key(k), 0.9, x.shape), x / 0.9, 0).astype(BF),
       KEY, A((4096, 4096)))
new("rng_uniform_f32_64M_threefry", lambda k: jax.random.uniform(key(k), (8192, 8192)), KEY,
    shows="random bits larger than VMEM")
new("rng_normal_bf16_rbg_8192x4096", lambda k: jax.random.normal(key(k, "rbg"), (8192, 4096), BF), A((4,), U32),
    shows="the hardware's bits, inverse error function")
new("rng_normal_unsafe_rbg_dropout_residual", lambda k, x, r: r + jnp.where(jax.random.bernoulli(key(k, "unsafe_rbg"),
    0.9, x.shape), x / 0.9, 0), A((4,), U32),
    A((8, 2048, 2048)), A((8, 2048, 2048)), shows="kernel_cost_words: bits before a mask")
new("rng_split_32_layers_normal", lambda k: jax.vmap(lambda k: jax.random.normal(k,
    (512, 512)))(jax.random.split(key(k), 32)), KEY, shows="keys for layers, numbers by vmap")
new("rng_categorical_b256_v32000", lambda k, x: jax.random.categorical(key(k), x), KEY, A((256, 32000), F32),
    shows="Gumbel numbers, then the largest")
new("rng_langevin_scan_20", lambda k, x: lax.scan(lambda x, k: (0.99 * x + 0.1 * jax.random.normal(k, x.shape), None),
    x, jax.random.split(key(k), 20))[0],
    KEY, A((64, 64, 64, 4), F32), shows="random numbers in each round of a loop")
