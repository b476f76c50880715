"""The example of the README prints what the README shows, alone and, unchanged, over several processes."""

import pathlib
import re
import subprocess
import sys

import mpirun
import scenario

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools/site"))

import blocks

README = (ROOT / "README.md").read_text()


def example():
  return re.search(r"## An example\n\n```python\n(.*?)```", README, re.DOTALL).group(1)


def told():
  """What the example prints."""
  lines = re.search(r"example\.py\n((?:    .*\n)+)", README).group(1)
  return re.sub("^    ", "", lines, flags=re.MULTILINE)


def test_alone():
  done = subprocess.run([sys.executable, "-c", example()], env=scenario.environment(4), text=True,
                        capture_output=True, timeout=100)
  assert (done.stdout, done.returncode) == (told(), 0), done.stderr


@mpirun.NEEDS_MPIRUN
def test_over_two_processes(tmp_path):
  script = tmp_path / "example.py"
  script.write_text(example())
  job = mpirun.run_well(2, script, 2)
  first, numbers = zip(*(out.splitlines() for out in job.outs))
  assert all(line.startswith("4 MINIPOD_3") for line in first)
  assert numbers == ("[6 7] 6.5", "[8 9] 8.5")
  assert "One process prints `[6 7] 6.5`, the other `[8 9] 8.5`" in README.replace("\n", " ")


def test_sweep(tmp_path):
  """The predicted time that the README shows; it may differ by half, because parameters of the model change."""
  command, table = re.search(r"    \$ minipod (sweep .*)\n((?:    .*\n)+)", README).groups()
  (tmp_path / "example.py").write_text(example())
  done = subprocess.run([sys.executable, "-m", "minipod", *command.split()], cwd=tmp_path, env=scenario.environment(None),
                        text=True, capture_output=True, timeout=100)
  assert blocks.agree(re.sub("^    ", "", table, flags=re.MULTILINE), done.stdout, has_times=True), done.stdout + done.stderr


def test_on_a_described_pod():
  """What the README says below the example: the devices are TPUs, and there are times."""
  assert "With `MINIPOD_TOPOLOGY=v5e:2x2` the simulated devices are TPU v5e chips. Add `MINIPOD_TIME=model`" in README
  pod = scenario.environment(None, MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TIME="model")
  code = example() + "import minipod\nprint(jax.devices()[3].device_kind, minipod.virtual_time() > 0)"
  done = subprocess.run([sys.executable, "-c", code], env=pod, text=True, capture_output=True, timeout=100)
  assert done.stdout.splitlines()[1:] == [told().splitlines()[1], "TPU v5 lite True"], done.stderr
