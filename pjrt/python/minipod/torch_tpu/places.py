"""Where an op is in the user's program: the innermost nn.Module or the optimizer, and the line.

Each eager op is looked up, so what is slow in Python is avoided: a frame's `f_locals` copies all locals, its `f_lineno`
decodes a table, and a code's hash reads the code.
"""

import os
import sys
import sysconfig
import threading
import weakref

import torch
from torch import nn

from minipod.torch_tpu import frames

_MOST_FRAMES = 64  # as in the library

# Kinds of code.
_TORCH, _LIBRARY, _USER, _MODULE, _STEP, _SHARDED = range(6)
_IN_LIBRARY = {_TORCH: frames.PASSED, _LIBRARY: frames.LIBRARY, _USER: frames.USER, _MODULE: frames.MODULE,
               _STEP: frames.MODULE}  # an optimizer is `self`, too

_TORCH_FOLDERS = tuple(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), name) + os.sep
                       for name in ("torch", "torch_tpu"))
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OPTIMIZER = os.path.join(_TORCH_FOLDERS[0], "optim", "optimizer.py")
_PARAM_GROUP = os.path.join(_TORCH_FOLDERS[0], "distributed", "fsdp", "_fully_shard", "_fsdp_param_group.py")

_kinds: dict[int, int] = {}  # by the code's id
_codes: list = []  # keeps the codes of `_kinds`, and so their ids
_lines: dict[tuple[int, int], str] = {}  # by the code's id and the instruction
_names: dict = {}  # by the module's id: a weak reference to it, and its path


def _kind(code) -> int:
  if (kind := _kinds.get(id(code))) is None:
    kind = _kinds[id(code)] = _find_kind(code)
    _codes.append(code)
    frames.know(id(code), _IN_LIBRARY.get(kind, frames.OTHER))
  return kind


def _find_kind(code) -> int:
  file = code.co_filename
  if code is nn.Module._wrapped_call_impl.__code__:  # it has few locals
    return _MODULE
  if file == _PARAM_GROUP and code.co_varnames[:1] == ("self",) and code.co_argcount > 0:
    return _SHARDED
  if file == _OPTIMIZER and code.co_name in ("wrapper", "zero_grad"):
    return _STEP
  if file.startswith(_TORCH_FOLDERS) or file.startswith(_OWN) or file.startswith("<frozen"):
    return _TORCH
  if any(packages in file for packages in _PACKAGES):
    return _LIBRARY
  return _TORCH if file.startswith(_STANDARD) else _USER


# Names of children that wrappers add: of DDP, torch.compile, checkpoints and FSDP.
_WRAPPERS = {"_orig_mod", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"}


def _known_name(module) -> str | None:
  known = _names.get(id(module))
  return known[1] if known is not None and known[0]() is module else None


def _keep_name(module, name: str) -> None:
  number = id(module)

  def forget(_):
    _names.pop(number, None)
    frames.name(number, False)

  _names[number] = weakref.ref(module, forget), name
  frames.name(number, True)


def _name_all(root) -> None:
  """Names a module that no other module calls, and all modules below it."""
  top = type(root).__name__
  _keep_name(root, top)
  if isinstance(root, nn.parallel.DistributedDataParallel):
    root = root.module
  for path, module in root.named_modules():
    parts = [part for part in path.split(".") if part not in _WRAPPERS]
    _keep_name(module, ".".join(parts) or top)


def _name(module, frame) -> str:
  """The module's path below the outermost module that is called."""
  if (name := _known_name(module)) is not None:
    return name
  root = module
  while frame is not None:
    if _kind(frame.f_code) == _MODULE:
      root = frame.f_locals["self"]
    frame = frame.f_back
  _name_all(root)
  if _known_name(module) is None:
    # The outermost module does not have it as a child: it is one of a list, say.
    _name_all(module)
  return _known_name(module)


def _library_line(code, line: int) -> str:
  file = code.co_filename
  for packages in _PACKAGES:
    file = file.rpartition(packages)[2]
  return f"{file}:{line}"


def _line(frame, kind: int) -> str:
  code = frame.f_code
  key = id(code), frame.f_lasti
  if (line := _lines.get(key)) is None:
    number = frame.f_lineno
    line = _lines[key] = f"{code.co_filename}:{number}" if kind == _USER else _library_line(code, number)
  return line


def _who(frame, kind: int) -> tuple[str, str]:
  """The name and phase of a module, optimizer, or group of sharded parameters that works in this frame."""
  what = frame.f_locals.get("self")
  if kind == _MODULE:
    return _name(what, frame), ""
  if kind == _STEP:
    what = what or (frame.f_locals.get("args") or [None])[0]
    name = type(what).__name__
    if isinstance(what, torch.optim.Optimizer) and _known_name(what) is None:
      _keep_name(what, name)
    return name, "optimizer"
  if not (modules := getattr(what, "modules", None)):
    return "", ""
  state = getattr(getattr(what, "_training_state", None), "name", "")
  return _name(modules[0], frame), "backward" if state.endswith("BACKWARD") else ""


def find(frame) -> tuple[str, str, str]:
  """The name of the module or optimizer ("": neither), the phase, and the line ("": none).

  The phase is "", "optimizer", or "backward" if FSDP works on parameters for the backward pass.
  """
  kinds = _kinds
  name = phase = library = ""
  for _ in range(_MOST_FRAMES):
    if frame is None:
      break
    code = frame.f_code
    kind = kinds.get(id(code))
    if kind is None:
      kind = _kind(code)
    if kind == _USER:
      line = _line(frame, kind)
      line = f"{line}, in {library}" if library else line
      return name or _below(frame), phase, line
    if kind == _LIBRARY:
      library = library or _line(frame, kind)
    elif kind != _TORCH and not name:
      name, phase = _who(frame, kind)
    frame = frame.f_back
  return name, phase, library


def _below(frame) -> str:
  """The module that has called the user's code in which an op is."""
  kinds = _kinds
  for _ in range(_MOST_FRAMES):
    if frame is None:
      return ""
    code = frame.f_code
    kind = kinds.get(id(code))
    if kind is None:
      kind = _kind(code)
    if kind == _MODULE:
      return _name(frame.f_locals["self"], frame)
    if kind == _STEP:
      return ""
    frame = frame.f_back
  return ""


def line_of(thread: int) -> str:
  """The script's line at which another thread is, such as that of `loss.backward()`; "": none."""
  if thread == threading.get_ident():
    return ""
  frame = sys._current_frames().get(thread)
  return find(frame)[2] if frame is not None else ""
