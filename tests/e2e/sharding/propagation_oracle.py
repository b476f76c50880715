"""Compares the sharding of every value between minipod and Shardy's own passes, which jaxlib contains.

`minipod-opt --prepare --number` prints a program as minipod's partitioner gets it, with a location for each
operation.  Shardy's passes keep the locations, also on copies, and so does `minipod-opt --propagate`.  So values can be
compared one by one: results by the operation's location, and operands by the location and the operand's number.
"""

import collections
import functools
import os
import pathlib
import re
import subprocess

from jax._src.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import sdy, stablehlo

ROOT = pathlib.Path(__file__).resolve().parents[3]
OPT = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-opt"

# Shardy's propagation without what its partitioner does afterwards.
PASSES = """builtin.module(sdy-import-pipeline,sdy-apply-sharding-constraints,
  sdy-sharding-group-import,sdy-pre-order-funcs,sdy-user-priority-propagate,
  func.func(sdy-sink-data-flow-edges),sdy-update-non-divisible-input-output-shardings,
  sdy-remove-sub-axes-in-input-output-shardings)"""


def passes(text):
  return passmanager.PassManager.parse(re.sub(r"\s+", "", text))


@functools.cache
def orders_functions():
  """Whether this Shardy has a separate pass that orders functions; that of JAX 0.9 has none."""
  with jax_mlir.make_ir_context():
    try:
      passes("builtin.module(sdy-pre-order-funcs)")
    except ValueError:
      return False
  return True


def opt(program, *flags):
  run = subprocess.run([OPT, *flags, "-"], input=program.encode(), capture_output=True, timeout=60)
  if run.returncode != 0:
    raise RuntimeError(run.stderr.decode().strip())
  return run.stdout.decode()


def shardy(text):
  """The module after Shardy's passes."""
  module = ir.Module.parse(text)
  known = PASSES if orders_functions() else PASSES.replace("sdy-pre-order-funcs,", "")
  passes(known).run(module.operation)
  return module


def without_chlo(text):
  """JAX lowers CHLO's operations before a plugin gets them, but a program's text still has them."""
  if "chlo." not in text:
    return text
  with jax_mlir.make_ir_context():
    stablehlo.register_stablehlo_passes()
    module = ir.Module.parse(text)
    passes = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
    passmanager.PassManager.parse(passes).run(module.operation)
    return module.operation.get_asm()


def axes_text(axes):
  """Axis references with neighbouring sub-axes joined: ("x", pre_size, size or None)."""
  joined = []
  for axis in axes:
    axis = sdy.AxisRefAttr(axis)
    info = axis.sub_axis_info
    if info is None:
      joined.append([axis.name, 1, None])
      continue
    info = sdy.SubAxisInfoAttr(info)
    last = joined[-1] if joined else None
    if last and last[0] == axis.name and last[2] and last[1] * last[2] == info.pre_size:
      last[2] *= info.size
    else:
      joined.append([axis.name, info.pre_size, info.size])
  return ",".join(n if s is None else f"{n}:({p}){s}" for n, p, s in joined)


def sharding_text(attr, sizes):
  """A sharding without its mesh's name, and without axes of size 1."""
  attr = sdy.TensorShardingAttr(attr)
  def real(axes):
    return [a for a in axes if sizes.get(sdy.AxisRefAttr(a).name) != 1]
  dims = []
  for dim in attr.dimension_shardings:
    dim = sdy.DimensionShardingAttr(dim)
    axes = axes_text(real(dim.axes))
    dims.append("{" + ",".join(filter(None, [axes, "" if dim.is_closed else "?"])) + "}")
  text = "[" + ", ".join(dims) + "]"
  for name, axes in (("repl", attr.replicated_axes), ("unred", attr.unreduced_axes)):
    axes = real(axes)
    if axes:
      text += f" {name}=" + ",".join(sorted(axes_text([a]) for a in axes))
  return text


def closed(text):
  """Without parts that only propagation uses: open dimensions."""
  return text.replace(",?", "").replace("?", "")


def is_empty(kind):
  """If the results of main have no elements, minipod does not shard them, as XLA does not."""
  return isinstance(kind, ir.RankedTensorType) and 0 in kind.shape


def whole_axes(text):
  """The sharding of an open parameter in whole axes, which JAX can name.

  Shardy divides within an axis if sizes are uneven, and that of JAX 0.12 keeps parts of axes along which a constraint
  replicates the parameter.
  """
  text = re.sub(r" repl=\w+:\(\d+\)\d+$", "", text)
  return re.sub(r'(\{|,)[^{},]*:\(\d+\)\d+[^}]*\}',
                lambda m: ("{" if m.group(1) == "{" else "") + "}", text)


