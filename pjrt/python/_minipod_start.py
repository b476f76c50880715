"""Prepares JAX and TorchTPU as soon as a program imports them.  Python runs this module when it starts (minipod.pth).

JAX looks for its plugins when a program first uses a device.  Some functions that programs call earlier must already
know minipod (minipod/jax/early.py).  TorchTPU looks for TPUs while it is imported (minipod/torch_tpu_plugin.py).  In a
program that imports neither, this module changes nothing.  If the environment names other platforms for JAX, this
module does not wait for JAX, which then learns of minipod when it looks for its plugins.  If MINIPOD_START_HOOK is 0,
it waits for nothing.

PYTEST_DONT_REWRITE: pytest rewrites the assertions of packages that have plugins for it, and would warn that this
module has already been imported.
"""

import os
import sys


class _Finder:
  """Finds one module as other finders do, and calls functions before and after the module is executed.

  Code may look up the module without importing it, so the finder stays until an import.
  """

  def __init__(self, awaited, before=None, after=None):
    self.awaited, self._before, self._after = awaited, before, after

  def find_spec(self, name, path=None, target=None):
    if name != self.awaited:
      return None
    # Those before it have been asked already; one of them may wait for the same module.
    finders = list(sys.meta_path)
    for finder in finders[finders.index(self) + 1 if self in finders else 0:]:
      if find := getattr(finder, "find_spec", None):
        if (spec := find(name, path, target)) is not None:
          self._attend(spec.loader)
          return spec
    return None

  def _attend(self, loader) -> None:
    load = getattr(loader, "exec_module", None)
    if load is None:
      return

    def exec_module(module):
      is_awaited = module.__name__ == self.awaited
      if is_awaited and self._before is not None:
        self._before()
      load(module)
      if is_awaited:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        if self._after is not None:
          self._after(module)

    try:
      loader.exec_module = exec_module
    except (AttributeError, TypeError):  # the loader is of another kind; the module works without this step
      pass


def await_module(name, before=None, after=None) -> None:
  """Calls `before()` before the module is executed and `after(module)` after it, once."""
  sys.meta_path.insert(0, _Finder(name, before, after))


def is_awaited(name) -> bool:
  return any(getattr(finder, "awaited", None) == name for finder in sys.meta_path)


def await_torch_tpu() -> None:
  """May be repeated."""
  if not is_awaited("torch_tpu"):
    await_module("torch_tpu", _begin_torch_tpu, _end_torch_tpu)


def _begin_torch_tpu() -> None:
  try:
    from minipod import torch_tpu_plugin

    torch_tpu_plugin.begin()
  except Exception as error:  # without this step, TorchTPU looks for real TPUs
    print(f"minipod: {error!r} before torch_tpu was imported", file=sys.stderr)


def _end_torch_tpu(module) -> None:
  from minipod import torch_tpu_plugin

  torch_tpu_plugin.end()


def _prepare_jax(module) -> None:
  try:
    from minipod.jax import early

    early.attend()
  except Exception as error:  # JAX works without this step
    print(f"minipod: {error!r} as JAX was imported", file=sys.stderr)


def _may_use_jax() -> bool:
  """Whether the environment allows JAX to choose minipod."""
  platforms = os.environ.get("JAX_PLATFORMS", "")
  return not platforms or "minipod" in (name.strip() for name in platforms.split(","))


if os.environ.get("MINIPOD_START_HOOK", "1") != "0":
  await_torch_tpu()
  if _may_use_jax():
    await_module("jax", after=_prepare_jax)
