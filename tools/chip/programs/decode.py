"""Decoding a token after the other: caches, quantised weights, pages."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import attention, block_weights, rmsnorm
from .program import BF, F8, F32, I4, I8, I32, U32, A, of_class

opened, new = of_class("decode")


def decode(w, cache, x, at):
  b, _, e = x.shape
  y = rmsnorm(x, w["n1"])
  q, k, v = ((y @ w[n]).reshape(b, 1, -1, 128) for n in "qkv")
  ck, cv = (lax.dynamic_update_slice(c, n, (0, at, 0, 0)) for c, n in zip(cache, (k, v)))
  s = jnp.einsum("bqhd,bkhd->bhqk", q, ck).astype(F32) * 128 ** -0.5
  s = jnp.where(jnp.arange(ck.shape[1]) <= at, s, -1e9)
  x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(BF), cv).reshape(b, 1, e) @ w["o"]
  y = rmsnorm(x, w["n2"])
  return (ck, cv), x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


for b, s in ((8, 2048), (64, 4096)):
  opened(f"decode_b{b}_s{s}", decode, block_weights(2048, 5504), (A((b, s, 16, 128)), A((b, s, 16, 128))),
         A((b, 1, 2048)), A((), I32), donate=(1,))


# ---- weights of fewer bits ----

def per_channel(x, w, scale):
  """int8 weights, a scale for each column."""
  return (x @ w.astype(x.dtype)) * scale


new("int8_weight_only_m8_4096x14336", per_channel, A((8, 4096)), A((4096, 14336), I8), A((14336,)),
    shows="a narrow matmul whose factor is converted on its way (product_tpu_stream on a 7x)")
new("fp8_weight_only_m16_8192x8192", per_channel, A((16, 8192)), A((8192, 8192), F8), A((8192,)),
    shows="fp8 weights converted on their way")


def int8_dynamic(x, w, scale):
  """AQT: activations are quantised by row."""
  top = jnp.abs(x.astype(F32)).max(-1, keepdims=True) / 127
  y = lax.dot(jnp.round(x.astype(F32) / top).astype(I8), w, preferred_element_type=I32)
  return (y.astype(F32) * top * scale).astype(x.dtype)


new("int8_dynamic_m2048_4096x4096", int8_dynamic, A((2048, 4096)), A((4096, 4096), I8), A((4096,), F32),
    shows="a maximum of rows, a matmul in int8, scales behind it")


def int4_groups(x, w, scale, group=128):
  """AWQ, GPTQ: int4 weights, a scale for 128 of a column."""
  k, n = w.shape
  w = w.astype(x.dtype).reshape(k // group, group, n) * scale[:, None]
  return x @ w.reshape(k, n)


new("int4_groups_m16_4096x4096", int4_groups, A((16, 4096)), A((4096, 4096), I4), A((32, 4096)),
    shows="int4 weights, scales by groups before a matmul")


def nibbles(x, w, scale):
  """Two weights in a byte, as in GGUF."""
  low, high = (w & 0xF).astype(I8) - 8, (w >> 4).astype(I8) - 8
  w = jnp.stack([low, high], 1).reshape(-1, w.shape[1])
  return x @ (w.astype(x.dtype) * jnp.repeat(scale, 32, 0))


new("nibbles_unpacked_m8_4096x4096", nibbles, A((8, 4096)), A((2048, 4096), jnp.uint8), A((128, 4096)),
    shows="weights unpacked, put together by rows and scaled: several passes through them")


def nf4(x, codes, scale, table):
  w = table[codes.astype(I32)].reshape(-1, 64) * scale[:, None]
  return x @ w.reshape(codes.shape).astype(x.dtype)


new("nf4_table_m8_1024x2048", nf4, A((8, 1024)), A((1024, 2048), jnp.uint8), A((32768,), F32), A((16,), F32),
    shows="weights looked up in a table of 16")


def int8_block(w, x):
  y = rmsnorm(x, w["n1"])
  q, k, v = (per_channel(y, w[n], w["s" + n]).reshape(*x.shape[:2], -1, 128) for n in "qkv")
  x = x + per_channel(attention(q, k, v).reshape(x.shape), w["o"], w["so"])
  y = rmsnorm(x, w["n2"])
  return x + per_channel(jax.nn.silu(per_channel(y, w["g"], w["sg"])) * per_channel(y, w["u"], w["su"]), w["d"],
      w["sd"])


def int8_weights(e, f, dtype=I8):
  shapes = {"q": (e, e), "k": (e, e), "v": (e, e), "o": (e, e), "g": (e, f), "u": (e, f), "d": (f, e)}
  return {n: A(s, dtype) for n, s in shapes.items()} | {"s" + n: A(s[1:]) for n, s in shapes.items()} | {
      "n1": A((e,)), "n2": A((e,))}


new("int8_prefill_block_b1_l1024_e4096", int8_block, int8_weights(4096, 11008), A((1, 1024, 4096)),
    shows="all weights of a block in int8")

# ---- caches ----


def attend(q, k, v, at):
  """q [B, H, D] to a cache [B, L, KV, D], of which the first `at` tokens are there."""
  b, h, d = q.shape
  q = q.reshape(b, k.shape[2], -1, d)
  s = jnp.einsum("bngd,blnd->bngl", q, k).astype(F32) * d ** -0.5
  s = jnp.where(jnp.arange(k.shape[1]) < jnp.asarray(at).reshape(-1, 1, 1, 1), s, -1e30)
  return jnp.einsum("bngl,blnd->bngd", jax.nn.softmax(s).astype(v.dtype), v).reshape(b, h, d)


new("decode_attend_gqa_b32_l4096_h32_kv8", attend, A((32, 32, 128)), A((32, 4096, 8, 128)), A((32, 4096, 8, 128)),
    A((32,), I32), shows="matmuls with four rows by a cache")
new("decode_attend_mha_b16_l2048_h32", attend, A((16, 32, 128)), A((16, 2048, 32, 128)), A((16, 2048, 32, 128)),
    A((), I32), shows="vectors by matrices inside of tokens")
new("decode_attend_heads_first_b16_h32_l2048", lambda q, k, v: jnp.einsum("bhl,bhld->bhd", jax.nn.softmax(
    jnp.einsum("bhd,bhld->bhl", q, k).astype(F32) * 128 ** -0.5).astype(BF), v), A((16, 32, 128)),
    A((16, 32, 2048, 128)), A((16, 32, 2048, 128)), shows="the same with heads outside")


def attend_int8(q, k, v, ks, vs):
  s = jnp.einsum("bhd,blhd->bhl", q, k.astype(BF)).astype(F32) * ks
  return jnp.einsum("bhl,blhd->bhd", (jax.nn.softmax(s) * vs).astype(BF), v.astype(BF))


new("decode_attend_int8_cache_b16_l2048_h16", attend_int8, A((16, 16, 128)), A((16, 2048, 16, 128), I8),
    A((16, 2048, 16, 128), I8), A((16, 16, 2048), F32), A((16, 16, 2048), F32),
    shows="a cache in int8, converted on its way")


def append(cache, x, at):
  """A token for each sequence, each at a place of its own."""
  return jax.vmap(lambda c, x, i: lax.dynamic_update_slice(c, x, (i, 0, 0)))(cache, x, at)


new("cache_append_ragged_b64_l2048", append, A((64, 2048, 8, 128)), A((64, 1, 8, 128)), A((64,), I32), donate=(0,),
    shows="a scatter of windows into a donated cache")
new("cache_ring_roll_b8_l4096", lambda c, x: jnp.concatenate([c[:, 1:], x], 1), A((8, 4096, 8, 128)),
    A((8, 1, 8, 128)), donate=(0,), shows="a rolling cache: all of it moves")


def layers(w, caches, x, at):
  """A scan over layers whose caches are scanned, too."""
  def one(x, wc):
    w, c = wc
    c, x = decode(w, c, x, at)
    return x, c
  x, caches = lax.scan(one, x, (w, caches))
  return caches, x


CACHES = (A((8, 16, 1024, 8, 128)), A((8, 16, 1024, 8, 128)))
new("decode_scan_8_layers_scanned_cache_b16_l1024", layers, block_weights(1024, 4096, (8,)), CACHES, A((16, 1, 1024)),
    A((), I32), donate=(1,), shows="caches that go through a scan: slices and updates in each round")


def layers_carried(w, caches, x, at):
  """The stacks of caches are carried, and each layer updates its part."""
  def one(s, wi):
    x, caches = s
    w, i = wi
    mine = tuple(lax.dynamic_index_in_dim(c, i, keepdims=False) for c in caches)
    mine, x = decode(w, mine, x, at)
    return (x, tuple(lax.dynamic_update_index_in_dim(c, m, i, 0) for c, m in zip(caches, mine))), None
  (x, caches), _ = lax.scan(one, (x, caches), (w, jnp.arange(8)))
  return caches, x


new("decode_scan_8_layers_carried_cache_b16_l1024", layers_carried, block_weights(1024, 4096, (8,)), CACHES,
    A((16, 1, 1024)), A((), I32), donate=(1,),
    shows="a stack of caches that a loop carries and updates")


def generate(w, table, cache, token, at, steps=16):
  """Greedy tokens, one after the other: the cache goes through a while loop."""
  def turn(s):
    i, token, cache, out = s
    cache, x = decode(w, cache, table[token][:, None], at + i)
    token = (x[:, 0] @ table.T).argmax(-1).astype(I32)
    return i + 1, token, cache, lax.dynamic_update_index_in_dim(out, token, i, 1)
  out = jnp.zeros((token.shape[0], steps), I32)
  return lax.while_loop(lambda s: s[0] < steps, turn, (0, token, cache, out))[2:]


new("generate_while_16_tokens_b8_l1024", generate, block_weights(1024, 4096), A((32000, 1024)),
    (A((8, 1024, 8, 128)),) * 2,
    A((8,), I32), A((), I32), donate=(2,), shows="a cache in a while loop, the largest logit, a lookup")


def mla_absorbed(q, rope, wuk, wuv, cache, at):
  """DeepSeek's decode: scores with latents, weights absorbed into the query."""
  c, r = cache[..., :512], cache[..., 512:]
  s = jnp.einsum("bhc,blc->bhl", jnp.einsum("bhd,chd->bhc", q, wuk), c) + jnp.einsum("bhr,blr->bhl", rope, r)
  s = jnp.where(jnp.arange(cache.shape[1]) <= at, s.astype(F32) * 192 ** -0.5, -1e30)
  return jnp.einsum("bhc,chd->bhd", jnp.einsum("bhl,blc->bhc", jax.nn.softmax(s).astype(BF), c), wuv)


