"""Recurrences: cells, linear recurrences, state spaces, one step after the other or as associative scans."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import grad_of
from .loop import lstm
from .program import BF, F32, A, of_class

opened, new = of_class("recurrence")


# ---- cells ----

def gru(wi, wh, b, x):
  def cell(h, x):
    xr, xz, xn = jnp.split(x @ wi + b, 3, -1)
    hr, hz, hn = jnp.split(h @ wh, 3, -1)
    r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
    h = (1 - z) * jnp.tanh(xn + r * hn) + z * h
    return h, h
  return lax.scan(cell, jnp.zeros((x.shape[1], wh.shape[0]), x.dtype), x)[1]


GRU = (A((512, 1536)), A((512, 1536)), A((1536,)))
new("gru_b64_t128_d512", gru, *GRU, A((128, 64, 512)), shows="weights that all rounds read stay in VMEM")
new("gru_grad_b64_t64_d512", lambda w, x: grad_of(lambda w: gru(*w, x))(w), GRU, A((64, 64, 512)),
    shows="stacks that a loop fills and the one back reads")
new("gru_f32_b8_t256_d256", gru, A((256, 768), F32), A((256, 768), F32), A((768,), F32), A((256, 8, 256), F32),
    shows="a loop of many small kernels")


def elman_hoisted(w, u, b, x):
  """Master weights in f32 that each step casts."""
  cell = lambda h, x: (lambda h: (h, h))(jnp.tanh(x @ w.astype(BF) + h @ u.astype(BF) + b.astype(BF)))
  return lax.scan(cell, jnp.zeros((x.shape[1], u.shape[0]), BF), x)[1]


new("elman_f32_weights_b32_t128_d1024", elman_hoisted, A((1024, 1024), F32), A((1024, 1024), F32), A((1024,), F32),
    A((128, 32, 1024)), shows="casts of weights, which compilers take out of the loop")


def two_ways(p, q, x):
  return jnp.concatenate([lstm(*p, x), lstm(*q, x[::-1])[::-1]], -1)


CELL = (A((256, 1024)), A((256, 1024)), A((1024,)))
new("lstm_both_ways_b32_t64_d256", two_ways, CELL, CELL, A((64, 32, 256)),
    shows="reversed stacks before and behind a loop")

# ---- linear recurrences ----


def combine(l, r):
  return l[0] * r[0], r[0] * l[1] + r[1]


new("linear_recurrence_scan_b8_t512_d1024",
    lambda a, x: lax.scan(lambda h, ax: (lambda h: (h, h))(ax[0] * h + ax[1]), jnp.zeros(a.shape[1:], F32),
    (a, x))[1],
    A((512, 8, 1024), F32), A((512, 8, 1024), F32), shows="a loop of one small elementwise kernel")
new("rglru_associative_b4_t512_d1024", lambda a, x: lax.associative_scan(combine, (a, x), axis=1)[1],
    A((4, 512, 1024), F32), A((4, 512, 1024), F32),
    shows="cluster_code: slices of an associative scan, strided along sublanes")
new("rglru_associative_time_first_t1024_d2048", lambda a, x: lax.associative_scan(combine, (a, x))[1],
    A((1024, 2048), F32), A((1024, 2048), F32), shows="an associative scan along sublanes of a matrix")
new("ema_scan_t1024_d4096", lambda x: lax.scan(lambda m, x: (lambda m: (m, m))(0.9 * m + 0.1 * x), x[0], x)[1],
    A((1024, 4096), F32), shows="rounds that read a row and write a row")


def biquad(x, b, a):
  def turn(s, x):
    y = b[0] * x + s[0]
    return (b[1] * x - a[0] * y + s[1], b[2] * x - a[1] * y), y
  zero = jnp.zeros(x.shape[1:], x.dtype)
  return lax.scan(turn, (zero, zero), x)[1]


new("biquad_filter_t2048_c1024", biquad, A((2048, 1024), F32), A((3,), F32), A((2,), F32),
    shows="2,048 rounds on a vector")
new("gae_reverse_t128_env4096", lambda r, v, d: lax.scan(
    lambda g, x: (lambda g: (g, g))(x[0] + 0.99 * x[2] * x[1] - x[1] + 0.94 * x[2] * g), jnp.zeros(r.shape[1:], F32),
    (r, v, 1 - d), reverse=True)[1], *[A((128, 4096), F32)] * 3, shows="a scan from the end")


def min_gru_log(w, x):
  gate, hidden = jnp.split((x @ w).astype(F32), 2, -1)
  keep, take = -jax.nn.softplus(gate), -jax.nn.softplus(-gate)
  total = jnp.cumsum(keep, 1)
  return jnp.exp(total + lax.cumlogsumexp(take + jnp.log(jax.nn.softplus(hidden) + 0.5) - total, 1))


new("min_gru_log_b8_t1024_d512", min_gru_log, A((512, 1024)), A((8, 1024, 512)),
    shows="cumulative sums of a matmul's result")

# ---- RWKV ----


def wkv4(w, u, k, v):
  def turn(s, kv):
    num, den, top = s
    k, v = kv
    at = jnp.maximum(top, u + k)
    a, b = jnp.exp(top - at), jnp.exp(u + k - at)
    y = (a * num + b * v) / (a * den + b)
    at = jnp.maximum(top + w, k)
    a, b = jnp.exp(top + w - at), jnp.exp(k - at)
    return (a * num + b * v, a * den + b, at), y
  zero = jnp.zeros(k.shape[1:], F32)
  return lax.scan(turn, (zero, zero, zero - 1e38), (k, v))[1]


WKV = (A((1024,), F32), A((1024,), F32), A((512, 8, 1024), F32), A((512, 8, 1024), F32))
new("rwkv4_wkv_b8_t512_c1024", wkv4, *WKV, shows="a loop of one kernel with exponentials")
new("rwkv4_wkv_grad_b8_t128_c1024", grad_of(wkv4, (0, 1, 2, 3)), *WKV[:2], A((128, 8, 1024), F32),
    A((128, 8, 1024), F32), shows="the way back through it")


def wkv6(r, k, v, w, u):
  def turn(s, x):
    r, k, v, w = x
    kv = k[..., :, None] * v[..., None, :]
    y = jnp.einsum("bhk,bhkv->bhv", r, s + u[:, :, None] * kv)
    return s * jnp.exp(-jnp.exp(w))[..., None] + kv, y
  return lax.scan(turn, jnp.zeros((*r.shape[1:], v.shape[-1]), F32), (r, k, v, w))[1]


new("rwkv6_wkv_b4_t256_h16_d64", wkv6, *[A((256, 4, 16, 64), F32)] * 4, A((16, 64), F32),
    shows="outer products, and vectors by matrices, in VMEM")

# ---- state spaces ----


def selective_scan(x, dt, a, b, c, parallel=False):
  """Mamba's: x, dt [B, L, D], a [D, N], b, c [B, L, N]."""
  decay = jnp.exp(dt[..., None] * a)
  put = (dt * x)[..., None] * b[:, :, None, :]
  if parallel:
    h = lax.associative_scan(combine, (decay, put), axis=1)[1]
    return jnp.einsum("bldn,bln->bld", h, c)

  def turn(h, t):
    decay, put, c = t
    h = decay * h + put
    return h, jnp.einsum("bdn,bn->bd", h, c)
  first = lambda y: jnp.moveaxis(y, 1, 0)
  return first(lax.scan(turn, jnp.zeros(decay[:, 0].shape, x.dtype), (first(decay), first(put), first(c)))[1])


