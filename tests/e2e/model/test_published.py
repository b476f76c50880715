"""The recorded tables in tools/published are up to date."""

import json
import pathlib
import subprocess
import sys

import jax
import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
FOLDER = ROOT / "tools/published"


@pytest.mark.skipif(f"jax=={jax.__version__}\n" not in (ROOT / "tests/requirements.txt").read_text(),
                    reason="other versions of JAX make other programs of a step")
@pytest.mark.parametrize("word, count", [("all_reduce", 6), ("slices:2 dcn", 1), ("v5p:4x4x4", 3)])
def test_the_recorded_figures(word, count):
  done = subprocess.run([sys.executable, FOLDER / "compare.py", "--check", "--filter", word], capture_output=True,
                        text=True, timeout=150, env=scenario.environment(None))
  assert done.returncode == 0, done.stderr
  rows = [line for line in done.stdout.splitlines() if line.startswith("|") and "`" in line and "[" in line]
  recorded = (FOLDER / "README.md").read_text().splitlines()
  assert len(rows) == count and set(rows) <= set(recorded)


def test_the_recorded_unseen_rows():
  done = subprocess.run([sys.executable, FOLDER / "unseen.py", "--recorded"], capture_output=True, text=True, timeout=60)
  assert done.returncode == 0, done.stderr
  rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
  assert len(rows) > 99 and set(rows) <= set((FOLDER / "README.md").read_text().splitlines())


def test_what_a_step_says():
  """Most of its collectives overlap with compute."""
  model = {"emb": 1024, "heads": 8, "mlp": 4096, "layers": 2, "batch": 32}
  pod = scenario.environment(None, MINIPOD_TIME="model", MINIPOD_VALUES="shapes", MINIPOD_TOPOLOGY="v5e:2x4")
  done = subprocess.run([sys.executable, FOLDER / "train_step.py", json.dumps(model)], capture_output=True, text=True,
                        timeout=150, env=pod)
  assert done.returncode == 0, done.stderr
  step = json.loads(done.stdout)
  assert step["devices"] == 8 and 0.5 < step["work"] < 1
  assert step["seconds"] * step["collective"] < step["hidden"] < step["seconds"]
