"""Every use of a private JAX name in minipod, and nothing else.

JAX promises nothing about `jax._src`.  `tests/e2e/plugin/test_jax_private.py` checks each name used
here against the installed JAX, so that an upgrade which breaks one is noticed there first.
"""

import functools
import os

from jax._src import callback
from jax._src import compilation_cache
from jax._src import compiler
from jax._src import config
from jax._src import dispatch
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jax._src.lax import ann
from jax._src.lax import linalg
from jax._src.lax import parallel
import jax
from jax import lax
import jax.numpy as jnp

# Primitives whose default rule needs a library that minipod cannot call yet.
_REFUSED_BY_NAME = frozenset(("geqp3", "buffer_callback"))
# Primitives that JAX lowers for a CPU by calling Python back.
_CALLBACK_PRIMITIVES = frozenset(("debug_callback", "debug_print", "check", "buffer_callback"))


def jax_version() -> str:
  return jax.__version__


def register_plugin(platform: str, library_path: str, priority: int) -> None:
  # A dict, if an empty one: without it JAX drops `jax_pjrt_client_create_options` once
  # jax.distributed is in use.
  xla_bridge.register_plugin(platform, library_path=library_path, priority=priority, options={})


def mark_nonexperimental(platform: str) -> None:
  """Drops the warning "experimental", and makes the name known to `register_lowering`."""
  xla_bridge._nonexperimental_plugins.add(platform)


def allow_donation(platform: str) -> None:
  if platform not in mlir._platforms_with_donation:
    mlir._platforms_with_donation.append(platform)


def keep_cpu_backend(platform: str) -> None:
  """Keeps JAX's CPU backend beside the platform when the user named the platform alone.

  Host-side helpers of JAX (callbacks, DLPack import) ask for a CPU device by name.
  """
  chosen = config.jax_platforms.value
  names = chosen.split(",") if chosen else []
  if platform in names and "cpu" not in names:
    jax.config.update("jax_platforms", chosen + ",cpu")


def allow_compilation_cache(platform: str) -> None:
  """Lets the persistent cache serve the platform; JAX's list of names is a local variable."""
  original = compilation_cache.is_cache_used

  def is_cache_used(backend) -> bool:
    if backend.platform == platform:
      return bool(compilation_cache._is_cache_enabled())
    return original(backend)

  compilation_cache.is_cache_used = is_cache_used


def refuse_callbacks(platform: str) -> None:
  """Refuses Python callbacks in minipod's words: the library cannot make them yet."""
  original = callback.emit_python_callback

  def emit_python_callback(ctx, *args, **kwargs):
    if platform in ctx.module_context.platforms:
      raise NotImplementedError(_callback_refusal(ctx.primitive))
    return original(ctx, *args, **kwargs)

  callback.emit_python_callback = emit_python_callback
  mlir.emit_python_callback = emit_python_callback


def refuse_compiling_after_fork(platform: str) -> None:
  """Answers a forked child that compiles; in it, JAX would wait for a thread it does not have.

  The library itself refuses all else that a forked child asks of its parent's client.
  """
  original = compiler.backend_compile_and_load
  owner = os.getpid()

  @functools.wraps(original)
  def backend_compile_and_load(backend, *args, **kwargs):
    if backend.platform == platform and os.getpid() != owner:
      raise RuntimeError(
          "this process was forked from the one that started the minipod client; nothing can be"
          " compiled here: fork before using JAX, or start a new process (multiprocessing: method"
          " \"spawn\")")
    return original(backend, *args, **kwargs)

  compiler.backend_compile_and_load = backend_compile_and_load


def install_lowering_rules(platform: str) -> None:
  """Gives the platform its own lowering rules; rules registered for it before are kept."""
  rules = _LoweringRules(mlir._platform_specific_lowerings.get(platform, {}))
  mlir._platform_specific_lowerings[platform] = rules
  # Rules that JAX has only under other names, and whose programs minipod runs.
  gpu = mlir._platform_specific_lowerings["cuda"]
  for primitive in (parallel.pbroadcast_p, parallel.pbroadcast_start_p):
    rules[primitive] = gpu[primitive]
  for primitive in (parallel.psend_p, parallel.precv_p):
    rules[primitive] = _as_platform("cuda", gpu[primitive])
  # JAX's own rule is a custom call that asks for any top k of a certain recall: an exact one is.
  mlir.register_lowering(ann.approx_top_k_p, mlir.lower_fun(_exact_top_k, multiple_results=True),
                         platform=platform)
  # Moves between memory spaces inside a program; JAX drops them by default.
  tpu = mlir._platform_specific_lowerings["tpu"]
  rules[dispatch.device_put_p] = tpu[dispatch.device_put_p]
  # Decompositions that the library has itself, as custom calls.
  rules[linalg.lu_p] = tpu[linalg.lu_p]
  rules[linalg.eigh_p] = mlir.LoweringRuleEntry(_eigh, True)
  rules[linalg.svd_p] = mlir.LoweringRuleEntry(_svd, True)
  rules[linalg.tridiagonal_solve_p] = mlir.LoweringRuleEntry(_tridiagonal_solve, True)


