"""minipod refuses unsupported programs with an error that names the operation, the reason and the line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxlib import xla_client as xc

X = np.eye(3, dtype=np.float32)
FLOAT = jax.ShapeDtypeStruct((3, 3), np.float32)


@pytest.mark.parametrize("f", [
    lambda x: jax.lax.linalg.eigh(x, subset_by_index=(0, 1)),
    lambda x: jax.lax.linalg.svd(x, full_matrices=False, subset_by_index=(0, 1))])
def test_refused_by_name(f):
  with pytest.raises(NotImplementedError, match="minipod does not support .*'subset_by_index'"):
    jax.jit(f)(X)


def test_the_way_round_works():
  on_cpu = jax.device_put(X, jax.devices("cpu")[0])
  np.testing.assert_allclose(np.asarray(jnp.linalg.eig(on_cpu)[0]), np.ones(3), rtol=1e-6)


def test_unknown_custom_call():
  with pytest.raises(Exception, match="no_such_target"):
    jax.block_until_ready(jax.jit(
        lambda x: jax.ffi.ffi_call("no_such_target", FLOAT)(x))(X))


QUANT = "tensor<2x!quant.uniform<i8:f32, 0.5:1>>"
TOKEN = "%t = stablehlo.create_token : !stablehlo.token "
REFUSED = {
    "stablehlo.uniform_quantize": (
        "quantised types are not supported",
        f"%0 = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> {QUANT} "
        f"%1 = stablehlo.uniform_dequantize %0 : ({QUANT}) -> tensor<2xf32> "
        "return %1 : tensor<2xf32>"),
    "stablehlo.infeed": (
        "no queues between the host and a running program",
        TOKEN + '%0:2 = "stablehlo.infeed"(%t) {infeed_config = "", layout = [[0]]} : '
        "(!stablehlo.token) -> (tensor<2xf32>, !stablehlo.token) return %0#0 : tensor<2xf32>"),
    "stablehlo.outfeed": (
        "no queues between the host and a running program",
        TOKEN + '%0 = "stablehlo.outfeed"(%a, %t) {outfeed_config = ""} : (tensor<2xf32>, '
        "!stablehlo.token) -> !stablehlo.token return %a : tensor<2xf32>"),
    "stablehlo.send": (
        "transfers to the host are not supported",
        TOKEN + '%0 = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = '
        "1, type = 2>, is_host_transfer = true} : (tensor<2xf32>, !stablehlo.token) -> "
        "!stablehlo.token return %a : tensor<2xf32>"),
    "stablehlo.set_dimension_size": (
        "arrays have the sizes of their types",
        "%c = stablehlo.constant dense<1> : tensor<i32> %0 = stablehlo.set_dimension_size %a, %c, "
        "dim = 0 : (tensor<2xf32>, tensor<i32>) -> tensor<2xf32> return %0 : tensor<2xf32>"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operations_are_refused_with_reason_and_line(name):
  reason, body = REFUSED[name]
  text = f"module {{ func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {{\n{body} }} }}"
  device = jax.devices()[0]
  with pytest.raises(Exception) as info:
    device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())
  message = str(info.value)
  assert "UNIMPLEMENTED" in message and reason in message and f"[{name}, -:2:" in message
