"""Kernels that TorchTPU and JAX write for the compiler of TPUs (tpu_custom_call): attention, Pallas."""

import torch_tpu_scenario as tpu

PRELUDE = """\
import torch
from torch import nn
torch.manual_seed(0)
# Attention and its gradients on both devices.
def check(shape, causal, dtype=torch.float32, tolerance=1e-4):
  found = {}
  inputs = [torch.randn(shape, dtype=dtype) for _ in range(3)]
  for device in ("tpu", "cpu"):
    q, k, v = (x.detach().to(device).requires_grad_() for x in inputs)
    out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    (out.float() ** 2).sum().backward()
    found[device] = [x.detach().float().cpu() for x in (out, q.grad, k.grad, v.grad)]
  for name, here, there in zip(("out", "q", "k", "v"), found["cpu"], found["tpu"]):
    torch.testing.assert_close(there, here, rtol=tolerance, atol=tolerance, msg=lambda text: f"{shape} {name}: {text}")
"""


def test_attention_and_its_gradients():
  tpu.run("""
      check((2, 4, 128, 64), True)
      check((1, 2, 512, 64), True)
      check((2, 2, 256, 128), False)
      check((1, 2, 100, 64), True)
      check((1, 2, 256, 128), True, torch.bfloat16, 0.1)
      """, "v6e:1x1", prelude=PRELUDE)


def test_pallas_kernel():
  tpu.run("""
      import jax
      from jax.experimental import pallas as pl
      from torch.tpu import pallas
      def kernel(x, y, out):
        out[...] = x[...] * 2 + y[...]
      @pallas.jax_op("tests::kernel")
      def op(x: jax.Array, y: jax.Array) -> jax.Array:
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)
      x, y = torch.randn(16, 128), torch.randn(16, 128)
      torch.testing.assert_close(op(x.to("tpu"), y.to("tpu")).cpu(), x * 2 + y)
      """, "v6e:1x1", prelude=PRELUDE)
