"""Convolutions of images, and Fourier transforms."""

import jax
import jax.numpy as jnp
from jax import lax

from cases.case import jitted, normal

# Name: the image, the kernel, the stride, and the groups of channels.
CONVOLUTIONS = {
    "first_7x7": ((2, 112, 112, 3), (7, 7, 3, 64), 2, 1),
    "3x3_of_32": ((4, 56, 56, 32), (3, 3, 32, 32), 1, 1),
    "3x3_of_128": ((4, 14, 14, 128), (3, 3, 128, 128), 1, 1),
    "1x1_of_256": ((4, 28, 28, 256), (1, 1, 256, 64), 1, 1),
    "depthwise": ((4, 56, 56, 64), (3, 3, 1, 64), 1, 64),
    "one_channel": ((64, 28, 28, 1), (3, 3, 1, 16), 1, 1),
}


def convolution(stride, groups):
  def call(image, kernel):
    return lax.conv_general_dilated(image, kernel, (stride, stride), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                    feature_group_count=groups)
  return call


def both_gradients(image, kernel):
  f = convolution(1, 1)
  return jax.grad(lambda *operands: jnp.square(f(*operands)).sum(), (0, 1))(image, kernel)


CASES = [
    *(jitted(name, convolution(stride, groups), normal(*image), normal(*kernel))
      for name, (image, kernel, stride, groups) in CONVOLUTIONS.items()),
    jitted("gradients_of_64", both_gradients, normal(4, 28, 28, 64), normal(3, 3, 64, 64)),
    jitted("fft_2e18", jnp.fft.fft, normal(1 << 18, dtype="complex64")),
    jitted("fft_rows", jnp.fft.fft, normal(500, 1000, dtype="complex64")),
    jitted("rfft_rows", jnp.fft.rfft, normal(512, 1024)),
    jitted("fft2", jnp.fft.fft2, normal(512, 512, dtype="complex64")),
]
