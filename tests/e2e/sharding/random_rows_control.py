"""Ops of random programs other than array ops: control flow, collectives, functions, tuples, tokens."""

import numpy as np

from random_program import Value, table, tensor
from random_rows import row

# --- control flow ---

@row("stablehlo.while")
def while_(p, name):
  shape = p.shape()
  kinds = ["carried"] * len(shape)
  zero, limit, step = p.constant(0, "i32"), p.constant(3, "i32"), p.constant(1, "i32")
  start, captured = p.operand(shape, "f32", kinds), p.operand(shape, "f32", kinds)
  def condition(i, a):
    return [p.op("stablehlo.compare", [i, limit], [((), "i1")],
                 {"comparison_direction": "#stablehlo<comparison_direction LT>"})[0]]
  def body(i, a):
    i = p.op("stablehlo.add", [i, step], [((), "i32")])[0]
    return [i, p.op("stablehlo.maximum", [p.op("stablehlo.negate", [a], [(shape, "f32")])[0], captured],
                    [(shape, "f32")])[0]]
  types = [((), "i32"), (shape, "f32")]
  results = p.op(name, [zero, start], types, None, [p.region(types, condition), p.region(types, body)])
  p.result(results[1], kinds)


@row("stablehlo.case", "stablehlo.if")
def case(p, name):
  shape = p.shape()
  a, b = p.operand(shape, "f32"), p.operand(shape, "f32")
  index = p.operand((), "i1" if name.endswith("if") else "i32", low=-1, high=3)
  regions = [p.region([], lambda: [p.op("stablehlo.add", [a, b], [(shape, "f32")])[0]]),
             p.region([], lambda: [p.op("stablehlo.subtract", [a, b], [(shape, "f32")])[0]])]
  p.one(name, [index], shape, "f32", None, regions, kinds=["returned"] * len(shape))


# --- collectives, in regions that are manual over one axis ---

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"


@row("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all",
     "stablehlo.collective_broadcast", "stablehlo.collective_permute", "stablehlo.reduce_scatter")
def collective(p, name):
  axis = p.pick(*p.axes)
  n = p.axes[axis]
  shape = (n * p.pick(1, 2, 3), n * p.pick(1, 2), p.size(6))
  dim, other = (int(d) for d in p.rng.permutation(3)[:2])
  if shape[dim] % n != 0 or shape[other] % n != 0:
    dim, other = 0, 1
  groups = table(p.groups(axis))
  kinds = ["collective" if d in (dim, other) else "beside collective" for d in range(3)]
  value = p.operand(shape, "i32", kinds)
  region = ("({^bb0(%p: tensor<i32>, %q: tensor<i32>):\n"
            "%s = stablehlo.add %p, %q : tensor<i32>\nstablehlo.return %s : tensor<i32>})")
  def op(attrs, regions=""):
    return lambda before, after: (f'%b = "{name}"(%a) <{{{attrs}, {CHANNEL}}}> {regions} : '
                                  f"({before}) -> {after}")
  flag = "use_global_device_ids"
  total = f"stablehlo.multiply {value.name}, %n{p.count} : {value.type}"
  constant = f"%n{p.count} = stablehlo.constant dense<{n}> : {value.type}"
  if name.endswith("all_gather"):
    p.manual(name, value, shape, axis, dim, None,
             op(f"all_gather_dim = {dim} : i64, replica_groups = {groups}, {flag}"), None, kinds)
  elif name.endswith("all_to_all"):
    p.manual(name, value, shape, axis, dim, other,
             op(f"split_dimension = {other} : i64, concat_dimension = {dim} : i64, "
                f"split_count = {n} : i64, replica_groups = {groups}"), None, kinds)
  elif name.endswith("collective_permute"):  # to itself and back: a swap of neighbours, twice
    pairs = [[a, b] for g in p.groups(axis) for a, b in zip(g, np.roll(g, 1))]
    back = table([[b, a] for a, b in pairs])
    body = lambda before, after: (
        f'%c = "{name}"(%a) <{{source_target_pairs = {table(pairs)}, {CHANNEL}}}> : '
        f'({before}) -> {before}\n%b = "{name}"(%c) <{{source_target_pairs = {back}, {CHANNEL}}}> : '
        f"({before}) -> {before}")
    p.manual(name, value, shape, axis, dim, dim, body, None, kinds)
  elif name.endswith("collective_broadcast"):  # of the values of all
    p.manual(name, value, shape, axis, None, None, op(f"replica_groups = {groups}"), None, kinds)
  else:
    p.lines.append((constant, constant, None, None))
    scatter = name.endswith("reduce_scatter")
    attrs = f"replica_groups = {groups}, {flag}"
    if scatter:
      attrs = f"scatter_dimension = {dim} : i64, {attrs}"
    p.manual(name, value, shape, axis, None, dim if scatter else None, op(attrs, region), total, kinds)


