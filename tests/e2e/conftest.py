"""Set-up of the end-to-end tests: real JAX on the installed package.

The test process itself has eight minipod devices and JAX's CPU backend beside them, for tests that
compare the two.  What depends on the state of a process (its configuration, its death) runs in
processes of its own: see scenario.py.
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
if metadata.version("jaxlib").startswith(("0.9.", "0.10.")):  # later ones end at flags they do not know
  QUICK += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", QUICK)
sys.path.insert(0, os.path.dirname(__file__))
# A shell starts jobs in the background with SIGINT ignored, and processes of ours would inherit
# that; then the tests of Ctrl-C would wait for a process that cannot hear it.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest

# A test that takes longer is taken for hung: its stacks are printed and the run ends. None takes a
# tenth of it on a quiet machine.
TEST_SECONDS = 900


# Files that take long, the longest first: they come before the others, so that the processes of a
# parallel run end together.
LONG = ["test_random_functions.py", "test_mpirun_ends.py", "test_accuracy.py", "test_mpirun.py",
        "test_linalg_hard.py", "test_ops.py", "test_dtypes.py"]


def pytest_collection_modifyitems(items):
  rank = {name: i for i, name in enumerate(LONG)}
  # Files whose tests use other pods come last: meshes that other files keep are of the pod before.
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
