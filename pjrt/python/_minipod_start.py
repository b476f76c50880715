"""Prepares JAX as soon as a program imports it.  Python runs this module when it starts (minipod.pth).

JAX looks for its plugins when a program first uses a device.  Some functions that programs call earlier must already
know minipod (minipod/jax/early.py).  In a program that does not import JAX, this module changes nothing.  If the
environment names other platforms for JAX, or MINIPOD_START_HOOK is 0, it does not wait for JAX.  JAX then learns of
minipod when it looks for its plugins.

PYTEST_DONT_REWRITE: pytest rewrites the assertions of packages that have plugins for it, and would warn that this
module has already been imported.
"""

import os
import sys

# When this module has been imported, everything is ready to be prepared.
_AWAITED = "jax"


class _Finder:
  """Finds one module as other finders do, and runs `_prepare` after the module has been imported.

  Code may look up the module without importing it, so the finder stays until an import.
  """

  def find_spec(self, name, path=None, target=None):
    if name != _AWAITED:
      return None
    for finder in list(sys.meta_path):
      if finder is not self and (find := getattr(finder, "find_spec", None)):
        if (spec := find(name, path, target)) is not None:
          self._attend(spec.loader)
          return spec
    return None

  def _attend(self, loader) -> None:
    load = getattr(loader, "exec_module", None)
    if load is None:
      return

    def exec_module(module):
      load(module)
      if module.__name__ == _AWAITED:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        _prepare()

    try:
      loader.exec_module = exec_module
    except (AttributeError, TypeError):  # the loader is of another kind; JAX works without this step
      pass


def _prepare() -> None:
  try:
    from minipod.jax import early

    early.attend()
  except Exception as error:  # JAX works without this step
    print(f"minipod: {error!r} as JAX was imported", file=sys.stderr)


def _is_wanted() -> bool:
  """Whether the environment allows JAX to choose minipod, and does not turn off the hook."""
  platforms = os.environ.get("JAX_PLATFORMS", "")
  is_named = not platforms or "minipod" in (name.strip() for name in platforms.split(","))
  return is_named and os.environ.get("MINIPOD_START_HOOK", "1") != "0"


if _is_wanted():
  sys.meta_path.insert(0, _Finder())
