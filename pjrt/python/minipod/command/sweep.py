"""`minipod sweep`: one command on several pods or under several variables, as a table of times."""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import tempfile

from minipod import command
from minipod import report
from minipod.command import arguments

ABOUT = """One command on several pods, or under several values of variables, as a table.

  minipod sweep --pod v5e:4x4 --pod v5e:8x8 --set MINIPOD_ALGORITHMS=,all_reduce:ring -- train.py

Every combination is a run with MINIPOD_TIME=model. The table has the program that takes longest of each:
time of a launch, the parts that are work and exposed collectives, memory of a device, and products of
matrices as a share of the peak."""


def _parser() -> argparse.ArgumentParser:
  parser = arguments.parser("sweep", ABOUT)
  parser.add_argument("--pod", action="append", default=[], help="a value of MINIPOD_TOPOLOGY")
  parser.add_argument("--set", action="append", default=[], metavar="NAME=A,B",
                      help="values of a variable; between ';' where they have commas")
  parser.add_argument("--values", choices=("real", "shapes"), default="shapes",
                      help="shapes (the default): nothing large is computed, and what a script reads is nan")
  parser.add_argument("--json", action="store_true")
  parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py ...")
  return parser


def _choices(asked: argparse.Namespace) -> list[list[tuple[str, str]]]:
  lists = [[("MINIPOD_TOPOLOGY", pod) for pod in asked.pod]] if asked.pod else []
  for text in asked.set:
    name, equals, values = text.partition("=")
    if not equals:
      raise ValueError(f"--set {text}: expected NAME=VALUE,VALUE")
    lists.append([(name, value) for value in values.split(";" if ";" in values else ",")])
  return [list(each) for each in itertools.product(*lists)]


def _run(words: list[str], settings: list[tuple[str, str]], values: str) -> dict:
  """The report of a run; with "error" where there is none."""
  with tempfile.TemporaryDirectory(prefix="minipod-sweep-") as folder:
    env = {**os.environ, "MINIPOD_TIME": "model", "MINIPOD_DUMP": folder}
    if values == "shapes":
      env = {"MINIPOD_ABSENT": "nan", **env, "MINIPOD_VALUES": "shapes"}
    done = subprocess.run(words, env={**env, **dict(settings)}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    files = sorted(pathlib.Path(folder).glob("*.time.json"), key=lambda path: path.stat().st_size)
    if done.returncode or not files:
      lines = done.stderr.decode(errors="replace").strip().splitlines()
      return {"error": lines[-1] if lines else f"exit code {done.returncode}, no time report"}
    return json.loads(files[-1].read_text())


def _row(settings: list[tuple[str, str]], made: dict) -> dict:
  row = {"settings": dict(settings)}
  if "error" in made:
    return row | {"error": made["error"]}
  if not made["programs"]:
    return row | {"error": "no program has run"}
  program = made["programs"][0]
  return row | {
      "program": program["name"], "launches": program["launches"],
      "step_seconds": report.each_launch(program), "work": report.work(program),
      "exposed": report.exposed(program), "memory_bytes": program["memory"]["bytes"],
      "utilisation": report.utilisation(made, program), "seconds": made["seconds"]}


def _words(row: dict) -> tuple[str, ...]:
  name = " ".join(value or "-" for value in row["settings"].values()) or "as it is"
  if "error" in row:
    return name, row["error"][:60], "", "", "", "", ""
  used = row["utilisation"]
  return (name, row["program"], report.seconds(row["step_seconds"]), report.share(row["work"], 1),
          report.share(row["exposed"], 1), f"{row['memory_bytes'] / 2**20:.1f} MiB",
          "-" if used is None else report.share(used, 1))


def main(words: list[str]) -> int:
  parser = _parser()
  asked = parser.parse_args(words)
  words = arguments.words(parser, asked.command, "command")
  try:
    choices = _choices(asked)
  except ValueError as error:
    parser.error(str(error))
  words = arguments.as_command(words)
  rows = []
  for settings in choices:
    rows.append(_row(settings, _run(words, settings, asked.values)))
    if "error" in rows[-1]:
      command.complain("sweep", f"{rows[-1]['settings']}: {rows[-1]['error']}")
  if asked.json:
    print(json.dumps(rows, indent=1))
  else:
    print(arguments.columns(
        [("settings", "program", "each", "work", "exposed", "memory", "of the peak"),
         *map(_words, rows)], ""))
  return int(any("error" in row for row in rows))
