"""Pods whose compiler does what a recipe sets, as a description (a chip file with other figures), and scripts that run on them."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The VMEM, in MiB, that recipes give to matmuls (`--xla_tpu_scoped_vmem_limit_kib`).  Tiles get 0.81 of it, as they do
# of the compiler's own limits of 16 and 32 MiB for v5e and v6e.  On a v5p, libtpu uses at most 64 of 96 MiB.
SCOPED = {
    120: {"window": "97MiB", "resident": "8MiB", "scratch": "8MiB"},
    96: {"window": "78MiB", "resident": "32MiB", "scratch": "32MiB"},
    80: {"window": "65MiB", "resident": "48MiB", "scratch": "48MiB"},
    64: {"window": "52MiB", "resident": "64MiB", "scratch": "64MiB"},
    "64 of 64": {"window": "52MiB", "resident": "1MiB"},
}


@contextlib.contextmanager
def described(pod, scoped=None, overlap=None):
  """The pod, with a chip file if matmuls have more VMEM, or if the row has other parameters of overlap."""
  if not overlap and scoped is None:
    yield pod
    return
  chip = pod.split(":")[0]
  text = (ROOT / f"configs/chips/{chip}.yaml").read_text()
  for key, value in SCOPED.get(scoped, {}).items():
    text = re.sub(rf"^  {key}: .*$", f"  {key}: {value}", text, flags=re.M)
  for key, value in (overlap or {}).items():
    text = re.sub(rf"^  {key}: .*\n", "", text, flags=re.M)
    text = re.sub(r"^(overlap:.*\n)", rf"\g<1>  {key}: {value}\n", text, flags=re.M)
  with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write(text)
    file.flush()
    yield f"{pod} chip:{file.name}"


def run_on(pod, script, *arguments, **options):
  """The output of a script that runs on the pod in a process of its own, without array values."""
  environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes", "MINIPOD_TOPOLOGY": pod}
  done = subprocess.run([sys.executable, script, *arguments], env=environment, capture_output=True, text=True, **options)
  if done.returncode != 0:
    raise SystemExit(f"{pod}: exit code {done.returncode}\n{done.stderr[-2000:]}")
  return done.stdout
