"""The model of train_step.py and decode_step.py, from the JSON on the command line; train_step.py explains its keys."""

import json
import sys
import types

import jax
import jax.ad_checkpoint
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

DEFAULTS = {
    "kv_heads": None, "head_dim": 128, "gated": True, "vocab": 32000, "parallel": False, "data": 1, "tensor": 1,
    "expert": 1, "remat": "full", "offload": False, "flash": True, "library": "splash", "block": 512, "backward": 7,
    "sequence": 2048, "weights": "float32", "mu": None, "kernels": "compiler", "dropout": 0.0, "replicated": False,
    "rope": None, "normed": "", "activation": None, "tied": False, "one_hot": False, "experts": 0, "chosen": 2,
    "capacity": 1.25, "shared": 0, "scan": True, "logits": "bfloat16", "window": 0, "sides": {}, "post": False, "tiles": 1,
    "bias": False, "causal": True, "segments": True, "optimizer": "adam", "quantized": None, "parts": False, "same_kv": False, "latent": None, "blocks": None}

c = types.SimpleNamespace(**DEFAULTS | json.loads(sys.argv[1]))
AXES = {"data": c.data, "fsdp": -1, "expert": c.expert, "tensor": c.tensor}
if c.expert == 1:
  del AXES["expert"]
BATCH_AXES = tuple(AXES)[:-1]
BATCH = P(BATCH_AXES)
SHARDS = BATCH_AXES[1:] if c.expert > 1 else "fsdp"  # of weights that are no expert's
# Between layers all devices have different activations, or all devices of a tensor axis have the same.
BETWEEN = P(BATCH_AXES, None, None if c.replicated else "tensor")
spread = jax.lax.with_sharding_constraint
named = jax.ad_checkpoint.checkpoint_name


def kind(changes):
  """The settings of a kind of layers, which differ from those of the model."""
  l = types.SimpleNamespace(**vars(c) | changes)
  l.kv = l.kv_heads or l.heads
  l.value_dim = l.latent["value"] if l.latent else l.head_dim
  return l


def blocks():
  """A list of (repetitions, the kinds of the layers of a repetition), in the order of the model."""
  if c.window and not c.blocks:  # Gemma 3
    return [(c.layers // 6, [kind({})] * 5 + [kind({"window": 0})])]
  return [(count, [kind(changes) for changes in kinds]) for count, kinds in c.blocks or [(c.layers, [{}])]]


BLOCKS = blocks()


@jax.custom_vjp
def drop(x):
  return drop_forward(x)[0]


def drop_forward(x):
  """Sets elements to zero.  A hash of their positions chooses them, because a library's random bits take almost no
  time.
  """
  places = sum(jax.lax.broadcasted_iota(jnp.uint32, x.shape, i) * np.uint32(2654435761 + 2 * i) for i in range(x.ndim))
  kept = places > np.uint32(c.dropout * (1 << 32))
  return alone((jnp.where(kept, x * SCALE, 0), kept))


SCALE = np.float32(1 / (1 - c.dropout)).astype(jnp.bfloat16)
drop.defvjp(drop_forward, lambda kept, g: (alone(jnp.where(kept, g * SCALE, 0)),))


def alone(x):
  """The end of a kernel, if kernels are a library's."""
  return jax.lax.optimization_barrier(x) if c.kernels == "library" else x


def quantize(x, dtype):
  limit = float(jnp.finfo(dtype).max)
  return jnp.clip(x * jnp.asarray(1.0, x.dtype), -limit, limit).astype(dtype)


@jax.custom_vjp
def quantized_product(x, w):
  return quantized_forward(x, w)[0]


def quantized_forward(x, w):
  x, w = quantize(x, jnp.float8_e4m3fn), quantize(w, jnp.float8_e4m3fn)
  return jnp.matmul(x, w, preferred_element_type=jnp.bfloat16), (x, w)


def quantized_backward(saved, g):
  x, w = saved
  g = quantize(g, jnp.float8_e5m2)
  dims = tuple(range(x.ndim - 1))
  dx = jax.lax.dot_general(g, w, (((g.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.bfloat16)
  dw = jax.lax.dot_general(x, g, ((dims, dims), ((), ())), preferred_element_type=jnp.bfloat16)
  return dx, dw


quantized_product.defvjp(quantized_forward, quantized_backward)


def product(x, w):
  """A matmul with weights."""
  return quantized_product(x, w) if c.quantized == "float8" else x @ w
