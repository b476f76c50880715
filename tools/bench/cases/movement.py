"""Operations that move values without changing them: transposes, gathers, scatters, sorts."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import integers, jitted, normal, scalar, uniform

MILLION = 1_000_000
TABLE = (20_000, 128)
CHOSEN = 16_384

CASES = [
    jitted("transpose", lambda x: x.T + 0, normal(2048, 2048)),
    jitted("transpose_heads", lambda x: x.transpose(0, 2, 1, 3) + 0, normal(4, 256, 16, 64)),
    jitted("transpose_heads_8x512", lambda x: x.transpose(0, 2, 1, 3) + 0, normal(8, 512, 16, 64)),
    jitted("reverse", lambda x: jnp.flip(x, 1), normal(2048, 1024)),
    jitted("concatenate", lambda x, y: jnp.concatenate([x, y], 1), normal(1024, 1024),
           normal(1024, 512)),
    jitted("pad", lambda x: jnp.pad(x, 1), normal(1024, 1024)),
    jitted("broadcast", lambda x: jnp.broadcast_to(x[:, None], (1024, 1024)), normal(1024)),
    jitted("update_slice", lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 0)),
           normal(1024, 1024), normal(16, 1024), scalar(5, "int32")),
    jitted("gather_rows", lambda x, i: x[i], normal(*TABLE), integers(TABLE[0], CHOSEN)),
    jitted("scatter_add_rows", lambda x, i, y: x.at[i].add(y), normal(*TABLE),
           integers(TABLE[0], CHOSEN), normal(CHOSEN, TABLE[1])),
    jitted("gather_scalars", lambda x, i: x[i], uniform(MILLION), integers(MILLION, MILLION),
           has_share=False),
    jitted("scatter_add_scalars", lambda x, i: x.at[i].add(1.0), uniform(MILLION),
           integers(MILLION, MILLION), has_share=False),
    jitted("one_hot", lambda i: jax.nn.one_hot(i, 256), integers(256, 8192)),
    jitted("sort_2e5", jnp.sort, uniform(200_000), has_share=False),
    jitted("argsort_2e5", jnp.argsort, uniform(200_000), has_share=False),
    jitted("sort_rows", lambda x: jnp.sort(x, 1), uniform(256, 1024), has_share=False),
    jitted("top_k", lambda x: lax.top_k(x, 40), uniform(16, 32_768), has_share=False),
]
