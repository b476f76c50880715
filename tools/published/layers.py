"""Layers of train_step.py: norms, attention, and feed forward layers, also with experts."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

import attention
from settings import BATCH, BATCH_AXES, BETWEEN, SHARDS, alone, c, drop, named, product, quantize, spread


def norm(x, scale):
  y = x.astype(jnp.float32)
  return alone((y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale)


# ---- attention ----

def rotate(x, positions):
  """Rotary embeddings of heads [batch, tokens, heads, width], as in MaxText, with angles for each token of the batch.

  They are by pairs until January 2024, by halves since then, and shifted for Llama 3.1.
  """
  width = x.shape[-1]
  half = width // 2
  rates = 1e4 ** -(2 * jnp.arange(half) / width)
  angles = positions[:, :, None, None] * (jnp.repeat(rates, 2) if c.rope == "shifted" else rates)
  sine, cosine = jnp.sin(angles), jnp.cos(angles)
  if c.rope == "halves":
    sine, cosine = sine.astype(x.dtype), cosine.astype(x.dtype)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate((a * cosine - b * sine, b * cosine + a * sine), axis=-1)
  if c.rope == "shifted":
    is_second = jnp.broadcast_to(jnp.arange(width) % 2 == 1, x.shape)
    other = jnp.where(is_second, jnp.roll(x, 1, axis=-1), jnp.roll(x, -1, axis=-1))
    return (x * cosine + other * sine * jnp.where(is_second, 1, -1)).astype(x.dtype)
  pairs = x.astype(jnp.float32).reshape(*x.shape[:-1], half, 2)
  a, b = pairs[..., 0], pairs[..., 1]
  turned = (a * cosine - b * sine).astype(x.dtype), (b * cosine + a * sine).astype(x.dtype)
  return jnp.stack(turned, axis=-1).reshape(x.shape)


IS_PLAIN = not c.flash or c.library != "cudnn"  # cuDNN takes [batch, tokens, heads, width]


def turn(y):
  return y.transpose(0, 2, 1, 3) if IS_PLAIN else y


def split(count):
  return P(BATCH_AXES, *([] if IS_PLAIN else [None]), "tensor" if count % c.tensor == 0 else None)


def heads(l, x, w, positions, name):
  b, s, _ = x.shape
  count = l.heads if name == "q" else l.kv
  y = product(x, w["k" if l.same_kv and name == "v" else name]).reshape(b, s, count, l.head_dim)
  if c.rope and name != "v":
    y = rotate(y, positions)
  if name in c.normed:
    y = norm(y, w[f"norm_{name}"])
  return named(spread(turn(y), split(count)), name)


def latent_heads(l, x, w, positions):
  """Queries, keys and values of DeepSeek's latent attention: a part of each key has a position and serves all heads."""
  b, s, _ = x.shape
  plain, placed, n = l.latent["plain"], l.latent["placed"], l.heads
  of_queries = product(norm(product(x, w["q_down"]), w["norm_q_down"]), w["q"]).reshape(b, s, n, plain + placed)
  both = product(x, w["kv_down"])
  of_values = product(norm(both[..., :-placed], w["norm_kv_down"]), w["kv"]).reshape(b, s, n, plain + l.value_dim)
  place = rotate(both[..., None, -placed:], positions)
  q = jnp.concatenate((of_queries[..., :plain], rotate(of_queries[..., plain:], positions)), axis=-1)
  k = jnp.concatenate((of_values[..., :plain], jnp.broadcast_to(place, (b, s, n, placed))), axis=-1)
  return tuple(named(spread(turn(y), split(n)), name) for name, y in zip("qkv", (q, k, of_values[..., plain:])))


