"""TorchTPU in several processes: torchrun without a change, on one host and on two, and what happens when a rank dies."""

import ast
import ctypes
import os
import re
import subprocess
import sys

import pytest
import scenario
import torch_tpu_jobs as jobs
import torch_tpu_scenario as tpu


def _has_ucx():
  try:
    ctypes.CDLL("libucs.so.0")  # not libucp, which would handle this process's signals
  except OSError:
    return False
  return True


NEEDS_UCX = pytest.mark.skipif(not _has_ucx(), reason="UCX is not here: apt install libucx0")


@pytest.fixture(scope="module")
def one_host():
  return jobs.Results(lambda folder: jobs.torchrun(jobs.COLLECTIVES, folder))


@pytest.fixture(scope="module")
def two_hosts():
  return jobs.Results(lambda folder: jobs.two_hosts(jobs.COLLECTIVES, folder, pod="v6e:2x2"))


def test_one_host(one_host):
  one_host.expect_all()
  assert not any(one_host.has_ucx)


@NEEDS_UCX
def test_two_hosts_have_the_bits_of_one(one_host, two_hosts):
  two_hosts.expect_all()
  assert all(two_hosts.has_ucx)
  assert two_hosts.digests == one_host.digests


PLACES = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("tpu_dist")
from torch_tpu._internal.distributed import tpu_distributed
x = torch.ones(3, device="tpu") * (dist.get_rank() + 1)
dist.all_reduce(x)
coords = list(tpu_distributed.local_device_coords())
os.write(1, f"{dist.get_rank()}: {coords} {x.tolist()}\\n".encode())
"""


@pytest.mark.parametrize("pod, count, places", [
    ("v6e:2x2", 4, ["[0, 0, 0]", "[1, 0, 0]", "[0, 1, 0]", "[1, 1, 0]"]),
    ("7x:1x2x1", 4, ["[0, 0, 0]", "[0, 0, 0]", "[0, 1, 0]", "[0, 1, 0]"])])
def test_each_rank_has_a_device(pod, count, places):
  returncode, out, err = jobs.torchrun(PLACES, pod=pod, count=count)
  assert returncode == 0, err[-3000:]
  total = float(sum(range(1, count + 1)))
  assert sorted(out.splitlines()) == [f"{i}: {where} {[total] * 3}" for i, where in enumerate(places)]


def test_a_wrong_number_of_ranks():
  returncode, _, err = jobs.torchrun(PLACES, count=2)
  assert returncode != 0
  assert "minipod: the job has 2 processes, but the pod has 4 devices; TorchTPU needs one process per device" in err
  assert "TPU_PROCESS_BOUNDS is 2,2,1, a grid of 4 processes, but TPU_PROCESS_ADDRESSES lists 2" in err


def test_minipod_run(tmp_path):
  script = tmp_path / "script.py"
  script.write_text(PLACES)
  process = subprocess.Popen(
      [sys.executable, "-m", "minipod", "run", "-n", "4", "--launcher", "plain", "--no-prefix", str(script)],
      env=tpu.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
  returncode, out, err = scenario.finish(process, 120)
  assert returncode == 0, err[-3000:]
  assert sorted(line[:2] for line in out.splitlines()) == ["0:", "1:", "2:", "3:"]


# ---- Without a launcher ----

def forked(main, count=4, timeout=150, **variables):
  """Runs `rank_main` of this code in forked ranks: (codes, texts)."""
  out = tpu.run(jobs.FORKS + main + f"\nprint(repr(fork_ranks({count}, rank_main)))", timeout=timeout, **variables)
  return ast.literal_eval(out)


def test_processes_find_each_other_by_the_store():
  codes, texts = forked("""
def rank_main(rank):
  x = torch.ones(3, device="tpu") * rank
  dist.all_reduce(x)
  print(x.tolist(), flush=True)
""")
  assert codes == [0] * 4, texts
  assert all("[6.0, 6.0, 6.0]" in text for text in texts), texts


# ---- From one rank to another ----

SENDS = """
def full(value, *shape):
  return torch.full(shape or (3,), float(value), device="tpu")

def send(source, target, value, *shape, rank, tag=0, group=None):
  if rank == source:
    dist.send(full(value, *shape), target, tag=tag, group=group)
  if rank == target:
    got = full(-1, *shape)
    dist.recv(got, source, tag=tag, group=group)
    assert torch.equal(got.cpu(), full(value, *shape).cpu()), (source, target, value, got)

def repeated(rank):
  for i in range(10):
    send(0, 1, i, rank=rank)
    send(1, 0, i + 0.5, rank=rank)
    send(0, 1, i + 0.25, 5, i + 1, rank=rank)
    send(0, 2, i, 5, rank=rank, tag=1)
    send(2, 3, i, rank=rank)

