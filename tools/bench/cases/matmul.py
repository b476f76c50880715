"""Matmuls of every size and type, alone and with surrounding operations."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import integers, jitted, normal

# Shapes of two matrices, and of batches of them.
SHAPES = ((1, 1024, 1024), (8, 1024, 4096), (128, 768, 3072))
BATCHES = ((48, 128, 64, 128), (48, 128, 128, 64), (1024, 16, 16, 16))


def product(x, y):
  return x @ y


def square(n, dtype="float32", **options):
  name = {"float32": "f32", "bfloat16": "bf16", "float64": "f64"}[dtype]
  return jitted(f"{name}_{n}", product, normal(n, n, dtype=dtype), normal(n, n, dtype=dtype),
                **options)


def attention(q, k, v):
  scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1]**-0.5
  return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


CASES = [
    *(square(n) for n in (32, 128, 512, 1024)),
    *(square(n, "bfloat16") for n in (128, 512)),
    *(square(n, "float64", x64=True) for n in (128, 512)),
    *(jitted(f"f32_{m}x{k}x{n}", product, normal(m, k), normal(k, n)) for m, k, n in SHAPES),
    *(jitted(f"batch_{b}x{m}x{k}x{n}", product, normal(b, m, k), normal(b, k, n))
      for b, m, k, n in BATCHES),
    jitted("transposed_left", lambda x, y: x.T @ y, normal(512, 512), normal(512, 512)),
    jitted("transposed_right", lambda x, y: x @ y.T, normal(512, 512), normal(512, 512)),
    jitted("bias_gelu", lambda x, w, b: jax.nn.gelu(x @ w + b), normal(256, 768),
           normal(768, 1024), normal(1024)),
    jitted("s8_512", lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32),
           integers(100, 512, 512, dtype="int8"), integers(100, 512, 512, dtype="int8")),
    jitted("attention", attention, *[normal(2, 8, 256, 64)] * 3),
]
