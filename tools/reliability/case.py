"""Cases of kills.py and silences.py: a job of member.py that something happens to, and a run of many."""

import argparse
import collections
import os
import pathlib
import random
import statistics
import tempfile

from job import MEMBER, Job


class Case:
  """A job that is disturbed once; all that it does is of its number and the seed."""

  def __init__(self, number: int, seed: str, options: argparse.Namespace, transports: list[str]):
    self.number = number
    self.dice = random.Random(seed)
    self.transport = self.dice.choice(transports)
    self.size = self.dice.choice([int(size) for size in options.processes.split(",")])
    self.findings: list[str] = []
    self.slowest = 0.0  # seconds, of an error
    self.outcomes: collections.Counter = collections.Counter()

  def start(self, folder: pathlib.Path, **variables: str) -> Job:
    (folder / "tmp").mkdir()
    variables |= {"TMPDIR": str(folder / "tmp"), "RELIABILITY_FOLDER": str(folder), "RELIABILITY_SEED": str(self.dice.randrange(1 << 30))}
    if self.transport in ("shm", "mpi"):  # hosts, and their processes, end with what has made them
      variables["RELIABILITY_PARENT"] = str(os.getpid())
    return Job(self.transport, self.size, MEMBER, folder, **variables)

  def run(self, folder: pathlib.Path) -> Job:
    """Starts a job, disturbs it, and judges it."""
    raise NotImplementedError

  def title(self) -> str:
    raise NotImplementedError

  def judge(self) -> str:
    """Runs the case; what there is to say of it."""
    with tempfile.TemporaryDirectory(prefix="case-") as name:
      job = self.run(pathlib.Path(name))
      said = job.errors() if self.findings else ""
    return f"{self.title()}{''.join('; ' + finding for finding in self.findings)}{said}"


def parser(doc: str, processes: str) -> argparse.ArgumentParser:
  made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
  made.add_argument("--first", type=int, default=0, help="number of the first case of each kind")
  made.add_argument("--seed", type=int, default=1)
  made.add_argument("--processes", default=processes)
  made.add_argument("--transport", default="shm,ucx,mpi")
  return made


def judge_all(cases: list[Case]) -> int:
  """Judges case by case, and says the result of all; the exit code is 1 if there are findings."""
  for case in cases:
    print(case.judge(), flush=True)
  bad = sum(bool(case.findings) for case in cases)
  print(f"\n{len(cases)} cases, {bad} with findings; the slowest error, or end by mpirun, of a case:")
  for transport in sorted({case.transport for case in cases}):
    slowest = [case.slowest for case in cases if case.transport == transport]
    print(f"  {transport}: {len(slowest)} cases; at most {max(slowest):.2f} s, median {statistics.median(slowest):.2f} s")
  for what, count in sum((case.outcomes for case in cases), collections.Counter()).most_common():
    print(f"  {count:5} {what}")
  return 1 if bad else 0
