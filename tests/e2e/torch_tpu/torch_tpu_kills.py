"""Kills a random rank of a training job at a random moment, again and again, and measures what the others see.

    torch_tpu_kills.py FOLDER COUNT SEED

Runs four ranks: all of them or, with PROCESS_ID and COORDINATOR of tests/mpi/two_hosts.sh, two on each of two hosts.
Ranks are forked, so that torch is imported once per host.  Jobs train by FSDP2 and by DistributedDataParallel in turn.
Each rank that is not killed writes JOB.RANK.json into the folder: how it ended, and how long after the kill.

By hand, 20 jobs on one host, which prints the worst time and what was wrong:

    MINIPOD_TOPOLOGY=v6e:2x2 python tests/e2e/torch_tpu/torch_tpu_kills.py "$(mktemp -d)" 20 1
"""

import json
import os
import pathlib
import random
import signal
import statistics
import sys
import threading
import time

import torch
from torch import nn
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

RANKS = 4
LIMIT_SECONDS = 60  # a rank that runs for longer hangs
PROMPT_SECONDS = 2
STAY_SECONDS = 3  # after an error: the end of a survivor must not be what others report
FOLDER = pathlib.Path(sys.argv[1])
FOLDER.mkdir(parents=True, exist_ok=True)


def train(kind: str) -> None:
  """Does not end by itself."""
  torch.manual_seed(0)
  model = nn.Sequential(*[nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)) for _ in range(3)]).to("tpu")
  if kind == "fsdp":
    for block in model:
      fully_shard(block)
    fully_shard(model)
  else:
    model = nn.parallel.DistributedDataParallel(model)
  optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
  x = torch.randn(16, 32).to("tpu")
  while True:
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()


def die_after(delay: float, note: pathlib.Path) -> None:
  def end():
    time.sleep(delay)
    note.write_text(str(time.time()))
    os.kill(os.getpid(), signal.SIGKILL)
  threading.Thread(target=end, daemon=True).start()


def run_rank(job: int, kind: str, rank: int, victim: int, delay: float) -> None:
  death = FOLDER / f"{job}.death"
  try:
    dist.init_process_group("tpu_dist")
    if rank == victim:
      die_after(delay, death)
    train(kind)
  except Exception as error:
    now = time.time()
    after = now - float(death.read_text()) if death.exists() else None
    found = {"kind": kind, "victim": victim, "delay": delay, "after": after, "error": str(error)}
    (FOLDER / f"{job}.{rank}.json").write_text(json.dumps(found))
    time.sleep(STAY_SECONDS)


def fork(job: int, kind: str, rank: int, local: int, victim: int, delay: float) -> int:
  pid = os.fork()
  if pid != 0:
    return pid
  os.environ.update(RANK=str(rank), LOCAL_RANK=str(local), WORLD_SIZE=str(RANKS))
  output = os.open(FOLDER / f"{job}.{rank}.log", os.O_CREAT | os.O_WRONLY, 0o600)
  os.dup2(output, 1)
  os.dup2(output, 2)
  try:
    run_rank(job, kind, rank, victim, delay)
  finally:
    os._exit(0)


def await_ranks(pids: list[int]) -> None:
  """Kills those that hang."""
  end = time.time() + LIMIT_SECONDS
  while pids and time.time() < end:
    pids = [pid for pid in pids if os.waitpid(pid, os.WNOHANG)[0] == 0]
    time.sleep(0.02)
  for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def judge(count: int) -> tuple[list[float], list[str]]:
  """The times of all ranks that ended as they should, and what was wrong with the others."""
  times, wrong = [], []
  for job in range(count):
    victims = {json.loads(file.read_text())["victim"] for file in FOLDER.glob(f"{job}.*.json")}
    for rank in set(range(RANKS)) - victims:
      file = FOLDER / f"{job}.{rank}.json"
      found = json.loads(file.read_text()) if file.exists() else None
      if found is None:
        wrong.append(f"job {job}: rank {rank} hangs")
      elif found["after"] is None or f"process {found['victim']} " not in found["error"]:
        wrong.append(f"job {job}: rank {rank}: {found}")
      else:
        times.append(found["after"])
  return times, wrong


def main() -> None:
  count, seed = int(sys.argv[2]), int(sys.argv[3])
  address, _, port = os.environ.get("COORDINATOR", "127.0.0.1:29600").rpartition(":")
  host = int(os.environ.get("PROCESS_ID", "0"))
  here = RANKS if "COORDINATOR" not in os.environ else RANKS // 2
  choose = random.Random(seed)  # alike on all hosts
  for job in range(count):
    kind, victim, delay = ["fsdp", "ddp"][job % 2], choose.randrange(RANKS), choose.uniform(0.1, 2)
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=str(int(port) + job))
    await_ranks([fork(job, kind, host * here + i, i, victim, delay) for i in range(here)])
  if host == 0:
    time.sleep(STAY_SECONDS if here < RANKS else 0)
    times, wrong = judge(count)
    late = sum(after > PROMPT_SECONDS for after in times)
    print(f"{count} kills: {len(times)} of {count * (RANKS - 1)} ranks ended with the name, half of them within"
          f" {statistics.median(times or [0]):.2f} s, the last after {max(times, default=0):.2f} s, {late} after more than"
          f" {PROMPT_SECONDS} s (load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores)", *wrong, sep="\n", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
  main()
