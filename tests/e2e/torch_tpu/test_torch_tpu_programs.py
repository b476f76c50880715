"""Programs in TorchTPU: op by op, gradients, compiled functions, training; compared with PyTorch on the CPU."""

import pytest
import torch_tpu_scenario as tpu

# `check` compares a function of tensors on both devices, `trained` the losses of a model.
PRELUDE = """\
import copy, torch
from torch import nn
from torch.nn.attention import sdpa_kernel, SDPBackend
torch.manual_seed(0)
def to(value, device):
  if isinstance(value, torch.Tensor):
    return value.to(device)
  return type(value)(to(each, device) for each in value) if isinstance(value, (list, tuple)) else value
def check(name, function, *arguments, tolerance=1e-5):
  torch.testing.assert_close(to(function(*to(arguments, "tpu")), "cpu"), function(*arguments), rtol=tolerance,
                             atol=tolerance, msg=lambda text: name + ": " + text)
def trained(model, inputs, targets, optimizer, steps=4, change=lambda model: model):
  model = copy.deepcopy(model).to(inputs.device)
  call, rule, losses = change(model), optimizer(model.parameters()), []
  for _ in range(steps):
    with sdpa_kernel(SDPBackend.MATH):
      loss = nn.functional.cross_entropy(call(inputs).flatten(0, -2), targets.flatten())
    rule.zero_grad()
    loss.backward()
    rule.step()
    losses.append(loss.item())
  return losses
def check_training(model, inputs, targets, optimizer, change=lambda model: model):
  here = trained(model, inputs, targets, optimizer)
  there = trained(model, inputs.to("tpu"), targets.to("tpu"), optimizer, change=change)
  assert here[-1] < here[0], here
  torch.testing.assert_close(torch.tensor(there), torch.tensor(here), rtol=1e-4, atol=1e-5)
"""
PERCEPTRON = "nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.LayerNorm(24), nn.Linear(24, 5))"
CONVOLUTIONS = """nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                                nn.Flatten(), nn.Linear(4 * 4 * 4, 5))"""
ENCODER = "nn.Sequential(nn.Embedding(20, 16), nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True), nn.Linear(16, 20))"


def run(code):
  return tpu.run(code, prelude=PRELUDE)


def test_ops_and_gradients():
  run("""
      x, y, index = torch.randn(20, 12), torch.randn(12, 7), torch.tensor([3, 1, 4, 1])
      check("matmul", torch.matmul, x, y)
      check("bfloat16", torch.matmul, x.bfloat16(), y.bfloat16(), tolerance=2e-2)
      check("sort", lambda t: list(t.sort(1)), x)
      check("topk", lambda t: list(t.topk(3)), x)
      check("choose", lambda t, i: [t[i], t[t > 0], t.index_select(1, i)], x, index)
      check("where", lambda t: torch.where(t > 0, t.exp(), -t), x)
      check("sums", lambda t: [t.sum(), t.mean(0), t.var(1), t.argmax(1), t.amax(0)], x)
      check("unique", lambda i: [torch.unique(i), torch.bincount(i)], index)
      check("convolution", lambda t: nn.functional.conv1d(t[None], t.reshape(12, 20, 1)), x, tolerance=1e-4)
      def gradients(a, b):
        a, b = a.clone().requires_grad_(), b.clone().requires_grad_()
        torch.tanh(a @ b).pow(2).sum().backward()
        return [a.grad, b.grad]
      check("gradients", gradients, x, y)
      def second(a):
        a = a.clone().requires_grad_()
        first, = torch.autograd.grad(a.sin().sum(), a, create_graph=True)
        return torch.autograd.grad(first.pow(2).sum(), a)[0]
      check("second derivative", second, x)
      with torch.autocast("tpu", dtype=torch.bfloat16):
        assert (x.to("tpu") @ y.to("tpu")).dtype == torch.bfloat16
      torch.manual_seed(1)
      a = torch.randn(2000, device="tpu")
      torch.manual_seed(1)
      assert torch.equal(a, torch.randn(2000, device="tpu")) and abs(a.mean()) < 0.1 and abs(a.std() - 1) < 0.1
      """)


@pytest.mark.parametrize("model, inputs, targets", [
    (PERCEPTRON, "torch.randn(8, 12)", "torch.randint(0, 5, (8,))"),
    (CONVOLUTIONS, "torch.randn(6, 3, 8, 8)", "torch.randint(0, 5, (6,))"),
    (ENCODER, "torch.randint(0, 20, (3, 6))", "torch.randint(0, 20, (3, 6))")],
    ids=["perceptron", "convolutions", "encoder"])
def test_training(model, inputs, targets):
  """Op by op, with two optimizers."""
  run(f"""
      model, inputs, targets = {model}, {inputs}, {targets}
      check_training(model, inputs, targets, lambda p: torch.optim.AdamW(p, lr=1e-2))
      check_training(model, inputs, targets, lambda p: torch.optim.SGD(p, lr=1e-1, momentum=0.5))
      """)


def test_compiled_functions_and_training():
  run(f"""
      x = torch.randn(6, 12)
      model = {PERCEPTRON}
      compiled = torch.compile(copy.deepcopy(model).to("tpu"))
      torch.testing.assert_close(compiled(x.to("tpu")).cpu(), model(x), rtol=1e-5, atol=1e-5)
      function = torch.compile(lambda t: torch.softmax(t, -1).cumsum(0)[1:] if t.shape[0] > 3 else t * 2)
      for rows in (2, 6):
        t = torch.randn(rows, 5)
        want = torch.softmax(t, -1)[:rows].sum() if rows > 3 else t.sum()
        assert function(t.to("tpu")).shape[0] == (5 if rows > 3 else 2)
      check_training(model, x, torch.randint(0, 5, (6,)), lambda p: torch.optim.AdamW(p, lr=1e-2), torch.compile)
      """)


def test_memory():
  """Sizes of what lives, the limit of the described chip, and an error that names the op if it is reached."""
  out = tpu.run("""
      base = torch.accelerator.memory_allocated()
      x = torch.ones(1 << 20, device="tpu")
      torch.accelerator.synchronize()
      print(torch.accelerator.memory_allocated() - base, torch.accelerator.max_memory_allocated(),
            torch.accelerator.get_memory_info()[1])
      try:
        torch.ones(1 << 28, device="tpu").sum().item()
      except RuntimeError as error:
        print(str(error).replace("\\n", " "))
      print(torch.ones(4, device="tpu").sum().item())
      """, "v6e:1x1 hbm:256MiB")
  sizes, *error, end = out.splitlines()
  assert sizes == f"{1 << 22} {1 << 22} {1 << 28}" and end == "4.0"
  assert "out of memory: 1073741824 bytes" in error[0] and "stablehlo.broadcast_in_dim" in " ".join(error)


def test_libtpus_flags():
  """Flags of the chip model take effect; a line at level info names each of the others."""
  returncode, out, lines = tpu.finish("""
      print(torch.arange(6., device="tpu").sum().item())
      """, LIBTPU_INIT_ARGS="--xla_tpu_scoped_vmem_limit_kib=98304 --xla_tpu_enable_async_collective_fusion_fuse_all_gather=true"
      " --xla_tpu_rwb_fusion=false",
      MINIPOD_TIME="model", MINIPOD_LOG_LEVEL="info")
  assert returncode == 0 and out == "15.0\n"
  assert [line for line in lines if "INIT_ARGS" in line] == [
      "minipod: info: LIBTPU_INIT_ARGS: xla_tpu_rwb_fusion=false has no effect here"]
