"""Python callbacks and effects."""

import functools

import jax
from minipod import callbacks
from minipod.jax import guard
from minipod.jax import rules

_tokens = None  # JAX's tokens for the effects of each thread; None if this JAX stores them otherwise


def find_effects() -> None:
  """Looks up the tokens that a callback must wait for if it has launched programs itself."""
  global _tokens
  from jax._src import dispatch

  tokens = dispatch.runtime_tokens
  for name in (tokens.block_until_ready, tokens.clear, tokens.current_tokens.pop,
               tokens.output_runtime_tokens.pop):
    if not callable(name):
      raise TypeError(f"{name} cannot be called")
  _tokens = tokens


def open_library() -> None:
  callbacks.open_library(await_effects, forget_effects)


def await_effects() -> None:
  """Waits for the programs with effects that the calling thread has launched; raises their error."""
  tokens = _tokens
  if tokens is not None and tokens.output_runtime_tokens:
    try:
      tokens.block_until_ready()
    finally:
      tokens.clear()


def forget_effects() -> None:
  if _tokens is not None:
    _tokens.clear()


def forget_effects_of(executable, devices) -> None:
  """Drops the tokens of a program's launch, so that nothing waits for it any more."""
  for device in devices:
    _tokens.output_runtime_tokens.pop(device, None)
  for effect in executable.ordered_effects:
    _tokens.current_tokens.pop(effect, None)


def await_effects_on(devices) -> None:
  for device in devices:
    _tokens.output_runtime_tokens[device].block_until_ready()


def allow_callbacks() -> None:
  """Lowers Python callbacks as for a CPU, with numbers for callables from `CallbackTable`."""
  from jax._src import callback
  from jax.interpreters import mlir

  original = callback.emit_python_callback

  @functools.wraps(original)
  def emit_python_callback(ctx, *args, **kwargs):
    with guard.use("Python callbacks", anywhere=True):
      if tuple(ctx.module_context.platforms) == (guard.PLATFORM,):
        ctx = _with_callback_table(ctx)
    return original(ctx, *args, **kwargs)

  callback.emit_python_callback = emit_python_callback
  mlir.emit_python_callback = emit_python_callback


def allow_buffer_callbacks() -> None:
  from jax.interpreters import mlir

  table, of_all = rules.get_table(), mlir._lowerings

  def lower(ctx, *args, **params):
    original = of_all[ctx.primitive].rule
    with guard.use("buffer_callback", anywhere=True):
      ctx = _with_callback_table(ctx)
    return original(ctx, *args, **params)

  table.late["buffer_callback"] = lambda: lower


def _with_callback_table(ctx):
  module_context = ctx.module_context.replace(
      platforms=("cpu",), backend=None,
      host_callbacks=callbacks.CallbackTable(ctx.module_context.host_callbacks))
  return ctx.replace(module_context=module_context)


def raise_as_cpus_do() -> None:
  """Makes JAX call programs with callbacks through its Python code.

  The library waits for these programs, so their errors are raised during the call.  JAX's fast path would turn each of
  them into a ValueError.
  """
  from jax._src import pjit

  original = pjit._get_fastpath_data

  @functools.wraps(original)
  def _get_fastpath_data(executable, *args, **kwargs):
    with guard.use("errors of callbacks", anywhere=True):
      call = getattr(executable, "unsafe_call", None)
      if getattr(call, "has_host_callbacks", False) and call.backend.platform == guard.PLATFORM:
        return None
    return original(executable, *args, **kwargs)

  pjit._get_fastpath_data = _get_fastpath_data


def let_effects_go_on() -> None:
  """Lets programs with ordered effects run again after one of them has failed.

  The next program raises the error, and those after it continue, as in JAX from 0.12 on.  In earlier versions, all
  later programs fail with it.
  """
  from jax._src import dispatch

  kind = dispatch.RuntimeTokenSet
  original = kind.get_token_input

  @functools.wraps(original)
  def get_token_input(self, effect, devices):
    try:
      return original(self, effect, devices)
    except jax.errors.JaxRuntimeError:
      with guard.use("programs after a failed one with effects"):
        if devices[0].platform == guard.PLATFORM:
          self.current_tokens.pop(effect, None)
      raise

  kind.get_token_input = get_token_input
