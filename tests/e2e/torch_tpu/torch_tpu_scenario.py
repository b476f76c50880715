"""Runs a piece of Python with TorchTPU in a process of its own."""

from importlib import metadata
import textwrap

import pytest
import scenario

try:
  metadata.version("torch_tpu")
except metadata.PackageNotFoundError:
  pytest.skip("torch_tpu is not installed", allow_module_level=True)

PRELUDE = "import torch\n"


def environment(pod="v6e:2x2", **variables):
  """As a user has it: the pod (None: not set), the given variables, and no others of minipod, JAX or TPUs."""
  if pod is not None:
    variables["MINIPOD_TOPOLOGY"] = pod
  env = scenario.environment(None, **variables)
  return {name: value for name, value in env.items()
          if name in variables or name != "JAX_PLATFORMS" and not name.startswith(("TPU_", "TORCH_", "XLA_"))}


def finish(code, pod="v6e:2x2", timeout=120, prelude=PRELUDE, **variables):
  """Runs the code: (return code, output, lines of minipod)."""
  process = scenario.start_whole(prelude + textwrap.dedent(code), environment(pod, **variables))
  returncode, out, err = scenario.finish(process, timeout)
  return returncode, out, [line for line in err.splitlines() if line.startswith("minipod: ")] + (
      [line for line in err.splitlines()[-15:] if not line.startswith("minipod: ")] if returncode else [])


def run(code, pod="v6e:2x2", timeout=120, prelude=PRELUDE, **variables):
  """The output of the code, which must succeed without a message of minipod."""
  returncode, out, lines = finish(code, pod, timeout, prelude, **variables)
  assert returncode == 0 and not lines, f"exit code {returncode}\n{out}\n" + "\n".join(lines)
  return out
