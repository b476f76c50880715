"""Attention of train_step.py: libraries' kernels, as custom_calls that the model of time knows, and ordinary operations."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import xla_metadata
from jax.sharding import PartitionSpec as P

from settings import BATCH_AXES, alone, c, drop, named


def kernel(shapes, arrays, target, config, **metadata):
  """A call of a kernel that does not exist: without values it is never called."""
  results = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
  with xla_metadata.set_xla_metadata(**metadata):
    call = jax.ffi.ffi_call(target, results, custom_call_api_version=1, legacy_backend_config=json.dumps(config))
    return tuple(call(*arrays))


def blocks_of(name, count, shapes, q, k, *arrays, sides=None, window=0, width=None):
  """One of JAX's kernels for TPUs, with `count` matmuls for each block that is not completely masked."""
  b, h, s, d = q.shape
  d = width or d
  of_queries, of_keys = (min(side, s) for side in c.sides.get(name.split("_")[-1], sides or (c.block, c.block)))
  first = lambda end: max(end - of_queries - window + 1, 0) // of_keys if window else 0
  last = lambda end: -(-(end if c.causal else s) // of_keys)
  live = sum(last(end) - first(end) for end in range(of_queries, s + 1, of_queries))
  flops = int(count * 2 * b * h * live * of_queries * of_keys * d)
  phase = name.split("_")[-1].replace("fwd", "")
  said = {f"block_{side}{phase and '_' + phase}": block for side, block in (("q", of_queries), ("kv", of_keys))}
  before, behind = masks_of(q, k, (-(-s // of_queries), -(-s // of_keys)))
  return kernel(shapes, (*before, q, k, *arrays, *behind), "tpu_custom_call",
                {"custom_call_config": {"cost_estimate": {"flops": flops}}}, kernel_name=name + "_segmented" * (len(behind) > 0),
                kernel_metadata=json.dumps({"xprof_metadata": json.dumps(said)}))


def masks_of(q, k, blocks):
  """A splash kernel's table of blocks, if it has a mask, and its segment ids, along lanes and along sublanes."""
  if c.library != "splash":
    return [], []
  table = [jnp.zeros((1, *blocks), jnp.int8)] * c.causal
  ids = [jnp.zeros((q.shape[0], q.shape[2], 128), jnp.int32), jnp.zeros((k.shape[0], 8, k.shape[2]), jnp.int32)]
  return table, ids * c.segments


def splash_forward(q, k, v, window=0):
  b, h, s, d = q.shape
  shapes = [((b, h, s, v.shape[-1]), q.dtype), ((b, h, s, 128), jnp.float32)]
  out, lse = blocks_of("splash_mha_fwd", 2, shapes, q, k, v, window=window, width=(d + v.shape[-1]) / 2)
  return out, lse[..., 0]


def splash_backward(q, k, v, out, lse, g, window=0):
  arrays = q, k, v, lse, g, jnp.sum(out.astype(jnp.float32) * g.astype(jnp.float32), axis=-1)
  gradients = [(k.shape, k.dtype), (v.shape, v.dtype)]
  if c.backward == 5:  # each block of keys makes its part of the gradients of all queries
    parts = (c.sequence // min(c.block, c.sequence), *q.shape)
    dq, dk, dv = blocks_of("splash_mha_dkv", 5, [(parts, q.dtype), *gradients], *arrays, window=window,
                           width=(3 * q.shape[-1] + 2 * v.shape[-1]) / 5)
    return dq.sum(axis=0), dk, dv
  return (*blocks_of("splash_mha_dq", 3, [(q.shape, q.dtype)], *arrays, window=window),
          *blocks_of("splash_mha_dkv", 4, gradients, *arrays, window=window))


def pallas_forward(q, k, v):
  lanes = (*q.shape[:-1], 128), jnp.float32
  out, sums, most = blocks_of("flash_attention_fwd", 2, [(q.shape, q.dtype), lanes, lanes], q, k, v)
  return out, sums[..., 0], most[..., 0]


def pallas_backward(q, k, v, out, sums, most, g):
  own = jnp.sum(out.astype(jnp.float32) * g.astype(jnp.float32), axis=-1)
  lanes = lambda x, count: jnp.broadcast_to(x[..., None], (*x.shape, count))
  both = lanes(sums, 128), lanes(most, 128)
  gradients = [(k.shape, k.dtype), (v.shape, v.dtype)]
  return (*blocks_of("flash_attention_dq", 3, [(q.shape, q.dtype)], q, k, v, g, *both, lanes(own, c.block),
                     sides=(1024, 256)),
          *blocks_of("flash_attention_dkv", 4, gradients, q, k, v, g, *both, lanes(own, 128)))


def cudnn(name, shapes, q, k, *arrays):
  b, s, h, d = q.shape
  config = {"intermediate_tensor_shape": {"dimensions": [str(n) for n in (b, h, s, s)]}, "mask_type": "CAUSAL"}
  return kernel(shapes, (q, k, *arrays), f"__cudnn${name}", {"cudnn_fmha_backend_config": config})


def cudnn_forward(q, k, v):
  b, s, h, d = q.shape
  return cudnn("fmhaSoftmax", [(q.shape, q.dtype), ((b, h, s), jnp.float32)], q, k, v)


def cudnn_backward(q, k, v, out, lse, g):
  return cudnn("fmhaSoftmaxBackward", [(x.shape, x.dtype) for x in (q, k, v)], q, k, v, lse, g, out)


def on_each_device(function, results):
  """Runs on each device's part of arrays of heads, and of numbers per token and head (`results` says which)."""
  arrays = P(BATCH_AXES, None, "tensor") if c.library == "cudnn" else P(BATCH_AXES, "tensor")
  specs = {"heads": arrays, "tokens": P(BATCH_AXES, "tensor")}
  def call(*operands):
    inside = tuple(specs["tokens" if x.ndim == 3 else "heads"] for x in operands)
    return jax.shard_map(function, in_specs=inside, out_specs=tuple(specs[r] for r in results),
                         check_vma=False)(*operands)
  return call


FORWARD, BACKWARD = {"splash": (splash_forward, splash_backward), "tokamax": (splash_forward, splash_backward),
                     "pallas": (pallas_forward, pallas_backward), "cudnn": (cudnn_forward, cudnn_backward)}[c.library]
KEPT = ["heads", "tokens", *["tokens"] * (c.library == "pallas")]  # what a kernel keeps for the backward pass


def seeing(function, window):
  return functools.partial(function, window=window) if window else function


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def flash(q, k, v, window):
  return flash_forward(q, k, v, window)[0]


def flash_forward(q, k, v, window):
  out, *sums = (named(x, "context") for x in on_each_device(seeing(FORWARD, window), KEPT)(q, k, v))
  return out, (q, k, v, out, *sums)


def flash_backward(window, saved, g):
  return on_each_device(seeing(BACKWARD, window), ["heads"] * 3)(*saved, g)


flash.defvjp(flash_forward, flash_backward)


def plain(q, k, v, bias=None):
  scores = jnp.einsum("bhsd,bhtd->bhst", q, k)
  scores = scores * np.float32(q.shape[-1] ** -0.5).astype(jnp.bfloat16) if bias is None else scores + bias
  mask = jnp.tril(jnp.ones((c.sequence, c.sequence), bool))
  shares = alone(jax.nn.softmax(jnp.where(mask, alone(scores), -1e9), axis=-1))
  return jnp.einsum("bhst,bhtd->bhsd", drop(shares) if c.dropout else shares, v)


def position_bias(table):
  """Biases of scores as in T5, from a table [heads, 32]: a matmul with the one-hot bucket of each distance."""
  distance = np.maximum(np.arange(c.sequence)[:, None] - np.arange(c.sequence)[None, :], 0)
  far = 16 + (np.log(np.maximum(distance, 1) / 16) / np.log(128 / 16) * 16).astype(np.int32)
  bucket = np.where(distance < 16, distance, np.minimum(far, 31)).astype(np.int32)
  one_hot = (bucket[None] == jax.lax.broadcasted_iota(jnp.int32, (32, 1, 1), 0)).astype(jnp.bfloat16)
  return jax.lax.dot_general(table, one_hot, (((1,), (0,)), ((), ())))[None]
