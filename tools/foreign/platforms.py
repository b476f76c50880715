"""Code for JAX's CPU backend and minipod: their variables, a process with a time limit, and comparing outputs."""

import os
import pathlib
import re
import signal
import subprocess
import threading

PLATFORMS = ("cpu", "minipod")


def environment_of(platform: str, devices: int) -> dict:
  """The variables for this many devices of the platform.

  Both platforms get XLA's flag, which minipod ignores, because users who switch platforms often still have it in their
  script.
  """
  return {"JAX_PLATFORMS": platform, "MINIPOD_DEVICES": str(devices), "TF_CPP_MIN_LOG_LEVEL": "3",
          "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}


def run(command: list, folder: pathlib.Path, environment: dict, log: pathlib.Path,
        seconds: float = threading.TIMEOUT_MAX) -> tuple[int | None, int]:
  """The exit code of a process, or None after the time limit, and its peak memory in bytes.

  The log gets its output.  All processes that it has started end with it.
  """
  with log.open("w") as out:
    child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, start_new_session=True)
  limit = threading.Timer(seconds, os.killpg, (child.pid, signal.SIGKILL))
  limit.start()
  try:
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
  finally:
    is_late = not limit.is_alive()
    limit.cancel()
    try:
      os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass
  return None if is_late else child.returncode, usage.ru_maxrss * 1024


NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
NOISE = [
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"\b(?:Cpu|Minipod)Device\([^()]*(?:\([^()]*\)[^()]*)?\)"
                r"|\bMINIPOD_\d+(?:\([^()]*(?:\([^()]*\))?\))?|\bTFRT_CPU_\d+|\bcpu:\d+"), "DEVICE"),
    (re.compile(r"[│─┌┐└┘├┤┬┴┼]+"), " "),
    (re.compile(r"\b(?:cpu|minipod)\b", re.IGNORECASE), "PLATFORM"),
    (re.compile(r"\d[\d.]* *(?:ns|us|µs|ms|s|sec|seconds)\b.*"), "TIME"),
]


def same_text(left: str, right: str) -> bool:
  """Whether two texts agree, except for rounding, addresses, times and the names of devices."""
  for pattern, word in NOISE:
    left, right = pattern.sub(word, left), pattern.sub(word, right)
  words = [re.sub(r"\s", "", NUMBER.sub("#", text)) for text in (left, right)]
  pairs = zip(NUMBER.findall(left), NUMBER.findall(right))
  return words[0] == words[1] and all(
      abs(float(a) - float(b)) <= 1e-3 * max(abs(float(a)), abs(float(b))) + 1e-5 for a, b in pairs)
