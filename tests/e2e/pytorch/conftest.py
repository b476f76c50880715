"""Set-up of the tests of PyTorch/XLA: real torch_xla on the installed package.

They are skipped where torch_xla is not installed; `tools/test --torch` makes an environment that
has it.  A process of torch_xla has one kind of pod, and SPMD mode or not, from its first use of a
device on: every test runs a script in a process of its own (torch_scenario.py).
"""

import os
import sys

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]


@pytest.fixture(scope="session", autouse=True)
def platform():
  """Replaces the fixture that requires JAX on minipod."""
