#!/usr/bin/env python3
"""Reads the reports of conformance runs (tools/test --conformance).

    tools/conformance.py page "JAX's own tests=build/conformance/jax.json" … >tools/site/pages/pass_rates.md
    tools/conformance.py pypjrt REPORT.json         what `pypjrt.conform --json` wrote
    tools/conformance.py collectives OUTPUT.txt     lines "name … ok" of spmd/collectives.py
    tools/conformance.py jax REPORT.json            what run_suite.py wrote

`page` prints the page of pass rates, from titles and reports of run_suite.py: what did not pass is named, with the first line of
the reason.  The others print "PASSED FAILED SKIPPED" for tools/test.
"""

import collections
import json
import pathlib
import re
import sys

HEAD = """# Pass rates

This page has the results of JAX's own tests on minipod. JAX wrote these tests for other devices. We leave out tests that XLA's CPU plugin
also fails, and tests that compile nothing. `tools/test --conformance` repeats the tests, and `tools/conformance.py page` writes this page
from their reports.
"""
LONGEST_REASON = 160


# ---- counts: passed, failed, skipped ----

def pypjrt(path):
  outcomes = collections.Counter(check["result"] for check in json.loads(path.read_text())["checks"])
  # An optional function that is refused in words is no failure.
  return outcomes["pass"], outcomes["fail"], outcomes["unsupported"] + outcomes["skip"]


def collectives(path):
  # The last line is a summary: "49 cases 0 not ok".
  words = [line.split(maxsplit=1)[1] for line in path.read_text().splitlines()[:-1] if " " in line]
  good = sum(result.strip() == "ok" for result in words)
  return good, len(words) - good, 0


def of_tests(tests):
  """The same of tests as run_suite.py describes them."""
  outcomes = collections.Counter(test["outcome"] for test in tests)
  good, left = outcomes.pop("passed", 0), outcomes.pop("skipped", 0)
  return good, outcomes.total(), left


def jax(path):
  return of_tests(test for file in json.loads(path.read_text())["files"].values() for test in file["tests"].values())


# ---- the page ----

def reason_of(test):
  lines = [line.strip() for line in (test.get("reason") or test["outcome"]).splitlines() if line.strip()]
  # Names of files without the folders of the machine that ran the tests.
  line = re.sub(r"(?<![\w.])/(?:[\w.-]+/)+", "", lines[0]) if lines else test["outcome"]
  return line[:LONGEST_REASON].replace("|", "\\|")


def print_report(title, report):
  meta = report["meta"]
  versions = ", ".join(f"{name} {number}" for name, number in sorted(meta["versions"].items()) if name in ("jax", "jaxlib"))
  print(f"\n## {title}\n\n{versions}; {meta['finished'][:10]}, {meta['wall_s']:.0f} s.\n")
  print("| file | passed | not passed | skipped |\n|---|---|---|---|")
  totals, bad = [0, 0, 0], []
  for file, result in sorted(report["files"].items()):
    counts = of_tests(result["tests"].values())
    totals = [total + count for total, count in zip(totals, counts)]
    print(f"| `{file}` | {counts[0]} | {counts[1]} | {counts[2]} |")
    bad += [(name, test) for name, test in sorted(result["tests"].items())
            if test["outcome"] not in ("passed", "skipped")]
  print(f"| **all** | **{totals[0]}** | **{totals[1]}** | **{totals[2]}** |")
  if bad:
    print("\n| not passed | reason |\n|---|---|")
    for name, test in bad:
      print(f"| `{name}` | {reason_of(test)} |")


def page(reports):
  print(HEAD, end="")
  for argument in reports:
    title, _, path = argument.rpartition("=")
    print_report(title, json.loads(pathlib.Path(path).read_text()))


if __name__ == "__main__":
  kinds = {f.__name__: f for f in (pypjrt, collectives, jax)}
  match sys.argv[1:]:
    case ["page", *reports] if reports:
      page(reports)
    case [kind, path] if kind in kinds:
      print(*kinds[kind](pathlib.Path(path)))
    case _:
      sys.exit(__doc__)
