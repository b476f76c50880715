"""A training step of Llama 3 8B on a described pod, in TorchTPU with FSDP2 or in JAX: time and memory without values.

    MINIPOD_TIME=model MINIPOD_VALUES=shapes minipod run -n 16 --only 0 --pod v6e:4x4 python tools/torch_tpu/llama.py torch
    MINIPOD_TIME=model MINIPOD_VALUES=shapes MINIPOD_TOPOLOGY=v6e:4x4 python tools/torch_tpu/llama.py jax

Both have parameters in f32 that are sharded over all chips, matmuls in bf16, attention of all scores in f32, a checkpoint
of each layer, AdamW, and 2 sequences of 2,048 tokens per chip.  FSDP2 sums gradients in f32, JAX in bf16.
"""

import argparse
import time

WIDTH, HIDDEN, LAYERS, HEADS, KEYS, VOCABULARY = 4096, 14336, 32, 32, 8, 128256
SEQUENCES, TOKENS, STEPS = 2, 2048, 3
HEAD = WIDTH // HEADS


def report(one_step, read_memory) -> None:
  """Runs some steps and prints the last one: its time, the processor time to simulate it, and the memory."""
  import minipod

  for _ in range(STEPS):
    begin, processor = minipod.virtual_time(), time.process_time()
    one_step()
    step, spent = minipod.virtual_time() - begin, time.process_time() - processor
  print(minipod.time_report("summary"))
  print(f"step {step:.2f} s, simulated in {spent:.1f} s; {read_memory() / 2**30:.1f} GiB")


# ---- PyTorch ----


