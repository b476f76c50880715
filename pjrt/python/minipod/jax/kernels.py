"""Lowers a Pallas kernel to one operation, which has its cost on the chip and its decomposition."""

import functools
import json
import sys

import jax
from minipod.jax import guard
from minipod.jax import kernel_body
from minipod.jax import kernel_costs
from minipod.jax import kernel_grid
from minipod.jax import kernel_masks
from minipod.jax import mosaic
from minipod.jax import rules
from minipod.jax import start

_NAME = "minipod.kernel"  # the names in sim/ir/module.h
_WHAT = "kernels of Pallas"


def allow_kernels() -> None:
  """Makes the platform lower `pallas_call` in programs that have imported it."""

  def find_rule():
    if "jax._src.pallas.pallas_call" not in sys.modules:
      return None
    with guard.use(_WHAT):
      return _make_rule()
    return None

  rules.get_table().late["pallas_call"] = find_rule


def allow_masked_accesses() -> None:
  """Lets masked accesses extend past the end of a memory, and go through several views."""
  _late.append(kernel_masks.install)


_late = []  # steps to apply when the first kernel is lowered


def _make_rule():
  """The rule for `pallas_call`."""
  from jax._src import callback
  from jax._src.pallas import pallas_call

  loop = None
  with guard.use("kernels that write to their scalars"):
    loop = kernel_grid.make_interpreter()
  jax_rule = pallas_call._pallas_call_lowering
  return mosaic.choose(jax_rule, functools.partial(_lower_call, jax_rule,
                                                   callback._OrderedIOEffect, loop))


def _lower_call(jax_rule, effect, loop, ctx, *args, **params):
  """Lowers a kernel with one of JAX's interpreters, as the decomposition of a composite.

  The interpreter that calls Python does so in order, which `effect` stands for.  The interpreters must not see the
  caller's mesh.
  """
  if loop is None or jax.sharding.get_abstract_mesh().empty:
    return _lower_alone(jax_rule, effect, loop, ctx, *args, **params)
  inner = ctx
  with guard.use("kernels under a mesh"):
    names = kernel_body.find_names()
    params = kernel_body.leave_mesh(names, params)
    inner = ctx.replace(
        avals_in=[kernel_body.without_sharding(names, aval) for aval in ctx.avals_in])
  with kernel_body.without_mesh():
    results = _lower_alone(jax_rule, effect, loop, inner, *args, **params)
  if inner.tokens_out is not ctx.tokens_out:
    ctx.set_tokens_out(inner.tokens_out)
  return results


def _lower_alone(jax_rule, effect, loop, ctx, *args, interpret, **params):
  if interpret:
    return jax_rule(ctx, *args, interpret=interpret, **params)
  while _late:
    guard.teach("to access memory under masks", _late.pop())
  described = _describe(params)
  if start.is_for_shapes():
    return _call(ctx, args, _make_function(ctx, args, _lower_absent(ctx)), described)
  failures = []
  if any(eqn.primitive.name == "prng_random_bits" for eqn in kernel_costs.walk(params["jaxpr"])):
    _refuse(params, [("Pallas' interpreters", NotImplementedError(
        "the random bits of a TPU's generator would all be zeros"))])
  for what, mode, has_effects in _choose_interpreters(loop, params):
    lower = functools.partial(_lower_loop, mode) if callable(mode) else (
        functools.partial(jax_rule, interpret=mode))
    try:
      function = _make_function(ctx, args, lambda *args: lower(
          _with_tokens(ctx, [effect] if has_effects else None), *args, **params))
    except Exception as error:  # an interpreter may raise anything for a kernel that it does not support
      failures.append((what, error))
    else:
      return _call(ctx, args, function, described)
  _refuse(params, failures)


def _refuse(params, failures):
  said = "; ".join(f"{what}: {type(error).__name__}: {error}" for what, error in failures)
  raise NotImplementedError(
      f"minipod cannot run the kernel {kernel_costs.name_of(params)!r}"
      f" ({params['jaxpr'].debug_info.func_src_info}): {said}; MINIPOD_VALUES=shapes takes its time"
      " without running it") from failures[-1][1]


def _lower_loop(loop, ctx, *args, **params):
  from jax.interpreters import mlir

  return mlir.lower_fun(functools.partial(loop, **params), multiple_results=True)(ctx, *args)