new("decode_mla_absorbed_b32_l4096_h16", mla_absorbed, A((32, 16, 128)), A((32, 16, 64)), A((512, 16, 128)),
    A((512, 16, 128)), A((32, 4096, 576)), A((), I32), shows="a cache of 576 of which 512 and 64 are cut")

# ---- pages ----


def paged(q, k_pages, v_pages, table, lengths):
  """vLLM's in plain JAX: pages are gathered, then attended to."""
  b, h, d = q.shape
  k, v = (p[table].reshape(b, -1, *p.shape[2:]) for p in (k_pages, v_pages))
  return attend(q, k, v, lengths)


def pages(count, kv=8, size=16, dtype=BF):
  return A((count, size, kv, 128), dtype), A((count, size, kv, 128), dtype)


new("paged_attention_b16_64x16_kv8", paged, A((16, 32, 128)), *pages(4096), A((16, 64), I32), A((16,), I32),
    shows="gathers of windows from pages (lookup), padded or not")


def paged_heads_outside(q, k_pages, v_pages, table, lengths):
  """JetStream's: pages [KV, N, size, D]."""
  b = q.shape[0]
  k, v = (jnp.moveaxis(p[:, table], 0, 3).reshape(b, -1, p.shape[0], 128) for p in (k_pages, v_pages))
  return attend(q, k, v, lengths)


