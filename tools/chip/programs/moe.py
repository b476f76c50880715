"""Mixtures of experts."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import grad_of
from .program import BF, F32, I32, A, of_class

opened, new = of_class("moe")


def by_einsum(x, router, up, down, capacity):
  t, e = x.shape[0], router.shape[1]
  gate = jax.nn.softmax((x @ router).astype(F32))
  g, i = lax.top_k(gate, 2)
  mask = jax.nn.one_hot(i, e)
  where = (jnp.cumsum(mask.reshape(t * 2, e), 0) - 1).reshape(t, 2, e)
  keep = mask * (where < capacity)
  slot = jax.nn.one_hot(where.astype(I32), capacity) * keep[..., None]
  combine = (g[..., None, None] * slot).sum(1).astype(x.dtype)
  inside = jnp.einsum("tec,td->ecd", (combine > 0).astype(x.dtype), x)
  h = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", inside, up))
  return jnp.einsum("tec,ecd->td", combine, jnp.einsum("ecf,efd->ecd", h, down))


def by_sorting(x, router, up, down):
  g, i = lax.top_k(jax.nn.softmax((x @ router).astype(F32)), 2)
  order = jnp.argsort(i.reshape(-1))
  sizes = jnp.bincount(i.reshape(-1), length=router.shape[1]).astype(I32)
  y = lax.ragged_dot(jax.nn.gelu(lax.ragged_dot(x[order // 2], up, sizes)), down, sizes)
  return jnp.zeros_like(x).at[order // 2].add(y * g.reshape(-1)[order][:, None].astype(x.dtype))


EIGHT = (A((1024, 8)), A((8, 1024, 4096)), A((8, 4096, 1024)))
opened("moe_einsum_8", functools.partial(by_einsum, capacity=640), A((2048, 1024)), *EIGHT)
opened("moe_sorted_ragged_8", by_sorting, A((2048, 1024)), *EIGHT)

# ---- capacity, experts that choose, sorted tokens, groups ----


def switch(x, router, up, down, capacity):
  """Switch Transformer: one expert for a token, a scatter into slots."""
  e = router.shape[1]
  gate = jax.nn.softmax((x @ router).astype(F32))
  top = gate.argmax(-1)
  place = (jnp.cumsum(jax.nn.one_hot(top, e, dtype=I32), 0) * jax.nn.one_hot(top, e, dtype=I32)).sum(-1) - 1
  inside = jnp.zeros((e, capacity, x.shape[1]), x.dtype).at[top, place].set(x, mode="drop")
  y = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", inside, up)), down)
  y = y.at[top, place].get(mode="fill", fill_value=0)
  return y * gate.max(-1).astype(x.dtype)[:, None]


def experts(e, d, f):
  return A((d, e)), A((e, d, f)), A((e, f, d))


new("moe_switch_scatter_t4096_e16", functools.partial(switch, capacity=320), A((4096, 1024)),
    *experts(16, 1024, 2048), shows="scatter and lookup of rows by expert and slot")
new("moe_switch_scatter_grad_t4096_e8", grad_of(functools.partial(switch, capacity=640), (0, 2, 3)), A((4096, 1024)),
    *experts(8, 1024, 2048), shows="their gradients")
new("moe_einsum_groups_g8_t512_e8_grad", grad_of(lambda x, *w: jax.vmap(lambda x: by_einsum(x, *w, capacity=160))(x),
    (0, 2, 3)), A((8, 512, 1024)), *experts(8, 1024, 2048),
    shows="one-hot matmuls by groups, as GShard and MaxText have them")


def expert_choice(x, router, up, down, capacity):
  gate = jax.nn.softmax((x @ router).astype(F32))
  g, i = lax.top_k(gate.T, capacity)
  y = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", x[i], up)), down) * g[...,
      None].astype(x.dtype)
  return jnp.zeros_like(x).at[i.reshape(-1)].add(y.reshape(-1, x.shape[1]))


new("moe_expert_choice_t4096_e16", functools.partial(expert_choice, capacity=512), A((4096, 1024)),
    *experts(16, 1024, 2048), shows="the best tokens of each expert")
new("moe_expert_choice_onehot_t2048_e8", lambda x, r, u, d: (lambda gi: (lambda p: jnp.einsum("ect,ecd,ec->td", p,
    jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum(
    "ecd,edf->ecf", jnp.einsum("ect,td->ecd", p, x), u)), d), gi[0].astype(BF)))(jax.nn.one_hot(gi[1], 2048,
    dtype=BF)))(lax.top_k(jax.nn.softmax((x @ r).astype(F32)).T, 512)),
    A((2048, 1024)), *experts(8, 1024, 2048), shows="the same by matmuls with one-hots")


def dropless(x, router, gate_up, down, k=2):
  """Megablocks, MaxText: tokens sorted by expert, ragged matmuls, gated."""
  p, i = lax.top_k(jax.nn.softmax((x @ router).astype(F32)), k)
  p = (p / p.sum(-1, keepdims=True)).astype(x.dtype)
  order = jnp.argsort(i.reshape(-1))
  sizes = jnp.bincount(i.reshape(-1), length=router.shape[1]).astype(I32)
  gate, up = jnp.split(lax.ragged_dot(jnp.take(x, order // k, 0), gate_up, sizes), 2, -1)
  y = lax.ragged_dot(jax.nn.silu(gate) * up, down, sizes)
  return jnp.einsum("tkd,tk->td", jnp.take(y, jnp.argsort(order), 0).reshape(x.shape[0], k, -1), p)


def gated(e, d, f):
  return A((d, e)), A((e, d, 2 * f)), A((e, f, d))


new("moe_dropless_gated_t4096_e8_k2", dropless, A((4096, 1024)), *gated(8, 1024, 2048),
    shows="product_ragged: sorted tokens")
new("moe_dropless_gated_t2048_e64_k6", functools.partial(dropless, k=6), A((2048, 1024)), *gated(64, 1024, 512),
    shows="product_ragged: many small experts")
new("moe_dropless_grad_t4096_e8_k2", grad_of(dropless, (0, 2, 3)), A((4096, 1024)), *gated(8, 1024, 2048),
    shows="ragged matmuls back: sums by expert")
new("moe_dropless_f32_t1024_e16", dropless, A((1024, 512), F32), A((512, 16), F32), A((16, 512, 1024), F32),
    A((16, 512, 512), F32), shows="product_ragged in f32")
new("moe_ragged_dot_t8192_e32", lambda x, w, s: lax.ragged_dot(x, w, s), A((8192, 1024)), A((32, 1024, 1024)),
    A((32,), I32), shows="product_ragged alone")


def few_tokens(x, router, up, down, k=2):
  """Decode: weights of the chosen experts are looked up."""
  p, i = lax.top_k(jax.nn.softmax((x @ router).astype(F32)), k)
  h = jax.nn.silu(jnp.einsum("td,tkdf->tkf", x, up[i]))
  return jnp.einsum("tkf,tkfd,tk->td", h, down[i], p.astype(x.dtype))


new("moe_decode_gathered_experts_t4_e16", few_tokens, A((4, 2048)), *experts(16, 2048, 4096),
    shows="a lookup of matrices before matmuls")


def all_experts(x, router, up, down):
  """Decode with a batch: every expert sees every token."""
  p = jax.nn.softmax((x @ router).astype(F32)).astype(x.dtype)
  p = jnp.where(p >= lax.top_k(p, 2)[0][:, -1:], p, 0)
  return jnp.einsum("etd,te->td", jnp.einsum("etf,efd->etd", jax.nn.silu(jnp.einsum("td,edf->etf", x, up)), down), p)


new("moe_decode_all_experts_t32_e8", all_experts, A((32, 2048)), *experts(8, 2048, 4096),
    shows="product_tpu_stream on a 7x: few rows by many weights")
new("moe_scan_experts_t2048_e8", lambda x, r, u, d: (lambda p: lax.scan(lambda y,
    w: (y + w[2][:, None] * (jax.nn.gelu(x @ w[0]) @ w[1]), None), jnp.zeros_like(x), (u, d, p.T))[0])(
    jax.nn.softmax((x @ r).astype(F32)).astype(BF)), A((2048, 1024)), *experts(8, 1024, 4096),
    shows="an expert in each round")
new("moe_soft_t2048_e16", lambda x, phi, u, d: (lambda l: jnp.einsum("tes,esd->td",
    jax.nn.softmax(l.reshape(2048, -1), 1).reshape(l.shape).astype(BF), jnp.einsum("esf,efd->esd", jax.nn.gelu(
    jnp.einsum("esd,edf->esf", jnp.einsum("tes,td->esd", jax.nn.softmax(l, 0).astype(BF), x), u)), d)))(
    jnp.einsum("td,des->tes", x, phi).astype(F32)), A((2048, 1024)), A((1024, 16, 64)),
    A((16, 1024, 2048)), A((16, 2048, 1024)), shows="softmax over tokens and over slots")
new("moe_router_losses_t16384_e64", lambda x, r: (lambda l: (
    lambda p: ((p.mean(0) * jax.nn.one_hot(p.argmax(-1), 64).mean(0)).sum() * 64,
    (jax.nn.logsumexp(l, -1) ** 2).mean(), lax.top_k(p, 8)))(
    jax.nn.softmax(l)))((x @ r).astype(F32)), A((16384, 2048)), A((2048, 64)),
    shows="balance and z losses beside the best experts")
