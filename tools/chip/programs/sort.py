"""Sorts, the best k, cumulative operations."""

import jax
import jax.numpy as jnp
from jax import lax

from .program import F32, I32, U32, A, of_class

opened, new = of_class("sort")

opened("sort_1024x1024", lambda x: jnp.sort(x, -1), A((1024, 1024), F32))
opened("argsort_64K", jnp.argsort, A((65536,), F32))
opened("sort_key_value", lambda k, v: lax.sort((k, v), num_keys=1), A((256, 4096), I32), A((256, 4096), F32))
opened("top_k_50_of_32000", lambda x: lax.top_k(x, 50), A((64, 32000), F32))
opened("top_k_2_of_64", lambda x: lax.top_k(x, 2), A((16384, 64), F32))
opened("cumsum_rows", lambda x: jnp.cumsum(x, 1), A((4096, 4096), F32))
opened("cumsum_columns", lambda x: jnp.cumsum(x, 0), A((4096, 4096), F32))
opened("associative_scan", lambda x: lax.associative_scan(jnp.maximum, x), A((4096, 512), F32))

new("sort_f32_65536x64_rows", lambda x: jnp.sort(x, -1), A((65536, 64), F32),
    shows="short lines that fill half of the lanes")
new("sort_columns_4096x512", lambda x: jnp.sort(x, 0), A((4096, 512), F32), shows="a sort along sublanes")
new("argsort_rows_256x16384", lambda x: jnp.argsort(x, -1), A((256, 16384), F32), shows="a sort with places")
new("sort_then_first_100", lambda x: jnp.sort(x, -1)[:, :100], A((256, 8192), F32),
    shows="sort_cost: a sort of which only the front is used")
new("unique_counts_16K", lambda x: jnp.unique(x, return_counts=True, size=4096, fill_value=-1), A((16384,), I32),
    shows="a sort, comparisons of neighbours, scatters")
new("searchsorted_64K_in_1M", lambda a, v: jnp.searchsorted(a, v), A((1 << 20,), F32), A((65536,), F32),
    shows="a loop of lookups of single elements")
new("shuffle_rows_permutation_8K", lambda k, x: jax.random.permutation(jax.random.wrap_key_data(k), x), A((2,), U32),
    A((8192, 1024), F32), shows="sorts of random keys, a lookup of rows")
new("top_k_64_bf16_b128_v128256", lambda x: lax.top_k(x, 64), A((128, 128256)), shows="bf16 packed with its places")
new("top_k_512_of_65536_b16", lambda x: lax.top_k(x, 512), A((16, 65536), F32), shows="a large k: sorted whole")
new("top_k_8_of_256_b8192", lambda x: lax.top_k(x, 8), A((8192, 256), F32), shows="routing among 256 experts")
new("approx_max_k_b64_1M", lambda q, db: lax.approx_max_k(q @ db.T, 10), A((64, 128), F32), A((1 << 17, 128), F32),
    shows="approximate search behind a matmul")
new("cumsum_middle_b8_l2048_d512", lambda x: jnp.cumsum(x, 1), A((8, 2048, 512), F32),
    shows="along a middle dimension")
new("cumlogsumexp_b16_l4096_d256", lambda x: lax.cumlogsumexp(x, 1), A((16, 2048, 256), F32),
    shows="exponentials inside of a cumulative sum")
new("cumsum_of_product_b4_l2048", lambda x, w: jnp.cumsum(jax.nn.softplus(x @ w), 1), A((4, 2048, 1024), F32),
    A((1024, 512), F32), shows="cluster_accepts_is_made_again: what is expensive before a cumulative sum")
new("top_k_100_of_65536_b64", lambda x: lax.top_k(x, 100), A((64, 65536), F32),
    shows="sort_cost_best_tiles: lines along the lanes")
new("top_k_50_of_128256_b4", lambda x: lax.top_k(x, 50), A((4, 128256), F32),
    shows="sort_cost_best_tiles: eight lines or fewer")