new("paged_attention_heads_outside_b16_kv8", paged_heads_outside, A((16, 32, 128)), A((8, 2048, 16, 128)),
    A((8, 2048, 16, 128)), A((16, 64), I32), A((16,), I32),
    shows="pages in a second dimension: a table that is turned (lookup_is_turned)")
new("paged_cache_write_b64", lambda p, x, page, at: p.at[page, at].set(x), A((4096, 16, 8, 128)), A((64, 8, 128)),
    A((64,), I32), A((64,), I32), donate=(0,), shows="a scatter of a token into pages")


def paged_loop(q, k_pages, v_pages, table, lengths):
  """Page by page with an online softmax."""
  b, h, d = q.shape
  q = q.reshape(b, k_pages.shape[2], -1, d)

  def turn(c, page):
    o, m, n = c
    s = jnp.einsum("bngd,blnd->bngl", q, k_pages[page]).astype(F32) * d ** -0.5
    top = jnp.maximum(m, s.max(-1, keepdims=True))
    p, old = jnp.exp(s - top), jnp.exp(m - top)
    o = o * old + jnp.einsum("bngl,blnd->bngd", p.astype(BF), v_pages[page]).astype(F32)
    return (o, top, n * old + p.sum(-1, keepdims=True)), None
  shape = q.shape[:3]
  start = (jnp.zeros((*shape, d), F32), jnp.full((*shape, 1), -1e30), jnp.zeros((*shape, 1), F32))
  o, _, n = lax.scan(turn, start, table.T)[0]
  return (o / n).reshape(b, h, d).astype(BF)


new("paged_attention_loop_b16_32x64_kv8", paged_loop, A((16, 32, 128)), *pages(1024, 8, 64), A((16, 32), I32),
    A((16,), I32), shows="lookups of pages inside of a loop")

