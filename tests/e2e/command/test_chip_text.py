"""Programs as `minipod chip --structure` prints them, compared with the texts in tests/fixtures/chip_text.

    .venv/bin/python tests/e2e/command/test_chip_text.py --write    # after a change of the model: writes the texts again
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tests" / "fixtures" / "chip_text"
BUILT = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-chip"  # an installed package may be older
TOOL = [BUILT] if BUILT.exists() else [sys.executable, "-m", "minipod", "chip"]
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.mlir"))
DEVICES = {"fsdp_layer": ("v5e:2x2", "h100:4")}  # others have one
STAGES = ("fuse", "layout", "memory", "cost", "schedule")


def printed(program, *words):
  targets = [word for target in DEVICES.get(program, ("v5e", "h100")) for word in ("--target", target)]
  done = subprocess.run([*TOOL, *targets, *words, FOLDER / f"{program}.mlir"], capture_output=True, text=True,
                        timeout=300)
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_text(program):
  expected = (FOLDER / f"{program}.txt").read_text()
  found = printed(program, "--structure")
  lines = difflib.unified_diff(expected.splitlines(), found.splitlines(), f"{program}.txt", "printed now", lineterm="")
  assert found == expected, f"the chip program has changed; if that is meant, run {__file__} --write\n" + "\n".join(lines)


def test_structure_has_no_times():
  assert " us" in printed("layer_scan") and " us" not in printed("layer_scan", "--structure")


@pytest.mark.parametrize("program", ["fsdp_layer", "gated_mlp_grad", "stencil_loop"])
def test_stages_add_to_each_other(program):
  """What a stage prints of a kernel, the next one prints, too, and more."""
  texts = {stage: printed(program, "--structure", "--stage", stage) for stage in STAGES}
  assert all(f", after {stage}" in texts[stage] for stage in STAGES[:-1])
  ops = {stage: sorted(line for line in texts[stage].splitlines() if line.startswith("      ops ")) for stage in STAGES}
  assert ops["fuse"] and ops["fuse"] == ops["layout"] == ops["memory"]
  assert set(ops["schedule"]) == set(ops["cost"]) <= set(ops["fuse"])
  assert "layout copy" not in texts["fuse"] and " MiB, HBM" not in texts["layout"]
  assert re.search(r"tensor<\S+> \{\d,-?\d", texts["layout"]), "a TPU's arrays have layouts"
  assert texts["schedule"] == printed(program, "--structure"), "the last stage is the whole program"


def test_kernels_are_in_the_order_of_the_program_before_the_schedule():
  cost, schedule = (printed("fsdp_layer", "--structure", "--stage", stage) for stage in ("cost", "schedule"))
  assert "start of collective" in schedule and "start of collective" not in cost


@pytest.mark.parametrize("words, message", [
    (["--stage", "join"], "--stage takes fuse, layout, memory, cost or schedule, not 'join'"),
    (["--stage", "fuse", "--json"], "--stage and --structure print text"),
    (["--structure", "--summary"], "--stage and --structure print text"),
])
def test_wrong_stages_are_refused(words, message):
  done = subprocess.run([sys.executable, "-m", "minipod", "chip", *words, FOLDER / "softmax.mlir"], capture_output=True,
                        text=True, timeout=300)
  assert done.returncode == 2 and message in done.stderr


if __name__ == "__main__":
  if sys.argv[1:] != ["--write"]:
    sys.exit(__doc__)
  for name in PROGRAMS:
    (FOLDER / f"{name}.txt").write_text(printed(name, "--structure"))
