"""Optimizers' updates."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import adam
from .program import BF, F32, I32, A, of_class

opened, new = of_class("optimizer")


def adafactor(p, r, c, g):
  s = g * g + 1e-30
  r, c = 0.9 * r + 0.1 * s.mean(1), 0.9 * c + 0.1 * s.mean(0)
  u = g * lax.rsqrt(r / r.mean())[:, None] * lax.rsqrt(c)[None]
  return p - 1e-2 * u / jnp.maximum(1, jnp.sqrt((u * u).mean())), r, c


def sgd_clipped(p, g):
  return jax.tree.map(lambda a, b: a - 0.1 * b / jnp.maximum(1, jnp.sqrt(sum((x * x).sum() for x in g))), p, g)


WEIGHTS = [A((4096, 4096), F32), A((4096, 11008), F32), A((4096,), F32)]
opened("adam_3_donated", adam, WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS, donate=(0, 1, 2))
opened("adafactor", adafactor, A((4096, 11008), F32), A((4096,), F32), A((11008,), F32), A((4096, 11008), F32),
       donate=(0, 1, 2))
opened("sgd_clip_norm", sgd_clipped, WEIGHTS, WEIGHTS, donate=(0,))


# ---- as in optax ----

def clipped(g, most=1.0):
  norm = jnp.sqrt(sum((x * x).sum() for x in jax.tree.leaves(g)))
  return jax.tree.map(lambda x: x * jnp.minimum(1, most / norm), g)


def adamw(p, m, v, g, count):
  """Gradients in bf16, moments in f32 and bf16, bias correction, decay."""
  g = clipped(jax.tree.map(lambda x: x.astype(F32), g))
  m = jax.tree.map(lambda m, g: (0.9 * m.astype(F32) + 0.1 * g).astype(m.dtype), m, g)
  v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, g)
  c1, c2 = 1 - 0.9 ** count.astype(F32), 1 - 0.95 ** count.astype(F32)
  p = jax.tree.map(lambda p, m, v: p - 3e-4 * (m.astype(F32) / c1 / (jnp.sqrt(v / c2) + 1e-8) + 0.1 * p), p, m, v)
  return p, m, v, count + 1


def tensors(dtype):
  return {"embed": A((32000, 1024), dtype), "qkv": A((1024, 3072), dtype), "out": A((1024, 1024), dtype),
      "up": A((1024, 4096), dtype),
          "down": A((4096, 1024), dtype), "bias": A((4096,), dtype), "scale": A((1024,), dtype)}


new("adamw_clip_mixed_bf16_moments", adamw, tensors(F32), tensors(BF), tensors(F32), tensors(BF), A((), I32),
    donate=(0, 1, 2), shows="a norm of all gradients, then updates in place")


def adamw_stack(p, m, v, g):
  """Weights of 24 layers in stacks."""
  return jax.tree.map(lambda p, m, v, g: p - 1e-3 * (0.9 * m + 0.1 * g) * lax.rsqrt(0.99 * v + 0.01 * g * g + 1e-8),
      p, m, v, g)


STACK = {"w": A((24, 1024, 1024), F32), "b": A((24, 1024), F32)}
new("adamw_stacked_24_layers", adamw_stack, STACK, STACK, STACK, STACK, donate=(0,),
    shows="four large arrays, one written in place")
new("adam_200_small_tensors", adam, *[[A((256, 256), F32)] * 200] * 4, donate=(0, 1, 2),
    shows="a loop-free list of small kernels")


def lion(p, m, g):
  update = lambda p, m, g: (p - 1e-4 * (jnp.sign(0.9 * m + 0.1 * g) + 0.1 * p), 0.99 * m + 0.01 * g)
  out = [update(*x) for x in zip(p, m, g)]
  return tuple(zip(*out))


new("lion_3_donated", lion, WEIGHTS, WEIGHTS, WEIGHTS, donate=(0, 1), shows="signs, two results in place")


def newton_schulz(g, turns=5):
  x = g.astype(BF)
  x = x / (jnp.linalg.norm(x) + 1e-7)
  def turn(_, x):
    a = x @ x.T
    return 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
  return lax.fori_loop(0, turns, turn, x)


def muon(p, m, g):
  m = 0.95 * m + g
  return p - 0.02 * newton_schulz(0.95 * m + g).astype(F32), m


new("muon_newton_schulz_1024x4096", muon, *[A((1024, 4096), F32)] * 3, donate=(0, 1),
    shows="products of one array with itself in a loop")
new("muon_newton_schulz_stack_12x768", lambda g: jax.vmap(newton_schulz)(g), A((12, 768, 2304), F32),
    shows="the same by layers")


def shampoo(p, l, r, g):
  l, r = l + g @ g.T, r + g.T @ g
  inverse_root = lambda a: (lambda w, v: (v * jnp.maximum(w, 1e-6) ** -0.25) @ v.T)(*jnp.linalg.eigh(a))
  return p - 0.01 * inverse_root(l) @ g @ inverse_root(r), l, r


new("shampoo_256", shampoo, *[A((256, 256), F32)] * 4, shows="eigenvectors")


def soap_step(p, ql, qr, v, g):
  """SOAP between two decompositions: Adam in the rotated space."""
  h = ql.T @ g @ qr
  v = 0.95 * v + 0.05 * h * h
  return p - 3e-3 * ql @ (h * lax.rsqrt(v + 1e-8)) @ qr.T, v


new("soap_rotated_adam_2048x1024", soap_step, A((2048, 1024), F32), A((2048, 2048), F32), A((1024, 1024), F32),
    A((2048, 1024), F32), A((2048, 1024), F32), donate=(0, 3), shows="f32 matmuls in a row, their epilogues")


def adafactor_optax(p, r, c, g):
  """Two stacks of matrices: factors by the last two dimensions, clipped by block."""
  def one(p, r, c, g):
    s = g * g + 1e-30
    r, c = 0.8 * r + 0.2 * s.mean(-1), 0.8 * c + 0.2 * s.mean(-2)
    u = g * lax.rsqrt(r / r.mean(-1, keepdims=True))[..., None] * lax.rsqrt(c)[..., None, :]
    u = u / jnp.maximum(1, jnp.sqrt((u * u).mean()))
    return p - 1e-2 * jnp.maximum(1e-3, jnp.sqrt((p * p).mean())) * u, r, c
  return jax.tree.map(one, p, r, c, g)


new("adafactor_stack_8x2048x2048", adafactor_optax, A((8, 2048, 2048), F32), A((8, 2048), F32), A((8, 2048), F32),
    A((8, 2048, 2048), F32),
    donate=(0, 1, 2), shows="sums of rows and columns of one array, of itself and of its quotient")
new("ema_and_polyak_bf16_params", lambda p, e: (jax.tree.map(lambda p, e: 0.999 * e + 0.001 * p, p, e),
    jax.tree.map(lambda p: p.astype(BF), p)),
    WEIGHTS, WEIGHTS, donate=(1,), shows="siblings: an average and a cast of one array")
new("grad_accumulate_scan_4", lambda w, x: lax.scan(lambda g,
    x: (jax.tree.map(lambda a, b: a + b.astype(F32), g, jax.grad(
    lambda w: (jax.nn.gelu(x @ w[0]) @ w[1]).astype(F32).mean())(w)), None), [jnp.zeros(a.shape, F32) for a in w],
    x)[0],
    [A((1024, 4096)), A((4096, 1024))], A((4, 2048, 1024)), shows="gradients in f32 that a loop carries")
