"""The time report of PyTorch on TorchTPU: rows by nn.Module and by line, eager and compiled, forward and backward."""

import json

import pytest
import torch_tpu_jobs as jobs
import torch_tpu_scenario as tpu

MODEL = '''\
import json, torch, torch.nn as nn, minipod
class Block(nn.Module):
  def __init__(self):
    super().__init__()
    self.up, self.down, self.norm = nn.Linear(64, 256), nn.Linear(256, 64), nn.LayerNorm(64)
  def forward(self, x):
    y = self.norm(x)
    return x + self.down(torch.relu(self.up(y)))
class Net(nn.Module):
  def __init__(self):
    super().__init__()
    self.blocks, self.head = nn.ModuleList([Block() for _ in range(2)]), nn.Linear(64, 10)
  def forward(self, x):
    for block in self.blocks: x = block(x)
    return self.head(x)
model = Net().to("tpu")
x, y = torch.randn(32, 64).to("tpu"), torch.randint(0, 10, (32,)).to("tpu")
optimizer = torch.optim.AdamW(model.parameters())
def step(call):
  optimizer.zero_grad()
  loss = nn.functional.cross_entropy(call(x), y)
  loss.backward()
  optimizer.step()
  return loss.item()
def reports():
  print(json.dumps(minipod.time_report("data")[0]))
  for by in ("layer", "line"): print(minipod.time_report("summary", by=by))
'''
MODULES = ["blocks.0.norm", "blocks.0.up", "blocks.0.down", "blocks.1.norm", "blocks.1.up", "blocks.1.down", "head"]


def run(code, prelude=MODEL, **variables):
  """The report as data, and the rows of the short tables by layer and by line."""
  out = tpu.run(code, "v6e:1x1", prelude=prelude, MINIPOD_TIME="model", **variables)
  data = next(line for line in out.splitlines() if line.startswith('{"pod"'))
  tables = [line.split() for line in out.splitlines() if " work " in line]
  return json.loads(data), tables, out


def test_a_step_by_modules_and_lines():
  data, tables, out = run("for _ in range(3): step(model)\nreports()")
  callers = {caller["at"]: 0 for program in data["programs"] for caller in program["callers"]}
  for program in data["programs"]:
    for caller in program["callers"]:
      callers[caller["at"]] += caller["launches"]
  assert callers["blocks.0.up at <string>:8"] == callers["head (backward) at <string>:15"] == 3
  assert {name for name in MODULES if f"{name} at " in str(callers)} == set(MODULES)
  for name in MODULES:
    assert any(at.startswith(f"{name} (backward) at ") for at in callers), (name, callers)
  assert any(at.startswith("AdamW (optimizer) at <string>:23") for at in callers)
  names = [" ".join(row[:-5]) for row in tables]
  assert "blocks.1.up" in names and "blocks.1.up (backward)" in names and "AdamW (optimizer)" in names
  assert "<string>:8" in names and "(eager ops)" in out and "devices are busy" in out
  # Only ops that TorchTPU launches without a dispatch have their own name.
  assert {program["name"] for program in data["programs"] if not program["callers"]} <= {
      "tt_jit_cross_entropy_loss", "tt_jit_cross_entropy_loss_backward"}


def test_compiled_programs_have_modules_and_lines(tmp_path):
  (tmp_path / "net.py").write_text(MODEL)
  data, _, _ = run("compiled = torch.compile(model)\nfor _ in range(3): step(compiled)\n"
                   "torch.compile(model.head)(x)\nreports()", "from net import *\n",
                   PYTHONPATH=tmp_path)
  layers = {row["name"] for program in data["programs"] for row in program["layers"]}
  assert {"blocks.0.up", "blocks.1.down", "head", "head (backward)", "blocks.0.up (backward)"} <= layers
  places = {row["at"] for program in data["programs"] for row in program["ops"]}
  assert f"addmm at {tmp_path}/net.py:8" in places and f"mm at {tmp_path}/net.py:15" in places
  assert not any("minipod" in place for place in places)
  names = [program["name"] for program in data["programs"]]
  assert "tt_jit_Linear/addmm_addmm" in names and not any("minipod" in name for name in names), names


def test_reports_and_times_wait_for_compiled_launches():
  """A thread of TorchTPU's launches a compiled function after its call has returned."""
  out = tpu.run("""
      def launches(): return sum(p["launches"] for client in minipod.time_report("data") for p in client["programs"])
      def seen(read):
        before = read()
        compiled(x)
        return read() > before
      compiled = torch.compile(model.head)
      compiled(x)
      print(sum(seen(launches) for _ in range(300)), sum(seen(minipod.virtual_time) for _ in range(300)))
      """, "v6e:1x1", prelude=MODEL, MINIPOD_TIME="model")
  assert out == "300 300\n"


def test_labels_change_no_value_and_no_time():
  code = "torch.manual_seed(0)\nprint([step(model) for _ in range(3)], minipod.virtual_time())\n"
  code = "torch.manual_seed(0)\nmodel = Net().to('tpu')\noptimizer = torch.optim.AdamW(model.parameters())\n" + code
  outs = [tpu.run(code, "v6e:1x1", prelude="import torch\ntorch.manual_seed(1)\n" + MODEL, MINIPOD_TIME="model",
                  MINIPOD_LABELS=labels) for labels in ("1", "0", "1")]
  assert outs[0] == outs[1] == outs[2]


