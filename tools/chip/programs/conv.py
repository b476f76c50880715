"""Convolutions and pooling."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .blocks import bottleneck, conv, grad_of
from .program import BF, F32, I8, I32, A, of_class

opened, new = of_class("conv")

opened("conv_stem_7x7_s2", functools.partial(conv, stride=2), A((64, 224, 224, 3)), A((7, 7, 3, 64)))
opened("conv_3x3_64_56", conv, A((64, 56, 56, 64)), A((3, 3, 64, 64)))
opened("conv_3x3_256_14", conv, A((64, 14, 14, 256)), A((3, 3, 256, 256)))
opened("conv_1x1_1024", conv, A((64, 14, 14, 1024)), A((1, 1, 1024, 256)))
opened("conv_depthwise_3x3", functools.partial(conv, groups=256), A((32, 56, 56, 256)), A((3, 3, 1, 256)))
opened("conv_grad_3x3_128", jax.grad(lambda x, w: conv(x, w).astype(F32).sum(), (0, 1)), A((32, 28, 28, 128)),
       A((3, 3, 128, 128)))
opened("max_pool_3x3_s2", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
       A((64, 112, 112, 64)))
opened("resnet_bottleneck", bottleneck, A((32, 28, 28, 512)), A((1, 1, 512, 128)), A((3, 3, 128, 128)),
       A((1, 1, 128, 512)))
opened("resnet_bottleneck_grad", jax.grad(lambda w, x: bottleneck(x, *w).astype(F32).sum()),
       (A((1, 1, 512, 128)), A((3, 3, 128, 128)), A((1, 1, 128, 512))), A((32, 28, 28, 512)))

# ---- other dimensions, orders and windows ----


def conv_of(order, stride=1, groups=1, pad="SAME", dilated=1, spread=1):
  """A convolution with dimensions in this order, as lax wants it."""
  def f(x, w):
    n = x.ndim - 2
    return lax.conv_general_dilated(x, w, (stride,) * n, pad, (spread,) * n, (dilated,) * n, dimension_numbers=order,
                                    feature_group_count=groups)
  return f


NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
NWC, NCW, NDHWC, NCDHW = ("NWC", "WIO", "NWC"), ("NCW", "OIW", "NCW"), ("NDHWC", "DHWIO", "NDHWC"), ("NCDHW", "OIDHW",
    "NCDHW")

new("conv_nchw_3x3_c64_56_b64", conv_of(NCHW), A((64, 64, 56, 56)), A((64, 64, 3, 3)),
    shows="torch's order: layouts of both sides")
new("conv_nchw_stem_7x7_s2_b32", conv_of(NCHW, 2, pad=[(3, 3), (3, 3)]), A((32, 3, 224, 224)), A((64, 3, 7, 7)),
    shows="twin_tiles_of_images: few channels")
new("conv_patchify_16x16_b64_e768", conv_of(NHWC, 16, pad="VALID"), A((64, 224, 224, 3)), A((16, 16, 3, 768)),
    shows="windows beside each other: a matmul of patches")
new("conv_few_images_b4_3x3_c128_112", conv, A((4, 112, 112, 128)), A((3, 3, 128, 128)),
    shows="twin_tiles_of_parts: fewer than eight images, parts of each")
new("conv_one_image_b1_3x3_c64_512", conv, A((1, 512, 512, 64)), A((3, 3, 64, 64)),
    shows="twin_tiles_of_parts: one image")
new("conv_images_b16_rgb_5x5_c64_128", conv, A((16, 128, 128, 3)), A((5, 5, 3, 64)),
    shows="twin_tiles_of_images: images in the lanes")
new("conv_many_images_b256_3x3_c16_32", conv, A((256, 32, 32, 16)), A((3, 3, 16, 16)),
    shows="product_convolution: few channels, many images")
new("conv_to_rgb_b8_3x3_c64_256", conv, A((8, 256, 256, 64)), A((3, 3, 64, 3)),
    shows="a result of three channels that main returns")
new("conv_dilated_2_b16_c256_33", conv_of(NHWC, dilated=2), A((16, 33, 33, 256)), A((3, 3, 256, 256)),
    shows="DeepLab's holes in windows")
new("conv_transposed_4x4_s2_b16_c256_32", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), A((16, 32, 32, 256)),
    A((4, 4, 256, 128)), shows="a convolution whose input is spread")
new("conv_grouped_32_resnext_b32_c256_28", functools.partial(conv, groups=32), A((32, 28, 28, 256)),
    A((3, 3, 8, 256)), shows="product_convolution_groups: eight channels in a group")
new("conv_depthwise_7x7_convnext_b32_c192_28", functools.partial(conv, groups=192), A((32, 28, 28, 192)),
    A((7, 7, 1, 192)), shows="a channel for itself, windows of seven")
new("conv_depthwise_grad_b16_c192_28", grad_of(functools.partial(conv, groups=192), (0, 1)), A((16, 28, 28, 192)),
    A((3, 3, 1, 192)), shows="the gradient of a channel's window")
new("conv_depthwise_nchw_b32_c144_56", conv_of(NCHW, groups=144), A((32, 144, 56, 56)), A((144, 1, 3, 3)),
    shows="the same in torch's order")
new("conv1d_k3_b16_l4096_c512", conv_of(NWC), A((16, 4096, 512)), A((3, 512, 512)), shows="one dimension")
new("conv1d_causal_depthwise_k4_b4_l2048_c2048", lambda x, w: sum(
    jnp.pad(x, ((0, 0), (3 - i, 0), (0, 0)))[:, :x.shape[1]] * w[i] for i in range(4)), A((4, 2048, 2048)),
    A((4, 2048)), shows="Mamba's short convolution as shifted sums")
new("conv1d_depthwise_k31_conformer_b16_l512_c512", conv_of(NWC, groups=512), A((16, 512, 512)), A((31, 1, 512)),
    shows="windows of 31 for each channel")
new("conv1d_dilated_wavenet_b8_l8192_c128", conv_of(NWC, dilated=64, pad=[(64, 0)]), A((8, 8192, 128)),
    A((2, 128, 256)), shows="holes of 64")
new("conv3d_3x3x3_b2_c32_32", conv_of(NDHWC), A((2, 32, 64, 64, 32)), A((3, 3, 3, 32, 32)),
    shows="three dimensions, few images")
new("conv_grad_weights_3x3_b64_c64_56", grad_of(lambda w, x: conv(x, w)), A((3, 3, 64, 64)), A((64, 56, 56, 64)),
    shows="product_convolution_gradient: a window of the whole image")
new("conv_grad_input_s2_b32_c128_56", lambda x, w, g: jax.vjp(lambda x: conv(x, w, 2), x)[1](g), A((32, 56, 56, 128)),
    A((3, 3, 128, 256)), A((32, 28, 28, 256)), shows="spread gradients of a convolution with strides")
new("conv_grad_nchw_3x3_b32_c128_28", grad_of(conv_of(NCHW), (0, 1)), A((32, 128, 28, 28)), A((128, 128, 3, 3)),
    shows="both gradients in torch's order")
new("conv_int8_3x3_b32_c128_28", lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC,
    preferred_element_type=I32), A((32, 28, 28, 128), I8), A((3, 3, 128, 128), I8), shows="a convolution of int8")

# ---- pooling and resizing ----


def pool(x, size, stride, what=lax.max, start=-jnp.inf, pad="VALID"):
  one = lambda n: (1,) + (n,) * (x.ndim - 2) + (1,)
  return lax.reduce_window(x, start, what, one(size), one(stride), pad)


new("max_pool_2x2_b64_c64_112", lambda x: pool(x, 2, 2), A((64, 112, 112, 64)), shows="windows beside each other")
new("max_pool_grad_2x2_b32_c64_112", grad_of(lambda x: pool(x, 2, 2)), A((32, 112, 112, 64)),
    shows="mp_cluster_selected_kernels: select_and_scatter")
new("max_pool_grad_3x3_s2_b32_c64_112", grad_of(lambda x: pool(x, 3, 2, pad="SAME")), A((32, 112, 112, 64)),
    shows="select_and_scatter with windows that overlap, and padding")
new("avg_pool_2x2_b64_c64_112", lambda x: pool(x, 2, 2, lax.add, 0.0) / 4, A((64, 112, 112, 64)),
    shows="sums of windows")
new("avg_pool_grad_3x3_s1_b32_c128_28", grad_of(lambda x: pool(x, 3, 1, lax.add, 0.0, "SAME") / 9),
    A((32, 28, 28, 128), F32), shows="sums of windows back")
new("max_pool_nchw_3x3_s2_b32", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "SAME"),
    A((32, 64, 112, 112)), shows="pooling along the lanes")
new("resize_bilinear_x2_b16_c128_32", lambda x: jax.image.resize(x, (16, 64, 64, 128), "bilinear"),
    A((16, 32, 32, 128)), shows="resizing as matmuls with small matrices")
new("batchnorm_conv_relu_train_b32_c128_28", lambda x, w, g,
    b: (lambda y: (jax.nn.relu((y - y.mean((0, 1, 2))) * lax.rsqrt(
    y.var((0, 1, 2)) + 1e-5) * g + b)).astype(BF))(conv(x, w).astype(F32)), A((32, 28, 28, 128)), A((3, 3, 128, 128)),
    A((128,), F32), A((128,), F32), shows="statistics of a convolution's result")
new("conv_stem_7x7_s2_b64_rgb_384", functools.partial(conv, stride=2), A((64, 384, 384, 3)), A((7, 7, 3, 64)),
    shows="twin_tiles_of_images: images in the lanes that do not fit into VMEM")
