"""The kernels that come with JAX (jax.experimental.pallas.ops.tpu)."""

import case
from case import normal
import jax
from jax.experimental.pallas.ops.tpu import flash_attention as flash
from jax.experimental.pallas.ops.tpu import matmul as matmuls
from jax.experimental.pallas.ops.tpu import megablox as mblx
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention as rpa
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
import jax.numpy as jnp
import numpy as np

bf16 = jnp.bfloat16


def attend(q, k, v, mask=None, scale=1.0):
  scores = jnp.einsum("...qd,...kd->...qk", q.astype(jnp.float32), k.astype(jnp.float32)) * scale
  scores = scores if mask is None else jnp.where(mask, scores, -1e30)
  return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores), v.astype(jnp.float32)).astype(q.dtype)


def heads(rng, *shape, dtype=bf16):
  return [normal(rng, *shape, dtype=dtype, scale=0.3) for _ in range(3)]


def make_splash(mask, length, sizes=None, **options):
  mask = masks.MultiHeadMask([mask((length, length)) for _ in range(2)])
  return splash.make_splash_mha(mask=mask, head_shards=1, q_seq_shards=1, block_sizes=sizes, **options)


@case.case(tolerance=2e-2)
def splash_causal(rng):
  return make_splash(masks.CausalMask, 256), heads(rng, 2, 256, 128)


@case.case(tolerance=2e-2)
def splash_full(rng):
  return make_splash(masks.FullMask, 256), heads(rng, 2, 256, 128)


@case.case(tolerance=2e-2)
def splash_local(rng):
  return make_splash(lambda shape: masks.LocalMask(shape, (64, 0), 0), 256), heads(rng, 2, 256, 128)


@case.case(tolerance=2e-2)
def splash_segments(rng):
  ids = np.repeat(np.arange(2, dtype=np.int32), 128)
  f = make_splash(masks.CausalMask, 256)
  return lambda q, k, v: f(q, k, v, splash.SegmentIds(ids, ids)), heads(rng, 2, 256, 128)


@case.case(tolerance=2e-2)
def splash_soft_cap(rng):
  return make_splash(masks.CausalMask, 256, attn_logits_soft_cap=5.0), heads(rng, 2, 256, 128)


@case.case(tolerance=3e-2)
def splash_grad(rng):
  sizes = splash.BlockSizes(block_q=128, block_kv=128, block_q_dkv=128, block_kv_dkv=128, block_kv_dkv_compute=128,
                            block_q_dq=128, block_kv_dq=128)
  f = make_splash(masks.CausalMask, 256, sizes)
  loss = lambda q, k, v: (f(q, k, v).astype(jnp.float32) ** 2).sum()
  return jax.grad(loss, (0, 1, 2)), heads(rng, 2, 256, 128)


@case.case(tolerance=3e-2)
def splash_fused_grad(rng):
  sizes = splash.BlockSizes(block_q=128, block_kv=128, block_q_dkv=128, block_kv_dkv=128, block_kv_dkv_compute=128,
                            use_fused_bwd_kernel=True)
  f = make_splash(masks.CausalMask, 256, sizes)
  loss = lambda q, k, v: (f(q, k, v).astype(jnp.float32) ** 2).sum()
  return jax.grad(loss, (0, 1, 2)), heads(rng, 2, 256, 128)


@case.case(tolerance=2e-2)
def splash_mqa(rng):
  mask = masks.MultiHeadMask([masks.CausalMask((256, 256)) for _ in range(2)])
  q, k, v = heads(rng, 2, 256, 128)
  return splash.make_splash_mqa(mask=mask, head_shards=1, q_seq_shards=1), [q, k[0], v[0]]


@case.case(tolerance=2e-2)
def flash_causal(rng):
  return lambda q, k, v: flash.flash_attention(q, k, v, causal=True), heads(rng, 1, 2, 256, 128)


@case.case(tolerance=2e-2)
def flash_bias(rng):
  bias = normal(rng, 1, 2, 256, 256)
  return lambda q, k, v, b: flash.flash_attention(q, k, v, b), [*heads(rng, 1, 2, 256, 128, dtype=np.float32), bias]


@case.case(tolerance=2e-2)
def flash_segments(rng):
  ids = np.repeat(np.arange(2, dtype=np.int32), 128)[None]
  return lambda q, k, v: flash.flash_attention(q, k, v, segment_ids=flash.SegmentIds(ids, ids)), heads(
      rng, 1, 2, 256, 128)


