"""Virtual times and memory of PyTorch on TorchTPU: what the host's part of eager ops costs, absent values, profiles."""

import pytest
import torch_tpu_scenario as tpu

DISPATCH = 9.0  # microseconds: host.dispatch of configs/chips/v5e.yaml, which v6e has, too

EACH = """
import minipod
def each(op, count=50):
  op(0)
  torch.accelerator.synchronize()
  begin = minipod.virtual_time()
  for i in range(count): op(i)
  host = minipod.time_report("data")[0]["host_seconds"]
  torch.accelerator.synchronize()
  after = minipod.time_report("data")[0]["host_seconds"]
  return [round(1e6 * (moment - begin) / count, 1) for moment in (host, after)]
"""


def run(code, pod="v6e:1x1", **variables):
  return tpu.run(code, pod, prelude="import torch" + EACH, MINIPOD_TIME="model", **variables).splitlines()


def test_small_eager_ops_take_the_hosts_dispatch():
  """The host goes on without waiting for results.  Scalars are transfers, which hide behind it."""
  lines = run("""
x = torch.ones(8, 8, device="tpu")
for op in (lambda i: x.relu(), lambda i: x.mul(0.5), lambda i: x.mul(0.01 * i + 0.3)): print(*each(op))
""")
  for line in lines:
    host, synchronized = map(float, line.split())
    assert host == pytest.approx(DISPATCH, abs=0.11) and host <= synchronized <= host + 0.5, lines


def test_large_eager_ops_take_the_devices_time():
  """The host is ahead of the device until it waits: by synchronize, or by reading a value."""
  line, item = run("""
x = torch.ones(4096, 4096, device="tpu", dtype=torch.bfloat16)
print(*each(lambda i: x @ x, 20))
print(*each(lambda i: (x @ x)[0, 0].item(), 5))
""", MINIPOD_VALUES="shapes", MINIPOD_ABSENT="zero", MINIPOD_LOG_LEVEL="error")
  host, synchronized = map(float, line.split())
  assert host == pytest.approx(DISPATCH, abs=0.5) and synchronized > 140
  host, synchronized = map(float, item.split())
  assert host > 140


def test_a_value_that_was_not_computed():
  code = """
x = torch.ones(512, 512, device="tpu")
loss = (x @ x).mean()
try: print(loss.item())
except RuntimeError as error: print("this array has no values: f32[], result 0 of tt_jit_mean" in str(error))
"""
  assert run(code, MINIPOD_VALUES="shapes") == ["True"]
  assert run(code, MINIPOD_VALUES="shapes", MINIPOD_ABSENT="nan", MINIPOD_LOG_LEVEL="error") == ["nan"]


def test_memory():
  lines = run("""
x = torch.ones(1 << 20, device="tpu")
torch.accelerator.synchronize()
print(torch.accelerator.memory_allocated(), torch.accelerator.memory_stats()["allocated_bytes.all.peak"])
try: torch.accelerator.synchronize(); y = [x + i for i in range(300)]; y[-1].sum().item()
except RuntimeError as error: print(error)
""", "v6e:1x1 hbm:1GiB")
  assert lines[0] == f"{4 << 20} {4 << 20}"
  text = "\n".join(lines[1:])
  assert "live buffers of device 0, largest first" in text and "f32[1048576], result 0 of tt_jit_add" in text


def test_profiles(tmp_path):
  """TorchTPU's profiler, and PyTorch's, which writes what it has of TPUs in the same form."""
  run(f"""
from torch_tpu._internal import profiler
from torch.profiler import profile, ProfilerActivity
x = torch.ones(64, 64, device="tpu")
with profiler.profile([profiler.ProfilerActivity.TPU], profiler.xprof_trace_handler({str(tmp_path / "own")!r})):
  (x @ x).sum().item()
with profile(activities=[ProfilerActivity.PrivateUse1],
             experimental_config=profiler.TpuProfilerConfig(run_dir={str(tmp_path / "torch")!r})):
  (x @ x).sum().item()
""")
  for name in ("own", "torch"):
    (found,) = (tmp_path / name).rglob("*.xplane.pb")
    data = found.read_bytes()
    assert b"/device:TPU:0" in data and b"XLA Ops" in data and b"tt_jit_sum" in data, name
