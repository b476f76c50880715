"""Kernels of tokamax 0.0.17 for TPUs: `pip install tokamax`, JAX 0.11."""

from case import case
from case import normal
import jax
import jax.numpy as jnp
import numpy as np

bf16 = jnp.bfloat16
SIZES = np.array([100, 28, 0, 128], np.int32)


def _grouped(rng):
  return [normal(rng, 256, 256, dtype=bf16), normal(rng, 4, 256, 256, dtype=bf16), SIZES]


def _multiply_groups(lhs, rhs, sizes, bias=None):
  group, (lhs, rhs) = np.repeat(np.arange(len(sizes)), sizes), (x.astype(np.float32) for x in (lhs, rhs))
  result = np.concatenate([lhs[group == number] @ rhs[number] for number in range(len(sizes))])
  return (result if bias is None else result + bias[group, 0].astype(np.float32)).astype(bf16)


@case(tolerance=2e-2, by=("reference",))
def gmm_v2(rng):
  from tokamax._src.ops.gmm_v2 import gmm_v2 as module
  return module.gmm_v2, _grouped(rng), _multiply_groups


@case(tolerance=2e-2, by=("reference",))
def gmm_v2_bias(rng):
  from tokamax._src.ops.gmm_v2 import gmm_v2 as module
  return lambda l, r, g, b: module.gmm_v2(l, r, g, rhs_bias=b), [
      *_grouped(rng), normal(rng, 4, 1, 256, dtype=bf16)], _multiply_groups


@case(tolerance=2e-2, by=("reference",))
def gmm_v2_scale(rng):
  from tokamax._src.ops.gmm_v2 import gmm_v2 as module
  lhs, _, sizes = _grouped(rng)
  weights, scale = rng.integers(-7, 8, (4, 256, 256)).astype(np.int8), np.abs(normal(rng, 4, 1, 1, 256))
  return lambda l, r, g, s: module.gmm_v2(l, r, g, rhs_scale=s), [lhs, weights, sizes, scale], (
      lambda l, r, g, s: _multiply_groups(l, r * s[:, 0], g))


@case(tolerance=2e-2, by=("reference",))
def tgmm_v2(rng):
  from tokamax._src.ops.gmm_v2 import tgmm_v2 as module
  args = [normal(rng, 256, 256, dtype=bf16), normal(rng, 256, 256, dtype=bf16), SIZES]

  def reference(lhs, rhs, sizes):
    group, (lhs, rhs) = np.repeat(np.arange(len(sizes)), sizes), (x.astype(np.float32) for x in (lhs, rhs))
    return np.stack([lhs[group == number].T @ rhs[group == number] for number in range(len(sizes))])
  return lambda l, r, g: module.tgmm_v2(l, r, g, num_actual_groups=4, preferred_element_type=jnp.float32), args, reference


@case(tolerance=2e-2)
def ragged_dot(rng):
  from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as module
  return lambda l, r, g: module.gmm(l, r, group_sizes=g, precision=jax.lax.Precision.DEFAULT, out_dtype=jnp.float32), (
      _grouped(rng))


@case(tolerance=2e-2)
def ragged_dot_transposed(rng):
  from tokamax._src.ops.ragged_dot import pallas_mosaic_tpu_kernel as module
  args = [normal(rng, 256, 256, dtype=bf16), normal(rng, 256, 256, dtype=bf16), SIZES]
  return lambda l, r, g: module.tgmm(l.T, r, group_sizes=g, precision=jax.lax.Precision.DEFAULT,
                                     out_dtype=jnp.float32), args


def _splash(rng, mask, **options):
  from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_kernel as splash
  q, k, v = [normal(rng, 2, 256, 128, dtype=bf16, scale=.3) for _ in range(3)]
  return splash.make_splash_mha(mask, **options), [q, k, v]


@case(tolerance=2e-2)
def splash(rng):
  from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks
  return _splash(rng, masks.CausalMask((256, 256)), q_seq_shards=1)


@case(tolerance=3e-2)
def splash_grad(rng):
  from tokamax._src.ops.experimental.tpu.splash_attention import splash_attention_mask as masks
  f, args = _splash(rng, masks.CausalMask((256, 256)), q_seq_shards=1)
  return jax.grad(lambda q, k, v: (f(q, k, v).astype(jnp.float32) ** 2).sum(), (0, 1, 2)), args


@case(tolerance=1e-4)
def router_topk(rng):
  from tokamax._src.ops.router_topk import pallas_mosaic_tpu_kernel as module
  return lambda x: module.select(x, 4), [normal(rng, 64, 128)]


@case(tolerance=2e-2)
def cross_entropy(rng):
  from tokamax._src.ops.linear_softmax_cross_entropy_loss import pallas_mosaic_tpu_kernel as module
  f = module.linear_softmax_cross_entropy_loss_fwd_pallas_mosaic_tpu
  return lambda x, labels, w: f(x, labels, w, b_block_size=1024, h_block_size=128, v_block_size=256), [
      normal(rng, 1024, 256), rng.integers(0, 512, 1024).astype(np.int32), normal(rng, 256, 512, scale=.1)]


@case(tolerance=2e-2)
def ragged_gather(rng):
  from tokamax._src.ops.ragged_gather import pallas_mosaic_tpu_kernel as module
  return module.ragged_gather_pallas, [normal(rng, 256, 256), rng.integers(0, 256, 512).astype(np.int32),
                                       np.array([0], np.int32), np.array([512], np.int32)]


@case(tolerance=2e-2)
def hyper_connections(rng):
  from tokamax._src.ops.mhc import pre_kernel as module
  return lambda x, f, s, b: module.mhc_pre(x, f, s, b, 1e-6, 1e-6, 1e-6, 2.0, 3), [
      normal(rng, 64, 4, 256, dtype=bf16), normal(rng, 24, 1024, scale=.05), normal(rng, 3), normal(rng, 24)]
