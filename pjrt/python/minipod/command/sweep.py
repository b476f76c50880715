"""`minipod sweep`: runs a script on several pods or with several values of variables; a table of times."""

import argparse
import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from minipod import command
from minipod import report
from minipod import report_file
from minipod.command import arguments
from minipod.command import sweep_cells
from minipod.command import sweep_failures

ABOUT = """Runs a script on several pods, or with several values of variables, and prints a table.

  minipod sweep --pod v5e:4x4 --pod v5e:8x8 --set BATCH=256,512 --tokens BATCH*4096 -- train.py

Runs the script once for each combination of these values, with MINIPOD_TIME=model. Each row of the table shows the
longest program of a run: the time of a launch (each), tokens/s, MFU, the shares of the time in which a device computes
(work) and in which it only waits for collectives (exposed), the memory that it needs, and the collective that devices
wait for longest. The fastest run comes first, marked with a star; failed runs come last.

When a run fails, the command prints the exception and the line of your code that raised it; with --verbose, all that
the run wrote to standard error.

MFU counts the matmuls of the program except those that a checkpoint recomputes; --model-flops sets your own count.
Expressions of --tokens and --model-flops may use the variables of --set, and `devices`."""


def _parser() -> argparse.ArgumentParser:
  parser = arguments.parser("sweep", ABOUT)
  parser.add_argument("--pod", action="append", default=[], help="a pod (value of MINIPOD_TOPOLOGY); repeat it for more pods")
  parser.add_argument("--set", action="append", default=[], metavar="NAME=A,B",
                      help="values of a variable; separate values that contain commas by ';'")
  parser.add_argument("--values", choices=("real", "shapes"), default="shapes",
                      help="shapes (the default): compute no large arrays; the script reads nan")
  parser.add_argument("--tokens", metavar="EXPR", help="tokens per launch, for tokens/s: BATCH*4096")
  parser.add_argument("--model-flops", metavar="EXPR", help="operations per launch on all devices, for MFU: 6*8e9*BATCH*4096")
  parser.add_argument("--verbose", action="store_true", help="print the whole standard error of failed runs")
  parser.add_argument("--json", action="store_true", help="print JSON, with numbers in full precision")
  parser.add_argument("--csv", action="store_true", help="print the same as CSV")
  parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py ...",
                      help="a script (or -m MODULE) for this Python, or another command")
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
  """The report of a run; where there is none, a row with "error" and its whole "stderr"."""
  with tempfile.TemporaryDirectory(prefix="minipod-sweep-") as folder:
    env = {**os.environ, "MINIPOD_TIME": "model", "MINIPOD_DUMP": folder}
    if values == "shapes":
      env = {"MINIPOD_ABSENT": "nan", **env, "MINIPOD_VALUES": "shapes"}
    done = subprocess.run(words, env={**env, **dict(settings)}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    files = sorted(pathlib.Path(folder).glob("*.time.json"), key=lambda path: path.stat().st_size)
    if done.returncode or not files:
      stderr = done.stderr.decode(errors="replace")
      return sweep_failures.failure(stderr, done.returncode) | {"stderr": stderr}
    return report.read_one(report_file.read_bytes(files[-1]))


def _row(settings: list[tuple[str, str]], made: dict, asked: argparse.Namespace) -> dict:
  row = {"settings": dict(settings)}
  if "error" in made:
    return row | {key: value for key, value in made.items() if key != "stderr"}
  if not made["programs"]:
    return row | {"error": "no program has run"}
  program = made["programs"][0]
  names = {**dict(settings), "devices": report.partners(program)}
  each = report.each_launch(program)
  row |= {
      "program": report.title(program), "launches": program["launches"],
      "step_seconds": each, "work": report.work(program), "exposed": report.exposed(program),
      "exposed_collective": sweep_cells.exposed_most(program),
      "memory_bytes": program["memory"]["bytes"], "device_memory": made.get("device_memory"),
      "utilisation": report.utilisation(made, program), "seconds": made["seconds"]}
  flops = sweep_cells.value(asked.model_flops, names) if asked.model_flops else None
  row["mfu"] = report.mfu(made, program, flops)
  if asked.tokens:
    row["tokens_per_second"] = sweep_cells.value(asked.tokens, names) / each if each else 0.0
  return row


def _sort(rows: list[dict]) -> None:
  """The fastest first, which is marked; what failed last."""
  rows.sort(key=lambda row: (1, 0, 0) if "error" in row else (0, -row.get("tokens_per_second", 0.0), row["step_seconds"]))
  if sum("error" not in row for row in rows) > 1:
    rows[0]["is_best"] = True


def _print_failure(row: dict, stderr: str, is_verbose: bool) -> None:
  """What a run failed with, as soon as it has."""
  command.complain("sweep", f"{sweep_cells.settings_of(row)}: {row['error']}")
  if "line" in row:
    print(f"  at {row['line']}", file=sys.stderr)
  if is_verbose:
    print(*(f"  | {report.visible(each)}" for each in stderr.splitlines()), sep="\n", file=sys.stderr)


def _print_csv(rows: list[dict]) -> None:
  named = sweep_cells.setting_names(rows)
  fields = ["program", "launches", "step_seconds", "tokens_per_second", "mfu", "utilisation", "work", "exposed",
            "exposed_collective", "memory_bytes", "device_memory", "error", "line"]
  writer = csv.writer(sys.stdout, lineterminator="\n")
  writer.writerow([*named.values(), *fields])
  for row in rows:
    made = row | {"exposed_collective": (row.get("exposed_collective") or {}).get("name")}
    writer.writerow([*(row["settings"][name] for name in named), *(made.get(field) for field in fields)])


def main(words: list[str]) -> int:
  parser = _parser()
  asked = parser.parse_args(words)
  words = arguments.words(parser, asked.command, "command")
  if asked.json and asked.csv:
    parser.error("--json or --csv")
  try:
    choices = _choices(asked)
    for settings in choices:
      for text in filter(None, (asked.tokens, asked.model_flops)):
        sweep_cells.value(text, {**dict(settings), "devices": 1})
  except ValueError as error:
    parser.error(str(error))
  words = arguments.as_command(words)
  rows = []
  for settings in choices:
    made = _run(words, settings, asked.values)
    rows.append(_row(settings, made, asked))
    if "error" in rows[-1]:
      _print_failure(rows[-1], made.get("stderr", ""), asked.verbose)
  _sort(rows)
  if asked.json:
    print(json.dumps(rows, indent=1))
  elif asked.csv:
    _print_csv(rows)
  else:
    print(arguments.columns(sweep_cells.table(rows), ""))
  return int(any("error" in row for row in rows))
