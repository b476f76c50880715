"""Names for the layers of flax.nnx, which opens no named scopes: each call of a module opens one.

A module is named by its path from the module that calls it, "blocks/0", and the outermost one by its class, as
flax.linen does it.  Modules that a transformation has made anew (nnx.scan, nnx.vmap) have the names of their classes.
"""

import contextlib
import functools
import sys
import threading

from minipod.jax import guard

_MODULE = "flax.nnx.module"
_MOST_NODES = 4096  # that a search for a module visits
_IS_NAMED = "_minipod_is_named"
_calling = threading.local()
_is_idle = None  # whether JAX traces nothing


def name_layers() -> None:
  """Has modules open scopes, now or when flax is imported."""
  if _MODULE in sys.modules:
    guard.teach("the names of flax.nnx's layers", _name_all, sys.modules[_MODULE])
  else:
    sys.meta_path.insert(0, _Finder())


class _Finder:
  """Finds flax's module of modules as others do, and attends its end."""

  def find_spec(self, name, path=None, target=None):
    if name != _MODULE:
      return None
    for finder in list(sys.meta_path):
      if finder is not self and (find := getattr(finder, "find_spec", None)):
        if (spec := find(name, path, target)) is not None:
          with contextlib.suppress(AttributeError, TypeError):  # a loader of another kind: no names then
            self._attend(spec.loader)
          return spec
    return None

  def _attend(self, loader) -> None:
    load = loader.exec_module

    def exec_module(module):
      load(module)
      sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
      guard.teach("the names of flax.nnx's layers", _name_all, module)

    loader.exec_module = exec_module


def _name_all(module) -> None:
  global _is_idle
  from jax._src import core

  _is_idle = core.trace_state_clean
  kind = module.Module
  original = kind.__init_subclass__.__func__

  def __init_subclass__(cls, **kwargs):
    original(cls, **kwargs)
    _name_calls(cls)

  kind.__init_subclass__ = classmethod(__init_subclass__)
  waiting = [kind]
  while waiting:
    cls = waiting.pop()
    _name_calls(cls)
    waiting += cls.__subclasses__()


def _name_calls(cls) -> None:
  call = cls.__dict__.get("__call__")
  if not callable(call) or hasattr(call, _IS_NAMED):
    return

  @functools.wraps(call)
  def __call__(self, *args, **kwargs):
    with _scope(self):
      return call(self, *args, **kwargs)

  setattr(__call__, _IS_NAMED, True)
  cls.__call__ = __call__


@contextlib.contextmanager
def _scope(module):
  """A scope for each part of the module's name, while JAX traces; what runs at once has no use for names."""
  from jax import named_scope

  stack = _calling.__dict__.setdefault("stack", [])
  if _is_idle() or (stack and stack[-1] is module):  # or a base class's call
    yield
    return
  with contextlib.ExitStack() as scopes:
    for part in _name(stack[-1] if stack else None, module):
      scopes.enter_context(named_scope(part))
    stack.append(module)
    try:
      yield
    finally:
      stack.pop()


def _name(caller, module) -> list[str]:
  return (_path(caller, module) if caller is not None else None) or [type(module).__name__]


def _path(caller, module) -> list[str] | None:
  """Where the module is below its caller: the shortest path."""
  seen, level, count = {id(caller)}, [(caller, [])], 0
  while level:
    following = []
    for owner, path in level:
      for name, value in _members(owner):
        if value is module:
          return [*path, name]
        count += 1
        if count > _MOST_NODES:
          return None
        if id(value) not in seen and _has_members(value):
          seen.add(id(value))
          following.append((value, [*path, name]))
    level = following
  return None


def _has_members(value) -> bool:
  return isinstance(value, (list, tuple, dict, sys.modules[_MODULE].Module))


def _members(value):
  if isinstance(value, (list, tuple)):
    return [(str(i), each) for i, each in enumerate(value)]
  if isinstance(value, dict):
    return [(str(key), each) for key, each in value.items()]
  return [(str(name), each) for name, each in getattr(value, "__dict__", {}).items()]
