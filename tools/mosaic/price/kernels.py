"""Pallas kernels whose price is compared with libtpu's bundles: each a function and its arguments' shapes.

The SHA-256 of a name decides whether the kernel is in *fit* or *held-out* (tools/chip/corpus.py).
"""

import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.tpu import flash_attention as flash
from jax.experimental.pallas.ops.tpu import matmul as matmuls
from jax.experimental.pallas.ops.tpu import megablox
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
import jax.numpy as jnp

S = jax.ShapeDtypeStruct
f32, bf16, s8, s32 = jnp.float32, jnp.bfloat16, jnp.int8, jnp.int32
KERNELS = {}  # name -> function that gives a function and its arguments


def kernel(name, function, *args):
  assert name not in KERNELS
  KERNELS[name] = (function, args)


# ---- matmuls ----

def accumulate(x, y, o, total, *, steps, transposed=False):
  @pl.when(pl.program_id(2) == 0)
  def clear():
    total[...] = jnp.zeros_like(total)

  dims = (((1,), (1 if transposed else 0,)), ((), ()))
  total[...] += jax.lax.dot_general(x[...], y[...], dims, preferred_element_type=total.dtype)

  @pl.when(pl.program_id(2) == steps - 1)
  def store():
    o[...] = total[...].astype(o.dtype)


