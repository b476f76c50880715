"""Pods whose compiler does what a recipe sets, as a description (a chip file with other figures), and scripts that run on them."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The VMEM, in MiB, that recipes give to matmuls (`--xla_tpu_scoped_vmem_limit_kib`).  Tiles get 0.81 of it, as they do
# of the compiler's own limits of 16 and 32 MiB for v5e and v6e.  On a v5p, libtpu uses at most 64 of 96 MiB.
SCOPED = {
    120: {"matmul": {"window": "97MiB", "resident": "8MiB"}, "memory": {"scratch": "8MiB"}},
    96: {"matmul": {"window": "78MiB", "resident": "32MiB"}, "memory": {"scratch": "32MiB"}},
    80: {"matmul": {"window": "65MiB", "resident": "48MiB"}, "memory": {"scratch": "48MiB"}},
    64: {"matmul": {"window": "52MiB", "resident": "64MiB"}, "memory": {"scratch": "64MiB"}},
    "64 of 64": {"matmul": {"window": "52MiB", "resident": "1MiB"}},
}


@contextlib.contextmanager
def described(pod, scoped=None, overlap=None):
  """The pod, with a chip file if matmuls have more VMEM, or if the row has other parameters of overlap."""
  if not overlap and scoped is None:
    yield pod
    return
  groups = SCOPED.get(scoped, {}) | ({"overlap": overlap} if overlap else {})
  lines = [f"like: {pod.split(':')[0]}"]
  for group, values in groups.items():
    lines += [f"{group}:", *(f"  {key}: {value}" for key, value in values.items())]
  with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write("\n".join(lines) + "\n")
    file.flush()
    yield f"{pod} chip:{file.name}"


def run_on(pod, script, *arguments, **options):
  """The output of a script that runs on the pod in a process of its own, without array values."""
  environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes", "MINIPOD_TOPOLOGY": pod}
  done = subprocess.run([sys.executable, script, *arguments], env=environment, capture_output=True, text=True, **options)
  if done.returncode != 0:
    raise SystemExit(f"{pod}: exit code {done.returncode}\n{done.stderr[-2000:]}")
  return done.stdout
