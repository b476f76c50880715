"""Matmuls."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import matmul, rmsnorm
from .program import BF, C64, F8, F32, I8, I32, A, of_class

opened, new = of_class("matmul")

for m, k, n in [(64, 64, 64), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
                (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 16384),
                (1000, 1000, 1000), (130, 130, 130), (3000, 5000, 700), (8, 4096, 4096), (1, 8192, 8192),
                (32, 8192, 28672), (8192, 64, 8192), (65536, 128, 128), (16384, 4096, 64), (128, 65536, 128)]:
  opened(f"mm_bf16_{m}x{k}x{n}", matmul, A((m, k)), A((k, n)))
for n in (256, 1024, 4096):
  opened(f"mm_f32_{n}", matmul, A((n, n), F32), A((n, n), F32))
  opened(f"mm_s8_{n}", lambda x, y: lax.dot(x, y, preferred_element_type=I32), A((n, n), I8), A((n, n), I8))
  opened(f"mm_f8_{n}", lambda x, y: lax.dot(x, y, preferred_element_type=BF), A((n, n), F8), A((n, n), F8))
opened("mm_f32_highest_2048", lambda x, y: jnp.dot(x, y, precision="highest"), A((2048, 2048), F32),
    A((2048, 2048), F32))
opened("mm_xTy_4096", lambda x, y: jnp.einsum("km,kn->mn", x, y), A((4096, 4096)), A((4096, 4096)))
opened("mm_batched_64x512", matmul, A((64, 512, 512)), A((64, 512, 512)))
opened("mm_batched_256x128x64", matmul, A((256, 128, 64)), A((256, 64, 128)))
opened("mm_bias_gelu", lambda x, w, b: jax.nn.gelu(x @ w + b), A((4096, 1024)), A((1024, 4096)), A((4096,)))

# ---- orders of dimensions, chains, narrow results ----

new("mm_heads_out_projection_8192x2048_h16", lambda x, w: jnp.einsum("bte,ehd->bhtd", x, w), A((4, 2048, 2048)),
    A((2048, 16, 128)), shows="cluster_turned_lay: heads before tokens as a result of main")
new("mm_batch_moved_outwards_32x512", lambda x, w: jnp.einsum("btd,bde->teb", x, w), A((32, 512, 256)),
    A((32, 256, 512)), shows="MP_CLUSTER_CROSSED: the batch comes into the lanes")
new("mm_result_transposed_4096", lambda x, w: (x @ w).T, A((4096, 1024)), A((1024, 4096)),
    shows="cluster_turned: a transposed result of main")
new("mm_vmap_out_axes_2_64x256", jax.vmap(lambda x, w: x @ w, out_axes=2), A((64, 256, 256)), A((64, 256, 256)),
    shows="cluster_turned: vmap with another out_axes")
new("mm_turned_gelu_bias_h16", lambda x, w, b: jax.nn.gelu(jnp.einsum("bte,ehd->bhtd", x, w) + b[:, None]),
    A((4, 2048, 1024)),
    A((1024, 16, 128)), A((16, 128)), shows="what is read beside a result in another layout")
new("mm_reduced_rows_8192x4096", lambda x, w: (x @ w).sum(-1), A((8192, 2048)), A((2048, 4096)),
    shows="a matmul with a reduced result: sums of its rows")
new("mm_reduced_columns_8192x4096", lambda x, w: (x @ w).astype(F32).max(0), A((8192, 2048)), A((2048, 4096)),
    shows="a matmul with a reduced result: maxima of its columns")
new("mm_reduced_squares_f32_4096", lambda x, w: ((x @ w) ** 2).sum(), A((4096, 1024), F32), A((1024, 4096), F32),
    shows="a matmul with a reduced result: one number")
new("mm_reduced_middle_b64_512", lambda x, w: jnp.einsum("bik,kj->bij", x, w).mean(1), A((64, 512, 512)),
    A((512, 1024)), shows="a matmul with a reduced result: its middle dimension")
new("mm_low_rank_chain_8192_r64", lambda x, a, b: (x @ a) @ b, A((8192, 2048)), A((2048, 64)), A((64, 2048)),
    shows="cluster_products_chain: low ranks in one kernel")
new("mm_chain_three_narrow_16384", lambda x, a, b, c: jax.nn.relu(jax.nn.relu(x @ a) @ b) @ c, A((16384, 256), F32),
    A((256, 128), F32), A((128, 128), F32),
    A((128, 64), F32), shows="mp_cluster_is_only_multiplied: f32 that only matmuls read")
new("mm_ensemble_mlp_vmap_32", jax.vmap(lambda w1, w2, x: jax.nn.relu(x @ w1) @ w2), A((32, 128, 256)),
    A((32, 256, 64)), A((32, 512, 128)), shows="product_tpu_pair: a chain matrix by matrix")
new("mm_odd_1001x3001x501_bf16", lambda x, w: x @ w, A((1001, 3001)), A((3001, 501)),
    shows="mp_twin_pad_factors: no multiples of eight")
new("mm_shared_lhs_three_odd_2000x1000", lambda x, a, b, c: (x @ a, x @ b, x @ c), A((2000, 1000)), A((1000, 500)),
    A((1000, 300)), A((1000, 700)), shows="cluster_merge, mp_twin_join_factors: matmuls of one array")
new("mm_batch_inside_einsum_thd_h16", lambda q, k: jnp.einsum("qhd,khd->hqk", q, k), A((2048, 16, 64)),
    A((2048, 16, 64)), shows="mp_twin_turn_factors: batches that are not outermost")
new("mm_f8_turned_rhs_2048", lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=F32),
    A((2048, 4096), F8), A((4096, 2048), F8), shows="twin_turns_ends_summed: fp8 with what is summed up outermost")
new("mm_vectors_batched_b256_1024x512", lambda x, w: jnp.einsum("bk,bkn->bn", x, w), A((256, 1024)),
    A((256, 1024, 512)), shows="product_tpu_streamed on a 7x: a vector by a matrix for each of a batch")
new("mm_vector_f32_1x16384x16384", lambda x, w: x @ w, A((16384,), F32), A((16384, 16384), F32),
    shows="a vector by a matrix in f32")
new("mm_gathered_vectors_sum_gpu_b64", lambda q, t, i: jnp.einsum("bd,bkd->bk", q, t[i]), A((64, 128), F32),
    A((8192, 128), F32), A((64, 512), I32),
    shows="mp_cluster_is_turned_for: a gather before a matmul that is a sum")
new("mm_outer_sum_of_few_k8_4096", lambda x, y: x @ y, A((4096, 8), F32), A((8, 4096), F32),
    shows="a matmul over eight")
new("mm_complex64_1024", lambda x, y: x @ y, A((1024, 1024), C64), A((1024, 1024), C64),
    shows="complex halves: a matmul of complex numbers")
new("mm_tri_gram_f32_65536x256", lambda x: x.T @ x, A((65536, 256), F32),
    shows="a Gram matrix: both factors are one array")
new("mm_fp8_scaled_4096", lambda x, w, sx, sw: lax.dot(x, w, preferred_element_type=F32) * (sx * sw),
    A((4096, 4096), F8), A((4096, 4096), F8), A((), F32), A((), F32), shows="fp8 training: scales behind a matmul")
new("mm_masked_weights_4096", lambda x, w, m: x @ (w * m), A((4096, 4096)), A((4096, 4096)),
    A((4096, 4096), jnp.bool_), shows="pruned weights: a factor that is computed")
new("mm_tokens_first_thbe_512x32", lambda x, w: jnp.tensordot(x, w, 1).transpose(0, 2, 1, 3), A((512, 32, 1024)),
    A((1024, 16, 128)), shows="cluster_turned_is_own: a transposed result in the order of the factors")

# ---- a norm after a residual: training steps have it after attention and after the MLP ----

for m, k, n in [(8192, 4096, 4096), (8192, 2048, 8192), (16384, 8192, 2048), (32768, 1024, 1024), (4096, 4096, 4096)]:
  new(f"mm_residual_rmsnorm_{m}x{k}x{n}", lambda x, w, r, g: (lambda y: (y, rmsnorm(y, g)))(r + x @ w), A((m, k)),
      A((k, n)), A((m, n)), A((n,)), shows="sums of the rows of a large matmul's result")
