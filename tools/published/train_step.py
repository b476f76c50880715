"""Runs one training step of a decoder-only transformer on the described pod, to get its time.

    MINIPOD_TIME=model MINIPOD_VALUES=shapes MINIPOD_TOPOLOGY=... python train_step.py CONFIG

CONFIG is JSON, such as '{"layers": 32, "emb": 4096, "mlp": 11008, "heads": 32, "batch": 16}'.

Prints a JSON object: seconds, the shares of work and collectives in them, and the seconds of overlapped collectives.

The five keys of this example are required: the number of layers, the width of activations, the number of hidden units,
the number of query heads, and the sequences per step.  The other keys, with their defaults, are `kv_heads` (as many as
`heads`), `head_dim` (128), `gated` (true), `vocab` (32000), `parallel` (false: attention and feed forward layers in
turn), `data` (1) and `tensor` (1), which are the sizes of these axes, `sequence` (2048), `weights` (float32), and the
keys that are explained below.

Weights are sharded over `fsdp` and `tensor`, tokens over `data` and `fsdp`, heads and hidden units over `tensor`.  The
layers are a scan, unless `scan` is false.  Weights and Adam's moments are f32, or of the type `weights`; `mu` sets the
type of the first moment, which may be bf16.  Computing is in bf16.

`flash`: attention is a library's kernel, as a custom_call that the model of time knows: JAX's splash kernels (`library`:
"splash") with blocks of `block` tokens and two kernels in the backward pass, of three and four products, or one of five
(`backward`: 7, 5); JAX's older flash attention ("pallas"), which keeps sums and maxima in 128 lanes; or cuDNN's ("cudnn").

`rope`: "halves" rotates the first half of a head against the second one, "pairs" each element against the next one, and so
does "shifted", by heads moved one place to both sides.  `normed`: which heads have a norm of their own.  `activation` is
that of hidden units.  `tied`: one embedding for tokens and logits, these in f32.  `one_hot`: tokens are looked up by a
product.  `logits`: the type of the product that makes them, where nothing is tied.

`kernels`: "library" has kernels as PyTorch with Megatron's own has them: one for the softmax of scores, for bias and GELU,
for a residual; none of them in a product's or a norm's. `dropout` is that of attention and of residuals.  `replicated`: all
devices of the tensor axis have the same activations between layers.

`experts`: so many feed forward layers, of which each token has `chosen`, as in MaxText with dropped tokens: each has
1.25 times its share of a sequence's places, and tokens come to their places and back by products.

`window`: five layers of six see so many tokens back, the sixth all of them, and a scan takes six at a time (Gemma 3).
`sides`: the blocks of queries and keys of each of splash's kernels, where they are not `block`.  `post`: norms behind attention
and feed forward layers, too.  `tiles`: logits are made for a part of the tokens at a time, and once more in the backward pass.

`remat`: "full" keeps the input of each layer, "minimal" what products with weights make, and a list the values of these
names: input, q, k, v, context, out, gate, up, down.  With `offload` they wait for the backward pass in the host's memory.
"""

import functools
import json
import sys

import jax
import jax.ad_checkpoint
import jax.numpy as jnp
import numpy as np
from jax.experimental import xla_metadata
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import minipod

c = type("Model", (), {"kv_heads": None, "head_dim": 128, "gated": True, "vocab": 32000, "parallel": False, "data": 1,
                       "tensor": 1, "remat": "full", "offload": False, "flash": True, "library": "splash",
                       "block": 512, "backward": 7, "sequence": 2048, "weights": "float32", "mu": None,
                       "kernels": "compiler", "dropout": 0.0, "replicated": False, "rope": None, "normed": "",
                       "activation": None, "tied": False, "one_hot": False, "experts": 0, "chosen": 2, "scan": True,
                       "logits": "bfloat16", "window": 0, "sides": {}, "post": False, "tiles": 1} | json.loads(sys.argv[1]))
