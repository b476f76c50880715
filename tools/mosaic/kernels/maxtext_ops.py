"""Kernels of MaxText 0.2.5 for TPUs, without its layers: `pip install --no-deps maxtext`, tokamax, JAX 0.11."""

import pathlib
import sys
import types

from case import case
from case import normal
import jax
import jax.numpy as jnp
import maxtext.kernels
import numpy as np

bf16 = jnp.bfloat16
SIZES = np.array([100, 28, 5, 121], np.int32)


def _leave_out_layers() -> None:
  """The package of the grouped matmuls imports MaxText's layers, which its kernels do not need."""
  package = types.ModuleType("maxtext.kernels.megablox")
  package.__path__ = [str(pathlib.Path(maxtext.kernels.__file__).parent / "megablox")]
  sys.modules["maxtext.kernels.megablox"] = package


_leave_out_layers()


def multiply_groups(lhs, rhs, sizes):
  """A matmul for each group of rows; rows behind the last group are 0."""
  group = np.repeat(np.arange(len(sizes)), sizes)
  result = np.zeros((lhs.shape[0], rhs.shape[2]), np.float32)
  for number in range(len(sizes)):
    rows = np.flatnonzero(group == number)
    result[rows] = lhs[rows].astype(np.float32) @ rhs[number].astype(np.float32)
  return result


@case(tolerance=2e-2, by=("reference",))
def gmm_v2(rng):
  from maxtext.kernels.megablox import pallas_mosaic_tpu_v2_gmm_kernel as module
  args = [normal(rng, 256, 256, dtype=bf16), normal(rng, 4, 256, 256, dtype=bf16), SIZES]
  return module.gmm_v2, args, lambda *args: multiply_groups(*args).astype(bf16)


@case(tolerance=2e-2, by=("reference",))
def ragged_mqa(rng):
  from maxtext.kernels.attention import ragged_attention as module
  args = [*(normal(rng, *shape) for shape in ((4, 1, 128), (4, 512, 128), (4, 512, 128))),
          rng.integers(1, 512, 4).astype(np.int32)]
  return lambda *args: module.ragged_mqa(*args)[0], args, lambda *args: module.reference_mqa(*args)[0]


def _ragged(rng, name, heads, reference):
  from maxtext.kernels.attention import ragged_attention as module
  shapes = (4, 1, 4, 128), (4, 512, heads, 128), (4, 512, heads, 128)
  args = [*(normal(rng, *shape) for shape in shapes), rng.integers(1, 512, 4).astype(np.int32)]

  def f(*args):
    result, _, sums = getattr(module, name)(*args)
    return result / sums
  return f, args, lambda *args: reference(module, *args)


@case(tolerance=2e-2, by=("reference",))
def ragged_mha(rng):
  return _ragged(rng, "ragged_mha", 4, lambda module, *args: module.reference_mha(*args)[0])


@case(tolerance=2e-2, by=("reference",))
def ragged_gqa(rng):
  def reference(module, q, k, v, lengths):
    return module.reference_gqa(q[:, 0], k.swapaxes(1, 2), v.swapaxes(1, 2), lengths)[0].reshape(q.shape)
  return _ragged(rng, "ragged_gqa", 2, reference)


@case(tolerance=2e-2, by=("reference",))
def splash(rng):
  from maxtext.kernels.tokamax_splash_attention import splash_attention_kernel as kernel
  from maxtext.kernels.tokamax_splash_attention import splash_attention_mask as masks
  q, k, v = [normal(rng, 2, 256, 128, dtype=bf16, scale=.3) for _ in range(3)]

  def reference(q, k, v):
    q, k, v = (x.astype(jnp.float32) for x in (q, k, v))
    scores = jnp.where(np.tri(256, dtype=bool), jnp.einsum("hqd,hkd->hqk", q, k), -jnp.inf)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v).astype(bf16)
  return kernel.make_splash_mha(masks.CausalMask((256, 256)), q_seq_shards=1), [q, k, v], reference
