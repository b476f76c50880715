"""The runner of PyTorch's tests of torch.distributed (tools/torch_tpu/suites.py), on a file of tests with each result."""

import json
import pathlib
import subprocess
import sys

import torch_tpu_scenario as tpu

TOOL = pathlib.Path(__file__).parents[3] / "tools" / "torch_tpu" / "suites.py"

TESTS = '''
import os
import signal
import sys
import time
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiThreadedTestCase, TEST_SKIPS
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms

class TestRanks(DTensorTestBase):
  @with_comms
  def test_all_reduce(self):
    x = torch.full((3,), float(self.rank + 1), device=self.device_type)
    dist.all_reduce(x)
    self.assertEqual(x.tolist(), [3.0] * 3)
    self.assertEqual(dist.get_world_size(), 2)

  @with_comms
  def test_dies(self):
    if self.rank == 1:
      os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()

  @with_comms
  def test_fails(self):
    self.assertEqual(self.rank, 0, "rank one fails")
    dist.barrier()

  def test_hangs(self):
    time.sleep(1000 * self.rank)

  def test_skips_itself(self):
    sys.exit(TEST_SKIPS["no_cuda"].exit_code)

class TestThreads(MultiThreadedTestCase):
  def test_is_a_rank(self):
    x = [None, None]
    dist.all_gather_object(x, os.getpid())
    self.assertEqual(x[self.rank], os.getpid())
    self.assertNotEqual(x[0], x[1])
'''


def _run(folder, device):
  out = folder / f"{device}.jsonl"
  done = subprocess.run([sys.executable, str(TOOL), "run", str(out), str(folder), "test_all.py", "--ranks", "2", "--device",
                         device, "--limit", "15"], env=tpu.environment(None), capture_output=True, text=True, timeout=200)
  assert done.returncode == 0, done.stderr[-2000:]
  return {row["test"]: row for row in map(json.loads, out.read_text().splitlines())}


def test_each_result(tmp_path):
  (tmp_path / "test_all.py").write_text(TESTS)
  for device in ("cpu", "tpu"):
    rows = _run(tmp_path, device)
    assert {test: row["result"] for test, row in rows.items()} == {
        "test_all_reduce": "pass", "test_dies": "ended", "test_fails": "fail", "test_hangs": "slow",
        "test_skips_itself": "skip", "test_is_a_rank": "pass"}, rows
    assert rows["test_dies"]["rank"] == 1 and rows["test_fails"]["rank"] == 1
    assert "rank one fails" in rows["test_fails"]["error"]
    assert "in test_hangs" in rows["test_hangs"]["error"]
  report = subprocess.run([sys.executable, str(TOOL), "report", str(tmp_path / "cpu.jsonl"), str(tmp_path / "tpu.jsonl")],
                          capture_output=True, text=True)
  assert "c10d 2 2 0 0 0 0" in " ".join(report.stdout.split()), report.stdout
