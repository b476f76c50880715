"""Reductions."""

import jax.numpy as jnp

from .program import F32, A, of_class

opened, new = of_class("reduction")

BIG = A((8192, 8192), F32)
opened("sum_rows", lambda x: x.sum(1), BIG)
opened("sum_columns", lambda x: x.sum(0), BIG)
opened("sum_all", lambda x: x.sum(), BIG)
opened("sum_and_squares", lambda x: (x.sum(), (x * x).sum()), BIG)
opened("max_bf16_rows", lambda x: x.max(1), A((8192, 8192)))
opened("argmax_rows", lambda x: x.argmax(1), A((1024, 32768), F32))
opened("mean_var_middle", lambda x: (x.mean(1), x.var(1)), A((64, 1024, 512), F32))
opened("any_narrow", lambda x: (x > 0).any(1), A((65536, 64), F32))
new("sum_outermost_64x2048x1024", lambda x: x.sum(0), A((64, 2048, 1024), F32), shows="a sum over an outer dimension")
new("sum_outer_and_lanes_256x512x512", lambda x: x.sum((0, 2)), A((256, 512, 512), F32),
    shows="two dimensions with one between")
new("mean_bf16_as_f32_16384x4096", lambda x: x.astype(F32).mean(1), A((16384, 4096)), shows="bf16 added up in f32")
new("max_and_argmax_and_sum_4096x8192", lambda x: (x.max(1), x.argmax(1), x.sum(1)), A((4096, 8192), F32),
    shows="cluster_siblings: three reductions of one array")
new("norms_of_100_arrays", lambda xs: jnp.sqrt(sum((x * x).sum() for x in xs)), [A((512, 1024), F32)] * 100,
    shows="a hundred sums: the global norm of gradients")
new("dot_of_vectors_64M", lambda x, y: jnp.vdot(x, y), A((1 << 26,), F32), A((1 << 26,), F32),
    shows="a matmul that is a sum of everything")
new("pairwise_l1_512x512x256", lambda x, y: jnp.abs(x[:, None] - y).sum(-1), A((512, 256), F32), A((512, 256), F32),
    shows="all pairs, reduced in the kernel that makes them")
new("all_finite_50_arrays", lambda xs: jnp.stack([jnp.isfinite(x).all() for x in xs]).all(), [A((1024, 1024))] * 50,
    shows="checks of gradients for loss scaling")
