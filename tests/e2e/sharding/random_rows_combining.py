"""Ops of random programs that combine elements: matmuls, sums, sorts, indices; and random numbers."""

import numpy as np

from random_program import integer, ints, table
from random_rows import row

# --- matmuls ---

@row("stablehlo.dot_general")
def dot_general(p, name):
  batch = p.shape(int(p.rng.integers(0, 2)))
  left, right = p.shape(int(p.rng.integers(0, 3))), p.shape(int(p.rng.integers(0, 2)))
  inner = p.shape(int(p.rng.integers(0, 3)))
  if np.prod(batch + left + right) > 4096 or np.prod(batch + left + inner) > 4096:
    batch, left, right, inner = (4,), (8,), (6,), (8,)
  sides = []
  for free, what in ((left, "lhs"), (right, "rhs")):
    dims = ([(n, "dot batch", "b", i) for i, n in enumerate(batch)] +
            [(n, "dot contracting", "c", i) for i, n in enumerate(inner)] +
            [(n, f"dot {what} free", "f", i) for i, n in enumerate(free)])
    order = [dims[i] for i in p.rng.permutation(len(dims))]
    sides.append(order)
  def where(side, kind):
    found = {i: d for d, (_, _, k, i) in enumerate(side) if k == kind}
    return [found[i] for i in range(len(found))]
  def free_dims(side):
    return [n for n, _, k, _ in side if k == "f"]
  out = list(batch) + free_dims(sides[0]) + free_dims(sides[1])
  kinds = (["dot batch"] * len(batch) + ["dot lhs free"] * len(left) + ["dot rhs free"] * len(right))
  operands = [p.operand([n for n, *_ in side], "f32", [k for _, k, *_ in side]) for side in sides]
  numbers = (f"#stablehlo.dot<lhs_batching_dimensions = {where(sides[0], 'b')}, "
             f"rhs_batching_dimensions = {where(sides[1], 'b')}, "
             f"lhs_contracting_dimensions = {where(sides[0], 'c')}, "
             f"rhs_contracting_dimensions = {where(sides[1], 'c')}>")
  p.one(name, operands, out, "f32", {"dot_dimension_numbers": numbers}, kinds=kinds)


@row("stablehlo.dot")
def dot(p, name):
  m, k, n = p.shape(3)
  p.one(name, [p.operand((m, k), "f32", ["dot lhs free", "dot contracting"]),
               p.operand((k, n), "f32", ["dot contracting", "dot rhs free"])], (m, n), "f32")


@row("stablehlo.einsum")
def einsum(p, name):
  b, i, j, k = 2, *p.shape(3)
  p.one(name, [p.operand((b, i, j), "f32"), p.operand((b, j, k), "f32")], (b, k, i), "f32",
        {"einsum_config": '"bij,bjk->bki"'})


@row("stablehlo.unary_einsum")
def unary_einsum(p, name):
  i, j = p.shape(2)
  p.one(name, [p.operand((i, j), "f32")], (j,), "f32", {"einsum_config": '"ij->j"'})


