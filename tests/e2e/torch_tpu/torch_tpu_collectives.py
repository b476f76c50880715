"""A script for torchrun: what TorchTPU supports of torch.distributed, each case compared with its definition.

    torch_tpu_collectives.py FOLDER

Each rank writes RANK.json into the folder: case -> ["ok", digest of its results] or ["wrong", text].
"""

import hashlib
import json
import os
import pickle
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.checkpoint import state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
import torch.distributed._functional_collectives as functional
from torch.distributed.tensor import distribute_tensor
from torch.distributed.tensor import Shard

DEVICE = "tpu"
FOLDER = sys.argv[1]


def value(rank, size=1000, dtype=torch.float32):
  """What the rank has, on the CPU: not the same in any two ranks, and sums are not exact."""
  numbers = torch.arange(size, dtype=torch.float64) * 0.37 + rank * 1.1 + 1
  return (numbers if dtype.is_floating_point else numbers.floor()).to(dtype)


def near(got, wanted):
  got = got.cpu()
  assert torch.allclose(got.double(), wanted.double(), rtol=1e-2 if got.itemsize == 2 else 1e-5), (got, wanted)
  return got


def same(got, wanted):
  assert got == wanted, (got, wanted)
  return got


# ---- Collectives of tensors ----

def all_reduce(op, dtype=torch.float32):
  def run(rank, count):
    x = value(rank, dtype=dtype).to(DEVICE)
    dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
    every = [value(i, dtype=dtype) for i in range(count)]
    stack = torch.stack(every).double()
    wanted = {"SUM": lambda: stack.sum(0), "AVG": lambda: stack.mean(0), "PRODUCT": lambda: stack.prod(0),
              "MIN": lambda: stack.min(0).values, "MAX": lambda: stack.max(0).values,
              "BAND": lambda: bits(every, torch.bitwise_and), "BOR": lambda: bits(every, torch.bitwise_or),
              "BXOR": lambda: bits(every, torch.bitwise_xor)}[op]()
    return near(x, wanted.to(dtype))
  return run


def bits(every, combine):
  result = every[0]
  for other in every[1:]:
    result = combine(result, other)
  return result


def all_gather(rank, count):
  outs = [torch.empty(1000, device=DEVICE) for _ in range(count)]
  dist.all_gather(outs, value(rank).to(DEVICE))
  return [near(out, value(i)) for i, out in enumerate(outs)]


def all_gather_into_tensor(rank, count):
  out = torch.empty(1000 * count, device=DEVICE)
  dist.all_gather_into_tensor(out, value(rank).to(DEVICE))
  return near(out, torch.cat([value(i) for i in range(count)]))


def reduce_scatter_tensor(rank, count):
  out = torch.empty(1000, device=DEVICE)
  dist.reduce_scatter_tensor(out, value(rank, 1000 * count).to(DEVICE))
  return near(out, sum(value(i, 1000 * count) for i in range(count)).chunk(count)[rank])


def reduce_scatter(rank, count):
  out = torch.empty(1000, device=DEVICE)
  dist.reduce_scatter(out, [value(10 * rank + i).to(DEVICE) for i in range(count)])
  return near(out, sum(value(10 * i + rank) for i in range(count)))


def all_to_all_single(rank, count):
  out = torch.empty(1000 * count, device=DEVICE)
  dist.all_to_all_single(out, torch.cat([value(10 * rank + i) for i in range(count)]).to(DEVICE))
  return near(out, torch.cat([value(10 * i + rank) for i in range(count)]))


def all_to_all(rank, count):
  outs = [torch.empty(1000, device=DEVICE) for _ in range(count)]
  dist.all_to_all(outs, [value(10 * rank + i).to(DEVICE) for i in range(count)])
  return [near(out, value(10 * i + rank)) for i, out in enumerate(outs)]


def broadcast(rank, count):
  x = value(rank).to(DEVICE)
  dist.broadcast(x, count - 1)
  return near(x, value(count - 1))


def scatter(rank, count):
  out = torch.empty(1000, device=DEVICE)
  dist.scatter(out, [value(i).to(DEVICE) for i in range(count)] if rank == 1 else None, src=1)
  return near(out, value(rank))


def gather(rank, count):
  outs = [torch.empty(1000, device=DEVICE) for _ in range(count)] if rank == 1 else None
  dist.gather(value(rank).to(DEVICE), outs, dst=1)
  return [near(out, value(i)) for i, out in enumerate(outs or [])]


def asynchronous(rank, count):
  every = [value(rank + i).to(DEVICE) for i in range(5)]
  for work in [dist.all_reduce(x, async_op=True) for x in every]:
    work.wait()
  return [near(x, sum(value(j + i) for j in range(count))) for i, x in enumerate(every)]


