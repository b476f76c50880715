"""tools/chip/fit.py: a chip's file from what its compiler says, and the page that tells how to use it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
BUILD = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "tools" / "chip"))

import corpus
import fit
import gpu


def run(*words, folder=ROOT):
  done = subprocess.run([sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


def page_file(name):
  """The last version of a file on the page."""
  page = (ROOT / "tools/site/pages/new_chip.md").read_text()
  return re.findall(rf"```{{code-block}} yaml\n:caption: {name}\n\n?(.*?)```", page, re.DOTALL)[-1]


def shares(line):
  return [float(percent) for percent in re.findall(r"([\d.]+) %", line)]


def test_a_wrong_value_is_found_again(tmp_path):
  """A v3 whose matmuls have steps twice as long as a v3's."""
  file = tmp_path / "slow.yaml"
  file.write_text("# A slow one.\nlike: v3\nsources: {estimate: {matmul.step: twice a v3's}}\nmatmul: {step: 784ns}\n")
  before, after, *rest = run("tools/chip/fit.py", "v3", "--file", file, "--keys", "matmul.step", "--write", file,
                             "--build", BUILD).splitlines()
  assert shares(after)[0] > shares(before)[0] and shares(after)[1] >= shares(before)[1]
  assert rest[0].startswith("matmul.step: 784ns -> ")
  values, own = fit.read(str(file))
  assert 300 < float(values["matmul.step"].removesuffix("ns")) < 500 and values["matmul.launch"] == fit.read("v3")[0]["matmul.launch"]
  assert list(own["sources"]) == ["compiler"] and "fitted" in own["sources"]["compiler"]["matmul"]
  assert file.read_text().startswith("# A slow one.\nlike: v3\n") and "# Residuals of the fitted programs:\n# " in file.read_text()


@pytest.mark.parametrize("value, factor, result", [("200ns", 1.5, "300ns"), (0.8, 1.1, 0.88), (2048, 1, 2050), ("1.5us", 2, "3us")])
def test_values_keep_their_units(value, factor, result):
  assert fit.times(value, factor) == result


def test_a_file_inherits_members_of_lists():
  values, own = fit.read("v3")
  assert values["matmul.rates.f32"] == fit.read("v4")[0]["matmul.rates.f32"] and "f32" not in own["matmul"]["rates"]
  assert "memory.scratch" not in values, "none removes it"


def test_the_steps_of_the_page_run(tmp_path):
  """Those that need no compiler of a chip, with the page's last file."""
  page = (ROOT / "tools/site/pages/new_chip.md").read_text()
  (tmp_path / "my_chips").mkdir()
  (tmp_path / "my_chips/v3.yaml").write_text(page_file("my_chips/v3.yaml"))
  (tmp_path / "tools").symlink_to(ROOT / "tools")
  commands = re.findall(r"^    .venv/bin/python (tools/chip/.*)$", page, re.MULTILINE)
  assert [command.split()[0] for command in commands] == ["tools/chip/fit.py", "tools/chip/compare.py"]
  fitted, compared = [run(*command.split(), "--build", BUILD, folder=tmp_path) for command in commands]
  before, after = (shares(line) for line in fitted.splitlines()[:2])
  assert after[0] > before[0] + 5 and after[1] >= before[1]
  assert shares_of_row(compared, "v3") == pytest.approx(after, abs=3), "the library's file is the result of these steps"


def test_a_gpu_without_preset_is_scored(tmp_path, monkeypatch):
  """The page's pod file, with the rows of a chip whose matmuls XLA has not measured either."""
  (tmp_path / "my_chips").mkdir()
  for name in ("my_chips/l40s_pod.yaml", "my_chips/l40s.yaml"):
    (tmp_path / name).write_text(page_file(name))
  monkeypatch.chdir(tmp_path)
  read_rows = corpus.read_rows
  monkeypatch.setattr(corpus, "read_rows", lambda chip: read_rows("a100" if chip == "l40s" else chip))
  monkeypatch.setitem(gpu.CHIPS, "l40s", gpu.Chip(864e9, 362e12, tables=False))
  monkeypatch.setitem(fit.model.ONE, "l40s", "my_chips/l40s_pod.yaml")
  found, refused = fit.model.predict(BUILD / "minipod-chip", ["l40s"], "softmax")
  assert {p.chip for p, _ in found} == {"l40s"} and not refused
  assert fit.fittable("l40s") == ["vector.share", "sort.stage", "window.scan"]
  assert {"matmul.bf16.memory", "memory.share", "kernel.latency"} <= set(fit.fittable("h200"))


def shares_of_row(table, chip):
  row = next(line for line in table.splitlines() if line.startswith(chip))
  return [float(cell) for cell in re.findall(r"([\d.]+) \(", row)]
