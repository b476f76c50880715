"""Propagation gives every value the sharding that Shardy's own passes give it.

The programs are JAX programs, random programs in JAX and in text (with what JAX never writes: priorities, sub-axes,
chains of constraints, conflicting groups), and any folder of .mlir files that MINIPOD_MLIR_PROGRAMS names.
"""

import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

import propagation_oracle as oracle
import test_partition_random

try:
  from jax.experimental.shard_alike import shard_alike
except ImportError:  # JAX 0.12 no longer has them
  shard_alike = None


def check(text, at_least=1):
  agree, differ = oracle.compare(text)
  for where, mine, theirs in differ:
    print(f"{where}: minipod {mine}, Shardy {theirs}")
  assert not differ
  assert agree >= at_least


# --- programs of JAX ---


def mesh(**axes):
  devices = np.array(jax.devices()[: int(np.prod(list(axes.values())))])
  return Mesh(devices.reshape(tuple(axes.values())), tuple(axes))


XY = dict(x=2, y=4)


def at(*spec, **axes):
  return NamedSharding(mesh(**(axes or XY)), P(*spec))


def hint(a, *spec):
  return lax.with_sharding_constraint(a, at(*spec))


def arg(*shape, spec=None, dtype=np.float32):
  sharding = None if spec is None else at(*spec)
  return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


def mlp(params, x, y):
  h = jnp.tanh(x @ params["w1"] + params["b1"])
  return jnp.mean((h @ params["w2"] + params["b2"] - y) ** 2)


def mlp_step(params, x, y):
  grads = jax.grad(mlp)(params, x, y)
  return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def mlp_args(w1, w2, data):
  params = dict(w1=arg(16, 64, spec=w1), b1=arg(64, spec=w1[1:]), w2=arg(64, 8, spec=w2),
                b2=arg(8))
  return params, arg(32, 16, spec=data), arg(32, 8, spec=data)


def attention(x, wq, wk, wv, wo):
  split = lambda a: jnp.transpose(a.reshape(a.shape[0], a.shape[1], 4, -1), (0, 2, 1, 3))
  q, k, v = (split(jnp.einsum("bsd,de->bse", x, w)) for w in (wq, wk, wv))
  scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 2.0
  scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
  out = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)
  out = jnp.transpose(out, (0, 2, 1, 3)).reshape(x.shape)
  return x + hint(out, "x", None, None) @ wo


def layers(x, ws):
  return lax.scan(lambda c, w: (jnp.tanh(c @ w), jnp.sum(c)), x, ws)


def power(a):
  return lax.while_loop(lambda s: jnp.max(s[0]) < 100, lambda s: (s[0] * 2, s[1] + s[0].T),
                        (a, jnp.zeros((16, 16))))


def manual(f, in_specs, out_specs, axes):
  return jax.shard_map(f, mesh=mesh(**XY), in_specs=in_specs, out_specs=out_specs,
                       axis_names=set(axes), check_vma=False)


def nested(a):
  def inner(b):
    return lax.psum(b, "y")
  def outer(b):
    c = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, None), axis_names={"y"},
                      check_vma=False)(b)
    return jnp.sum(c) + jnp.tanh(lax.psum(b, "x"))
  return manual(outer, P("x", None), P("x", None), "x")(a * 2) + 1


def part_manual(a, w):
  body = lambda b, v: jnp.tanh(lax.psum(b, "x") @ v)
  return manual(body, (P("x", None), P(None, None)), P(None, None), "x")(a, hint(w, None, "y"))


def alike(a, b):
  a, b = shard_alike(a * 2, b + 1)
  return a, jnp.cos(b)


def embed(table, ids):
  return jnp.take(table, ids, axis=0)


def embed_grad(table, ids):
  return jax.grad(lambda t: jnp.sum(embed(t, ids) ** 2))(table)


def conv(x, k):
  return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
  return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


