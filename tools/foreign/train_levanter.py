"""Runs levanter's train_lm as it is, prints the time report at its end, if there is one, and leaves.

    python train_levanter.py --config_path FILE …

Leaving is why this is here: levanter's loader still reads ahead, in a daemon thread, when Python
ends.  Python (before 3.14) ends a thread by force that then comes back from waiting for an array,
which jaxlib's C++ does not allow: the process aborts.  So it does with `JAX_PLATFORMS=cpu`.
"""

import atexit
import os
import runpy
import sys

import minipod


def leave() -> None:
  try:
    print(minipod.time_report(), flush=True)
  except RuntimeError:  # on another platform, or without virtual times
    sys.stdout.flush()
  sys.stderr.flush()
  os._exit(0 if getattr(sys, "last_value", None) is None else 1)


if __name__ == "__main__":
  import jax  # noqa: F401 - its own hooks at the end come after ours

  atexit.register(leave)
  runpy.run_module("levanter.main.train_lm", run_name="__main__", alter_sys=True)
