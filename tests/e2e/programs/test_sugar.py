"""StableHLO that JAX never writes: sugar, tuples, and shapes that are dynamic in form only.

Programs are text, compiled through JAX's client, and compared with numpy.
"""

import jax
import numpy as np
import pytest
from jaxlib import xla_client as xc


def run(text, *args):
  """The results of a program's main on the first device."""
  device = jax.devices("minipod")[0]
  executable = device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())
  found = executable.execute_sharded([jax.device_put(a, device) for a in args])
  return [np.asarray(a[0]) for a in found.disassemble_into_single_device_arrays()]


def module(body, signature):
  return f"module {{ func.func public @main{signature} {{ {body} }} }}"


A = np.arange(2 * 5 * 7, dtype=np.float32).reshape(2, 5, 7)
B = np.arange(7 * 3, dtype=np.float32).reshape(7, 3) - 10

EINSUMS = [
    ("bij,jk->bik", A, B), ("bij,jk->kib", A, B), ("bij,jk->bk", A, B), ("bij,jk->", A, B),
    ("bij,bkj->bik", A, A), ("bij,bij->ij", A, A), ("bij,bij->b", A, A), ("ij,kl->ljik", B, B),
]


def tensor(a):
  return "tensor<" + "x".join([*map(str, a.shape), "i32" if a.dtype == np.int32 else "f32"]) + ">"


@pytest.mark.parametrize("config,left,right", EINSUMS, ids=[e[0] for e in EINSUMS])
def test_einsum(config, left, right):
  wanted = np.einsum(config, left, right)
  types = f"({tensor(left)}, {tensor(right)}) -> {tensor(wanted)}"
  found, = run(module(f'%0 = "stablehlo.einsum"(%a, %b) {{einsum_config = "{config}"}} : {types} '
                      f"return %0 : {tensor(wanted)}",
                      f"(%a: {tensor(left)}, %b: {tensor(right)}) -> {tensor(wanted)}"), left, right)
  np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("config", ["abc->cab", "abc->b", "abc->", "abc->abc"])
def test_unary_einsum(config):
  wanted = np.einsum(config, A)
  found, = run(module(f'%0 = "stablehlo.unary_einsum"(%a) {{einsum_config = "{config}"}} : '
                      f"({tensor(A)}) -> {tensor(wanted)} return %0 : {tensor(wanted)}",
                      f"(%a: {tensor(A)}) -> {tensor(wanted)}"), A)
  np.testing.assert_allclose(found, wanted)


SELECTS = [
    (0, 0, np.array([1, 0, 1], np.int32), lambda i: A[i]),
    (1, 0, np.array([[4, 0], [2, 2]], np.int32), lambda i: A[:, i]),
    (2, 0, np.array(3, np.int32), lambda i: A[:, :, i]),
    (1, 1, np.array([[4, 0, 1], [2, 2, 3]], np.int32), lambda i: np.stack([A[0, i[0]], A[1, i[1]]])),
    (2, 1, np.array([[4, 0, 1], [2, 2, 3]], np.int32),
     lambda i: np.stack([A[0][:, i[0]], A[1][:, i[1]]])),
]


@pytest.mark.parametrize("dim,batch,index,expected", SELECTS)
def test_torch_index_select(dim, batch, index, expected):
  wanted = expected(index)
  found, = run(module(f'%0 = "stablehlo.torch_index_select"(%a, %i) {{dim = {dim} : i64, batch_dims '
                      f"= {batch} : i64}} : ({tensor(A)}, {tensor(index)}) -> {tensor(wanted)} "
                      f"return %0 : {tensor(wanted)}",
                      f"(%a: {tensor(A)}, %i: {tensor(index)}) -> {tensor(wanted)}"), A, index)
  np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("flag", [True, False])
def test_if(flag):
  found, = run(module(
      '%0 = "stablehlo.if"(%p) ({ %1 = stablehlo.add %a, %a : tensor<f32> '
      '"stablehlo.return"(%1) : (tensor<f32>) -> () }, { "stablehlo.return"(%a) : (tensor<f32>) -> '
      "() }) : (tensor<i1>) -> tensor<f32> return %0 : tensor<f32>",
      "(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32>"), np.bool_(flag), np.float32(3))
  assert found == (6 if flag else 3)


