"""`minipod.use` for TorchTPU: the pod of a client that does not exist yet, by environment variables."""

import importlib.util
import os
import sys

# Variables whose names are not those of their options (sim/base/options.h).
_NAMES = {"num_devices": "MINIPOD_DEVICES", **{name: f"MINIPOD_{name.upper()}_S" for name in (
    "init_timeout", "exit_timeout", "collective_warn", "collective_timeout", "callback_wait")}}

_before: dict[str, str | None] = {}  # what the variables that `use` has set were


def is_wanted() -> bool:
  """Whether the process is one of TorchTPU, or may become one: it has not imported JAX."""
  if "torch_tpu" in sys.modules:
    return True
  return "jax" not in sys.modules and importlib.util.find_spec("torch_tpu") is not None


def _has_client() -> bool:
  if "torch_tpu._loader" not in sys.modules:
    return False
  from torch_tpu._internal.device import _device_module

  return _device_module._device_ops_backend._is_initialized()


def _set(options: dict) -> None:
  for name, value in _before.items():
    _put(name, value)
  _before.clear()
  for option, value in options.items():
    name = _NAMES.get(option, f"MINIPOD_{option.upper()}")
    _before[name] = os.environ.get(name)
    _put(name, str(int(value)) if isinstance(value, bool) else str(value))


def _put(name: str, value: str | None) -> None:
  if value:
    os.environ[name] = value
  else:
    os.environ.pop(name, None)


def use(options: dict) -> None:
  """Sets the pod of the client that TorchTPU makes later.

  Raises:
    RuntimeError: TorchTPU has a client already.
    ValueError: the description is wrong, or TorchTPU does not know its devices.
  """
  if _has_client():
    raise RuntimeError("minipod.use: TorchTPU has a client already, and cannot change its pod: call minipod.use before"
                       " the first tensor on the device 'tpu'")
  _set(options)
  if "torch_tpu" in sys.modules:
    from minipod import torch_tpu_plugin

    torch_tpu_plugin.change()
