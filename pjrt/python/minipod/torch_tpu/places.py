"""Where an op is in the user's program: the innermost nn.Module or the optimizer, and the line."""

import os
import sysconfig
import weakref

import torch
from torch import nn

_MOST_FRAMES = 64

# Kinds of code.
_TORCH, _LIBRARY, _USER, _MODULE, _STEP = range(5)

_TORCH_FOLDERS = tuple(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), name) + os.sep
                       for name in ("torch", "torch_tpu"))
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OPTIMIZER = os.path.join(_TORCH_FOLDERS[0], "optim", "optimizer.py")

_kinds: dict[int, int] = {}  # by the code's id: a code's own hash takes microseconds, as it reads the code
_codes: list = []  # keeps the codes of `_kinds`, and so their ids
_names: dict = {}  # by the module's id: a weak reference to it, and its path


def _kind(code) -> int:
  if (kind := _kinds.get(id(code))) is None:
    kind = _kinds[id(code)] = _find_kind(code)
    _codes.append(code)
  return kind


def _find_kind(code) -> int:
  file = code.co_filename
  if code in (nn.Module._wrapped_call_impl.__code__, nn.Module._call_impl.__code__):
    return _MODULE
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
  _names[number] = weakref.ref(module, lambda _: _names.pop(number, None)), name


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


def _library_line(frame) -> str:
  file = frame.f_code.co_filename
  for packages in _PACKAGES:
    file = file.rpartition(packages)[2]
  return f"{file}:{frame.f_lineno}"


def find(frame) -> tuple[str, str, str]:
  """The name of the module or optimizer ("": neither), the phase ("" or "optimizer"), and the line ("": none)."""
  name = phase = library = ""
  for _ in range(_MOST_FRAMES):
    if frame is None:
      return name, phase, library
    code = frame.f_code
    kind = _kind(code)
    if kind == _USER:
      line = f"{code.co_filename}:{frame.f_lineno}"
      line = f"{line}, in {library}" if library else line
      return name or _below(frame), phase, line
    if kind == _LIBRARY:
      library = library or _library_line(frame)
    elif name:
      pass
    elif kind == _MODULE:
      name = _name(frame.f_locals["self"], frame)
    elif kind == _STEP:
      optimizer = frame.f_locals.get("self") or (frame.f_locals.get("args") or [None])[0]
      name, phase = type(optimizer).__name__, "optimizer"
    frame = frame.f_back
  return name, phase, library


def _below(frame) -> str:
  """The module that has called the user's code in which an op is."""
  for _ in range(_MOST_FRAMES):
    if frame is None:
      return ""
    kind = _kind(frame.f_code)
    if kind == _MODULE:
      return _name(frame.f_locals["self"], frame)
    if kind == _STEP:
      return ""
    frame = frame.f_back
  return ""
