"""Runs the steps that change TorchTPU.  If a step fails, only its feature is missing, and minipod prints one line."""

import importlib.metadata
import logging

_logger = logging.getLogger("minipod")


def teach(what: str, step, *args) -> bool:
  try:
    step(*args)
    return True
  except Exception as error:  # a changed TorchTPU may raise anything; the devices themselves still work
    version = importlib.metadata.version("torch_tpu")
    _logger.warning("minipod could not teach TorchTPU %s %s: %r", version, what, error)
    return False
