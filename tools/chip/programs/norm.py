"""Normalisations and softmax."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import grad_of, layernorm, rmsnorm
from .program import F32, I32, A, of_class

opened, new = of_class("norm")

opened("layernorm_f32", layernorm, A((8192, 4096), F32), A((4096,), F32), A((4096,), F32))
opened("layernorm_bf16_768", layernorm, A((16384, 768)), A((768,)), A((768,)))
opened("rmsnorm_bf16", rmsnorm, A((8192, 4096)), A((4096,)))
opened("rmsnorm_grad", jax.grad(lambda x, g: rmsnorm(x, g).astype(F32).sum(), (0, 1)), A((8192, 4096)), A((4096,)))
opened("batchnorm_train", lambda x, g: (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * g,
       A((64, 56, 56, 64)), A((64,)))
opened("softmax_f32_16384", jax.nn.softmax, A((4096, 16384), F32))
opened("softmax_bf16_1024", jax.nn.softmax, A((16, 1024, 1024)))
opened("log_softmax_axis0", lambda x: jax.nn.log_softmax(x, 0), A((1000, 8192), F32))

# ---- training, groups, fused neighbours ----


def batchnorm(x, g, b, axes=(0, 1, 2)):
  """Flax: statistics in f32, the mean of squares."""
  y = x.astype(F32)
  m = y.mean(axes, keepdims=True)
  v = jnp.maximum((y * y).mean(axes, keepdims=True) - m * m, 0)
  return ((y - m) * (lax.rsqrt(v + 1e-5) * g) + b).astype(x.dtype), m, v


def batchnorm_running(x, g, b, mean, var):
  y, m, v = batchnorm(x, g, b)
  return y, 0.9 * mean + 0.1 * m.reshape(-1), 0.9 * var + 0.1 * v.reshape(-1)


C = A((256,), F32)
new("batchnorm_train_running_b64_c256_28", batchnorm_running, A((64, 28, 28, 256)), C, C, C, C,
    shows="two sums of one array, moving averages")
new("batchnorm_train_grad_b64_c256_28", grad_of(lambda x, g, b: batchnorm(x, g, b)[0] ** 2, (0, 1, 2)),
    A((64, 28, 28, 256)), C, C, shows="sums across rows that are broadcast to them")
new("batchnorm_train_c64_112_f32", lambda x, g, b: jax.nn.relu(batchnorm(x, g, b)[0]), A((32, 112, 112, 64), F32),
    A((64,), F32), A((64,), F32), shows="64 channels: half of the lanes")
new("batchnorm_train_nchw_b32_c128_28", lambda x, g, b: batchnorm(x, g[:, None, None], b[:, None, None],
    (0, 2, 3))[0], A((32, 128, 28, 28)),
    A((128,), F32), A((128,), F32), shows="statistics over the lanes and outermost")


def groupnorm(x, g, b, groups=32):
  n, h, w, c = x.shape
  y = x.astype(F32).reshape(n, h, w, groups, c // groups)
  m, v = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
  return (((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape) * g + b).astype(x.dtype)


new("groupnorm_silu_b8_c320_64", lambda x, g, b: jax.nn.silu(groupnorm(x, g, b)), A((8, 64, 64, 320)), A((320,), F32),
    A((320,), F32), shows="groups of ten in the lanes")
new("groupnorm_grad_b8_c256_32", grad_of(groupnorm, (0, 1, 2)), A((8, 32, 32, 256)), C, C, shows="its gradient")
new("layernorm_grad_b16384_d1024", grad_of(layernorm, (0, 1, 2)), A((16384, 1024)), A((1024,)), A((1024,)),
    shows="three sums in two directions")
new("layernorm_residual_dropless_b8_l2048_d4096", lambda x, r, g, b: (lambda y: (y, layernorm(y, g, b)))(x + r),
    A((8, 2048, 4096)), A((8, 2048, 4096)),
    A((4096,)), A((4096,)), shows="a sum that is wanted as it is and normalised")
new("layernorm_narrow_b262144_d64", layernorm, A((262144, 64), F32), A((64,), F32), A((64,), F32),
    shows="rows of half a tile's lanes")
new("rmsnorm_matmul_b8192_d2048", lambda x, g, w: rmsnorm(x, g) @ w, A((8192, 2048)), A((2048,)), A((2048, 2048)),
    shows="a norm before a matmul")
new("adaln_modulate_b32_l256_d1152", lambda x, c, w: (lambda s: layernorm(x, 1, 0) * (1 + s[:, None, :1152]) + s[:,
    None, 1152:])(c @ w), A((32, 256, 1152)),
    A((32, 1152)), A((1152, 2304)), shows="DiT: scale and shift of each image")
new("softmax_grad_4096x8192", lambda x, g: jax.vjp(jax.nn.softmax, x)[1](g), A((4096, 8192), F32),
    A((4096, 8192), F32), shows="rows with two sums")
new("softmax_masked_narrow_b64_l128_49", lambda x, m: jax.nn.softmax(jnp.where(m, x, -jnp.inf)),
    A((64, 128, 49, 49), F32), A((49, 49), jnp.bool_), shows="rows of 49")
new("softmax_middle_axis_32x1024x512", lambda x: jax.nn.softmax(x, 1), A((32, 1024, 512), F32),
    shows="a softmax over sublanes")
new("log_softmax_gather_b8192_v32000", lambda x, i: jnp.take_along_axis(jax.nn.log_softmax(x.astype(F32)), i[:, None],
    1), A((8192, 32000)), A((8192,), I32),
    shows="rows of which one element is looked up")
new("standardize_columns_262144x32", lambda x: (x - x.mean(0)) / (x.std(0) + 1e-6), A((262144, 32), F32),
    shows="narrow columns")
