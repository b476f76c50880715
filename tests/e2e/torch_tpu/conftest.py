"""Set-up of the tests of TorchTPU: the real torch_tpu on the installed package.

They are skipped where torch_tpu is not installed; `tools/test --torch-tpu` makes an environment that has it.  A process
of TorchTPU has one pod: every test runs a script in a process of its own (torch_tpu_scenario.py).
"""

import os
import sys

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]


@pytest.fixture(scope="session", autouse=True)
def platform():
  """Replaces the fixture that requires JAX on minipod."""
