"""One process of TorchTPU that stands for all ranks of its job: the same times and memory, and no others."""

import subprocess
import sys

import pytest
import scenario
import torch_tpu_jobs as jobs
import torch_tpu_scenario as tpu

SHAPES = {"MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes"}

TRAIN = """\
import minipod, torch
from torch import distributed, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
distributed.init_process_group()
size = distributed.get_world_size()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)) for _ in range(3)]).to("tpu")
for block in model:
  fully_shard(block, mp_policy=policy)
fully_shard(model, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.zeros(32, 1024, device="tpu")
distributed.barrier()
times = []
for step in range(3):
  before = minipod.virtual_time()
  loss = (model(x) - x).square().mean()
  loss.backward()
  optimizer.step()
  optimizer.zero_grad()
  distributed.all_reduce(loss)
  torch.accelerator.synchronize()
  times.append(f"{minipod.virtual_time() - before:.9f}")
if distributed.get_rank() == {rank}:
  print(distributed.get_rank(), *times, torch.accelerator.memory_allocated(), torch.accelerator.max_memory_allocated())
distributed.destroy_process_group()
"""

OTHERS = """\
import torch
from torch import distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
dist.init_process_group()
mesh = init_device_mesh("tpu", (2, 2), mesh_dim_names=("data", "model"))
x = distribute_tensor(torch.ones(8, 8), mesh, [Replicate(), Shard(1)])
print(x.to_local().shape, (x @ x.redistribute(placements=[Replicate(), Replicate()])).shape)
objects = [None] * 4
dist.all_gather_object(objects, "mine")
print(objects)
names = ["run 7"]
dist.broadcast_object_list(names, src=0)
total = torch.ones(2, device="tpu")
dist.all_reduce(total, group=mesh.get_group("data"))
print(names, total.tolist(), dist.new_group().size())
cpu = torch.ones(2)
dist.all_reduce(cpu, group=dist.new_group(backend="gloo"))
print(cpu.tolist())
for what in (lambda: dist.recv(torch.ones(2, device="tpu"), 1), lambda: dist.recv_object_list([None], 1),
             lambda: dist.distributed_c10d._get_default_store().get("theirs")):
  try:
    what()
  except RuntimeError as error:
    print(error)
part = torch.ones(2, device="tpu")
dist.reduce_scatter_tensor(part, torch.ones(8, device="tpu"))
try:
  part.tolist()
except RuntimeError as error:
  print("has no values" in str(error))
"""


BROADCASTS = """\
import torch
from torch import distributed as dist
dist.init_process_group()
def show(call):
  try:
    return call()
  except RuntimeError as error:
    return "has no values" if "has no values" in str(error) else str(error)
def tensor(source):
  x = torch.full((2,), 7.0, device="tpu")
  dist.broadcast(x, source)
  return x.tolist()
def objects(source):
  x = ["mine"]
  dist.broadcast_object_list(x, source)
  return x
print(*[show(lambda: tensor(source)) for source in (0, 3)], [show(lambda: objects(source)) for source in (0, 3)])
dist.all_reduce(x := torch.ones(2, device="tpu"))
print(x.tolist())
"""


def only(code, count, rank=0, pod="v6e:2x2", **variables):
  """What one process prints that stands for `count`."""
  command = [sys.executable, "-m", "minipod", "run", "-n", str(count), "--only", str(rank), sys.executable, "-c", code]
  process = subprocess.Popen(command, env=tpu.environment(pod, **SHAPES | variables), text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
  returncode, out, err = scenario.finish(process, 120)
  assert returncode == 0, out + err[-3000:]
  return out.splitlines()


@pytest.mark.parametrize("rank", [0, 3])
def test_times_and_memory_are_those_of_all_processes(rank):
  code = TRAIN.replace("{rank}", str(rank))
  returncode, out, err = jobs.torchrun(code, count=4, **SHAPES)
  assert returncode == 0, err[-3000:]
  assert only(code, 4, rank) == out.splitlines()


def test_the_other_ranks_are_equal_or_refused():
  lines = only(OTHERS, 4)
  assert lines[:5] == ["torch.Size([8, 4]) torch.Size([8, 8])", "['mine', 'mine', 'mine', 'mine']",
                       "['run 7'] [2.0, 2.0] 4", "[4.0, 4.0]",
                       "minipod: torch.distributed.recv waits for another rank, but this process stands for all ranks of"
                       " its job (MINIPOD_BOOTSTRAP=absent), and the others do not exist"]
  assert lines[5].startswith("minipod: torch.distributed.recv_object_list waits for another rank")
  assert lines[6].startswith("minipod: only another rank would put 'default_pg/0//theirs' into the store, but")
  assert lines[-1] == "True"


def test_broadcasts_have_the_values_of_their_source():
  """TorchTPU makes a broadcast of a sum, to which all ranks but the source bring zeros."""
  lines = only(BROADCASTS, 4, rank=3)
  refused = ("minipod: torch.distributed.broadcast_object_list has the objects of rank 0, but this process stands for all"
             " ranks of its job (MINIPOD_BOOTSTRAP=absent), and the others do not exist")
  assert lines == [f"has no values [7.0, 7.0] ['{refused}', ['mine']]", "[4.0, 4.0]"]


def test_256_ranks():
  (line,) = only(TRAIN.replace("{rank}", "0"), 256, pod="v6e:16x16")
  assert line.startswith("0 0.01")