def mamba(b, l, d, n=16):
  return A((b, l, d), F32), A((b, l, d), F32), A((d, n), F32), A((b, l, n), F32), A((b, l, n), F32)


new("mamba_scan_sequential_b2_l512_d1024", selective_scan, *mamba(2, 512, 1024),
    shows="states of 16 in the lanes: padding or another layout; outer products")
new("mamba_scan_associative_b1_l256_d1024", functools.partial(selective_scan, parallel=True), *mamba(1, 256, 1024),
    shows="an associative scan of arrays that do not fit into VMEM")
new("mamba_scan_grad_b1_l128_d1024", grad_of(selective_scan, (0, 1, 2, 3, 4)), *mamba(1, 128, 1024),
    shows="the way back of a selective scan")


def mamba_fused(x, dt, a, b, c):
  """The state made inside of the step, so that no [B, L, D, N] is there."""
  def turn(h, t):
    x, dt, b, c = t
    h = jnp.exp(dt[..., None] * a) * h + (dt * x)[..., None] * b[:, None, :]
    return h, (h * c[:, None, :]).sum(-1)
  t = tuple(y.swapaxes(0, 1) for y in (x, dt, b, c))
  return lax.scan(turn, jnp.zeros((x.shape[0], *a.shape), x.dtype), t)[1].swapaxes(0, 1)


new("mamba_scan_fused_b8_l1024_d512", mamba_fused, *mamba(8, 1024, 512),
    shows="a step of one kernel with a sum over 16")


