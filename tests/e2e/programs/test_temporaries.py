"""The memory of programs in addition to arguments and results: none for attention and gathers, and at most a tenth more
than JAX's CPU backend (0.10.2) for a training step.
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from differential import compare

RANDOM = np.random.default_rng(5)


def normal(*shape):
  return RANDOM.standard_normal(shape).astype(np.float32)


def attention(q, k, v, past=None):
  scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
  if past is not None:
    scores = jnp.where(past, scores, -jnp.inf)
  return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


def loss(weights, x, labels):
  *hidden, (last, bias) = weights
  for w, b in hidden:
    x = jax.nn.relu(x @ w + b)
  chosen = jnp.take_along_axis(jax.nn.log_softmax(x @ last + bias), labels[:, None], -1)
  return -chosen.mean()


def step(weights, x, labels):
  return jax.tree.map(lambda w, g: w - 0.01 * g, weights, jax.grad(loss)(weights, x, labels))


def layers(*widths):
  return [(normal(m, n) / np.float32(np.sqrt(m)), np.zeros(n, np.float32))
          for m, n in zip(widths, widths[1:])]


# Function, arguments, largest number of bytes, options of jit.
CASES = {
    "attention": (attention, [normal(2, 8, 256, 64) for _ in range(3)], 0, {}),
    "masked_attention": (attention, [*(normal(2, 8, 256, 64) for _ in range(3)),
                                     np.tri(256, dtype=bool)], 0, {}),
    "gather_scalars": (lambda x, i: x[i], [normal(100_000),
                                           RANDOM.integers(-100_000, 100_000, 50_000)], 0, {}),
    "gather_pairs": (lambda x, i, j: x[i, j], [normal(300, 200), RANDOM.integers(-300, 300, 50_000),
                                               RANDOM.integers(-200, 200, 50_000)], 0, {}),
    "gather_rows": (lambda x, i: x[i], [normal(2000, 128), RANDOM.integers(0, 2000, 16_384)], 0, {}),
    "perceptron": (step, [layers(784, 256, 256, 10), normal(256, 784), RANDOM.integers(0, 10, 256)],
                   1.1 * 1_337_344, {"donate_argnums": 0}),
}


@pytest.mark.skipif(os.environ.get("MINIPOD_FUSE") == "0", reason="fusion saves the memory")
@pytest.mark.parametrize("name", CASES)
def test_temporaries(name):
  f, arguments, most, options = CASES[name]
  with jax.default_device(jax.devices("minipod")[0]):
    compiled = jax.jit(f, **options).lower(*arguments).compile()
  assert compiled.memory_analysis().temp_size_in_bytes <= most
  compare(f, *arguments)