KV = c.kv_heads or c.heads
BATCH = P(("data", "fsdp"))
# Between layers all devices have different activations, or all devices of a tensor axis have the same.
BETWEEN = P(("data", "fsdp"), None, None if c.replicated else "tensor")
spread = jax.lax.with_sharding_constraint
named = jax.ad_checkpoint.checkpoint_name
alone = jax.lax.optimization_barrier if c.kernels == "library" else lambda x: x  # the end of a kernel


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


# ---- attention ----

def kernel(shapes, arrays, target, config, **metadata):
  """A call of a kernel that does not exist: without values it is never called."""
  results = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
  with xla_metadata.set_xla_metadata(**metadata):
    call = jax.ffi.ffi_call(target, results, custom_call_api_version=1, legacy_backend_config=json.dumps(config))
    return tuple(call(*arrays))


def blocks_of(name, count, shapes, q, k, *arrays, sides=None, window=0):
  """One of JAX's kernels for TPUs, with `count` matmuls for each block that is not completely masked."""
  b, h, s, d = q.shape
  of_queries, of_keys = (min(side, s) for side in sides or c.sides.get(name.split("_")[-1], (c.block, c.block)))
  first = lambda end: max(end - of_queries - window + 1, 0) // of_keys if window else 0
  live = sum(-(-end // of_keys) - first(end) for end in range(of_queries, s + 1, of_queries))
  flops = count * 2 * b * h * live * of_queries * of_keys * d
  phase = name.split("_")[-1].replace("fwd", "")
  said = {f"block_{side}{phase and '_' + phase}": block for side, block in (("q", of_queries), ("kv", of_keys))}
  return kernel(shapes, (q, k, *arrays), "tpu_custom_call", {"custom_call_config": {"cost_estimate": {"flops": flops}}},
                kernel_name=name, kernel_metadata=json.dumps({"xprof_metadata": json.dumps(said)}))


def splash_forward(q, k, v, window=0):
  b, h, s, d = q.shape
  out, lse = blocks_of("splash_mha_fwd", 2, [(q.shape, q.dtype), ((b, h, s, 128), jnp.float32)], q, k, v, window=window)
  return out, lse[..., 0]


def splash_backward(q, k, v, out, lse, g, window=0):
  arrays = q, k, v, lse, g, jnp.sum(out.astype(jnp.float32) * g.astype(jnp.float32), axis=-1)
  gradients = [(k.shape, k.dtype), (v.shape, v.dtype)]
  if c.backward == 5:  # each block of keys makes its part of the gradients of all queries
    parts = (c.sequence // min(c.block, c.sequence), *q.shape)
    dq, dk, dv = blocks_of("splash_mha_dkv", 5, [(parts, q.dtype), *gradients], *arrays)
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
  arrays = P(("data", "fsdp"), None, "tensor") if c.library == "cudnn" else P(("data", "fsdp"), "tensor")
  specs = {"heads": arrays, "tokens": P(("data", "fsdp"), "tensor")}
  def call(*operands):
    inside = tuple(specs["tokens" if x.ndim == 3 else "heads"] for x in operands)
    return jax.shard_map(function, in_specs=inside, out_specs=tuple(specs[r] for r in results),
                         check_vma=False)(*operands)
  return call


FORWARD, BACKWARD = {"splash": (splash_forward, splash_backward), "pallas": (pallas_forward, pallas_backward),
                     "cudnn": (cudnn_forward, cudnn_backward)}[c.library]
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


def plain(q, k, v):
  scores = jnp.einsum("bhsd,bhtd->bhst", q, k) * np.float32(c.head_dim ** -0.5).astype(jnp.bfloat16)
  mask = jnp.tril(jnp.ones((c.sequence, c.sequence), bool))
  shares = alone(jax.nn.softmax(jnp.where(mask, alone(scores), -1e9), axis=-1))
  return jnp.einsum("bhst,bhtd->bhsd", drop(shares) if c.dropout else shares, v)


def rotate(x, positions):
  """Rotary embeddings of heads [batch, tokens, heads, width], as in MaxText, with angles for each token of the batch.

  They are by pairs until January 2024, by halves since then, and shifted for Llama 3.1.
  """
  half = c.head_dim // 2
  rates = 1e4 ** -(2 * jnp.arange(half) / c.head_dim)
  angles = positions[:, :, None, None] * (jnp.repeat(rates, 2) if c.rope == "shifted" else rates)
  sine, cosine = jnp.sin(angles), jnp.cos(angles)
  if c.rope == "halves":
    sine, cosine = sine.astype(x.dtype), cosine.astype(x.dtype)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate((a * cosine - b * sine, b * cosine + a * sine), axis=-1)
  if c.rope == "shifted":
    is_second = jnp.broadcast_to(jnp.arange(c.head_dim) % 2 == 1, x.shape)
    other = jnp.where(is_second, jnp.roll(x, 1, axis=-1), jnp.roll(x, -1, axis=-1))
    return (x * cosine + other * sine * jnp.where(is_second, 1, -1)).astype(x.dtype)
  pairs = x.astype(jnp.float32).reshape(*x.shape[:-1], half, 2)
  a, b = pairs[..., 0], pairs[..., 1]
  turned = (a * cosine - b * sine).astype(x.dtype), (b * cosine + a * sine).astype(x.dtype)
  return jnp.stack(turned, axis=-1).reshape(x.shape)


def attend(x, w, positions, window=0):
  b, s, _ = x.shape
  is_plain = not c.flash or c.library != "cudnn"  # cuDNN takes [batch, tokens, heads, width]
  turn = lambda y: y.transpose(0, 2, 1, 3) if is_plain else y
  split = lambda n: P(("data", "fsdp"), *([] if is_plain else [None]), "tensor" if n % c.tensor == 0 else None)

  def heads(name):
    count = c.heads if name == "q" else KV
    y = (x @ w[name]).reshape(b, s, count, c.head_dim)
    if c.rope and name != "v":
      y = rotate(y, positions)
    if name in c.normed:
      y = norm(y, w[f"norm_{name}"])
    return named(spread(turn(y), split(count)), name)

  q, k, v = (heads(name) for name in "qkv")
  if KV != c.heads and (not c.flash or KV % c.tensor != 0):
    k, v = (spread(jnp.repeat(y, c.heads // KV, axis=1 if is_plain else 2), split(c.heads)) for y in (k, v))
  out = flash(q, k, v, window) if c.flash else named(plain(q, k, v), "context")
  return turn(out).reshape(b, s, c.heads * c.head_dim) @ w["o"]


# ---- the model ----

def norm(x, scale):
  y = x.astype(jnp.float32)
  return alone((y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale)


def feed(x, w):
  wide = lambda name: named(alone(spread(x @ w[name], P(("data", "fsdp"), None, "tensor"))), name)
  activation = getattr(jax.nn, c.activation or ("silu" if c.gated else "gelu"))
  hidden = activation(wide("gate")) * wide("up") if c.gated else activation(wide("up"))
  return alone(hidden) @ w["down"]


def places(x, w):
  """The places of experts for tokens [batch, tokens], as shares [batch, tokens, experts, places]."""
  b, s, _ = x.shape
  capacity = int(s * c.chosen / c.experts * 1.25)
  best, which = jax.lax.top_k((x @ w["route"]).astype(jnp.float32), c.chosen)
  wanted = jax.nn.one_hot(which, c.experts, dtype=jnp.int32)
  rank = jnp.cumsum(wanted.reshape(b, s * c.chosen, c.experts), axis=1).reshape(wanted.shape) * wanted
  kept = wanted * (rank <= capacity)
  shares = jnp.sum(jax.nn.softmax(best)[..., None] * kept, axis=2).astype(x.dtype)
  rank = jax.nn.one_hot(jnp.sum(rank * kept, axis=2), capacity + 1, dtype=jnp.int32)
  return (shares[..., None] * rank)[..., 1:].astype(x.dtype)


def feed_experts(x, w):
  shares = places(x, w)
  here = lambda y: spread(y, P(None, ("data", "fsdp"), None, "tensor"))
  inside = here(jnp.einsum("bsm,bsec->ebcm", x, (shares != 0).astype(x.dtype)))
  wide = lambda name: named(here(jnp.einsum("ebcm,emh->ebch", inside, w[name])), name)
  hidden = getattr(jax.nn, c.activation or "silu")(wide("gate")) * wide("up")
  return jnp.einsum("ebcm,bsec->bsm", here(jnp.einsum("ebch,ehm->ebcm", hidden, w["down"])), shares)


def add(x, y):
  """A residual connection after a matmul."""
  if c.kernels == "library":
    y = alone(spread(y, BETWEEN))
  return spread(alone(x + (drop(y) if c.dropout else y)), BETWEEN)


def layer(positions, x, w, window=0):
  w = jax.tree.map(lambda w: w.astype(jnp.bfloat16), w)
  x = named(x, "input")
  if c.parallel:
    y = norm(x, w["norm1"])
    return spread(x + (feed(y, w) + attend(y, w, positions)), BETWEEN), None
  behind = lambda y, name: norm(y, w[name]) if c.post else y
  x = add(x, behind(named(attend(norm(x, w["norm1"]), w, positions, window), "out"), "norm3"))
  y = named((feed_experts if c.experts else feed)(norm(x, w["norm2"]), w), "down")
  return add(x, behind(y, "norm4")), None


def six(positions, x, w):
  """Layers with a window each, and one layer without a window."""
  for i in range(6):
    x, _ = layer(positions, x, jax.tree.map(lambda w: w[i], w), c.window if i < 5 else 0)
  return x, None


def policy():
  """Which values of a layer are kept for the backward pass."""
  kinds = jax.checkpoint_policies
  if isinstance(c.remat, str):
    return {"full": None, "minimal": kinds.dots_with_no_batch_dims_saveable}[c.remat]
  if not c.offload:
    return kinds.save_only_these_names(*c.remat)
  return kinds.save_and_offload_only_these_names(names_which_can_be_saved=[], names_which_can_be_offloaded=c.remat,
                                                 offload_src="device", offload_dst="pinned_host")


def look_up(table, tokens):
  table = table.astype(jnp.bfloat16)
  return jax.nn.one_hot(tokens, c.vocab, dtype=table.dtype) @ table if c.one_hot else table[tokens]


def loss(w, tokens, positions):
  x = spread(look_up(w["embed"], tokens), BETWEEN)
  one = jax.checkpoint(functools.partial(six if c.window else layer, positions), policy=policy())
  if c.scan:
    layers = jax.tree.map(lambda w: w.reshape(-1, 6, *w.shape[1:]), w["layers"]) if c.window else w["layers"]
    x, _ = jax.lax.scan(one, x, layers)
  for each in [] if c.scan else w["layers"]:
    x, _ = one(x, each)
  # MaxText computes the logits of a tied embedding in f32.
  table = w["embed"].T if c.tied else w["unembed"].astype(c.logits)
  target = jnp.roll(tokens, -1, axis=1)
  if c.tiles == 1:
    return jnp.mean(surprise(table, x, target))
  table = spread(table, P(None, "tensor"))  # gathered before the loop
  parts = lambda y: jnp.moveaxis(y.reshape(y.shape[0], c.tiles, -1, *y.shape[2:]), 1, 0)
  total, _ = jax.lax.scan(jax.checkpoint(lambda sum, part: (sum + jnp.sum(surprise(table, *part)), None)), jnp.float32(0),
                          (parts(x), parts(target)))
  return total / tokens.size


def surprise(table, x, target):
  """The loss of each token."""
  logits = spread(x.astype(table.dtype) @ table, P(("data", "fsdp"), None, "tensor")).astype(jnp.float32)
  hit = jax.nn.one_hot(target, c.vocab, dtype=jnp.bfloat16)
  return jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * hit, axis=-1)


def weights():
  """The shape and sharding of each weight."""
  n, e, h, f = c.layers, c.emb, c.heads * c.head_dim, c.mlp
  into, out = P(None, "fsdp", "tensor"), P(None, "tensor", "fsdp")
  kv = into if KV % c.tensor == 0 else P(None, "fsdp")
  layers = {"q": ((n, e, h), into), "k": ((n, e, KV * c.head_dim), kv), "v": ((n, e, KV * c.head_dim), kv),
            "o": ((n, h, e), out), "up": ((n, e, f), into), "down": ((n, f, e), out),
            "norm1": ((n, e), P()), "norm2": ((n, e), P())}
  if c.post:
    layers |= {"norm3": ((n, e), P()), "norm4": ((n, e), P())}
  if c.gated:
    layers["gate"] = ((n, e, f), into)
  if c.experts:
    for name in ("gate", "up", "down"):
      shape, spec = layers[name]
      layers[name] = (n, c.experts, *shape[1:]), P(None, None, *spec[1:])
    layers["route"] = (n, e, c.experts), P(None, "fsdp")
  layers |= {f"norm_{name}": ((n, c.head_dim), P()) for name in c.normed}
  if not c.scan:
    layers = [{name: (shape[1:], P(*spec[1:])) for name, (shape, spec) in layers.items()} for _ in range(n)]
  embeddings = {"embed": ((c.vocab, e), P("tensor", "fsdp"))}
  if not c.tied:
    embeddings["unembed"] = ((e, c.vocab), P("fsdp", "tensor"))
  return {"layers": layers, **embeddings}


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, tokens, positions):
  w, m, v = state
  value, g = jax.value_and_grad(loss)(w, tokens, positions)
  m = jax.tree.map(lambda m, g: (0.9 * m + 0.1 * g).astype(m.dtype), m, g)
  v = jax.tree.map(lambda v, g: (0.95 * v + 0.05 * g * g).astype(v.dtype), v, g)
  w = jax.tree.map(lambda w, m, v: (w - 1e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w)).astype(w.dtype), w, m, v)
  return (w, m, v), value


# ---- its time ----

def operations():
  """Operations of a step as publications count them: three times those of the forward pass.

  Returns the counts without attention's scores, with all of them, and with half of them and the embedding (as in
  MaxText from November 2023 to May 2024).  Recomputed operations do not count.
  """
  tokens = c.batch * c.sequence
  feeds = c.chosen if c.experts else 1
  per_layer = 2 * c.emb * c.head_dim * (2 * c.heads + 2 * KV) + feeds * 2 * c.emb * c.mlp * (3 if c.gated else 2)
  attention = 4 * c.sequence * c.heads * c.head_dim
  tables = 1 if c.tied else 2
  return [3 * tokens * (c.layers * (per_layer + scores) + 2 * count * c.emb * c.vocab)
          for scores, count in ((0, 1), (attention, 1), (attention / 2, tables))]


def make_state():
  """Weights, moments and tokens on a mesh of all devices, which becomes JAX's current mesh."""
  devices = np.array(jax.devices())
  mesh = Mesh(devices.reshape(c.data, -1, c.tensor), ("data", "fsdp", "tensor"), axis_types=(AxisType.Auto,) * 3)
  jax.set_mesh(mesh)
  is_weight = lambda x: isinstance(x, tuple) and isinstance(x[1], P)
  shardings = jax.tree.map(lambda w: NamedSharding(mesh, w[1]), weights(), is_leaf=is_weight)
  make = lambda dtype: jax.tree.map(lambda w: jnp.ones(w[0], dtype), weights(), is_leaf=is_weight)
  state = tuple(jax.jit(functools.partial(make, dtype), out_shardings=shardings)()
                for dtype in (c.weights, c.mu or c.weights, c.weights))
  tokens = jax.jit(lambda: jnp.ones((c.batch, c.sequence), jnp.int32), out_shardings=NamedSharding(mesh, BATCH))()
  return jax.block_until_ready((state, tokens, tokens + 0))


def main():
  state, tokens, positions = make_state()
  begin = minipod.virtual_time()
  _, value = train_step(state, tokens, positions)
  value.block_until_ready()
  seconds = minipod.virtual_time() - begin
  (report,) = json.loads(minipod.time_report("json"))
  row = next(row for row in report["programs"] if row["name"] == "jit_train_step")
  work, collective, hidden = (row[part] / row["available"] for part in ("work", "collective", "hidden"))
  hidden *= row["seconds"]  # mean per device
  print(json.dumps({"seconds": seconds, "work": work, "collective": collective, "hidden": hidden,
                    "devices": jax.device_count(), "operations": operations()}))


if __name__ == "__main__":
  main()
