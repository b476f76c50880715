"""Orders meshes of eight H100s by predicted speed, and compares with the order in a public grid of training runs.

    .venv/bin/python tools/published/meshes.py [--check]

The grid is nanotron's: Llama with 1B parameters (16 layers of 2,048, 32 heads, 8,192 hidden units, 131,072 words, tied
embeddings, sequences of 4,096), bf16, on one host, in all ways to divide eight GPUs into data, pipeline and tensor
axes.  It has tokens/s per GPU (huggingface.co/spaces/nanotron/ultrascale-playbook, benchmarks_interactive.html).  Left
out are failed runs, and a run with a fiftieth of the tokens/s of similar runs.

A stage of the pipeline is a program of its own, one microbatch forwards and backwards: layers with the tensor axis as in
Megatron (sequences are split between products), the words' table at the first stage, the loss at the last one.
Stages are filled so that the slowest one is as fast as can be; a step takes that one's time for each microbatch and for
each stage but one, then the sum of gradients over the data axis and the optimizer.  Kernels are PyTorch's, which fuses
nothing: `alone` ends one.  Nothing overlaps with collectives.

Prints both orders and Kendall's tau; --check fails if tau is below the value that is recorded here.  It takes some
minutes.

Not modelled: PyTorch runs op by op.  Meshes with a tensor axis and one sequence per microbatch took 70 ms for each,
whatever the size of the axis.  This is the time of Python, not of the GPUs.
"""

import argparse
import functools
import json
import sys

import scipy.stats

import chips

LAYERS, EMB, HEADS, MLP, VOCAB, SEQUENCE = 16, 2048, 32, 8192, 131072, 4096
LEAST_TAU = 0.78
# The runs had `tp_linear_async_communication: False` (huggingface/bench_cluster, template/base_config.py).
WAITED = {"all_gather": 0, "reduce_scatter": 0, "all_reduce": 0}

# Data, pipeline, tensor, sequences of a microbatch, microbatches, ZeRO's stage; tokens/s of a GPU.
RUNS = [
    (8, 1, 1, 2, 16, 0, 40150), (8, 1, 1, 1, 32, 0, 39273), (8, 1, 1, 1, 32, 1, 39006), (4, 2, 1, 4, 16, 1, 38895),
    (4, 2, 1, 2, 32, 1, 38299), (4, 2, 1, 1, 64, 0, 37995), (4, 2, 1, 1, 64, 1, 37802), (4, 1, 2, 8, 8, 0, 37628),
    (2, 4, 1, 1, 128, 1, 37097), (2, 4, 1, 2, 64, 1, 37078), (2, 4, 1, 1, 128, 0, 36910), (2, 4, 1, 4, 32, 1, 36566),
    (2, 2, 2, 8, 16, 1, 35325), (2, 2, 2, 4, 32, 1, 35063), (1, 4, 2, 8, 32, 0, 34469), (2, 1, 4, 16, 8, 0, 33597),
    (1, 2, 4, 16, 16, 0, 32814), (1, 2, 4, 8, 32, 0, 32640), (4, 1, 2, 1, 64, 0, 29274), (1, 1, 8, 16, 16, 0, 28101),
    (4, 1, 2, 1, 64, 1, 27877), (1, 8, 1, 1, 256, 0, 27437), (2, 2, 2, 2, 64, 1, 23765), (1, 4, 2, 1, 256, 0, 23540),
    (2, 2, 2, 1, 128, 0, 23340), (2, 4, 1, 2, 4, 1, 21650), (2, 2, 2, 1, 128, 1, 20952), (2, 1, 4, 1, 128, 0, 14368),
    (2, 1, 4, 1, 128, 1, 14047), (1, 2, 4, 1, 256, 0, 12013), (1, 1, 8, 1, 256, 0, 6907),
]


# ---- the process that times stages ----

