"""Attention in plain JAX."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import attention, grad_of, qkv, rmsnorm
from .program import BF, F8, F32, I32, U32, A, of_class

opened, new = of_class("attention")

dpa = functools.partial(jax.nn.dot_product_attention, is_causal=True)
opened("attn_plain_512", attention, *qkv(8, 512, 16, 64))
opened("attn_plain_2048", attention, *qkv(1, 2048, 16))
opened("attn_plain_4096", attention, *qkv(1, 4096, 16))
opened("attn_full_1024", functools.partial(attention, causal=False), *qkv(4, 1024, 12, 64))
opened("attn_dpa_2048", dpa, *qkv(1, 2048, 16))
opened("attn_dpa_8192", dpa, *qkv(1, 8192, 8))
opened("attn_dpa_gqa_2048", dpa, *qkv(2, 2048, 32, 128, 8))
opened("attn_dpa_grad_2048", jax.grad(lambda q, k, v: dpa(q, k, v).astype(F32).sum(), (0, 1, 2)), *qkv(1, 2048, 16))
opened("attn_plain_f32_1024", attention, *qkv(1, 1024, 8, 64, None, F32))

# ---- the operands of libraries: [B, H, L, D] or [B, L, H, D], masks, biases ----


def scores(q, k):
  return jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) * q.shape[-1] ** -0.5


def weigh(s, v, dtype=BF):
  return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1).astype(dtype), v)


def heads_first(q, k, v, mask=None):
  """torch's order: [B, H, L, D]."""
  s = (q @ k.swapaxes(-1, -2)).astype(F32) * q.shape[-1] ** -0.5
  s = s if mask is None else jnp.where(mask, s, -1e30)
  return jax.nn.softmax(s, -1).astype(q.dtype) @ v


def heads(b, h, l, d, keys=None):
  return A((b, h, l, d)), A((b, h, keys or l, d)), A((b, h, keys or l, d))


new("attn_heads_first_b8_h12_l1024_d64", heads_first, *heads(8, 12, 1024, 64),
    shows="cluster_products: softmax behind a matmul")
new("attn_heads_first_b32_h16_l512_d64", heads_first, *heads(32, 16, 512, 64),
    shows="cluster_products: 512 scores in a row, one pass with its matmul")
new("attn_padding_mask_b16_l512", lambda q, k, v, m: heads_first(q, k, v, m[:, None, None, :]),
    *heads(16, 12, 512, 64), A((16, 512), jnp.bool_), shows="a mask that is broadcast")
new("attn_cross_short_keys_b8_q4096_k77", heads_first, *heads(8, 8, 4096, 40, 77),
    shows="keys shorter than a row of lanes")
new("attn_perceiver_b4_q256_k8192", heads_first, *heads(4, 8, 256, 64, 8192),
    shows="few queries, long rows of scores")
new("attn_window_7x7_swin_b64", lambda q, k, v, bias: heads_first_bias(q, k, v, bias), A((4096, 3, 49, 32)),
    A((4096, 3, 49, 32)), A((4096, 3, 49, 32)), A((3, 49, 49), F32), shows="rows of 49 scores, heads of 32: padding")
new("attn_short_keys_16_b4096", heads_first, *heads(4096, 4, 16, 32),
    shows="sequences of 16: matmuls by the vector unit")
new("attn_axial_rows_b8_128x128", lambda q, k, v: heads_first(*(y.reshape(1024, 128, 4, 64).swapaxes(1, 2)
                                                              for y in (q, k, v))),
    *[A((8, 128, 128, 256))] * 3, shows="reshapes and transposes before matmuls")


def heads_first_bias(q, k, v, bias):
  s = (q @ k.swapaxes(-1, -2)).astype(F32) * q.shape[-1] ** -0.5 + bias
  return jax.nn.softmax(s, -1).astype(q.dtype) @ v


def alibi(q, k, v):
  l, h = q.shape[1], q.shape[2]
  slopes = 2.0 ** (-8 * (jnp.arange(h, dtype=F32) + 1) / h)
  i = jnp.arange(l)
  distance = (i - i[:, None]).astype(F32)
  s = scores(q, k) + slopes[:, None, None] * distance
  return weigh(jnp.where(i[:, None] >= i, s, -1e30), v)


new("attn_alibi_b2_l2048_h16_d128", alibi, *qkv(2, 2048, 16), shows="a bias made of iotas")