def functional_collectives(rank, count):
  x = value(rank, 1000 * count).to(DEVICE)
  every = [value(i, 1000 * count) for i in range(count)]
  return [near(functional.all_reduce(x, "sum", dist.group.WORLD), sum(every)),
          near(functional.all_gather_tensor(x, 0, dist.group.WORLD), torch.cat(every)),
          near(functional.reduce_scatter_tensor(x, "sum", 0, dist.group.WORLD), sum(every).chunk(count)[rank])]


def groups(rank, count):
  """TorchTPU supports groups that divide the ranks."""
  every = [dist.new_group(list(range(i, count, 2))) for i in range(2)]
  x = value(rank).to(DEVICE)
  dist.all_reduce(x, group=every[rank % 2])
  return near(x, sum(value(i) for i in range(rank % 2, count, 2)))


def mesh(rank, count):
  grid = init_device_mesh(DEVICE, (2, count // 2), mesh_dim_names=("rows", "columns"))
  x, y = value(rank).to(DEVICE), value(rank).to(DEVICE)
  dist.all_reduce(x, group=grid.get_group("columns"))
  dist.all_reduce(y, group=grid.get_group("rows"))
  width = count // 2
  return [near(x, sum(value(i) for i in range(count) if i // width == rank // width)),
          near(y, sum(value(i) for i in range(count) if i % width == rank % width))]


def groups_alone(rank, count):
  """Collectives that some groups launch and others do not, in between those of all ranks."""
  every = [dist.new_group([i, i + 1]) for i in range(0, count, 2)]
  pair, results = [rank - rank % 2, rank - rank % 2 + 1], []
  for i in range(3):
    if rank // 2 != i - 1:
      x = value(rank + i).to(DEVICE)
      dist.all_reduce(x, group=every[rank // 2])
      results.append(near(x, sum(value(j + i) for j in pair)))
    y = value(rank).to(DEVICE)
    dist.all_reduce(y)
    results.append(near(y, sum(value(j) for j in range(count))))
  return results


def barrier(rank, count):
  dist.barrier()
  return None


# ---- Objects ----

def all_gather_object(rank, count):
  got = [None] * count
  dist.all_gather_object(got, {"rank": rank, "text": "x" * 100 * rank})
  return same(got, [{"rank": i, "text": "x" * 100 * i} for i in range(count)])


def broadcast_object_list(rank, count):
  got = [("a", rank), {"b": rank}] if rank == 2 else [None, None]
  dist.broadcast_object_list(got, src=2)
  return same(got, [("a", 2), {"b": 2}])


def scatter_object_list(rank, count):
  got = [None]
  dist.scatter_object_list(got, [f"to {i}" for i in range(count)] if rank == 0 else None, src=0)
  return same(got, [f"to {rank}"])


def gather_object(rank, count):
  got = [None] * count if rank == 0 else None
  dist.gather_object(f"from {rank}", got, dst=0)
  return same(got, [f"from {i}" for i in range(count)] if rank == 0 else None)


# ---- From one rank to another ----

def send_and_receive(rank, count):
  x = value(rank).to(DEVICE)
  if rank % 2 == 0:
    dist.send(x, rank + 1)
    return None
  out = torch.empty(1000, device=DEVICE)
  dist.recv(out, rank - 1)
  return near(out, value(rank - 1))


def repeated_sends(rank, count):
  """Between the first and the last rank, which two hosts put on different ones, in both directions."""
  last, results = count - 1, []
  for i in range(5):
    for source, target, x in ((0, last, value(i, 10 * i + 1)), (last, 0, value(i + 0.5)), (0, last, value(i + 0.75))):
      if rank == source:
        dist.send(x.to(DEVICE), target)
      if rank == target:
        out = torch.empty_like(x, device=DEVICE)
        dist.recv(out, source)
        results.append(near(out, x))
  return results


def send_object_list(rank, count):
  if rank == 0:
    dist.send_object_list([{"a": 1}, "b"], count - 1)
  if rank != count - 1:
    return None
  got = [None, None]
  dist.recv_object_list(got, 0)
  return same(got, [{"a": 1}, "b"])


# ---- Programs ----

def make_model():
  torch.manual_seed(0)
  return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def batches(step, ranks):
  return [torch.randn(4, 8, generator=torch.Generator().manual_seed(100 * step + rank)) for rank in ranks]


def train(model, optimizer, steps, rank, device):
  """Losses of the steps; `rank` None: on the batches of all ranks."""
  losses = []
  for step in steps:
    every = batches(step, range(dist.get_world_size()) if rank is None else [rank])
    parts = [model(x.to(device)).pow(2).mean() for x in every]
    loss = sum(parts) / len(parts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(torch.stack([part.detach() for part in parts]).cpu())
  return torch.stack(losses)


def on_cpu(rank):
  model = make_model()
  return train(model, torch.optim.AdamW(model.parameters(), lr=0.01), range(3), None, "cpu")[:, rank:rank + 1]


def data_parallel(rank, count):
  model = torch.nn.parallel.DistributedDataParallel(make_model().to(DEVICE))
  return near(train(model, torch.optim.AdamW(model.parameters(), lr=0.01), range(3), rank, DEVICE), on_cpu(rank))


def make_sharded():
  model = make_model().to(DEVICE)
  fully_shard(model[0])
  fully_shard(model[2])
  fully_shard(model)
  return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def fully_sharded(rank, count):
  model, optimizer = make_sharded()
  return near(train(model, optimizer, range(3), rank, DEVICE), on_cpu(rank))


def distributed_tensor(rank, count):
  grid = init_device_mesh(DEVICE, (count,))
  a, b = value(0, 64).reshape(8, 8) / 10, value(1, 64).reshape(8, 8) / 10
  left = distribute_tensor(a.to(DEVICE), grid, [Shard(0)])
  right = distribute_tensor(b.to(DEVICE), grid, [Shard(1)])
  return near((left @ right).full_tensor(), a @ b)


def distributed_checkpoint(rank, count):
  """After a restart from the checkpoint, training has the same bits."""
  path = os.path.join(FOLDER, "checkpoint")
  model, optimizer = make_sharded()
  train(model, optimizer, range(2), rank, DEVICE)
  states = state_dict.get_state_dict(model, optimizer)
  checkpoint.save(dict(zip("mo", states)), checkpoint_id=path)
  wanted = train(model, optimizer, range(2, 4), rank, DEVICE)
  model, optimizer = make_sharded()
  train(model, optimizer, range(5, 6), rank, DEVICE)
  states = dict(zip("mo", state_dict.get_state_dict(model, optimizer)))
  checkpoint.load(states, checkpoint_id=path)
  state_dict.set_state_dict(model, optimizer, model_state_dict=states["m"], optim_state_dict=states["o"])
  got = train(model, optimizer, range(2, 4), rank, DEVICE)
  assert torch.equal(got, wanted), (got, wanted)
  return got


def compiled(rank, count):
  @torch.compile
  def run(x):
    y = torch.ops._c10d_functional.all_reduce(x @ x.t(), "sum", dist.group.WORLD.group_name)
    return torch.ops._c10d_functional.wait_tensor(y)
  every = [torch.full((4, 4), i + 1.5) for i in range(count)]
  return near(run(every[rank].to(DEVICE)), sum(x @ x.t() for x in every))


CASES = {f"all_reduce {op}": all_reduce(op) for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX")}
CASES |= {f"all_reduce {op}": all_reduce(op, torch.int32) for op in ("BAND", "BOR", "BXOR")}
CASES |= {f"all_reduce {dtype}": all_reduce("SUM", getattr(torch, dtype))
          for dtype in ("int64", "int32", "bfloat16", "float16", "float64")}
CASES |= {case.__name__: case for case in (
    all_gather, all_gather_into_tensor, reduce_scatter_tensor, reduce_scatter, all_to_all_single, all_to_all, broadcast,
    scatter, gather, asynchronous, functional_collectives, groups, groups_alone, mesh, barrier, all_gather_object,
    broadcast_object_list, scatter_object_list, gather_object, send_and_receive, repeated_sends,
    send_object_list, data_parallel, fully_sharded, distributed_tensor, distributed_checkpoint, compiled)}


def plain(result):
  """With tensors as bytes."""
  if isinstance(result, torch.Tensor):
    return result.contiguous().view(torch.uint8).numpy().tobytes() if result.dim() else str(result.item())
  return [plain(part) for part in result] if isinstance(result, (list, tuple)) else repr(result)


def main():
  dist.init_process_group("tpu_dist")
  rank, count = dist.get_rank(), dist.get_world_size()
  results = {}
  for name, case in CASES.items():
    try:
      results[name] = ["ok", hashlib.sha256(pickle.dumps(plain(case(rank, count)))).hexdigest()[:16]]
    except Exception as error:
      results[name] = ["wrong", f"{type(error).__name__}: {error}"[:500]]
  results["libucp"] = "libucp" in open("/proc/self/maps").read()
  with open(os.path.join(FOLDER, f"{rank}.json"), "w") as file:
    json.dump(results, file)
  dist.destroy_process_group()


if __name__ == "__main__":
  main()