def ssd(x, dt, a, b, c, chunk=128):
  """Mamba 2: matmuls inside of chunks, a scan between them."""
  bs, l, h, p = x.shape
  n = l // chunk
  x, b, c = (y.reshape(bs, n, chunk, h, -1) for y in (x * dt[..., None], b, c))
  total = jnp.cumsum((dt * a).reshape(bs, n, chunk, h), 2)
  decay = jnp.where(jnp.tril(jnp.ones((chunk, chunk), bool))[:, :, None],
                    jnp.exp(total[:, :, :, None] - total[:, :, None]), 0)
  inside = jnp.einsum("bnqhs,bnkhs,bnqkh,bnkhp->bnqhp", c, b, decay, x)
  states = jnp.einsum("bnkhs,bnkh,bnkhp->bnhsp", b, jnp.exp(total[:, :, -1:] - total), x)
  last = jnp.exp(total[:, :, -1])
  turn = lambda s, t: (s * t[0][..., None, None] + t[1], s)
  carried = lax.scan(turn, jnp.zeros_like(states[:, 0]), (last.swapaxes(0, 1), states.swapaxes(0, 1)))[1]
  return (inside + jnp.einsum("bnqhs,bnqh,nbhsp->bnqhp", c, jnp.exp(total), carried)).reshape(bs, l, h, p)


new("mamba2_ssd_b2_l2048_h16", ssd, A((2, 2048, 16, 64), F32), A((2, 2048, 16), F32), A((16,), F32),
    A((2, 2048, 16, 64), F32), A((2, 2048, 16, 64), F32),
    shows="cumulative sums of narrow arrays, matmuls with four factors")


def retention(q, k, v, chunk=256):
  """RetNet's chunks: q, k, v [B, H, L, D]."""
  gamma = 1 - 2.0 ** (-5 - jnp.arange(q.shape[1], dtype=F32))
  i = jnp.arange(chunk)
  inside = jnp.where(i[:, None] >= i, gamma[:, None, None] ** (i[:, None] - i), 0).astype(q.dtype)
  split = lambda y: jnp.moveaxis(y.reshape(*y.shape[:2], -1, chunk, y.shape[-1]), 2, 0)

  def turn(s, t):
    q, k, v = t
    y = jnp.einsum("bhqk,bhkd->bhqd", jnp.einsum("bhqd,bhkd->bhqk", q, k) * inside, v)
    y = y + jnp.einsum("bhqd,bhde->bhqe", q * (gamma[:, None] ** (i + 1)).astype(q.dtype)[..., None],
        s.astype(q.dtype))
    late = (gamma[:, None] ** (chunk - 1 - i)).astype(q.dtype)[..., None]
    return s * gamma[:, None, None] ** chunk + jnp.einsum("bhkd,bhke->bhde", k * late, v).astype(F32), y
  return lax.scan(turn, jnp.zeros((*q.shape[:2], q.shape[-1], v.shape[-1]), F32), (split(q), split(k), split(v)))[1]


new("retention_chunks_b4_h8_l2048_d128", retention, *[A((4, 8, 2048, 128))] * 3,
    shows="a state of matrices that a loop carries")


def delta_rule(q, k, v, beta):
  def turn(s, t):
    q, k, v, beta = t
    s = s + jnp.einsum("bhk,bhv->bhkv", k, beta[..., None] * (v - jnp.einsum("bhk,bhkv->bhv", k, s)))
    return s, jnp.einsum("bhk,bhkv->bhv", q, s)
  return lax.scan(turn, jnp.zeros((*q.shape[1:], v.shape[-1]), F32), (q, k, v, beta))[1]


new("delta_rule_b4_t128_h8_d128", delta_rule, *[A((128, 4, 8, 128), F32)] * 3, A((128, 4, 8), F32),
    shows="matmuls without a sum (cluster_kinds_is_outer) into a carried array")

# ---- filters and chains ----


def kalman(f, h, q, r, x, p, z):
  eye = jnp.eye(x.shape[-1])

  def turn(s, z):
    x, p = s
    x, p = x @ f.T, f @ p @ f.T + q
    gain = p @ h.T @ jnp.linalg.inv(h @ p @ h.T + r)
    x = x + jnp.einsum("bij,bj->bi", gain, z - x @ h.T)
    return (x, (eye - gain @ h) @ p), x
  return lax.scan(turn, (x, p), z)[1]


new("kalman_b256_t64_s8", kalman, A((8, 8), F32), A((2, 8), F32), A((8, 8), F32), A((2, 2), F32), A((256, 8), F32),
    A((256, 8, 8), F32), A((64, 256, 2), F32), shows="batches of tiny matrices, inverses of 2 x 2")


def hmm_forward(transition, emission):
  turn = lambda a, e: (lambda a: (a, a))(jax.nn.logsumexp(a[:, :, None] + transition, 1) + e)
  return lax.scan(turn, emission[0], emission[1:])[1]


new("hmm_forward_b16_t128_s256", hmm_forward, A((256, 256), F32), A((128, 16, 256), F32),
    shows="a maximum and a sum over a middle dimension that is broadcast")
new("viterbi_b16_t128_s128", lambda t, e: lax.scan(
    lambda a, e: (lambda s: (s.max(1) + e, s.argmax(1)))(a[:, :, None] + t), e[0], e[1:]), A((128, 128), F32),
    A((128, 16, 128), F32), shows="the largest element and its place, of one array")