def _custom_call(ctx, target, operands):
  types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
  return mlir.custom_call(target, result_types=types, operands=operands).results


def _eigh(ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
  del sort_eigenvalues, algorithm  # always sorted; there is one algorithm
  if subset_by_index not in (None, (0, ctx.avals_in[0].shape[-1])):
    raise NotImplementedError("minipod does not support eigh's 'subset_by_index'")
  return _custom_call(ctx, "minipod.eigh.lower" if lower else "minipod.eigh.upper", [operand])


def _tridiagonal_solve(ctx, *operands, perturb_singular):
  target = "minipod.tridiagonal_solve" + (".perturbed" if perturb_singular else "")
  return _custom_call(ctx, target, operands)


def _svd(ctx, operand, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
  del algorithm  # there is one
  shape = ctx.avals_in[0].shape
  if subset_by_index not in (None, (0, min(shape[-2:]))):
    raise NotImplementedError("minipod does not support svd's 'subset_by_index'")
  if 0 in shape[-2:]:
    return mlir.lower_fun(linalg._empty_svd, multiple_results=True)(
        ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv)
  return _custom_call(ctx, "minipod.svd", [operand])


def _exact_top_k(operand, *, k, reduction_dimension, is_max_k, aggregate_to_topk, recall_target,
                 reduction_input_size_override):
  size = k
  if not aggregate_to_topk:  # then the number of candidates is part of the result's shape
    size, _ = ann._jax.approx_top_k_reduction_output_size(
        operand.shape[reduction_dimension], operand.ndim, k, recall_target, aggregate_to_topk,
        reduction_input_size_override)
  rows = jnp.moveaxis(operand, reduction_dimension, -1)
  values, indices = lax.top_k(rows if is_max_k else -rows, size)
  values = values if is_max_k else -values
  return (jnp.moveaxis(values, -1, reduction_dimension),
          jnp.moveaxis(indices, -1, reduction_dimension))


class _LoweringRules(dict):
  """A table of lowering rules that has an answer for what minipod cannot do yet.

  Looked up late on purpose: modules of JAX that are imported only on use (sparse, pallas) add
  primitives afterwards.
  """

  def __contains__(self, primitive) -> bool:
    return super().__contains__(primitive) or _refusal(primitive) is not None

  def __missing__(self, primitive):
    message = _refusal(primitive)
    if message is None:
      raise KeyError(primitive)

    def refuse(ctx, *args, **params):
      raise NotImplementedError(message)

    return mlir.LoweringRuleEntry(refuse, True)


def _refusal(primitive) -> str | None:
  """Why minipod has no rule for this primitive; None if JAX's default rule is right."""
  only_on_cpu = (primitive in mlir._platform_specific_lowerings["cpu"]
                 and primitive not in mlir._lowerings)
  if not only_on_cpu and primitive.name not in _REFUSED_BY_NAME:
    return None
  if primitive.name in _CALLBACK_PRIMITIVES:
    return _callback_refusal(primitive)
  return (f"minipod does not support '{primitive.name}' yet: JAX computes it with a library of"
          " the host (LAPACK and its like). Move the operands to a CPU device for it:"
          " jax.device_put(x, jax.devices('cpu')[0])")


def _callback_refusal(primitive) -> str:
  return (f"minipod does not support '{primitive}' yet: a program on its devices cannot call"
          " Python (pure_callback, io_callback, jax.debug.print and jax.debug.callback)")


def _as_platform(name: str, entry):
  """The rule of an entry, run as if it lowered for platform `name`, which it insists on."""

  def rule(ctx, *args, **params):
    module_context = ctx.module_context.replace(platforms=(name,))
    return entry.rule(ctx.replace(module_context=module_context), *args, **params)

  return mlir.LoweringRuleEntry(rule, entry.inline)
