"""Elementwise operations."""

import jax
import jax.numpy as jnp
from jax import lax

from .program import BF, C64, F8, F32, I8, I32, U32, A, of_class

opened, new = of_class("elementwise")

BIG = A((8192, 8192), F32)
opened("add_f32_8192", lambda x, y: x + y, BIG, BIG)
opened("add_bf16_8192", lambda x, y: x + y, A((8192, 8192)), A((8192, 8192)))
opened("add_f32_512", lambda x, y: x + y, A((512, 512), F32), A((512, 512), F32))
opened("chain_5", lambda x, y: jnp.tanh(x * 2 + y) * x - y, BIG, BIG)
opened("exp_log_sin_f32", lambda x: jnp.sin(jnp.log(jnp.exp(x) + 1)), BIG)
opened("gelu_bf16", jax.nn.gelu, A((8192, 8192)))
opened("convert_f32_bf16", lambda x: x.astype(BF), BIG)
opened("div_pow_erf", lambda x, y: lax.erf(x) / (jnp.abs(y) + 1) ** 1.5, A((2048, 2048), F32), A((2048, 2048), F32))
opened("siblings", lambda x: (x + 1, x * 2), BIG)
opened("where_bias_broadcast", lambda x, b: jnp.where(x > b, x, 0), BIG, A((8192,), F32))
new("rope_tables_8192x128", lambda p: (lambda a: (jnp.sin(a), jnp.cos(a)))(p[:,
    None] * 10000.0 ** (-jnp.arange(0, 128, 2) / 128)), A((65536,), F32),
    shows="sines and cosines of an outer product")
new("swiglu_bf16_16384x11008", lambda x, y: jax.nn.silu(x) * y, A((16384, 11008)), A((16384, 11008)),
    shows="two arrays, an exponential and a quotient")
new("int8_quantize_rows_8192", lambda x: (lambda s: (jnp.round(x / s).astype(I8), s))(jnp.abs(x).max(-1,
    keepdims=True) / 127), A((8192, 8192), F32),
    shows="a maximum of rows, then bytes")
new("fp8_cast_clip_8192", lambda x, s: jnp.clip(x.astype(F32) * s, -448, 448).astype(F8), A((8192, 8192)), A((), F32),
    shows="a cast to fp8")
new("integer_hash_uint32_16M", lambda x: (lambda h: h ^ (h >> 16))((x ^ (x >> 16)) * jnp.uint32(0x7feb352d)),
    A((4096, 4096), U32), shows="whole numbers")
new("integer_division_4096", lambda x, y: (x // 7, x % y), A((4096, 4096), I32), A((4096, 4096), I32),
    shows="quotients and remainders of whole numbers")
new("complex_multiply_exp_2048", lambda x, y: x * y * jnp.exp(1j * x.real), A((2048, 2048), C64),
    A((2048, 2048), C64), shows="twin_complex: complex arguments and results")
new("complex_abs_angle_4096", lambda z: (jnp.abs(z), jnp.angle(z)), A((4096, 2048), C64),
    shows="twin_complex: real results of complex arguments")
new("many_inputs_sum_16x4096", lambda *xs: sum(xs), *[A((2048, 2048), F32)] * 16,
    shows="a kernel that reads 16 arrays")
new("tree_of_small_updates_200", lambda xs: [x * 0.9 + 1 for x in xs], [A((256, 128), F32)] * 200,
    shows="200 small kernels on a GPU")
new("elu_two_sums_8192x4096", lambda x: (lambda y: (y, y.sum(0), y.sum(1)))(jax.nn.elu(x)), A((8192, 4096), F32),
    shows="cluster_again: exponentials for two sums, made again or written")
