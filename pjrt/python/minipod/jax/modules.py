"""Names the layers of flax.nnx: each call of a module opens a named scope, because flax.nnx opens none.

A module is named by its path from the module that calls it ("blocks/0"), and the outermost module by its class, as in
flax.linen.  Copies that transformations make (nnx.scan, nnx.vmap) have the names of their originals.  A module without
a path is named by its class.
"""

import contextlib
import functools
import sys
import threading

from minipod.jax import guard, module_paths

_PACKAGE = "flax.nnx"
_IS_NAMED = "_minipod_is_named"
_calling = threading.local()
_is_idle = None  # whether JAX is not tracing


def name_layers() -> None:
  """Makes modules open scopes, now or when flax is imported."""
  import _minipod_start

  if _PACKAGE in sys.modules:
    _teach(sys.modules[_PACKAGE])
  elif not _minipod_start.is_awaited(_PACKAGE):
    _minipod_start.await_module(_PACKAGE, after=_teach)


def _teach(nnx) -> None:
  guard.teach("the names of flax.nnx's layers", _name_all, nnx)


def _name_all(nnx) -> None:
  global _is_idle
  from jax._src import core

  _is_idle = core.trace_state_clean
  kind = nnx.Module
  original = kind.__init_subclass__.__func__

  def __init_subclass__(cls, **kwargs):
    original(cls, **kwargs)
    _name_calls(cls)

  kind.__init_subclass__ = classmethod(__init_subclass__)
  _note_made(type(kind))
  module_paths.watch(nnx)
  waiting = [kind]
  while waiting:
    cls = waiting.pop()
    _name_calls(cls)
    waiting += cls.__subclasses__()


def _note_made(meta) -> None:
  """Records the modules that are made in a module's call, until the outermost call ends.

  A module that is called, but was neither made there nor is below its caller, is a copy.  Transformations make copies
  without calling the class.
  """
  if meta is type or hasattr(meta.__call__, _IS_NAMED):
    return
  make = meta.__call__

  @functools.wraps(make)
  def __call__(cls, *args, **kwargs):
    module = make(cls, *args, **kwargs)
    if _calling.__dict__.get("stack"):
      _calling.made.append(module)
    return module

  setattr(__call__, _IS_NAMED, True)
  meta.__call__ = __call__


def _name_calls(cls) -> None:
  call = cls.__dict__.get("__call__")
  if not callable(call) or hasattr(call, _IS_NAMED):
    return

  @functools.wraps(call)
  def __call__(self, *args, **kwargs):
    with _scope(self, __call__.__code__):
      return call(self, *args, **kwargs)

  setattr(__call__, _IS_NAMED, True)
  cls.__call__ = __call__


@contextlib.contextmanager
def _scope(module, call_code):
  """Opens a scope for each part of the module's name while JAX traces.  Operations that run at once need no names."""
  from jax import named_scope

  stack = _calling.__dict__.setdefault("stack", [])
  if _is_idle() or (stack and stack[-1] is module):  # or the call of a base class
    yield
    return
  if not stack:
    _calling.made = []
  path = module_paths.path(stack[-1], module, _calling.made, call_code) if stack else None
  with contextlib.ExitStack() as scopes:
    for part in [type(module).__name__] if path is None else path:
      scopes.enter_context(named_scope(part))
    stack.append(module)
    try:
      yield
    finally:
      stack.pop()
      if not stack:
        _calling.made = []
