"""The platform under another name, for frameworks that choose their code by it.

What the option `platform` says (by default what the described chips are) is what `Device.platform`, `Client.platform`, `Array.platform()` and
`jax.default_backend()` answer, and `jax.devices("tpu")` has the pod's devices.  JAX itself lowers,
donates, caches and exports by the platform's name, and all that stays as it is: code of JAX, or of
this package, gets "minipod".  The calling frame shows which code it is.
"""

import os
import re
import sys

from minipod.jax import guard

_OWN = ("jax.", "jaxlib.", "minipod.")
# Under what JAX looks a platform up; for "gpu" it looks for what kinds of GPU there are. A CPU
# backend of JAX's own is there anyway.
_KEYS = {"tpu": "tpu", "gpu": "cuda"}
# Names of described TPUs, by generation or by Cloud's name. The names themselves are topology/'s (presets.c,
# cloud_names.c), and a test compares; the library, which has them, is not loaded before JAX wants a device. What a file
# describes the client tells.
_A_TPU = re.compile(r"((tpu-)?(v\d\w*|7x)(-[\w-]+)?|trillium|ironwood)(:.*)?", re.DOTALL)
_shown = guard.PLATFORM
_is_taught = False


def wanted() -> str:
  """What the environment says, before there are devices."""
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
  """Has JAX say of devices like these what they shall be called."""
  global _is_taught, _shown
  _shown = getattr(devices[0], "shown_platform", guard.PLATFORM) if devices else guard.PLATFORM
  if not _is_taught and _shown != guard.PLATFORM:
    _is_taught = True
    guard.teach("another name of the platform", _rename)


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
  """Whether JAX asks or we do, and not for its caller's sake."""
  if frame.f_code.co_name == "default_backend" and _module(frame) == "jax._src.xla_bridge":
    frame = frame.f_back
  return frame is not None and _module(frame).startswith(_OWN)


def _module(frame) -> str:
  return frame.f_globals.get("__name__") or ""


def _add_key(client) -> None:
  from jax._src import xla_bridge

  # A client of real ones, which JAX makes before or after ours, is rather that.
  xla_bridge._backends.setdefault(_KEYS[_shown], client)


def describe_tpus() -> None:
  """Has described TPUs be those of JAX's topologies, which are libtpu's otherwise."""
  from jax._src import xla_bridge

  make = xla_bridge.make_pjrt_topology
  original = xla_bridge.make_pjrt_tpu_topology

  def make_pjrt_tpu_topology(topology_name="", **options):
    if guard.may_be_used() and (wanted() == "tpu" or _shown == "tpu"):
      return make(guard.PLATFORM, topology_name, **options)
    return original(topology_name, **options)

  xla_bridge.make_pjrt_tpu_topology = make_pjrt_tpu_topology
