"""Runs as Python starts, where minipod is installed (minipod.pth): waits for JAX to be imported.

JAX looks for its plugins at its first use of a device.  What programs call before that has to know
minipod, too (minipod/jax/early.py).  Programs without JAX notice nothing.
"""

import sys

# When it has been imported all is there that is to be prepared.
_AWAITED = "jax"


class _Finder:
  """Finds one module as others do, and has `_prepare` run when it has been imported."""

  def find_spec(self, name, path=None, target=None):
    if name != _AWAITED:
      return None
    import importlib.util  # only here: most programs that Python starts are not about JAX

    sys.meta_path.remove(self)
    spec = importlib.util.find_spec(name)
    if spec is not None and hasattr(spec.loader, "exec_module"):
      load = spec.loader.exec_module

      def exec_module(module):
        load(module)
        _prepare()

      spec.loader.exec_module = exec_module
    return spec


def _prepare() -> None:
  try:
    from minipod.jax import early

    early.attend()
  except Exception as error:  # JAX can do without
    print(f"minipod: {error!r} as JAX was imported", file=sys.stderr)


sys.meta_path.insert(0, _Finder())
