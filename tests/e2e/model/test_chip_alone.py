"""Virtual times have the same bits however this machine runs a program, and also if it does not run it.

Random programs (chip_programs.py), the example scripts and the README's program run in processes of their own, each
with other options, and must print the same times and tables.  MINIPOD_TEST_FULL=1: 500 programs, a quarter on each of
four pods, with every combination of options; all scripts over several processes.
"""

import concurrent.futures
import os
import pathlib
import re
import sys

import mpirun
import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
FULL = os.environ.get("MINIPOD_TEST_FULL") == "1"
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x2"}
# A TPU's compiler, with two devices per chip; a GPU's, which overlaps every collective with compute; none.
PODS = ["v5e:2x2", *(["7x:2x1x1", "h100:4", "torus:2x2"] if FULL else [])]
COUNT = 125 if FULL else 30  # of the programs of one pod
PROGRAMS = """
import sys
sys.path.insert(0, {folder!r})
import chip_programs
chip_programs.main({first}, {count}, {kinds!r})
"""
# Options of running a program; each is compared with the defaults.
WAYS = [{"MINIPOD_FUSE": "0", "MINIPOD_NATIVE": "2"}, {"MINIPOD_NATIVE": "2", "MINIPOD_WORKERS": "1"}]
MORE_WAYS = [{"MINIPOD_FUSE": "0"}, {"MINIPOD_NATIVE": "0"}, {"MINIPOD_NATIVE": "0", "MINIPOD_WORKERS": "7"}]
SHAPES = {"MINIPOD_VALUES": "shapes"}


def programs(pod, kinds):
  """The code that runs the programs of these kinds among those that are this pod's."""
  first = PODS.index(pod) * COUNT
  return PROGRAMS.format(folder=str(pathlib.Path(__file__).parent), first=first, count=COUNT, kinds=kinds)


def every(code, ways):
  """The output of the code with each of these options; two processes run at a time."""
  with concurrent.futures.ThreadPoolExecutor(2) as pool:
    return list(pool.map(lambda way: scenario.run(code, devices=None, timeout=1200, **POD | way), ways))


def on(pod, ways):
  return [{"MINIPOD_TOPOLOGY": pod} | way for way in ways]


def expect_same(outputs, ways):
  first = outputs[0].splitlines()
  for output, way in zip(outputs, ways):
    others = [f"{line}\n  not {other}" for line, other in zip(first, output.splitlines()) if line != other]
    assert not others, f"with {way}: {len(others)} lines differ\n" + "\n".join(others[:10])
    assert output == outputs[0]


@pytest.mark.parametrize("pod", PODS)
def test_however_it_runs(pod):
  ways = on(pod, [{}, *WAYS, *(MORE_WAYS if FULL else [])])
  outputs = every(programs(pod, "flow,surely,spread,ops"), ways)
  assert len(re.findall(r"^\d+ (?:flow|surely|spread|ops) \d+ \d+", outputs[0], re.M)) == COUNT
  expect_same(outputs, ways)


@pytest.mark.parametrize("pod", PODS)
def test_without_values(pod):
  """Values that control flow depends on are computed in this mode, too; otherwise the path is a guess."""
  ways = on(pod, [{}, SHAPES, *([SHAPES | {"MINIPOD_FUSE": "0"}] if FULL else [])])
  expect_same(every(programs(pod, "surely,spread"), ways), ways)


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("ranks", [2, 4] if FULL else [4])
@pytest.mark.parametrize("pod", PODS)
def test_any_number_of_processes(pod, ranks):
  where = POD | {"MINIPOD_TOPOLOGY": pod}
  alone = scenario.run(programs(pod, "spread"), devices=None, timeout=1200, **where)
  job = mpirun.run_well(ranks, programs(pod, "spread"), timeout=1200, **where)
  times = [re.findall(r"^\d+ spread .*", out, re.M) for out in [alone, *job.outs]]
  assert len(times[0]) == COUNT * 2 // 5
  assert times[1:] == times[:1] * ranks


