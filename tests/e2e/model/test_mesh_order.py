"""The worked example of configs/README.md shows the output of its script, and its picture is up to date."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree

import jax
import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
CONFIGS = ROOT / "configs"
TOPO = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-topo"
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": CONFIGS / "two-slices.yaml"}
# With other versions of JAX the script has other programs; then only the order of the times is compared.
IS_PINNED = f"jax=={jax.__version__}\n" in (ROOT / "tests/requirements.txt").read_text()


def run(*arguments, **variables):
  done = subprocess.run([sys.executable, CONFIGS / "mesh_order.py", *map(str, arguments)], capture_output=True,
                        text=True, timeout=100, env=scenario.environment(None, **POD, **variables))
  assert done.returncode == 0, done.stderr
  return done.stdout


def told():
  """(arguments, output) of each run of the script in the README."""
  text = (CONFIGS / "README.md").read_text()
  pattern = r"^    \$ python configs/mesh_order\.py (.*)\n((?:    [^$\n].*\n)*)"
  for arguments, output in re.findall(pattern, text, re.MULTILINE):
    yield tuple(shlex.split(arguments)), re.sub("^    ", "", output, flags=re.MULTILINE)


def step_time(output):
  return int(re.search(r": (\d+) us a step", output).group(1))


@pytest.fixture(scope="module")
def outputs():
  return {arguments: (run(*arguments, MINIPOD_VALUES="shapes"), output) for arguments, output in told()}


@pytest.mark.skipif(not IS_PINNED, reason="the README tells of the pinned JAX")
def test_the_script_prints_what_the_readme_shows(outputs):
  assert len(outputs) == 2
  for printed, output in outputs.values():
    assert printed == output


def test_which_order_is_faster(outputs):
  times = {arguments: step_time(printed) for arguments, (printed, _) in outputs.items()}
  assert times["data,model", "32768"] * 2 < times["model,data", "32768"]
  assert "host 0 up" in outputs["model,data", "32768"][0].splitlines()[1]
  # With one order the weights cross the slow network, with the other one the activations do.
  small = {order: run(order, 2048, MINIPOD_VALUES="shapes") for order in ("data,model", "model,data")}
  assert step_time(small["model,data"]) < step_time(small["data,model"])
  if IS_PINNED:
    text = (CONFIGS / "README.md").read_text()
    for order in small:
      assert f"{step_time(small[order])} us" in text


def test_results_do_not_depend_on_the_order():
  losses = {re.search("loss (.*)", run(order, 256)).group(1) for order in ("data,model", "model,data")}
  assert len({float(loss) for loss in losses}) == 1


def test_the_picture_shows_the_hot_links(tmp_path):
  run("model,data", 32768, MINIPOD_VALUES="shapes", MINIPOD_TRACE=tmp_path / "t.json")
  loads = subprocess.run([sys.executable, "-m", "minipod", "loads", "--program", "jit_train_step",
                          tmp_path / "t.json"], capture_output=True, text=True, check=True).stdout
  by_link = dict(line.rsplit(": ", 1) for line in loads.splitlines())
  hottest = max(by_link, key=lambda link: float(by_link[link]))
  assert re.fullmatch("host . (up|down)", hottest) and 0.5 < float(by_link[hottest]) < 1
  (tmp_path / "loads.txt").write_text(loads)
  picture = subprocess.run([TOPO, "--svg", "--loads", tmp_path / "loads.txt"], capture_output=True, text=True,
                           check=True, env=scenario.environment(None, **POD)).stdout
  if IS_PINNED:
    assert picture == (CONFIGS / "mesh_order.svg").read_text()
  assert xml.etree.ElementTree.fromstring(picture).tag.endswith("svg")