PROGRAMS = {
    "elementwise": (lambda a, b: jnp.where(a > b, a * b, jnp.exp(a)),
                    arg(8, 16, spec=("x", "y")), arg(8, 16)),
    "conflict": (lambda a, b: a + b, arg(8, 8, spec=("x", None)), arg(8, 8, spec=(None, "x"))),
    "broadcast": (lambda a, b: a[:, None, :] + b, arg(8, 16, spec=("x", "y")), arg(8, 4, 16)),
    "constants": (lambda a: (a + jnp.arange(16.0), jnp.arange(16.0) * 2, jnp.ones((8, 16)) - a),
                  arg(8, 16, spec=("x", "y"))),
    "matmul": (lambda a, b: a @ b, arg(8, 16, spec=("x", "y")), arg(16, 32, spec=("y", None))),
    "reshape": (lambda a: (a.reshape(8, 4, 4), a.reshape(128), a.reshape(2, 4, 16)),
                arg(8, 16, spec=(("x", "y"), None))),
    "uneven": (lambda a: hint(a, "y") * 2, arg(10)),
    "unconstrained": (lambda a: hint(jnp.cos(a), P.UNCONSTRAINED, "y") + 1,
                      arg(8, 16, spec=("x", None))),
    "constraints": (lambda a: hint(hint(a * 2, "x", None), None, "y") + a, arg(8, 16)),
    "open parameter": (lambda a, w: hint(a @ w, "x", "y"), arg(8, 16), arg(16, 32)),
    "mlp data parallel": (mlp_step, *mlp_args((None, None), (None, None), ("x", None))),
    "mlp tensor parallel": (mlp_step, *mlp_args((None, "y"), ("y", None), ("x", None))),
    "mlp fsdp": (mlp_step, *mlp_args((("x", "y"), None), (("x", "y"), None), (("x", "y"), None))),
    "attention": (lambda *a: jax.grad(lambda *b: jnp.sum(attention(*b)), argnums=(1, 4))(*a),
                  arg(4, 8, 16, spec=("x", None, None)), arg(16, 16, spec=(None, "y")),
                  arg(16, 16, spec=(None, "y")), arg(16, 16, spec=(None, "y")),
                  arg(16, 16, spec=("y", None))),
    "scan": (layers, arg(8, 16, spec=("x", None)), arg(3, 16, 16, spec=(None, None, "y"))),
    "scan grad": (lambda x, ws: jax.grad(lambda w: jnp.sum(layers(x, w)[0]))(ws),
                  arg(8, 16, spec=("x", None)), arg(3, 16, 16, spec=(None, "y", None))),
    "while": (power, arg(16, 16, spec=("x", "y"))),
    "cond": (lambda p, a, b: lax.cond(p, lambda: a + b, lambda: a.T), arg(dtype=np.bool_),
             arg(16, 16, spec=("x", "y")), arg(16, 16, spec=("y", None))),
    "remat": (lambda a, w: jax.grad(lambda v: jnp.sum(jax.checkpoint(
        lambda u: jnp.sin(a @ u))(v)))(w), arg(8, 16, spec=("x", None)),
              arg(16, 8, spec=(None, "y"))),
    "gather": (embed, arg(32, 16, spec=("y", None)), arg(8, 4, spec=("x", None), dtype=np.int32)),
    "scatter": (embed_grad, arg(32, 16, spec=(None, "y")),
                arg(8, 4, spec=("x", None), dtype=np.int32)),
    "convolution": (lambda x, k: jax.grad(lambda v: jnp.sum(conv(x, v)))(k),
                    arg(4, 8, 8, 4, spec=("x", "y", None, None)), arg(3, 3, 4, 8)),
    "pool": (lambda x: jax.grad(lambda v: jnp.sum(pool(v)))(x),
             arg(4, 8, 8, 4, spec=("x", None, "y", None))),
    "sort": (lambda a: (jnp.sort(a), jnp.argmax(a, 1), jnp.cumsum(a, 0)),
             arg(8, 16, spec=("x", "y"))),
    "slices": (lambda a, i: (a[2:6], lax.dynamic_slice(a, (i, 0), (4, 16)), jnp.roll(a, 1, 0),
                             jnp.concatenate([a, a[:, ::-1]], 1), jnp.pad(a, 1)),
               arg(8, 16, spec=("x", "y")), arg(dtype=np.int32)),
    "random": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (8, 16)) + hint(
        jnp.zeros((8, 16)), "x", "y"), arg(2, dtype=np.uint32)),
    "keys": (lambda s: jax.vmap(jax.vmap(jax.random.key))(s).T,
             arg(8, 4, spec=("x", "y"), dtype=np.uint32)),
    "shard_map": (lambda a: manual(lambda b: lax.psum(b, "x"), P("x", "y"), P(None, "y"),
                                   "xy")(a + 1) * 2, arg(8, 16)),
    "partly manual": (part_manual, arg(8, 16), arg(16, 32)),
    "nested manual": (nested, arg(8, 16, spec=("x", "y"))),
    "shard_alike": (alike, arg(8, 16, spec=("x", "y")), arg(8, 16)),
    "fft and linear algebra": (lambda a: (jnp.fft.fft(a), jnp.linalg.cholesky(a)),
                               arg(8, 4, 4, spec=("x", None, None))),
}
if shard_alike is None:
  del PROGRAMS["shard_alike"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_jax(name):
  f, *args = PROGRAMS[name]
  check(jax.jit(f).lower(*args).as_text())


@pytest.mark.parametrize("batch", range(4))
def test_random_jax(batch):
  for seed in range(1000 + 5 * batch, 1005 + 5 * batch):
    program = test_partition_random.Program(seed)
    args = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(program.mesh, spec))
            for a, spec in zip(program.args, program.specs)]
    run = jax.jit(lambda *a, program=program: program.run(program.mesh, *a),
                  out_shardings=program.out)
    print(f"seed {seed}")
    check(run.lower(*args).as_text())


