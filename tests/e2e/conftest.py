"""Set-up of the end-to-end tests: real JAX on the installed package.

The test process itself has eight minipod devices and JAX's CPU backend, for tests that compare the two.  Tests that
depend on the state of a process (its configuration, its death) run in processes of their own: see scenario.py.
"""

import faulthandler
from importlib import metadata
import os
import signal
import sys

os.environ["JAX_PLATFORMS"] = "minipod,cpu"
os.environ.setdefault("MINIPOD_DEVICES", "8")
# The CPU backend is here to say what is right, each program once. Compiling it with the usual options takes
# XLA half of the time of these tests, and only those that compare bits ask for it (differential.py).
# What XLA makes of powers of integers and of reduce_precision is right in no other way.
QUICK = "--xla_backend_optimization_level=0"
if metadata.version("jaxlib").startswith(("0.9.", "0.10.")):  # later versions of XLA end the process at unknown flags
  QUICK += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", QUICK)
sys.path.insert(0, os.path.dirname(__file__))
# A shell starts background jobs with SIGINT ignored, and child processes would inherit that.  The tests of Ctrl-C would
# then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

# A test that takes longer counts as hung: its stacks are printed and the run ends.  On a quiet machine, no test takes a
# tenth of this.
TEST_SECONDS = 900


# Slow files, the slowest first.  They come before the others, so that the processes of a parallel run end together.
LONG = ["test_random_functions.py", "test_mpirun_ends.py", "test_accuracy.py", "test_mpirun.py",
        "test_linalg_hard.py", "test_ops.py", "test_dtypes.py"]


def pytest_collection_modifyitems(items):
  rank = {name: i for i, name in enumerate(LONG)}
  # Files whose tests use other pods come last, because meshes that other files keep belong to the previous pod.
  pods = {item.path for item in items if "pod" in getattr(item, "fixturenames", ())}
  items.sort(key=lambda item: (item.path in pods, rank.get(item.path.name, len(LONG))))


@pytest.fixture(scope="session", autouse=True)
def platform():
  """All tests fail, rather than skip, without the plugin."""
  import jax
  assert jax.default_backend() == "minipod"
  return jax.devices()


@pytest.fixture(autouse=True)
def time_limit():
  faulthandler.dump_traceback_later(TEST_SECONDS, exit=True)
  yield
  faulthandler.cancel_dump_traceback_later()
