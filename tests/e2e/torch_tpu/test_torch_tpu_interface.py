"""What TorchTPU asks of the library: scans, decompositions, arguments of another shape, extensions."""

import os
import pathlib

import minipod
import torch_tpu_scenario as tpu

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOG = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "pjrt_log.so"

PRELUDE = """\
import copy, torch
from torch import nn
torch.manual_seed(0)
def check(name, function, *arguments, tolerance=1e-5):
  there = function(*(each.to("tpu") for each in arguments))
  here = function(*arguments)
  for a, b in zip(there, here) if isinstance(here, tuple) else [(there, here)]:
    torch.testing.assert_close(a.cpu(), b, rtol=tolerance, atol=tolerance, equal_nan=True,
                               msg=lambda text: name + ": " + text)
"""


def run(code, *args, **options):
  return tpu.run(code, *args, prelude=PRELUDE, **options)


def test_scans():
  """chlo.scan: cumulative functions, and functions that TorchTPU makes of them."""
  run("""
      for shape in ((9,), (4, 7), (3, 40, 5)):
        x = torch.randn(shape)
        for dim in range(len(shape)):
          for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
            check(f"{name} of {shape} along {dim}", lambda t: getattr(t, name)(dim), x)
      x = torch.randn(4, 7)
      check("integers", lambda t: t.cumsum(1), torch.arange(20).reshape(4, 5))
      check("booleans", lambda t: (t > 0).cumsum(0), x)
      check("bfloat16", lambda t: t.cumsum(1), x.bfloat16(), tolerance=2e-2)
      check("nan", lambda t: t.cummax(1)[0], torch.tensor([[1., float("nan"), 3.]]))
      check("masked_scatter", lambda t: t.masked_scatter(t > 0, t), x)
      check("vander", lambda t: torch.linalg.vander(t, N=4), x[0])
      weight, index, offsets = torch.randn(10, 3), torch.tensor([1, 2, 4, 5, 4, 3]), torch.tensor([0, 2])
      for mode in ("sum", "mean", "max"):
        check(f"embedding_bag {mode}", lambda i, w, o: nn.functional.embedding_bag(i, w, o, mode=mode), index, weight,
              offsets)
      t = x.to("tpu").requires_grad_()
      c = x.clone().requires_grad_()
      (t.cumsum(1) * t.cumprod(0)).sum().backward()
      (c.cumsum(1) * c.cumprod(0)).sum().backward()
      torch.testing.assert_close(t.grad.cpu(), c.grad, rtol=1e-4, atol=1e-4)
      """)


def test_decompositions():
  """XLA's custom calls Eigh and Qr, also of batches."""
  run("""
      for shape in ((6, 4), (4, 6), (2, 5, 5)):
        x = torch.randn(shape)
        check("singular values", torch.linalg.svdvals, x, tolerance=1e-4)
        check("pinv", torch.linalg.pinv, x, tolerance=1e-3)
        check("rank", torch.linalg.matrix_rank, x)
        check("nuclear norm", lambda t: torch.linalg.matrix_norm(t, "nuc"), x, tolerance=1e-4)
        u, s, vt = torch.linalg.svd(x.to("tpu"), full_matrices=False)
        torch.testing.assert_close(((u * s[..., None, :]) @ vt).cpu(), x, rtol=1e-4, atol=1e-4)
        q, r = torch.linalg.qr(x.to("tpu"))
        torch.testing.assert_close((q @ r).cpu(), x, rtol=1e-4, atol=1e-4)
      """)


def test_arguments_of_another_shape():
  """From the second step on, compiled training passes a tensor<1xi64> where the program has a tensor<i64>."""
  run("""
      from torch.nn.attention import sdpa_kernel, SDPBackend
      class Model(nn.Module):
        def __init__(self):
          super().__init__()
          self.embedding, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)
          self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        def forward(self, x):
          return self.head(self.layer(self.embedding(x)))
      x, y, model = torch.randint(0, 50, (4, 8)), torch.randint(0, 50, (4, 8)), Model()
      def losses(model, x, y, call):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(4):
          with sdpa_kernel(SDPBackend.MATH):
            loss = nn.functional.cross_entropy(call(x).flatten(0, 1), y.flatten())
          optimizer.zero_grad()
          loss.backward()
          optimizer.step()
          yield loss.item()
      there = copy.deepcopy(model).to("tpu")
      found = torch.tensor(list(losses(there, x.to("tpu"), y.to("tpu"), torch.compile(there))))
      torch.testing.assert_close(found, torch.tensor(list(losses(model, x, y, model))), rtol=1e-4, atol=1e-4)
      """)


def test_pinned_memory():
  run("""
      x = torch.randn(1000, 10)
      pinned = x.pin_memory()
      assert pinned.is_pinned() and not x.is_pinned()
      assert torch.equal(pinned.to("tpu", non_blocking=True).cpu(), x)
      loader = torch.utils.data.DataLoader(list(range(10)), batch_size=4, pin_memory=True)
      assert [batch.to("tpu").sum().item() for batch in loader] == [6, 22, 17]
      """)


def test_functions_of_jax():
  """torch.tpu.pallas asks how many chips there are (the TpuTopology extension)."""
  run("""
      import jax
      import jax.numpy as jnp
      from torch.tpu import pallas
      @pallas.jax_op("tests::plain")
      def plain(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.tanh(x) + y
      x, y = torch.randn(8, 128), torch.randn(8, 128)
      torch.testing.assert_close(plain(x.to("tpu"), y.to("tpu")).cpu(), torch.tanh(x) + y, rtol=1e-5, atol=1e-5)
      """, "v6e:1x1")


def test_calls_are_logged(tmp_path):
  """The plugin of tools/pjrt_log between TorchTPU and the library; the described pod is found all the same."""
  log = tmp_path / "calls.txt"
  out = run("""
      print(torch.arange(6., device="tpu").cumsum(0).sum().item())
      """, TPU_LIBRARY_PATH=str(LOG), PJRT_LOG_PLUGIN=minipod.library_path(), PJRT_LOG_FILE=str(log))
  assert out == "35.0\n"
  calls = log.read_text()
  assert "PJRT_Client_Create options premapped_buffer_size" in calls
  assert "PJRT_Client_Compile mlir of " in calls and "PJRT_LoadedExecutable_Execute 1 devices" in calls
