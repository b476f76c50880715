#!/usr/bin/env python3
"""Kills processes at random moments, and checks what the survivors see and which files are left.

    tools/reliability/kills.py --cases 200 --seed 1 [--processes 2,4,8] [--transport shm,ucx,mpi]

Each case starts processes that share one pod.  They do repeatedly what programs do: compile, reduce over all devices,
move arrays between processes, read results.  At a moment that the seed chooses, from the start of Python on, one of
them is killed with SIGKILL.

`shm`: processes of one host that jax.distributed.initialize() joins.  `ucx`: the same on two simulated hosts (needs root).
`mpi`: the processes of an mpirun, which ends the others itself: within the second that it gives them they name the dead
one, and what is measured is when the last of them has ended.  Where the first process is killed, which has JAX's coordination service, JAX itself ends the others
(with SIGABRT; counted apart).
"""

import os
import pathlib
import re
import signal
import sys
import time

import case
from job import ERROR_CODE, Job

# The time from the start of Python within which a process of a job of this size is killed: before it meets the others,
# while it does, or at work.
START_SECONDS = 4.0
WORK_SECONDS = 3.0
# Files and processes that still exist after this time count as left.
MOMENT_SECONDS = 5.0
# Python may take this long to load JAX.
IMPORT_SECONDS = 300.0


def things_left(folder: pathlib.Path, transport: str) -> set[str]:
  """What a job has left: of /dev/shm, which all share, and of its own folder for temporary files. Open MPI's segments
  may be those of another mpirun, if there is one."""
  kinds = ("minipod", "vader") if transport == "mpi" else ("minipod",)
  shared = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if any(kind in name for kind in kinds)}
  return shared | {f"TMPDIR/{path.name}" for path in (folder / "tmp").glob("*")}


class Kill(case.Case):
  """One of the processes is killed."""

  def __init__(self, number: int, options):
    super().__init__(number, f"{options.seed}/{number}", options, options.transport.split(","))
    self.victim = self.dice.randrange(self.size)
    self.is_early = self.dice.random() < 0.3
    self.patience = options.patience

  def title(self) -> str:
    when = "at the start" if self.is_early else "at work"
    return f"{self.number}: {self.transport}, {self.size} processes, killed {self.victim} {when}: {self.slowest:.2f} s"

  def run(self, folder: pathlib.Path) -> Job:
    before = things_left(folder, self.transport)
    job = self.start(folder)
    if self.is_early:
      time.sleep(self.dice.random() * START_SECONDS)
    elif job.wait_for_work(120):
      time.sleep(self.dice.random() * WORK_SECONDS)
    # A launcher may not have come to it yet.
    job.wait(self.patience, lambda: job.pids().get(self.victim))
    killed = time.time()
    try:
      os.kill(job.pids()[self.victim], signal.SIGKILL)
    except (KeyError, ProcessLookupError):
      self.findings.append(job.refusal() or "the process to kill was missing")
    self._watch(job, killed)
    left = things_left(folder, self.transport) - before
    end = time.monotonic() + MOMENT_SECONDS
    while left and time.monotonic() < end:  # some may belong to another job, which is still running
      time.sleep(0.1)
      left &= things_left(folder, self.transport)
    self.findings += [f"left: {path}" for path in sorted(left)]
    return job

  def _watch_mpirun(self, job: Job, killed: float) -> None:
    """mpirun ends the survivors before they can raise their error."""
    while job.runs() and time.time() < killed + self.patience:
      if any(job.works_still(rank) for rank in job.pids() if rank != self.victim):
        self.slowest = time.time() - killed
      time.sleep(0.005)
    self.findings += job.wait_for_end(self.patience)
    self.outcomes["mpirun ended with an error" if job.processes[0].returncode else "mpirun ended well"] += 1
    names = re.search(rf"minipod: process {self.victim} .*ended unexpectedly", job.errors())
    if not self.is_early:  # earlier they may not have met
      self.outcomes["a survivor named the dead process in mpirun's output" if names else "none of mpirun's named it"] += 1

  def _watch(self, job: Job, killed: float) -> None:
    if self.transport == "mpi":
      self._watch_mpirun(job, killed)
    else:
      # On a busy machine loading JAX takes longer than the patience with what survivors do then.
      job.wait(IMPORT_SECONDS, lambda: len(job.said("joins").keys() - {self.victim}) == self.size - 1)
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
  parser = case.parser(__doc__, "2,4,8")
  parser.add_argument("--cases", type=int, default=20)
  parser.add_argument("--patience", type=float, default=60, help="seconds until a survivor that has loaded JAX counts as hanging")
  options = parser.parse_args()
  return case.judge_all([Kill(options.first + i, options) for i in range(options.cases)])


if __name__ == "__main__":
  sys.exit(main())