def test_broadcast_and_dot():
  v = np.arange(7, dtype=np.float32)
  wide, matrix, vector = run(module(
      "%0 = stablehlo.broadcast %v, sizes = [2, 3] : (tensor<7xf32>) -> tensor<2x3x7xf32> "
      "%1 = stablehlo.dot %b, %c : (tensor<7x3xf32>, tensor<3x7xf32>) -> tensor<7x7xf32> "
      "%2 = stablehlo.dot %v, %b : (tensor<7xf32>, tensor<7x3xf32>) -> tensor<3xf32> "
      "return %0, %1, %2 : tensor<2x3x7xf32>, tensor<7x7xf32>, tensor<3xf32>",
      "(%v: tensor<7xf32>, %b: tensor<7x3xf32>, %c: tensor<3x7xf32>) -> "
      "(tensor<2x3x7xf32>, tensor<7x7xf32>, tensor<3xf32>)"), v, B, B.T.copy())
  np.testing.assert_array_equal(wide, np.broadcast_to(v, (2, 3, 7)))
  np.testing.assert_allclose(matrix, B @ B.T)
  np.testing.assert_allclose(vector, v @ B)


def test_tuples():
  """A pair inside a pair; the program reads the inner pair and adds its parts."""
  inner = "tuple<tensor<f32>, tensor<i32>>"
  outer = f"tuple<{inner}, tensor<f32>>"
  found, count = run(module(
      f"%0 = stablehlo.tuple %a, %n : {inner} %1 = stablehlo.tuple %0, %b : {outer} "
      f"%2 = stablehlo.get_tuple_element %1[0] : ({outer}) -> {inner} "
      f"%3 = stablehlo.get_tuple_element %2[0] : ({inner}) -> tensor<f32> "
      f"%4 = stablehlo.get_tuple_element %2[1] : ({inner}) -> tensor<i32> "
      f"%5 = stablehlo.get_tuple_element %1[1] : ({outer}) -> tensor<f32> "
      "%6 = stablehlo.subtract %5, %3 : tensor<f32> return %6, %4 : tensor<f32>, tensor<i32>",
      "(%a: tensor<f32>, %b: tensor<f32>, %n: tensor<i32>) -> (tensor<f32>, tensor<i32>)"),
                     np.float32(2), np.float32(5), np.int32(7))
  assert (found, count) == (3, 7)


def test_dynamic_spellings():
  """Dynamic operations whose shapes are constants."""
  text = module(
      "%s = stablehlo.constant dense<[35, 2]> : tensor<2xi64> "
      "%0 = stablehlo.dynamic_reshape %a, %s : (tensor<2x5x7xf32>, tensor<2xi64>) -> "
      "tensor<35x2xf32> "
      "%lo = stablehlo.constant dense<[1, 0]> : tensor<2xi64> "
      "%hi = stablehlo.constant dense<[-4, 1]> : tensor<2xi64> "
      "%in = stablehlo.constant dense<[0, 2]> : tensor<2xi64> "
      "%f = stablehlo.constant dense<-1.0> : tensor<f32> "
      "%1 = stablehlo.dynamic_pad %0, %f, %lo, %hi, %in : (tensor<35x2xf32>, tensor<f32>, "
      "tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<32x5xf32> "
      "%b = stablehlo.constant dense<[2, 1]> : tensor<2xi64> "
      "%e = stablehlo.constant dense<[30, 5]> : tensor<2xi64> "
      "%d = stablehlo.constant dense<[7, 2]> : tensor<2xi64> "
      "%2 = stablehlo.real_dynamic_slice %1, %b, %e, %d : (tensor<32x5xf32>, tensor<2xi64>, "
      "tensor<2xi64>, tensor<2xi64>) -> tensor<4x2xf32> "
      "return %1, %2 : tensor<32x5xf32>, tensor<4x2xf32>",
      "(%a: tensor<2x5x7xf32>) -> (tensor<32x5xf32>, tensor<4x2xf32>)")
  padded, cut = run(text, A)
  wanted = np.full((32, 5), -1, np.float32)
  wanted[1:, 0:4:3] = A.reshape(35, 2)[:31]
  np.testing.assert_array_equal(padded, wanted)
  np.testing.assert_array_equal(cut, wanted[2:30:7, 1:5:2])