@row("stablehlo.partition_id")
def partition_id(p, name):
  """Counts the partitions: each returns its number."""
  axes = list(p.axes)
  count = int(np.prod(list(p.axes.values())))
  zero = p.operand((1,), "ui32", low=0, high=1)
  result = p.name()
  all_axes = ", ".join(f'"{a}"' for a in axes)
  kind = tensor((count,), "ui32")
  cut = (f"{result} = sdy.manual_computation({zero.name}) in_shardings=[<@mesh, [{{}}]>] "
         f"out_shardings=[<@mesh, [{{{all_axes}}}]>] manual_axes={{{all_axes}}} "
         f"(%a: tensor<1xui32>) {{\n%i = stablehlo.partition_id : tensor<ui32>\n"
         f"%b = stablehlo.reshape %i : (tensor<ui32>) -> tensor<1xui32>\n"
         f"sdy.return %b : tensor<1xui32>\n}} : (tensor<1xui32>) -> {kind}")
  p.lines.append((cut, f"{result} = stablehlo.iota dim = 0 : {kind}", None, None))
  p.rows[name] += 1
  p.result(Value(result, (count,), "ui32"))


def add_function(p, shape):
  label = f"f{len(p.functions)}"
  kind = tensor(shape, "f32")
  p.functions.append(f"func.func private @{label}(%a: {kind}) -> {kind} {{\n"
                     f"%b = stablehlo.abs %a : {kind}\nreturn %b : {kind}\n}}")
  return label


@row("func.call")
def call(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32")], shape, "f32", {"callee": f"@{add_function(p, shape)}"})


@row("stablehlo.composite")
def composite(p, name):
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32")], shape, "f32",
        {"name": '"my.abs"', "decomposition": f"@{add_function(p, shape)}"})


# --- replicas, tuples and tokens, which passes remove around sharded values ---

@row("stablehlo.replica_id")
def replica_id(p, name):
  p.one(name, [], (), "ui32")


@row("stablehlo.cross-replica-sum")
def cross_replica_sum(p, name):
  """For the one replica."""
  shape = p.shape()
  p.one(name, [p.operand(shape, "f32")], shape, "f32",
        {"replica_groups": "dense<0> : tensor<1x1xi64>"}, kinds=("elementwise",) * len(shape))


@row("stablehlo.tuple", "stablehlo.get_tuple_element")
def tuples(p, name):
  a, b = (p.operand(p.shape(), kind) for kind in ("f32", "i32"))
  both, results = p.name(), []
  kind = f"tuple<{a.type}, {b.type}>"
  lines = [f'{both} = "stablehlo.tuple"({a.name}, {b.name}) : ({a.type}, {b.type}) -> {kind}']
  for i, value in enumerate((a, b)):
    results.append(Value(p.name(), value.shape, value.dtype))
    lines.append(f'{results[i].name} = "stablehlo.get_tuple_element"({both}) '
                 f"<{{index = {i} : i32}}> : ({kind}) -> {value.type}")
  p.lines += [(line, line, None, None) for line in lines]
  p.rows[name] += 1
  for value in results:
    p.result(value)


@row("stablehlo.create_token", "stablehlo.after_all")
def tokens(p, name):
  value = p.operand(p.shape(), "f32")
  first, both, after, result = p.name(), p.name(), p.name(), p.name()
  token = "!stablehlo.token"
  lines = [f'{first} = "stablehlo.create_token"() : () -> {token}',
           f'{both} = "stablehlo.after_all"({first}, {first}) : ({token}, {token}) -> {token}',
           f'{after}, {result} = "stablehlo.optimization_barrier"({both}, {value.name}) : '
           f"({token}, {value.type}) -> ({token}, {value.type})"]
  p.lines += [(line, line, None, None) for line in lines]
  p.rows[name] += 1
  p.result(Value(result, value.shape, value.dtype))
