#!/usr/bin/env python3
"""Runs JAX's guide to fault tolerance repeatedly: kill, shrink, rejoin, recover; and measures how long each takes.

    tools/reliability/guide.py FOLDER [--rounds 10] [--seed 1] [--python PYTHON] [--script NAME]...

FOLDER has the guide's scripts, from docs/_static/fault_tolerance/ of JAX's repository.  They run unchanged, with four
processes each.  In each round this script kills the last process at a random moment.  In every other round the three
others first have to continue alone (JAX's service notices a death after 10 s, the heartbeat of the scripts).  In the
other rounds a new process starts at once.  It has rejoined when it has passed a step with all four; its seconds count
from its call of initialize().  All processes must have printed the same for the same step.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

PROCESSES = 4
VICTIM = PROCESSES - 1
SECONDS = 90  # for everything that it waits for
# What the guide's scripts print for a step, and for a step that succeeded.
BEGINS = re.compile(r"^(?:=== Running step .*|devices=\[.*)$", re.MULTILINE)
PASSES = re.compile(r"^(?:PASS|Step \d+ succeeded: .*)$", re.MULTILINE)
# Runs a script, and prints when it requests to join and when it knows all devices.  JAX 0.9 and newer refuse the meshes
# of the last script on every platform, so its axes are made with the type that it was written for.
RUN = """
import runpy, sys, time
import jax
auto, *sys.argv = sys.argv[1:]
initialize, devices, make_mesh = jax.distributed.initialize, jax.devices, jax.make_mesh
def ask(*arguments, **options):
  print("ASKS", time.time(), flush=True)
  return initialize(*arguments, **options)
def know(*arguments, **options):
  found = devices(*arguments, **options)
  jax.devices = devices
  print("KNOWS", time.time(), flush=True)
  return found
jax.distributed.initialize, jax.devices = ask, know
if auto == "auto":
  axis = jax.sharding.AxisType.Auto
  jax.make_mesh = lambda shape, names, **options: make_mesh(shape, names, **{"axis_types": (axis,) * len(names), **options})
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCRIPTS = {"live_devices.py": "", "data_parallelism.py": "", "data_parallelism_with_recovery.py": "auto"}


# If a process restarts before the others notice its death, they start their next step without it (JAX checks which
# processes are alive at the end of a step).  They wait until this limit, in seconds.
LIMIT = 20


class Wrong(Exception):
  """The job has done something that it should not have done."""


class Job:
  """The processes of a script, and their output."""

  def __init__(self, python: str, script: pathlib.Path, folder: pathlib.Path):
    self._command = [python, "-c", RUN, SCRIPTS[script.name] or "as it is", str(script), f"--n={PROCESSES}"]
    self._folder = folder
    self._paths: dict[int, pathlib.Path] = {}
    self._processes: dict[int, subprocess.Popen] = {}
    self._starts = 0
    for process in range(PROCESSES):
      self.start(process)

  def start(self, process: int) -> None:
    self._starts += 1
    self._paths[process] = self._folder / f"{self._starts}.{process}"
    environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "1", "PYTHONUNBUFFERED": "1",
                                "MINIPOD_COLLECTIVE_TIMEOUT_S": str(LIMIT)}
    with open(self._paths[process], "wb") as file:
      self._processes[process] = subprocess.Popen([*self._command, f"--i={process}"], env=environment, stdout=file,
                                                  stderr=subprocess.STDOUT, start_new_session=True)

  def kill(self, process: int) -> float:
    self._processes[process].kill()
    self._processes.pop(process).wait()
    return time.time()

  def end(self) -> None:
    for process in list(self._processes):
      self.kill(process)

  def text(self, process: int) -> str:
    return self._paths[process].read_text(errors="replace")

  def moment(self, process: int, word: str) -> float:
    """When the process printed it."""
    return float(re.search(rf"^{word} (\S+)$", self.text(process), re.MULTILINE)[1])

  def passed(self, process: int) -> list[int]:
    """For each successful step, its number of devices."""
    found, devices = [], 0
    for line in re.findall(f"{BEGINS.pattern}|{PASSES.pattern}", self.text(process), re.MULTILINE):
      if BEGINS.match(line):
        devices = line.count("Device(id=")
      else:
        found.append(devices)
    return found

  def wait(self, what: str, is_done) -> float:
    """Waits until the condition holds; returns the time at which it did."""
    end = time.time() + SECONDS
    while not is_done():
      for process, running in self._processes.items():
        if running.poll() is not None:
          raise Wrong(f"process {process} ended with {running.returncode}: {self.text(process)[-1500:]}")
      if time.time() > end:
        raise Wrong(f"{what}: not in {SECONDS} s: {[self.text(process)[-800:] for process in self._processes]}")
      time.sleep(0.01)
    return time.time()

  def has_new(self, process: int, since: int, devices: int):
    """Whether the process has passed a step on that many devices, after its first `since` steps."""
    return lambda: devices in self.passed(process)[since:]

  def check_values(self) -> None:
    """The loss of a step is the same in all processes; if a step was repeated, its last loss counts."""
    of_steps: dict[str, dict[int, str]] = {}
    for process in self._processes:
      for step, loss in re.findall(r"^Step (\d+) succeeded: loss = (\S+)$", self.text(process), re.MULTILINE):
        of_steps.setdefault(step, {})[process] = loss
    for step, losses in of_steps.items():
      if len(set(losses.values())) > 1:
        raise Wrong(f"step {step} has losses {losses}")


