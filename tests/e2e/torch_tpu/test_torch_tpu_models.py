"""Published models train and generate as on the CPU: the same weights and data, a few steps."""

import pytest
import torch_tpu_scenario

# Runs `make(device)` -> (module, function of the loss) on both devices; prints the largest relative difference of losses.
COMPARE = """
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

def losses(make, data, steps, rate, is_compiled):
  torch.manual_seed(0)
  model, loss_of = make()
  optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
  loss_of = torch.compile(loss_of) if is_compiled else loss_of
  found = []
  for _ in range(steps):
    loss = loss_of(*data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    found.append(loss.item())
  return model, found

def compare(make, data, steps=4, rate=1e-3, is_compiled=False):
  torch.manual_seed(1)
  with sdpa_kernel(SDPBackend.MATH):
    reference, expected = losses(lambda: make("cpu"), data, steps, rate, False)
    model, found = losses(lambda: make("tpu"), [each.to("tpu") for each in data], steps, rate, is_compiled)
  assert expected[-1] != expected[0]
  print(max(abs(a - b) / abs(a) for a, b in zip(expected, found)))
  return reference, model

def generate(reference, model):
  prompt = torch.randint(0, 100, (2, 8))
  with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
    a, b = (each.eval().generate(prompt.to(each.device), max_new_tokens=8, do_sample=False, pad_token_id=0)
            for each in (reference, model))
  assert a.shape == (2, 16) and torch.equal(a, b.cpu())
"""

CAUSAL = """
import transformers
from transformers import {name}Config, {name}ForCausalLM
config = {name}Config(vocab_size=256, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                      num_key_value_heads=2{more})
def make(device):
  model = {name}ForCausalLM(config).to(device)
  return model, lambda tokens: model(input_ids=tokens, labels=tokens).loss
generate(*compare(make, [torch.randint(0, 256, (4, 32))]))
"""

NANO_GPT = """
class Block(nn.Module):
  def __init__(self, width, heads):
    super().__init__()
    self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
    self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
  def forward(self, x):
    q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
    x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
    return x + self.down(F.gelu(self.up(self.norm2(x))))
class GPT(nn.Module):
  def __init__(self):
    super().__init__()
    self.tokens, self.places = nn.Embedding(256, 64), nn.Embedding(32, 64)
    self.blocks, self.head = nn.Sequential(Block(64, 4), Block(64, 4), nn.LayerNorm(64)), nn.Linear(64, 256, bias=False)
  def forward(self, tokens):
    return self.head(self.blocks(self.tokens(tokens) + self.places.weight[:tokens.shape[1]]))
def make(device):
  model = GPT().to(device)
  model.head.weight = model.tokens.weight  # a module that moves to a TPU has new parameters, no longer shared
  return model, lambda x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten())
tokens = torch.randint(0, 256, (8, 33))
"""

MODELS = {
    "nanoGPT": NANO_GPT + "compare(make, [tokens[:, :-1], tokens[:, 1:]])",
    "nanoGPT compiled": NANO_GPT + "compare(make, [tokens[:, :-1], tokens[:, 1:]], is_compiled=True)",
    "Llama": CAUSAL.format(name="Llama", more=""),
    "Mixtral": CAUSAL.format(name="Mixtral", more=", num_local_experts=4"),
    # Batch norm of few values makes the gradients of a ResNet ill-conditioned in float32: they are off by 1.5 % on the
    # CPU, too.
    "ResNet-50": """
import torchvision
def make(device):
  model = torchvision.models.resnet50(num_classes=10).double().to(device)
  return model, lambda x, y: F.cross_entropy(model(x), y)
compare(make, [torch.randn(4, 3, 64, 64).double(), torch.randint(0, 10, (4,))], steps=2)
""",
    "U-Net": """
from diffusers import UNet2DModel
def make(device):
  model = UNet2DModel(sample_size=16, layers_per_block=1, block_out_channels=(32, 64), norm_num_groups=8,
                      down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")
                      ).to(device)
  return model, lambda x, step, noise: F.mse_loss(model(x, step).sample, noise)
compare(make, [torch.randn(2, 3, 16, 16), torch.randint(0, 1000, (2,)), torch.randn(2, 3, 16, 16)])
""",
    "embeddings": """
from transformers import BertConfig, BertModel
config = BertConfig(vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
def make(device):
  model = BertModel(config).to(device)
  def loss(left, right):
    a, b = (F.normalize(model(input_ids=each).last_hidden_state.mean(1), dim=-1) for each in (left, right))
    return F.cross_entropy(a @ b.T * 20, torch.arange(len(a), device=a.device))
  return model, loss
compare(make, [torch.randint(0, 256, (8, 16)), torch.randint(0, 256, (8, 16))])
""",
}


@pytest.mark.parametrize("name", MODELS)
def test_trains_as_on_the_cpu(name):
  out = torch_tpu_scenario.run(COMPARE + MODELS[name], pod="v6e:1x1", timeout=300)
  assert float(out.split()[-1]) < 1e-5
