"""Runs processes of TorchTPU that share a pod: by torchrun, or forked from one process that has imported torch once."""

import json
import pathlib
import subprocess
import sys
import tempfile

import pytest
import scenario
import torch_tpu_scenario as tpu

FOLDER = pathlib.Path(__file__).parent
COLLECTIVES = FOLDER / "torch_tpu_collectives.py"
KILLS = FOLDER / "torch_tpu_kills.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TWO_HOSTS = FOLDER.parents[1] / "mpi" / "two_hosts.sh"
REFUSED = 77

# Forks ranks, each of which runs `rank_main`, and prints each rank's exit code and output.  A kill of the process group
# would also hit the parent, so tests kill single ranks.
FORKS = """\
import os, signal, socket, sys, tempfile, time
import torch.distributed as dist

def free_port():
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]

def fork_ranks(count, rank_main, seconds=60):
  "The exit code (None: it hangs) and the output of each rank."
  port = free_port()
  files = [tempfile.TemporaryFile("w+") for _ in range(count)]
  pids = []
  for rank in range(count):
    pid = os.fork()
    if pid == 0:
      os.dup2(files[rank].fileno(), 1)
      os.dup2(files[rank].fileno(), 2)
      os.environ.update(LOCAL_RANK=str(rank), WORLD_SIZE=str(count), RANK=str(rank), MASTER_ADDR="127.0.0.1",
                        MASTER_PORT=str(port))
      code = 1
      try:
        dist.init_process_group("tpu_dist")
        rank_main(rank)
        code = 0
      except BaseException as error:
        os.write(1, f"{type(error).__name__}: {error}\\n".encode())
      os._exit(code)
    pids.append(pid)
  codes, end = [None] * count, time.time() + seconds
  while None in codes and time.time() < end:
    for rank, pid in enumerate(pids):
      if codes[rank] is None and (got := os.waitpid(pid, os.WNOHANG))[0]:
        codes[rank] = os.waitstatus_to_exitcode(got[1])
    time.sleep(0.01)
  for rank, pid in enumerate(pids):
    if codes[rank] is None:
      os.kill(pid, signal.SIGKILL)
  texts = []
  for file in files:
    file.seek(0)
    texts.append(file.read())
  return codes, texts
"""


def torchrun(script, *arguments, count=4, options=("--standalone",), pod="v6e:2x2", timeout=150, **variables):
  """Runs a script, or code: (return code, standard output, standard error)."""
  with tempfile.TemporaryDirectory() as folder:
    if not isinstance(script, pathlib.Path):
      path = pathlib.Path(folder) / "script.py"
      path.write_text(script)
      script = path
    process = subprocess.Popen([*TORCHRUN, *options, f"--nproc-per-node={count}", str(script), *arguments],
                               env=tpu.environment(pod, **variables), text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    return scenario.finish(process, timeout)


def two_hosts(script, *arguments, pod, timeout=240, **variables):
  """Runs a script by two agents of torchrun, each on a simulated host, with two ranks each."""
  agent = ('exec "$@" --nnodes 2 --node-rank $PROCESS_ID --nproc-per-node 2 --master-addr ${COORDINATOR%:*}'
           ' --master-port ${COORDINATOR#*:} $SCRIPT')
  return on_two_hosts(["sh", "-c", agent, "sh", *TORCHRUN], timeout,
                      tpu.environment(pod, SCRIPT=" ".join([str(script), *arguments]), **variables))


def on_two_hosts(command, timeout, environment):
  """Runs a command on each of two simulated hosts."""
  process = subprocess.Popen([str(TWO_HOSTS), "--plain", "--hosts", "2", "--", *command], env=environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
  returncode, out, err = scenario.finish(process, timeout)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  return returncode, out, err


class Results:
  """What each rank of the script of collectives found."""

  def __init__(self, run, ranks=4):
    """`run` starts the job with the name of a folder for its results: (return code, standard output, standard error)."""
    with tempfile.TemporaryDirectory() as folder:
      self.returncode, self.out, self.err = run(folder)
      self.by_rank = [self._read(pathlib.Path(folder) / f"{rank}.json") for rank in range(ranks)]
    self.has_ucx = [found.pop("libucp", None) for found in self.by_rank]
    self.digests = [{case: what for case, (_, what) in found.items()} for found in self.by_rank]

  def _read(self, path):
    return json.loads(path.read_text()) if path.exists() else {}

  def expect_all(self):
    """All cases are right in all ranks."""
    wrong = [f"rank {rank}: {case}: {what}" for rank, found in enumerate(self.by_rank)
             for case, (verdict, what) in found.items() if verdict != "ok"]
    assert not wrong, "\n".join(wrong)
    assert self.returncode == 0 and all(len(found) > 30 for found in self.by_rank), self.err[-3000:]