def _choose_interpreters(loop, params):
  """The interpreters that may support the kernel, the fastest one first.

  The two that make operations of it support one device: minipod's (`loop`) and Pallas's own.  Pallas's TPU interpreter
  calls Python for each access, and has memory, semaphores and copies of several devices.
  """
  from jax.experimental.pallas import tpu

  as_operations = []
  if loop is not None:
    as_operations.append(("minipod's interpreter", loop, False))
  elif kernel_grid.is_known_to_jax(params):
    as_operations.append(("Pallas' interpreter", True, False))
  as_calls = [("Pallas' interpreter of TPUs", tpu.InterpretParams(), True)]
  return as_calls if kernel_costs.is_remote(params["jaxpr"]) else as_operations + as_calls


def _make_function(ctx, args, lower):
  """Adds a private function to the module, with the operations that `lower` lowers."""
  from jax.extend.mlir import ir
  from jax.extend.mlir.dialects import func

  module = ctx.module_context.module
  before = {name for name, _ in _functions(module)}
  inputs = [value.type for value in args]
  try:
    with ir.InsertionPoint(module.body):
      function = func.FuncOp(_NAME, (inputs, []), visibility="private")
    ctx.module_context.symbol_table.insert(function)
    block = function.add_entry_block()
    with ir.InsertionPoint(block):
      results = lower(*block.arguments)
      func.ReturnOp(results)
    function.attributes["function_type"] = ir.TypeAttr.get(
        ir.FunctionType.get(inputs, [value.type for value in results]))
    return function
  except Exception:
    _erase_unfinished(ctx, before)
    raise


def _lower_absent(ctx):
  """Replaces a body that never runs."""
  from jax.extend.mlir import ir
  from jax.extend.mlir.dialects import stablehlo
  from jax.interpreters import mlir

  types = [ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype))
           for aval in ctx.avals_out]
  target = ir.StringAttr.get("minipod.absent")
  return lambda *args: list(
      stablehlo.CustomCallOp(types, list(args), call_target_name=target).results)


def _functions(module):
  return [(operation.operation.attributes["sym_name"].value, operation)
          for operation in module.body.operations if "sym_name" in operation.operation.attributes]


def _erase_unfinished(ctx, before) -> None:
  """Erases functions that were incomplete when an error was raised."""
  for name, operation in _functions(ctx.module_context.module):
    if name in before or not operation.operation.regions[0].blocks:
      continue
    operations = list(operation.operation.regions[0].blocks[0].operations)
    if not operations or operations[-1].operation.name != "func.return":
      ctx.module_context.symbol_table.erase(operation)


def _with_tokens(ctx, effects):
  """A context for Python calls that are ordered among themselves, of which the program knows nothing."""
  from jax.interpreters import mlir

  tokens = ctx.tokens_in
  if effects:
    tokens = mlir.TokenSet.create(effects)
  return ctx.replace(primitive=None, tokens_in=tokens, tokens_out=None)


def _describe(params) -> dict:
  """The attributes of the operation: those of a TPU's kernel, and the cost."""
  from jax.extend.mlir import ir

  described = {
      "backend_config": ir.StringAttr.get(json.dumps(kernel_costs.describe(params))),
      "kernel_name": ir.StringAttr.get(kernel_costs.name_of(params)),
      "has_side_effect": ir.BoolAttr.get(_has_effects(params)),
  }
  if aliases := params["input_output_aliases"]:
    described["output_operand_aliases"] = _describe_aliases(params, aliases)
  if metadata := params.get("metadata"):
    described["mhlo.frontend_attributes"] = ir.DictAttr.get(
        {"kernel_metadata": ir.StringAttr.get(json.dumps(dict(metadata)))})
  return described


def _describe_aliases(params, aliases):
  from jax.extend.mlir import ir
  from jax.extend.mlir.dialects import stablehlo

  mapping = params["grid_mapping"]
  is_one = mapping.num_outputs == 1
  return ir.ArrayAttr.get([stablehlo.OutputOperandAlias.get(
      output_tuple_indices=[] if is_one else [result],
      operand_index=mapping.num_dynamic_grid_bounds + operand, operand_tuple_indices=[])
      for operand, result in aliases])


def _has_effects(params) -> bool:
  """Whether the kernel must stay even if its results are unused."""
  stated = getattr(params["compiler_params"], "has_side_effects", False)
  is_pure = stated is False or getattr(stated, "value", None) == "pure"
  return not is_pure or kernel_costs.is_remote(params["jaxpr"])


def _call(ctx, args, function, described):
  from jax.extend.mlir import ir
  from jax.extend.mlir.dialects import stablehlo

  call = stablehlo.CompositeOp(
      function.type.results, list(args), name=ir.StringAttr.get(_NAME),
      decomposition=ir.FlatSymbolRefAttr.get(function.name.value),
      composite_attributes=ir.DictAttr.get(described),
      version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0))
  return list(call.results)
