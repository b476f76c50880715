"""Draws training steps and decode steps from a seed, with the sharding annotations that people write.

They have data, fully sharded, tensor, sequence and expert parallelism and ZeRO-1 to 3, alone and together; layers in a
scan or one by one, with or without rematerialization; constraints in usual and in unusual places.  draw(seed, devices)
returns the function, its arguments as shapes with shardings, and a description.  Everything is float32, because XLA's
CPU backend sends bfloat16 as float32, which would favour minipod.

As a script, it compiles and runs programs on the platform of the environment, and writes their traffic and their
results to a folder: annotated_programs.py FOLDER SEED ...
"""

import functools
import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import wire_bytes

MESHES = [((8,), ("d",)), ((8,), ("t",)), ((2, 4), ("d", "t")), ((4, 2), ("d", "t")),
          ((2, 2, 2), ("d", "f", "t")), ((4, 2), ("d", "f")), ((8,), ("f",)), ((2, 4), ("f", "t"))]


class Program:

  def __init__(self, seed, devices):
    self.rng = np.random.default_rng(seed)
    self.notes = []
    shape, names = MESHES[int(self.rng.integers(len(MESHES)))]
    self.mesh = Mesh(np.array(devices[:8]).reshape(shape), names)
    self.sizes = dict(zip(names, shape))
    self.note(" ".join(f"{n}={s}" for n, s in self.sizes.items()))
    self.batch_axes = tuple(n for n in names if n in "df")
    self.f = "f" if "f" in names else ("d" if "d" in names and self.flip(.4) else None)
    self.t = "t" if "t" in names else None
    self.layers = int(self.pick(1, 2, 3, 4))
    self.dim = int(self.pick(32, 64, 64, 128))
    self.wide = self.dim * int(self.pick(2, 4))
    self.heads = 8
    self.batch, self.length = int(self.pick(8, 16, 64)), int(self.pick(8, 16, 64))
    self.vocabulary = int(self.pick(64, 128, 512))
    self.experts = 8
    self.is_scanned = self.flip(.6)

  # --- drawing ---

  def pick(self, *choices):
    return choices[int(self.rng.integers(len(choices)))]

  def flip(self, chance):
    return bool(self.rng.random() < chance)

  def note(self, text):
    self.notes.append(text)

  def sharding(self, spec):
    return NamedSharding(self.mesh, spec)

  def pin(self, x, *spec):
    return lax.with_sharding_constraint(x, self.sharding(P(*spec)))

  def arg(self, shape, spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=self.sharding(spec))

  def room(self, n, axes):
    """The axes that divide the dimension, as an entry of a spec."""
    kept = []
    for axis in axes:
      if axis is not None and n % self.sizes[axis] == 0:
        n //= self.sizes[axis]
        kept.append(axis)
    return tuple(kept) if len(kept) > 1 else (kept[0] if kept else None)

  def batch_spec(self, n):
    return self.room(n, self.batch_axes)

  # --- parameters ---

  def weight(self, *dims, tensor=None, expert=False):
    """A shape and its spec: `tensor` is the dimension that tensor parallelism divides."""
    axes = [[] for _ in dims]
    if expert:
      axes[0] += [self.pick("d", "f", "t")]
    elif tensor is not None and self.t is not None:
      axes[tensor].append(self.t)
    if self.f is not None and self.is_fully_sharded:
      axes[self.fsdp_dim(len(dims), tensor)].append(self.f)
    used, spec = set(), []
    for n, some in zip(dims, axes):
      some = [a for a in dict.fromkeys(some) if a in self.sizes and a not in used]
      used.update(some)
      spec.append(self.room(n, some))
    return dims, P(*spec)

  def fsdp_dim(self, rank, tensor):
    others = [i for i in range(rank) if i != tensor]
    return others[self.fsdp_choice % len(others)] if others else 0

  def layer_weights(self):
    d, w = self.dim, self.wide
    out = {"norm": ((d,), P())}
    if self.has_attention:
      for name in ("q", "k", "v"):
        out[name] = self.weight(d, d, tensor=1)
      out["o"] = self.weight(d, d, tensor=0)
      out["norm2"] = ((d,), P())
    if self.has_experts:
      out["router"] = ((d, self.experts), P())
      out["up"] = self.weight(self.experts, d, w, tensor=2, expert=True)
      out["down"] = self.weight(self.experts, w, d, tensor=1, expert=True)
    else:
      out["up"] = self.weight(d, w, tensor=1)
      out["down"] = self.weight(w, d, tensor=0)
      if self.is_gated:
        out["gate"] = self.weight(d, w, tensor=1)
    return out

  def draw_model(self):
    self.is_fully_sharded = self.f is not None and self.flip(.6)
    self.fsdp_choice = int(self.rng.integers(2))
    self.has_attention, self.is_gated = self.flip(.6), self.flip(.5)
    self.has_experts = self.flip(.2)
    self.has_vocabulary = self.flip(.4)
    self.remat = self.pick(None, None, "all", "dots")
    self.activation = self.pick("none", "none", "batch", "sequence", "whole", "features", "open")
    self.odd = self.pick(*["none"] * 4, "weights", "scores", "hidden", "normed", "logits", "twice",
                         "transposed")
    self.note(f"{'scan' if self.is_scanned else 'unrolled'} {self.layers}x{self.dim}x{self.wide} "
              f"batch {self.batch}x{self.length}")
    for name in ("is_fully_sharded", "has_attention", "has_experts", "has_vocabulary"):
      if getattr(self, name):
        self.note(name)
    self.note(f"remat={self.remat} activation={self.activation} odd={self.odd}")

  def params(self):
    layer = self.layer_weights()
    stack = lambda entry: ((self.layers, *entry[0]), P(None, *entry[1]))
    if self.is_scanned:
      out = {"layers": {k: stack(v) for k, v in layer.items()}}
    else:
      out = {"layers": [dict(layer) for _ in range(self.layers)]}
    if self.has_vocabulary:
      which = int(self.rng.integers(2))
      out["table"] = self.weight(self.vocabulary, self.dim, tensor=which)
      out["head"] = self.weight(self.dim, self.vocabulary, tensor=self.pick(0, 1))
    return jax.tree.map(lambda e: self.arg(*e), out, is_leaf=lambda e: isinstance(e, tuple))

  # --- the model ---

  def constrain(self, x):
    """The sharding constraint between the blocks: [batch, length, dim]."""
    b, t = self.batch_spec(x.shape[0]), self.t
    kind = self.activation
    if kind == "batch":
      return self.pin(x, b, None, None)
    if kind == "sequence":
      return self.pin(x, b, self.room(x.shape[1], [t]), None)
    if kind == "whole":
      return self.pin(x)
    if kind == "features":
      return self.pin(x, b, None, self.room(x.shape[2], [t]))
    if kind == "open":
      return self.pin(x, b, P.UNCONSTRAINED, P.UNCONSTRAINED)
    return x

  def norm(self, x, scale):
    y = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale
    return self.pin(y, self.batch_spec(x.shape[0])) if self.odd == "normed" else y

  def attention(self, w, x):
    heads = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
    q, k, v = (heads(x @ w[n]) for n in ("q", "k", "v"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    if self.odd == "scores":
      scores = self.pin(scores, self.batch_spec(x.shape[0]), self.room(self.heads, [self.t]))
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    p = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", p, v).reshape(x.shape) @ w["o"]

  def mlp(self, w, x):
    if self.has_experts:
      return self.mixture(w, x)
    up = w["up"]
    if self.odd == "weights":
      up = self.pin(up)
    h = x @ up
    h = jax.nn.silu(x @ w["gate"]) * h if self.is_gated else jax.nn.gelu(h)
    if self.odd == "hidden":
      h = self.pin(h, self.batch_spec(x.shape[0]), None, self.room(self.wide, [self.t]))
    elif self.odd == "transposed":
      h = self.pin(h, None, self.batch_spec(h.shape[1]), None)
    return h @ w["down"]

  def mixture(self, w, x):
    """Sends each token to its best expert, with all experts in one matmul over a one-hot matrix."""
    chances = jax.nn.softmax(x @ w["router"])
    best = jax.nn.one_hot(jnp.argmax(chances, -1), self.experts)
    y = jnp.einsum("bse,bsd->ebsd", best, x)
    h = jax.nn.gelu(jnp.einsum("ebsd,edf->ebsf", y, w["up"]))
    y = jnp.einsum("ebsf,efd->ebsd", h, w["down"])
    return jnp.einsum("ebsd,bse->bsd", y, best * chances)

  def block(self, x, w):
    x = self.constrain(x)
    if self.has_attention:
      x = x + self.attention(w, self.norm(x, w["norm"]))
      if self.odd == "twice":
        x = self.pin(self.constrain(x), self.batch_spec(x.shape[0]))
      x = x + self.mlp(w, self.norm(x, w["norm2"]))
    else:
      x = x + self.mlp(w, self.norm(x, w["norm"]))
    return self.constrain(x)

  def forward(self, params, x):
    if self.has_vocabulary:
      x = params["table"][x]
    block = self.block
    if self.remat is not None:
      policy = jax.checkpoint_policies.dots_saveable if self.remat == "dots" else None
      block = jax.checkpoint(block, policy=policy)
    if self.is_scanned:
      x, _ = lax.scan(lambda c, w: (block(c, w), None), x, params["layers"])
    else:
      for w in params["layers"]:
        x = block(x, w)
    return x

  def loss(self, params, x, y):
    out = self.forward(params, x)
    if not self.has_vocabulary:
      return jnp.sum((out - y) ** 2)
    logits = out @ params["head"]
    if self.odd == "logits":
      logits = self.pin(logits, self.batch_spec(logits.shape[0]), None, self.room(self.vocabulary, [self.t]))
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1)
    return -jnp.sum(chosen)

  # --- a training step ---

  def moment(self, w):
    """A moment's sharding under ZeRO: the weight's, plus the data axis if it divides a dimension."""
    spec = list(w.sharding.spec) + [None] * (len(w.shape) - len(w.sharding.spec))
    used = {a for entry in spec for a in ([entry] if isinstance(entry, str) else entry or ())}
    axes = [a for a in self.batch_axes if a not in used]
    order = self.rng.permutation(len(w.shape)) if self.zero_is_random else range(len(w.shape))
    for i in order:
      if axes and spec[i] is None and self.room(w.shape[i], axes) == self.room(1 << 20, axes):
        spec[i] = self.room(w.shape[i], axes)
        break
    return self.arg(w.shape, P(*spec))

  def train(self):
    self.draw_model()
    self.zero = self.pick(0, 0, 1, 1, 2)
    self.zero_is_random = self.flip(.3)
    self.optimizer = self.pick("sgd", "momentum", "adam")
    if self.optimizer == "sgd":
      self.zero = 0
    self.pinned_gradients = self.zero == 2 or self.flip(.15)
    self.accumulates = self.flip(.15)
    self.has_outs = self.flip(.6)
    self.note(f"train {self.optimizer} zero={self.zero} pinned={self.pinned_gradients} "
              f"accumulates={self.accumulates} outs={self.has_outs}")
    params = self.params()
    moments = jax.tree.map(self.moment, params) if self.zero else params
    state = {"sgd": (), "momentum": (moments,), "adam": (moments, moments)}[self.optimizer]
    lead = (4,) if self.accumulates else ()
    b = self.batch_spec(self.batch)
    data = P(*[None] * len(lead), b)
    shape = (*lead, self.batch, self.length)
    if self.has_vocabulary:
      x = y = self.arg(shape, data, jnp.int32)
    else:
      x = y = self.arg((*shape, self.dim), data)
    outs = None
    if self.has_outs:
      specs = lambda tree: jax.tree.map(lambda a: a.sharding, tree)
      outs = (specs(params), specs(state), self.sharding(P()))
    pins = jax.tree.map(lambda a: a.sharding, moments)
    return jax.jit(functools.partial(self.step, pins), out_shardings=outs), (params, state, x, y)

  def gradients(self, params, x, y):
    if not self.accumulates:
      return jax.value_and_grad(self.loss)(params, x, y)
    def add(carry, data):
      value, grads = jax.value_and_grad(self.loss)(params, *data)
      return (carry[0] + value, jax.tree.map(jnp.add, carry[1], grads)), None
    zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
    return lax.scan(add, zero, (x, y))[0]

  def step(self, pins, params, state, x, y):
    value, grads = self.gradients(params, x, y)
    if self.pinned_gradients:
      grads = jax.tree.map(lax.with_sharding_constraint, grads, pins)
    if self.optimizer == "sgd":
      update = grads
    else:
      first = jax.tree.map(lambda m, g: .9 * m + .1 * g, state[0], grads)
      update, state = first, (first, *state[1:])
    if self.optimizer == "adam":
      second = jax.tree.map(lambda m, g: .99 * abs(m) + .01 * g * g, state[1], grads)
      update = jax.tree.map(lambda a, b: a / (jnp.sqrt(b) + 1e-8), update, second)
      state = (state[0], second)
    return jax.tree.map(lambda w, u: w - .1 * u, params, update), state, value

  # --- a decode step ---

  def decode(self):
    self.draw_model()
    self.has_attention = True
    self.remat = None
    self.note("decode")
    self.length = 1
    params = self.params()
    where = self.pick("batch", "heads", "both", "sequence")
    seen = 64
    spec = [None, None, None, None]
    if where in ("batch", "both"):
      spec[0] = self.batch_spec(self.batch)
    if where in ("heads", "both"):
      spec[2] = self.room(self.heads, [self.t])
    if where == "sequence":
      spec[1] = self.room(seen, [self.t or self.batch_axes[0]])
    self.note(f"cache by {where}")
    shape = (self.batch, seen, self.heads, self.dim // self.heads)
    entry = lambda: {k: self.arg((self.layers, *shape), P(None, *spec)) if self.is_scanned
                     else self.arg(shape, P(*spec)) for k in ("k", "v")}
    cache = entry() if self.is_scanned else [entry() for _ in range(self.layers)]
    if self.has_vocabulary:
      x = self.arg((self.batch, 1), P(self.batch_spec(self.batch)), jnp.int32)
    else:
      x = self.arg((self.batch, 1, self.dim), P(self.batch_spec(self.batch)))
    outs = None
    if self.flip(.6):
      outs = (jax.tree.map(lambda a: a.sharding, cache), None)
    position = jax.ShapeDtypeStruct((), jnp.int32, sharding=self.sharding(P()))
    return jax.jit(self.decode_step, out_shardings=outs), (params, cache, x, position)

  def decode_block(self, x, w, cache, position):
    x = self.constrain(x)
    y = self.norm(x, w["norm"])
    heads = lambda a: a.reshape(*a.shape[:2], self.heads, -1)
    q, k, v = (heads(y @ w[n]) for n in ("q", "k", "v"))
    put = lambda old, new: lax.dynamic_update_slice(old, new, (0, position, 0, 0))
    cache = {"k": put(cache["k"], k), "v": put(cache["v"], v)}
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, cache["k"]) / np.sqrt(q.shape[-1])
    if self.odd == "scores":
      scores = self.pin(scores, self.batch_spec(x.shape[0]), self.room(self.heads, [self.t]))
    scores = jnp.where(jnp.arange(scores.shape[-1]) <= position, scores, -1e9)
    out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), cache["v"])
    x = x + out.reshape(x.shape) @ w["o"]
    return self.constrain(x + self.mlp(w, self.norm(x, w["norm2"]))), cache

  def decode_step(self, params, cache, x, position):
    if self.has_vocabulary:
      x = params["table"][x]
    if self.is_scanned:
      def layer(x, data):
        return self.decode_block(x, *data, position)
      x, cache = lax.scan(layer, x, (params["layers"], cache))
    else:
      pairs = zip(params["layers"], cache)
      new = []
      for w, c in pairs:
        x, c = self.decode_block(x, w, c, position)
        new.append(c)
      cache = new
    if self.has_vocabulary:
      x = jnp.argmax(x @ params["head"], -1)
    return cache, x

  def drawn(self):
    return self.decode() if self.flip(.25) else self.train()


