#!/usr/bin/env python3
"""Compares minipod with JAX's CPU backend in one run: wall time, processor time, memory, and their ratios.

    .venv/bin/python tools/bench/table.py [SECTION…] [--filter TEXT] [--rounds 3]
        [--json FILE] [--plot FILE.png] [--check] [--factor 1.5] [--record] [--smoke]

A section's cases run in one process per platform and round.  The platforms take turns, so a busy machine affects both
alike.  The shortest time of the rounds counts.  A ratio is minipod's result divided by the CPU backend's: below 1,
minipod needs less.

The column `share` compares a case with the machine's limits, which are measured in the same run (limits.py).  It is the
shortest possible time as a share of the measured time.  The shortest possible time includes waking the cores, and then
the case's minimum bytes at the bandwidth of such traffic, or its operations at the peak of multiply-adds.

`--check` compares the ratios with those in `recorded.json`, and measures again the cases that are worse.  `--record`
writes that file, for the chosen cases.  `--smoke` runs every case once on minipod and measures nothing.

The exit code is 1 if a case stays worse with `--check`, if a case fails on minipod, or if a ratio exceeds its own
limit.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import cases
import limits
import plot
import record
import report

PLATFORMS = ("minipod", "cpu")
HERE = pathlib.Path(__file__).parent
PROCESS_SECONDS = 600


# ---- Processes ----

def environment(platform, devices, x64):
  env = {name: value for name, value in os.environ.items()
         if not name.startswith("JAX_") and name != "XLA_FLAGS"}
  env |= {"JAX_PLATFORMS": platform, "JAX_ENABLE_X64": str(int(x64))}
  if platform == "minipod":
    env["MINIPOD_DEVICES"] = str(devices)
  else:
    env["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
  return env


def groups(chosen):
  """The names of cases that run in one process: cases of one section, with the same pod."""
  result = {}
  for name, case in chosen.items():
    result.setdefault((name.split("/")[0], case.devices, case.x64), []).append(name)
  return result


def run(platform, group, names, smoke=False):
  """The results of one process's cases, by name."""
  command = [sys.executable, str(HERE / "measure.py"), *(["--smoke"] if smoke else [])]
  try:
    child = subprocess.run(command, input=json.dumps(names), text=True, capture_output=True,
                           timeout=PROCESS_SECONDS, env=environment(platform, *group[1:]))
    out, end = child.stdout, f"exit code {child.returncode}: {child.stderr[-300:]}"
  except subprocess.TimeoutExpired as error:
    out, end = (error.stdout or b"").decode(), f"not done after {PROCESS_SECONDS} s"
  lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"case"')]
  figures = {line.pop("case"): line for line in lines}
  return {name: figures.get(name, {"error": end}) for name in names}


# ---- Rounds ----

def least(table, name, platform, figures):
  """Keeps the smaller value of each quantity; an error stays."""
  kept = table.setdefault(name, {}).setdefault(platform, figures)
  for figure, value in figures.items():
    kept[figure] = value if figure == "error" else min(kept.get(figure, value), value)


def measure(chosen, rounds, table, say):
  """Adds results to the table; returns the machine's limits in the same time."""
  machine = None
  for turn in range(rounds):
    say(f"round {turn + 1} of {rounds}: limits of the machine")
    machine = limits.best(machine, limits.measure())
    for group, names in groups(chosen).items():
      say(f"round {turn + 1} of {rounds}: {group[0]}")
      for platform in PLATFORMS[::-1] if turn % 2 else PLATFORMS:
        for name, figures in run(platform, group, names).items():
          least(table, name, platform, figures)
  say("")
  return machine


def progress(text):
  """A line on the terminal that is overwritten."""
  if sys.stderr.isatty():
    print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
  elif text:
    print(text, file=sys.stderr, flush=True)


def warn_if_busy():
  load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
  if load > cores / 2:
    print(f"the machine is busy (load {load:.1f} on {cores} cores): ratios will be rough, take "
          "more rounds", file=sys.stderr)


def smoke(chosen):
  bad = 0
  for group, names in groups(chosen).items():
    for name, figures in run("minipod", group, names, smoke=True).items():
      if "error" in figures:
        bad += 1
        print(f"{name}: {figures['error']}", flush=True)
  print(f"{len(chosen) - bad} of {len(chosen)} cases run on minipod")
  return 1 if bad else 0


# ---- Verdicts ----

def verdict(chosen, table):
  """Failures that do not depend on the recorded results: cases that fail, and ratios above their own limits."""
  faults = []
  for name, case in chosen.items():
    if "error" in table[name]["minipod"]:
      faults.append(f"{name} fails on minipod: {table[name]['minipod']['error']}")
    ratios = report.ratios(table[name])
    faults += [f"{name}: {figure} ratio {ratios[figure]:.2f} is above its limit, {limit}"
               for figure, limit in case.limits.items() if ratios.get(figure, 0) > limit]
  return faults


def check(chosen, table, arguments):
  """Cases that are slower or larger than recorded, also when measured again."""
  recorded = record.load()
  for difference in record.other_machine(recorded):
    print(f"recorded elsewhere: {difference}", file=sys.stderr)
  if worse := record.worse(recorded, table, arguments.factor):
    measure({name: chosen[name] for name in worse}, arguments.rounds, table, progress)
  return list(record.worse(recorded, table, arguments.factor).values())


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("sections", nargs="*", choices=[[], *cases.SECTIONS], metavar="SECTION",
                      help=f"of {', '.join(cases.SECTIONS)}; all by default")
  parser.add_argument("--filter", default="", metavar="TEXT", help="cases with this in their names")
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="all figures")
  parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.png", help="the ratios as a picture; .svg and .pdf too")
  parser.add_argument("--check", action="store_true", help="compare with what was recorded")
  parser.add_argument("--factor", type=float, default=1.5, help="what is worse, for --check")
  parser.add_argument("--record", action="store_true", help="write recorded.json")
  parser.add_argument("--smoke", action="store_true", help="run every case once, on minipod")
  arguments = parser.parse_args()
  chosen = cases.load(arguments.sections or cases.SECTIONS, arguments.filter)
  if not chosen or arguments.rounds < 1:
    parser.error("there is nothing to measure")
  if arguments.smoke:
    return smoke(chosen)
  if arguments.record and (elsewhere := record.refusal(chosen)):
    parser.error(f"the other cases were recorded elsewhere ({elsewhere}): record all of them")
  warn_if_busy()
  table = {}
  machine = measure(chosen, arguments.rounds, table, progress)
  faults = verdict(chosen, table)
  if arguments.check:
    faults += check(chosen, table, arguments)
  report.print_table(table, machine)
  if arguments.json:
    arguments.json.write_text(json.dumps({"machine": record.machine(), "limits": machine, "cases": table}, indent=1))
  if arguments.plot:
    plot.draw(table, arguments.plot)
  if arguments.record:
    record.save(table, cases.load())
  for fault in faults:
    print(fault)
  return 1 if faults else 0


if __name__ == "__main__":
  sys.exit(main())
