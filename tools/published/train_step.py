"""Runs one training step of a decoder-only transformer on the described pod, to get its time.

    MINIPOD_TIME=model MINIPOD_VALUES=shapes MINIPOD_TOPOLOGY=... python train_step.py CONFIG

CONFIG is JSON, such as '{"layers": 32, "emb": 4096, "mlp": 11008, "heads": 32, "batch": 16}'.

Prints a JSON object: seconds, the shares of work and collectives in them, and the seconds of overlapped collectives.

The five keys of this example are required: the number of layers, the width of activations, the number of hidden units,
the number of query heads, and the sequences per step.  The other keys, with their defaults, are `kv_heads` (as many as
`heads`), `head_dim` (128), `gated` (true), `vocab` (32000), `parallel` (false: attention and feed forward layers in
turn), `data` (1) and `tensor` (1), which are the sizes of these axes, `sequence` (2048), `weights` (float32), and the
keys that are explained below.

Weights are sharded over `fsdp` and `tensor`, tokens over `data` and `fsdp`, heads and hidden units over `tensor`.  The
layers are a scan, unless `scan` is false.  Weights and Adam's moments are f32, or of the type `weights`; `mu` sets the
type of the first moment, which may be bf16.  Computing is in bf16.

`flash`: attention is a library's kernel, as a custom_call that the model of time knows: JAX's splash kernels (`library`:
"splash") with blocks of `block` tokens and two kernels in the backward pass, of three and four products, or one of five
(`backward`: 7, 5); Tokamax's ("tokamax"), which are the same without masks; JAX's older flash attention ("pallas"), which
keeps sums and maxima in 128 lanes; or cuDNN's ("cudnn").

`rope`: "halves" rotates the first half of a head against the second one, "pairs" each element against the next one, and so
does "shifted", by heads moved one place to both sides.  `normed`: which heads have a norm of their own.  `activation` is
that of hidden units.  `tied`: one embedding for tokens and logits, these in f32.  `one_hot`: tokens are looked up by a
product.  `logits`: the type of the product that makes them, where nothing is tied.

`kernels`: "library" has kernels as PyTorch with Megatron's own has them: one for the softmax of scores, for bias and GELU,
for a residual; none of them in a product's or a norm's. `dropout` is that of attention and of residuals.  `replicated`: all
devices of the tensor axis have the same activations between layers.

`experts`: so many feed forward layers, of which each token has `chosen`, as in MaxText with dropped tokens: each has
`capacity` (1.25) times its share of a sequence's places, and tokens come to their places and back by products.  With a
capacity of 0 no token is dropped: rows are sorted by expert, and matmuls are grouped (ragged_dot).  `shared` experts see
all tokens.  `expert` is the size of the axis that shards experts, and tokens outside of them.

`window`: five layers of six see so many tokens back, the sixth all of them, and a scan takes six at a time (Gemma 3).
`sides`: the blocks of queries and keys of each of splash's kernels, where they are not `block`.  `post`: norms behind attention
and feed forward layers, too.  `tiles`: logits are made for a part of the tokens at a time, and once more in the backward pass.

`blocks`: a list of [repetitions, [settings of a layer, ...]] for models whose layers differ: each repetition is an
iteration of a scan.  `same_kv`: values are keys before they are rotated.  `latent`: the widths of DeepSeek's latent
attention ("q", "kv", "plain", "placed", "value").  `bias`: scores have biases by distance, as in T5; without `flash`.
`causal`: whether a kernel's mask is (true); without, it has no mask.  `segments`: whether splash kernels also compare the
segment ids of queries and keys (true).

`quantized`: "float8" makes matmuls with weights in float8, with fixed scales; with `parts`, matrices of experts without a
capacity are gathered in float8, too.  `optimizer`: adam, adafactor or sgd.

`remat`: "full" keeps the input of each layer, "minimal" what products with weights make, and a list the values of these
names: input, q, k, v, context, out, gate, up, down.  With `offload` they wait for the backward pass in the host's memory.
"""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

import layers
import minipod
from settings import AXES, BATCH, BATCH_AXES, BETWEEN, BLOCKS, SHARDS, c, spread


