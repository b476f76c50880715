"""What several classes build their programs of: layers, losses and optimizers as libraries write them."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

from .program import BF, F32, A


def matmul(x, y):
  return x @ y


def layernorm(x, g, b):
  m = x.mean(-1, keepdims=True)
  return (x - m) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6) * g + b


def rmsnorm(x, g):
  y = x.astype(F32)
  return (y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * g


# ---- attention ----

def attention(q, k, v, causal=True):
  s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
  if causal:
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
  return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s.astype(F32)).astype(q.dtype), v)


def qkv(b, s, h, d=128, kv=None, dtype=BF):
  return A((b, s, h, d), dtype), A((b, s, kv or h, d), dtype), A((b, s, kv or h, d), dtype)


# ---- convolutions ----

def conv(x, w, stride=1, groups=1, pad="SAME"):
  return lax.conv_general_dilated(x, w, (stride,) * (x.ndim - 2), pad, feature_group_count=groups,
                                  dimension_numbers=("NHWC", "HWIO", "NHWC"))


def bottleneck(x, w1, w2, w3):
  y = jax.nn.relu(conv(x, w1))
  y = jax.nn.relu(conv(y, w2))
  return jax.nn.relu(conv(y, w3) + x)


# ---- losses ----

def xent(logits, labels):
  logits = logits.astype(F32)
  return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]).mean()


def total(fn):
  """What a gradient needs: the sum of what a function gives."""
  return lambda *args: sum(y.astype(F32).sum() for y in jax.tree.leaves(fn(*args)))


def grad_of(fn, argnums=0):
  return jax.grad(total(fn), argnums)


# ---- optimizers ----

def adam(p, m, v, g):
  def one(p, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v
  out = [one(*x) for x in zip(p, m, v, g)]
  return tuple(zip(*out))


def step(loss):
  return lambda w, *a: jax.tree.map(lambda p, g: p - (0.01 * g).astype(p.dtype), w, jax.grad(loss)(w, *a))


# ---- layers of transformers ----

def mlp(w, x):
  for a in w[:-1]:
    x = jax.nn.relu(x @ a)
  return x @ w[-1]


def block(w, x, heads, constrain=lambda x: x):
  b, s, e = x.shape
  y = rmsnorm(x, w["n1"])
  q, k, v = ((y @ w[n]).reshape(b, s, -1, 128) for n in "qkv")
  x = x + constrain(attention(q, k, v).reshape(b, s, -1) @ w["o"])
  y = rmsnorm(x, w["n2"])
  return x + constrain((jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"])


def block_weights(e, f, stack=(), dtype=BF, **specs):
  shapes = {"q": (e, e), "k": (e, e), "v": (e, e), "o": (e, e), "gate": (e, f), "up": (e, f), "down": (f, e),
            "n1": (e,), "n2": (e,)}
  return {n: A(stack + s, dtype, specs.get(n, specs.get("other"))) for n, s in shapes.items()}


def stacked(w, x, heads, remat=False, constrain=lambda x: x):
  f = functools.partial(block, heads=heads, constrain=constrain)
  f = jax.checkpoint(f) if remat else f
  return lax.scan(lambda x, w: (f(w, x), None), x, w)[0]


# ---- meshes ----

def keep(mesh, *spec):
  return lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))
