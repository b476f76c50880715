"""Two models with data, and their training, for torch's CPU and for torch_xla."""

import threading

import torch
from torch import nn
import torch.nn.functional as F

STEPS, BATCH = 20, 16
_LOCK = threading.Lock()  # guards torch's random numbers, which all threads of a launch draw


class Block(nn.Module):
  """Two convolutions with a shortcut."""

  def __init__(self, width_in, width_out, stride):
    super().__init__()
    self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, padding=1, bias=False)
    self.norm1 = nn.BatchNorm2d(width_out)
    self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1, bias=False)
    self.norm2 = nn.BatchNorm2d(width_out)
    self.shortcut = nn.Sequential(nn.Conv2d(width_in, width_out, 1, stride, bias=False),
                                  nn.BatchNorm2d(width_out))

  def forward(self, x):
    y = F.relu(self.norm1(self.conv1(x)))
    return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Cnn(nn.Module):

  def __init__(self):
    super().__init__()
    self.stem = nn.Conv2d(3, 8, 3, padding=1)
    self.blocks = nn.Sequential(Block(8, 16, 1), Block(16, 32, 2))
    self.head = nn.Linear(32, 10)

  def forward(self, x):
    x = F.max_pool2d(F.relu(self.stem(x)), 2)
    x = F.adaptive_avg_pool2d(self.blocks(x), 1).flatten(1)
    return self.head(x)


class Transformer(nn.Module):
  """Two layers of attention and feed-forward over tokens, which predict the next token."""

  WORDS, WIDTH, HEADS, LENGTH = 64, 32, 4, 16

  def __init__(self):
    super().__init__()
    width = self.WIDTH
    self.words = nn.Embedding(self.WORDS, width)
    self.places = nn.Parameter(torch.randn(self.LENGTH, width) * 0.1)
    self.layers = nn.ModuleList(nn.ModuleDict({
        "norm1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width),
        "out": nn.Linear(width, width), "norm2": nn.LayerNorm(width),
        "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}) for _ in range(2))
    self.norm = nn.LayerNorm(width)
    self.head = nn.Linear(width, self.WORDS)

  def attend(self, layer, x):
    batch, length, width = x.shape
    q, k, v = (part.view(batch, length, self.HEADS, -1).transpose(1, 2)
               for part in layer["qkv"](x).chunk(3, dim=-1))
    scores = q @ k.transpose(-2, -1) / (width // self.HEADS) ** 0.5
    hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return layer["out"]((weights @ v).transpose(1, 2).reshape(batch, length, width))

  def forward(self, tokens):
    x = self.words(tokens) + self.places
    for layer in self.layers:
      x = x + self.attend(layer, layer["norm1"](x))
      x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x)), approximate="tanh"))
    return self.head(self.norm(x)).flatten(0, 1)


def make(name):
  """(model, its inputs in all steps, the expected outputs), always the same."""
  with _LOCK:
    return _make(name)


def _make(name):
  torch.manual_seed(1)
  if name == "cnn":
    return (Cnn(), torch.randn(STEPS, BATCH, 3, 16, 16), torch.randint(10, (STEPS, BATCH)))
  model = Transformer()
  tokens = torch.randint(model.WORDS, (STEPS, BATCH, model.LENGTH + 1))
  return model, tokens[:, :, :-1], tokens[:, :, 1:].flatten(2).reshape(STEPS, -1)


def optimizer_of(name, model):
  if name == "cnn":
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
  return torch.optim.AdamW(model.parameters(), lr=1e-3)


def statistics(model):
  """The running means of the batch norms.

  torch_xla's running variance differs: it uses the variance of a batch, and torch multiplies it by n / (n - 1) as for a
  sample.
  """
  return [buffer.mean().item() for name, buffer in model.named_buffers()
          if name.endswith("running_mean")]


def expected(name, count=1):
  """(losses, statistics of each replica) of the training on torch's CPU.

  The training is data-parallel over `count` replicas, which run one after the other here.  Each replica uses its part
  of the batch and the batch statistics of that part, as batch norm does by default with several processes.  All
  replicas continue with the mean of the gradients.
  """
  replicas = [make(name) for _ in range(count)]
  models = [model for model, _, _ in replicas]
  optimizers = [optimizer_of(name, model) for model in models]
  losses = []
  for step in range(STEPS):
    loss = 0
    for rank, (model, inputs, targets) in enumerate(replicas):
      model.zero_grad()
      part = F.cross_entropy(model(inputs[step].chunk(count)[rank]),
                             targets[step].chunk(count)[rank])
      part.backward()
      loss += part.item() / count
    for same in zip(*(model.parameters() for model in models)):
      mean = torch.stack([parameter.grad for parameter in same]).mean(0)
      for parameter in same:
        parameter.grad.copy_(mean)
    for optimizer in optimizers:
      optimizer.step()
    losses.append(loss)
  return losses, [statistics(model) for model in models]