# --- programs in text ---


class Text:
  """A random program: operations over a pool of values, with shardings in every place that Shardy allows."""

  SHAPES = [(8, 12), (12, 8), (12, 12), (6, 2, 8), (96,)]
  MESHES = [(("x", 2), ("y", 4)), (("x", 2), ("y", 2), ("z", 2)), (("x", 3), ("y", 2)), (("x", 6),)]

  def __init__(self, seed):
    self.rng = np.random.default_rng(seed)
    self.axes = self.choose(*self.MESHES)
    self.lines = []
    self.pool = []
    self.count = 0

  def choose(self, *choices):
    return choices[int(self.rng.integers(len(choices)))]

  def type(self, shape):
    return "tensor<" + "".join(f"{n}x" for n in shape) + "f32>"

  def refs(self):
    """Disjoint axes and sub-axes in random order."""
    refs = []
    for name, size in self.axes:
      if size > 3 and self.rng.integers(3) == 0:
        refs += [f'"{name}":(1)2', f'"{name}":(2){size // 2}']
      else:
        refs.append(f'"{name}"')
    return [refs[i] for i in self.rng.permutation(len(refs))]

  def size(self, ref):
    return int(ref.split(")")[1]) if ":" in ref else dict(self.axes)[ref.strip('"')]

  def sharding(self, shape, priorities=True, even=False):
    """Shardings of parameters and results are even, because minipod keeps uneven ones and Shardy divides them."""
    refs = [r for r in self.refs() if self.rng.integers(2)]
    rank = len(shape)
    dims = [[] for _ in range(rank)]
    left = list(shape)
    rest = []
    for ref in refs:
      k = int(self.rng.integers(rank)) if rank else 0
      if rank and self.rng.integers(5) and not (even and left[k] % self.size(ref)):
        left[k] //= self.size(ref)
        dims[k].append(ref)
      else:
        rest.append(ref)
    # Adjacent sub-axes of one axis must be written as one.
    joined = [self.join(d) for d in dims]
    texts = []
    for d in joined:
      is_open = bool(self.rng.integers(2))
      text = "{" + ", ".join(d + (["?"] if is_open else [])) + "}"
      if priorities and (d or is_open) and self.rng.integers(4) == 0:
        text += f"p{int(self.rng.integers(3))}"
      texts.append(text)
    order = [n for n, _ in self.axes]
    rest = self.join(sorted(rest, key=lambda r: (order.index(r.split('"')[1]), r)))
    fixed = f", replicated={{{', '.join(rest)}}}" if rest and self.rng.integers(2) else ""
    return f"<@mesh, [{', '.join(texts)}]{fixed}>"

  @staticmethod
  def join(refs):
    out = []
    for ref in refs:
      name = ref.split(":")[0]
      if ":(2)" in ref and out and out[-1] == f"{name}:(1)2":
        out[-1] = name
      else:
        out.append(ref)
    return out

  def emit(self, text, shape):
    name = f"%v{self.count}"
    self.count += 1
    self.lines.append(f"    {name} = {text}")
    self.pool.append((name, shape))

  def pick(self, rank=None, shape=None):
    fits = [v for v in self.pool
            if (rank is None or len(v[1]) == rank) and (shape is None or v[1] == shape)]
    return fits[int(self.rng.integers(len(fits)))] if fits else None

  def step(self):
    a, shape = self.pick()
    kind = self.type(shape)
    case = self.choose("unary", "binary", "binary", "constraint", "constraint", "transpose", "dot",
                       "broadcast", "reshape", "reduce", "concatenate", "slice", "constant",
                       "iota", "group", "barrier", "block", "while", "case", "annotated")
    if case == "unary":
      self.emit(f"stablehlo.{self.choose('tanh', 'negate')} {a} : {kind}", shape)
    elif case == "annotated":
      per_value = f"#sdy.sharding_per_value<[{self.sharding(shape)}]>"
      self.emit(f"stablehlo.cosine {a} {{sdy.sharding = {per_value}}} : {kind}", shape)
    elif case == "binary":
      b = self.pick(shape=shape)[0]
      self.emit(f"stablehlo.{self.choose('add', 'multiply')} {a}, {b} : {kind}", shape)
    elif case == "constraint" and self.rng.integers(6) == 0:
      # Groups have no axes, but say which dimensions are open.
      dims = ", ".join(self.choose("{?}", "{}") for _ in shape)
      self.emit(f"sdy.sharding_constraint {a} <@empty_mesh, [{dims}]> : {kind}", shape)
    elif case == "constraint":
      self.emit(f"sdy.sharding_constraint {a} {self.sharding(shape)} : {kind}", shape)
    elif case == "transpose" and len(shape) == 2:
      out = shape[::-1]
      self.emit(f"stablehlo.transpose {a}, dims = [1, 0] : ({kind}) -> {self.type(out)}", out)
    elif case == "dot" and len(shape) == 2:
      b = next((v for v in self.pool[::-1] if len(v[1]) == 2 and v[1][0] == shape[1]), None)
      if b is None:
        return
      out = (shape[0], b[1][1])
      self.emit(f"stablehlo.dot_general {a}, {b[0]}, contracting_dims = [1] x [0] : "
                f"({kind}, {self.type(b[1])}) -> {self.type(out)}", out)
    elif case == "broadcast" and len(shape) == 2:
      out = (shape[0], 2, shape[1])
      self.emit(f"stablehlo.broadcast_in_dim {a}, dims = [0, 2] : "
                f"({kind}) -> {self.type(out)}", out)
    elif case == "reshape":
      size = int(np.prod(shape))
      out = self.choose(*[s for s in self.SHAPES if int(np.prod(s)) == size] or [shape])
      self.emit(f"stablehlo.reshape {a} : ({kind}) -> {self.type(out)}", out)
    elif case == "reduce" and len(shape) > 1:
      out = shape[1:]
      zero = f"%z{self.count}"
      self.lines.append(f"    {zero} = stablehlo.constant dense<0.0> : tensor<f32>")
      self.emit(f"stablehlo.reduce({a} init: {zero}) applies stablehlo.add across "
                f"dimensions = [0] : ({kind}, tensor<f32>) -> {self.type(out)}", out)
    elif case == "concatenate":
      b = self.pick(shape=shape)[0]
      out = (2 * shape[0],) + shape[1:]
      self.emit(f"stablehlo.concatenate {a}, {b}, dim = 0 : ({kind}, {kind}) -> {self.type(out)}",
                out)
    elif case == "slice" and shape[-1] >= 4:
      out = shape[:-1] + (shape[-1] // 2,)
      ranges = ", ".join([f"0:{n}" for n in out])
      self.emit(f"stablehlo.slice {a} [{ranges}] : ({kind}) -> {self.type(out)}", out)
    elif case == "constant":
      out = self.choose(*self.SHAPES)
      self.emit(f"stablehlo.constant dense<1.0> : {self.type(out)}", out)
    elif case == "iota":
      out = self.choose(*self.SHAPES)
      self.emit(f"stablehlo.iota dim = 0 : {self.type(out)}", out)
    elif case == "group":
      b = self.pick(shape=shape)[0]
      # All members of a group must have the same shape.
      if shape not in self.SHAPES:
        return
      group = 2 * self.SHAPES.index(shape) + int(self.rng.integers(2))
      for v in (a, b):
        self.lines.append(f"    sdy.sharding_group {v} group_id={group} : {kind}")
    elif case == "barrier":
      direction = self.choose("NONE", "FORWARD", "BACKWARD")
      self.emit(f"sdy.propagation_barrier {a} allowed_direction={direction} : {kind}", shape)
    elif case == "block":
      self.emit(f"stablehlo.optimization_barrier {a} : {kind}", shape)
    elif case == "while":
      self.loop(a, shape)
    elif case == "case":
      self.branches(a, shape)

  def loop(self, a, shape):
    kind = self.type(shape)
    b = self.pick(shape=shape)[0]
    hinted = self.sharding(shape, priorities=False)
    n = self.count
    self.emit(f"""stablehlo.while(%p{n} = {a}) : {kind}
    cond {{
      %t{n} = stablehlo.constant dense<true> : tensor<i1>
      stablehlo.return %t{n} : tensor<i1>
    }} do {{
      %q{n} = stablehlo.add %p{n}, {b} : {kind}
      %r{n} = sdy.sharding_constraint %q{n} {hinted} : {kind}
      %s{n} = stablehlo.tanh %r{n} : {kind}
      stablehlo.return %s{n} : {kind}
    }}""", shape)

  def branches(self, a, shape):
    kind = self.type(shape)
    b = self.pick(shape=shape)[0]
    n = self.count
    self.emit(f"""stablehlo.constant dense<0> : tensor<i32>
    %c{n} = "stablehlo.case"(%v{n}) ({{
      %q{n} = stablehlo.add {a}, {b} : {kind}
      stablehlo.return %q{n} : {kind}
    }}, {{
      stablehlo.return {a} : {kind}
    }}) : (tensor<i32>) -> {kind}""", ())
    self.pool[-1] = (f"%c{n}", shape)

  def text(self):
    args = []
    for k in range(4):
      shape = self.choose(*self.SHAPES)
      self.pool.append((f"%arg{k}", shape))
      own = self.rng.integers(3)
      attr = f" {{sdy.sharding = #sdy.sharding{self.sharding(shape, even=True)}}}" if own else ""
      args.append(f"%arg{k}: {self.type(shape)}{attr}")
    for _ in range(14):
      self.step()
    results = [self.pool[int(i)] for i in self.rng.integers(len(self.pool), size=3)]
    kinds = []
    for _, shape in results:
      own = self.rng.integers(3) == 0
      attr = f" {{sdy.sharding = #sdy.sharding{self.sharding(shape, even=True)}}}" if own else ""
      kinds.append(self.type(shape) + attr)
    axes = ", ".join(f'"{n}"={s}' for n, s in self.axes)
    body = "\n".join(self.lines)
    values = ", ".join(r[0] for r in results)
    types = ", ".join(self.type(r[1]) for r in results)
    devices = int(np.prod([size for _, size in self.axes]))
    return f"""module @random attributes {{mhlo.num_partitions = {devices} : i32}} {{
  sdy.mesh @mesh = <[{axes}]>
  sdy.mesh @empty_mesh = <[]>
  func.func public @main({', '.join(args)}) -> ({', '.join(kinds)}) {{
{body}
    return {values} : {types}
  }}
}}
"""


@pytest.mark.skipif(not oracle.orders_functions(), reason="the Shardy of JAX 0.9 folds branches whose "
                    "choice is constant, and shards results otherwise, in programs that JAX never writes")
@pytest.mark.parametrize("batch", range(10))
def test_random_text(batch):
  for seed in range(20 * batch, 20 * batch + 20):
    text = Text(seed).text()
    print(f"seed {seed}\n{text}")
    check(text)


FOLDER = os.environ.get("MINIPOD_MLIR_PROGRAMS")


@pytest.mark.parametrize("path", sorted(pathlib.Path(FOLDER).glob("*.mlir")) if FOLDER else [],
                         ids=lambda path: path.stem)
def test_folder(path):
  check(path.read_text(), at_least=0)