def test_dynamic_shapes_are_computed():
  """Shape operands that the program computes from sizes, as exporters of dynamic shapes write them."""
  text = module(
      "%c1 = stablehlo.constant dense<1> : tensor<i32> "
      "%c2 = stablehlo.constant dense<2> : tensor<i32> "
      "%n = stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x6xf32>) -> tensor<i32> "
      "%m = stablehlo.subtract %n, %c2 : tensor<i32> "
      "%big = stablehlo.compare GT, %m, %c1 : (tensor<i32>, tensor<i32>) -> tensor<i1> "
      "%low = stablehlo.select %big, %m, %c1 : tensor<i1>, tensor<i32> "
      "%r1 = stablehlo.reshape %low : (tensor<i32>) -> tensor<1xi32> "
      "%r2 = stablehlo.reshape %c2 : (tensor<i32>) -> tensor<1xi32> "
      "%lo = stablehlo.concatenate %r1, %r2, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
      "tensor<2xi32> "
      "%hi = stablehlo.negate %lo : tensor<2xi32> "
      "%zero = stablehlo.subtract %lo, %lo : tensor<2xi32> "
      "%f = stablehlo.constant dense<-1.0> : tensor<f32> "
      "%0 = stablehlo.dynamic_pad %a, %f, %lo, %hi, %zero : (tensor<4x6xf32>, tensor<f32>, "
      "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x6xf32> "
      '%1 = "stablehlo.dynamic_gather"(%a, %i, %lo) {dimension_numbers = #stablehlo.gather<'
      "offset_dims = [0, 1], start_index_map = [1]>, indices_are_sorted = false} : "
      "(tensor<4x6xf32>, tensor<1xi32>, tensor<2xi32>) -> tensor<4x2xf32> "
      "return %0, %1 : tensor<4x6xf32>, tensor<4x2xf32>",
      "(%a: tensor<4x6xf32>, %i: tensor<1xi32>) -> (tensor<4x6xf32>, tensor<4x2xf32>)")
  a = np.arange(24, dtype=np.float32).reshape(4, 6)
  padded, gathered = run(text, a, np.array([3], np.int32))
  wanted = np.full((4, 6), -1, np.float32)
  np.testing.assert_array_equal(padded[:, :2], wanted[:, :2])
  np.testing.assert_array_equal(padded, wanted)  # four rows are removed, and four are added
  np.testing.assert_array_equal(gathered, a[:, 3:5])


def test_dynamic_conv_with_computed_padding():
  text = module(
      "%n = stablehlo.get_dimension_size %k, dim = 2 : (tensor<1x1x3xf32>) -> tensor<i32> "
      "%one = stablehlo.constant dense<1> : tensor<i32> "
      "%m = stablehlo.subtract %n, %one : tensor<i32> "
      "%p = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<i32>) -> tensor<1x2xi32> "
      '%0 = "stablehlo.dynamic_conv"(%x, %k, %p) {dimension_numbers = '
      "#stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]>, batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<1x1x5xf32>, tensor<1x1x3xf32>, tensor<1x2xi32>) "
      "-> tensor<1x1x7xf32> return %0 : tensor<1x1x7xf32>",
      "(%x: tensor<1x1x5xf32>, %k: tensor<1x1x3xf32>) -> tensor<1x1x7xf32>")
  x, k = np.arange(5, dtype=np.float32) + 1, np.array([1, 10, 100], np.float32)
  found, = run(text, x[None, None], k[None, None])
  np.testing.assert_array_equal(found[0, 0], np.convolve(x, k[::-1]))


def test_booleans_are_single_bits():
  """bitcast_convert packs and unpacks 4-bit numbers, the first one in the lowest bits."""
  bits = np.random.default_rng(0).integers(0, 2, (3, 32)).astype(bool)
  packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint32).reshape(3)
  text = module(
      "%0 = stablehlo.bitcast_convert %a : (tensor<3x32xi1>) -> tensor<3xui32> "
      "%1 = stablehlo.bitcast_convert %0 : (tensor<3xui32>) -> tensor<3x32xi1> "
      "%2 = stablehlo.reshape %a : (tensor<3x32xi1>) -> tensor<24x4xi1> "
      "%3 = stablehlo.bitcast_convert %2 : (tensor<24x4xi1>) -> tensor<24xui4> "
      "%4 = stablehlo.convert %3 : (tensor<24xui4>) -> tensor<24xi32> "
      "return %0, %1, %4 : tensor<3xui32>, tensor<3x32xi1>, tensor<24xi32>",
      "(%a: tensor<3x32xi1>) -> (tensor<3xui32>, tensor<3x32xi1>, tensor<24xi32>)")
  numbers, back, quarters = run(text, bits)
  np.testing.assert_array_equal(numbers, packed)
  np.testing.assert_array_equal(back, bits)
  np.testing.assert_array_equal(quarters, bits.reshape(24, 4) @ [1, 2, 4, 8])


def test_unknown_shape_operand_is_refused_by_name():
  text = module(
      "%f = stablehlo.constant dense<0.0> : tensor<f32> "
      "%z = stablehlo.constant dense<0> : tensor<1xi32> "
      "%0 = stablehlo.dynamic_pad %a, %f, %p, %z, %z : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, "
      "tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32> return %0 : tensor<6xf32>",
      "(%a: tensor<4xf32>, %p: tensor<1xi32>) -> tensor<6xf32>")
  with pytest.raises(Exception, match="stablehlo.dynamic_pad"):
    run(text, np.zeros(4, np.float32), np.zeros(1, np.int32))