def one_round(job: Job, waits_for_others: bool, pause: float) -> tuple[float | None, float, float, float]:
  """Seconds until the others continue, until the new process knows the devices, until its first step with all, and
  until all processes have done such a step.
  """
  time.sleep(pause)
  counts = [len(job.passed(process)) for process in range(PROCESSES)]
  died, alone = job.kill(VICTIM), None
  if waits_for_others:
    alone = max(job.wait("the others alone", job.has_new(process, counts[process], VICTIM)) for process in range(VICTIM)) - died
  job.start(VICTIM)
  back = job.wait("the newcomer", job.has_new(VICTIM, 0, PROCESSES))
  counts = [len(job.passed(process)) for process in range(VICTIM)]
  everybody = max(job.wait("all", job.has_new(process, counts[process], PROCESSES)) for process in range(VICTIM))
  asked = job.moment(VICTIM, "ASKS")
  return alone, job.moment(VICTIM, "KNOWS") - asked, back - asked, everybody - asked


def run(python: str, script: pathlib.Path, rounds: int, seed: int) -> bool:
  """A row of the table, and whether all rounds succeeded."""
  dice = random.Random(f"{seed}/{script.name}")
  done, why = [], "all well"
  with tempfile.TemporaryDirectory(prefix="guide-") as folder:
    job = Job(python, script, pathlib.Path(folder))
    try:
      for process in range(PROCESSES):
        job.wait("the start", job.has_new(process, 0, PROCESSES))
      for number in range(rounds):
        done.append(one_round(job, number % 2 == 0, dice.random() * 2))
        print(f"  {script.name}, round {number}: " + ", ".join("-" if s is None else f"{s:.2f}" for s in done[-1]),
              file=sys.stderr, flush=True)
      if "recovery" in script.name:
        job.check_values()
    except Wrong as wrong:
      why = f"**{wrong}**"
    finally:
      job.end()
  columns = ([s for s in column if s is not None] for column in zip(*done))
  cells = (f"{statistics.median(column):.2f}, {max(column):.2f}" if column else "" for column in columns)
  print(f"| `{script.name}` | {len(done)} | {' | '.join(cells) if done else '| | |'} | {why} |", flush=True)
  return why == "all well"


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--rounds", type=int, default=10)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--python", default=sys.executable)
  parser.add_argument("--script", action="append", choices=list(SCRIPTS))
  options = parser.parse_args()
  print("| script | rounds | others alone: median, worst (s) | knows devices | first step | all | |\n|---|---|---|---|---|---|---|")
  return 0 if all([run(options.python, options.folder / script, options.rounds, options.seed)
                   for script in options.script or SCRIPTS]) else 1


if __name__ == "__main__":
  sys.exit(main())