# ---- the model ----

def policy():
  """Which values of a layer are kept for the backward pass."""
  kinds = jax.checkpoint_policies
  if isinstance(c.remat, str):
    return {"full": None, "minimal": kinds.dots_with_no_batch_dims_saveable}[c.remat]
  if not c.offload:
    return kinds.save_only_these_names(*c.remat)
  return kinds.save_and_offload_only_these_names(names_which_can_be_saved=[], names_which_can_be_offloaded=c.remat,
                                                 offload_src="device", offload_dst="pinned_host")


def look_up(table, tokens):
  table = table.astype(jnp.bfloat16)
  return jax.nn.one_hot(tokens, c.vocab, dtype=table.dtype) @ table if c.one_hot else table[tokens]


def loss(w, tokens, positions):
  x = spread(look_up(w["embed"], tokens), BETWEEN)
  for (_, kinds), own in zip(BLOCKS, w["layers"]):
    one = jax.checkpoint(functools.partial(layers.several, kinds, positions), policy=policy())
    if c.scan:
      x, _ = jax.lax.scan(one, x, own)
    for each in [] if c.scan else own:
      x, _ = one(x, each)
  # MaxText computes the logits of a tied embedding in f32.
  table = w["embed"].T if c.tied else w["unembed"].astype(c.logits)
  target = jnp.roll(tokens, -1, axis=1)
  if c.tiles == 1:
    return jnp.mean(surprise(table, x, target))
  table = spread(table, P(None, "tensor"))  # gathered before the loop
  parts = lambda y: jnp.moveaxis(y.reshape(y.shape[0], c.tiles, -1, *y.shape[2:]), 1, 0)
  total, _ = jax.lax.scan(jax.checkpoint(lambda sum, part: (sum + jnp.sum(surprise(table, *part)), None)), jnp.float32(0),
                          (parts(x), parts(target)))
  return total / tokens.size


def surprise(table, x, target):
  """The loss of each token."""
  logits = spread(x.astype(table.dtype) @ table, P(BATCH_AXES, None, "tensor")).astype(jnp.float32)
  hit = jax.nn.one_hot(target, c.vocab, dtype=jnp.bfloat16)
  return jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * hit, axis=-1)


def weights():
  """The shape and sharding of each weight."""
  def block(count, kinds):
    own = [layers.weights_of(l) for l in kinds]
    if c.scan:
      return [{name: ((count, *shape), P(None, *spec)) for name, (shape, spec) in one.items()} for one in own]
    return [own] * count
  embeddings = {"embed": ((c.vocab, c.emb), P("tensor", SHARDS))}
  if not c.tied:
    embeddings["unembed"] = ((c.emb, c.vocab), P(SHARDS, "tensor"))
  return {"layers": [block(*each) for each in BLOCKS], **embeddings}


def moments():
  """The shape, sharding and type of the optimizer's two moments of each weight."""
  own = lambda make: jax.tree.map(make, weights(), is_leaf=is_weight)
  if c.optimizer == "adam":
    return own(lambda w: (*w, c.mu or c.weights)), own(lambda w: (*w, c.weights))
  if c.optimizer == "sgd":
    return (), ()
  rows = lambda w: (w[0][:-1], P(*w[1][:len(w[0]) - 1]), c.weights)  # adafactor: means of squares, by row and by column
  columns = lambda w: ((*w[0][:-2], w[0][-1]), P(*(*w[1], *[None] * len(w[0]))[:len(w[0]) - 2],
                                                 *(*w[1], *[None] * len(w[0]))[len(w[0]) - 1:len(w[0])]), c.weights)
  return own(rows), own(lambda w: columns(w) if len(w[0]) > 1 else rows(w))


def is_weight(x):
  return isinstance(x, tuple) and len(x) > 1 and isinstance(x[1], P)


def adam(w, m, v, g):
  m = jax.tree.map(lambda m, g: (0.9 * m + 0.1 * g).astype(m.dtype), m, g)
  v = jax.tree.map(lambda v, g: (0.95 * v + 0.05 * g * g).astype(v.dtype), v, g)
  w = jax.tree.map(lambda w, m, v: (w - 1e-4 * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * w)).astype(w.dtype), w, m, v)
  return w, m, v


