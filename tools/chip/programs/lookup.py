"""Look-ups and what adds to looked-up places."""

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import grad_of
from .program import BF, F32, I32, U32, A, of_class

opened, new = of_class("lookup")

opened("embed_8192_of_32000", lambda t, i: t[i], A((32000, 4096)), A((8192,), I32))
opened("embed_small_rows", lambda t, i: t[i], A((1 << 20, 64), F32), A((65536,), I32))
opened("gather_scalars_1M", lambda t, i: t[i], A((1 << 20,), F32), A((1 << 20,), I32))
opened("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), A((8192, 32000), F32), A((8192, 1), I32))
opened("onehot_matmul", lambda i, w: jax.nn.one_hot(i, 32000, dtype=BF) @ w, A((4096,), I32), A((32000, 1024)))
opened("scatter_add_scalars", lambda x, i, u: x.at[i].add(u), A((1 << 20,), F32), A((1 << 16,), I32),
    A((1 << 16,), F32))
opened("scatter_add_rows", lambda x, i, u: x.at[i].add(u), A((32000, 1024), F32), A((8192,), I32),
    A((8192, 1024), F32))
opened("scatter_set_rows_donated", lambda x, i, u: x.at[i].set(u), A((32000, 1024)), A((64,), I32), A((64, 1024)),
       donate=(0,))
opened("embed_grad", jax.grad(lambda t, i: t[i].astype(F32).sum()), A((32000, 1024)), A((8192,), I32))
opened("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 1024), A((65536, 128), F32), A((65536,), I32))

# ---- embeddings ----

new("embed_bag_dlrm_26x16384", lambda ts, i: [t[i[:, k]] for k, t in enumerate(ts)], [A((100000, 32), F32)] * 26,
    A((16384, 26), I32), shows="26 lookups of narrow rows")
new("embed_bag_sum_b4096_n20_d64", lambda t, i: t[i].sum(1), A((500000, 64), F32), A((4096, 20), I32),
    shows="a sum behind a lookup, whether it is one kernel")
new("embed_bf16_narrow_b65536_d32", lambda t, i: t[i], A((200000, 32)), A((65536,), I32),
    shows="mp_lookup_is_apart: narrow types")
new("embed_tokens_positions_b32_l512", lambda t, p, i: t[i] * 27.7 + p, A((50257, 768), F32), A((512, 768), F32),
    A((32, 512), I32), shows="a lookup with its sum")
new("embed_grad_dense_b64_l128_v30522", lambda t, i, g: jax.vjp(lambda t: t[i], t)[1](g), A((30522, 768), F32),
    A((64, 128), I32), A((64, 128, 768), F32), shows="a sum by scatter into zeros")
new("embed_grad_sorted_adagrad", lambda t, a, i, g: (lambda s: (t.at[i].add(-0.01 * g * lax.rsqrt(s[i] + 1e-6)), s))(
    a.at[i].add(g * g)), A((500000, 64), F32), A((500000, 64), F32), A((32768,), I32), A((32768, 64), F32),
    donate=(0, 1), shows="scatter, lookup, scatter in two donated tables")
new("gather_columns_8192x4096", lambda x, i: x[:, i] * 2, A((8192, 4096), F32), A((512,), I32),
    shows="lookup_is_turned: columns")
new("gather_windows_1d_b4096_w128", lambda x, i: jax.vmap(lambda s: lax.dynamic_slice(x, (s,), (128,)))(i),
    A((1 << 22,), F32), A((4096,), I32), shows="indexed_cost_stepwise: slices that begin anywhere in the lanes")
new("gather_crops_b64_96_of_128", lambda x, i: jax.vmap(lambda x, i: lax.dynamic_slice(x, (i[0], i[1], 0),
    (96, 96, 3)))(x, i),
    A((64, 128, 128, 3), F32), A((64, 2), I32), shows="random crops: windows of a batch")
new("lookup_near_table_f32_2048x512", lambda t, i: t[i] + 1, A((2048, 512), F32), A((65536,), I32),
    shows="gather.near: a table that fits into VMEM")
new("lookup_table_made_here", lambda t, w, i: (t @ w)[i] * 2, A((8192, 512)), A((512, 512)), A((32768,), I32),
    shows="a table that a matmul makes")


def hash_grid(table, x, levels=8):
  """Instant NGP: eight corners of each level, hashed."""
  out = []
  for level in range(levels):
    p = x * 16 * 1.5 ** level
    low = jnp.floor(p).astype(U32)
    feature = 0.0
    for corner in range(8):
      offset = jnp.array([corner >> k & 1 for k in range(3)], U32)
      c = low + offset
      h = (c[:, 0] ^ c[:, 1] * jnp.uint32(2654435761) ^ c[:, 2] * jnp.uint32(805459861)) % table.shape[1]
      w = jnp.where(offset == 1, p - low, 1 - p + low).prod(1)
      feature = feature + w[:, None] * table[level, h.astype(I32)]
    out.append(feature)
  return jnp.concatenate(out, -1)


new("hash_grid_ngp_16384_points", hash_grid, A((8, 65536, 2), F32), A((16384, 3), F32),
    shows="64 lookups of pairs, remainders of whole numbers")

# ---- segments, graphs, neighbours ----

new("segment_sum_edges_1M_d32", lambda x, i: jax.ops.segment_sum(x, i, 65536), A((1 << 20, 32), F32),
    A((1 << 20,), I32), shows="a sum by scatter of narrow rows")
new("segment_sum_sorted_256K_d128", lambda x, i: jax.ops.segment_sum(x, i, 16384, indices_are_sorted=True),
    A((262144, 128), F32), A((262144,), I32), shows="indices that are sorted")


def segment_softmax(s, i, n):
  top = jax.ops.segment_max(s, i, n)
  e = jnp.exp(s - top[i])
  return e / jax.ops.segment_sum(e, i, n)[i]


new("segment_softmax_gat_256K_h8", lambda s, i: segment_softmax(s, i, 16384), A((262144, 8), F32), A((262144,), I32),
    shows="scatters and lookups in turns, rows of eight")
new("message_passing_gcn_64K_e512K_d128", lambda x, w, s, r,
    d: jax.nn.relu(jax.ops.segment_sum((x @ w)[s] * d[s][:, None], r, 65536)),
    A((65536, 128), F32), A((128, 128), F32), A((524288,), I32), A((524288,), I32), A((65536,), F32),
    shows="lookup, then a sum by scatter")
new("message_passing_grad_16K_e128K_d64", grad_of(lambda x, w, s,
    r: jax.nn.relu(jax.ops.segment_sum(x[s] @ w, r, 16384)), (0, 1)),
    A((16384, 64), F32), A((64, 64), F32), A((131072,), I32), A((131072,), I32),
    shows="scatters and lookups in both directions")
new("histogram_256_of_4M", lambda x: jnp.bincount(x, length=256), A((1 << 22,), I32),
    shows="a scatter of ones into a small array")


def lennard_jones(r, neighbours):
  """jax-md: a neighbour list of fixed size, padded with the number of particles."""
  n = r.shape[0]
  d = r[:, None] - r[jnp.minimum(neighbours, n - 1)]
  d = d - 40.0 * jnp.round(d / 40.0)
  square = jnp.where(neighbours < n, (d * d).sum(-1), 1e6)
  near = jnp.where((square > 0) & (square < 6.25), square, 1e6)
  s6 = (1 / near) ** 3
  return 0.5 * (4 * (s6 * s6 - s6)).sum()


new("neighbour_list_energy_32K_x64", lennard_jones, A((32768, 3), F32), A((32768, 64), I32),
    shows="lookups of three coordinates: narrow rows, padded gathers")
new("neighbour_list_forces_8K_x32", jax.grad(lennard_jones), A((8192, 3), F32), A((8192, 32), I32),
    shows="their gradient: a scatter of three coordinates")


def cells(r, count=8, room=32):
  """A cell list: particles sorted by their cells, then put into a padded array."""
  cell = jnp.clip((r * count).astype(I32), 0, count - 1)
  number = cell[:, 0] * count * count + cell[:, 1] * count + cell[:, 2]
  order = jnp.argsort(number)
  sorted_number = number[order]
  rank = jnp.arange(r.shape[0]) - jnp.searchsorted(sorted_number, sorted_number)
  out = jnp.full((count ** 3, room, 3), 1e3, F32)
  return out.at[sorted_number, jnp.minimum(rank, room - 1)].set(r[order])


new("cell_list_build_8K", cells, A((8192, 3), F32), shows="a sort, binary searches in a loop, a scatter of windows")
new("knn_graph_4096_k16", lambda x: lax.top_k(-((x * x).sum(1)[:, None] - 2 * x @ x.T + (x * x).sum(1)), 16),
    A((4096, 64), F32), shows="distances as a matmul, then the best k")
new("scatter_min_scalars_64K_in_1M", lambda x, i, u: x.at[i].min(u), A((1 << 20,), F32), A((1 << 16,), I32),
    A((1 << 16,), F32), donate=(0,), shows="indexed_cost_update: a scatter of scalars without a sum")
