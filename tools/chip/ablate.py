#!/usr/bin/env python3
"""Measures each rule and pass of the chip model by what predictions lose without it.

    ablate.py [--build build] [--chips v5e,h100] [--only WORD] [--json FILE] [--check]

For each program and chip, minipod predicts once with all rules, and once without each rule that the program uses.
Columns, by split: programs and chips whose prediction becomes wrong without the rule (`loses`), or right (`gains`);
by how much the errors of all seconds and temporaries grow without it, as sums of logarithms; and how many more kinds
of collectives differ from the compiler's.
--check exits with 1 if more rules are without evidence than floors.json allows.
"""

import argparse
import json
import pathlib
import subprocess
import sys

import corpus
import predictions as model

FLOORS = pathlib.Path(__file__).with_name("floors.json")
KEY = "rules without evidence"
CHANGED = 0.02  # share of the seconds or temporaries
ELSEWHERE = "Mosaic"  # rules of Pallas kernels, which the corpus does not have: tools/mosaic/price/compare.py --without


class Rule:
  def __init__(self, text):
    self.name, self.compiler, self.stage, self.meaning, self.kind = text.split("\t")
    self.used = self.changed = 0
    self.loses = {corpus.FIT: 0, corpus.HELD_OUT: 0}
    self.gains = {corpus.FIT: 0, corpus.HELD_OUT: 0}
    self.error = self.memory = 0.0  # what the sum of all |log ratio| grows by without it: of seconds, of temporaries
    self.collectives = 0  # kinds of collectives that differ from the compiler's without it, less those with it
    self.shown_by = []

  @property
  def has_evidence(self):
    """It has changed programs, and its absence has made predictions worse."""
    return (sum(self.loses.values()) > sum(self.gains.values()) or self.error > 0.1 or self.memory > 0.5 or
            self.collectives > 0)


def rules_of(binary):
  lines = subprocess.run([str(binary), "--rules"], capture_output=True, text=True, check=True).stdout.splitlines()
  return {rule.name: rule for rule in map(Rule, lines)}


def differs(a, b, floor=0):
  return abs(a - b) > CHANGED * max(abs(a), abs(b)) + floor


def count(rule, prediction, without):
  seconds = without["work_seconds" if prediction.theirs.get("collectives") else "seconds"]
  ratio = prediction.to_interval(seconds)
  rule.used += 1
  if differs(prediction.seconds, seconds) or differs(prediction.temporaries[0], without["temporaries"], 1 << 16):
    rule.changed += 1
    rule.shown_by.append(f"{prediction.name}@{prediction.chip}")
  rule.loses[prediction.split] += prediction.is_near and not model.is_near(ratio)
  rule.gains[prediction.split] += model.is_near(ratio) and not prediction.is_near
  rule.error += model.off(ratio) - model.off(prediction.ratio)
  now, theirs = prediction.temporaries
  rule.memory += model.memory_error(without["temporaries"], theirs) - model.memory_error(now, theirs)
  meetings = prediction.theirs.get("collectives")
  rule.collectives += (model.collectives_off(without["collectives"], meetings) -
                       model.collectives_off(prediction.mine["collectives"], meetings))


def count_all(rules, pairs):
  for prediction, line in pairs:
    for name, without in line["without"].items():
      if "error" not in without:
        count(rules[name], prediction, without)


def of_kind(rules, kind):
  """The rules or the passes, from the one that is worth most."""
  return sorted((r for r in rules.values() if r.kind == kind and r.stage != ELSEWHERE), key=lambda r: (-r.error, r.name))


def print_table(rules, kind):
  print(f"{kind:24} {'compiler':9} {'of':22} {'used':>6} {'changed':>8} {'loses':>12} {'gains':>12} {'error':>8} {'memory':>8} {'collectives':>12}")
  for rule in of_kind(rules, kind):
    pair = lambda of: f"{of[corpus.FIT]} + {of[corpus.HELD_OUT]}"
    print(f"{rule.name:24} {rule.compiler:9} {rule.stage:22} {rule.used:6} {rule.changed:8} {pair(rule.loses):>12} "
          f"{pair(rule.gains):>12} {rule.error:+8.2f} {rule.memory:+8.2f} {rule.collectives:+12}")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", default="build", help="folder of the build")
  parser.add_argument("--chips", default=",".join(model.ONE), type=lambda text: text.split(","))
  parser.add_argument("--only", default="", help="programs whose name contains this word")
  parser.add_argument("--json", help="a file for the table")
  parser.add_argument("--check", action="store_true", help="compare with what floors.json allows")
  args = parser.parse_args()
  binary = model.ROOT / args.build / "minipod-chip"
  rules = rules_of(binary)
  count_all(rules, model.predict(binary, args.chips, args.only, "--ablate")[0])
  print_table(rules, "pass")
  print_table(rules, "rule")
  of = of_kind(rules, "rule")
  bare = sorted(rule.name for rule in of if not rule.has_evidence)
  print(f"\n{len(of)} rules; {len(bare)} without evidence: {', '.join(bare)}")
  if args.json:
    with open(args.json, "w", encoding="utf-8") as file:
      json.dump([vars(rule) for rule in rules.values()], file)
  if args.check and len(bare) > json.loads(FLOORS.read_text())[KEY]:
    sys.exit(f"{len(bare)} rules are without evidence; {FLOORS.name} allows {json.loads(FLOORS.read_text())[KEY]}")


if __name__ == "__main__":
  main()
