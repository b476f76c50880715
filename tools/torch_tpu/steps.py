#!/usr/bin/env python3
"""Times training steps of PyTorch on TorchTPU's device against PyTorch on the CPU, in turns.

    MINIPOD_TOPOLOGY=v6e:1x1 tools/torch_tpu/steps.py [--rounds N] [--only REGEX] [--processor]

A row has the median time of a step on the CPU (eager), eager on the TPU and compiled on the TPU, and the medians of the
ratios of each round: below 1 the simulated TPU is faster.  On a busy machine, threads of PyTorch wait for each other
much longer; --processor compares processor times instead, with one thread for PyTorch and one for minipod.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

if "--work" not in sys.argv:
  os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # only the processes of the TPU need it

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

WARM_UP = 2  # rounds that are not counted
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MINIPOD_WORKERS": "1"}


class Block(nn.Module):
  """A layer of a transformer."""

  def __init__(self, width, heads):
    super().__init__()
    self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
    self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

  def forward(self, x):
    q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
    x = x + self.out(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
    return x + self.mlp(self.norm2(x))


def transformer(width, layers, batch, length):
  def make():
    model = nn.Sequential(nn.Embedding(512, width), *[Block(width, width // 32) for _ in range(layers)], nn.Linear(width, 512))
    tokens = torch.randint(0, 512, (batch, length + 1))
    return model, tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
  return make


def resnet(size, batch):
  def make():
    import torchvision
    return torchvision.models.resnet50(num_classes=10), torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,))
  return make


CASES = {
    "transformer, 4 layers of 128, 8 x 64 tokens": transformer(128, 4, 8, 64),
    "transformer, 6 layers of 384, 4 x 256 tokens": transformer(384, 6, 4, 256),
    "ResNet-50, 4 images of 64 x 64": resnet(64, 4),
    "ResNet-50, 8 images of 128 x 128": resnet(128, 8),
}


def _stepper(make, device, is_compiled):
  torch.manual_seed(0)
  model, inputs, targets = make()
  model, inputs, targets = model.to(device), inputs.to(device), targets.to(device)
  optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
  def loss_of(inputs, targets):
    return functional.cross_entropy(model(inputs).flatten(0, -2), targets)
  chosen = torch.compile(loss_of) if is_compiled else loss_of
  def step():
    loss = chosen(inputs, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
  return step


def _work(case, device, is_compiled, clock):
  """Makes a step for each line of the standard input, and prints its seconds."""
  step = _stepper(CASES[case], device, is_compiled)
  with sdpa_kernel(SDPBackend.MATH):
    for _ in sys.stdin:
      began = clock()
      step()
      print(f"seconds {clock() - began}", flush=True)


class _Worker:
  """A process that makes steps on one device.  The one on the CPU does not load minipod."""

  def __init__(self, case, device, is_compiled, is_processor):
    env = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": str(int(device == "tpu"))} | (ONE_THREAD if is_processor else {})
    flags = [str(int(flag)) for flag in (is_compiled, is_processor)]
    self._process = subprocess.Popen([sys.executable, __file__, "--work", case, device, *flags], text=True, env=env,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

  def seconds(self):
    self._process.stdin.write("\n")
    self._process.stdin.flush()
    for line in self._process.stdout:
      if line.startswith("seconds "):
        return float(line.split()[1])
    raise SystemExit(f"the process has ended with exit status {self._process.wait()}")

  def end(self):
    self._process.stdin.close()
    self._process.wait()


def measure(case, rounds, is_processor):
  """The seconds of each round: on the CPU, eager, compiled."""
  kinds = ("cpu", False), ("tpu", False), ("tpu", True)
  workers = [_Worker(case, device, is_compiled, is_processor) for device, is_compiled in kinds]
  found = [[worker.seconds() for worker in workers] for _ in range(WARM_UP + rounds)]
  for worker in workers:
    worker.end()
  return found[WARM_UP:]


def main():
  if sys.argv[1:2] == ["--work"]:
    _work(sys.argv[2], sys.argv[3], sys.argv[4] == "1", time.process_time if sys.argv[5] == "1" else time.perf_counter)
    return
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--rounds", type=int, default=7)
  parser.add_argument("--only", default="", help="regular expression of cases")
  parser.add_argument("--processor", action="store_true", help="processor times, one thread each")
  args = parser.parse_args()
  print(f"{'step':46} {'CPU':>9} {'eager':>9} {'compiled':>9} {'eager/CPU':>10} {'compiled/CPU':>13}")
  for name in CASES:
    if re.search(args.only, name):
      rounds = measure(name, args.rounds, args.processor)
      cpu, eager, compiled = (statistics.median(times) for times in zip(*rounds))
      ratios = [statistics.median(each[i] / each[0] for each in rounds) for i in (1, 2)]
      print(f"{name:46} {cpu * 1e3:6.1f} ms {eager * 1e3:6.1f} ms {compiled * 1e3:6.1f} ms {ratios[0]:10.2f} {ratios[1]:13.2f}",
            flush=True)


if __name__ == "__main__":
  main()
