"""Trains a small transformer, with parameters and batch sharded over a mesh of data x model devices.

Parameters are sharded over both axes (fully sharded data parallel times tensor parallel).  Heads, the hidden layer and
the vocabulary are sharded over "model", and rows of the batch over "data".  Run it with any number of processes.
"""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import common

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, LENGTH, ROWS, STEPS = 2, 32, 4, 64, 64, 16, 8, 20
RATE, BETA = 0.05, 0.9

SPECS = {
    "embed": P("model", "data"),
    "unembed": P("data", "model"),
    "scale": P(),
    "qkv": P(None, "data", None, "model", None),
    "out": P(None, "model", None, "data"),
    "up": P(None, "data", "model"),
    "down": P(None, "model", "data"),
    "scales": P(),
}


def initial():
  generator = np.random.default_rng(0)
  draw = lambda scale, *shape: (scale * generator.standard_normal(shape)).astype(np.float32)
  head = WIDTH // HEADS
  return {
      "embed": draw(0.5, VOCABULARY, WIDTH),
      "unembed": draw(WIDTH**-0.5, WIDTH, VOCABULARY),
      "scale": np.ones(WIDTH, np.float32),
      "qkv": draw(WIDTH**-0.5, LAYERS, WIDTH, 3, HEADS, head),
      "out": draw(WIDTH**-0.5, LAYERS, HEADS, head, WIDTH),
      "up": draw(WIDTH**-0.5, LAYERS, WIDTH, HIDDEN),
      "down": draw(HIDDEN**-0.5, LAYERS, HIDDEN, WIDTH),
      "scales": np.ones((LAYERS, 2, WIDTH), np.float32),
  }


def batch(step):
  """Rows that start at a random number and increase by 1 to 3."""
  generator = np.random.default_rng(2000 + step)
  start, by = generator.integers(0, VOCABULARY, (ROWS, 1)), generator.integers(1, 4, (ROWS, 1))
  return ((start + by * np.arange(LENGTH + 1)) % VOCABULARY).astype(np.int32)


def norm(x, scale):
  return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def layer(x, p, constrain):
  h = norm(x, p["scales"][0])
  q, k, v = jnp.einsum("bld,dthk->tbhlk", h, p["qkv"])
  scores = jnp.einsum("bhlk,bhmk->bhlm", q, k) / np.float32(np.sqrt(WIDTH // HEADS))
  mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
  weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
  mixed = constrain(jnp.einsum("bhlm,bhmk->bhlk", weights, v), "data", "model")
  x = constrain(x + jnp.einsum("bhlk,hkd->bld", mixed, p["out"]), "data")
  h = constrain(jax.nn.gelu(norm(x, p["scales"][1]) @ p["up"]), "data", None, "model")
  return constrain(x + h @ p["down"], "data")


def loss(p, tokens, constrain):
  x = constrain(p["embed"][tokens[:, :-1]], "data")
  layers = {name: p[name] for name in ("qkv", "out", "up", "down", "scales")}
  body = jax.checkpoint(lambda x, one: (layer(x, one, constrain), None))
  x, _ = jax.lax.scan(body, x, layers)
  logits = constrain(norm(x, p["scale"]) @ p["unembed"], "data", None, "model")
  picked = jnp.take_along_axis(logits, tokens[:, 1:, None], -1)[..., 0]
  return (jax.nn.logsumexp(logits, -1) - picked).mean()


def make_mesh(devices):
  model = 4 if len(devices) % 4 == 0 else 1
  return Mesh(np.array(devices).reshape(-1, model), ("data", "model"))


def make_step(mesh):
  """The jitted step, its parameters' and momenta's shardings, and the batch's."""
  shardings = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
  rows = NamedSharding(mesh, P("data"))

  def constrain(x, *axes):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*axes)))

  @functools.partial(jax.jit, donate_argnums=(0, 1),
                     out_shardings=(shardings, shardings, NamedSharding(mesh, P())))
  def step(p, momenta, tokens):
    value, gradients = jax.value_and_grad(loss)(p, tokens, constrain)
    momenta = jax.tree.map(lambda m, g: BETA * m + g, momenta, gradients)
    return jax.tree.map(lambda a, m: a - RATE * m, p, momenta), momenta, value

  return step, shardings, rows


def make_state(mesh):
  step, shardings, rows = make_step(mesh)
  parameters = jax.tree.map(common.place, initial(), shardings)
  momenta = jax.jit(lambda p: jax.tree.map(jnp.zeros_like, p), out_shardings=shardings)(parameters)
  return step, parameters, momenta, rows


def train(devices, steps=STEPS):
  """The losses, the trained parameters and the mesh."""
  mesh = make_mesh(devices)
  step, parameters, momenta, rows = make_state(mesh)
  losses = []
  for i in range(steps):
    parameters, momenta, value = step(parameters, momenta, common.place(batch(i), rows))
    losses.append(value.addressable_shards[0].data)
  return [float(v) for v in losses], parameters, mesh


def compiled(devices):
  """The partitioned program of a step."""
  mesh = make_mesh(devices)
  step, parameters, momenta, rows = make_state(mesh)
  return step.lower(parameters, momenta, common.place(batch(0), rows)).compile()


if __name__ == "__main__":
  common.report(*train(jax.devices(), int(sys.argv[1]) if len(sys.argv) > 1 else STEPS))
