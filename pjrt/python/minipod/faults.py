"""Injects and removes faults of the pod in use (pjrt/package/pjrt_faults.h)."""

import ctypes
import json

from minipod import foreign


def _call(name: str, *arguments) -> None:
  function = getattr(foreign.library(), name)
  function.argtypes = [ctypes.c_char_p] * len(arguments)
  function.restype = ctypes.c_char_p
  if refusal := function(*arguments):
    raise RuntimeError(refusal.decode(errors="replace"))


def inject(faults) -> None:
  if isinstance(faults, dict):
    faults = [faults]
  # JSON is YAML, too.
  text = faults if isinstance(faults, str) else json.dumps(list(faults))
  _call("minipod_inject", text.encode())


def heal() -> None:
  _call("minipod_heal")
