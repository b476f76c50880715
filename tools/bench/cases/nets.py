"""The nets whose training steps are measured, compiled, and checked for memory use.

Each net has weights from `…_weights` and a loss `…_loss`.  `training` makes a step of gradient descent on a loss, and
`adam_training` one of Adam.  NumPy makes the weights: JAX would first have to compile its random numbers, which takes
longer than the measurement.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Dense:
  """Makes weights that keep the size of the values that they multiply."""

  def __init__(self):
    self.generator = np.random.default_rng(19)

  def __call__(self, *shape):
    return jnp.asarray(self.generator.standard_normal(shape, np.float32) *
                       np.prod(shape[:-1])**np.float32(-0.5))


def likelihood(logits, labels):
  chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
  return -chosen.mean()


# ---- Training ----

def training(loss, rate=0.01):
  def step(weights, *batch):
    slopes = jax.grad(loss)(weights, *batch)
    return jax.tree.map(lambda w, g: w - rate * g, weights, slopes)
  return step


def adam_state(weights):
  zeros = jax.tree.map(jnp.zeros_like, weights)
  return {"weights": weights, "mean": zeros, "square": jax.tree.map(jnp.copy, zeros)}


def adam_training(loss, rate=0.001):
  def step(state, *batch):
    slopes = jax.grad(loss)(state["weights"], *batch)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], slopes)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], slopes)
    weights = jax.tree.map(lambda w, m, s: w - rate * m * lax.rsqrt(s + 1e-8), state["weights"],
                           mean, square)
    return {"weights": weights, "mean": mean, "square": square}
  return step


# ---- A perceptron ----

def perceptron_weights(widths=(784, 256, 256, 10)):
  dense = Dense()
  return [(dense(m, n), jnp.zeros(n)) for m, n in zip(widths, widths[1:])]


def perceptron_loss(weights, x, labels):
  *hidden, (last, bias) = weights
  for w, b in hidden:
    x = jax.nn.relu(x @ w + b)
  return likelihood(x @ last + bias, labels)


# ---- A transformer ----

def transformer_weights(layers=2, width=128, words=512, places=64):
  dense = Dense()

  def block():
    return {"qkv": dense(width, 3, width), "out": dense(width, width),
            "up": dense(width, 4 * width), "down": dense(4 * width, width),
            "scales": jnp.ones((2, width))}
  return {"embed": dense(words, width), "place": dense(places, width),
          "blocks": [block() for _ in range(layers)]}


def rms_norm(x, scale):
  return x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-6) * scale


def transformer_block(x, block, heads=4):
  batch, length, width = x.shape
  qkv = jnp.einsum("blw,wcv->cblv", rms_norm(x, block["scales"][0]), block["qkv"])
  q, k, v = qkv.reshape(3, batch, length, heads, width // heads)
  scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads)**-0.5
  past = jnp.tril(jnp.ones((length, length), bool))
  seen = jax.nn.softmax(jnp.where(past, scores, -jnp.inf))
  x += jnp.einsum("bhqk,bkhd->bqhd", seen, v).reshape(x.shape) @ block["out"]
  return x + jax.nn.gelu(rms_norm(x, block["scales"][1]) @ block["up"]) @ block["down"]


def transformer_loss(weights, words):
  x = weights["embed"][words[:, :-1]] + weights["place"][:words.shape[1] - 1]
  for block in weights["blocks"]:
    x = transformer_block(x, block)
  return likelihood(x @ weights["embed"].T, words[:, 1:])


# ---- A net of convolutions with shortcuts ----

def residual_weights(stages=3, width=16):
  dense = Dense()
  weights = {"first": dense(3, 3, 3, width), "stages": []}
  for _ in range(stages):
    weights["stages"].append({"one": dense(3, 3, width, 2 * width),
                              "two": dense(3, 3, 2 * width, 2 * width),
                              "short": dense(1, 1, width, 2 * width)})
    width *= 2
  return weights | {"last": dense(width, 10)}


def convolve(x, kernel, stride=1):
  return lax.conv_general_dilated(x, kernel, (stride, stride), "SAME",
                                  dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(x):
  mean = x.mean((0, 1, 2))
  return (x - mean) * lax.rsqrt(jnp.square(x - mean).mean((0, 1, 2)) + 1e-5)


def residual_loss(weights, images, labels):
  x = jax.nn.relu(batch_norm(convolve(images, weights["first"])))
  for stage in weights["stages"]:
    y = jax.nn.relu(batch_norm(convolve(x, stage["one"], 2)))
    x = jax.nn.relu(batch_norm(convolve(y, stage["two"])) + convolve(x, stage["short"], 2))
  return likelihood(x.mean((1, 2)) @ weights["last"], labels)
