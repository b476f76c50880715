"""Enables what JAX does only for known platforms when it lowers, compiles and stores programs."""

import dataclasses
import functools
import os

from minipod.jax import guard
from minipod.jax import mosaic
from minipod.jax import names
from minipod.jax import rules


def leave_out_own_lines() -> None:
  """Attributes operations that this package makes to the user's line that made the call."""
  from jax.extend import source_info_util

  source_info_util.register_exclusion(os.path.dirname(os.path.dirname(__file__)) + os.sep)


def allow_donation() -> None:
  from jax._src.interpreters import mlir

  if guard.PLATFORM not in mlir._platforms_with_donation:
    mlir._platforms_with_donation.append(guard.PLATFORM)


def allow_compilation_cache() -> None:
  """Lets JAX's persistent cache serve the platform; JAX's list of names is a local variable.

  JAX itself decides, once per process, and counts its decisions.  It only sees another platform name.
  """
  from jax._src import compilation_cache

  original = compilation_cache.is_cache_used

  @functools.wraps(original)
  def is_cache_used(backend) -> bool:
    with guard.use("the compilation cache"):
      backend = names.ClientAs(backend, "cpu") if backend.platform == guard.PLATFORM else backend
    return original(backend)

  compilation_cache.is_cache_used = is_cache_used


def refuse_compiling_after_fork() -> None:
  """Refuses to compile in a forked child.  JAX would wait there for a thread that does not exist.

  The library itself refuses everything else that a forked child requests from its parent's client.
  """
  from jax._src import compiler

  original = compiler.backend_compile_and_load
  owner = os.getpid()

  @functools.wraps(original)
  def backend_compile_and_load(backend, *args, **kwargs):
    if os.getpid() != owner and getattr(backend, "platform", "") == guard.PLATFORM:
      raise RuntimeError(
          "this process was forked from the one that started the minipod client; nothing can be"
          " compiled here: fork before using JAX, or start a new process (multiprocessing: method"
          " \"spawn\")")
    return original(backend, *args, **kwargs)

  compiler.backend_compile_and_load = backend_compile_and_load


def count_costs_before_compiling() -> None:
  """Answers `cost_analysis` of a lowered program with the numbers of JAX's CPU backend."""
  from jax._src.interpreters import pxla
  from jax.extend import backend

  kind = pxla.MeshComputation
  original, count = kind.cost_analysis, pxla._jax.hlo_module_cost_analysis

  @functools.wraps(original)
  def cost_analysis(self):
    with guard.use("the costs of lowered programs"):
      if self.compile_args["backend"].platform == guard.PLATFORM:
        return count(backend.get_backend("cpu"), self.hlo().as_hlo_module())
    return original(self)

  kind.cost_analysis = cost_analysis


def use_cpu_branches() -> None:
  """Takes the branch for "cpu" if a program has one, but none for minipod.  A described TPU prefers the branch for "tpu".

  `lax.platform_dependent` consists of two primitives, which must choose the same branch.
  """
  from jax import lax

  index = rules.find("platform_index")
  _widen_parameter(lax.cond_p, "branches_platforms")
  _widen_parameter(index, "platforms")


def _widen_parameter(primitive, name: str) -> None:
  """Adds minipod to the lists of platforms in this parameter of the primitive."""
  from jax.interpreters import mlir

  entry = mlir._lowerings[primitive]

  def lower(ctx, *args, **params):
    if params.get(name) is not None:
      params[name] = _widen(params[name])
    return entry.rule(ctx, *args, **params)

  mlir.register_lowering(primitive, lower, inline=entry.inline)


def _widen(platforms):
  offered = {platform for names in platforms for platform in names or ()}
  if guard.PLATFORM in offered:
    return platforms
  chosen = mosaic.choose_platform(offered)
  return tuple((*names, guard.PLATFORM) if names and chosen in names else names
               for names in platforms)


def accept_exports_for_cpu() -> None:
  """Lets programs call functions on this platform that were exported for "cpu", or on described TPUs for "tpu"."""
  import jax.export  # importing it registers the rule
  from jax.interpreters import mlir

  primitive = rules.find("call_exported")
  entry = mlir._lowerings[primitive]

  def lower(ctx, *args, exported, **params):
    with guard.use("functions that were exported for CPUs", anywhere=True):
      wanted = ctx.module_context.platforms
      chosen = mosaic.choose_platform(exported.platforms)
      if (guard.PLATFORM in wanted and chosen not in wanted
          and guard.PLATFORM not in exported.platforms):
        exported = dataclasses.replace(exported, platforms=tuple(
            guard.PLATFORM if name == chosen else name for name in exported.platforms))
    return entry.rule(ctx, *args, exported=exported, **params)

  mlir.register_lowering(primitive, lower, inline=entry.inline)


def allow_custom_partitioning() -> None:
  """Passes the partitioner of `custom_partitioning` to the library in a form that the library can read.

  JAX registers its own partitioner with every plugin, but its programs are in a form that only XLA reads.  minipod's
  partitioner is registered after it, and makes the same programs as text.
  """
  from jax._src import custom_partitioning
  from jax._src import xla_bridge
  from jax.interpreters import mlir
  from jaxlib import xla_client

  original, parse = custom_partitioning._custom_partitioning_partition, mlir.ir.Module.parse
  make_context, registrations = mlir.make_ir_context, xla_bridge._backend_factories
  register_partitioner = functools.partial(
      xla_client.register_custom_call_partitioner,
      name=custom_partitioning._CUSTOM_PARTITIONING_CALL_NAME,
      prop_user_sharding=custom_partitioning._custom_partitioning_propagate_user_sharding,
      infer_sharding_from_operands=(
          custom_partitioning._custom_partitioning_infer_sharding_from_operands),
      can_side_effecting_have_replicated_sharding=True)

  def partition(*args):
    code, *shardings = original(*args)
    with guard.use("custom_partitioning"):
      with make_context() as context:
        code = parse(code, context).operation.get_asm(enable_debug_info=True).encode()
    return (code, *shardings)

  def register(c_api):
    if c_api is registrations[guard.PLATFORM].c_api:
      register_partitioner(partition=partition, c_api=c_api)

  xla_bridge.register_plugin_callbacks(
      lambda c_api: guard.teach("custom partitioning", register, c_api))