def draw(seed, devices):
  """The jitted function, its arguments, and the description."""
  program = Program(seed, devices)
  f, args = program.drawn()
  return f, args, ", ".join(program.notes)


def data(rng, shape):
  if shape.dtype == jnp.int32:
    return rng.integers(0, 64, shape.shape, np.int32)
  return rng.uniform(-.3, .3, shape.shape).astype(np.float32)


def value(rng, shape):
  return jax.device_put(data(rng, shape), shape.sharding)


def floats(results):
  """Flattened; integers come from an argmax, which rounding may change."""
  return [np.asarray(a).ravel() for a in jax.tree.leaves(results) if a.dtype == jnp.float32]


def run(compiled, seed, args):
  rng = np.random.default_rng(seed)
  return floats(compiled(*jax.tree.map(functools.partial(value, rng), args)))


def run_on_one(seed, devices, one):
  """The results of the program drawn for `devices`, without its annotations, on one device."""
  program = Program(seed, devices)
  f, args = program.drawn()
  program.pin = lambda x, *spec: x
  program.pinned_gradients = False
  rng = np.random.default_rng(seed)
  with jax.default_device(one):
    return floats(jax.jit(f.__wrapped__)(*jax.tree.map(functools.partial(data, rng), args)))


def main(folder, *seeds):
  for seed in map(int, seeds):
    f, args, notes = draw(seed, jax.devices())
    compiled = f.lower(*args).compile()
    total, kinds = wire_bytes.count(compiled.as_text(), 8)
    np.savez(pathlib.Path(folder) / f"{seed}.npz", *run(compiled, seed, args))
    entry = {"bytes": total, "kinds": kinds, "notes": notes}
    (pathlib.Path(folder) / f"{seed}.json").write_text(json.dumps(entry))


if __name__ == "__main__":
  main(*sys.argv[1:])