def receiver_is_ahead(rank):
  if rank == 1:
    many = [full(-1, i + 1) for i in range(5)]
    works = [dist.irecv(x, 0) for x in many]
    dist.barrier()
    for work in works:
      work.wait()
    assert [x.tolist() for x in many] == [[float(i)] * (i + 1) for i in range(5)], many
  else:
    dist.barrier()
  for i in range(5 if rank == 0 else 0):
    dist.isend(full(i, i + 1), 1)

def batches(rank):
  after, before = (rank + 1) % 4, (rank - 1) % 4
  for i in range(4):
    x, y = full(-1, i + 1), full(-1)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.irecv, x, before), dist.P2POp(dist.irecv, y, after),
        dist.P2POp(dist.isend, full(10 * i + rank, i + 1), after), dist.P2POp(dist.isend, full(100 * i + rank), before)])
    for work in works:
      work.wait()
    assert x.tolist() == [10.0 * i + before] * (i + 1) and y.tolist() == [100.0 * i + after] * 3, (x, y)

def objects(rank):
  for i in range(3):
    if rank == 0:
      dist.send_object_list([{"a": i}, "b" * 100 * i], 3)
    if rank == 3:
      got = [None, None]
      dist.recv_object_list(got, 0)
      assert got == [{"a": i}, "b" * 100 * i], got

def groups(rank):
  every = [dist.new_group([0, 2]), dist.new_group([1, 3])]
  for i in range(3):
    send(rank % 2, rank % 2 + 2, i, rank=rank, group=every[rank % 2])
    send(rank % 2 + 2, rank % 2, i, rank=rank, group=every[rank % 2])

def rank_main(rank):
  for case in (repeated, receiver_is_ahead, batches, objects, groups):
    case(rank)
    dist.barrier()
"""


def test_sends_of_one_pair_arrive_in_order():
  codes, texts = forked(SENDS)
  assert codes == [0] * 4, texts


PIPELINE = """
from torch import nn
from torch.distributed import pipelining

def mean_square(x, y):
  return (x - y).square().mean()

def train(step, stage):
  torch.manual_seed(0)
  model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(4)])
  model = model if stage is None else model[stage].to("tpu")
  optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
  torch.manual_seed(1)
  x, y = torch.randn(32, 16), torch.randn(32, 16)
  for _ in range(3):
    optimizer.zero_grad()
    yield step(model, x, y)
    optimizer.step()

def on_cpu(model, x, y):
  losses = [mean_square(model(a), b) / 8 for a, b in zip(x.chunk(8), y.chunk(8))]
  for loss in losses:
    loss.backward()
  return sum(loss.item() for loss in losses)

def rank_main(rank):
  expected = list(train(on_cpu, None))
  for schedule in (pipelining.ScheduleGPipe, pipelining.Schedule1F1B):
    made = []
    def on_ranks(model, x, y):
      if not made:
        made.append(schedule(pipelining.PipelineStage(model, rank, 4, torch.device("tpu")), 8, loss_fn=mean_square))
      losses = []
      arguments = [x.to("tpu")] if rank == 0 else []
      made[0].step(*arguments, **({"target": y.to("tpu"), "losses": losses} if rank == 3 else {}))
      return torch.stack(losses).mean().item() if rank == 3 else None
    found = list(train(on_ranks, rank))
    if rank == 3:
      assert max(abs(a - b) for a, b in zip(found, expected)) < 1e-6, (schedule, found, expected)
    dist.barrier()
"""


def test_pipeline_schedules():
  codes, texts = forked(PIPELINE)
  assert codes == [0] * 4, texts


def test_a_send_whose_receiver_dies_ends():
  codes, texts = forked("""
def rank_main(rank):
  x = torch.ones(3, device="tpu")
  dist.all_reduce(x)
  x.sum().item()
  if rank == 3:
    time.sleep(1)
    os._exit(3)
  begin = time.time()
  try:
    dist.send(x, 3)
  except RuntimeError as error:
    os.write(1, f"after {time.time() - begin:.2f} s: {error}".encode())
    os._exit(0)
""")
  assert codes == [0, 0, 0, 3], texts
  for text in texts[:3]:
    found = re.search(r"after ([\d.]+) s: .*process 3 .*has waited in a send for its receiver", text, re.S)
    assert found and float(found[1]) < 3, text


CIRCLE = """
def rank_main(rank):
  pairs = [(0, 1), (2, 3), (0, 2), (1, 3)]
  groups = {pair: dist.new_group(pair) for pair in pairs}
  for pair in pairs:
    if rank in pair:
      dist.all_reduce(torch.ones(3, device="tpu"), group=groups[pair])
  dist.barrier()
  order = [[(0, 1), (0, 2)], [(1, 3), (0, 1)], [(0, 2), (2, 3)], [(2, 3), (1, 3)]][rank]
  many = [torch.ones(3, device="tpu") for _ in order]
  begin = time.time()
  try:
    for work in [dist.all_reduce(x, group=groups[pair], async_op=True) for x, pair in zip(many, order)]:
      work.wait()
    many[0].tolist()
  except RuntimeError as error:
    os.write(1, f"after {time.time() - begin:.2f} s: {error}\\n".encode())
    os._exit(0)
