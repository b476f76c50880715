"""`minipod doctor`: prints what is missing or wrong in the installation, and how to fix it."""

import importlib.metadata
import json
import os
import pathlib
import shutil

import minipod
from minipod import command
from minipod.command import arguments
from minipod.command import installation

GOOD, NOTE, BAD = "good", "note", "bad"
Finding = tuple[str, str, str]  # how it is, what was looked at, what there is to say


def _library() -> list[Finding]:
  path = minipod.library_path()
  if why := installation.opens(path):
    return [(BAD, "library", why)]
  return [(GOOD, "library", path)]


def _native() -> list[Finding]:
  is_there, what = installation.native_code()
  more = "" if is_there else ": everything works, loops are slower"
  return [(GOOD if is_there else NOTE, "machine code", what + more)]


def _mpi() -> list[Finding]:
  is_there, what = installation.mpi()
  more = "" if is_there else (": needed for pods over the processes of an mpirun alone"
                              " (apt install openmpi-bin)")
  return [(GOOD if is_there else NOTE, "MPI", what + more)]


def _ucx() -> list[Finding]:
  is_there, what = installation.ucx()
  more = "" if is_there else (": needed for pods over the processes of several hosts without mpirun"
                              " (apt install libucx0)")
  return [(GOOD if is_there else NOTE, "UCX", what + more)]


def _jax() -> list[Finding]:
  found = installation.version_of("jax")
  if found is None:
    return [(NOTE, "JAX", "not installed here: pip install 'minipod[jax]'")]
  first, end = installation.tested_jax()
  key = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
  low, high = (tuple(int(part) for part in text.split(".")) for text in (first, end))
  if not low <= key < high:
    return [(NOTE, "JAX", f"{found}, and this package was tested with {first} to before {end}")]
  plugins = [each for each in importlib.metadata.entry_points(group="jax_plugins")
             if each.name == "minipod"]
  if not plugins:
    return [(BAD, "JAX", f"{found}, which does not see the package: it is not installed in this"
                         " Python (pip install)")]
  platforms = os.environ.get("JAX_PLATFORMS", "")
  if platforms and "minipod" not in platforms.split(","):
    return [(NOTE, "JAX", f"{found}; JAX_PLATFORMS={platforms} leaves minipod out")]
  return [(GOOD, "JAX", found)]


def _torch() -> list[Finding]:
  found = installation.version_of("torch_xla")
  if found is None:
    return []
  is_tested = found.startswith("2.9")
  return [(GOOD if is_tested else NOTE, "PyTorch/XLA",
           found if is_tested else f"{found}, and this package was tested with 2.9")]


def _options() -> list[Finding]:
  asked = command.ask_library("topo")
  said = [line.removeprefix("minipod topo: ").removeprefix("minipod: warning: ")
          for line in asked.stderr.splitlines()]
  if asked.returncode:
    return [(BAD, "options", "; ".join(said))]
  return [(NOTE, "options", line) for line in said] or [(GOOD, "options", "the pod can be made")]


def _forced_devices() -> list[Finding]:
  found = []
  if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
    found.append("XLA_FLAGS=--xla_force_host_platform_device_count")
  if "JAX_NUM_CPU_DEVICES" in os.environ:
    found.append("JAX_NUM_CPU_DEVICES")
  return [(NOTE, "environment", f"{what} is for JAX's CPU: the pod's devices are MINIPOD_DEVICES")
          for what in found]


def _limits() -> list[Finding]:
  findings = []
  maps = pathlib.Path("/proc/sys/vm/max_map_count")
  if maps.exists() and int(maps.read_text()) < 65530:
    findings.append((NOTE, "system", f"vm.max_map_count is {maps.read_text().strip()}: many arrays"
                                     " need 65530"))
  shared = pathlib.Path("/dev/shm")
  if not shared.is_dir():
    findings.append((NOTE, "system", "there is no /dev/shm, where processes of one host share data"))
  elif shutil.disk_usage(shared).total < 64 << 20:
    findings.append((NOTE, "system", "/dev/shm has less than 64 MiB, which several processes need"
                                     " (docker run --shm-size=1g)"))
  return findings


def main(words: list[str]) -> int:
  parser = arguments.parser("doctor", "P" + __doc__.partition(": p")[2], epilog=(
      "The exit code is 1 if something does not work (bad). A note names something that works, but could be better."))
  parser.add_argument("--json", action="store_true", help="print a list of JSON objects")
  asked = parser.parse_args(words)
  findings: list[Finding] = []
  for look in (_library, _native, _mpi, _ucx, _jax, _torch, _options, _forced_devices, _limits):
    findings += look()
    if findings[-1][:2] == (BAD, "library"):
      break
  if asked.json:
    print(json.dumps([{"state": state, "what": what, "text": text}
                      for state, what, text in findings], indent=1))
  else:
    print(arguments.columns(findings, ""))
  return int(any(state == BAD for state, _, _ in findings))
