#!/usr/bin/env python3
"""The page of pass rates, from the reports of conformance runs.

    tools/conformance_page.py "JAX's own tests=build/conformance/jax.json" … >tools/site/pages/pass_rates.md

Each argument is a title and a report of run_suite.py (`tools/test --conformance`).  What did not pass is named, with the first
line of the reason.
"""

import argparse
import json
import pathlib
import re

import conformance_counts

HEAD = """# Pass rates

This page has the results of JAX's own tests on minipod. JAX wrote these tests for other devices. We leave out tests that XLA's CPU plugin
also fails, and tests that compile nothing. `tools/test --conformance` repeats the tests, and `tools/conformance_page.py` writes this page
from their reports.
"""
LONGEST_REASON = 160


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
    counts = conformance_counts.of_tests(result["tests"].values())
    totals = [total + count for total, count in zip(totals, counts)]
    print(f"| `{file}` | {counts[0]} | {counts[1]} | {counts[2]} |")
    bad += [(name, test) for name, test in sorted(result["tests"].items())
            if test["outcome"] not in ("passed", "skipped")]
  print(f"| **all** | **{totals[0]}** | **{totals[1]}** | **{totals[2]}** |")
  if bad:
    print("\n| not passed | reason |\n|---|---|")
    for name, test in bad:
      print(f"| `{name}` | {reason_of(test)} |")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("report", nargs="+", help="TITLE=FILE")
  print(HEAD, end="")
  for argument in parser.parse_args().report:
    title, _, path = argument.rpartition("=")
    print_report(title, json.loads(pathlib.Path(path).read_text()))


if __name__ == "__main__":
  main()