"""


@pytest.mark.parametrize("variables", [{}, {"MINIPOD_TIME": "model"}], ids=["values", "times"])
def test_groups_that_wait_for_each_other_in_a_circle(variables):
  """With virtual times each launch waits for the one before, and errors name the lines of launches."""
  codes, texts = forked(CIRCLE, **variables)
  assert codes == [0] * 4, texts
  circle = [(0, "0, 1", 1), (1, "1, 3", 3), (3, "2, 3", 2), (2, "0, 2", 0)]
  line = r", called at [^;]*:\d+" if variables else ""
  waits = "; ".join(fr"process {rank}: device {rank} waits in [^;]*all_reduce [^;]* of devices {group}[^;]*{line}[^;]*for device {other}"
                    for rank, group, other in circle)
  for text in texts:
    found = re.search(r"after ([\d.]+) s: .*collectives are stuck: each of these processes waits for the next one, .*" + waits,
                      text, re.S)
    assert found and float(found[1]) < 10, text


DEATHS = """
import random
random.seed({seed})

def loop(rank, until):
  groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
  for i in range(10**6):
    x = torch.ones(1 << i % 16, device="tpu") * rank
    dist.all_reduce(x)
    x.sum().item()
    if until and time.time() > until:
      died.value = time.time()
      raise KeyError("mine")
    if i % 3 == 0:
      dist.all_reduce(x, group=groups[rank // 2])
      x.sum().item()
    if i % 5 == 0:
      dist.barrier()
    if i % 7 == 0:
      dist.all_gather_object([None] * 4, rank)

def die_at(rank, how, delay):
  def end():
    time.sleep(delay)
    died.value = time.time()
    os.kill(os.getpid(), signal.SIGKILL) if how == "kill" else os._exit(3)
  import threading
  threading.Thread(target=end, daemon=True).start()

import multiprocessing
died = multiprocessing.Value("d")
for _ in range({count}):
  victim, how, delay = random.randrange(4), random.choice(["kill", "exit", "raise"]), random.uniform(0.2, 2)

  def rank_main(rank):
    if rank == victim and how != "raise":
      die_at(rank, how, delay)
    try:
      loop(rank, time.time() + delay if rank == victim and how == "raise" else None)
    except RuntimeError as error:
      os.write(1, f"after {{time.time() - died.value:.2f}} s: {{error}}\\n".encode())

  codes, texts = fork_ranks(4, rank_main)
  print(repr((victim, how, delay, codes, texts)), flush=True)
"""


def test_when_a_rank_dies_the_others_get_its_name_within_2_s():
  """At random times, by a signal, by exit, or by an exception."""
  out = tpu.run(jobs.FORKS + DEATHS.format(seed=1, count=6), timeout=170)
  jobs_seen = [ast.literal_eval(line) for line in out.splitlines()]
  assert len(jobs_seen) == 6
  for victim, how, delay, codes, texts in jobs_seen:
    for rank in {0, 1, 2, 3} - {victim}:
      found = re.search(r"after (-?[\d.]+) s: .*process (\d)", texts[rank], re.S)
      assert found and found[2] == str(victim), (victim, how, delay, codes, texts[rank][-600:])
      assert float(found[1]) < 2 and codes[rank] == 0, (victim, how, delay, found[0])


@pytest.mark.parametrize("hosts", [1, pytest.param(2, marks=NEEDS_UCX)])
def test_kills_in_training(hosts, tmp_path):
  """FSDP2 and DistributedDataParallel; MINIPOD_TEST_FULL=1: 20 jobs."""
  count = 20 if os.environ.get("MINIPOD_TEST_FULL") == "1" else 4
  command = [sys.executable, str(jobs.KILLS), str(tmp_path), str(count), "1"]
  if hosts == 1:
    result = subprocess.run(command, env=tpu.environment(), text=True, capture_output=True, timeout=count * 70)
    returncode, out, err = result.returncode, result.stdout, result.stderr
  else:
    returncode, out, err = jobs.on_two_hosts(command, count * 70, tpu.environment())
  assert returncode == 0, out + err[-2000:]
  found = re.search(rf"{3 * count} of {3 * count} ranks ended with the name, half of them within ([\d.]+) s", out)
  assert found, out
  if os.getloadavg()[0] < 2 * os.cpu_count():
    assert float(found[1]) < 2, out
