"""Compiled programs: the nn.Module of each op becomes part of its location, so that reports can group by it.

TorchTPU runs the nodes of a graph one by one to build a program, and takes locations from Python's stack.  It gives the
function that runs a node the file and line of the node; here the function also gets the node's module as its name,
after a mark that the library knows (sim/ir/loc.h).
"""

import functools
import re

_MARK = "minipod:"  # MP_LOC_PATH_MARK
_ROOT = re.compile(r"^[GL]\['[^']*'\]\.?|^L__\w*?self___?")
_KEYS = re.compile(r"\._modules\['([^']*)'\]|\[(\d+)\]|\['([^']*)'\]")


def _names(path: str, kind) -> str:
  """"blocks.0.up" of "L['self'].blocks[0].up"; the class of a module that is the graph's root."""
  name = _ROOT.sub("", path)
  name = _KEYS.sub(lambda found: "." + next(each for each in found.groups() if each is not None), name)
  parts = [part for part in name.split(".") if part and part not in ("_orig_mod", "_checkpoint_wrapped_module")]
  return ".".join(parts) or getattr(kind, "__name__", str(kind).rpartition(".")[2])


def _path(node) -> str:
  """The location's path: the module and the op, such as "blocks.0.up (backward)/mm"; "" without a module."""
  meta = node.meta
  forward, backward = meta.get("nn_module_stack"), meta.get("fwd_nn_module_stack")
  stack = forward or backward
  if not stack:
    return ""
  phase = "" if forward and meta.get("partitioner_tag") != "is_backward" else " (backward)"
  target = getattr(node.target, "_schema", None)
  op = target.name.rpartition("::")[2] if target is not None else node.name
  return f"{_names(*list(stack.values())[-1][:2])}{phase}/{op}".replace("\0", "")


def name_modules() -> None:
  """Makes TorchTPU put modules into the locations of the programs that it compiles from now on."""
  from torch_tpu._internal.export import export

  interpreter = export.EagerLikeFxInterpreter
  original = interpreter._set_func_code_to_node_source_locations

  @functools.wraps(original)
  def set_code(self, func, node):
    before = func.__code__
    original(self, func, node)
    try:
      changes = {"co_name": _MARK + path} if (path := _path(node)) else {}
      if func.__code__ is not before:
        # TorchTPU gives the node's line to the line of `def`, but the call that it looks at is one line below.
        changes["co_firstlineno"] = func.__code__.co_firstlineno - 1
      if changes:
        func.__code__ = func.__code__.replace(**changes)
    except Exception:  # as in the original: a location is not worth an error
      pass

  interpreter._set_func_code_to_node_source_locations = set_code


def leave_alone(suspended) -> None:
  """Makes TorchTPU build programs inside the context manager that `suspended()` returns."""
  from torch_tpu._internal.export import export

  interpreter = export.EagerLikeFxInterpreter
  original = interpreter.run

  @functools.wraps(original)
  def run(self, *args, **kwargs):
    with suspended():
      return original(self, *args, **kwargs)

  interpreter.run = run