def stage_programs():
  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
  import train_step  # its kernels for attention
  bf16 = jnp.bfloat16

  attention = jax.custom_vjp(lambda q, k, v: train_step.FORWARD(q, k, v)[0])
  def forward(q, k, v):
    out, lse = train_step.FORWARD(q, k, v)
    return out, (q, k, v, out, lse)
  attention.defvjp(forward, lambda saved, g: train_step.BACKWARD(*saved, g))

  alone = train_step.alone

  def norm(x):
    y = x.astype(jnp.float32)
    return alone((y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype))

  # Nanotron's cross entropy: each op of PyTorch goes through all logits.
  @jax.custom_vjp
  def entropy(logits, tokens):
    return entropy_forward(logits, tokens)[0]

  def entropy_forward(logits, tokens):
    most = jax.lax.pmax(jnp.max(logits, axis=-1), "tensor")
    shifted = alone(logits - most[..., None])
    powers = alone(jnp.exp(shifted))
    total = jax.lax.psum(jnp.sum(powers, axis=-1), "tensor")
    own = jax.lax.psum(jnp.take_along_axis(shifted, tokens[..., None] % logits.shape[-1], axis=-1)[..., 0], "tensor")
    return jnp.mean(jnp.log(total) - own), (alone(powers / total[..., None]), tokens)

  def entropy_backward(saved, g):
    shares, tokens = saved
    hit = jax.lax.broadcasted_iota(jnp.int32, shares.shape, 2) == tokens[..., None]
    return alone((shares - hit) * g), None

  entropy.defvjp(entropy_forward, entropy_backward)

  # Sequences come before batches (`[seq_length, batch_size, hidden_dim]`), so that parts of them lie side by side.
  def whole(x):
    return jax.lax.all_gather(x, "tensor", axis=0, tiled=True)

  def part(x):
    return jax.lax.psum_scatter(x, "tensor", scatter_dimension=0, tiled=True)

  # One kernel goes through an array and writes it, as flash-attn's for rotary embeddings does; the angles are a table.
  def rotated(x):
    table = jnp.broadcast_to(jnp.arange(x.shape[1], dtype=x.dtype)[None, :, None, None], x.shape)
    return alone(x * table)

  # Nanotron has one product for queries, keys and values, and one for the gate and what it gates (`qkv_proj` and
  # `gate_up_proj`, src/nanotron/models/llama.py).  After the first one the layout of queries, keys
  # and values changes, keys and values by two more copies (`permute(...).contiguous()`,
  # `torch.cat`), the result of attention by one.
  def layer(x, w):
    y = whole(norm(x))
    s, b, _ = y.shape
    q, k, v = alone(jnp.transpose(alone(y @ w["qkv"]).reshape(s, b, 3, -1, EMB // HEADS), (2, 1, 0, 3, 4)))
    pairs = alone(jnp.moveaxis(alone(jnp.stack([k, v])), 0, 2))
    q, k, v = rotated(q), rotated(pairs[:, :, 0]), pairs[:, :, 1]
    context = attention(q, k, v).reshape(b, s, -1).transpose(1, 0, 2)
    x = alone(x + alone(part((alone(context) if b > 1 else context) @ w["o"])))
    y = whole(norm(x))
    gate, up = jnp.split(alone(y @ w["gate_up"]), 2, axis=-1)
    hidden = alone(alone(jax.nn.silu(gate)) * up)
    return alone(x + alone(part(hidden @ w["down"]))), None

  def loss(w, x, tokens, first, last):
    if first:  # each has a part of the words
      size = w["words"].shape[0]
      own = tokens.T - jax.lax.axis_index("tensor") * size
      inside = (own >= 0) & (own < size)
      x = part(jnp.where(inside[..., None], w["words"][jnp.clip(own, 0, size - 1)], 0))
    if "layers" in w:
      x, _ = jax.lax.scan(layer, x, w["layers"])
    if not last:
      return jnp.sum(x.astype(jnp.float32))
    return entropy(alone(alone(whole(norm(x)) @ w["words"].T).astype(jnp.float32)), tokens.T)

  def shapes(tensor, layers, first, last):
    into, out = (layers, EMB, 3 * EMB // tensor), (layers, EMB // tensor, EMB)
    wide, narrow = (layers, EMB, 2 * MLP // tensor), (layers, MLP // tensor, EMB)
    w = {"layers": {"qkv": into, "o": out, "gate_up": wide, "down": narrow}}
    return (w if layers else {}) | ({"words": (VOCAB // tensor, EMB)} if first or last else {})

  def meshed(data, pipeline, tensor):
    return Mesh(np.array(jax.devices()).reshape(data, pipeline, tensor), ("data", "pipeline", "tensor"))

  is_shape = lambda x: isinstance(x, tuple)
  every = P(("data", "pipeline", "tensor"))

  def seconds(mesh, body, arguments):
    """Of a program in which each device has arrays of these shapes, as far as it is known before it runs."""
    def run(*arrays):
      return jax.tree.map(lambda x: x[None], body(*jax.tree.map(lambda x: x[0], arrays)))
    arrays = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((8, *x.shape), x.dtype, sharding=NamedSharding(mesh, every)), arguments)
    function = jax.jit(jax.shard_map(run, mesh=mesh, in_specs=every, out_specs=every, check_vma=False), donate_argnums=0)
    return function.lower(*arrays).compile().cost_analysis()["optimal_seconds"]

  def microbatch(data, pipeline, tensor, batch, layers, first, last):
    w = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, bf16), shapes(tensor, layers, first, last), is_leaf=is_shape)
    sums = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s.shape, jnp.float32), w)
    x = jax.ShapeDtypeStruct((SEQUENCE // tensor, batch, EMB), bf16)
    tokens = jax.ShapeDtypeStruct((batch, SEQUENCE), jnp.int32)
    def body(sums, w, x, tokens):
      g, gx = jax.grad(functools.partial(loss, first=first, last=last), (0, 1))(w, x, tokens)
      if pipeline > 1:  # to the next stage, and back
        around = lambda n: [(i, (i + n) % pipeline) for i in range(pipeline)]
        gx = jax.lax.ppermute(gx, "pipeline", around(-1)) + jax.lax.ppermute(x, "pipeline", around(1))
      return jax.tree.map(lambda s, g: s + g.astype(jnp.float32), sums, g), gx
    return seconds(meshed(data, pipeline, tensor), body, (sums, w, x, tokens))

  # A kernel that reads and writes an array.  With ZeRO nanotron makes one array of the parts of all gradients for each
  # member of the group, and of the parameters' places before they are gathered, and copies what comes to these
  # (reduce_scatter_coalesced and all_gather_coalesced, src/nanotron/distributed.py); PyTorch copies lists of arrays to one
  # before a reduce_scatter and from one behind an all_gather (ProcessGroupNCCL).  Without it the gradients are one array.
  copied = lambda x: alone(-x)

  def update(data, pipeline, tensor, zero, layers, first, last):
    w = jax.tree.map(lambda s: jax.ShapeDtypeStruct(s, jnp.float32), shapes(tensor, layers, first, last), is_leaf=is_shape)
    split = data if zero else 1
    state = jax.tree.map(lambda s: jax.ShapeDtypeStruct((s.size // split,), jnp.float32), w)
    def one(g, w, m, v):
      g = g.reshape(-1)
      if zero:
        g = jax.lax.psum_scatter(copied(copied(g)), "data", tiled=True)
      elif data > 1:
        g = jax.lax.psum(g, "data")
      m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
      w = w - 1e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w)
      b = w.astype(bf16)
      return copied(copied(copied(jax.lax.all_gather(b, "data", tiled=True)))) if zero else b, w, m, v
    def body(state, g):
      return jax.tree.map(one, g, *state)
    return seconds(meshed(data, pipeline, tensor), body, ((state, state, state), w))

  return {"microbatch": microbatch, "update": update}


def run_here(calls):
  programs = stage_programs()
  for name, *numbers in calls:
    print(json.dumps(programs[name](*numbers)), flush=True)


# ---- composing ----

def splits(pipeline):
  """Ways to give layers to the stages: as many to each, fewer to the last one, which has the loss."""
  for last in range(LAYERS // pipeline + 1):
    each, more = divmod(LAYERS - last, max(pipeline - 1, 1))
    most = each + (more > 0)
    if pipeline == 1 and last == LAYERS or pipeline > 1:
      yield most, last


def stages_of(run):
  """(layers, has the table, has the loss) of those that may be the slowest, for each split."""
  data, pipeline, tensor, batch, *_ = run
  for most, last in splits(pipeline):
    yield [(last, True, True)] if pipeline == 1 else [(most, True, False), (last, False, True)]


def simple(layers):
  """The numbers of layers whose times give that of more: each round of the loop takes as long as any other."""
  return (layers,) if layers < 2 else (1, 2)


def calls_of(run):
  data, pipeline, tensor, batch, _, zero, _ = run
  stages = {(n, *ends) for split in stages_of(run) for layers, *ends in split for n in simple(layers)}
  return [("microbatch", data, pipeline, tensor, batch, *stage) for stage in sorted(stages)] + [
      ("update", data, pipeline, tensor, zero, *stage) for stage in sorted(stages)]


def of_stage(times, what, layers, *ends):
  counts = simple(layers)
  some = [times[what + (n, *ends)] for n in counts]
  return some[0] if len(some) == 1 else some[0] + (layers - 1) * (some[1] - some[0])


def tokens_per_second(run, times):
  data, pipeline, tensor, batch, count, zero, _ = run
  best = min(
      max(of_stage(times, ("microbatch", data, pipeline, tensor, batch), *stage) for stage in split) *
      (count + pipeline - 1) +
      max(of_stage(times, ("update", data, pipeline, tensor, zero), *stage) for stage in split) for split in stages_of(run))
  return data * batch * count * SEQUENCE / best / 8


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--run", help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.run is not None:
    sys.argv[1:] = [json.dumps({"emb": EMB, "heads": HEADS, "sequence": SEQUENCE, "head_dim": EMB // HEADS,
                               "library": "cudnn", "kernels": "library"})]
    run_here(json.loads(arguments.run))
    return
  calls = list(dict.fromkeys(call for run in RUNS for call in calls_of(run)))
  with chips.described("h100:8 hbm:1TiB", overlap=WAITED) as pod:
    times = dict(zip(calls, map(json.loads, chips.run_on(pod, __file__, "--run", json.dumps(calls)).splitlines())))
  rows = [(run, tokens_per_second(run, times)) for run in RUNS]
  place = {run: i + 1 for i, (run, _) in enumerate(sorted(rows, key=lambda row: -row[1]))}
  print("| data | pipeline | tensor | sequences | microbatches | ZeRO | published, tokens/s | modelled | place | modelled |\n"
        "|---|---|---|---|---|---|---|---|---|---|")
  for i, (run, modelled) in enumerate(rows):
    print("| " + " | ".join(map(str, run[:6])) + f" | {run[6]:,} | {modelled:,.0f} | {i + 1} | {place[run]} |")
  tau = scipy.stats.kendalltau([run[6] for run, _ in rows], [modelled for _, modelled in rows]).statistic
  print(f"\nKendall's tau {tau:.2f}")
  if arguments.check and tau < LEAST_TAU:
    raise SystemExit(f"below {LEAST_TAU}")


if __name__ == "__main__":
  main()