def attend(l, x, w, positions):
  b, s, _ = x.shape
  q, k, v = (latent_heads(l, x, w, positions) if l.latent else
             (heads(l, x, w, positions, name) for name in "qkv"))
  is_grouped = c.flash and c.library != "pallas" and l.kv % c.tensor == 0
  if not l.latent and l.kv != l.heads and not is_grouped:
    k, v = (spread(jnp.repeat(y, l.heads // l.kv, axis=1 if IS_PLAIN else 2), split(l.heads)) for y in (k, v))
  if c.flash:
    out = attention.flash(q, k, v, l.window)
  else:
    bias = attention.position_bias(w["bias"]) if c.bias else None
    out = named(attention.plain(q, k, v, bias), "context")
  return product(turn(out).reshape(b, s, l.heads * l.value_dim), w["o"])


# ---- feed forward ----

def feed(x, w, prefix=""):
  wide = lambda name: named(alone(spread(product(x, w[prefix + name]), P(BATCH_AXES, None, "tensor"))), name)
  activation = getattr(jax.nn, c.activation or ("silu" if c.gated else "gelu"))
  hidden = activation(wide("gate")) * wide("up") if c.gated else activation(wide("up"))
  return product(alone(hidden), w[prefix + "down"])


def places(l, x, w):
  """The places of experts for tokens [batch, tokens], as shares [batch, tokens, experts, places]."""
  b, s, _ = x.shape
  capacity = int(s * l.chosen / l.experts * l.capacity)
  best, which = jax.lax.top_k((x @ w["route"]).astype(jnp.float32), l.chosen)
  wanted = jax.nn.one_hot(which, l.experts, dtype=jnp.int32)
  rank = jnp.cumsum(wanted.reshape(b, s * l.chosen, l.experts), axis=1).reshape(wanted.shape) * wanted
  kept = wanted * (rank <= capacity)
  shares = jnp.sum(jax.nn.softmax(best)[..., None] * kept, axis=2).astype(x.dtype)
  rank = jax.nn.one_hot(jnp.sum(rank * kept, axis=2), capacity + 1, dtype=jnp.int32)
  return (shares[..., None] * rank)[..., 1:].astype(x.dtype)


def feed_experts(l, x, w):
  shares = spread(places(l, x, w), BATCH)
  axes = tuple(axis for axis in BATCH_AXES if axis != "expert")
  here = lambda y: spread(y, P("expert" if c.expert > 1 else None, axes, None, "tensor"))
  inside = here(jnp.einsum("bsm,bsec->ebcm", x, (shares != 0).astype(x.dtype)))
  wide = lambda name: named(here(jnp.einsum("ebcm,emh->ebch", inside, w[name])), name)
  hidden = getattr(jax.nn, c.activation or "silu")(wide("gate")) * wide("up")
  return jnp.einsum("ebcm,bsec->bsm", here(jnp.einsum("ebch,ehm->ebcm", hidden, w["down"])), shares)


@jax.custom_vjp
def sorted_rows(x, order):
  return x[order]


sorted_rows.defvjp(lambda x, order: (x[order], order), lambda order, g: (g[jnp.argsort(order)], None))


def grouped(x, w, sizes):
  return jax.lax.ragged_dot(x, w, sizes, preferred_element_type=jnp.bfloat16)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def grouped_float8(x, w, sizes, axis):
  """With an axis, each device has a part of `w` along it, and the parts are gathered in float8."""
  return grouped_forward(x, w, sizes, axis)[0]


def grouped_forward(x, w, sizes, axis):
  x, w = quantize(x, jnp.float8_e4m3fn), quantize(w, jnp.float8_e4m3fn)
  if axis:
    w = jax.lax.all_gather(w, "fsdp", axis=axis, tiled=True)
  return grouped(x, w, sizes), (x, w, sizes)


def grouped_backward(axis, saved, g):
  x, w, sizes = saved
  g = quantize(g, jnp.float8_e5m2)
  dx = grouped(g, w.swapaxes(1, 2), sizes)
  numbers = jax.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
  dw = jax.lax.ragged_dot_general(x, g, sizes, numbers, preferred_element_type=jnp.bfloat16)
  return dx, jax.lax.psum_scatter(dw, "fsdp", scatter_dimension=axis, tiled=True) if axis else dw, None


grouped_float8.defvjp(grouped_forward, grouped_backward)


def feed_sorted(l, x, w):
  """Experts without a capacity, as in MaxText's sparse matmuls: rows are sorted by expert on each device, which has all
  experts of a layer for its part of the hidden units.
  """
  def matmul(x, w, sizes, axis):
    return grouped_float8(x, w, sizes, axis * c.parts) if c.quantized == "float8" else grouped(x, w, sizes)

  def here(x, route, gate, up, down):
    b, s, e = x.shape
    rows = x.reshape(b * s, e)
    best, which = jax.lax.top_k((rows @ route).astype(jnp.float32), l.chosen)
    order = jnp.argsort(which.reshape(-1))
    sizes = jnp.bincount(which.reshape(-1), length=l.experts).astype(jnp.int32)
    inside = sorted_rows(jnp.repeat(rows, l.chosen, axis=0), order)
    hidden = getattr(jax.nn, c.activation or "silu")(matmul(inside, gate, sizes, 1)) * matmul(inside, up, sizes, 1)
    outside = sorted_rows(matmul(hidden, down, sizes, 2), jnp.argsort(order)).reshape(b * s, l.chosen, e)
    out = jnp.einsum("rce,rc->re", outside, jax.nn.softmax(best).astype(x.dtype)).reshape(x.shape)
    return jax.lax.psum(out, "tensor") if c.tensor > 1 else out

  whole = P(BATCH_AXES)
  part = "fsdp" if c.parts else None
  wide, narrow = P(None, part, "tensor"), P(None, "tensor", part)
  call = jax.shard_map(here, in_specs=(whole, P(), wide, wide, narrow), out_specs=whole, check_vma=False)
  return call(x, w["route"], w["gate"], w["up"], w["down"])


def feed_forward(l, x, w):
  if not l.experts:
    return feed(x, w)
  out = (feed_experts if l.capacity else feed_sorted)(l, x, w)
  return out + feed(x, w, "shared_") if l.shared else out


# ---- layers ----

def add(x, y):
  """A residual connection after a matmul."""
  if c.kernels == "library":
    y = alone(spread(y, BETWEEN))
  return spread(alone(x + (drop(y) if c.dropout else y)), BETWEEN)


def layer(l, positions, x, w):
  w = jax.tree.map(lambda w: w.astype(jnp.bfloat16), w)
  x = named(x, "input")
  if c.parallel:
    y = norm(x, w["norm1"])
    return spread(x + (feed(y, w) + attend(l, y, w, positions)), BETWEEN)
  behind = lambda y, name: norm(y, w[name]) if c.post else y
  x = add(x, behind(named(attend(l, norm(x, w["norm1"]), w, positions), "out"), "norm3"))
  y = named(feed_forward(l, norm(x, w["norm2"]), w), "down")
  return add(x, behind(y, "norm4"))


def several(kinds, positions, x, ws):
  """The layers of one iteration of the scan."""
  for l, w in zip(kinds, ws):
    x = layer(l, positions, x, w)
  return x, None


def weights_of(l):
  """The shape and sharding of each weight of a layer."""
  e, h, f = c.emb, l.heads * l.value_dim, l.mlp
  into, out = P(SHARDS, "tensor"), P("tensor", SHARDS)
  kv = into if l.kv % c.tensor == 0 else P(SHARDS)
  own = {"o": ((h, e), out), "norm1": ((e,), P()), "norm2": ((e,), P())}
  if l.latent:
    n, plain, placed = l.heads, l.latent["plain"], l.latent["placed"]
    own |= {"q_down": ((e, l.latent["q"]), P(SHARDS)), "q": ((l.latent["q"], n * (plain + placed)), into),
            "kv_down": ((e, l.latent["kv"] + placed), P(SHARDS)),
            "kv": ((l.latent["kv"], n * (plain + l.value_dim)), into),
            "norm_q_down": ((l.latent["q"],), P()), "norm_kv_down": ((l.latent["kv"],), P())}
  else:
    own |= {"q": ((e, l.heads * l.head_dim), into), "k": ((e, l.kv * l.head_dim), kv)}
    if not l.same_kv:
      own["v"] = (e, l.kv * l.head_dim), kv
  own |= feed_weights(l, e, f)
  if c.post:
    own |= {"norm3": ((e,), P()), "norm4": ((e,), P())}
  if c.bias:
    own["bias"] = (l.heads, 32), P("tensor")
  return own | {f"norm_{name}": ((l.head_dim,), P()) for name in c.normed}


def feed_weights(l, e, f):
  shards = "fsdp" if l.experts else SHARDS
  into, out = P(shards, "tensor"), P("tensor", shards)
  own = {"up": ((e, f), into), "down": ((f, e), out)}
  if c.gated:
    own["gate"] = (e, f), into
  if not l.experts:
    return own
  experts = "expert" if c.expert > 1 else None
  shared = {f"shared_{name}": ((l.shared * shape[0], shape[1]) if name == "down" else (shape[0], l.shared * shape[1]), spec)
            for name, (shape, spec) in own.items() if l.shared}
  own = {name: ((l.experts, *shape), P(experts, *spec)) for name, (shape, spec) in own.items()}
  return own | shared | {"route": ((e, l.experts), P(SHARDS))}
