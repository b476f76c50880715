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

import fit


def run(*words):
  done = subprocess.run([sys.executable, *map(str, words)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


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
