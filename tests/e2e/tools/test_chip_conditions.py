"""tools/chip: conditions of C sources are found, counted and forced, and sorted by what they are worth."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools" / "chip"))

import conditions
import instrument

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
// if (a comment) says && nothing
static int sign(int x) {
  const int size = x > 9 || x < -9 ? 2 : 1;
  if (!(x != 0 && sizeof("if (") > 1))
    return 0;
  return x > 0 ? size : -size;
}
int main(int argc, char** argv) {
  for (int i = 1; i < argc; i++)
    printf("%d ", sign(atoi(argv[i])));
  return 0;
}
"""


@pytest.fixture(name="program", scope="module")
def build(tmp_path_factory):
  folder = tmp_path_factory.mktemp("conditions")
  text, found = instrument.instrument(PROGRAM, 0)
  assert found == [(5, "x > 9"), (5, "x < -9"), (6, "x != 0"), (6, 'sizeof("if (") > 1'), (8, "x > 0")]
  (folder / "condition.h").write_text(instrument.HEADER)
  (folder / "condition.c").write_text(instrument.SOURCE % {"count": len(found)})
  (folder / "main.c").write_text(text)
  subprocess.run(["gcc", "-I", folder, "-o", folder / "main", folder / "main.c", folder / "condition.c"], check=True)
  return folder / "main"


def run(program, *words, **variables):
  return subprocess.run([program, *map(str, words)], env=variables, capture_output=True, text=True, check=True).stdout.split()


def test_values_are_counted(program, tmp_path):
  counts = tmp_path / "counts"
  assert run(program, 5, -20, 0, CONDITION_COUNTS=str(counts)) == ["1", "-2", "0"]
  assert counts.read_text().split("\n") == ["3 0", "2 1", "1 2", "0 2", "1 1", ""]


def test_a_condition_is_forced(program):
  assert run(program, 5, -20, CONDITION="4:1") == ["1", "2"]
  assert run(program, 5, -20, CONDITION="1:0") == ["1", "-1"]
  assert run(program, 5, 0, CONDITION="2:0") == ["0", "0"]


def test_what_is_worth_nothing_is_named():
  condition = conditions.Condition(0, "a.c", 1, "x")
  condition.seen = {False: {"p", "q"}, True: set()}
  assert condition.usual is False and condition.kind(0.05) == "unseen"
  condition.seen[True] = {"r"}
  assert condition.rare == {"r"} and condition.kind(0.05) == "idle"
  condition.changed, condition.error = 2, 0.01
  assert condition.kind(0.05) == "useless"
  condition.error = 0.2
  assert condition.kind(0.05) is None
