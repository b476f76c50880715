"""A job of members (member.py): its processes on this host, on two pretended ones, or of an mpirun, and how they end."""

import os
import pathlib
import signal
import subprocess
import sys
import time

from hosts import ON_HOSTS, free_port

MEMBER = pathlib.Path(__file__).parent / "member.py"
ERROR_CODE, WRONG_CODE = 7, 8  # of member.py: it has seen an error; it has got a wrong value
# A process on a pretended host prints its number and its exit code, which no other process sees.
ON_HOST = """'{python}' '{member}' $COORDINATOR $NUM_PROCESSES $PROCESS_ID 2>'{folder}'/$PROCESS_ID.err & echo $! >'{folder}'/$PROCESS_ID.pid
wait $!; echo $? >'{folder}'/$PROCESS_ID.code"""


class Job:
  """Processes 0 to `size` - 1, which share one pod; `transport`: what carries their messages.

  `shm`: processes of one host that jax.distributed.initialize() joins.  `ucx`: the same on two pretended hosts (needs root).
  `mpi`: the processes of an mpirun on this host; `mpi-hosts`: on the two hosts.  What a process says of itself is a file
  RANK.KIND of the folder.
  """

  def __init__(self, transport: str, size: int, folder: pathlib.Path, seed: int, **variables: str):
    (folder / "tmp").mkdir()
    self.transport, self.size, self.folder = transport, size, folder
    self._env = {**os.environ, "JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "2", "TF_CPP_MIN_LOG_LEVEL": "3",
                 "TMPDIR": str(folder / "tmp"), "RELIABILITY_FOLDER": str(folder), "RELIABILITY_SEED": str(seed), **variables}
    if not self.is_on_hosts():  # whose processes end with what has made them
      self._env["RELIABILITY_PARENT"] = str(os.getpid())
    self.processes = self._start()

  def _start(self) -> list[subprocess.Popen]:
    """The processes, or the one that starts them."""
    member = [sys.executable, str(MEMBER)]
    if self.transport == "mpi":
      return [self._popen(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.size),
                           *member, "mpi"])]
    if self.is_on_hosts():
      script = ON_HOST.format(python=sys.executable, member=MEMBER, folder=self.folder)
      plain, command = [], [*member, "mpi"]
      if self.transport == "ucx":
        plain, command = ["--plain"], ["bash", "-c", script]
      return [self._popen([*ON_HOSTS, *plain, "--hosts", "2", "--ranks", str(self.size // 2), "--", *command])]
    address = f"127.0.0.1:{free_port()}"
    return [self._popen([*member, address, str(self.size), str(rank)], open(self.folder / f"{rank}.err", "wb"))
            for rank in range(self.size)]

  def _popen(self, command, errors=None) -> subprocess.Popen:
    errors = errors or open(self.folder / "job.err", "wb")
    return subprocess.Popen(command, env=self._env, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)

  def is_on_hosts(self) -> bool:
    return self.transport in ("ucx", "mpi-hosts")

  def refusal(self) -> str:
    """Why there is no such job here, if there is none."""
    return "".join((self.folder / "job.err").read_text().splitlines()[-1:]) if self.is_on_hosts() else ""

  def pids(self) -> dict[int, int]:
    if self.transport == "shm":
      return {rank: process.pid for rank, process in enumerate(self.processes)}
    return {int(path.stem): int(path.read_text() or 0) for path in self.folder.glob("*.pid")}

  def runs(self) -> bool:
    return any(process.poll() is None for process in self.processes)

  def works_still(self, rank: int) -> bool:
    """Whether the process has not ended; one that has may be left for what started it to see."""
    try:
      return pathlib.Path(f"/proc/{self.pids()[rank]}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, KeyError):
      return False

  def said(self, kind: str) -> dict[int, str]:
    """By process, what those have said that have."""
    return {int(path.stem): path.read_text() for path in self.folder.glob(f"*.{kind}")}

  def wait_for_work(self, seconds: float) -> bool:
    """Whether all processes have done a step."""
    end = time.monotonic() + seconds
    while len(self.said("works")) < self.size:
      if time.monotonic() > end or not self.runs():
        return False
      time.sleep(0.02)
    return True

  def wait_for_end(self, seconds: float) -> list[str]:
    """Waits for the job, and ends processes that have not ended; returns their names."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and self.runs():
      time.sleep(0.02)
    hanging = []
    for rank, process in enumerate(self.processes):
      if process.poll() is not None:
        continue
      hanging.append(f"hangs: process {rank}" if self.transport == "shm" else "hangs")
      # The process that made the hosts removes them, and with them all processes on them.
      os.killpg(process.pid, signal.SIGTERM if self.is_on_hosts() else signal.SIGKILL)
      process.wait()
    return hanging

  def codes(self) -> dict[int, int]:
    """How each process has ended, as subprocess says it; of an mpirun unknown."""
    if self.transport == "shm":
      return {rank: process.returncode for rank, process in enumerate(self.processes)}
    codes = {rank: int(text) for rank, text in self.said("code").items()}  # as a shell says it
    return {rank: code if code < 128 else 128 - code for rank, code in codes.items()}

  def errors(self) -> str:
    """The last that each process has said on standard error."""
    return "".join(f"\n  {path.name}: {path.read_text(errors='replace')[-600:]}" for path in sorted(self.folder.glob("*.err")))


def things_left(folder: pathlib.Path, transport: str) -> set[str]:
  """What a job has left: of /dev/shm, which all share, and of its own folder for temporary files. Open MPI's segments
  may be those of another mpirun, if there is one."""
  kinds = ("minipod", "vader") if transport == "mpi" else ("minipod",)
  shared = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if any(kind in name for kind in kinds)}
  temporary = folder / "tmp"
  return shared | {f"TMPDIR/{path.name}" for path in (temporary.iterdir() if temporary.exists() else ())}