def test_a_nest_of_loops_after_a_loop():
  """The end of the first loop does not count as an iteration of the second."""
  out = every("""
      import minipod
      def f(x, n):
        x = lax.fori_loop(0, n, lambda i, x: x * 0.5 + 1, x)
        return lax.fori_loop(0, n, lambda i, x: lax.fori_loop(0, 3, lambda j, x: x * 0.9 + j, x) + i, x)
      jax.jit(f)(jnp.float32(1), 2).block_until_ready()
      print(minipod.virtual_time().hex())
      """, [{}, {"MINIPOD_FUSE": "0"}, {"MINIPOD_NATIVE": "2"}])
  assert len(set(out)) == 1


# ---- scripts ----

EXAMPLE = re.search(r"```python\n(import jax.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
# A line at the end of each script prints the total virtual time.
END = "\nimport minipod\nprint('virtual time', minipod.virtual_time().hex())\n"
SCRIPT = """
import runpy, sys
sys.path.insert(0, {folder!r})
sys.argv = {arguments!r}
runpy.run_path(sys.argv[0], run_name="__main__")
""" + END


def script(path, *arguments):
  path = ROOT / path
  return SCRIPT.format(folder=str(path.parent), arguments=[str(path), *map(str, arguments)])


SMALL = ('"layers": 2, "emb": 256, "heads": 4, "kv_heads": 2, "head_dim": 64, "mlp": 512, "vocab": 512, "batch": 8, '
         '"sequence": 128, "block": 64')
STEPS = {"train_step": '{"flash": false, "tensor": 2, "remat": "minimal", ' + SMALL + "}",
         "train_step_offload": '{"flash": false, "remat": ["input", "context"], "offload": true, ' + SMALL + "}"}

# Name, code, pod, whether it reads values.
SCRIPTS = [
    ("README", EXAMPLE + END, "v5e:2x2", True),
    ("README", EXAMPLE + END, "configs/gpu-cluster.yaml", True),
    ("README", EXAMPLE + END, "configs/hierarchy.yaml", True),
    ("README", EXAMPLE + END, "configs/rack.yaml", True),
    ("README", EXAMPLE + END, "configs/v5e-16.yaml", True),
    ("mesh_order", script("configs/mesh_order.py", "model,data", 256), "configs/two-slices.yaml", False),
    ("train_mlp", script("tests/e2e/scripts/train_mlp.py"), "v5e:2x2", True),
    ("train_transformer", script("tests/e2e/scripts/train_transformer.py"), "v5e:2x2", True),
]
if FULL:
  SCRIPTS += [(name, script("tools/published/train_step.py", model), pod, False)
              for name, model in STEPS.items() for pod in ("v5e:2x2", "h100:4 slices:2")]
  SCRIPTS += [("mesh_order", script("configs/mesh_order.py", "data,model", 256), "configs/two-slices.yaml", False)]
OVER_PROCESSES = [row for row in SCRIPTS if row[0].startswith("train")]


@pytest.mark.parametrize("name, code, pod, reads", SCRIPTS, ids=[f"{name}-{pod}" for name, _, pod, _ in SCRIPTS])
def test_scripts(name, code, pod, reads):
  where = {"MINIPOD_TOPOLOGY": str(ROOT / pod) if pod.endswith("yaml") else pod}
  ways = [where, where | WAYS[0], *([where | way for way in WAYS[1:] + MORE_WAYS] if FULL else [])]
  outs = every(code, ways if reads else [*ways, where | SHAPES])
  if not reads:  # except for the loss at the end, whose transfer to the host takes time
    assert outs.pop().splitlines()[0] == outs[0].splitlines()[0]
  times = [re.search("virtual time (.*)", out).group(1) for out in outs]
  assert len(set(times)) == 1 and float.fromhex(times[0]) > 1e-6


@mpirun.NEEDS_MPIRUN
@pytest.mark.skipif(not FULL, reason="MINIPOD_TEST_FULL=1 runs them")
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name, code, pod, reads", OVER_PROCESSES,
                         ids=[f"{name}-{pod}" for name, _, pod, _ in OVER_PROCESSES])
def test_scripts_over_processes(name, code, pod, reads, ranks):
  where = POD | {"MINIPOD_TOPOLOGY": pod}
  alone = scenario.run(code, devices=None, timeout=800, **where)
  job = mpirun.run_well(ranks, code, timeout=800, **where)
  times = [re.search("virtual time (.*)", out).group(1) for out in [alone, *job.outs]]
  assert len(set(times)) == 1 and float.fromhex(times[0]) > 1e-6
