"""Runs as Python starts, where minipod is installed (minipod.pth): waits for JAX to be imported.

JAX looks for its plugins at its first use of a device.  What programs call before that has to know
minipod, too (minipod/jax/early.py).  Programs without JAX notice nothing.  Where the environment names
other platforms for JAX, or MINIPOD_START_HOOK is 0, nothing is waited for: minipod then learns of JAX
when JAX looks for its plugins.

PYTEST_DONT_REWRITE: pytest wants to rewrite the assertions of packages that have plugins for it, and would
print a warning that this module is already imported.
"""

import os
import sys

# When it has been imported all is there that is to be prepared.
_AWAITED = "jax"


class _Finder:
  """Finds one module as others do, and has `_prepare` run when it has been imported.

  A look-up of the module does not import it: the finder stays until it is.
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
    except (AttributeError, TypeError):  # a loader of another kind: JAX can do without
      pass


def _prepare() -> None:
  try:
    from minipod.jax import early

    early.attend()
  except Exception as error:  # JAX can do without
    print(f"minipod: {error!r} as JAX was imported", file=sys.stderr)


def _is_wanted() -> bool:
  """Whether the environment leaves JAX the choice of this platform, or makes it, and wants the hook."""
  platforms = os.environ.get("JAX_PLATFORMS", "")
  is_named = not platforms or "minipod" in (name.strip() for name in platforms.split(","))
  return is_named and os.environ.get("MINIPOD_START_HOOK", "1") != "0"


if _is_wanted():
  sys.meta_path.insert(0, _Finder())
