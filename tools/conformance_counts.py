"""Reads the reports of conformance runs and prints "PASSED FAILED SKIPPED" for tools/test.

    conformance_counts.py pypjrt REPORT.json        what `pypjrt.conform --json` wrote
    conformance_counts.py collectives OUTPUT.txt    lines "name … ok" of spmd/collectives.py
    conformance_counts.py jax REPORT.json           what run_suite.py wrote
"""

import collections
import json
import pathlib
import sys


def pypjrt(text: str):
  outcomes = collections.Counter(check["result"] for check in json.loads(text)["checks"])
  # An optional function that is refused in words is no failure.
  return outcomes["pass"], outcomes["fail"], outcomes["unsupported"] + outcomes["skip"]


def collectives(text: str):
  # The last line is a summary: "49 cases 0 not ok".
  words = [line.split(maxsplit=1)[1] for line in text.splitlines()[:-1] if " " in line]
  good = sum(result.strip() == "ok" for result in words)
  return good, len(words) - good, 0


def of_tests(tests):
  """The same of tests as run_suite.py describes them."""
  outcomes = collections.Counter(test["outcome"] for test in tests)
  good, left = outcomes.pop("passed", 0), outcomes.pop("skipped", 0)
  return good, outcomes.total(), left


def jax(text: str):
  return of_tests(test for file in json.loads(text)["files"].values() for test in file["tests"].values())


if __name__ == "__main__":
  kinds = {f.__name__: f for f in (pypjrt, collectives, jax)}
  print(*kinds[sys.argv[1]](pathlib.Path(sys.argv[2]).read_text()))
