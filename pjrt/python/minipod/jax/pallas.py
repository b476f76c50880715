"""Pallas' interpreters, which take JAX's CPU backend for granted."""

import dataclasses
import functools
import sys
import types

import jax
from minipod.jax import callbacks
from minipod.jax import guard
from minipod.jax import rules

_WHAT = "Pallas' interpreters"


class _Interpreted:
  """Kept by a program with kernels in Pallas' interpreters."""

  mesh = None  # the abstract mesh of the thread that has launched it last


def allow_interpreters() -> None:
  """Has calls of programs with kernels in Pallas' interpreters return when they are over.

  The interpreters take this for granted, because JAX's CPU backend does it with every program that
  calls Python.  One of their callbacks runs a kernel's threads as programs without results, and is
  over itself when their calls have returned.  Nor do they know that callbacks have a thread of
  their own: they ask the mesh of the thread for the kind of TPU to be.
  """
  from jax._src.interpreters import pxla
  from jax._src.pallas.mosaic.interpret import thread_map

  kind = pxla.ExecuteReplicated
  original, run_thread = kind.__call__, thread_map._run_jaxpr
  _mark_programs()

  @functools.wraps(original)
  def __call__(self, *args):
    program = None
    with guard.use(_WHAT):
      program = _find_interpreted(self.keepalive or ())
    if program is None:
      return original(self, *args)
    program.mesh = jax.sharding.get_abstract_mesh()
    results = original(self, *args)
    with guard.use(_WHAT):
      _await_end(self, results)
    return results

  @functools.wraps(run_thread)
  def _run_jaxpr(*args):
    run_thread(*args)
    callbacks.await_effects()

  kind.__call__ = __call__
  thread_map._run_jaxpr = _run_jaxpr


def _mark_programs() -> None:
  """Has a program know that its kernels are interpreted, and its callbacks know the program."""
  from jax.interpreters import mlir

  primitive = rules.find("io_callback")
  entry = mlir._lowerings[primitive]

  def lower(ctx, *args, callback, **params):
    with guard.use(_WHAT, anywhere=True):
      callback = _with_mesh(ctx.module_context, callback)
    return entry.rule(ctx, *args, callback=callback, **params)

  mlir.register_lowering(primitive, lower, guard.PLATFORM, entry.inline)


def _with_mesh(module_context, callback):
  """A callback of a program, which sees the launcher's mesh if it is the interpreters'."""
  function = callback.callback_func
  while isinstance(function, functools.partial):
    function = function.func
  if not (getattr(function, "__module__", None) or "").startswith("jax._src.pallas."):
    return callback
  program = _find_interpreted(module_context.keepalives)
  if program is None:
    program = _Interpreted()
    module_context.add_keepalive(program)
  return dataclasses.replace(callback, callback_func=functools.partial(
      _call_interpreter, program, callback.callback_func))


def _find_interpreted(kept) -> _Interpreted | None:
  return next((thing for thing in kept if isinstance(thing, _Interpreted)), None)


def _call_interpreter(program, function, *args, **kwargs):
  """Calls it with the kind of device of the launcher's mesh, whose axes are not for a host's arrays."""
  mesh = jax.sharding.AbstractMesh(
      (), (), abstract_device=getattr(program.mesh, "abstract_device", None))
  with jax.sharding.use_abstract_mesh(mesh):
    return function(*args, **kwargs)


def _await_end(executable, results) -> None:
  """Waits until the program that has just been launched is over; raises its error."""
  devices = executable._local_devices
  try:
    jax.block_until_ready(results)  # this first, because Ctrl-C ends it
    callbacks.await_effects_on(devices)
  except jax.errors.JaxRuntimeError:
    # The caller hears of the error now: it shall not fail programs that come later as well.
    callbacks.forget_effects_of(executable, devices)
    raise


def _with_globals(function, **others):
  """The function, for which some of its module's names mean something else."""
  return types.FunctionType(function.__code__, {**function.__globals__, **others},
                            function.__name__, function.__defaults__, function.__closure__)


def allow_programs_of_programs() -> None:
  """Takes the rule of `pl.kernel` that is behind one that knows JAX's platforms only.

  It makes a kernel of `pallas_call` of it, which is lowered as all others are.
  """

  def find_rule():
    if "jax._src.pallas.mpmd" not in sys.modules:  # programs that need it have imported it
      return None
    with guard.use("Pallas' programs of programs"):
      from jax._src.pallas import mpmd

      rule = mpmd._mpmd_map_fallback_lowering
      kernel_rule = rules.get_table().late["pallas_call"]()
      if kernel_rule is not None:  # otherwise minipod has said why it cannot serve kernels
        return _with_globals(
            rule, pallas_call=types.SimpleNamespace(_pallas_call_lowering=kernel_rule))
    return None

  rules.get_table().late["mpmd_map"] = find_rule
