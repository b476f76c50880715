"""Lowering rules: the platform's table, and rules that JAX has only under other names."""

import dataclasses

from minipod.jax import guard
from minipod.jax import names

# Primitives whose rules for every platform make operations that minipod computes itself.  JAX's rules for CPUs call
# LAPACK instead, or suit XLA's CPU compiler.
_OWN_DEFAULTS = frozenset((
    "cholesky", "geqrf", "householder_product", "triangular_solve", "threefry2x32", "random_gamma",
    "conv_general_dilated", "dot_general", "select_and_scatter_add"))


def install_table() -> None:
  """Gives the platform its table of rules; rules that were registered for it before stay."""
  from jax.interpreters import mlir

  tables, of_all = mlir._platform_specific_lowerings, {}
  with guard.use("lowering rules for all platforms"):
    of_all = mlir._lowerings
  tables[guard.PLATFORM] = _Rules(tables[guard.PLATFORM], tables["cpu"], of_all)


def get_table():
  """The platform's table of rules."""
  from jax.interpreters import mlir

  table = mlir._platform_specific_lowerings[guard.PLATFORM]
  if not isinstance(table, _Rules):
    raise LookupError("minipod has no table of rules")
  return table


def set_rule(primitive, rule, inline: bool = True) -> None:
  """Makes the platform lower a primitive by `rule`, and as JAX does if the rule fails."""
  from jax.interpreters import mlir

  mlir.register_lowering(primitive, guarded(get_table(), primitive, rule), guard.PLATFORM, inline)


def guarded(table, primitive, rule):
  """The rule, and if it fails, the rule that JAX would use."""

  def lower(ctx, *args, **params):
    with guard.use(f"programs with '{primitive.name}'", anywhere=True):
      return rule(ctx, *args, **params)
    own = table.jax_rule(primitive)
    if own is None:
      raise NotImplementedError(f"JAX has no lowering rule for '{primitive.name}' that suits"
                                f" platform {guard.PLATFORM}")
    return own.rule(ctx, *args, **params)

  return lower


def find(name: str, platform: str | None = None):
  """The primitive of this name that JAX has a rule for: for a platform, or for every one."""
  from jax.interpreters import mlir

  table = mlir._lowerings if platform is None else mlir._platform_specific_lowerings[platform]
  for primitive in table:
    if primitive.name == name:
      return primitive
  raise KeyError(f"JAX has no primitive '{name}'" + (f" for {platform}" if platform else ""))


def find_rule_for_all(name: str):
  """JAX's rule for every platform."""
  from jax.interpreters import mlir

  return mlir._lowerings[find(name)].rule


def take_rule(platform: str, name: str, has_to_pose: bool = False) -> None:
  """Uses JAX's rule for another platform; `has_to_pose`: the rule requires that platform's name."""
  from jax.interpreters import mlir

  primitive = find(name, platform)
  entry = mlir._platform_specific_lowerings[platform][primitive]
  set_rule(primitive, as_platform(platform, entry.rule) if has_to_pose else entry.rule,
           entry.inline)


def take_rule_if_any(platform: str, name: str) -> None:
  """The same for a primitive that only some versions of JAX have."""
  try:
    find(name, platform)
  except KeyError:
    return
  take_rule(platform, name)


def as_platform(name: str, rule):
  """The rule, run as if it lowered for platform `name`."""

  def pose(ctx, *args, **params):
    module = ctx.module_context
    client = module.backend and names.ClientAs(module.backend, name)
    return rule(ctx.replace(module_context=module.replace(platforms=(name,), backend=client)), *args, **params)

  return pose


def install_top_k() -> None:
  """JAX's own rule makes a custom call for an approximate top k with a given recall.  An exact top k satisfies it."""
  from jax import lax
  from jax.interpreters import mlir

  set_rule(lax.approx_top_k_p, mlir.lower_fun(_make_top_k(), multiple_results=True))


def _make_top_k():
  from jax import lax
  from jax._src.lax import ann
  import jax.numpy as jnp

  output_size = ann._jax.approx_top_k_reduction_output_size

  def top_k(operand, *, k, reduction_dimension, is_max_k, aggregate_to_topk, recall_target,
            reduction_input_size_override):
    size = k
    if not aggregate_to_topk:  # then the number of candidates is part of the result's shape
      size, _ = output_size(operand.shape[reduction_dimension], operand.ndim, k, recall_target,
                            aggregate_to_topk, reduction_input_size_override)
    rows = jnp.moveaxis(operand, reduction_dimension, -1)
    values, indices = lax.top_k(rows if is_max_k else -rows, size)
    values = values if is_max_k else -values
    return (jnp.moveaxis(values, -1, reduction_dimension),
            jnp.moveaxis(indices, -1, reduction_dimension))

  return top_k


class _Rules(dict):
  """A table of lowering rules that falls back to JAX's rules for CPUs.

  It looks them up late, because users, and modules of JAX that are imported only on use (sparse, pallas), register
  rules afterwards.
  """

  def __init__(self, rules: dict, of_cpu: dict, of_all: dict):
    super().__init__(rules)
    self._of_cpu, self._of_all = of_cpu, of_all
    # By name: functions that return the rule of a primitive that few programs import, or None.
    self.late = {}

  def __contains__(self, primitive) -> bool:
    return super().__contains__(primitive) or self._find(primitive) is not None

  def __missing__(self, primitive):
    entry = self._find(primitive)
    if entry is None:
      raise KeyError(primitive)
    return entry

  def own(self, primitive):
    """The rule by which the platform lowers the primitive: its own, or JAX's rule for every platform."""
    return self.get(primitive) or self._of_all[primitive]

  def rule_of_cpu(self, primitive):
    return self._of_cpu.get(primitive)

  def jax_rule(self, primitive):
    """The rule by which JAX lowers the primitive if minipod has none; None if JAX has none either."""
    return self._choose(primitive) or self._of_all.get(primitive)

  def _find(self, primitive):
    if primitive.name in self.late and (rule := self.late[primitive.name]()) is not None:
      return dataclasses.replace(next(iter(self._of_cpu.values())), rule=rule, inline=True)
    return self._choose(primitive)

  def _choose(self, primitive):
    """JAX's rule for CPUs if minipod should use it; None if the rule for every platform is right."""
    if primitive.name in _OWN_DEFAULTS and primitive in self._of_all:
      return None
    return self._of_cpu.get(primitive)
