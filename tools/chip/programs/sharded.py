"""Programs on 16 devices."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from .blocks import adam, attention, block, block_weights, bottleneck, keep, mlp, stacked, step, xent
from .program import BF, F32, I32, A, sharded_of_class

opened, new = sharded_of_class("sharded")

FT = {"fsdp": 4, "tp": 4}


@opened("fsdp_mlp_forward", {"d": 16})
def _(mesh):
  return mlp, ([A((4096, 4096), BF, P("d"))] * 4, A((16384, 4096), BF, P("d")))


@opened("fsdp_mlp_step", {"d": 16}, donate=(0,))
def _(mesh):
  return step(lambda w, x: mlp(w, x).astype(F32).mean()), ([A((4096, 4096), BF, P("d"))] * 4, A((16384, 4096), BF, P("d")))


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


BOTH = dict(q=P("fsdp", "tp"), k=P("fsdp", "tp"), v=P("fsdp", "tp"), o=P("tp", "fsdp"), gate=P("fsdp", "tp"), up=P("fsdp", "tp"),
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
  specs = dict(q=P(None, "t"), k=P(None, "t"), v=P(None, "t"), o=P("t"), gate=P(None, "t"), up=P(None, "t"), down=P("t"), other=P())
  return functools.partial(block, heads=16, constrain=keep(mesh, None, "t", None)), (
      block_weights(2048, 8192, **specs), A((2, 2048, 2048), BF, P(None, "t")))


@opened("moe_all_to_all", {"e": 16})
def _(mesh):
  def f(x, up, down):
    def local(x, up, down):  # [16 experts, capacity, d] of this device's tokens
      y = lax.all_to_all(x, "e", 0, 1, tiled=True)[0]
      y = jax.nn.gelu(y @ up[0]) @ down[0]
      return lax.all_to_all(y[None], "e", 1, 0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "e"), P("e"), P("e")), out_specs=P(None, "e"))(x, up, down)
  return f, (A((16, 2048, 1024), BF, P(None, "e")), A((16, 1024, 4096), BF, P("e")), A((16, 4096, 1024), BF, P("e")))


@opened("pipeline_ppermute", {"p": 16})
def _(mesh):
  def f(w, x):
    def local(w, x):  # x: 8 microbatches, all of them at stage 0
      stage, n = lax.axis_index("p"), x.shape[0]
      def tick(state, i):
        state = jnp.where(stage == 0, x[jnp.minimum(i, n - 1)], state)
        state = jnp.tanh(state @ w[0])
        return lax.ppermute(state, "p", [(k, (k + 1) % 16) for k in range(16)]), state
      start = lax.pcast(jnp.zeros(x.shape[1:], x.dtype), ("p",), to="varying")
      return lax.scan(tick, start, jnp.arange(n + 15))[1][15:]
    return jax.shard_map(local, mesh=mesh, in_specs=(P("p"), P()), out_specs=P(None, "p"))(w, x)
  return f, (A((16, 2048, 2048), BF, P("p")), A((8, 512, 2048)))


@opened("ring_attention", {"s": 16})
def _(mesh):
  def f(q, k, v):
    def local(q, k, v):
      def turn(c, _):
        o, k, v = c
        o = o + attention(q, k, v, False).astype(F32)
        k, v = (lax.ppermute(y, "s", [(i, (i + 1) % 16) for i in range(16)]) for y in (k, v))
        return (o, k, v), None
      start = lax.pcast(jnp.zeros(q.shape, F32), ("s",), to="varying")
      return lax.scan(turn, (start, k, v), None, length=16)[0][0]
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
