"""Reports the platform under another name, for frameworks that choose their code by it.

`Device.platform`, `Client.platform`, `Array.platform()` and `jax.default_backend()` return the name in the option
`platform` (by default that of the described chips), and `jax.devices("tpu")` lists the pod's devices.  JAX itself
lowers, donates, caches and exports by the platform's name.  So code of JAX, and of this package, gets "minipod"; the
calling frame shows which code asks.
"""

import os
import re
import sys

from minipod.jax import guard

_OWN = ("jax.", "jaxlib.", "minipod.")
# The names under which JAX looks up a platform.  For "gpu" it looks for the known kinds of GPU.  JAX always has a CPU
# backend of its own.
_KEYS = {"tpu": "tpu", "gpu": "cuda"}
# Names of described TPUs, by generation or by Google Cloud's name.  The names are defined in topology/ (presets.c,
# cloud_names.c), and a test compares them.  The library, which has them, is not loaded before JAX needs a device.  If a
# file describes the pod, only the client knows its chips.
_A_TPU = re.compile(r"((tpu-)?(v\d\w*|7x)(-[\w-]+)?|trillium|ironwood)(:.*)?", re.DOTALL)
_shown = guard.PLATFORM
_is_taught = False


def wanted() -> str:
  """The name that the environment determines, before a device exists."""
  name = os.environ.get("MINIPOD_PLATFORM", "auto") or "auto"
  if name != "auto":
    return name
  topology = os.environ.get("MINIPOD_TOPOLOGY", "")
  return "tpu" if _A_TPU.fullmatch(topology) and not os.path.exists(topology) else guard.PLATFORM


def show_client(client) -> None:
  _show(client.devices())
  if _shown in _KEYS:
    guard.teach(f"to find the devices of platform '{_shown}'", _add_key, client)


def show_topology(topology) -> None:
  _show(topology._make_compile_only_devices())


def _show(devices) -> None:
  """Makes JAX report this name for devices like these."""
  global _is_taught, _shown
  _shown = getattr(devices[0], "shown_platform", guard.PLATFORM) if devices else guard.PLATFORM
  if not _is_taught and _shown != guard.PLATFORM:
    _is_taught = True
    guard.teach("another name of the platform", _rename)


class ClientAs:
  """A client under another platform name, for code of JAX that knows only certain names."""

  supports_executable_serialization = True

  def __init__(self, client, platform: str):
    self._client = client
    self.platform = platform

  def __getattr__(self, name):
    return getattr(self._client, name)


def _rename() -> None:
  from jaxlib import _jax

  for kind in (_jax.Device, _jax.Client):
    kind.platform = property(_make_answer(kind.platform.__get__), doc=kind.platform.__doc__)
  _jax.ArrayImpl.platform = _make_answer(_jax.ArrayImpl.platform)


def _make_answer(original):
  def platform(self) -> str:
    name = original(self)
    if name != guard.PLATFORM or _is_own(sys._getframe(1)):
      return name
    return _shown

  return platform


def _is_own(frame) -> bool:
  """Whether JAX or minipod asks, and not on behalf of its caller."""
  if frame.f_code.co_name == "default_backend" and _module(frame) == "jax._src.xla_bridge":
    frame = frame.f_back
  return frame is not None and _module(frame).startswith(_OWN)


def _module(frame) -> str:
  return frame.f_globals.get("__name__") or ""


def _add_key(client) -> None:
  from jax._src import xla_bridge

  # A client of real devices, which JAX makes before or after minipod's, has precedence.
  xla_bridge._backends.setdefault(_KEYS[_shown], client)


def describe_tpus() -> None:
  """Makes JAX's topologies, which are otherwise libtpu's, return described TPUs."""
  from jax._src import xla_bridge

  make = xla_bridge.make_pjrt_topology
  original = xla_bridge.make_pjrt_tpu_topology

  def make_pjrt_tpu_topology(topology_name="", **options):
    if guard.may_be_used() and (wanted() == "tpu" or _shown == "tpu"):
      return make(guard.PLATFORM, topology_name, **options)
    return original(topology_name, **options)

  xla_bridge.make_pjrt_tpu_topology = make_pjrt_tpu_topology
