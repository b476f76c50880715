"""Matmuls whose operands and result have element types of different classes, computed as in XLA.

JAX makes them from preferred_element_type, and from einsum of real and complex operands.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxlib import xla_client as xc
import numpy as np
import pytest

TYPES = {"i1": np.bool_, "i8": np.int8, "ui8": np.uint8, "i32": np.int32, "f16": np.float16, "f32": np.float32}
RESULTS = [*TYPES, "complex<f32>"]
# Multiples of one half, so that types with and without fractions differ, and all sums are exact.
LEFT = np.array([[0.5, -1.5, 2], [3, 0, -4.5]], np.float32)
RIGHT = np.array([[1.5, 2], [0.5, 3.5], [1, -1]], np.float32)


def product(left, right, result):
  return (f"stablehlo.dot_general %{left}_a, %{right}_b, contracting_dims = [1] x [0] : "
          f"(tensor<2x3x{left}>, tensor<3x2x{right}>) -> tensor<2x2x{result}>")


def program(left):
  ops = [(right, result) for right in TYPES for result in RESULTS]
  arguments = [f"%{left}_a: tensor<2x3x{left}>", *(f"%{t}_b: tensor<3x2x{t}>" for t in TYPES)]
  results = [f"tensor<2x2x{result}>" for _, result in ops]
  lines = [f"%{i} = {product(left, *op)}" for i, op in enumerate(ops)]
  names = ", ".join(f"%{i}" for i in range(len(ops)))
  body = "\n".join(lines)
  return ops, f"""func.func public @main({", ".join(arguments)}) -> ({", ".join(results)}) {{
{body}
return {names} : {", ".join(results)}
}}"""


def as_type(array, dtype):
  with np.errstate(invalid="ignore"):
    return array.astype(np.int32).astype(dtype) if dtype == np.uint8 else array.astype(dtype)


def run(platform, left, text):
  device = jax.devices(platform)[0]
  executable = device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())
  arguments = [as_type(LEFT, TYPES[left]), *(as_type(RIGHT, dtype) for dtype in TYPES.values())]
  found = executable.execute_sharded([jax.device_put(a, device) for a in arguments])
  return [np.asarray(a[0]) for a in found.disassemble_into_single_device_arrays()]


@pytest.mark.parametrize("left", TYPES)
def test_every_class_of_operands_and_result(left):
  ops, text = program(left)
  for op, found, wanted in zip(ops, run("minipod", left, text), run("cpu", left, text), strict=True):
    np.testing.assert_array_equal(found, wanted, str((left, *op)))


@pytest.mark.parametrize("dtype,result", [
    ("float32", "complex64"), ("float16", "int32"), ("bool", "int32"), ("bool", "float32"),
    ("bool", "complex64"), ("int32", "complex64")])
def test_preferred_element_type(dtype, result):
  found = {}
  for platform in ("minipod", "cpu"):
    with jax.default_device(jax.devices(platform)[0]):
      left, right = jnp.asarray(LEFT).astype(dtype), jnp.asarray(RIGHT).astype(dtype)
      found[platform] = np.asarray(lax.dot(left, right, preferred_element_type=result))
  np.testing.assert_array_equal(found["minipod"], found["cpu"])


def test_einsum_of_real_and_complex_operands():
  c = (1 + 2j) * np.ones((2, 2), np.complex64)
  found = jnp.einsum("ij,jk,kl->il", LEFT, RIGHT, c)
  np.testing.assert_allclose(found, LEFT @ RIGHT @ c, rtol=1e-6)


def test_gradient_of_a_mixed_product():
  def loss(a):
    return jnp.real(lax.dot(a, RIGHT, preferred_element_type=jnp.complex64) * (2 + 1j)).sum()
  np.testing.assert_allclose(jax.grad(loss)(LEFT), np.broadcast_to(2 * RIGHT.sum(1), LEFT.shape))


def test_convolution():
  a = np.arange(-3, 4, dtype=np.float32)[None, None] / 2
  def text(result):
    return f"""func.func public @main(%a: tensor<1x1x7xf32>, %k: tensor<1x1x3xf32>) -> tensor<1x1x5x{result}> {{
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<1x1x7xf32>, tensor<1x1x3xf32>) -> tensor<1x1x5x{result}>
  return %0 : tensor<1x1x5x{result}>
}}"""
  found = {}
  for result in ("complex<f32>", "i32"):
    for platform in ("minipod", "cpu"):
      device = jax.devices(platform)[0]
      executable = device.client.compile_and_load(text(result), xc.DeviceList((device,)), xc.CompileOptions())
      operands = [jax.device_put(x, device) for x in (a, np.float32([[[1, 2, 0.5]]]))]
      found[platform] = np.asarray(
          executable.execute_sharded(operands).disassemble_into_single_device_arrays()[0][0])
    np.testing.assert_array_equal(found["minipod"], found["cpu"], result)
