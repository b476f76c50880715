"""A StableHLO program under construction, drawn from a seed: values, shardings, lines of text.

The ops are in random_rows_*.py, whole programs in random_ops.py, and random_check.py runs them.
"""

import collections
import re

import numpy as np

MESHES = [(2,), (3,), (4,), (5,), (8,), (16,), (2, 2), (2, 3), (2, 4), (4, 2), (3, 4), (4, 4), (8, 2),
          (2, 2, 2), (2, 3, 2), (2, 2, 4), (4, 2, 2)]
SIZES = [1, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16]
BITS = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32, "i1": np.bool_, "i8": np.int8,
        "complex<f32>": np.complex64, "ui64": np.uint64, "i64": np.int64, "ui8": np.uint8}


class Value:
  def __init__(self, name, shape, dtype):
    self.name, self.shape, self.dtype = name, tuple(int(n) for n in shape), dtype

  @property
  def type(self):
    return tensor(self.shape, self.dtype)


def tensor(shape, dtype):
  return "tensor<" + "".join(f"{int(n)}x" for n in shape) + dtype + ">"


def ints(values):
  values = [int(v) for v in values]
  return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def table(rows):
  rows = [[int(v) for v in row] for row in rows]
  if not rows:
    return "dense<> : tensor<0x2xi64>"
  return f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def integer(value, width=64):
  return f"{int(value)} : i{width}"


