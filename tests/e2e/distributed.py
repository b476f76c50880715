"""Runs processes that jax.distributed.initialize() connects, without any launcher, on one host."""

import pathlib
import socket
import subprocess
import sys
import textwrap

import mpirun
import scenario

# If the service finds its port taken, it still runs: all processes only need the same port.
INITIALIZE = """\
import os, jax
jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]),
                           int(os.environ["PROCESS_ID"]))
"""


def free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


class Job:
  """Running processes, and their results after they have ended."""

  def __init__(self, program, devices, num_processes, started=None, own=None, wrap=None,
               arguments=(), is_whole=False, **variables):
    """Starts the processes.

    `program` is code, or the path of a script that initializes by itself.  `started`: the processes to start (default:
    all); `own`: variables of some processes; `wrap`: commands before those of some processes; `is_whole`: the code
    initializes by itself.
    """
    port = free_port()
    self.processes = {}
    for process in range(num_processes) if started is None else started:
      where = {"COORDINATOR": f"127.0.0.1:{port}", "NUM_PROCESSES": num_processes, "PROCESS_ID": process}
      env = mpirun.environment(devices, **where | variables | (own or {}).get(process, {}))
      before = (wrap or {}).get(process, [])
      command = [sys.executable, str(program)]
      if not isinstance(program, pathlib.Path):
        code = program if is_whole else scenario.PRELUDE + INITIALIZE + textwrap.dedent(program)
        if not before and not arguments:
          self.processes[process] = scenario.start_whole(code, env)
          continue
        command = [sys.executable, "-c", code]
      self.processes[process] = subprocess.Popen([*before, *command, *arguments], env=env, text=True, stdout=subprocess.PIPE,
                                                 stderr=subprocess.PIPE, start_new_session=True)

  def finish(self, timeout=mpirun.SECONDS):
    """Waits for all; outs, errs and returncodes are by process."""
    self.outs, self.errs, self.returncodes = {}, {}, {}
    try:
      for process, running in self.processes.items():
        self.returncodes[process], self.outs[process], self.errs[process] = scenario.finish(
            running, timeout)
    finally:
      for running in self.processes.values():
        if running.poll() is None:
          running.kill()
          running.wait()
    return self

  def expect_good_end(self):
    for process, returncode in self.returncodes.items():
      assert returncode == 0, (f"process {process} ended with {returncode}\n{self.outs[process]}\n"
                               f"{self.errs[process]}")
    return self


def run(program, devices, num_processes, timeout=mpirun.SECONDS, **arguments):
  return Job(program, devices, num_processes, **arguments).finish(timeout)


def run_well(*args, **arguments):
  return run(*args, **arguments).expect_good_end()