# ---- what comes behind ----


def nucleus(key, logits, p=0.9):
  order = jnp.argsort(-logits, -1)
  s = jnp.take_along_axis(logits, order, -1)
  mass = jnp.cumsum(jax.nn.softmax(s), -1)
  s = jnp.where(mass - jax.nn.softmax(s) < p, s, -1e30)
  return jnp.take_along_axis(order, jax.random.categorical(jax.random.wrap_key_data(key), s)[:, None], 1)[:, 0]


new("sample_nucleus_b16_v32000", nucleus, A((2,), U32), A((16, 32000), F32),
    shows="a sort with its places, cumulative sums, lookups along rows")
new("repetition_penalty_b32_v50304", lambda logits, seen: jax.vmap(lambda l, s: l.at[s].set(
    jnp.where(l[s] > 0, l[s] / 1.2, l[s] * 1.2)))(logits, seen), A((32, 50304), F32), A((32, 512), I32),
    shows="a gather and a scatter of single elements, by batches")


def beam(scores, logits, cache, k=4):
  """T5X: the best of all beams, and the cache in their order."""
  b, _, v = logits.shape
  top, flat = lax.top_k((scores[..., None] + jax.nn.log_softmax(logits.astype(F32))).reshape(b, -1), k)
  return top, flat % v, jax.tree.map(lambda c: jax.vmap(lambda c, i: c[i])(c, flat // v), cache)


new("beam_search_step_b16_k4_l512", beam, A((16, 4), F32), A((16, 4, 32000)), [A((16, 4, 512, 8, 64))] * 2,
    shows="integer quotients, a cache looked up in another order")
new("speculative_verify_b16_t5_l2048", lambda q, k, v, at: attend_few(q, k, v, at), A((16, 5, 16, 128)),
    A((16, 2048, 16, 128)), A((16, 2048, 16, 128)), A((16,), I32), shows="five queries by a cache")


def attend_few(q, k, v, at):
  s = jnp.einsum("bqhd,blhd->bhql", q, k).astype(F32) * q.shape[-1] ** -0.5
  places = at[:, None] + jnp.arange(q.shape[1])
  s = jnp.where(jnp.arange(k.shape[1]) <= places[:, None, :, None], s, -1e30)
  return jnp.einsum("bhql,blhd->bqhd", jax.nn.softmax(s).astype(v.dtype), v)


def lora(x, w, a, b, which):
  """Multi-LoRA serving: each row has its own low ranks."""
  return x @ w + jnp.einsum("br,bre->be", jnp.einsum("be,ber->br", x, a[which]), b[which])


new("multi_lora_m64_r16_4096", lora, A((64, 4096)), A((4096, 4096)), A((32, 4096, 16)), A((32, 16, 4096)),
    A((64,), I32), shows="adapters looked up row by row; batches of vectors by matrices")


# ---- several tokens at a time ----

def decode_few(w, cache, x, at):
  """A chunk of a prompt, or drafted tokens: written to the cache, then attended to."""
  b, t, e = x.shape
  y = rmsnorm(x, w["n1"])
  q, k, v = ((y @ w[n]).reshape(b, t, -1, 128) for n in "qkv")
  ck, cv = (lax.dynamic_update_slice(c, n, (0, at, 0, 0)) for c, n in zip(cache, (k, v)))
  x = x + attend_few(q, ck, cv, jnp.broadcast_to(at, (b,))).reshape(b, t, e) @ w["o"]
  y = rmsnorm(x, w["n2"])
  return (ck, cv), x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


new("chunked_prefill_256_b4_l4096", decode_few, block_weights(2048, 5504), (A((4, 4096, 16, 128)),) * 2,
    A((4, 256, 2048)), A((), I32),
    donate=(1,), shows="twin_turns_of_cache: a cache that is turned, updated and turned back")


def layers_few(w, caches, x, at):
  def one(s, wi):
    x, caches = s
    w, i = wi
    mine = tuple(lax.dynamic_index_in_dim(c, i, keepdims=False) for c in caches)
    mine, x = decode_few(w, mine, x, at)
    return (x, tuple(lax.dynamic_update_index_in_dim(c, m, i, 0) for c, m in zip(caches, mine))), None
  (x, caches), _ = lax.scan(one, (x, caches), (w, jnp.arange(4)))
  return caches, x


new("chunked_prefill_scan_4_layers_128_b4_l2048", layers_few, block_weights(1024, 4096, (4,)),
    (A((4, 4, 2048, 8, 128)),) * 2, A((4, 128, 1024)),
    A((), I32), donate=(1,), shows="twin_turns_of_cache: a stack of caches, turned before the loop")