def test_a_label_is_searched_once_for_a_module_and_line():
  """Then the library knows it, until the module has another name, or another module has its address."""
  data, _, _ = run("""
from minipod.torch_tpu import places
searches, find = [], places.find
places.find = lambda frame: searches.append(find(frame)) or searches[-1]
def in_place(): return nn.Linear(64, 64).to("tpu")
with torch.no_grad():
  for _ in range(3): model(x)
  optimizer.step()
  count = len(searches)
  for _ in range(3): model(x)
  assert count > 10 and len(searches) == count, searches[count:]
  for _ in range(9):
    for kind in (nn.Linear(64, 64), nn.LayerNorm(64)):
      kind.to("tpu")(x); del kind
  head = model.head
  head(torch.relu(x)); nn.Sequential(head)(x)
model = optimizer = None
for _ in range(2):
  t = nn.Parameter(torch.ones(4, device="tpu")); t.grad = torch.ones(4, device="tpu")
  sgd = torch.optim.SGD([t])
  counts = [(sgd.step(), len(searches))[1] for _ in range(3)]
  assert counts[0] == counts[-1], searches
reports()
""")
  callers = {caller["at"]: caller["launches"] for program in data["programs"] for caller in program["callers"]}
  assert any(at.startswith("LayerNorm at") for at in callers) and any(at.startswith("Linear at") for at in callers), callers
  for program in data["programs"]:
    for caller in program["callers"]:
      assert not ("layer_norm" in program["name"] and caller["at"].startswith("Linear at")), program


def test_an_op_outside_of_modules_has_its_line_alone():
  data, tables, _ = run("y = torch.ones(4, device='tpu')\nprint((y + y).sum().item())\nreports()")
  callers = {caller["at"] for program in data["programs"] for caller in program["callers"]}
  assert "<string>:29" in callers and not any("(no module) at" in at for at in callers), callers
  assert any(row[:2] == ["(no", "module)"] for row in tables)


def test_no_labels():
  data, _, _ = run("step(model)\nreports()", MINIPOD_LABELS="0")
  assert not any(program["callers"] for program in data["programs"])


def test_without_time_nothing_is_changed():
  out = tpu.run("""
      import sys
      from torch_tpu._internal import execution_mode
      print([name for name in sys.modules if name.startswith("minipod.torch_tpu.")], execution_mode.eager_mode.name)
      """, "v6e:1x1")
  assert out.strip() == "[] DEFER_NEVER"


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_is_recomputed(reentrant):
  data, _, _ = run(f"""
from torch.utils.checkpoint import checkpoint
step(lambda x: model.head(checkpoint(model.blocks[0], x.requires_grad_(), use_reentrant={reentrant})))
reports()
""")
  callers = {caller["at"] for program in data["programs"] for caller in program["callers"]}
  assert any(at.startswith("up (recomputed) at <string>:8") or at.startswith("blocks.0.up (recomputed) at <string>:8")
             for at in callers), callers


def test_a_wrapper_has_ops_of_its_own():
  """DistributedDataParallel sends the buffers of its model in its own forward."""
  data, _, _ = run("""
import torch.distributed as dist
dist.init_process_group("tpu_dist", init_method="tcp://localhost:0", rank=0, world_size=1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 10), nn.BatchNorm1d(10)).to("tpu"))
optimizer = torch.optim.AdamW(model.parameters())
step(model)
reports()
""")
  callers = {caller["at"] for program in data["programs"] for caller in program["callers"]}
  assert any(at.startswith("1 at <string>:") for at in callers), callers


def test_sharded_parameters_belong_to_their_modules(tmp_path):
  """FSDP2 in 4 ranks: gathers and sums are rows of the module and of the line, and launches have labels."""
  code = """
import sys
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("tpu_dist")
for block in model.blocks: fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
  loss = model(x).square().mean()
  loss.backward()
  optimizer.step()
torch.accelerator.synchronize()
name = f"{sys.argv[1]}/{dist.get_rank()}"
with open(name + ".json", "w") as file: json.dump(minipod.time_report("data")[0], file)
with open(name + ".txt", "w") as file: print(minipod.time_report(), file=file)
dist.destroy_process_group()
"""
  returncode, _, err = jobs.torchrun(MODEL + code, str(tmp_path), MINIPOD_TIME="model")
  assert returncode == 0, err[-3000:]
  backward = str(max(i for i, line in enumerate((MODEL + code).splitlines(), 1) if line == "  loss.backward()"))
  for rank in range(4):
    data = json.loads((tmp_path / f"{rank}.json").read_text())
    by_name = {}
    for program in data["programs"]:
      rows = by_name.setdefault(program["name"], {})
      for caller in program["callers"]:
        assert caller["runs"] == 4 * caller["launches"]
        module, _, place = caller["at"].partition(" at ")
        rows[module, place.rpartition(":")[2]] = caller["launches"]
      # A write into a view is launched after its op; the other one does not come from PyTorch's dispatcher.
      if not program["name"].endswith("as_strided_inverse") and program["name"] != "tt_jit_copy__as_strided":
        assert sum(each["launches"] for each in program["callers"]) == program["launches"], program["name"]
    gathers, sums = (by_name[f"tt_jit_distributed.{kind}_tensor"] for kind in ("all_gather_into", "reduce_scatter"))
    sharded = {f"{name} (backward)" for name in ("blocks.0", "blocks.1", "Net")}
    assert {module for module, _ in sums} == sharded
    assert {"blocks.0", "blocks.1", "blocks.0 (backward)"} <= {module for module, _ in gathers}
    assert {line for _, line in sums} == {backward}
  text = (tmp_path / "0.txt").read_text()
  assert "launched by                      launches     each   share  at" in text
  assert any(line.startswith("  blocks.0 (backward) ") and line.endswith(f"script.py:{backward}") for line in text.splitlines())
