"""Programs on 16 devices."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from .blocks import adam, attention, block, block_weights, bottleneck, conv, keep, mlp, stacked, step, xent
from .decode import attend, decode
from .model import RESNET, gpt2_block, gpt2_weights, resnet_block
from .program import BF, F32, I32, A, sharded_of_class

opened, new = sharded_of_class("sharded")


def size(mesh, axis):
  return mesh.shape[axis]


def ring(mesh, axis, by=1):
  n = size(mesh, axis)
  return [(i, (i + by) % n) for i in range(n)]


def local(mesh, into, out, check=True):
  return lambda f: jax.shard_map(f, mesh=mesh, in_specs=into, out_specs=out, check_vma=check)


def varying(x, *axes):
  return lax.pcast(x, axes, to="varying")


FT = {"fsdp": 4, "tp": 4}


@opened("fsdp_mlp_forward", {"d": 16})
def _(mesh):
  return mlp, ([A((4096, 4096), BF, P("d"))] * 4, A((16384, 4096), BF, P("d")))


@opened("fsdp_mlp_step", {"d": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: mlp(w, x).astype(F32).mean()), ([A((4096, 4096), BF, P("d"))] * 4,
      A((16384, 4096), BF, P("d")))


@opened("tp_mlp_forward", {"t": 16})
def _(mesh):
  return mlp, ([A((4096, 16384), BF, P(None, "t")), A((16384, 4096), BF, P("t"))], A((2048, 4096)))


@opened("tp_mlp_step", {"t": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: mlp(w, x).astype(F32).mean()), (
      [A((4096, 16384), BF, P(None, "t")), A((16384, 4096), BF, P("t"))], A((2048, 4096)))


@opened("dp_mlp_step", {"d": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: mlp(w, x).astype(F32).mean()), ([A((2048, 2048))] * 6, A((16384, 2048), BF, P("d")))


@opened("dp_conv_step", {"d": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: bottleneck(x, *w).astype(F32).mean()), (
      (A((1, 1, 512, 128)), A((3, 3, 128, 128)), A((1, 1, 128, 512))), A((256, 28, 28, 512), BF, P("d")))


BOTH = dict(q=P("fsdp", "tp"), k=P("fsdp", "tp"), v=P("fsdp", "tp"), o=P("tp", "fsdp"), gate=P("fsdp", "tp"),
    up=P("fsdp", "tp"),
            down=P("tp", "fsdp"), other=P())
STACKED = {n: P(None, *s) for n, s in BOTH.items()}


@opened("fsdp_tp_block_forward", FT)
def _(mesh):
  return functools.partial(block, heads=16, constrain=keep(mesh, "fsdp", None, None)), (
      block_weights(2048, 8192, **BOTH), A((16, 1024, 2048), BF, P("fsdp")))


@opened("fsdp_tp_block_step", FT, donate=(0,))
def _(mesh):
  return step(lambda w, x: block(w, x, 16, keep(mesh, "fsdp", None, None)).astype(F32).mean()), (
      block_weights(2048, 8192, **BOTH), A((16, 1024, 2048), BF, P("fsdp")))


@opened("fsdp_tp_scan_step_remat", FT, donate=(0,))
def _(mesh):
  return step(lambda w, x: stacked(w, x, 16, True, keep(mesh, "fsdp", None, None)).astype(F32).mean()), (
      block_weights(2048, 8192, (4,), **STACKED), A((16, 512, 2048), BF, P("fsdp")))


@opened("fsdp_scan_step", {"d": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: stacked(w, x, 16, True, keep(mesh, "d", None, None)).astype(F32).mean()), (
      block_weights(2048, 8192, (4,), other=P(None, "d")), A((16, 1024, 2048), BF, P("d")))


@opened("sequence_parallel_block", {"t": 16})
def _(mesh):
  specs = dict(q=P(None, "t"), k=P(None, "t"), v=P(None, "t"), o=P("t"), gate=P(None, "t"), up=P(None, "t"),
      down=P("t"), other=P())
  return functools.partial(block, heads=16, constrain=keep(mesh, None, "t", None)), (
      block_weights(2048, 8192, **specs), A((2, 2048, 2048), BF, P(None, "t")))


@opened("moe_all_to_all", {"e": 16})
def _(mesh):
  def f(x, up, down):
    def local(x, up, down):  # [16 experts, capacity, d] of this device's tokens
      y = lax.all_to_all(x, "e", 0, 1, tiled=True)[0]
      y = jax.nn.gelu(y @ up[0]) @ down[0]
      return lax.all_to_all(y[None], "e", 1, 0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "e"), P("e"), P("e")), out_specs=P(None, "e"))(x, up,
        down)
  return f, (A((16, 2048, 1024), BF, P(None, "e")), A((16, 1024, 4096), BF, P("e")), A((16, 4096, 1024), BF, P("e")))


@opened("pipeline_ppermute", {"p": 16})
def _(mesh):
  stages = size(mesh, "p")
  def f(w, x):
    def local(w, x):  # x: 8 microbatches, all of them at stage 0
      stage, n = lax.axis_index("p"), x.shape[0]
      def tick(state, i):
        state = jnp.where(stage == 0, x[jnp.minimum(i, n - 1)], state)
        state = jnp.tanh(state @ w[0])
        return lax.ppermute(state, "p", ring(mesh, "p")), state
      start = lax.pcast(jnp.zeros(x.shape[1:], x.dtype), ("p",), to="varying")
      return lax.scan(tick, start, jnp.arange(n + stages - 1))[1][stages - 1:]
    return jax.shard_map(local, mesh=mesh, in_specs=(P("p"), P()), out_specs=P(None, "p"))(w, x)
  return f, (A((16, 2048, 2048), BF, P("p")), A((8, 512, 2048)))


@opened("ring_attention", {"s": 16})
def _(mesh):
  def f(q, k, v):
    def local(q, k, v):
      def turn(c, _):
        o, k, v = c
        o = o + attention(q, k, v, False).astype(F32)
        k, v = (lax.ppermute(y, "s", ring(mesh, "s")) for y in (k, v))
        return (o, k, v), None
      start = lax.pcast(jnp.zeros(q.shape, F32), ("s",), to="varying")
      return lax.scan(turn, (start, k, v), None, length=size(mesh, "s"))[0][0]
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "s"),) * 3, out_specs=P(None, "s"))(q, k, v)
  return f, tuple(A((1, 16384, 8, 128), BF, P(None, "s")) for _ in range(3))


@opened("vocab_parallel_loss_grad", FT)
def _(mesh):
  return jax.grad(lambda w, x, y: xent(x @ w, y), (0, 1)), (
      A((2048, 32768), BF, P("fsdp", "tp")), A((16384, 2048), BF, P("fsdp")), A((16384,), I32, P("fsdp")))


@opened("psum_overlap_matmul", {"d": 16})
def _(mesh):
  def f(x, a, b):
    return jax.shard_map(lambda x, a, b: (lax.psum(x, "d"), a @ b), mesh=mesh, in_specs=(P("d"), P(), P()),
                         out_specs=(P(), P()), check_vma=False)(x, a, b)
  return f, (A((16, 4096, 4096), BF, P("d")), A((4096, 4096)), A((4096, 4096)))


@opened("zero1_adam", {"d": 16}, donate=(0, 1, 2))
def _(mesh):
  w, s = A((8192, 8192), F32), A((8192, 8192), F32, P("d"))
  def f(p, m, v, x):
    g = jax.grad(lambda p: (x @ p.astype(BF)).astype(F32).mean())(p)
    g = keep(mesh, "d")(g)
    p2, m, v = (y[0] for y in adam([keep(mesh, "d")(p)], [m], [v], [g]))
    return keep(mesh)(p2), m, v
  return f, (w, s, s, A((4096, 8192), BF, P("d")))


# ---- more of each kind of parallelism: fully sharded weights ----
@new("fsdp_f32_masters_bf16_compute_step", {"d": 16}, donate=(0,),
    shows="weights in f32 that are gathered, in bf16 or as they are")
def _(mesh):
  loss = lambda w, x: mlp([a.astype(BF) for a in w], x).astype(F32).mean()
  return step(loss), ([A((2048, 8192), F32, P("d")), A((8192, 2048), F32, P("d"))], A((8192, 2048), BF, P("d")))


@new("fsdp_gpt2_scan_step_e1024", {"d": 16}, donate=(0,),
     shows="a scan over sharded stacks of layers with biases and norms")
def _(mesh):
  def loss(w, x):
    layer = jax.checkpoint(lambda x, l: keep(mesh, "d")(gpt2_block(l, x, 8)))
    return lax.scan(lambda x, l: (layer(x, l), None), x, w)[0].astype(F32).mean()
  w = gpt2_weights(1024, (4,))
  specs = {n: P(None, "d") for n in w}
  return step(loss), ({n: A(a.shape, a.dtype, specs[n]) for n, a in w.items()}, A((32, 512, 1024), BF, P("d")))


@new("fsdp_last_axis_mlp_forward", {"d": 16},
     shows="weights divided along the other dimension: gathers along columns")
def _(mesh):
  return mlp, ([A((4096, 8192), BF, P(None, "d")), A((8192, 4096), BF, P(None, "d"))], A((8192, 4096), BF, P("d")))


@new("fsdp_adam_moments_f32_step", {"d": 16}, donate=(0, 1, 2),
    shows="ZeRO 3: gradients scattered, moments where the weights are")
def _(mesh):
  s = [A((4096, 4096), F32, P("d")), A((4096, 4096), F32, P("d"))]
  def f(p, m, v, x):
    g = jax.grad(lambda p: mlp([a.astype(BF) for a in p], x).astype(F32).mean())(p)
    return adam(p, m, v, [keep(mesh, "d")(a) for a in g])
  return f, (s, s, s, A((8192, 4096), BF, P("d")))


@new("zero2_grads_scattered_step", {"d": 16}, donate=(0, 1),
    shows="whole weights, scattered gradients and momentum, a gather at the end")
def _(mesh):
  def f(p, m, x):
    g = keep(mesh, "d")(jax.grad(lambda p: jnp.tanh(x @ p.astype(BF)).astype(F32).mean())(p))
    m = 0.9 * m + g
    return keep(mesh)(keep(mesh, "d")(p) - 0.01 * m), m
  return f, (A((4096, 8192), F32), A((4096, 8192), F32, P("d")), A((16384, 4096), BF, P("d")))


@new("hsdp_2_replicas_8_shards_step", {"r": 2, "d": 8}, donate=(0,),
    shows="scatters inside of a group, sums between the groups")
def _(mesh):
  return step(lambda w, x: mlp(w, x).astype(F32).mean()), ([A((4096, 4096), BF, P("d"))] * 3,
      A((16384, 4096), BF, P(("r", "d"))))


# products whose factors are gathered or whose results are scattered

@new("collective_matmul_gather_lhs", {"t": 16}, shows="twin_rings: activations gathered for a matmul")
def _(mesh):
  return lambda x, w: keep(mesh, None, "t")(x @ w), (A((8192, 4096), BF, P("t")), A((4096, 8192), BF, P(None, "t")))


@new("collective_matmul_scatter_result", {"t": 16}, shows="twin_rings: a sum that is scattered by rows")
def _(mesh):
  return lambda x, w: keep(mesh, "t")(x @ w), (A((8192, 8192), BF, P(None, "t")), A((8192, 4096), BF, P("t")))


@new("collective_matmul_ring_by_hand_gather", {"t": 16}, shows="a ring of permutes and matmuls in a loop")
def _(mesh):
  n = size(mesh, "t")
  def f(x, w):
    @local(mesh, (P("t"), P(None, "t")), P(None, "t"))
    def inside(x, w):
      rows = x.shape[0]
      def turn(c, i):
        x, out = c
        out = lax.dynamic_update_slice(out, x @ w, ((lax.axis_index("t") - i) % n * rows, 0))
        return (lax.ppermute(x, "t", ring(mesh, "t")), out), None
      start = varying(jnp.zeros((rows * n, w.shape[1]), x.dtype), "t")
      return lax.scan(turn, (x, start), jnp.arange(n))[0][1]
    return inside(x, w)
  return f, (A((8192, 4096), BF, P("t")), A((4096, 8192), BF, P(None, "t")))


@new("collective_matmul_two_ways_by_hand", {"t": 16}, shows="halves that go round both ways")
def _(mesh):
  n = size(mesh, "t")
  def f(x, w):
    @local(mesh, (P(None, "t"), P("t")), P("t"))
    def inside(x, w):
      rows = x.shape[0] // n
      part = lambda i: lax.dynamic_slice_in_dim(x, i % n * rows, rows) @ w
      here = lax.axis_index("t")
      a = b = varying(jnp.zeros((rows, w.shape[1] // 2), x.dtype), "t")
      half = w.shape[1] // 2
      for i in range(n):
        a = lax.ppermute(a, "t", ring(mesh, "t")) if i else a
        b = lax.ppermute(b, "t", ring(mesh, "t", -1)) if i else b
        a, b = a + part(here - i - 1 + n)[:, :half], b + part(here + i + 1)[:, half:]
      return jnp.concatenate([a, b], 1)
    return inside(x, w)
  return f, (A((2048, 8192), BF, P(None, "t")), A((8192, 2048), BF, P("t")))


@new("gather_both_factors_2d", {"x": 4, "y": 4}, shows="twin_rings_longer: two factors that are gathered")
def _(mesh):
  return lambda a, b: keep(mesh, "x", "y")(a @ b), (A((8192, 8192), BF, P("x", "y")),
      A((8192, 8192), BF, P("x", "y")))


@new("weight_stationary_2d_inference", {"x": 4, "y": 4},
     shows="gathers and sums over both axes around narrow activations")
def _(mesh):
  def f(w, x):
    for up, down in w:
      h = keep(mesh, None, ("y",))(jax.nn.gelu(keep(mesh, None, "y")(keep(mesh, None, "x")(x) @ up)))
      x = keep(mesh, None, "x")(h @ down)
    return x
  w = [(A((4096, 16384), BF, P("x", "y")), A((16384, 4096), BF, P("y", "x")))] * 2
  return f, (w, A((512, 4096), BF, P(None, "x")))


@new("transposed_weight_gather_4x4", {"x": 4, "y": 4},
     shows="a weight that is gathered and transposed")
def _(mesh):
  return lambda x, w: keep(mesh, "x")(x @ w.T), (A((16384, 4096), BF, P("x")), A((4096, 4096), BF, P("y")))


# tensors and sequences

@new("tp_attention_heads_gqa", {"d": 2, "t": 8}, shows="heads over eight devices, fewer heads of keys")
def _(mesh):
  def f(x, wq, wk, wv, wo):
    q, k, v = (jnp.einsum("ble,ehd->blhd", x, w) for w in (wq, wk, wv))
    k, v = (jnp.repeat(y, 4, 2) for y in (k, v))
    return keep(mesh, "d")(jnp.einsum("blhd,hde->ble", attention(q, k, v), wo))
  heads = P(None, "t")
  return f, (A((4, 1024, 2048), BF, P("d")), A((2048, 32, 64), BF, heads), A((2048, 8, 64), BF, heads),
      A((2048, 8, 64), BF, heads), A((32, 64, 2048), BF, P("t")))


@new("tp_gpt2_block_grad", {"d": 2, "t": 8}, shows="Megatron's two sums forward and two back")
def _(mesh):
  specs = {"qkv": P(None, "t"), "o": P("t"), "up": P(None, "t"), "down": P("t"), "bqkv": P("t"), "bup": P("t")}
  w = {n: A(a.shape, a.dtype, specs.get(n, P())) for n, a in gpt2_weights(2048).items()}
  return jax.grad(lambda w, x: keep(mesh, "d")(gpt2_block(w, x, 16)).astype(F32).mean()), (w,
      A((8, 512, 2048), BF, P("d")))


@new("sp_norms_megatron_block_step", {"d": 2, "t": 8}, donate=(0,),
    shows="norms along the sequence, gathers and scatters around matmuls")
def _(mesh):
  specs = dict(q=P(None, "t"), k=P(None, "t"), v=P(None, "t"), o=P("t"), gate=P(None, "t"), up=P(None, "t"),
      down=P("t"), other=P())
  loss = lambda w, x: block(w, x, 16, keep(mesh, "d", "t", None)).astype(F32).mean()
  return step(loss), (block_weights(2048, 5632, **specs), A((8, 1024, 2048), BF, P("d", "t")))


@new("ulysses_all_to_all_attention", {"s": 16}, shows="sequence to heads and back: two exchanges")
def _(mesh):
  def f(q, k, v):
    @local(mesh, (P(None, "s"),) * 3, P(None, "s"))
    def inside(q, k, v):
      q, k, v = (lax.all_to_all(y, "s", 2, 1, tiled=True) for y in (q, k, v))
      return lax.all_to_all(attention(q, k, v), "s", 1, 2, tiled=True)
    return inside(q, k, v)
  return f, tuple(A((1, 4096, 32, 128), BF, P(None, "s")) for _ in range(3))


@new("ring_attention_online_softmax", {"s": 16}, shows="permutes of keys beside matmuls, a running maximum")
def _(mesh):
  n = size(mesh, "s")
  def f(q, k, v):
    @local(mesh, (P(None, "s"),) * 3, P(None, "s"))
    def inside(q, k, v):
      def turn(c, _):
        o, m, l, k, v = c
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) * 128 ** -0.5
        top = jnp.maximum(m, s.max(-1))
        p, old = jnp.exp(s - top[..., None]), jnp.exp(m - top)
        o = o * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", p.astype(BF), v).astype(F32)
        k, v = (lax.ppermute(y, "s", ring(mesh, "s")) for y in (k, v))
        return (o, top, l * old + p.sum(-1), k, v), None
      b, t, h, d = q.shape
      start = tuple(varying(y, "s") for y in (jnp.zeros((b, h, t, d), F32), jnp.full((b, h, t), -1e30),
          jnp.zeros((b, h, t), F32)))
      o, _, l, _, _ = lax.scan(turn, (*start, k, v), None, length=n)[0]
      return (o / l[..., None]).swapaxes(1, 2).astype(BF)
    return inside(q, k, v)
  return f, tuple(A((1, 16384, 8, 128), BF, P(None, "s")) for _ in range(3))


@new("context_parallel_gathered_keys", {"s": 16}, shows="keys and values gathered for queries in parts")
def _(mesh):
  def f(q, k, v):
    k, v = (keep(mesh)(y) for y in (k, v))
    return keep(mesh, None, "s")(attention(q, k, v))
  return f, tuple(A((1, 8192, 8, 128), BF, P(None, "s")) for _ in range(3))


@new("decode_tp_cache_heads_b32_l2048", {"d": 2, "t": 8}, donate=(1,),
    shows="a step of decoding with heads over eight devices")
def _(mesh):
  cache = A((32, 2048, 16, 128), BF, P("d", None, "t"))
  specs = dict(q=P(None, "t"), k=P(None, "t"), v=P(None, "t"), o=P("t"), gate=P(None, "t"), up=P(None, "t"),
      down=P("t"), other=P())
  return decode, (block_weights(2048, 8192, **specs), (cache, cache), A((32, 1, 2048), BF, P("d")), A((), I32))


@new("decode_cache_over_sequence_b8_l16384", {"s": 16}, shows="a softmax over parts of a cache: small sums")
def _(mesh):
  cache = A((8, 16384, 8, 128), BF, P(None, "s"))
  return attend, (A((8, 32, 128)), cache, cache, A((), I32))


# experts

@new("ep_einsum_all_to_all_by_sharding", {"e": 16}, shows="exchanges that partitioning makes of constraints")
def _(mesh):
  def f(x, up, down):  # [groups, experts, capacity, d]
    y = keep(mesh, None, "e")(x)
    y = jnp.einsum("gecf,efd->gecd", jax.nn.gelu(jnp.einsum("gecd,edf->gecf", y, up)), down)
    return keep(mesh, "e")(y)
  return f, (A((16, 16, 256, 1024), BF, P("e")), A((16, 1024, 4096), BF, P("e")), A((16, 4096, 1024), BF, P("e")))


@new("ep_dropless_step_by_hand", {"e": 16}, shows="exchange, matmuls of experts, exchange, and their gradients")
def _(mesh):
  n = size(mesh, "e")
  def loss(w, x):
    @local(mesh, (P("e"), P("e"), P("e")), P("e"))
    def inside(up, down, x):  # x: [experts, tokens for each, d] of this device
      y = lax.all_to_all(x, "e", 0, 1, tiled=True)
      y = jnp.einsum("ecf,efd->ecd", jax.nn.relu(jnp.einsum("ecd,edf->ecf", y, up)), down)
      return lax.all_to_all(y, "e", 1, 0, tiled=True)
    return inside(w["up"], w["down"], x).astype(F32).mean()
  return step(loss), ({"up": A((16, 1024, 2048), BF, P("e")), "down": A((16, 2048, 1024), BF, P("e"))},
      A((16 * n, 128, 1024), BF, P("e")))


@new("ep_tp_mixed_experts_forward", {"e": 4, "t": 4}, shows="experts over one axis, their columns over the other")
def _(mesh):
  def f(x, up, down):
    y = keep(mesh, "e")(x)
    h = keep(mesh, "e", None, "t")(jax.nn.silu(jnp.einsum("ecd,edf->ecf", y, up)))
    return keep(mesh, "e")(jnp.einsum("ecf,efd->ecd", h, down))
  return f, (A((8, 2048, 2048), BF, P("e", "t")), A((8, 2048, 8192), BF, P("e", None, "t")),
      A((8, 8192, 2048), BF, P("e", "t")))


# stages

@new("pipeline_gpipe_scan_mlp", {"p": 16}, shows="a loop of stages with a permute in each round")
def _(mesh):
  n = size(mesh, "p")
  def f(w, x):
    @local(mesh, (P("p"), P()), P("p"))
    def inside(w, x):
      stage = lax.axis_index("p")
      def tick(state, i):
        state = jnp.where(stage == 0, x[jnp.minimum(i, 7)], state)
        state = state + jax.nn.gelu(state @ w["up"][0]) @ w["down"][0]
        return lax.ppermute(state, "p", ring(mesh, "p")), state
      out = lax.scan(tick, varying(jnp.zeros(x.shape[1:], x.dtype), "p"), jnp.arange(n + 7))[1]
      return out[None, n - 1:]
    return inside(w, x)
  return f, ({"up": A((16, 1024, 4096), BF, P("p")), "down": A((16, 4096, 1024), BF, P("p"))}, A((8, 512, 1024)))


@new("pipeline_maxtext_vmap_roll", {"p": 16}, shows="stages by vmap, a roll of the states as a permute")
def _(mesh):
  def f(w, x):
    state = keep(mesh, "p")(jnp.zeros((w.shape[0], *x.shape[1:]), x.dtype))
    def tick(state, x):
      state = keep(mesh, "p")(jnp.roll(state, 1, 0).at[0].set(x))
      state = keep(mesh, "p")(jax.vmap(lambda w, s: jax.nn.relu(s @ w))(w, state))
      return state, state[-1]
    return lax.scan(tick, state, x)[1]
  return f, (A((16, 2048, 2048), BF, P("p")), A((12, 512, 2048)))


# data, images, embeddings

@new("dp_resnet_train_step_synced_norm", {"d": 16}, donate=(0,),
    shows="statistics and gradients added up over all devices")
def _(mesh):
  w = {n: A(a.shape, a.dtype, P()) for n, a in RESNET.items()}
  return step(lambda w, x: resnet_block(w, x).astype(F32).mean()), (w, A((256, 28, 28, 512), BF, P("d")))


@new("dp_adam_many_small_gradients", {"d": 16}, donate=(0, 1, 2),
    shows="schedule/combine: fifty sums that become a few")
def _(mesh):
  w = [A((512, 512), F32)] * 25 + [A((512,), F32)] * 25
  def loss(w, x):
    for a, b in zip(w[:25], w[25:]):
      x = jax.nn.relu(x @ a.astype(BF) + b.astype(BF))
    return x.astype(F32).mean()
  return lambda p, m, v, x: adam(p, m, v, jax.grad(loss)(p, x)), (w, w, w, A((16384, 512), BF, P("d")))


@new("spatial_conv_halo_512", {"h": 16}, shows="rows of an image over devices: permutes of neighbours' rows")
def _(mesh):
  return lambda x, w: keep(mesh, None, "h")(conv(x, w)), (A((8, 512, 512, 32), BF, P(None, "h")), A((3, 3, 32, 64)))


@new("stencil_halo_roll_8192", {"x": 4, "y": 4},
     shows="rolls of a divided grid: permutes of rows and columns in a loop")
def _(mesh):
  def f(u):
    return lax.fori_loop(0, 10, lambda i, u: keep(mesh, "x",
        "y")(u + 0.1 * (sum(jnp.roll(u, s, d) for d in (0, 1) for s in (1, -1)) - 4 * u)), u)
  return f, (A((8192, 8192), F32, P("x", "y")),)


@new("embedding_rows_over_devices", {"d": 16}, shows="a lookup in a table divided by rows, its gradient")
def _(mesh):
  def f(t, i, g):
    return jax.vjp(lambda t: keep(mesh, "d")(t[i]), t)[1](g)[0]
  return f, (A((131072, 128), F32, P("d")), A((16384,), I32, P("d")), A((16384, 128), F32, P("d")))


@new("contrastive_gathered_negatives", {"d": 16}, shows="embeddings gathered, logits in parts, gradients scattered")
def _(mesh):
  def loss(x, y):
    logits = x @ keep(mesh)(y).T
    return xent(logits, jnp.arange(x.shape[0]))
  return jax.grad(loss, (0, 1)), (A((16384, 512), BF, P("d")), A((16384, 512), BF, P("d")))


@new("mesh_3d_fsdp_sp_tp_block_step", {"fsdp": 2, "sp": 2, "tp": 4}, donate=(0,), shows="three axes in one step")
def _(mesh):
  specs = dict(q=P("fsdp", "tp"), k=P("fsdp", "tp"), v=P("fsdp", "tp"), o=P("tp", "fsdp"), gate=P("fsdp", "tp"),
      up=P("fsdp", "tp"), down=P("tp", "fsdp"), other=P())
  loss = lambda w, x: block(w, x, 16, keep(mesh, "fsdp", "sp", None)).astype(F32).mean()
  return step(loss), (block_weights(2048, 8192, **specs), A((8, 1024, 2048), BF, P("fsdp", "sp")))


@new("host_offloaded_scan_activations", {"d": 16}, shows="twin_host: activations of layers on the host")
def _(mesh):
  policy = jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[],
      names_which_can_be_offloaded=["input"], offload_src="device",
                                                                     offload_dst="pinned_host")
  def loss(w, x):
    def layer(x, w):
      x = checkpoint_name(keep(mesh, "d")(x), "input")
      return jnp.tanh(x @ w), None
    return lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].astype(F32).mean()
  return step(loss), (A((6, 2048, 2048), BF, P(None, "d")), A((16384, 2048), BF, P("d")))


@new("reduce_then_broadcast_norm_clip", {"d": 16}, donate=(0,),
    shows="the global norm of divided gradients: sums of single numbers")
def _(mesh):
  w = [A((4096, 2048), F32, P("d"))] * 4
  def f(p, g):
    norm = jnp.sqrt(sum((x * x).sum() for x in g))
    return [a - 0.1 * b * jnp.minimum(1, 1 / norm) for a, b in zip(p, g)]
  return f, (w, w)


@new("swap_sharded_axes_exchange", {"x": 4, "y": 4}, shows="rows become columns: an exchange between devices")
def _(mesh):
  return lambda a: keep(mesh, "y", "x")(jnp.tanh(a)), (A((8192, 8192), BF, P("x", "y")),)


# ---- for rules with narrow conditions ----

@new("fsdp_tp_rows_scattered_block", FT,
     shows="a weight to gather, and a sum to scatter by rows that are divided already")
def _(mesh):
  return functools.partial(block, heads=16, constrain=keep(mesh, "fsdp", "tp", None)), (
      block_weights(2048, 8192, **BOTH), A((16, 1024, 2048), BF, P("fsdp", "tp")))


@new("gathered_rows_kept_and_summed_grad", {"t": 16},
     shows="rows gathered for a matmul that keeps them and for one that sums over them")
def _(mesh):
  loss = lambda w, x: (keep(mesh, None, "t")(x @ w).astype(F32) ** 2).mean()
  return jax.grad(loss, (0, 1)), (A((4096, 8192), BF, P(None, "t")), A((8192, 4096), BF, P("t")))


@new("gathered_whole_then_transposed", {"d": 16},
     shows="what an annotation gathers, then a cast and a transpose: no ring")
def _(mesh):
  return lambda x, w: x @ keep(mesh)(w).T.astype(BF), (A((16384, 4096), BF, P("d")), A((4096, 4096), F32, P("d")))


@new("cond_sync_gradients_every_4", {"d": 16}, donate=(0, 1), shows="twin_case: branches in which devices meet")
def _(mesh):
  def f(w, g, x, i):
    @local(mesh, (P(), P("d"), P("d"), P()), (P(), P("d")), False)
    def inside(w, g, x, i):
      g = g + jax.grad(lambda w: jnp.tanh(x @ w).astype(F32).mean())(w)[None].astype(F32)
      sync = lambda w, g: (w - 0.01 * lax.pmean(g[0], "d").astype(BF), jnp.zeros_like(g))
      return lax.cond(i % 4 == 3, sync, lambda w, g: (w, g), w, g)
    return inside(w, g, x, i)
  return f, (A((4096, 4096)), A((size(mesh, "d"), 4096, 4096), F32, P("d")), A((16384, 4096), BF, P("d")), A((), I32))


@new("local_scan_beside_weight_gather", {"d": 16},
     shows="twin_order_graph_control_seconds: a loop on each device beside collectives")
def _(mesh):
  def f(x, a, w):
    h = lax.scan(lambda h, t: (lambda h: (h, h))(t[0] * h + t[1]), jnp.zeros(x.shape[1:], F32), (a, x))[1]
    return keep(mesh, None, "d")(h.astype(BF) @ w)
  rows = P(None, "d")
  return f, (A((64, 1024, 1024), F32, rows), A((64, 1024, 1024), F32, rows), A((1024, 4096), BF, P("d")))


@new("parallel_residual_two_products_scattered", {"t": 16},
     shows="twin_rings_copy: two matmuls whose sum is scattered, as in PaLM's blocks")
def _(mesh):
  parts = P(None, "t")
  return lambda a, h, wo, down: keep(mesh, "t")(a @ wo + h @ down), (
      A((8192, 4096), BF, parts), A((8192, 16384), BF, parts), A((4096, 4096), BF, P("t")),
      A((16384, 4096), BF, P("t")))


@new("fsdp_tp_down_projection_both_axes", FT,
     shows="twin_rings_choose: columns to gather, a sum to scatter along columns")
def _(mesh):
  return lambda h, down: keep(mesh, "fsdp", "tp")(h @ down), (A((16384, 8192), BF, P("fsdp", "tp")),
      A((8192, 4096), BF, P("tp", "fsdp")))


@new("fsdp_tp_projection_short_sums_2048", FT,
     shows="twin_rings_choose: a matmul shorter than its gather and its scatter")
def _(mesh):
  return lambda h, down: keep(mesh, "fsdp", "tp")(h @ down), (
      A((2048, 2048), BF, P("fsdp", "tp")), A((2048, 16384), BF, P("tp", "fsdp")))


@new("fsdp_tp_mlp_step_columns_kept", FT, donate=(0,),
     shows="twin_rings_choose: a step whose activations stay divided by columns")
def _(mesh):
  def loss(w, x):
    h = keep(mesh, "fsdp", "tp")(jax.nn.relu(x @ w["up"]))
    return keep(mesh, "fsdp", "tp")(h @ w["down"]).astype(F32).mean()
  return step(loss), ({"up": A((4096, 16384), BF, P("fsdp", "tp")), "down": A((16384, 4096), BF, P("tp", "fsdp"))},
                      A((16384, 4096), BF, P("fsdp", "tp")))


@new("fsdp_f32_transposed_weight_tied_head", FT,
     shows="a tied embedding in f32, cast and transposed for the logits")
def _(mesh):
  return lambda x, w: keep(mesh, "fsdp", "tp")(x @ w.astype(BF).T), (A((8192, 4096), BF, P("fsdp")),
      A((32768, 4096), F32, P("tp", "fsdp")))