def t5_bias(q, k, v, table):
  i = jnp.arange(q.shape[1])
  n = jnp.maximum(i[:, None] - i, 0)
  large = 16 + (jnp.log(n.astype(F32) / 16 + 1e-6) / jnp.log(8.0) * 16).astype(I32)
  bucket = jnp.where(n < 16, n, jnp.minimum(large, 31))
  s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) + table[bucket].transpose(2, 0, 1)
  return weigh(s, v)


new("attn_t5_relative_bias_b4_l1024_h12", t5_bias, *qkv(4, 1024, 12, 64), A((32, 12), F32),
    shows="a gather of rows of 12 from a tiny table, transposed into a bias")


def swin_relative(q, k, v, table, index):
  return heads_first_bias(q, k, v, table[index.reshape(-1)].reshape(*index.shape, -1).transpose(2, 0, 1))


new("attn_swin_bias_table_14x14_b64", swin_relative, *heads(256, 8, 196, 32), A((729, 8), F32), A((196, 196), I32),
    shows="narrow rows that are looked up, then transposed")


def transformer_xl(q, k, v, r, u, w):
  s = jnp.einsum("bqhd,bkhd->bhqk", q + u, k)
  p = jnp.einsum("bqhd,khd->bhqk", q + w, r)
  b, h, n, m = p.shape
  p = jnp.pad(p, ((0, 0), (0, 0), (0, 0), (1, 0))).reshape(b, h, m + 1, n)[:, :, 1:].reshape(b, h, n, m)
  return weigh((s + p).astype(F32) * q.shape[-1] ** -0.5, v)


new("attn_transformer_xl_shift_b4_l512_h8", transformer_xl, *qkv(4, 512, 8, 64), A((512, 8, 64)), A((8, 64)),
    A((8, 64)), shows="rows that are padded, reshaped and cut")


def sliding(q, k, v, window):
  i = jnp.arange(q.shape[1])
  near = (i[:, None] >= i) & (i[:, None] - i < window)
  return weigh(jnp.where(near, scores(q, k), -1e30), v)


new("attn_sliding_mask_1024_b1_l4096_h8", functools.partial(sliding, window=1024), *qkv(1, 4096, 8),
    shows="a mask of iotas, most of which is empty")


def sliding_blocks(q, k, v, w=512):
  """Longformer's: each block sees itself and the one before."""
  b, l, h, d = q.shape
  q, k, v = (y.reshape(b, l // w, w, h, d) for y in (q, k, v))
  k, v = (jnp.concatenate([jnp.pad(y, ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0)))[:, :-1], y], 2) for y in (k, v))
  i, j = jnp.arange(w)[:, None], jnp.arange(2 * w) - w
  s = jnp.einsum("bnqhd,bnkhd->bnhqk", q, k).astype(F32) * d ** -0.5
  s = jnp.where((j <= i) & (i - j < w), s, -1e30)
  return jnp.einsum("bnhqk,bnkhd->bnqhd", jax.nn.softmax(s).astype(q.dtype), v).reshape(b, l, h, d)


new("attn_sliding_blocks_512_b2_l8192_h8", sliding_blocks, *qkv(2, 8192, 8),
    shows="blocks put side by side with their neighbours before a matmul")


def softcap(q, k, v):
  """Gemma 2: capped scores, grouped queries."""
  b, l, h, d = q.shape
  q = q.reshape(b, l, k.shape[2], -1, d)
  s = 50 * jnp.tanh(jnp.einsum("bqngd,bknd->bngqk", q, k).astype(F32) * d ** -0.5 / 50)
  s = jnp.where(jnp.tril(jnp.ones((l, l), bool)), s, -2.4e38)
  return jnp.einsum("bngqk,bknd->bqngd", jax.nn.softmax(s).astype(v.dtype), v).reshape(b, l, h, d)


new("attn_softcap_gqa_b1_l2048_h16_kv4_d256", softcap, *qkv(1, 2048, 16, 256, 4),
    shows="tanh between a matmul and its softmax")
new("attn_multi_query_b4_l2048_h16", lambda q, k, v: weigh_one(q, k, v), A((4, 2048, 16, 128)), A((4, 2048, 128)),
    A((4, 2048, 128)), shows="one head of keys: queries become rows of one matmul")


def weigh_one(q, k, v):
  s = jnp.einsum("bqhd,bkd->bhqk", q, k).astype(F32) * q.shape[-1] ** -0.5
  s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e30)
  return jnp.einsum("bhqk,bkd->bqhd", jax.nn.softmax(s).astype(v.dtype), v)


