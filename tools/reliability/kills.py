#!/usr/bin/env python3
"""Random SIGKILLs: what the survivors of a process see, and what is left behind.

    tools/reliability/kills.py --cases 200 --seed 1 [--processes 2,4,8] [--transport shm,ucx,mpi]

Each case starts processes that share one pod and do what programs do, over and over: compile, reduce over all devices,
move arrays between processes, read results.  At a moment that the seed chooses, from the start of Python on, one of
them is killed.  Required: each survivor gets an error, which names the dead process if it names one, and ends by itself
with the exit code of its script; none hangs or is aborted, and neither processes nor files in /dev/shm or /tmp stay.

`shm`: processes of one host that jax.distributed.initialize() joins.  `ucx`: the same on two pretended hosts (needs root).
`mpi`: the processes of an mpirun, which ends the others itself: within the second that it gives them they name the dead
one, and what is measured is when the last of them has ended.  Where the first process is killed, which has JAX's coordination service, JAX itself ends the others
(with SIGABRT; counted apart).
"""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import statistics
import sys
import tempfile
import time

from job import ERROR_CODE, Job, things_left

# From the start of Python on, in which a process of a job of this many is killed: before it meets the others, while it
# does, at work.
START_SECONDS = 4.0
WORK_SECONDS = 3.0
# What is still there after so long has been left.
MOMENT_SECONDS = 5.0
# For so long Python may load JAX.
IMPORT_SECONDS = 300.0


class Case:
  """One job, one of whose processes is killed."""

  def __init__(self, number: int, seed: int, sizes: list[int], transports: list[str], patience: float):
    self._random = random.Random(f"{seed}/{number}")
    self.number = number
    self.transport = self._random.choice(transports)
    self.size = self._random.choice(sizes)
    self.victim = self._random.randrange(self.size)
    self.is_early = self._random.random() < 0.3
    self.patience = patience
    self.findings: list[str] = []
    self.slowest = 0.0  # seconds from the kill to a survivor's error, or to its end by mpirun
    self.outcomes: collections.Counter = collections.Counter()

  def _wait_for_moment(self, job: Job) -> None:
    if self.is_early:
      time.sleep(self._random.random() * START_SECONDS)
    elif job.wait_for_work(120):
      time.sleep(self._random.random() * WORK_SECONDS)

  def judge(self) -> str:
    """Runs the case; what there is to say of it."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
      folder = pathlib.Path(name)
      said = self._run(folder)
    when = "at the start" if self.is_early else "at work"
    return (f"{self.number}: {self.transport}, {self.size} processes, killed {self.victim} {when}:"
            f" {self.slowest:.2f} s{''.join('; ' + finding for finding in self.findings)}{said}")

  def _run(self, folder: pathlib.Path) -> str:
    """What the processes have said, if there is a finding."""
    before = things_left(folder, self.transport)
    job = Job(self.transport, self.size, folder, self._random.randrange(1 << 30))
    self._wait_for_moment(job)
    # A launcher may not have come to it yet.
    end = time.monotonic() + self.patience
    while not job.pids().get(self.victim) and job.runs() and time.monotonic() < end:
      time.sleep(0.02)
    killed = time.time()
    try:
      os.kill(job.pids()[self.victim], signal.SIGKILL)
    except (KeyError, ProcessLookupError):
      self.findings.append("the process to kill was missing")
    self._watch(job, killed)
    left = things_left(folder, self.transport) - before
    end = time.monotonic() + MOMENT_SECONDS
    while left and time.monotonic() < end:  # some may be those of another job, which goes on
      time.sleep(0.1)
      left &= things_left(folder, self.transport)
    self.findings += [f"left: {path}" for path in sorted(left)]
    return job.errors() if self.findings else ""

  def _watch_mpirun(self, job: Job, killed: float) -> None:
    """What mpirun does to the survivors, which do not come to raise what they know."""
    while job.runs() and time.time() < killed + self.patience:
      if any(job.works_still(rank) for rank in job.pids() if rank != self.victim):
        self.slowest = time.time() - killed
      time.sleep(0.005)
    self.findings += job.wait_for_end(self.patience)
    self.outcomes["mpirun ended with an error" if job.processes[0].returncode else "mpirun ended well"] += 1
    names = re.search(rf"minipod: process {self.victim} .*ended unexpectedly", job.errors())
    if not self.is_early:  # earlier they may not have met
      self.outcomes["a survivor named the dead process in mpirun's output" if names else "none of mpirun's named it"] += 1

  def _wait_for_survivors(self, job: Job) -> None:
    """Until those that live have loaded JAX, which on a busy machine takes longer than the patience with what they do then."""
    end = time.monotonic() + IMPORT_SECONDS
    while len(job.said("joins").keys() - {self.victim}) < self.size - 1 and job.runs() and time.monotonic() < end:
      time.sleep(0.02)

  def _watch(self, job: Job, killed: float) -> None:
    if self.transport == "mpi":
      self._watch_mpirun(job, killed)
    else:
      self._wait_for_survivors(job)
      self.findings += job.wait_for_end(self.patience)
    for rank, code in job.codes().items():
      if rank != self.victim:
        self._judge(rank, code)
    for text in job.said("error").values():
      moment, _, text = text.partition(" ")
      self.slowest = max(self.slowest, float(moment) - killed)
      self.outcomes[text.split(":")[0].strip()[:40]] += 1

  def _judge(self, rank: int, code: int) -> None:
    if code == ERROR_CODE:
      self.outcomes["survivor saw an error"] += 1
    elif code == -signal.SIGABRT and self.victim == 0:
      self.outcomes["JAX ended a survivor of the first process"] += 1
    elif code == -signal.SIGABRT and self.is_early:
      self.outcomes["JAX ended a survivor at the start"] += 1
    else:
      self.findings.append(f"process {rank} ended with {code}")


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--cases", type=int, default=20)
  parser.add_argument("--first", type=int, default=0, help="number of the first case")
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--processes", default="2,4,8")
  parser.add_argument("--transport", default="shm,ucx,mpi")
  parser.add_argument("--patience", type=float, default=60, help="seconds until a survivor that has loaded JAX counts as hanging")
  asked = parser.parse_args()
  outcomes: collections.Counter = collections.Counter()
  slowest, bad = collections.defaultdict(list), 0
  sizes = [int(size) for size in asked.processes.split(",")]
  for number in range(asked.first, asked.first + asked.cases):
    case = Case(number, asked.seed, sizes, asked.transport.split(","), asked.patience)
    print(case.judge(), flush=True)
    outcomes += case.outcomes
    slowest[case.transport].append(case.slowest)
    bad += bool(case.findings)
  print(f"\n{asked.cases} cases, {bad} with findings")
  for transport, seconds in slowest.items():
    what = "survivor's end by mpirun" if transport == "mpi" else "error"
    print(f"  {transport}: {len(seconds)} cases; slowest {what} {max(seconds):.2f} s, median {statistics.median(seconds):.2f} s")
  for what, count in outcomes.most_common():
    print(f"  {count:5} {what}")
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