def adafactor(w, rows, columns, g):
  def mean(old, g, axis):
    square = jnp.square(g.astype(jnp.float32)) + 1e-30
    return (0.99 * old + 0.01 * (jnp.mean(square, axis=axis) if g.ndim > 1 else jnp.mean(square))).astype(old.dtype)
  rows = jax.tree.map(lambda old, g: mean(old, g, -1), rows, g)
  columns = jax.tree.map(lambda old, g: mean(old, g, -2), columns, g)

  def update(w, row, column, g):
    if w.ndim > 1:
      row = row / jnp.mean(row, axis=-1, keepdims=True)
      g = g * jax.lax.rsqrt(row)[..., :, None] * jax.lax.rsqrt(column)[..., None, :]
    else:
      g = g * jax.lax.rsqrt(column)
    g = g / jnp.maximum(1.0, jnp.sqrt(jnp.mean(jnp.square(g.astype(jnp.float32)))))
    return (w - 1e-4 * g).astype(w.dtype)
  return jax.tree.map(update, w, rows, columns, g), rows, columns


def sgd(w, m, v, g):
  return jax.tree.map(lambda w, g: (w - 1e-4 * g).astype(w.dtype), w, g), m, v


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, tokens, positions):
  value, g = jax.value_and_grad(loss)(state[0], tokens, positions)
  return {"adam": adam, "adafactor": adafactor, "sgd": sgd}[c.optimizer](*state, g), value


# ---- its time ----

def operations():
  """Operations of a step as publications count them: three times those of the forward pass.

  Returns the counts without attention's scores, with all of them, and with half of them and the embedding (as in
  MaxText from November 2023 to May 2024).  Recomputed operations do not count.
  """
  tokens = c.batch * c.sequence
  feeds = c.chosen if c.experts else 1
  kv = c.kv_heads or c.heads
  per_layer = 2 * c.emb * c.head_dim * (2 * c.heads + 2 * kv) + feeds * 2 * c.emb * c.mlp * (3 if c.gated else 2)
  attention = 4 * c.sequence * c.heads * c.head_dim
  tables = 1 if c.tied else 2
  return [3 * tokens * (c.layers * (per_layer + scores) + 2 * count * c.emb * c.vocab)
          for scores, count in ((0, 1), (attention, 1), (attention / 2, tables))]


def make_state():
  """Weights, moments and tokens on a mesh of all devices, which becomes JAX's current mesh."""
  mesh = Mesh(np.array(jax.devices()).reshape(*AXES.values()), tuple(AXES), axis_types=(AxisType.Auto,) * len(AXES))
  jax.set_mesh(mesh)

  def make(shapes):
    ones = lambda: jax.tree.map(lambda w: jnp.ones(w[0], w[2]), shapes, is_leaf=is_weight)
    shardings = jax.tree.map(lambda w: NamedSharding(mesh, w[1]), shapes, is_leaf=is_weight)
    return jax.jit(ones, out_shardings=shardings)()
  typed = jax.tree.map(lambda w: (*w, c.weights), weights(), is_leaf=is_weight)
  state = tuple(make(shapes) for shapes in (typed, *moments()))
  tokens = jax.jit(lambda: jnp.ones((c.batch, c.sequence), jnp.int32), out_shardings=NamedSharding(mesh, BATCH))()
  return jax.block_until_ready((state, tokens, tokens + 0))


def main():
  state, tokens, positions = make_state()
  begin = minipod.virtual_time()
  _, value = train_step(state, tokens, positions)
  value.block_until_ready()
  seconds = minipod.virtual_time() - begin
  (report,) = json.loads(minipod.time_report("json"))
  row = next(row for row in report["programs"] if row["name"] == "jit_train_step")
  work, collective, hidden = (row[part] / row["available"] for part in ("work", "collective", "hidden"))
  hidden *= row["seconds"]  # mean per device
  print(json.dumps({"seconds": seconds, "work": work, "collective": collective, "hidden": hidden,
                    "devices": jax.device_count(), "operations": operations()}))


if __name__ == "__main__":
  main()