def convolution_parts(p):
  """Random dimension numbers, groups, windows: (operands, result shape, attributes, kinds)."""
  spatial = int(p.rng.integers(0, 3))
  batch, features, outs = p.size(8), p.size(8), p.size(8)
  groups, kind = p.pick(1, 1, 2, 4), p.pick("feature", "batch")
  lhs_batch, lhs_features, rhs_outs = batch, features, outs * groups
  if kind == "feature":
    lhs_features *= groups
  else:
    lhs_batch *= groups
  image = [p.size() for _ in range(spatial)]
  window = [p.pick(1, 2, 3) for _ in range(spatial)]
  stride = [p.pick(1, 1, 2) for _ in range(spatial)]
  padding = [[p.pick(-1, 0, 1), p.pick(0, 1, 2)] for _ in range(spatial)]
  spread = [p.pick(1, 1, 2) for _ in range(spatial)]
  holes = [p.pick(1, 1, 2) for _ in range(spatial)]
  out = []
  for n, w, s, (l, h), a, b in zip(image, window, stride, padding, spread, holes):
    length, size = (n - 1) * a + 1 + l + h, (w - 1) * b + 1
    out.append((length - size) // s + 1 if length >= size else 0)
  orders = [list(p.rng.permutation(spatial + 2)) for _ in range(3)]
  def lay(first, second, rest, order):
    dims = [None] * (spatial + 2)
    for d, n in zip(order, [first, second] + list(rest)):
      dims[d] = n
    return dims
  lhs = lay(lhs_batch, lhs_features, image, orders[0])
  rhs = lay(features, rhs_outs, window, orders[1])
  res = lay(batch, rhs_outs, out, orders[2])
  names = lay("b", "f", map(str, range(spatial)), orders[0])
  kernel = lay("i", "o", map(str, range(spatial)), orders[1])
  result = lay("b", "f", map(str, range(spatial)), orders[2])
  grouped = groups > 1
  lhs_kinds = lay("convolution batch groups" if grouped and kind == "batch" else "convolution batch",
                  "convolution feature groups" if grouped and kind == "feature"
                  else "convolution input features", ["convolution spatial"] * spatial, orders[0])
  rhs_kinds = lay("convolution input features", "convolution output features",
                  ["convolution window"] * spatial, orders[1])
  res_kinds = lay("convolution batch", "convolution output features",
                  ["convolution spatial"] * spatial, orders[2])
  numbers = (f"#stablehlo.conv<[{', '.join(names)}]x[{', '.join(kernel)}]->[{', '.join(result)}]>")
  reversal = ", ".join(p.pick("true", "false") for _ in range(spatial))
  attrs = {"batch_group_count": integer(groups if kind == "batch" else 1),
           "feature_group_count": integer(groups if kind == "feature" else 1),
           "dimension_numbers": numbers, "window_strides": ints(stride), "lhs_dilation": ints(spread),
           "rhs_dilation": ints(holes), "padding": table(padding)}
  if spatial:
    attrs["window_reversal"] = f"array<i1: {reversal}>"
  operands = [p.operand(lhs, "f32", lhs_kinds), p.operand(rhs, "f32", rhs_kinds)]
  return operands, res, attrs, res_kinds, padding


@row("stablehlo.convolution")
def convolution(p, name):
  operands, shape, attrs, kinds, _ = convolution_parts(p)
  p.one(name, operands, shape, "f32", attrs, kinds=kinds)


@row("stablehlo.dynamic_conv")
def dynamic_conv(p, name):
  operands, shape, attrs, kinds, padding = convolution_parts(p)
  if not padding:
    return
  del attrs["padding"]
  operands.append(p.constant(np.array(padding), "i64"))
  p.one(name, operands, shape, "f32", attrs, kinds=kinds)


# --- matrices and transforms ---

def batched(p, rows, columns=None, make=None):
  """A parameter with batch dimensions and matrices from `make`."""
  batch = p.shape(int(p.rng.integers(0, 3)))
  columns = rows if columns is None else columns
  data = p.rng.integers(-4, 5, batch + (rows, columns)).astype(np.float32)
  if make is not None:
    data = make(data)
  p.exact = False
  kinds = ["matrix batch"] * len(batch) + ["matrix"] * 2
  return batch, p.operand(data.shape, "f32", kinds, data=data), kinds


@row("stablehlo.cholesky")
def cholesky(p, name):
  n = p.pick(2, 4, 6)
  _, a, kinds = batched(p, n, make=lambda m: m @ np.swapaxes(m, -1, -2) + 9 * np.eye(n))
  lower = p.one(name, [a], a.shape, "f32", {"lower": "true"}, kinds=kinds)
  # Elements outside the triangle are undefined.
  del p.values[-1]
  keep = p.constant(np.tril(np.ones((n, n), np.int32)), "i32")
  keep = p.op("stablehlo.convert", [keep], [((n, n), "i1")])[0]
  keep = p.op("stablehlo.broadcast_in_dim", [keep], [(a.shape, "i1")],
              {"broadcast_dimensions": ints([len(a.shape) - 2, len(a.shape) - 1])})[0]
  zero = p.op("stablehlo.broadcast_in_dim", [p.constant(0.0, "f32")], [(a.shape, "f32")],
              {"broadcast_dimensions": ints([])})[0]
  p.one("stablehlo.select", [keep, lower, zero], a.shape, "f32")


@row("stablehlo.triangular_solve")
def triangular_solve(p, name):
  n, k, left = p.pick(2, 4, 6), p.pick(1, 3, 4), p.pick(True, False)
  batch, a, kinds = batched(p, n, make=lambda m: np.tril(m, -1) / 8 + 2 * np.eye(n))
  b = p.operand(batch + ((n, k) if left else (k, n)), "f32", kinds)
  way = p.pick("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
  p.one(name, [a, b], b.shape, "f32",
        {"left_side": str(left).lower(), "lower": "true", "unit_diagonal": "false",
         "transpose_a": f"#stablehlo<transpose {way}>"}, kinds=kinds)


@row("stablehlo.fft")
def fft(p, name):
  kind = p.pick("FFT", "IFFT", "RFFT", "IRFFT")
  shape = list(p.shape(high=4))
  length = int(p.rng.integers(1, len(shape) + 1))
  sizes = shape[len(shape) - length:]
  out, types = list(shape), ("complex<f32>", "complex<f32>")
  if kind == "RFFT":
    out[-1], types = shape[-1] // 2 + 1, ("f32", "complex<f32>")
  if kind == "IRFFT":
    shape[-1], types = sizes[-1] // 2 + 1, ("complex<f32>", "f32")
  kinds = ["fft batch"] * (len(shape) - length) + ["fft transformed"] * length
  p.exact = False
  p.one(name, [p.operand(shape, types[0], kinds)], out, types[1],
        {"fft_type": f"#stablehlo<fft_type {kind}>", "fft_length": ints(sizes)}, kinds=kinds)


@row("stablehlo.custom_call")
def custom_call(p, name):
  target = p.pick("LuDecomposition", "Qr", "minipod.eigh.lower", "minipod.svd", "mhlo.topk")
  n, m = p.pick(2, 3, 4), p.pick(2, 3, 4)
  if target == "mhlo.topk":
    shape = p.shape()[:-1] + (p.pick(6, 8, 12),)
    k = p.pick(2, 4)
    data = p.rng.permutation(int(np.prod(shape))).reshape(shape)
    kinds = ["top_k batch"] * (len(shape) - 1) + ["top_k searched"]
    a = p.operand(shape, "f32", kinds, data=data)
    types = [(shape[:-1] + (k,), "f32"), (shape[:-1] + (k,), "i32")]
    attrs = {"call_target_name": f'"{target}"', "api_version": "4 : i32",
             "backend_config": f"{{k = {k} : i64, largest = true}}"}
    # JAX passes these as attributes of the call, instead of its backend_config.
    results = p.op(name, [a], types, {"call_target_name": f'"{target}"'}, note=True)
    text = p.lines[-1][0].replace("}>", "}> {mhlo.attributes = {k = " + str(k) +
                                  " : i64, largest = true}, mhlo.version = 1 : i64}")
    p.lines[-1] = (text, text, None, None)
    for value in results:
      p.result(value, kinds)
    return
  square = target != "Qr" and target != "minipod.svd"
  symmetric = lambda a: a + np.swapaxes(a, -1, -2) + np.diag(np.arange(n) * 20.0)
  make = symmetric if "eigh" in target else None
  batch, a, kinds = batched(p, n if square else n + 2, n if square else m, make)
  rows, columns = a.shape[-2:]
  low = min(rows, columns)
  types = {"LuDecomposition": [(a.shape, "f32"), (batch + (low,), "i32"), (batch + (rows,), "i32")],
           "Qr": [(a.shape, "f32"), (batch + (low,), "f32")],
           "minipod.eigh.lower": [(a.shape, "f32"), (batch + (n,), "f32")],
           "minipod.svd": [(batch + (low,), "f32")]}[target]
  for value in p.op(name, [a], types, {"call_target_name": f'"{target}"'}):
    p.result(value, kinds)


# --- combining ---

@row("stablehlo.reduce")
def reduce(p, name):
  shape = p.shape(high=5)
  dims = sorted(p.rng.permutation(len(shape))[:int(p.rng.integers(1, len(shape) + 1))])
  out = [n for d, n in enumerate(shape) if d not in dims]
  kinds = ["reduced" if d in dims else "kept" for d in range(len(shape))]
  kept = ["kept"] * len(out)
  attrs = {"dimensions": ints(dims)}
  kind = p.pick("one", "one", "argmax", "two sums", "custom")
  if kind == "one":
    dtype, op = p.pick(("f32", "add"), ("f32", "maximum"), ("f32", "minimum"), ("i32", "add"),
                       ("i32", "multiply"), ("i32", "xor"), ("i32", "and"), ("i1", "or"), ("i1", "and"),
                       ("i1", "add"), ("complex<f32>", "add"))
    init = p.operand((), dtype) if p.rng.integers(2) or dtype == "complex<f32>" else \
        p.constant(0 if dtype != "i1" else False, dtype)
    a = p.operand(shape, dtype, kinds)
    p.one(name, [a, init], out, dtype, attrs, [p.reducer(f"stablehlo.{op}", dtype)], kinds=kept)
    return
  if kind == "custom":
    # The argument with the larger magnitude: it selects one of its arguments.
    def body(a, b):
      sizes = [p.op("stablehlo.abs", [v], [((), "i32")])[0] for v in (a, b)]
      c = p.op("stablehlo.compare", sizes, [((), "i1")],
               {"comparison_direction": "#stablehlo<comparison_direction GT>"})[0]
      equal = p.op("stablehlo.compare", sizes, [((), "i1")],
                   {"comparison_direction": "#stablehlo<comparison_direction EQ>"})[0]
      larger = p.op("stablehlo.maximum", [a, b], [((), "i32")])[0]
      one = p.op("stablehlo.select", [c, a, b], [((), "i32")])[0]
      return [p.op("stablehlo.select", [equal, larger, one], [((), "i32")])[0]]
    region = p.region([((), "i32")] * 2, body)
    p.one(name, [p.operand(shape, "i32", kinds), p.constant(0, "i32")], out, "i32", attrs, [region],
          kinds=kept)
    return
  value = p.operand(shape, "f32", kinds)
  index = p.one("stablehlo.iota", [], shape, "i32", {"iota_dimension": integer(dims[0])}, kinds=kinds)
  if kind == "argmax":
    def body(a, i, b, j):
      more = p.op("stablehlo.compare", [a, b], [((), "i1")],
                  {"comparison_direction": "#stablehlo<comparison_direction GT>"})[0]
      same = p.op("stablehlo.compare", [a, b], [((), "i1")],
                  {"comparison_direction": "#stablehlo<comparison_direction EQ>"})[0]
      least = p.op("stablehlo.minimum", [i, j], [((), "i32")])[0]
      which = p.op("stablehlo.select", [more, i, j], [((), "i32")])[0]
      return [p.op("stablehlo.select", [more, a, b], [((), "f32")])[0],
              p.op("stablehlo.select", [same, least, which], [((), "i32")])[0]]
    inits = [p.constant(-100.0, "f32"), p.constant(0, "i32")]
  else:
    def body(a, i, b, j):
      return [p.op("stablehlo.add", [a, b], [((), "f32")])[0],
              p.op("stablehlo.add", [i, j], [((), "i32")])[0]]
    inits = [p.constant(0.0, "f32"), p.constant(0, "i32") if p.rng.integers(3) else p.operand((), "i32")]
  region = p.region([((), "f32"), ((), "i32")] * 2, body)
  for result in p.op(name, [value, index] + inits, [(out, "f32"), (out, "i32")], attrs, [region]):
    p.result(result, kept)


def window_of(p, shape, dilated=True):
  window = [p.pick(1, 1, 2, 3) for _ in shape]
  stride = [p.pick(1, 1, 2) for _ in shape]
  padding = [[p.pick(0, 0, 1), p.pick(0, 0, 1)] if w > 1 else [0, 0] for w in window]
  base = [p.pick(1, 1, 2) if dilated else 1 for _ in shape]
  holes = [p.pick(1, 1, 2) if dilated else 1 for _ in shape]
  out = []
  for n, w, s, (l, h), a, b in zip(shape, window, stride, padding, base, holes):
    length, size = (n - 1) * a + 1 + l + h, (w - 1) * b + 1
    out.append((length - size) // s + 1 if length >= size else 0)
  return window, stride, padding, base, holes, out


@row("stablehlo.reduce_window")
def reduce_window(p, name):
  shape = p.shape()
  if p.rng.integers(3) == 0:  # a cumulative sum
    along = p.dim(len(shape))
    window = [n if d == along else 1 for d, n in enumerate(shape)]
    padding = [[n - 1, 0] if d == along else [0, 0] for d, n in enumerate(shape)]
    stride = base = holes = [1] * len(shape)
    out = shape
  else:
    window, stride, padding, base, holes, out = window_of(p, shape)
  kinds = ["window" if w > 1 or s > 1 else "beside window" for w, s in zip(window, stride)]
  dtype, op = p.pick(("f32", "add"), ("f32", "maximum"), ("i32", "multiply"))
  init = p.constant({"add": 0, "maximum": -100, "multiply": 1}[op], dtype)
  p.one(name, [p.operand(shape, dtype, kinds), init], out, dtype,
        {"window_dimensions": ints(window), "window_strides": ints(stride),
         "base_dilations": ints(base), "window_dilations": ints(holes), "padding": table(padding)},
        [p.reducer(f"stablehlo.{op}", dtype)], kinds=kinds)


@row("stablehlo.select_and_scatter")
def select_and_scatter(p, name):
  shape = p.shape()
  window, stride, padding, _, _, out = window_of(p, shape, dilated=False)
  kinds = ["window" if w > 1 or s > 1 else "beside window" for w, s in zip(window, stride)]
  def larger(a, b):
    return [p.op("stablehlo.compare", [a, b], [((), "i1")],
                 {"comparison_direction": "#stablehlo<comparison_direction GE>"})[0]]
  regions = [p.region([((), "f32")] * 2, larger), p.reducer("stablehlo.add", "f32")]
  p.one(name, [p.operand(shape, "f32", kinds), p.operand(out, "f32", kinds), p.constant(0.0, "f32")],
        shape, "f32", {"window_dimensions": ints(window), "window_strides": ints(stride),
                       "padding": table(padding)}, regions, kinds=kinds)


@row("stablehlo.sort")
def sort(p, name):
  shape = p.shape()
  along = p.dim(len(shape))
  kinds = ["sorted" if d == along else "sort batch" for d in range(len(shape))]
  types = [(shape, "i32"), (shape, "f32")][:int(p.rng.integers(1, 3))]
  def body(*args):
    return [p.op("stablehlo.compare", args[:2], [((), "i1")],
                 {"comparison_direction": "#stablehlo<comparison_direction LT>"})[0]]
  region = p.region([((), t) for _, t in types for _ in range(2)], body)
  operands = [p.operand(s, t, kinds) for s, t in types]
  for value in p.op(name, operands, types, {"dimension": integer(along), "is_stable": "true"}, [region]):
    p.result(value, kinds)


@row("stablehlo.batch_norm_inference", "stablehlo.batch_norm_training", "stablehlo.batch_norm_grad")
def batch_norm(p, name):
  shape = p.shape()
  feature = p.dim(len(shape))
  kinds = ["norm feature" if d == feature else "norm batch" for d in range(len(shape))]
  each = (shape[feature],)
  operands = [p.operand(shape, "f32", kinds)]
  per_feature = 2 if "training" in name else 4 if "inference" in name else 3
  for i in range(per_feature):
    positive = {"low": 1} if i == 3 or ("grad" in name and i == 2) else {}
    operands.append(p.operand(each, "f32", ["norm feature"], **positive))
  types = [(shape, "f32")]
  if "grad" in name:
    operands.append(p.operand(shape, "f32", kinds))
  if "inference" not in name:
    types += [(each, "f32")] * 2
  p.exact = False
  for value in p.op(name, operands, types,
                    {"epsilon": "1.000000e-03 : f32", "feature_index": integer(feature)}):
    p.result(value, kinds if value.shape == shape else ["norm feature"])


# --- random numbers ---

@row("stablehlo.rng_bit_generator")
def rng_bit_generator(p, name):
  shape = p.shape()
  kind = p.pick("THREE_FRY", "PHILOX", "DEFAULT")
  size = 2 if kind == "THREE_FRY" else p.pick(2, 3) if kind == "PHILOX" else 2
  kinds = ["random"] * len(shape)
  state = p.operand((size,), "ui64", high=99)
  results = p.op(name, [state], [((size,), "ui64"), (shape, p.pick("ui32", "ui64", "ui8"))],
                 {"rng_algorithm": f"#stablehlo<rng_algorithm {kind}>"})
  for value, k in zip(results, (["random state"], kinds)):
    p.result(value, k)


@row("stablehlo.rng")
def rng(p, name):
  shape = p.shape()
  bounds = [p.constant(3.0, "f32"), p.constant(0.0, "f32"), p.constant(np.array(shape), "i64")]
  p.one(name, bounds, shape, "f32", {"rng_distribution": "#stablehlo<rng_distribution NORMAL>"})


# --- indices ---

def slicing(p, is_scatter):
  """Dimension numbers of a gather (or of the scatter that mirrors it)."""
  rank = int(p.rng.integers(1, 5))
  array = [p.size(8) for _ in range(rank)]
  num_batching = int(p.rng.integers(0, min(rank, 3)))
  order = [int(d) for d in p.rng.permutation(rank)]
  batching, rest = sorted(order[:num_batching]), order[num_batching:]
  indexed = rest[:int(p.rng.integers(0, len(rest) + 1))]  # the start index map
  sizes, dropped = [0] * rank, []
  for d in range(rank):
    if d in batching:
      sizes[d] = 1
    elif d in indexed and p.rng.integers(3):
      sizes[d] = 1
      if p.rng.integers(3):
        dropped.append(d)
    else:
      sizes[d] = array[d] if p.rng.integers(2) else int(p.rng.integers(1, array[d] + 1))
  extra = [p.size(8) for _ in range(int(p.rng.integers(0, 3)))]
  lead = [array[d] for d in batching] + extra
  order = [int(d) for d in p.rng.permutation(len(lead))]
  index_shape = [lead[i] for i in order]
  index_batching = [order.index(i) for i in range(num_batching)]
  vector = int(p.rng.integers(0, len(lead) + 1))
  is_implicit = len(indexed) == 1 and p.rng.integers(2) == 1
  slices_batch = list(index_shape)
  kinds = ["index batching" if i < num_batching else "index batch" for i in order]
  batch_kinds = list(kinds)
  if is_implicit:
    vector = len(index_shape)
  else:
    index_shape.insert(vector, len(indexed))
    kinds.insert(vector, "index vector")
    index_batching = [d + (d >= vector) for d in index_batching]
  kept = [d for d in range(rank) if d not in dropped and d not in batching]
  total = len(slices_batch) + len(kept)
  windows = sorted(int(d) for d in p.rng.permutation(total)[:len(kept)])
  slices, slice_kinds, b = [], [], 0
  what = "scatter" if is_scatter else "gather"
  def kind_of(d):
    return (f"{what} batching" if d in batching else f"{what} dropped" if d in dropped
            else f"{what} whole" if sizes[d] == array[d] else f"{what} window")
  for d in range(total):
    if d in windows:
      own = kept[windows.index(d)]
      slices.append(sizes[own])
      slice_kinds.append(kind_of(own))
    else:
      slices.append(slices_batch[b])
      slice_kinds.append(f"{what} {batch_kinds[b]}")
      b += 1
  array_kinds = [kind_of(d) for d in range(rank)]
  return (array, sizes, indexed, dropped, batching, index_shape, index_batching, vector, windows,
          slices, array_kinds, [f"{what} {k}" for k in kinds], slice_kinds)


@row("stablehlo.gather", "stablehlo.dynamic_gather")
def gather(p, name):
  (array, sizes, indexed, dropped, batching, index_shape, index_batching, vector, windows, slices,
   array_kinds, index_kinds, slice_kinds) = slicing(p, False)
  if np.prod(slices) > 4096:
    return
  numbers = (f"#stablehlo.gather<offset_dims = {windows}, collapsed_slice_dims = {sorted(dropped)}, "
             f"operand_batching_dims = {batching}, start_indices_batching_dims = {index_batching}, "
             f"start_index_map = {indexed}, index_vector_dim = {vector}>")
  dtype = p.pick("f32", "f32", "i32", "i1", "complex<f32>", "i8")
  operands = [p.operand(array, dtype, array_kinds),
              p.operand(index_shape, p.pick("i32", "i64", "ui32", "ui64", "i8"), index_kinds, low=-2,
                        high=9)]
  attrs = {"dimension_numbers": numbers}
  if "dynamic" in name:
    operands.append(p.constant(np.array(sizes), "i64"))
  else:
    attrs["slice_sizes"] = ints(sizes)
  p.one(name, operands, slices, dtype, attrs, kinds=slice_kinds)


@row("stablehlo.scatter")
def scatter(p, name):
  (array, sizes, indexed, inserted, batching, index_shape, index_batching, vector, windows, slices,
   array_kinds, index_kinds, slice_kinds) = slicing(p, True)
  if np.prod(slices) > 4096:
    return
  numbers = (f"#stablehlo.scatter<update_window_dims = {windows}, "
             f"inserted_window_dims = {sorted(inserted)}, input_batching_dims = {batching}, "
             f"scatter_indices_batching_dims = {index_batching}, "
             f"scatter_dims_to_operand_dims = {indexed}, index_vector_dim = {vector}>")
  dtype, op = p.pick(("f32", "add"), ("i32", "add"), ("f32", "maximum"), ("i32", "minimum"),
                     ("i32", "multiply"), ("i1", "or"), ("i1", "and"), ("i32", "and"), ("f32", "set"))
  count = 1 if op == "set" else p.pick(1, 1, 2)
  arrays = [p.operand(array, dtype, array_kinds) for _ in range(count)]
  if op == "set":  # it is undefined which of several updates wins, so they are all the same
    value = p.operand((), dtype)
    updates = [p.one("stablehlo.broadcast_in_dim", [value], slices, dtype,
                     {"broadcast_dimensions": ints([])}, kinds=slice_kinds)]
    region = p.region([((), dtype)] * 2, lambda a, b: [b])
  else:
    updates = [p.operand(slices, dtype, slice_kinds) for _ in range(count)]
    region = p.region([((), dtype)] * (2 * count),
                      lambda *a: [p.op(f"stablehlo.{op}", [a[i], a[count + i]], [((), dtype)])[0]
                                  for i in range(count)])
  indices = p.operand(index_shape, p.pick("i32", "i64", "ui32", "i8"), index_kinds, low=-2, high=9)
  for value in p.op(name, arrays + [indices] + updates, [(array, dtype)] * count,
                    {"scatter_dimension_numbers": numbers}, [region]):
    p.result(value, array_kinds)


@row("stablehlo.dynamic_slice")
def dynamic_slice(p, name):
  shape = p.shape()
  sizes = [n if p.rng.integers(2) else int(p.rng.integers(1, n + 1)) for n in shape]
  kinds = ["dynamic slice window" if s != n else "dynamic slice whole" for s, n in zip(sizes, shape)]
  starts = [p.operand((), "i32", low=-3, high=12) for _ in shape]
  p.one(name, [p.operand(shape, "f32", kinds)] + starts, sizes, "f32", {"slice_sizes": ints(sizes)},
        kinds=kinds)


@row("stablehlo.dynamic_update_slice")
def dynamic_update_slice(p, name):
  shape = p.shape()
  sizes = [n if p.rng.integers(2) else int(p.rng.integers(1, n + 1)) for n in shape]
  kinds = ["update window" if s != n else "update whole" for s, n in zip(sizes, shape)]
  constant_start = p.rng.integers(3) == 0
  starts = [p.constant(int(p.rng.integers(-2, 10)), "i32") if constant_start
            else p.operand((), p.pick("i32", "ui8"), low=0, high=12) for _ in shape]
  if len({v.dtype for v in starts}) > 1:
    starts = [starts[0]] * len(starts)
  p.one(name, [p.operand(shape, "f32", kinds), p.operand(sizes, "f32", kinds)] + starts, shape, "f32",
        kinds=kinds)


@row("stablehlo.torch_index_select")
def torch_index_select(p, name):
  shape = p.shape()
  dim = p.dim(len(shape))
  index = p.shape(1)
  out = shape[:dim] + index + shape[dim + 1:]
  p.one(name, [p.operand(shape, "f32"), p.operand(index, "i32", low=0, high=shape[dim])], out, "f32",
        {"dim": integer(dim), "batch_dims": integer(0)})
