"""PyTorch/XLA in four processes of a device each, started by torch_xla.launch, torchrun and mpirun."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch_xla")

import models
import mpirun
import scenario
import torch_scenario

COUNT, TOLERANCE, SECONDS = 4, 1e-4, 170

# Lines of several processes may mix, so each writes a file.
SAY = """
import os, sys
def say(*words):
  with open(f"said-{xr.global_ordinal()}", "w") as file:
    print(*words, file=file)
"""

# A user's script that runs in all three ways.
MAIN = """
import torch.distributed as dist

def main():
  if "RANK" in os.environ:  # torchrun
    dist.init_process_group("xla", init_method="xla://")
    work(0)
  else:
    torch_xla.launch(work)

if __name__ == "__main__":
  main()
"""

TRAIN = """
import replica

def work(index):
  losses, statistics = replica.train(sys.argv[1])
  say(xr.process_count(), *losses, *statistics)
"""

# Each function of xm with its result on rank r of 4, whose input is r + 1.
COLLECTIVES = """
def work(index):
  device, rank, count = torch_xla.device(), xr.global_ordinal(), xr.world_size()
  mine = torch.full((4,), rank + 1.0, device=device)
  total, everybody = sum(range(1, count + 1)), [float(r + 1) for r in range(count)]

  def check(what, got, wanted):
    assert got.cpu().flatten().tolist() == wanted, (rank, what, got.cpu(), wanted)

  check("all_reduce", xm.all_reduce(xm.REDUCE_SUM, mine), [total] * 4)
  check("max", xm.all_reduce(xm.REDUCE_MAX, mine), [count] * 4)
  groups = [[0, 1], [2, 3]]
  check("groups", xm.all_reduce(xm.REDUCE_SUM, mine, groups=groups), [3.0 if rank < 2 else 7.0] * 4)
  for pin in True, False:
    check("all_gather", xm.all_gather(mine[:1], pin_layout=pin), everybody)
  check("reduce_scatter", xm.reduce_scatter(xm.REDUCE_SUM, mine, 1.0, 0, count), [total])
  check("all_to_all", xm.all_to_all(mine, 0, 0, count), everybody)
  pairs = [[r, (r + 1) % count] for r in range(count)]
  check("collective_permute", xm.collective_permute(mine[:1], pairs), [(rank - 1) % count + 1.0])
  assert xm.mesh_reduce("tag", rank + 1, sum) == total
  assert xm.rendezvous("here", b"%d" % rank) == [b"%d" % r for r in range(count)]
  say("right", rank, "of", count, "in", xr.process_count())
"""

# Rank 2 does not take part in the operation that the others wait for.
SKIPPED = """
import time

def work(index):
  device, rank = torch_xla.device(), xr.global_ordinal()
  xm.all_reduce(xm.REDUCE_SUM, torch.ones(2, device=device)).cpu()
  if rank == 2:
    time.sleep(20)
    return
  try:
    xm.all_reduce(xm.REDUCE_SUM, torch.ones(3, device=device)).cpu()
  except Exception as error:
    say(error)
    raise
"""


def by_launch(script, *arguments):
  return [sys.executable, script, *arguments]


def by_torchrun(script, *arguments):
  return [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(COUNT),
          "--standalone", script, *arguments]


def by_mpirun(script, *arguments):
  return [mpirun.LAUNCHER, *mpirun.OPTIONS, "-n", str(COUNT), sys.executable, script, *arguments]


WAYS = [by_launch, by_torchrun, pytest.param(by_mpirun, marks=mpirun.NEEDS_MPIRUN)]


def run(way, work, folder, *arguments, **variables):
  """The exit code of the finished job, its output, and the file of each rank."""
  script = folder / "script.py"
  here = os.path.dirname(os.path.abspath(__file__))
  script.write_text(torch_scenario.PRELUDE.format(here=here) + SAY + work + MAIN)
  env = mpirun.environment(1, PJRT_DEVICE="MINIPOD", OMP_NUM_THREADS="1", **variables)
  if way is by_launch:
    env["MINIPOD_PROCESSES"] = str(COUNT)
  running = subprocess.Popen(way(str(script), *arguments), env=env, text=True, cwd=folder,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
  code, out, err = scenario.finish(running, SECONDS)
  said = [folder / f"said-{rank}" for rank in range(COUNT)]
  return code, out + err, [path.read_text() if path.exists() else "" for path in said]


@pytest.mark.parametrize("way", WAYS)
def test_collectives(way, tmp_path):
  code, out, said = run(way, COLLECTIVES, tmp_path)
  assert code == 0, out
  assert said == [f"right {rank} of {COUNT} in {COUNT}\n" for rank in range(COUNT)]


@pytest.fixture(scope="module", params=["cnn", "transformer"])
def trained(request):
  """(model, its losses and each replica's statistics on torch's CPU)"""
  return request.param, *models.expected(request.param, COUNT)


@pytest.mark.parametrize("way", WAYS)
def test_training(way, trained, tmp_path):
  """Batch norm uses and accumulates the statistics of a replica's part of the batch."""
  name, losses, statistics = trained
  code, out, said = run(way, TRAIN, tmp_path, name)
  assert code == 0, out
  for rank, line in enumerate(said):
    count, *numbers = line.split()
    assert int(count) == COUNT
    wanted = pytest.approx(losses + statistics[rank], abs=TOLERANCE)
    assert [float(number) for number in numbers] == wanted


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_takes_no_part(way, tmp_path):
  code, out, said = run(way, SKIPPED, tmp_path, MINIPOD_COLLECTIVE_TIMEOUT_S="5")
  assert code != 0
  error = next(filter(None, said), "")
  assert "process 2" in error and "all_reduce" in error, error + out