def matmul(size, block, dtype=bf16, out=f32, transposed=False):
  (m, k, n), (bm, bk, bn) = size, block
  total = s32 if dtype == s8 else f32
  rhs, rhs_block, index = (k, n), (bk, bn), lambda i, j, l: (l, j)
  if transposed:
    rhs, rhs_block, index = (n, k), (bn, bk), lambda i, j, l: (j, l)
  call = pl.pallas_call(
      functools.partial(accumulate, steps=k // bk, transposed=transposed), out_shape=S((m, n), out),
      grid=(m // bm, n // bn, k // bk),
      in_specs=[pl.BlockSpec((bm, bk), lambda i, j, l: (i, l)), pl.BlockSpec(rhs_block, index)],
      out_specs=pl.BlockSpec((bm, bn), lambda i, j, l: (i, j)), scratch_shapes=[pltpu.VMEM((bm, bn), total)],
      compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")))
  return call, S((m, k), dtype), S(rhs, dtype)


BLOCKS = [(128, 128, 128), (256, 256, 256), (512, 512, 512), (512, 1024, 1024), (1024, 512, 1024), (256, 2048, 256),
          (1024, 256, 1024), (128, 512, 1024), (256, 512, 512), (1024, 1024, 512)]
for bm, bk, bn in BLOCKS:
  kernel(f"matmul_2048_by_{bm}_{bk}_{bn}", *matmul((2048, 2048, 2048), (bm, bk, bn)))
kernel("matmul_4096_by_1024_512_1024", *matmul((4096, 4096, 4096), (1024, 512, 1024)))
kernel("matmul_1024_f32_by_256", *matmul((1024, 1024, 1024), (256, 256, 256), f32))
kernel("matmul_1024_f32_by_512", *matmul((1024, 1024, 1024), (512, 512, 512), f32))
kernel("matmul_2048_s8_by_512", *matmul((2048, 2048, 2048), (512, 512, 512), s8, s32))
kernel("matmul_2048_s8_by_1024", *matmul((2048, 2048, 2048), (1024, 512, 1024), s8, s32))
kernel("matmul_2048_nt_by_512", *matmul((2048, 2048, 2048), (512, 512, 512), transposed=True))
kernel("matmul_2048_nt_by_256", *matmul((2048, 2048, 2048), (256, 512, 256), transposed=True))
kernel("matmul_16_rows", *matmul((16, 4096, 4096), (16, 1024, 512)))
kernel("matmul_64_rows", *matmul((64, 4096, 4096), (64, 512, 1024)))
kernel("matmul_bf16_result", *matmul((1024, 1024, 1024), (256, 512, 256), bf16, bf16))
for block in ((256, 256), (512, 512), (512, 1024)):
  call = functools.partial(matmuls.matmul, block_shape=block, block_k=512)
  kernel("jax_matmul_by_{}_{}".format(*block), call, S((2048, 2048), bf16), S((2048, 2048), bf16))


# ---- blocks of rows ----

def rows(body, shape, block, dtype=f32, out=None, count=1, out_shape=None, out_block=None):
  """A kernel over blocks of `count` arrays of one shape."""
  grid = tuple(a // b for a, b in zip(shape, block))
  spec = pl.BlockSpec(block, lambda i, j: (i, j))
  result = pl.BlockSpec(out_block or block, lambda i, j: (i, j))
  call = pl.pallas_call(body, out_shape=S(out_shape or shape, out or dtype), grid=grid, in_specs=[spec] * count,
                        out_specs=result)
  return call, *[S(shape, dtype)] * count


def unary(function):
  def body(x, o):
    o[...] = function(x[...]).astype(o.dtype)
  return body


def binary(function):
  def body(x, y, o):
    o[...] = function(x[...], y[...]).astype(o.dtype)
  return body


W, B = (4096, 1024), (256, 1024)
UNARY = {
    "copy": lambda x: x, "scale": lambda x: x * 2 + 1, "exp": jnp.exp, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid,
    "silu": jax.nn.silu, "gelu": jax.nn.gelu, "rsqrt": jax.lax.rsqrt, "sqrt": jnp.sqrt, "log": jnp.log,
    "reciprocal": lambda x: 1 / x, "relu": jax.nn.relu, "sin": jnp.sin, "erf": jax.lax.erf,
    "polynomial": lambda x: ((((x * 2 + 1) * x + 3) * x + 5) * x + 7) * x + 9, "exp2": jnp.exp2,
    "round": jnp.round, "abs_max": lambda x: jnp.maximum(jnp.abs(x), 1), "power": lambda x: jnp.abs(x) ** 1.7,
}
for name, function in UNARY.items():
  kernel(f"{name}_f32", *rows(unary(function), W, B))
for name in ("copy", "scale", "exp", "tanh", "gelu", "silu"):
  kernel(f"{name}_bf16", *rows(unary(UNARY[name]), W, B, bf16))
kernel("add_f32", *rows(binary(jnp.add), W, B, count=2))
kernel("add_bf16", *rows(binary(jnp.add), W, B, bf16, count=2))
kernel("div_f32", *rows(binary(jnp.divide), W, B, count=2))
kernel("swiglu_bf16", *rows(binary(lambda x, y: jax.nn.silu(x.astype(f32)) * y.astype(f32)), W, B, bf16, count=2))
kernel("select_f32", *rows(binary(lambda x, y: jnp.where(x > y, x, y * 2)), W, B, count=2))
kernel("shift_s32", *rows(unary(lambda x: ((x >> 3) ^ (x << 5)) + x), W, B, s32))
kernel("multiply_s32", *rows(unary(lambda x: x * x + 7), W, B, s32))
kernel("to_bf16", *rows(unary(lambda x: x), W, B, f32, bf16))
kernel("from_bf16", *rows(unary(lambda x: x), W, B, bf16, f32))
kernel("to_s8", *rows(unary(lambda x: jnp.round(x * 12)), W, B, f32, s8))
kernel("from_s8", *rows(unary(lambda x: x.astype(f32) * 0.5), W, B, s8, f32))
kernel("add_small_blocks", *rows(binary(jnp.add), (1024, 1024), (8, 128), count=2))
kernel("add_rows_of_8", *rows(binary(jnp.add), (4096, 1024), (8, 1024), count=2))
kernel("mask_iota", *rows(unary(lambda x: jnp.where(
    jax.lax.broadcasted_iota(s32, x.shape, 1) <= jax.lax.broadcasted_iota(s32, x.shape, 0), x, -1e9)), W, B))


# ---- along rows and columns ----

def softmax(x):
  e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
  return e / jnp.sum(e, axis=1, keepdims=True)


def norm(x):
  x = x.astype(f32)
  mean = jnp.mean(x, axis=1, keepdims=True)
  return (x - mean) * jax.lax.rsqrt(jnp.mean((x - mean) ** 2, axis=1, keepdims=True) + 1e-5)


def rms(x):
  x = x.astype(f32)
  return x * jax.lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + 1e-5)


for name, function in {"softmax": softmax, "layer_norm": norm, "rms_norm": rms}.items():
  for width in (128, 1024, 4096):
    kernel(f"{name}_{width}", *rows(unary(function), (1024, width), (128, width)))
  kernel(f"{name}_bf16", *rows(unary(lambda x, f=function: f(x.astype(f32))), (1024, 2048), (128, 2048), bf16))
spread = lambda reduce: lambda x: jnp.broadcast_to(reduce(x, axis=1, keepdims=True), (x.shape[0], 128))
for name, reduce in {"row_sum": jnp.sum, "row_max": jnp.max}.items():
  kernel(name, *rows(unary(spread(reduce)), (2048, 1024), (256, 1024), out_shape=(2048, 128), out_block=(256, 128)))
column = lambda x: jnp.broadcast_to(jnp.sum(x, axis=0, keepdims=True), (8, x.shape[1]))
kernel("column_sum", *rows(unary(column), (2048, 1024), (256, 1024), out_shape=(64, 1024), out_block=(8, 1024)))
kernel("transpose_f32", *rows(unary(lambda x: x.T), (1024, 1024), (1024, 1024)))
kernel("transpose_bf16", *rows(unary(lambda x: x.T), (512, 512), (512, 512), bf16))
kernel("transpose_128", *rows(unary(lambda x: x.T), (2048, 128), (128, 128), out_shape=(2048, 128)))
kernel("roll_lanes", *rows(unary(lambda x: pltpu.roll(x, 3, 1)), W, B))
kernel("roll_sublanes", *rows(unary(lambda x: pltpu.roll(x, 3, 0)), W, B))
kernel("concatenate", *rows(unary(lambda x: jnp.concatenate([-x[:, 512:], x[:, :512]], axis=1)), W, B))
kernel("rope", *rows(unary(lambda x: x * 0.5 + jnp.concatenate([-x[:, 64:], x[:, :64]], axis=1) * 0.7), (8192, 128),
                     (1024, 128)))
kernel("reshape_heads", *rows(unary(lambda x: jnp.sum(x.reshape(32, 8, 1024), axis=1)), (2048, 1024), (256, 1024),
                              out_shape=(256, 1024), out_block=(32, 1024)))


# ---- fusions and loops ----

def fused(x, w, b, o):
  o[...] = jax.nn.gelu(jnp.dot(x[...], w[...], preferred_element_type=f32) + b[...]).astype(o.dtype)


kernel("matmul_gelu", pl.pallas_call(
    fused, out_shape=S((2048, 2048), bf16), grid=(8, 4),
    in_specs=[pl.BlockSpec((256, 1024), lambda i, j: (i, 0)), pl.BlockSpec((1024, 512), lambda i, j: (0, j)),
              pl.BlockSpec((1, 512), lambda i, j: (0, j))],
    out_specs=pl.BlockSpec((256, 512), lambda i, j: (i, j))), S((2048, 1024), bf16), S((1024, 2048), bf16), S((1, 2048), f32))


def quantized(x, w, s, o):
  o[...] = jnp.dot(x[...], w[...].astype(bf16), preferred_element_type=f32) * s[...]


kernel("matmul_weights_s8", pl.pallas_call(
    quantized, out_shape=S((256, 2048), f32), grid=(8,),
    in_specs=[pl.BlockSpec((256, 1024), lambda i: (0, 0)), pl.BlockSpec((1024, 256), lambda i: (0, i)),
              pl.BlockSpec((1, 256), lambda i: (0, i))],
    out_specs=pl.BlockSpec((256, 256), lambda i: (0, i))), S((256, 1024), bf16), S((1024, 2048), s8), S((1, 2048), f32))


def looped(x, o):
  def turn(i, total):
    return total + x[pl.ds(pl.multiple_of(i * 8, 8), 8), :] * 0.5
  o[...] = jax.lax.fori_loop(0, 128, turn, jnp.zeros_like(o))


kernel("loop_of_rows", lambda x: pl.pallas_call(looped, out_shape=S((8, 512), f32))(x), S((1024, 512), f32))


def recurrence(x, o, state):
  state[...] = jnp.zeros_like(state)

  def turn(i, carry):
    at = pl.ds(pl.multiple_of(i * 8, 8), 8)
    state[...] = state[...] * 0.9 + jnp.tanh(x[at, :])
    o[at, :] = state[...]
    return carry
  jax.lax.fori_loop(0, 64, turn, 0)


kernel("recurrence", lambda x: pl.pallas_call(recurrence, out_shape=S((512, 256), f32),
                                              scratch_shapes=[pltpu.VMEM((8, 256), f32)])(x), S((512, 256), f32))


# ---- kernels with DMAs of their own ----

def piped(x, y, o):
  def inner(a, b, c):
    @pl.when(pl.program_id(2) == 0)
    def clear():
      c[...] = jnp.zeros_like(c)
    c[...] += jnp.dot(a[...], b[...], preferred_element_type=f32)
  pltpu.emit_pipeline(inner, grid=(2, 2, 2), in_specs=[pl.BlockSpec((512, 512), lambda i, j, k: (i, k)), pl.BlockSpec(
      (512, 512), lambda i, j, k: (k, j))], out_specs=[pl.BlockSpec((512, 512), lambda i, j, k: (i, j))])(x, y, o)


anywhere = pl.BlockSpec(memory_space=pl.ANY)
kernel("emit_pipeline_matmul", lambda x, y: pl.pallas_call(piped, out_shape=S((1024, 1024), f32), in_specs=[
    anywhere] * 2, out_specs=anywhere)(x, y), S((1024, 1024), bf16), S((1024, 1024), bf16))


def streamed(x, o, buffers, sems):
  """Sums of blocks of rows, double-buffered by hand."""
  def fetch(i):
    return pltpu.make_async_copy(x.at[pl.ds(i * 256, 256)], buffers.at[i % 2], sems.at[i % 2])
  fetch(0).start()

  def turn(i, total):
    @pl.when(i + 1 < 16)
    def ahead():
      fetch(i + 1).start()
    fetch(i).wait()
    return total + jnp.sum(buffers[i % 2].reshape(32, 8, 1024), axis=0)
  o[...] = jax.lax.fori_loop(0, 16, turn, jnp.zeros_like(o))


kernel("double_buffers", lambda x: pl.pallas_call(
    streamed, out_shape=S((8, 1024), f32), in_specs=[anywhere], out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
    scratch_shapes=[pltpu.VMEM((2, 256, 1024), f32), pltpu.SemaphoreType.DMA((2,))])(x), S((4096, 1024), f32))


# ---- attention ----

def attention(length, blocks=None, causal=False, width=128, heads=4, gradient=False):
  sizes = None
  if blocks:
    q, k = blocks
    sizes = flash.BlockSizes(block_q=q, block_k_major=k, block_k=k, block_b=1, block_q_major_dkv=q, block_k_major_dkv=k,
                             block_k_dkv=k, block_q_dkv=q, block_k_major_dq=k, block_k_dq=k, block_q_dq=q)
  call = functools.partial(flash.flash_attention, causal=causal, block_sizes=sizes)
  given = [S((1, heads, length, width), bf16)] * 3
  if gradient:
    return jax.grad(lambda q, k, v: call(q, k, v).astype(f32).sum(), (0, 1, 2)), *given
  return call, *given


def split_heads(mask, length, blocks, gradient=False, fused=False, width=128, heads=2, **options):
  mask = masks.MultiHeadMask([mask((length, length)) for _ in range(heads)])
  q, k = blocks
  more = {} if fused else {"block_q_dq": q, "block_kv_dq": k}
  sizes = splash.BlockSizes(block_q=q, block_kv=k, block_kv_compute=k, block_q_dkv=q, block_kv_dkv=k, block_kv_dkv_compute=k,
                            use_fused_bwd_kernel=fused, **more)

  def call(q, k, v):
    made = splash.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1, block_sizes=sizes, **options)
    return made(q, k, v)
  given = [S((heads, length, width), bf16)] * 3
  if gradient:
    return jax.grad(lambda q, k, v: call(q, k, v).astype(f32).sum(), (0, 1, 2)), *given
  return call, *given


kernel("flash_1024_by_128", *attention(1024))
kernel("flash_1024_by_256", *attention(1024, (256, 256)))
kernel("flash_2048_by_512", *attention(2048, (512, 512)))
kernel("flash_2048_by_512_1024", *attention(2048, (512, 1024)))
kernel("flash_causal_by_256", *attention(1024, (256, 256), causal=True))
kernel("flash_width_256", *attention(1024, (256, 512), width=256))
kernel("flash_gradient_by_256", *attention(1024, (256, 256), gradient=True))
kernel("flash_gradient_by_512", *attention(1024, (512, 512), gradient=True))
kernel("splash_full_by_512", *split_heads(masks.FullMask, 2048, (512, 512)))
kernel("splash_full_by_256", *split_heads(masks.FullMask, 1024, (256, 256)))
kernel("splash_full_by_1024", *split_heads(masks.FullMask, 2048, (1024, 1024)))
kernel("splash_full_width_256", *split_heads(masks.FullMask, 1024, (512, 512), width=256))
kernel("splash_causal_by_512", *split_heads(masks.CausalMask, 2048, (512, 512)))
kernel("splash_soft_cap", *split_heads(masks.FullMask, 1024, (512, 512), attn_logits_soft_cap=20.0))
kernel("splash_gradient", *split_heads(masks.FullMask, 1024, (512, 512), gradient=True))
kernel("splash_gradient_fused", *split_heads(masks.FullMask, 1024, (512, 512), gradient=True, fused=True))

grouped = functools.partial(megablox.gmm, preferred_element_type=f32, tiling=(256, 512, 512))
kernel("gmm", grouped, S((2048, 1024), bf16), S((8, 1024, 1024), bf16), S((8,), s32))
kernel("gmm_by_128", functools.partial(grouped, tiling=(128, 128, 128)), S((512, 512), bf16), S((4, 512, 512), bf16),
       S((4,), s32))
kernel("paged_attention", functools.partial(paged_attention, pages_per_compute_block=8), S((8, 8, 128), bf16),
       S((4, 256, 16, 128), bf16), S((4, 256, 16, 128), bf16), S((8,), s32), S((8, 32), s32))
kernel("ragged_paged_attention", functools.partial(
    ragged_paged_attention, num_kv_pages_per_block=8, num_queries_per_block=32), S((256, 8, 128), bf16),
       S((256, 16, 4, 128), bf16), S((8,), s32), S((8, 32), s32), S((9,), s32), S((1,), s32))
