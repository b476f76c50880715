"""Runs a decode step of a dense transformer on the described pod, to get its time.

    MINIPOD_TIME=model MINIPOD_VALUES=shapes MINIPOD_TOPOLOGY=... python decode_step.py CONFIG

CONFIG is JSON with the keys of train_step.py; `context` is the number of cached tokens per sequence that a step reads,
`weights` the type of the weights (bfloat16, int8 or float8_e4m3fn, the latter two with a scale for each column), `cache`
that of the cache.

Weights, heads and caches are sharded over all devices (tensor parallelism); each layer has an all_reduce after attention
and one after its feed forward layer.  Layers are not scanned.  Attention consists of ordinary operations over the whole
cache, which a step updates in place.

Prints a JSON object with the seconds of a step.
"""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import minipod

c = json.loads(sys.argv[1])
LAYERS, EMB, HEADS, MLP, BATCH, CONTEXT = (c[key] for key in ("layers", "emb", "heads", "mlp", "batch", "context"))
KV, WIDTH, VOCAB = c.get("kv_heads", HEADS), c.get("head_dim", 128), c["vocab"]
WEIGHTS, CACHE = jnp.dtype(c.get("weights", "bfloat16")), jnp.dtype(c.get("cache", "bfloat16"))
ACTIVATION = getattr(jax.nn, c.get("activation", "silu"))
MESH = Mesh(np.array(jax.devices()), ("tensor",), axis_types=(AxisType.Auto,))
REPEATED = max(1, len(jax.devices()) // KV)  # devices with the same head of keys and values


def norm(x):
  y = x.astype(jnp.float32)
  return (y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)


def product(x, w):
  if WEIGHTS == jnp.bfloat16:
    return x @ w
  if WEIGHTS == jnp.int8:
    return (x @ w[0].astype(jnp.bfloat16)) * w[1]
  scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 448
  return jnp.matmul((x / scale).astype(WEIGHTS), w[0], preferred_element_type=jnp.bfloat16) * scale * w[1]


def attend(x, w, cache, position):
  b, t, _ = x.shape
  q = product(x, w["q"]).reshape(b, t, KV * REPEATED, -1, WIDTH)
  q = norm(q) if c.get("qk_norm") else q
  k, v = (product(x, w[name]).reshape(b, t, KV * REPEATED, WIDTH) for name in "kv")
  half = WIDTH // 2
  angles = (position + jnp.arange(t))[:, None] * 1e4 ** -(jnp.arange(half) / half)
  sine, cosine = jnp.sin(angles).astype(x.dtype), jnp.cos(angles).astype(x.dtype)

  def rotate(y):
    extra = (1,) * (y.ndim - 3)
    s, o = (part.reshape(1, t, *extra, half) for part in (sine, cosine))
    first, second = jnp.split(y, 2, axis=-1)
    return jnp.concatenate((first * o - second * s, second * o + first * s), axis=-1)
  q, k = rotate(q), rotate(k)
  keys, values = (jax.lax.dynamic_update_slice(old, new.transpose(0, 2, 1, 3).astype(CACHE), (0, 0, position, 0))
                  for old, new in zip(cache, (k, v)))
  scores = jnp.einsum("btghd,bgsd->bghts", q, keys.astype(x.dtype)) * np.float32(WIDTH ** -0.5).astype(x.dtype)
  shares = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(x.dtype)
  out = jnp.einsum("bghts,bgsd->btghd", shares, values.astype(x.dtype))
  return product(out.reshape(b, t, -1), w["o"]), (keys, values)


def step(w, caches, tokens, position):
  x = w["embed"][tokens]
  kept = []
  for layer, cache in zip(w["layers"], caches):
    y, cache = attend(norm(x), layer, cache, position)
    kept.append(cache)
    x = x + y
    y = norm(x)
    hidden = ACTIVATION(product(y, layer["gate"])) * product(y, layer["up"])
    x = x + product(hidden, layer["down"])
  logits = norm(x[:, -1]) @ w["unembed"]
  return jnp.argmax(logits, axis=-1), kept


def main():
  jax.set_mesh(MESH)
  into, out = P(None, "tensor"), P("tensor")

  def make(shape, spec, dtype=jnp.bfloat16):
    return jax.jit(lambda: jnp.ones(shape, dtype), out_shardings=NamedSharding(MESH, spec))()

  def weight(shape, spec):
    if WEIGHTS == jnp.bfloat16:
      return make(shape, spec)
    return make(shape, spec, WEIGHTS), make(shape[1:], P(*spec[1:]))
  heads = KV * REPEATED
  shapes = {"q": ((EMB, HEADS * WIDTH), into), "k": ((EMB, heads * WIDTH), into), "v": ((EMB, heads * WIDTH), into),
            "o": ((HEADS * WIDTH, EMB), out), "gate": ((EMB, MLP), into), "up": ((EMB, MLP), into), "down": ((MLP, EMB), out)}
  w = {"layers": [{name: weight(*each) for name, each in shapes.items()} for _ in range(LAYERS)],
       "embed": make((VOCAB, EMB), into), "unembed": make((EMB, VOCAB), into)}
  cache = lambda: make((BATCH, heads, CONTEXT, WIDTH), P(None, "tensor"), CACHE)
  caches = [(cache(), cache()) for _ in range(LAYERS)]
  tokens = jnp.ones((BATCH, 1), jnp.int32)
  compiled = jax.jit(step, donate_argnums=1).lower(w, caches, tokens, jnp.int32(0)).compile()
  jax.block_until_ready((w, caches, tokens))
  position = jnp.int32(0) + 0
  begin = minipod.virtual_time()
  jax.block_until_ready(compiled(w, caches, tokens, position))
  print(json.dumps({"seconds": minipod.virtual_time() - begin, "devices": jax.device_count()}))


if __name__ == "__main__":
  main()