class Program:
  """A program under construction; `rng` draws everything."""

  def __init__(self, seed):
    self.rng = np.random.default_rng(seed)
    sizes = MESHES[int(self.rng.integers(len(MESHES)))]
    self.axes = dict(zip("xyz", sizes))
    # Lines: as the cut program has them, as the other one does (None: not at all, the result is the
    # value), result, value.
    self.lines, self.params, self.functions = [], [], []
    self.values = []  # results that later ops may use
    self.values_again = []  # also as parameters
    self.count = 0
    self.rows, self.kinds = collections.Counter(), collections.Counter()
    self.exact = True

  # --- shardings ---

  def spec(self, shape, even):
    """Axes per dimension."""
    free = [str(a) for a in self.rng.permutation(list(self.axes))]
    dims = [[] for _ in shape]
    for d in self.rng.permutation(len(shape)):
      while free and self.rng.integers(5) < 3:
        parts = int(np.prod([self.axes[a] for a in dims[d] + free[:1]]))
        if even and (shape[d] % parts != 0 or shape[d] == 0):
          break
        if parts > max(2 * shape[d], 2):
          break
        dims[d].append(free.pop(0))
    return dims

  def note(self, kinds, spec, shape):
    for kind, axes, size in zip(kinds, spec, shape):
      if kind is None or not axes or size <= 1:
        continue
      self.kinds[kind] += 1
      if size % int(np.prod([self.axes[a] for a in axes])) != 0:
        self.kinds["in uneven parts"] += 1

  @staticmethod
  def sharding(spec):
    dims = ", ".join("{" + ", ".join(f'"{a}"' for a in axes) + "}" for axes in spec)
    return f"<@mesh, [{dims}]>"

  # --- values ---

  def name(self):
    self.count += 1
    return f"%v{self.count}"

  def draw(self, shape, dtype, low=-4, high=5):
    kind = np.dtype(BITS[dtype])
    if kind == np.bool_:
      return self.rng.integers(0, 2, shape).astype(kind)
    if kind.kind == "c":
      parts = self.rng.integers(low, high, (2, *shape))
      return (parts[0] + 1j * parts[1]).astype(kind)
    if kind.kind == "u":
      low = max(low, 0)
    return self.rng.integers(low, high, shape).astype(kind)

  def param(self, shape, dtype, kinds=(), data=None, low=-4, high=5):
    data = self.draw(shape, dtype, low, high) if data is None else np.asarray(data, BITS[dtype])
    value = Value(f"%arg{len(self.params)}", shape, dtype)
    spec = self.spec(value.shape, even=True) if self.rng.integers(6) else None
    if spec is not None:
      self.note(kinds, spec, value.shape)
    self.params.append((value, data, spec))
    self.values_again.append(value)
    return value

  def constrain(self, value, kinds=()):
    spec = self.spec(value.shape, even=False)
    self.note(kinds, spec, value.shape)
    result = Value(self.name(), value.shape, value.dtype)
    self.lines.append((f"{result.name} = sdy.sharding_constraint {value.name} "
                       f"{self.sharding(spec)} : {value.type}", None, result, value))
    self.rows["sdy.sharding_constraint"] += 1
    return result

  def operand(self, shape, dtype, kinds=(), **options):
    """A parameter or an earlier result of this type, sometimes with a constraint."""
    shape = tuple(int(n) for n in shape)
    fits = [v for v in self.values + self.values_again if v.shape == shape and v.dtype == dtype]
    if fits and not options and self.rng.integers(3):
      value = fits[int(self.rng.integers(len(fits)))]
    else:
      value = self.param(shape, dtype, kinds, **options)
    return self.constrain(value, kinds) if shape and self.rng.integers(3) == 0 else value

  def result(self, value, kinds=()):
    if value.shape and self.rng.integers(3) == 0:
      value = self.constrain(value, kinds)
    self.values.append(value)
    return value

  # --- ops ---

  def op(self, name, operands, types, attrs=None, regions=(), note=True):
    """The generic form; types are (shape, dtype). Returns values."""
    results = [Value(self.name(), shape, dtype) for shape, dtype in types]
    left = ", ".join(v.name for v in results)
    text = (f"{left} = " if results else "") + f'"{name}"({", ".join(v.name for v in operands)})'
    if attrs:
      text += " <{" + ", ".join(f"{k} = {v}" for k, v in attrs.items()) + "}>"
    if regions:
      text += " (" + ", ".join(regions) + ")"
    text += f' : ({", ".join(v.type for v in operands)}) -> '
    text += "(" + ", ".join(v.type for v in results) + ")"
    self.lines.append((text, text, None, None))
    if note:
      self.rows[name] += 1
    return results

  def one(self, name, operands, shape, dtype, attrs=None, regions=(), kinds=(), note=True):
    return self.result(self.op(name, operands, [(shape, dtype)], attrs, regions, note)[0], kinds)

  def manual(self, name, value, result_shape, axis, split_in, split_out, body, plain, kinds):
    """One collective over `axis`, in a region that is manual over this axis alone.

    `body` is the region's text on the parts %a -> %b, with the shapes of the local types.  `plain` is the same on the
    whole value.  `split_in` and `split_out` are the dimensions that the axis shards, or None.
    """
    result = Value(self.name(), result_shape, value.dtype)
    def local(shape, split):
      return [n // self.axes[axis] if d == split else n for d, n in enumerate(shape)]
    def sharding(shape, split):
      dims = ", ".join(f'{{"{axis}", ?}}' if d == split else "{?}" for d in range(len(shape)))
      return f"<@mesh, [{dims}]>"
    before = tensor(local(value.shape, split_in), value.dtype)
    after = tensor(local(result_shape, split_out), value.dtype)
    text = (f"{result.name} = sdy.manual_computation({value.name}) "
            f"in_shardings=[{sharding(value.shape, split_in)}] "
            f"out_shardings=[{sharding(result_shape, split_out)}] manual_axes={{\"{axis}\"}} "
            f"(%a: {before}) {{\n{body(before, after)}\nsdy.return %b : {after}\n}} : "
            f"({value.type}) -> {result.type}")
    self.lines.append((text, plain and f"{result.name} = {plain}", result, value))
    self.rows[name] += 1
    return self.result(result, kinds)

  def groups(self, axis):
    """Partitions that differ in this axis alone, as rows."""
    sizes = list(self.axes.values())
    ids = np.arange(np.prod(sizes)).reshape(sizes)
    along = list(self.axes).index(axis)
    return np.moveaxis(ids, along, -1).reshape(-1, sizes[along])

  def constant(self, data, dtype):
    data = np.asarray(data)
    result = Value(self.name(), data.shape, dtype)
    text = "true" if data.ndim == 0 and dtype == "i1" and data else \
        "false" if data.ndim == 0 and dtype == "i1" else \
        str(float(data)) if data.ndim == 0 and dtype[0] == "f" else \
        str(int(data)) if data.ndim == 0 else str(data.tolist())
    if data.size == 0:
      text = ""
    if dtype.startswith("complex"):
      text = f"({float(data.real)}, {float(data.imag)})"
    line = f"{result.name} = stablehlo.constant dense<{text}> : {result.type}"
    self.lines.append((line, line, None, None))
    self.rows["stablehlo.constant"] += 1
    return result

  def region(self, args, body):
    """`args` are (shape, dtype); `body` takes a program for its lines and the argument values."""
    outer, self.lines = self.lines, []
    values = [Value(self.name(), shape, dtype) for shape, dtype in args]
    kept = self.values
    self.values = []
    returned = body(*values)
    self.values = kept
    lines, self.lines = self.lines, outer
    head = f"^bb0({', '.join(f'{v.name}: {v.type}' for v in values)}):\n" if values else "^bb0:\n"
    end = (f"stablehlo.return {', '.join(v.name for v in returned)} : "
           f"{', '.join(v.type for v in returned)}")
    return "{" + head + "\n".join(text for text, *_ in lines) + "\n" + end + "}"

  def reducer(self, op, dtype):
    return self.region([((), dtype)] * 2,
                       lambda a, b: [self.op(op, [a, b], [((), dtype)], note=False)[0]])

  # --- drawing ---

  def pick(self, *choices):
    return choices[int(self.rng.integers(len(choices)))]

  def size(self, largest=16):
    """A dimension: one that some axes divide, or any."""
    while True:
      size = int(self.rng.choice(SIZES))
      if self.rng.integers(3):
        size = self.axes[self.pick(*self.axes)] * self.pick(1, 1, 2, 3)
      if size <= largest:
        return size

  def shape(self, rank=None, low=1, high=4):
    """A random shape; half of the time the shape of an existing value."""
    ranks = range(low, high) if rank is None else [rank]
    known = sorted({v.shape for v in self.values + self.values_again
                    if len(v.shape) in ranks and 0 not in v.shape})
    if known and self.rng.integers(2):
      return self.pick(*known)
    rank = int(self.rng.integers(low, high)) if rank is None else rank
    while True:
      shape = tuple(self.size() for _ in range(rank))
      if np.prod(shape) <= 2048:
        return shape

  def dim(self, rank):
    return int(self.rng.integers(rank))

  # --- the text ---

  def text(self, results, parts):
    """The module: cut (`parts`) or not. `results` are (value, spec or None)."""
    renamed = {}
    lines = []
    for cut, plain, result, value in self.lines:
      if parts or plain is not None:
        lines.append(cut if parts else plain)
      else:
        renamed[result.name] = renamed.get(value.name, value.name)
    body = "\n".join(lines)
    names = [v.name for v, _ in results]
    if not parts:
      body = re.sub(r"%v\d+", lambda m: renamed.get(m.group(), m.group()), body)
      names = [renamed.get(n, n) for n in names]
    args = ", ".join(
        f"{v.name}: {v.type}" + (f" {{sdy.sharding = #sdy.sharding{self.sharding(spec)}}}"
                                 if parts and spec is not None else "") for v, _, spec in self.params)
    outs = ", ".join(
        v.type + (f" {{sdy.sharding = #sdy.sharding{self.sharding(spec)}}}"
                  if parts and spec is not None else "") for v, spec in results)
    mesh = ", ".join(f'"{a}"={n}' for a, n in self.axes.items())
    head = f"sdy.mesh @mesh = <[{mesh}]>\n" if parts else ""
    number = int(np.prod(list(self.axes.values()))) if parts else 1
    return (f"module @random attributes {{mhlo.num_partitions = {number} : i32, "
            f"mhlo.num_replicas = 1 : i32}} {{\n{head}" + "\n".join(self.functions) +
            f"\nfunc.func public @main({args}) -> ({outs}) {{\n{body}\n"
            f"return {', '.join(names)} : {', '.join(v.type for v, _ in results)}\n}}\n}}\n")
