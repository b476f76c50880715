"""Kernels of tpu-inference 0.32 (vLLM on TPUs), without vLLM: `pip install --no-deps tpu-inference`, JAX 0.11.2."""

import importlib.util
import logging
import pathlib
import sys
import types

from case import case
from case import normal
import jax
import jax.numpy as jnp
import numpy as np

bf16 = jnp.bfloat16


def _make_logger(name):
  logger = logging.getLogger(name)
  logger.warning_once, logger.info_once, logger.debug_once = logger.info, logger.debug, logger.debug
  return logger


def _leave_out_vllm() -> None:
  """Gives the kernels the few helpers of their package that would import vLLM."""
  folder = pathlib.Path(importlib.util.find_spec("tpu_inference").origin).parent
  package, logger, utils = map(types.ModuleType, ("tpu_inference", "tpu_inference.logger", "tpu_inference.utils"))
  package.__path__ = [str(folder)]
  logger.init_logger = _make_logger
  utils.TPU_HEAD_SIZE_ALIGNMENT = 128
  utils.align_to = lambda x, a: -(-x // a) * a
  utils.get_dtype_packing = lambda dtype: 32 // (jnp.dtype(dtype).itemsize * 8)
  utils.get_device_name = lambda *_: "TPU v6e"
  utils.get_mesh_shape_product = lambda mesh, axes: int(np.prod([mesh.shape.get(axis, 1) for axis in axes]))
  sys.modules |= {"tpu_inference": package, "tpu_inference.logger": logger, "tpu_inference.utils": utils}
  from tpu_inference.kernels.ragged_paged_attention.v3 import util
  util.get_tpu_version = lambda: 6


_leave_out_vllm()


def _ragged(rng, module, decodes, lengths, queries, tokens=64, **options):
  """Arguments of ragged paged attention: the first sequences decode one token each, the others are prefilled."""
  pages, page, heads, size = 16, 16, 2, 128
  shape = module.get_kv_cache_shape(pages, page, heads, size, bf16)
  starts = np.concatenate([[0], np.cumsum(queries)]).astype(np.int32)
  args = [normal(rng, tokens, 4, size, dtype=bf16, scale=.3), normal(rng, tokens, heads, size, dtype=bf16),
          normal(rng, tokens, heads, size, dtype=bf16), normal(rng, *shape, dtype=bf16),
          np.array(lengths, np.int32), rng.permutation(pages).astype(np.int32), starts,
          np.array([decodes, decodes, len(lengths)], np.int32)]
  count = int(starts[-1])

  def f(*args):
    result, cache = module.ragged_paged_attention(*args, sm_scale=.1, **options)
    return result[:count], cache

  def reference(*args):
    result, cache = module.ref_ragged_paged_attention(*map(jnp.asarray, args), sm_scale=.1, **options)
    return result[:count], cache

  return f, args, reference


@case(tolerance=2e-2, by=("reference", "tpu"))
def rpa_v3_mixed(rng):
  from tpu_inference.kernels.ragged_paged_attention.v3 import kernel
  return _ragged(rng, kernel, 2, [40, 64, 17, 8], [1, 1, 15, 8])


@case(tolerance=2e-2, by=("reference", "tpu"))
def rpa_v3_decode(rng):
  from tpu_inference.kernels.ragged_paged_attention.v3 import kernel
  return _ragged(rng, kernel, 4, [40, 64, 17, 8], [1, 1, 1, 1])


@case(tolerance=2e-2, by=("reference", "tpu"))
def rpa_v3_window(rng):
  from tpu_inference.kernels.ragged_paged_attention.v3 import kernel
  return _ragged(rng, kernel, 1, [40, 64, 17, 8], [1, 20, 15, 8], sliding_window=16, soft_cap=20.0)


@case(tolerance=2e-2)
def rpa_v2(rng):
  from tpu_inference.kernels.ragged_paged_attention.v2 import kernel
  args = [normal(rng, 64, 4, 128, dtype=bf16, scale=.3), normal(rng, 16, 16, 4, 128, dtype=bf16),
          np.array([40, 64, 17, 8], np.int32), rng.permutation(16).reshape(4, 4).astype(np.int32),
          np.array([0, 30, 45, 62, 63], np.int32), np.array([4], np.int32)]
  return lambda *args: kernel.ragged_paged_attention(
      *args, sm_scale=.1, num_kv_pages_per_block=2, num_queries_per_block=16)[:63], args


def _quantized(rng, kind, bits):
  most = 2 ** (bits - 1) - 1
  weights = rng.integers(-most, most + 1, (256, 256)).astype(kind)
  return [normal(rng, 128, 256, dtype=bf16), weights, np.abs(normal(rng, 256)) / most]


@case(tolerance=2e-2)
def quantized_matmul_int8(rng):
  from tpu_inference.kernels.quantized_matmul import kernel
  return lambda x, w, s: kernel.quantized_matmul_kernel(x, w, s, x_q_dtype=jnp.int8), _quantized(rng, np.int8, 8)


@case(tolerance=2e-2)
def quantized_matmul_weights_only(rng):
  from tpu_inference.kernels.quantized_matmul import kernel
  return lambda x, w, s: kernel.quantized_matmul_kernel(x, w, s), _quantized(rng, np.int8, 8)


@case(tolerance=2e-2)
def quantized_matmul_int4(rng):
  from tpu_inference.kernels.quantized_matmul import kernel
  return lambda x, w, s: kernel.quantized_matmul_kernel(x, w, s, x_q_dtype=jnp.int8), _quantized(rng, jnp.int4, 4)


@case(tolerance=2e-2)
def gmm(rng):
  from tpu_inference.kernels.megablox.gmm import gmm as f
  args = [normal(rng, 256, 128, dtype=bf16), normal(rng, 4, 128, 128, dtype=bf16), np.array([100, 28, 0, 128], np.int32)]
  return lambda l, r, g: f(l, r, g, preferred_element_type=jnp.float32, tiling=(128, 128, 128)), args


@case(tolerance=2e-2)
def flash_attention(rng):
  from tpu_inference.kernels.flash_attention import kernel
  q, k, v = [normal(rng, 1, 2, 256, 128, dtype=bf16, scale=.3) for _ in range(3)]
  return lambda q, k, v: kernel.flash_attention(q, k, v, causal=True), [q, k, v]


@case(tolerance=2e-2)
def mla_v1(rng):
  from tpu_inference.kernels.mla.v1 import kernel
  packing = 2
  args = [normal(rng, 32, 16, 512, dtype=bf16, scale=.2), normal(rng, 32, 16, 64, dtype=bf16, scale=.2),
          normal(rng, 32, 512, dtype=bf16), normal(rng, 32, 64, dtype=bf16),
          normal(rng, 8, 16 // packing, packing, 512 + 128, dtype=bf16), np.array([20, 9], np.int32),
          rng.permutation(8).astype(np.int32), np.array([0, 1, 10], np.int32), np.array([1, 1, 2], np.int32)]

  def f(*args):
    result, cache = kernel.mla_ragged_paged_attention(
        *args, sm_scale=.1, num_kv_pages_per_block=2, num_queries_per_block=8)
    return result[:10], cache
  return f, args


@case(tolerance=2e-2)
def all_gather_matmul(rng):
  from tpu_inference.kernels.collectives import all_gather_matmul as module
  mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
  return lambda x, y: module.all_gather_matmul(x, y, mesh, "d", bn=128, bk=256), [
      normal(rng, 256, 256, dtype=bf16), normal(rng, 256, 512, dtype=bf16)]


@case(tolerance=2e-2)
def causal_conv1d(rng):
  from tpu_inference.kernels.causal_conv1d import causal_conv1d as module
  args = [normal(rng, 64, 256, dtype=np.float32), normal(rng, 4, 3, 256), normal(rng, 256, 1, 4), normal(rng, 256),
          np.array([0, 1, 20, 44, 64], np.int32), np.array([2, 0, 1, 3], np.int32), np.array([1, 4, 4], np.int32),
          np.array([1, 0, 1, 1], np.int32)]
  return lambda *args: module.ragged_causal_conv1d(*args, kernel_size=4), args


@case(tolerance=3e-2)
def fused_moe(rng):
  from tpu_inference.kernels.fused_moe.v1 import kernel
  mesh = jax.make_mesh((1, 4), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
  args = [normal(rng, 64, 256, dtype=bf16), normal(rng, 8, 2, 256, 256, dtype=bf16, scale=.1),
          normal(rng, 8, 256, 256, dtype=bf16, scale=.1), normal(rng, 64, 8, dtype=bf16)]
  return lambda *args: kernel.fused_ep_moe(mesh, *args, 2, bt=16, bf=256, bd1=256, bd2=256, btc=16, bfc=256, bd1c=256,
                                           bd2c=256), args
