"""A plugin of pytest: tests on pods, with faults, over several processes.

It is there where the package is installed.  A test names its pod:

    @pytest.mark.pod("v5e:4x4", hosts=2, time="model")
    def test_step(pod):
      assert pod.num_devices == 16
      pod.inject({"device": 3, "dead": True})   # healed when the test ends

    @pytest.mark.pod("torus:4", processes=2)
    def test_processes(pod):
      outputs = pod.run("script.py", timeout=60)   # what each process has printed, by rank

A test that needs no `pod` may leave it out, and runs on the pod of its mark all the same.  With `processes` the pod is that of
`run` alone: the test's own process stays on the pod that it has, and `pod.num_devices` counts that.

The pod before is there again when a test ends, whatever it has changed by `minipod.use`.  In a process of its own it is
only with `run`: arrays, meshes and compiled functions that a module keeps are of the pod in use when they were made, and of no
use in tests on another one or after them.
"""

from collections.abc import Iterator
import os
import re
import signal
import subprocess
import sys

import pytest

import minipod

TIMEOUT_SECONDS = 300.0


class Pod:
  """The pod of a test."""

  def __init__(self, line: str | None, processes: int, options: dict):
    self.line = line
    self.processes = processes
    self._options = options
    self._has_faults = False

  @property
  def devices(self) -> list:
    import jax

    return jax.devices()

  @property
  def num_devices(self) -> int:
    return len(self.devices)

  def inject(self, faults) -> None:
    """Adds faults as minipod.inject does.  They are removed at the end of the test."""
    self.devices  # a client is there
    self._has_faults = True
    minipod.inject(faults)

  def heal(self) -> None:
    if self._has_faults:
      self._has_faults = False
      minipod.heal()

  def run(self, *words: str, timeout: float = TIMEOUT_SECONDS, env: dict | None = None,
          check: bool = True) -> list[str]:
    """Runs a script in the processes of the pod, as `minipod run` does.

    Returns: the output of each process, with both streams, by rank.
    Raises:
      AssertionError: the script failed (with `check`) or exceeded the time limit; the message has its output.
    """
    variables = {f"MINIPOD_{key.upper()}": str(value) for key, value in self._options.items()}
    if self.line is not None:
      variables["MINIPOD_TOPOLOGY"] = self.line
    clean = {name: value for name, value in os.environ.items()
             if self.line is None or name not in ("MINIPOD_DEVICES", "MINIPOD_TOPOLOGY")}
    process = subprocess.Popen(
        [sys.executable, "-m", "minipod", "run", "-n", str(self.processes), *map(str, words)],
        env={"JAX_PLATFORMS": "minipod", **clean, **variables, **(env or {})}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
      output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, signal.SIGKILL)
      output, _ = process.communicate()
      raise AssertionError(f"{' '.join(map(str, words))} takes longer than {timeout:g} s:\n{output}") from None
    if check and process.returncode:
      raise AssertionError(f"{' '.join(map(str, words))} has ended with exit code {process.returncode}:\n{output}")
    return [re.sub(rf"^\[{rank}\] ", "", "\n".join(
        line for line in output.splitlines() if line.startswith(f"[{rank}] ")), flags=re.MULTILINE)
            for rank in range(self.processes)]


def pytest_configure(config) -> None:
  config.addinivalue_line(
      "markers", "pod(line, hosts=, slices=, hbm=, processes=1, **options): the pod that the test's fixture"
      " `pod` is (minipod.testing)")


def pytest_collection_modifyitems(items) -> None:
  """A mark alone is enough: a test on the wrong pod would pass or fail for nothing."""
  for item in items:
    names = getattr(item, "fixturenames", None)
    if names is not None and "pod" not in names and item.get_closest_marker("pod") is not None:
      names.insert(0, "pod")


def _check(pod: Pod) -> None:
  """A pod that cannot be is the test's failure, whether or not the test uses a device."""
  try:
    pod.devices
  except RuntimeError as error:
    said = re.sub(r" \(you may need to uninstall the failing plugin.*", "", str(error), flags=re.DOTALL)
    pytest.fail(f"the pod of the test's mark: {said}", pytrace=False)


@pytest.fixture
def pod(request) -> Iterator[Pod]:
  """The pod that the mark of the test describes; without a mark, the pod of the environment."""
  mark = request.node.get_closest_marker("pod")
  line = mark.args[0] if mark and mark.args else None
  options = dict(mark.kwargs) if mark else {}
  processes = options.pop("processes", 1)
  words = {key: options.pop(key) for key in ("slices", "hosts", "hbm") if key in options}
  if line is not None:
    line = " ".join([line, *(f"{key}:{value}" for key, value in words.items())])
  made = Pod(line, processes, options)
  # A pod of several processes is theirs alone.
  changes = mark is not None and processes == 1
  import jax

  before = jax.config.jax_pjrt_client_create_options
  try:
    if changes:
      minipod.use(line, **options)
      _check(made)
    yield made
  finally:
    made.heal()
    # A test may have used other pods itself.
    if changes or jax.config.jax_pjrt_client_create_options != before:
      minipod._use_options(before)
