"""Virtual times without SPMD: programs are for all devices, and each device has its own launches."""

import re

import pytest

pytest.importorskip("torch_xla")

import torch_scenario

MODELLED = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x2", "devices": None}

ONE_DEVICE = """
    import minipod
    x = w = torch.ones(512, 512, device="xla:2")
    for _ in range(10):
      x = (x @ w) * 0.001
      torch_xla.sync()
    assert x.sum().item() > 0
    print(minipod.time_report())
    print(minipod.time_report("summary"))
    """

# All threads reach new programs at the same time, and each compiles them for itself.
REDUCED = """
    import minipod, threading
    barrier = threading.Barrier(4)

    def work(index):
      x = torch.ones(512, 512, device=torch_xla.device())
      for _ in range({rounds}):
        x = xm.all_reduce(xm.REDUCE_SUM, x @ x * 1e-6)
        torch_xla.sync()
        if {is_asked} and index == 0:
          minipod.time_report()
      x.sum().item()
      barrier.wait()
      if index == 0:
        print(minipod.time_report(), flush=True)
      barrier.wait()

    def main():
      torch_xla.launch(work)
    """


def numbers_of_devices(report):
  """Work and collectives of each device in the report; equal devices share a line."""
  lines = report.splitlines()
  first = next(i for i, line in enumerate(lines) if line.startswith("device ")) + 1
  found = {}
  for line in lines[first:]:
    words = line.split()
    if not words:
      break
    begin, _, end = words[0].partition("-")
    for device in range(int(begin), int(end or begin) + 1):
      found[device] = " ".join(words[1:3]), " ".join(words[4:6])
  return [found[device] for device in range(4)]


def test_only_the_device_that_ran_is_charged():
  work = [row[0] for row in numbers_of_devices(torch_scenario.run(ONE_DEVICE, **MODELLED))]
  assert work[:2] + work[3:] == ["0 ps"] * 3
  assert work[2] != "0 ps"


def test_a_summary_counts_the_devices_that_ran():
  out = torch_scenario.run(ONE_DEVICE, **MODELLED)
  step = out[out.index("by line"):].split("\n\n")[0]
  assert re.search(r" launch\w* of [\d.]+ us on 1 device;", out) and "uneven" not in out
  shares = [float(line.split()[-2]) for line in step.splitlines()[1:]]
  assert shares[-1] == 100 and sum(shares[:-1]) == pytest.approx(100, abs=0.5), step


@pytest.mark.parametrize("is_asked", [False, True], ids=["asked at the end", "asked between"])
def test_a_launch_by_all_threads_is_charged_once(is_asked, tmp_path):
  rounds = 20
  code = REDUCED.format(rounds=rounds, is_asked=is_asked)
  report = torch_scenario.run_file(code, tmp_path, **MODELLED)
  counts = [int(line.split()[1]) for line in report.splitlines() if line.startswith("  all_reduce ")]
  assert sum(counts) == rounds, report
  devices = numbers_of_devices(report)
  assert devices == devices[:1] * 4 and "0 ps" not in devices[0]


def test_clocks_show_the_pods_time():
  torch_scenario.run("""
      import minipod, time
      x = torch.ones(64, 64, device="xla")
      for _ in range(3):
        virtual, begin = minipod.virtual_time(), time.perf_counter()
        x = (x @ x) * 0.01
        torch_xla.sync()
        x.sum().item()
        virtual, took = minipod.virtual_time() - virtual, time.perf_counter() - begin
      assert virtual > 0.2 and virtual - 1e-3 < took < virtual + 0.1, (virtual, took)
      """, devices=None, MINIPOD_TIME="model", MINIPOD_CLOCK="virtual",
      MINIPOD_TOPOLOGY="ring:4 op_latency:100ms launch_latency:10ms")