new("attn_repeat_kv_b2_l2048_h32_kv8", lambda q, k, v: attention(q, jnp.repeat(k, 4, 2), jnp.repeat(v, 4, 2)),
    *qkv(2, 2048, 32, 64, 8), shows="keys and values repeated for the heads: whether they are written")


def latent(x, wq, wdkv, wuk, wuv, wo):
  """DeepSeek's MLA: keys and values come of a narrow latent."""
  b, l, _ = x.shape
  q = jnp.einsum("ble,ehd->blhd", x, wq)
  c = rmsnorm(x @ wdkv[:, :512], jnp.ones((512,), x.dtype))
  rope = jnp.broadcast_to((x @ wdkv[:, 512:])[:, :, None], (b, l, q.shape[2], 64))
  k = jnp.concatenate([jnp.einsum("blc,chd->blhd", c, wuk), rope], -1)
  return jnp.einsum("blhd,hde->ble", attention(q, k, jnp.einsum("blc,chd->blhd", c, wuv)), wo)


new("attn_mla_b1_l2048_h16", latent, A((1, 2048, 2048)), A((2048, 16, 192)), A((2048, 576)), A((512, 16, 128)),
    A((512, 16, 128)), A((16, 128, 2048)), shows="heads of 192, a concatenation with what is broadcast")


def dropped(key, q, k, v):
  p = jax.nn.softmax(scores(q, k))
  keep = jax.random.bernoulli(jax.random.wrap_key_data(key, impl="rbg"), 0.9, p.shape)
  return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(keep, p / 0.9, 0).astype(v.dtype), v)


new("attn_dropout_rbg_b4_l512_h12", dropped, A((4,), U32), *qkv(4, 512, 12, 64), shows="random bits for each score")
new("attn_dropout_rbg_grad_b4_l512_h12", lambda key, *a: grad_of(lambda *a: dropped(key, *a), (0, 1, 2))(*a),
    A((4,), U32), *qkv(4, 512, 12, 64), shows="random bits that both directions need")
new("attn_alibi_grad_b1_l2048_h8", grad_of(alibi, (0, 1, 2)), *qkv(1, 2048, 8), shows="scores made again or kept")
new("attn_learned_bias_grad_b2_l1024_h8", grad_of(lambda q, k, v, b: heads_first_bias(q, k, v, b), (0, 1, 2, 3)),
    *heads(2, 8, 1024, 64), A((8, 1024, 1024), F32), shows="the gradient of a bias: a sum over the batch of scores")


def segments(q, k, v, ids):
  same = ids[:, None, :, None] == ids[:, None, None, :]
  causal = jnp.tril(jnp.ones((ids.shape[1],) * 2, bool))
  return weigh(jnp.where(same & causal, scores(q, k), -0.7 * 3.4e38), v)


new("attn_packed_segments_b2_l2048_h16", segments, *qkv(2, 2048, 16), A((2, 2048), I32),
    shows="MaxText's masks of packed sequences")


def rotary(x, theta=10000.0):
  half = x.shape[-1] // 2
  angle = jnp.arange(x.shape[1], dtype=F32)[:, None] * theta ** (-jnp.arange(half, dtype=F32) / half)
  sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
  a, b = jnp.split(x.astype(F32), 2, -1)
  return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1).astype(x.dtype)


def rotary_pairs(x):
  angle = jnp.arange(x.shape[1], dtype=F32)[:, None] * 10000.0 ** (-jnp.arange(0, x.shape[-1], 2,
      dtype=F32) / x.shape[-1])
  z = x.astype(F32).reshape(*x.shape[:-1], -1, 2)
  z = lax.complex(z[..., 0], z[..., 1]) * jnp.exp(1j * angle)[:, None]
  return jnp.stack([z.real, z.imag], -1).reshape(x.shape).astype(x.dtype)


new("rotary_halves_b4_l4096_h32", rotary, A((4, 4096, 32, 128)), shows="rows in parts: halves of 64 lanes")
new("rotary_complex_pairs_b4_l2048_h16", rotary_pairs, A((4, 2048, 16, 128)),
    shows="pairs of neighbours: a reshape in the lanes")