@case.case(tolerance=3e-2)
def flash_grad(rng):
  loss = lambda q, k, v: (flash.flash_attention(q, k, v, causal=True).astype(jnp.float32) ** 2).sum()
  return jax.grad(loss, (0, 1, 2)), heads(rng, 1, 2, 256, 128)


def _gmm(rng, sizes, **options):
  args = [normal(rng, 256, 128, dtype=bf16), normal(rng, len(sizes), 128, 128, dtype=bf16), np.array(sizes, np.int32)]
  return lambda l, r, g: mblx.gmm(l, r, g, preferred_element_type=jnp.float32, tiling=(128, 128, 128), **options), args


@case.case(tolerance=1e-2)
def gmm(rng):
  return _gmm(rng, [100, 28, 0, 128])


@case.case(tolerance=1e-2)
def gmm_transposed(rng):
  return _gmm(rng, [64, 192], transpose_rhs=True)


@case.case(tolerance=1e-2)
def gmm_grad(rng):
  f, args = _gmm(rng, [100, 28, 0, 128])
  return lambda l, r, g: jax.grad(lambda l, r: (f(l, r, g) ** 2).sum(), (0, 1))(l, r), args


@case.case(tolerance=1e-2)
def matmul(rng):
  return lambda x, y: matmuls.matmul(x, y, block_shape=(128, 128), block_k=128), [
      normal(rng, 256, 256), normal(rng, 256, 128)]


@case.case(tolerance=1e-2)
def matmul_bf16(rng):
  return lambda x, y: matmuls.matmul(x, y, block_shape=(256, 128), block_k=128, out_dtype=jnp.float32), [
      normal(rng, 256, 256, dtype=bf16), normal(rng, 256, 128, dtype=bf16)]


def _paged(rng, dtype=np.float32, **options):
  lengths, tables = np.array([20, 64, 7, 33], np.int32), rng.permutation(16).reshape(4, 4).astype(np.int32)
  args = [normal(rng, 4, 8, 128, dtype=dtype, scale=.3), normal(rng, 2, 16, 16, 128, dtype=dtype),
          normal(rng, 2, 16, 16, 128, dtype=dtype), lengths, tables]
  return lambda *args: paged_attention(*args, pages_per_compute_block=2, **options), args


@case.case(tolerance=2e-2)
def paged(rng):
  return _paged(rng)


@case.case(tolerance=2e-2)
def paged_bf16_inline(rng):
  return _paged(rng, bf16, inline_seq_dim=False)


def _ragged(rng, **options):
  args = [normal(rng, 64, 4, 128, dtype=bf16, scale=.3), normal(rng, 16, 16, 4, 128, dtype=bf16),
          np.array([40, 64, 17, 8], np.int32), rng.permutation(16).reshape(4, 4).astype(np.int32),
          np.array([0, 30, 45, 62, 63], np.int32), np.array([4], np.int32)]
  return lambda *args: rpa(*args, num_kv_pages_per_block=2, num_queries_per_block=16, **options), args


@case.case(tolerance=2e-2)
def ragged_paged(rng):
  return _ragged(rng, sm_scale=0.1)


@case.case(tolerance=2e-2)
def ragged_paged_window(rng):
  return _ragged(rng, sliding_window=16, soft_cap=10.0)


@case.case
def all_gather(rng):
  from jax.experimental.pallas.ops.tpu import all_gather as module
  mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
  return lambda x: module.all_gather(x, mesh=mesh, axis_name="d"), [normal(rng, 32, 128)]


@case.case
def threefry(rng):
  from jax.experimental.pallas.ops.tpu.random import threefry as module
  return lambda key: jax.random.bits(jax.random.wrap_key_data(key, impl=module.plthreefry_prng_impl), (256, 256)), [
      np.array([1, 2], np.uint32)]


@case.case
def philox(rng):
  from jax.experimental.pallas.ops.tpu.random import philox as module
  return lambda key: jax.random.bits(jax.random.wrap_key_data(key, impl=module.plphilox_prng_impl), (256, 256)), [
      np.array([1, 2], np.uint32)]


@case.case
def example(rng):
  from jax.experimental.pallas.ops.tpu import example_kernel
  return example_kernel.double, [normal(rng, 8, 128)]
