#!/usr/bin/env python3
"""Stops processes for a while, and makes links lose packets or cuts them.  Results must be right, or an error; never a
wrong value, never a hang.

    tools/reliability/silences.py --stops 50 --links 20 --seed 1 [--processes 2,4] [--transport shm,ucx,mpi]

Each case starts a job (job.py) whose processes compile, reduce, permute and move arrays repeatedly, and check each
value.

- A *stop* is a SIGSTOP of one process for 1 to 20 s, with a longer or shorter MINIPOD_COLLECTIVE_TIMEOUT_S.  If the
  limit is longer, all processes must continue as if nothing had happened.  If it is shorter, all others must end soon
  after the limit, with an error that names the silent process.  The stopped process must end when it continues.
- A *link* is the one between two simulated hosts (needs root).  It loses 2 to 30 % of its packets for 2 to 15 s, or it
  is cut for 1 to 25 s and restored, with a limit of 4 or 120 s.  All processes must continue, or all must end with an
  error.

A *link* is the one between two simulated hosts (needs root): it loses 2 to 30 % of its packets for 2 to 15 s, or it is cut for 1 to 25 s
and restored, with a limit of 4 or of 120 s. All must continue, or all must end with an error.

A case is made of its number and the seed alone: `--first 17 --stops 1`, `--first 3 --stops 0 --links 1`.
"""

import argparse
import os
import pathlib
import signal
import sys
import time

import case
from cable import Cable
from job import ERROR_CODE, Job

PATIENCE = 90  # seconds after which a process counts as hung
# Seconds by which an error may be late: the others need the silent process only some time after it has stopped, and
# give it two to answer.
SLACK = 5
HEARTBEAT = "100"  # seconds of JAX's heartbeat, which should not end a job here


class Silence(case.Case):
  """Processes do not hear of each other for a while; `slowest`: of an error after the limit."""

  def __init__(self, kind: str, number: int, options: argparse.Namespace, transports: list[str]):
    super().__init__(number, f"{options.seed}/{kind}/{number}", options, transports)
    self.kind = kind
    self.limit = 0
    self.what = ""
    self.outcome = ""

  def title(self) -> str:
    return (f"{self.kind} {self.number}: {self.transport}, {self.size} processes, {self.what}, limit {self.limit} s: {self.outcome}")

  def run(self, folder: pathlib.Path) -> Job:
    job = self.start(folder, RELIABILITY_HEARTBEAT_S=HEARTBEAT, MINIPOD_COLLECTIVE_TIMEOUT_S=str(self.limit),
                     MINIPOD_COLLECTIVE_WARN_S="0")
    if job.wait_for_work(120):
      time.sleep(self.dice.random() * 2)
      self._disturb(job)
      (folder / "enough").touch()
    else:
      self.findings.append(job.refusal() or "it has not begun to work")
    self.findings += job.wait_for_end(PATIENCE)
    self._judge_end(job)
    self.outcomes[f"{self.kind}, {self.transport}: {self.outcome}"] += 1
    return job

  def _disturb(self, job: Job) -> None:
    raise NotImplementedError

  def _judge_end(self, job: Job) -> None:
    self.findings += [f"process {rank}: **wrong**: {text}" for rank, text in job.said("wrong").items()]
    right, errors = job.said("right"), job.said("error")
    self.outcome = "all right" if len(right) == self.size else f"{len(errors)} errors, {len(right)} right"
    for rank, code in job.codes().items():
      if code == -signal.SIGABRT and 0 in errors:
        self.outcome += ", 1 then ended by JAX"  # process 0, which runs JAX's service, had ended
      elif code != (0 if rank in right else ERROR_CODE):
        self.findings.append(f"process {rank} ended with {code}")


class Stop(Silence):
  """One process is silent for a while."""

  def __init__(self, number: int, options: argparse.Namespace):
    super().__init__("stop", number, options, options.transport.split(","))
    if self.transport == "mpi":
      self.transport = self.dice.choice(["mpi", "mpi-hosts"])
    self.victim = self.dice.randrange(self.size)
    self.is_under = self.dice.random() < 0.5
    self.seconds = round(self.dice.uniform(1 if self.is_under else 6, 20), 1)
    self.limit = int(self.seconds + self.dice.uniform(4, 20) if self.is_under else self.dice.uniform(1, self.seconds - SLACK + 1))
    self.what = f"{self.victim} silent for {self.seconds} s"

  def _disturb(self, job: Job) -> None:
    pid, begin = job.pids()[self.victim], time.time()
    os.kill(pid, signal.SIGSTOP)
    job.wait(self.seconds)  # mpirun ends the stopped process with the first that has an error
    try:
      os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
      pass
    if not self.is_under:
      self._judge_errors(job, begin)

  def _judge_errors(self, job: Job, begin: float) -> None:
    """Of those that the silent process has kept waiting longer than the limit."""
    wanted = 1 if self.transport.startswith("mpi") else self.size - 1  # mpirun ends those that have no error yet
    job.wait(SLACK, lambda: len(job.said("error")) >= wanted)
    errors = {rank: text for rank, text in job.said("error").items() if rank != self.victim}
    for rank, text in errors.items():
      moment, _, words = text.partition(" ")
      self.slowest = max(self.slowest, float(moment) - begin - self.limit)
      if f"process {self.victim} " not in words and "process " not in words:
        self.findings.append(f"process {rank} is not told who: {words}")
    if len(errors) < wanted:
      self.findings.append(f"{len(errors)} of {wanted} errors in time")
    if self.slowest > SLACK:
      self.findings.append(f"an error {self.slowest:.1f} s after the limit")

  def _judge_end(self, job: Job) -> None:
    super()._judge_end(job)
    if self.is_under and len(job.said("right")) < self.size:
      self.findings.append(f"not all continue: {job.said('error')}")


class Link(Silence):
  """The hosts hear each other badly, or not at all, for a while."""

  def __init__(self, number: int, options: argparse.Namespace):
    on_hosts = [{"mpi": "mpi-hosts"}.get(name, name) for name in options.transport.split(",") if name != "shm"]
    super().__init__("link", number, options, on_hosts)
    self.limit = self.dice.choice([4, 120])
    self.share = self.dice.choice([None, round(self.dice.uniform(0.02, 0.3), 2)])
    self.seconds = round(self.dice.uniform(2, 15) if self.share else self.dice.uniform(1, 25), 1)
    self.what = f"{f'{self.share:.0%} lost' if self.share else 'cut'} for {self.seconds} s"

  def _disturb(self, job: Job) -> None:
    cable = Cable(job.processes[0].pid, self.dice)
    if self.share:
      cable.lose(self.share)
    else:
      cable.cut()
    time.sleep(self.seconds)
    cable.mend()
    if self.share:
      self.what += f" ({cable.lost} of {cable.lost + cable.passed} packets)"


def main() -> int:
  parser = case.parser(__doc__, "2,4")
  parser.add_argument("--stops", type=int, default=5)
  parser.add_argument("--links", type=int, default=5)
  options = parser.parse_args()
  numbers = [(Stop, number) for number in range(options.stops)] + [(Link, number) for number in range(options.links)]
  return case.judge_all([kind(options.first + number, options) for kind, number in numbers])


if __name__ == "__main__":
  sys.exit(main())
