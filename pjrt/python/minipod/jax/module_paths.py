"""The path of a flax.nnx module below its caller: by identity, or, for a copy, by similarity.

Transformations (nnx.scan, nnx.vmap, nnx.remat) pass copies of modules to the function that they trace.  A copy has the
attributes of its original, with values of an inner trace.  The original is among the transformation's arguments.  A
copy has no path if several modules there are similar to it.  If the transformation is unknown, the same holds for the
modules below its caller.
"""

import functools
import sys
import threading
import types

_MODULE = "flax.nnx.module"
_RUN_AT_ONCE = ("cond", "switch", "while_loop", "fori_loop")
_TRANSFORMS = (*_RUN_AT_ONCE, "scan", "vmap", "pmap", "remat", "checkpoint", "grad", "value_and_grad")
_MOST_NODES = 4096  # modules that a search visits
_MOST_FRAMES = 256


_SHOWN = "_minipod_shows_arguments"
_passing = threading.local()


def path(caller, module, made, call_code) -> list[str] | None:
  """Names of attributes from the caller to the module.

  The list `made` has the modules that this trace has made itself; `call_code` is the code of the frame that calls the
  caller.
  """
  if (found := _below(caller, module)) is not None:
    return found
  if any(each is module for each in made):
    return None
  levels = _passing.__dict__.get("levels", [])
  for root in (module, *_holders(caller, module, call_code)):
    if (found := _original_passed(caller, root, levels) or _original(caller, root)) is not None:
      return found + _below(root, module)
  return None


# ---- arguments of transformations ----


def watch(nnx) -> None:
  """Makes transformations record their arguments while they run.  A copy that is traced meanwhile is a copy of one of
  them.
  """
  for name in _TRANSFORMS:
    if callable(call := getattr(nnx, name, None)) and not hasattr(call, _SHOWN):
      setattr(nnx, name, _showing(call, gives_function=name not in _RUN_AT_ONCE))


def _showing(call, gives_function=False):
  @functools.wraps(call)
  def show(*args, **kwargs):
    if gives_function:
      made = call(*args, **kwargs)
      if isinstance(made, functools.partial):  # the function is passed later
        return _showing(made, gives_function=True)
      return _showing(made) if isinstance(made, types.FunctionType) else made
    levels = _passing.__dict__.setdefault("levels", [])
    levels.append((args, kwargs))
    try:
      return call(*args, **kwargs)
    finally:
      levels.pop()

  setattr(show, _SHOWN, True)
  return show


def _original_passed(caller, copy, levels) -> list[str] | None:
  """The path of an argument of a transformation, if the caller, or a copy of it, has it."""
  for i in range(len(levels) - 1, -1, -1):
    found = _alike(levels[i], copy)
    if len({id(value) for value, _ in found}) == 1:
      value = found[0][0]
      return [] if value is caller else _below(caller, value) or _original_passed(caller, value, levels[:i])
  return None


# ---- by identity ----


def _below(owner, module) -> list[str] | None:
  """The shortest path."""
  return next((path for value, path in _nodes(owner) if value is module), None)


def _nodes(owner):
  """Modules with members, itself first, the nearest first, with their paths."""
  yield owner, []
  seen, level, count = {id(owner)}, [(owner, [])], 0
  while level:
    following = []
    for parent, path in level:
      for name, value in _members(parent):
        count += 1
        if count > _MOST_NODES:
          return
        if _has_members(value) and id(value) not in seen:
          seen.add(id(value))
          following.append((value, [*path, name]))
          yield following[-1]
    level = following


def _is_module(value) -> bool:
  return isinstance(value, sys.modules[_MODULE].Module)


def _has_members(value) -> bool:
  return isinstance(value, (list, tuple, dict)) or _is_module(value)


def _members(value):
  if isinstance(value, (list, tuple)):
    return [(str(i), each) for i, each in enumerate(value)]
  if isinstance(value, dict):
    return [(str(key), each) for key, each in value.items()]
  return [(str(name), each) for name, each in getattr(value, "__dict__", {}).items()]


# ---- by similarity ----


def _holders(caller, module, call_code):
  """Modules around this one that functions between it and its caller have: the copied `self` of a method that nnx.remat
  has wrapped, or the argument of a function that calls only a part of it.
  """
  frame = sys._getframe(1)
  for _ in range(_MOST_FRAMES):
    if frame is None or (frame.f_code is call_code and frame.f_locals.get("self") is caller):
      return
    for value in list(frame.f_locals.values()):
      if _is_module(value) and value is not module and value is not caller and _below(value, module) is not None:
        yield value
    frame = frame.f_back


def _original(caller, copy) -> list[str] | None:
  """The path of the module below the caller that this is a copy of, if there is exactly one."""
  found = _alike(caller, copy)
  return found[0][1] if len(found) == 1 else None


def _alike(owner, copy):
  """Modules below the owner, with their paths, that this may be a copy of."""
  outline, arrays = _outline(copy)
  traces = {_trace(each) for each in arrays}
  alike = []
  for value, path in _nodes(owner):
    if type(value) is type(copy):
      its_outline, its_arrays = _outline(value)
      if its_outline == outline and traces - {_trace(each) for each in its_arrays}:
        alike.append((value, path, its_arrays))
  fitting = [each for each in alike if all(map(_can_be_part, arrays, each[2]))]
  return [(value, path) for value, path, _ in fitting or alike]


def _outline(module):
  """The names and types of all members of the module, and its arrays."""
  outline, arrays = [], []
  for value, path in _nodes(module):
    outline.append((path, type(value)))
    for name, each in _members(value):
      each = getattr(each, "raw_value", each)  # the value of a Variable
      if hasattr(each, "shape") and hasattr(each, "dtype"):
        outline.append((path, name))
        arrays.append(each)
  return outline, arrays


def _trace(array):
  return id(getattr(array, "_trace", None))


def _can_be_part(part, whole) -> bool:
  """Whether the shape equals the whole shape without some dimensions."""
  rest = iter(whole.shape)
  return all(size in rest for size in part.shape)
