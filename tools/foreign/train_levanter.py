"""Runs levanter's train_lm unchanged, then prints the time report, if there is one, and exits at once.

    python train_levanter.py --config_path FILE …

The early exit is the reason for this script.  levanter's loader still reads ahead, in a daemon thread, when Python
ends.  Python before 3.14 ends a daemon thread by force when it returns from waiting for an array.  jaxlib's C++ code
does not allow that, so the process aborts.  The same happens with `JAX_PLATFORMS=cpu`.
"""

import atexit
import os
import runpy
import sys

import minipod


def leave() -> None:
  try:
    print(minipod.time_report(), flush=True)
  except RuntimeError:  # another platform, or no virtual times
    sys.stdout.flush()
  sys.stderr.flush()
  os._exit(0 if getattr(sys, "last_value", None) is None else 1)


if __name__ == "__main__":
  import jax  # noqa: F401 - it registers its exit hooks first, so they run after ours

  atexit.register(leave)
  runpy.run_module("levanter.main.train_lm", run_name="__main__", alter_sys=True)
