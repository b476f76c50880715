"""A job: processes that share one pod, on this host, on two simulated ones, or of an mpirun, and how they end."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

HOSTS = pathlib.Path(__file__).parents[2] / "tests" / "mpi" / "two_hosts.sh"
# The command that makes hosts (network namespaces, which need root) and runs another one there. It ends with what has started
# it, and ends all processes there.
ON_HOSTS = ["setpriv", "--pdeathsig", "TERM", str(HOSTS)]
REFUSED = 77  # its status where such hosts cannot be made; it says why
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MEMBER = [sys.executable, str(pathlib.Path(__file__).parent / "member.py")]
ERROR_CODE, WRONG_CODE = 7, 8  # of member.py: it has seen an error; it has got a wrong value
# What a process runs: it leaves its number, its standard error and its exit code in the folder. Those of an mpirun leave their
# number alone, because mpirun has to have them as its own.
WRITES = """
folder=$1; shift
if [ "$OMPI_COMM_WORLD_RANK" ]; then echo $$ >"$folder/$OMPI_COMM_WORLD_RANK.pid"; exec "$@"; fi
"$@" 2>"$folder/$PROCESS_ID.err" & echo $! >"$folder/$PROCESS_ID.pid"
wait $!; code=$?; echo $code >"$folder/$PROCESS_ID.code"; exit $code"""


def free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


def join(**options) -> int:
  """In a process of a job: meets the others, where no mpirun has joined them; its rank."""
  import jax

  if "COORDINATOR" in os.environ:
    jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]), **options)
  return jax.process_index()


class Job:
  """Processes 0 to `size` - 1 of a command; `transport`: what carries their messages.

  `shm`: processes of one host that jax.distributed.initialize() joins.  `ucx`: the same on two simulated hosts (needs root).
  `mpi`: the processes of an mpirun on this host; `mpi-hosts`: on the two hosts.  What a process says of itself is a file
  RANK.KIND of the folder; job.out and job.err have the rest.
  """

  def __init__(self, transport: str, size: int, command: list[str], folder: pathlib.Path, **variables: str):
    self.transport, self.size, self.folder = transport, size, folder
    environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_DEVICES": "2", "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    with open(folder / "job.out", "wb") as out, open(folder / "job.err", "wb") as err:
      self.processes = [subprocess.Popen(each, env=environment | own, stdout=out, stderr=err, start_new_session=True)
                        for each, own in self._commands(["bash", "-c", WRITES, "bash", str(folder), *command])]

  def _commands(self, process: list[str]) -> list[tuple[list[str], dict[str, str]]]:
    """What starts the processes, each with variables of its own."""
    if self.transport == "shm":
      job = {"COORDINATOR": f"127.0.0.1:{free_port()}", "NUM_PROCESSES": str(self.size)}
      return [(process, job | {"PROCESS_ID": str(rank)}) for rank in range(self.size)]
    if self.transport == "mpi":
      return [([*MPIRUN, "-n", str(self.size), *process], {})]
    plain = ["--plain"] if self.transport == "ucx" else []
    return [([*ON_HOSTS, *plain, "--hosts", "2", "--ranks", str(self.size // 2), "--", *process], {})]

  def refusal(self) -> str:
    """Why there is no such job here, if there is none."""
    if any(process.poll() == REFUSED for process in self.processes):
      return (self.folder / "job.err").read_text().strip().splitlines()[-1]
    return ""

  def said(self, kind: str) -> dict[int, str]:
    """By process, what those have said that have."""
    return {int(path.stem): path.read_text(errors="replace") for path in self.folder.glob(f"[0-9]*.{kind}")}

  def pids(self) -> dict[int, int]:
    return {rank: int(text or 0) for rank, text in self.said("pid").items()}

  def runs(self) -> bool:
    return any(process.poll() is None for process in self.processes)

  def works_still(self, rank: int) -> bool:
    """Whether the process is still running.  A process that has ended may wait for its parent to notice."""
    try:
      return pathlib.Path(f"/proc/{self.pids()[rank]}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, KeyError):
      return False

  def wait(self, seconds: float, is_done=lambda: False) -> bool:
    """Until it is done, which is returned, or the job or the time is over."""
    end = time.monotonic() + seconds
    while not (done := is_done()) and self.runs() and time.monotonic() < end:
      time.sleep(0.005)
    return done

  def wait_for_work(self, seconds: float) -> bool:
    """Whether all processes have done a step."""
    return self.wait(seconds, lambda: len(self.said("works")) == self.size)

  def wait_for_end(self, seconds: float) -> list[str]:
    """Waits for the job, and ends processes that have not ended; returns their names."""
    self.wait(seconds)
    hanging = []
    for rank, process in enumerate(self.processes):
      if process.poll() is not None:
        continue
      hanging.append(f"hangs: process {rank}" if self.transport == "shm" else "hangs")
      # The process that made the hosts removes them, and with them all processes on them.
      os.killpg(process.pid, signal.SIGTERM if self.transport in ("ucx", "mpi-hosts") else signal.SIGKILL)
      process.wait()
    return hanging

  def codes(self) -> dict[int, int]:
    """How each process has ended, as subprocess says it; of an mpirun unknown."""
    codes = {rank: int(text) for rank, text in self.said("code").items()}  # as a shell says it
    return {rank: code if code < 128 else 128 - code for rank, code in codes.items()}

  def errors(self) -> str:
    """The last lines that each process has printed on standard error."""
    return "".join(f"\n  {path.name}: {path.read_text(errors='replace')[-600:]}" for path in sorted(self.folder.glob("*.err")))
