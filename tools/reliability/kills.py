#!/usr/bin/env python3
"""Random SIGKILLs: what the survivors of a process see, and what is left behind.

    tools/reliability/kills.py --cases 200 --seed 1 [--processes 2,4,8] [--transport shm,ucx,mpi]

Each case starts processes that share one pod and do what programs do, over and over: compile, reduce over all devices,
move arrays between processes, read results.  At a moment that the seed chooses, from the start of Python on, one of them is
killed.  What is wanted: each survivor gets an error, names the dead process where it says who it is, and ends by itself
with the exit code of its script; nobody hangs or is aborted, and neither processes nor files in /dev/shm or /tmp stay.

`shm`: processes of one host that jax.distributed.initialize() joins.  `ucx`: the same on two pretended hosts (needs root).
`mpi`: the processes of an mpirun, which ends the others itself.  Where the first process is killed, which has JAX's coordination service, JAX itself ends the others
(with SIGABRT; counted apart).
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from hosts import HOSTS, free_port

MEMBER = pathlib.Path(__file__).parent / "member.py"
# A process on a pretended host says who it is and how it ended, which nobody else sees.
ON_HOST = """'{python}' '{member}' $COORDINATOR $NUM_PROCESSES $PROCESS_ID 2>'{folder}'/$PROCESS_ID.err & echo $! >'{folder}'/$PROCESS_ID.pid
wait $!; echo $? >'{folder}'/$PROCESS_ID.code"""
# From the start of Python on, in which a process of a job of this many is killed: before it meets the others, while it
# does, at work.
START_SECONDS = 4.0
WORK_SECONDS = 3.0
ERROR_CODE = 7  # of member.py: it has seen an error


def things_left(folder: pathlib.Path, transport: str) -> set[str]:
  """What a case has left: of /dev/shm, which all share, and of its own folder for temporary files. Open MPI's segments
  may be those of another mpirun, if there is one."""
  kinds = ("minipod", "vader") if transport == "mpi" else ("minipod",)
  shared = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if any(kind in name for kind in kinds)}
  return shared | {f"TMPDIR/{path.name}" for path in (folder / "tmp").iterdir()}


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
    self.slowest = 0.0  # seconds from the kill to a survivor's error
    self.outcomes: collections.Counter = collections.Counter()

  def _start(self, folder: pathlib.Path) -> list[subprocess.Popen]:
    env = {**os.environ, "JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "2", "TF_CPP_MIN_LOG_LEVEL": "3",
           "TMPDIR": str(folder / "tmp"), "RELIABILITY_FOLDER": str(folder),
           "RELIABILITY_SEED": str(self._random.randrange(1 << 30))}
    member = [sys.executable, str(MEMBER)]
    if self.transport == "mpi":
      words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.size)]
      return [subprocess.Popen([*words, *member, "mpi"], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)]
    if self.transport == "ucx":
      script = ON_HOST.format(python=sys.executable, member=MEMBER, folder=folder)
      words = [str(HOSTS), "--plain", "--hosts", "2", "--ranks", str(self.size // 2), "--", "bash", "-c", script]
      return [subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)]
    address = f"127.0.0.1:{free_port()}"
    return [subprocess.Popen([*member, address, str(self.size), str(rank)], env=env, stdout=subprocess.DEVNULL,
                             stderr=open(folder / f"{rank}.err", "wb"), start_new_session=True)
            for rank in range(self.size)]

  def _pids(self, folder: pathlib.Path, processes: list[subprocess.Popen]) -> dict[int, int]:
    if self.transport == "shm":
      return {rank: process.pid for rank, process in enumerate(processes)}
    return {int(path.stem): int(path.read_text() or 0) for path in folder.glob("*.pid")}

  def _wait_for_moment(self, folder: pathlib.Path, processes) -> None:
    if self.is_early:
      time.sleep(self._random.random() * START_SECONDS)
      return
    end = time.monotonic() + 120
    while time.monotonic() < end and len(list(folder.glob("*.works"))) < self.size:
      if all(process.poll() is not None for process in processes):
        return
      time.sleep(0.02)
    time.sleep(self._random.random() * WORK_SECONDS)

  def judge(self) -> str:
    """Runs the case; what there is to say of it."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
      folder = pathlib.Path(name)
      self._run(folder)
      said = [f"\n  {path.name}: {path.read_text(errors='replace')[-600:]}"
              for path in sorted(folder.glob("*.err")) if self.findings]
    when = "at the start" if self.is_early else "at work"
    return (f"{self.number}: {self.transport}, {self.size} processes, killed {self.victim} {when}:"
            f" {self.slowest:.2f} s{''.join('; ' + finding for finding in self.findings)}{''.join(said)}")

  def _run(self, folder: pathlib.Path) -> None:
    (folder / "tmp").mkdir()
    before = things_left(folder, self.transport)
    processes = self._start(folder)
    self._wait_for_moment(folder, processes)
    pids = self._pids(folder, processes)
    if not pids.get(self.victim):
      time.sleep(1)
      pids = self._pids(folder, processes)
    killed = time.time()
    try:
      os.kill(pids[self.victim], signal.SIGKILL)
    except (KeyError, ProcessLookupError):
      self.findings.append("the process to kill was not there")
    self._watch(folder, processes, killed)
    for path in sorted(things_left(folder, self.transport) - before):
      self.findings.append(f"left: {path}")

  def _watch(self, folder: pathlib.Path, processes, killed: float) -> None:
    end = time.monotonic() + self.patience
    while time.monotonic() < end and any(process.poll() is None for process in processes):
      time.sleep(0.02)
    for rank, process in enumerate(processes):
      if process.poll() is None:
        self.findings.append(f"hangs: process {rank}" if self.transport == "shm" else "hangs")
        # What has made hosts removes them, and with them whoever is on them.
        os.killpg(process.pid, signal.SIGTERM if self.transport == "ucx" else signal.SIGKILL)
        process.wait()
      elif self.transport == "shm" and rank != self.victim:
        self._judge(rank, process.returncode)
      elif self.transport == "mpi":
        self.outcomes["mpirun ended with an error" if process.returncode else "mpirun ended well"] += 1
    for path in folder.glob("*.code"):
      code = int(path.read_text())  # as a shell says it
      if int(path.stem) != self.victim:
        self._judge(int(path.stem), code if code < 128 else 128 - code)
    for path in folder.glob("*.error"):
      moment, _, text = path.read_text().partition(" ")
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
  parser.add_argument("--patience", type=float, default=60, help="seconds until a survivor counts as hanging")
  asked = parser.parse_args()
  outcomes: collections.Counter = collections.Counter()
  slowest, bad = [], 0
  sizes = [int(size) for size in asked.processes.split(",")]
  for number in range(asked.first, asked.first + asked.cases):
    case = Case(number, asked.seed, sizes, asked.transport.split(","), asked.patience)
    print(case.judge(), flush=True)
    outcomes += case.outcomes
    slowest.append(case.slowest)
    bad += bool(case.findings)
  middle = sorted(slowest)[len(slowest) // 2]
  print(f"\n{asked.cases} cases, {bad} with findings; slowest error {max(slowest):.2f} s, median {middle:.2f} s")
  for what, count in outcomes.most_common():
    print(f"  {count:5} {what}")
  return 1 if bad else 0


if __name__ == "__main__":
  sys.exit(main())
