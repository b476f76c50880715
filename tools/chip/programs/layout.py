"""What only moves data, and what makes compilers copy arrays into other layouts."""

import jax.numpy as jnp
from jax import lax

from .program import C64, F32, I32, A, of_class

opened, new = of_class("layout")

opened("transpose_f32_4096", lambda x: x.T + 0, A((4096, 4096), F32))
opened("transpose_bshd_bhsd", lambda x: x.transpose(0, 2, 1, 3) * 2, A((8, 2048, 16, 128)))
opened("reshape_merge", lambda x: x.reshape(8192, 4096) * 2, A((8192, 32, 128)))
opened("reshape_narrow", lambda x: x.reshape(-1, 48) * 2, A((4096, 768), F32))
opened("concat_rows", lambda x, y: jnp.concatenate([x, y]), A((4096, 4096)), A((4096, 4096)))
opened("concat_columns_odd", lambda x, y: jnp.concatenate([x, y], 1), A((4096, 1000)), A((4096, 1000)))
opened("pad_odd", lambda x: jnp.pad(x, ((1, 1), (3, 3))), A((4096, 4096), F32))
opened("slice_strided", lambda x: x[::2, 1:-1] * 2, A((4096, 4096), F32))
opened("dus_kv_donated", lambda c, x, i: lax.dynamic_update_slice(c, x, (0, i, 0, 0)), A((8, 4096, 16, 128)),
       A((8, 1, 16, 128)), A((), I32), donate=(0,))
opened("dus_copy", lambda c, x, i: lax.dynamic_update_slice(c, x, (i, 0)), A((8192, 4096)), A((64, 4096)), A((), I32))
opened("reverse_minor", lambda x: x[:, ::-1], A((4096, 4096), F32))
opened("reverse_major", lambda x: x[::-1] * 2, A((4096, 4096), F32))
opened("roll_columns", lambda x: jnp.roll(x, 1, 1), A((4096, 4096), F32))
opened("repeat_heads", lambda x: jnp.repeat(x, 4, 2) * 2, A((4, 2048, 8, 128)))

# ---- patches and blocks ----


def patchify(x, p):
  b, h, w, c = x.shape
  return x.reshape(b, h // p, p, w // p, p, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, (h // p) * (w // p), -1)


def unpatchify(x, p, c):
  b, l, _ = x.shape
  n = int(l ** 0.5)
  return x.reshape(b, n, n, p, p, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, n * p, n * p, c)


new("patchify_16_b64_224_rgb", lambda x: patchify(x, 16) * 2, A((64, 224, 224, 3)),
    shows="narrow blocks change places")
new("patchify_16_matmul_b64_224", lambda x, w: patchify(x, 16) @ w, A((64, 224, 224, 3)), A((768, 768)),
    shows="patches before a matmul")
new("unpatchify_2_dit_b64_32_c4", lambda x: unpatchify(x, 2, 4) + 1, A((64, 256, 16), F32),
    shows="blocks of four channels put back")
new("unpatchify_8_b16_c64", lambda x: unpatchify(x, 8, 64) * 2, A((16, 256, 4096)),
    shows="twin_tiles_moved: rows of 64 lanes")
new("patchify_nchw_14_b32", lambda x: x.reshape(32, 3, 16, 14, 16, 14).transpose(0, 2, 4, 1, 3, 5).reshape(32, 256,
    588) * 2,
    A((32, 3, 224, 224)), shows="torch's patches: rows of 588")
new("space_to_depth_2_b32_c64_112", lambda x: x.reshape(32, 56, 2, 56, 2, 64).transpose(0, 1, 3, 2, 4, 5).reshape(32,
    56, 56, 256) + 1,
    A((32, 112, 112, 64), F32), shows="twin_tiles_moved")
new("window_partition_7_b32_c96_56", lambda x: x.reshape(32, 8, 7, 8, 7, 96).transpose(0, 1, 3, 2, 4, 5).reshape(-1,
    49, 96) * 2,
    A((32, 56, 56, 96)), shows="Swin's windows: rows move, lanes stay")
new("nchw_to_nhwc_b32_c256_56", lambda x: x.transpose(0, 2, 3, 1) * 2, A((32, 256, 56, 56)),
    shows="a transpose to channels in the lanes, or none at all")
new("im2col_3x3_b16_c64_56", lambda x, w: jnp.concatenate([jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))[:, i:i + 56,
    j:j + 56]
                                                          for i in range(3) for j in range(3)], -1) @ w,
    A((16, 56, 56, 64)), A((576, 64)), shows="a concatenation of shifted slices before a matmul")
new("frame_audio_400_hop_160_b16", lambda x: x[:, jnp.arange(1000)[:, None] * 160 + jnp.arange(400)],
    A((16, 160400), F32), shows="overlapping windows as a lookup of single elements")

# ---- heads, rows and pads ----

new("split_heads_b8_l2048_e2048", lambda x: x.reshape(8, 2048, 16, 128).transpose(0, 2, 1, 3) * 2, A((8, 2048, 2048)),
    shows="heads out of rows")
new("transpose_minor_b512_64x256", lambda x: x.swapaxes(1, 2) + 0, A((512, 64, 256), F32),
    shows="many small transposes between lanes and sublanes")
new("transpose_bf16_8192", lambda x: x.T * 2, A((8192, 8192)), shows="a transpose of packed bf16")
new("transpose_3d_rotate_256x512x512", lambda x: x.transpose(2, 0, 1) * 2, A((256, 512, 512)),
    shows="the lanes become outermost")
new("reshape_rows_96_to_128", lambda x: x.reshape(-1, 128) * 2, A((262144, 96), F32),
    shows="twin_tiles_of_arguments: rows of another length")
new("even_odd_split_8192x4096", lambda x: (x[:, ::2] + 1, x[:, 1::2] * 2), A((8192, 4096), F32),
    shows="strided slices of the last dimension")
new("concat_embeddings_lanes_26x32", lambda xs: jnp.concatenate(xs, -1) * 2, [A((16384, 32), F32)] * 26,
    shows="26 narrow parts of a row")
new("concat_cls_token_b64_l196_e768", lambda c, x, p: jnp.concatenate([jnp.broadcast_to(c, (64, 1, 768)), x], 1) + p,
    A((1, 1, 768)), A((64, 196, 768)), A((197, 768)), shows="one row before others: all of them move")
new("outer_product_einsum_b64_1024", lambda x, y: jnp.einsum("bi,bj->bij", x, y), A((64, 1024), F32),
    A((64, 1024), F32), shows="cluster_kinds_is_outer: a matmul without a sum")
new("flip_images_b64_224_rgb", lambda x: x[:, :, ::-1] * 2, A((64, 224, 224, 3)),
    shows="mp_reverse_seconds: reversed pixels")
new("rolling_window_mean_1024x8192_w64", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 64), (1, 1), "VALID") / 64,
    A((1024, 8192), F32), shows="irregular_cost: windows along the lanes")
new("rolling_window_view_512x2048_w32", lambda x: jnp.stack([x[:, i:i + 2016] for i in range(32)], -1).std(-1),
    A((512, 2048), F32), shows="32 shifted reads of one array, reduced")
new("complex_to_planes_4096", lambda z: jnp.stack([z.real, z.imag]), A((4096, 2048), C64),
    shows="twin_complex: a complex argument taken apart")


def put_in_stack(stack, xs):
  for i, x in enumerate(xs):
    stack = stack.at[i].set(x)
  return stack


new("dus_stack_of_8_donated", put_in_stack,
    A((8, 2048, 2048)), [A((2048, 2048))] * 8, donate=(0,), shows="updates one after the other in one donated array")
