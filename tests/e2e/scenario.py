"""Runs a piece of Python in a process of its own, with a pod of its own and a time limit."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import textwrap

import forks

PRELUDE = """\
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
"""


def environment(devices=4, **variables):
  """The environment of a scenario: no variables of minipod or JAX except the given ones."""
  env = {name: value for name, value in os.environ.items()
         if not name.startswith(("MINIPOD_", "JAX_")) or name == "MINIPOD_LIBRARY"}
  env["JAX_PLATFORMS"] = "minipod"
  if devices is not None:
    env["MINIPOD_DEVICES"] = str(devices)
  env.update({name: str(value) for name, value in variables.items()})
  return env


def start(code, devices=4, prelude=PRELUDE, **variables):
  """Starts the code; its output is text, with standard error separate."""
  return start_whole(prelude + textwrap.dedent(code), environment(devices, **variables))


def start_whole(code, env):
  """Starts code with its own environment; as a fork of a process that has run PRELUDE, if that makes no difference."""
  pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
  if code.startswith(PRELUDE) and forks.can_fork(env):
    return forks.Popen(PRELUDE, code.removeprefix(PRELUDE), env, **pipes)
  return subprocess.Popen([sys.executable, "-c", code], env=env, start_new_session=True, **pipes)


def start_shell(text, folder, env, stderr=subprocess.STDOUT):
  """Starts commands for a shell, in a folder and with this Python first on PATH."""
  env = env | {"PATH": f"{pathlib.Path(sys.executable).parent}:{env['PATH']}"}
  return subprocess.Popen(["bash", "-c", text], cwd=folder, env=env, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=stderr, start_new_session=True)


def interrupt(process):
  """Sends Ctrl-C until the scenario prints a message about it.

  Python drops an interrupt during a callback of its garbage collector, where JAX has one.  Users would press Ctrl-C
  again.
  """
  for _ in range(4):
    process.send_signal(signal.SIGINT)
    if select.select([process.stdout], [], [], 5)[0]:
      return


def slowness():
  """How much longer things may take than on a quiet machine: the load per core, at least 1."""
  return min(max(os.getloadavg()[0] / os.cpu_count(), 1), 10)


def is_running(pid):
  """Whether the process is still running, and not just waiting for its new parent to notice its end."""
  try:
    with open(f"/proc/{pid}/stat") as f:
      return f.read().rpartition(")")[2].split()[0] not in "ZX"
  except (FileNotFoundError, ProcessLookupError):
    return False


def finish(process, timeout=60):
  """Waits for a started scenario: (return code, output, standard error).

  If it does not end in time, it is killed with everything that it has started, and the test fails.  The limit is for a
  quiet machine; on a busy machine it is extended by the load when the time is over.
  """
  waited, limit = 0, timeout
  while True:
    try:
      out, err = process.communicate(timeout=limit - waited)
      return process.returncode, out, err
    except subprocess.TimeoutExpired:
      waited, limit = limit, max(limit, timeout * slowness())
    if waited >= limit:
      os.killpg(process.pid, signal.SIGKILL)
      out, err = process.communicate()
      raise AssertionError(f"no end after {limit:.0f} s\n{out}\n{err}")


def run(code, devices=4, timeout=60, fails=False, **variables):
  """Runs the code to its end and returns its output; with `fails`, its standard error."""
  returncode, out, err = finish(start(code, devices, **variables), timeout)
  if fails:
    assert returncode > 0, f"exit code {returncode}, an exception was expected\n{out}\n{err}"
    return err
  assert returncode == 0, f"exit code {returncode}\n{out}\n{err}"
  return out