class Shardings:
  """The shardings of a module's values.

  `results[key]` and `operands[key]` are lists, because an operation may have been copied.
  """

  def __init__(self, module):
    self.results = collections.defaultdict(list)
    self.operands = collections.defaultdict(list)
    self.sizes = {}
    self.values = {}
    self.main = None
    for op in module.body.operations:
      if op.operation.name == "sdy.mesh":
        mesh = sdy.MeshAttr(op.operation.attributes["mesh"])
        for axis in mesh.axes:
          axis = sdy.MeshAxisAttr(axis)
          self.sizes[axis.name] = axis.size
      elif op.operation.name == "func.func" and op.operation.attributes["sym_name"].value == "main":
        self.main = op.operation
    self.result_types = ir.FunctionType(
        ir.TypeAttr(self.main.attributes["function_type"]).value).results
    self.read_main()

  def text(self, attr):
    return sharding_text(attr, self.sizes)

  def default(self, value):
    rank = value.type.rank if isinstance(value.type, ir.RankedTensorType) else 0
    return "[" + ", ".join(["{?}"] * rank) + "]"

  def put(self, value, attr):
    self.values[value] = self.default(value) if attr is None else self.text(attr)

  def read_main(self):
    block = self.main.regions[0].blocks[0]
    for i, (args, values) in enumerate((("arg_attrs", block.arguments), ("res_attrs", None))):
      attrs = list(self.main.attributes[args]) if args in self.main.attributes else []
      count = len(attrs) if values is None else len(values)
      for k in range(count):
        attr = None
        if k < len(attrs) and "sdy.sharding" in ir.DictAttr(attrs[k]):
          attr = ir.DictAttr(attrs[k])["sdy.sharding"]
        if values is not None:
          self.put(values[k], attr)
          self.values[values[k]] = whole_axes(self.values[values[k]])
        elif attr is not None and not is_empty(self.result_types[k]):
          self.results["result of main", k].append(self.text(attr))
        if values is not None:
          self.results["parameter", k].append(self.values[values[k]])
    self.read_block(block)

  def read_block(self, block):
    for op in block.operations:
      self.read_op(op.operation)

  def per_value(self, op, name):
    if name not in op.attributes:
      return None
    return list(sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings)

  def read_op(self, op):
    name = re.search(r'"(op\d+)"', str(op.location))
    key = name.group(1) if name else "added"  # after a parameter
    own = self.per_value(op, "sdy.sharding")
    if op.name in ("sdy.sharding_constraint", "sdy.reshard"):
      own = [op.attributes["sharding"]]
    if op.name == "sdy.manual_computation":
      own = self.per_value(op, "out_shardings")
      for arg, attr in zip(op.regions[0].blocks[0].arguments,
                           self.per_value(op, "in_shardings") or []):
        self.results[key, "in", arg.arg_number].append(self.text(attr))
        self.values[arg] = ""
    results = list(op.results)
    for i, result in enumerate(results):
      self.put(result, own[i] if own else None)
    if op.name == "stablehlo.while":
      for region in op.regions:
        for arg in region.blocks[0].arguments:
          self.values[arg] = self.values[results[arg.arg_number]]
    if op.name in ("stablehlo.while", "stablehlo.case", "sdy.manual_computation"):
      for region in op.regions:
        self.read_block(region.blocks[0])
    kind = op.name.replace("sdy.constant", "stablehlo.constant")
    for i, result in enumerate(results):
      self.results[key, kind, i].append(self.values[result])
    if op.name not in ("func.return", "sdy.sharding_group"):
      for i, operand in enumerate(op.operands):
        self.operands[key, kind, i].append(self.values.get(operand, ""))


def compare(text):
  """(number of values that agree, list of (where, minipod's, Shardy's))."""
  prepared = opt(without_chlo(text), "--prepare", "--number")
  with jax_mlir.make_ir_context():
    theirs = Shardings(shardy(prepared))
    ours = Shardings(ir.Module.parse(opt(prepared, "--propagate", "--locations")))
    agree, differ = 0, []
    for mine, other in ((ours.results, theirs.results), (ours.operands, theirs.operands)):
      for key in sorted(set(mine) | set(other), key=str):
        a = sorted(map(closed, mine.get(key, [])))
        b = sorted(map(closed, other.get(key, [])))
        if set(a) == set(b):  # minipod merges copies with the same sharding
          agree += len(b) if mine is ours.results else 0
        else:
          where = ("value " if mine is ours.results else "operand ") + " ".join(map(str, key))
          differ.append((where, a, b))
  return agree, differ