new("attn_rotary_gqa_block_b2_l2048", lambda x, wq, wk, wv, wo: jnp.einsum("blhd,hde->ble", attention(
    rotary(jnp.einsum("ble,ehd->blhd", x, wq)), jnp.repeat(rotary(jnp.einsum("ble,ehd->blhd", x, wk)), 4, 2),
    jnp.repeat(jnp.einsum("ble,ehd->blhd", x, wv), 4, 2)), wo), A((2, 2048, 2048)), A((2048, 16, 128)),
    A((2048, 4, 128)), A((2048, 4, 128)), A((16, 128, 2048)), shows="projections, rotation, groups, output in one")


def chunked(q, k, v, size=512):
  """Rabe and Staats: keys in chunks, running maximum and sum."""
  b, l, h, d = q.shape
  k, v = (jnp.moveaxis(y.reshape(b, -1, size, h, d), 1, 0) for y in (k, v))

  def turn(c, kv):
    o, m, n = c
    s = jnp.einsum("bqhd,bkhd->bhqk", q, kv[0]).astype(F32) * d ** -0.5
    top = jnp.maximum(m, s.max(-1))
    p, old = jnp.exp(s - top[..., None]), jnp.exp(m - top)
    o = o * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", p.astype(BF), kv[1]).astype(F32)
    return (o, top, n * old + p.sum(-1)), None
  start = (jnp.zeros((b, h, l, d), F32), jnp.full((b, h, l), -1e30), jnp.zeros((b, h, l), F32))
  o, _, n = lax.scan(turn, start, (k, v))[0]
  return (o / n[..., None]).astype(BF)


new("attn_chunked_keys_512_b1_l4096_h8", chunked, *qkv(1, 4096, 8), shows="an online softmax that a loop carries")
new("attn_fp8_scores_b2_l2048_h16", lambda q, k, v: weigh(jnp.einsum(
    "bqhd,bkhd->bhqk", q.astype(F8), k.astype(F8), preferred_element_type=F32) * 128 ** -0.5, v), *qkv(2, 2048, 16),
    shows="queries and keys cast to fp8 before their matmul")
new("attn_linear_elu_b4_l4096_h16_d64", lambda q, k, v: (lambda q, k: jnp.einsum(
    "blhd,bhde->blhe", q, jnp.einsum("blhd,blhe->bhde", k, v)) / jnp.einsum("blhd,bhd->blh", q, k.sum(1))[..., None])(
        jax.nn.elu(q) + 1, jax.nn.elu(k) + 1), *qkv(4, 4096, 16, 64), shows="matmuls that sum over the sequence")
new("attn_haiku_flat_heads_b8_l1024_e768", lambda x, w, b, o: (lambda q, k,
    v: attention(q, k, v).reshape(8, 1024, 768) @ o)(
    *((x @ w + b)[..., i * 768:(i + 1) * 768].reshape(8, 1024, 12, 64) for i in range(3))), A((8, 1024, 768)),
    A((768, 2304)), A((2304,)), A((768, 768)), shows="one projection of which queries, keys and values are cut")
new("attn_cross_grad_b8_q1024_k256", grad_of(heads_first, (0, 1, 2)), *heads(8, 8, 1024, 64, 256),
    shows="the gradient with shorter keys")


def rotary_bf16(x):
  """GPT-NeoX: in the type of the heads."""
  half = x.shape[-1] // 2
  angle = jnp.arange(x.shape[1], dtype=F32)[:, None] * 10000.0 ** (-jnp.arange(half, dtype=F32) / half)
  sin, cos = jnp.sin(angle)[:, None].astype(x.dtype), jnp.cos(angle)[:, None].astype(x.dtype)
  a, b = x[..., :half], x[..., half:]
  return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def rotary_interleaved(x):
  """GPT-J: every two."""
  angle = jnp.arange(x.shape[1], dtype=F32)[:, None] * 10000.0 ** (-jnp.arange(0, x.shape[-1], 2,
      dtype=F32) / x.shape[-1])
  sin, cos = jnp.sin(angle)[:, None].astype(x.dtype), jnp.cos(angle)[:, None].astype(x.dtype)
  a, b = x[..., ::2], x[..., 1::2]
  return jnp.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape) * 0.125


new("rotary_neox_of_projection_b16_l4096_h24_d64", lambda x, w: rotary_bf16((x @ w).reshape(16, 4096, 24, 64)),
    A((16, 4096, 512)), A((512, 1536)), shows="twin_tiles_cut: rows of 64 that are cut out of rows of 1,536")
new("rotary_gptj_interleaved_b8_l4096_h32", rotary_interleaved, A((8, 4096, 32, 128)),
    shows="twin_tiles_is_first: pairs that are put together into rows")