def run_torch() -> None:
  import torch
  from torch import nn
  import torch.distributed as dist
  from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
  import torch.nn.functional as F
  from torch.utils.checkpoint import checkpoint

  def rotate(x, angles):
    one, other = x.chunk(2, -1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((one * cos - other * sin, other * cos + one * sin), -1)

  class Layer(nn.Module):

    def __init__(self):
      super().__init__()
      linear = lambda m, n: nn.Linear(m, n, bias=False)
      self.before, self.between = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
      self.q, self.k, self.v = linear(WIDTH, WIDTH), linear(WIDTH, KEYS * HEAD), linear(WIDTH, KEYS * HEAD)
      self.o, self.down = linear(WIDTH, WIDTH), linear(HIDDEN, WIDTH)
      self.gate, self.up = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN)

    def attend(self, x, angles, mask):
      split = lambda y: y.view(SEQUENCES, TOKENS, -1, HEAD).transpose(1, 2)
      q, k, v = rotate(split(self.q(x)), angles), rotate(split(self.k(x)), angles), split(self.v(x))
      k, v = (y.repeat_interleave(HEADS // KEYS, 1) for y in (k, v))
      scores = (q @ k.transpose(-1, -2)).float() * HEAD**-0.5 + mask
      return self.o((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(SEQUENCES, TOKENS, WIDTH))

    def forward(self, x, angles, mask):
      x = x + self.attend(self.before(x), angles, mask)
      y = self.between(x)
      return x + self.down(F.silu(self.gate(y)) * self.up(y))

  class Model(nn.Module):

    def __init__(self):
      super().__init__()
      self.embedding = nn.Embedding(VOCABULARY, WIDTH)
      self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
      self.norm, self.head = nn.RMSNorm(WIDTH, eps=1e-5), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, angles, mask):
      x = self.embedding(tokens)
      for layer in self.layers:
        x = checkpoint(layer, x, angles, mask, use_reentrant=False)
      return self.head(self.norm(x))

  dist.init_process_group()
  with torch.device("meta"):
    model = Model()
  policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
  for part in (*model.layers, model):
    fully_shard(part, mp_policy=policy)
  model.to_empty(device="tpu")
  optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
  tokens = torch.zeros(SEQUENCES, TOKENS, dtype=torch.int64, device="tpu")
  with torch.device("tpu"):
    frequencies = 500000.0 ** (-torch.arange(0, HEAD, 2) / HEAD)
    angles = torch.arange(TOKENS)[:, None] * frequencies
    mask = torch.full((TOKENS, TOKENS), -1e9).triu(1)

  def one_step():
    logits = model(tokens, angles, mask)
    F.cross_entropy(logits.float().view(-1, VOCABULARY), tokens.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.accelerator.synchronize()

  report(one_step, torch.accelerator.max_memory_allocated)


# ---- JAX ----


def run_jax() -> None:
  import jax
  import jax.numpy as jnp
  from jax.sharding import NamedSharding, PartitionSpec as P

  mesh = jax.make_mesh((jax.device_count(),), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,))
  on = lambda *axes: NamedSharding(mesh, P(*axes))
  batch = SEQUENCES * jax.device_count()
  shapes = {"before": (WIDTH,), "between": (WIDTH,), "q": (WIDTH, WIDTH), "k": (WIDTH, KEYS * HEAD),
            "v": (WIDTH, KEYS * HEAD), "o": (WIDTH, WIDTH), "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN),
            "down": (HIDDEN, WIDTH)}
  shapes = {name: (LAYERS, *shape) for name, shape in shapes.items()}
  shapes |= {"embedding": (VOCABULARY, WIDTH), "norm": (WIDTH,), "head": (WIDTH, VOCABULARY)}
  per_layer = [name for name, shape in shapes.items() if shape[0] == LAYERS]
  # The last dimension is sharded: a layer is gathered when it is used.
  shardings = {name: on(*[None] * (len(shape) - 1), "fsdp") for name, shape in shapes.items()}
  norm = lambda x, scale: (x * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32)**2, -1, keepdims=True) + 1e-5)
                           ).astype(x.dtype) * scale

  def rotate(x):
    angles = jnp.arange(TOKENS)[:, None] * 500000.0 ** (-jnp.arange(0, HEAD, 2) / HEAD)
    one, other = jnp.split(x, 2, -1)
    cos, sin = (f(angles)[None, :, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    return jnp.concatenate([one * cos - other * sin, other * cos + one * sin], -1)

  def attend(x, w):
    q, k, v = ((x @ w[name]).reshape(batch, TOKENS, -1, HEAD) for name in "qkv")
    q, (k, v) = rotate(q), (jnp.repeat(y, HEADS // KEYS, 2) for y in (rotate(k), v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * HEAD**-0.5
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v).reshape(x.shape) @ w["o"]

  @jax.checkpoint
  def layer(x, w):
    x = jax.lax.with_sharding_constraint(x, on("fsdp"))
    w = {name: jax.lax.with_sharding_constraint(value, on()) for name, value in w.items()}
    x = x + attend(norm(x, w["before"]), w)
    y = norm(x, w["between"])
    return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"], None

  def loss(weights, tokens):
    weights = {name: value.astype(jnp.bfloat16) for name, value in weights.items()}
    whole = {name: jax.lax.with_sharding_constraint(weights[name], on()) for name in ("embedding", "norm", "head")}
    x, _ = jax.lax.scan(layer, whole["embedding"][tokens], {name: weights[name] for name in per_layer})
    logits = (norm(x, whole["norm"]) @ whole["head"]).astype(jnp.float32)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1))

  def train(weights, first, second, tokens):
    grads = jax.grad(loss)(weights, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, grads)
    weights = jax.tree.map(lambda w, m, v: 0.999999 * w - 1e-4 * m / (jnp.sqrt(v) + 1e-8), weights, first, second)
    return weights, first, second

  step = jax.jit(train, donate_argnums=(0, 1, 2), out_shardings=(shardings,) * 3)
  zeros = jax.jit(lambda: {name: jnp.zeros(shape) for name, shape in shapes.items()}, out_shardings=shardings)
  state = [zeros(), zeros(), zeros()]
  tokens = jax.device_put(jnp.zeros((batch, TOKENS), jnp.int32), on("fsdp"))

  def one_step():
    state[:] = step(*state, tokens)
    jax.block_until_ready(state)

  report(one_step, lambda: jax.local_devices()[0].memory_stats()["peak_bytes_in_use"])


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("front_end", choices=("torch", "jax"))
  {"torch": run_torch, "jax": run_jax}[parser.parse_args().front_end]()
