#!/usr/bin/env python3
"""Prints the four numbers of the README, each from the file in which a measurement recorded it.

    tools/four_numbers.py                        # prints the recorded numbers
    tools/four_numbers.py --markdown             # prints them as a table
    tools/four_numbers.py --write                # writes the table into README.md
    .venv/bin/python tools/four_numbers.py --again    # repeats a cheap part of each measurement: about a minute

The whole measurements take minutes to hours; the last column of the table has their commands.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- numbers: written by tools/four_numbers.py --write -->\n", "<!-- end of numbers -->\n"


@dataclasses.dataclass
class Number:
  what: str
  figure: str
  command: str  # the command that measures it
  again: list[str]  # the command for a cheap part of the measurement


def cells(path: str, end: str = "\0") -> Iterator[list[str]]:
  """The cells of each line of tables in a page, up to a heading of the level `end`."""
  for line in (ROOT / path).read_text().splitlines():
    if line.startswith(f"{end} "):
      return
    if line.startswith("|"):
      yield [cell.strip() for cell in line.strip("| ").split(" | ")]


def prediction() -> Number:
  """Errors of modelled steps, without those of older compilers, which are under another heading."""
  errors = [float(row[5].split()[0]) for row in cells("tools/published/README.md", "###")
            if len(row) == 8 and re.fullmatch(r"[+-][\d.]+ %", row[5])]
  sizes = [abs(error) for error in errors]
  return Number(f"error of predicted step times for {len(errors)} published training runs on TPUs and GPUs",
                f"{statistics.mean(sizes):.1f} % on average, {max(sizes):.0f} % at worst",
                "tools/published/compare.py", ["tools/published/compare.py", "--check", "--filter", "v5p:4x4x4"])


def tests() -> Number:
  files = [[int(cell) for cell in row[1:]] for row in cells("tools/site/pages/pass_rates.md")
           if re.fullmatch(r"`\w+_test\.py`", row[0])]
  passed, failed = (sum(row[column] for row in files) for column in (0, 1))
  return Number(f"JAX's own tests, selected from {len(files)} of its test files: how many pass", f"{passed:,} of {passed + failed:,}",
                "tools/test --conformance DIR", [])


def devices() -> Number:
  rows = [row for row in cells("tools/size/README.md") if len(row) > 3 and re.fullmatch(r"[\d,]+", row[1])]
  whole = lambda cell: float(cell.replace(",", ""))
  row = max((row for row in rows if row[0].startswith("`v")), key=lambda row: whole(row[1]))
  most = whole(row[1])
  return Number("largest pod simulated on two CPU cores: one training step of a model with 16 billion parameters "
                "(times only; array contents are not computed)",
                f"{row[1]} devices; the simulation takes {whole(row[-2]):.0f} s of CPU time and {whole(row[2]) / 1024:.1f} GiB",
                f"tools/size/measure.py --devices {most:.0f} --processor", ["tools/size/measure.py", "--devices", "256"])


def time() -> Number:
  recorded = json.loads((ROOT / "tools/bench/recorded.json").read_text())["cases"]
  ratios = [case["wall"] for case in recorded.values() if "wall" in case]
  less = sum(ratio < 1 for ratio in ratios)
  return Number(f"minipod's run time relative to XLA's CPU backend (below 1: minipod is faster), median of {len(ratios)} benchmarks",
                f"{statistics.median(ratios):.2f}; faster in {less}", "tools/bench/table.py",
                ["tools/bench/table.py", "collectives", "--filter", "psum_8x", "--rounds", "2"])


def numbers() -> list[Number]:
  return [prediction(), tests(), devices(), time()]


def markdown() -> str:
  head = ["| what | measured | command |", "|---|---|---|"]
  return "\n".join([*head, *(f"| {each.what} | **{each.figure}** | `{each.command}` |" for each in numbers())]) + "\n"


def written(text: str) -> str:
  """A page with the table between its two marks."""
  before, mark, rest = text.partition(BEGIN)
  return before + mark + markdown() + END + rest.partition(END)[2]


def measure_again() -> int:
  code = 0
  for number in (each for each in numbers() if each.again):
    print(f"\n$ {' '.join(number.again)}", flush=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MINIPOD_", "JAX_", "XLA_"))
           or name == "MINIPOD_LIBRARY"}
    code |= subprocess.run([sys.executable, *number.again], cwd=ROOT, env=env).returncode
  return code


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  group = parser.add_mutually_exclusive_group()
  group.add_argument("--markdown", action="store_true")
  group.add_argument("--write", action="store_true")
  group.add_argument("--again", action="store_true")
  arguments = parser.parse_args()
  if arguments.write:
    (ROOT / "README.md").write_text(written((ROOT / "README.md").read_text()))
  elif arguments.markdown:
    print(markdown(), end="")
  else:
    for each in numbers():
      print(f"{each.what}: {each.figure} ({each.command})")
  return measure_again() if arguments.again else 0


if __name__ == "__main__":
  sys.exit(main())
