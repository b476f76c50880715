"""Adapts Pallas's interpreters, which expect JAX's CPU backend."""

import dataclasses
import functools
import sys
import types

import jax
from minipod.jax import callbacks
from minipod.jax import guard
from minipod.jax import mosaic
from minipod.jax import rules

_WHAT = "Pallas' interpreters"


class _Interpreted:
  """Kept by a program whose kernels run in Pallas's interpreters."""

  mesh = None  # the abstract mesh of the thread that has launched the program last


def allow_interpreters() -> None:
  """Makes calls of programs with kernels in Pallas's interpreters return only when they have ended.

  The interpreters rely on this, because on JAX's CPU backend every program that calls Python behaves so.  One of their
  callbacks runs a kernel's threads as programs without results, and returns when their calls have returned.  The
  interpreters also expect callbacks on the launching thread: they read the kind of TPU from the mesh of the thread.
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
  """Tells a program that its kernels are interpreted, and its callbacks which program they belong to."""
  from jax.interpreters import mlir

  primitive = rules.find("io_callback")
  entry = mlir._lowerings[primitive]

  def lower(ctx, *args, callback, **params):
    with guard.use(_WHAT, anywhere=True):
      callback = _with_mesh(ctx.module_context, callback)
    return entry.rule(ctx, *args, callback=callback, **params)

  mlir.register_lowering(primitive, lower, guard.PLATFORM, entry.inline)


def _with_mesh(module_context, callback):
  """Wraps a callback of a program; if it belongs to the interpreters, it sees the launcher's mesh."""
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
  """Calls it with the device kind of the launcher's mesh, but without the mesh's axes, which do not fit host arrays."""
  mesh = jax.sharding.AbstractMesh(
      (), (), abstract_device=getattr(program.mesh, "abstract_device", None))
  with jax.sharding.use_abstract_mesh(mesh):
    return function(*args, **kwargs)


def _await_end(executable, results) -> None:
  """Waits until the program that was just launched has ended; raises its error."""
  devices = executable._local_devices
  try:
    jax.block_until_ready(results)  # this comes first, because Ctrl-C ends it
    callbacks.await_effects_on(devices)
  except jax.errors.JaxRuntimeError:
    # The caller gets the error now, so later programs must not fail with it, too.
    callbacks.forget_effects_of(executable, devices)
    raise


def _with_globals(function, **others):
  """A copy of the function in which some of its module's names have other values."""
  return types.FunctionType(function.__code__, {**function.__globals__, **others},
                            function.__name__, function.__defaults__, function.__closure__)


def allow_programs_of_programs() -> None:
  """Uses the rule of `pl.kernel` that a rule for JAX's own platforms wraps.

  It makes a `pallas_call` of the kernel, which is lowered as all others are.
  """

  def find_rule():
    if "jax._src.pallas.mpmd" not in sys.modules:  # programs that need it have imported it
      return None
    with guard.use("Pallas' programs of programs"):
      from jax._src.pallas import mpmd

      rule = mpmd._mpmd_map_fallback_lowering
      kernel_rule = rules.get_table().late["pallas_call"]()
      if kernel_rule is not None:  # otherwise minipod has already printed why it does not support kernels
        return mosaic.choose(rules.find_rule_for_all("mpmd_map"), _with_globals(
            rule, pallas_call=types.SimpleNamespace(_pallas_call_lowering=kernel_rule)))
    return None

  rules.get_table().late["mpmd_map"] = find_rule
