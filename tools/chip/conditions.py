#!/usr/bin/env python3
"""Finds conditions of the chip model that the corpus does not need, by forcing each to its usual value.

    conditions.py [--files WORD] [--least 0.05] [--json FILE] [--scratch FOLDER]

Builds minipod-chip from a copy of the tree in which each condition of sim/chip is counted (instrument.py), and asks it
for each program of the corpus which conditions take which values there. Then each condition has the value that it takes
in more programs, in the programs in which it takes the other one. Takes about 20 minutes on two cores. Lists conditions
  unseen   that never have the other value; checks of errors are among them
  idle     that change no prediction
  useless  that change predictions, but without which the sum of all errors grows by less than --least, no more
           predictions leave 1.3x than enter it, and no more kinds of collectives differ
Lists are for reading: the corpus has no rings of many hosts, and no wrong input.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import tempfile

import instrument
import predictions as model

ROOM = pathlib.Path("sim/chip")
SAME = 1e-3  # share of the seconds


class Condition:
  def __init__(self, number, path, line, text):
    self.number, self.where, self.text = number, f"{path}:{line}", text
    self.seen = {False: set(), True: set()}  # programs
    self.changed = self.worse = self.collectives = 0
    self.error = self.memory = 0.0
    self.is_needed = False  # the program ends early without it

  @property
  def usual(self):
    return len(self.seen[True]) > len(self.seen[False])

  @property
  def rare(self):
    """The programs in which it has the other value."""
    return self.seen[not self.usual]

  def kind(self, least):
    if not self.rare:
      return "unseen"
    if self.is_needed:
      return None
    if not self.changed and not self.collectives:
      return "idle"
    is_useless = self.error < least and self.memory < least and self.worse <= 0 and self.collectives <= 0
    return "useless" if is_useless else None

  def __str__(self):
    return (f"{self.where}: {str(self.usual).lower()} but in {len(self.rare)} programs; changes {self.changed}, "
            f"errors {self.error:+.2f}, of memory {self.memory:+.2f}, worse {self.worse:+d}: {self.text[:90]}")


def copy_tree(folder):
  files = subprocess.run(["git", "ls-files", "-z"], cwd=model.ROOT, capture_output=True, text=True, check=True).stdout
  for name in filter(None, files.split("\0")):
    source, target = model.ROOT / name, folder / name
    if source.is_file() and not name.startswith("tests/"):
      target.parent.mkdir(parents=True, exist_ok=True)
      target.write_bytes(source.read_bytes())


def rewrite(folder, word):
  """Rewrites the room's sources; its conditions."""
  conditions = []
  for path in sorted((folder / ROOM).rglob("*.c")):
    name = path.relative_to(folder / ROOM)
    if name.parts[0] in ("print", "rules") or word not in str(name):
      continue
    text, found = instrument.instrument(path.read_text(), len(conditions))
    path.write_text(text)
    conditions += [Condition(len(conditions) + i, name, *of) for i, of in enumerate(found)]
  (folder / "condition.h").write_text(instrument.HEADER)
  (folder / ROOM / "condition.c").write_text(instrument.SOURCE % {"count": len(conditions)})
  return conditions


def build(folder):
  tree = folder / "build"
  options = ["-DCMAKE_BUILD_TYPE=Release", "-DMINIPOD_TESTS=OFF"]
  for command in (["cmake", "-G", "Ninja", "-S", folder, "-B", tree, *options], ["ninja", "-C", tree, "minipod-chip"]):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
  return tree / "minipod-chip"


def key_of(prediction):
  return prediction.mine["file"], prediction.chip


def count(reader, binary, programs, conditions):
  """Notes which programs give which values to each condition; all predictions."""
  base = {}
  with tempfile.NamedTemporaryFile() as counts:
    os.environ["CONDITION_COUNTS"] = counts.name
    for program in programs:
      base |= {key_of(p): p for p, _ in reader.predict(binary, [program])[0]}
      for condition, line in zip(conditions, pathlib.Path(counts.name).read_text().splitlines()):
        for value, times in zip((False, True), line.split()):
          if times != "0":
            condition.seen[value].add(program[1])
    del os.environ["CONDITION_COUNTS"]
  return base


def compare(condition, before, now):
  """Adds one prediction without the condition to what is known of it."""
  is_same = abs(now.seconds - before.seconds) <= SAME * before.seconds and now.temporaries == before.temporaries
  condition.changed += not is_same
  condition.error += model.off(now.ratio) - model.off(before.ratio)
  condition.memory += model.memory_error(*now.temporaries) - model.memory_error(*before.temporaries)
  condition.worse += before.is_near - now.is_near
  meetings = before.theirs.get("collectives")
  if meetings:
    condition.collectives += (model.collectives_off(now.mine["collectives"], meetings) -
                              model.collectives_off(before.mine["collectives"], meetings))


def force(reader, binary, programs, base, condition):
  os.environ["CONDITION"] = f"{condition.number}:{int(condition.usual)}"
  try:
    found, refused = reader.predict(binary, [program for program in programs if program[1] in condition.rare])
  except SystemExit:
    condition.is_needed = True
    return
  condition.is_needed = bool(refused)
  for prediction, _ in found:
    compare(condition, base[key_of(prediction)], prediction)


def report(conditions, least):
  kinds = collections.defaultdict(list)
  for condition in conditions:
    kinds[condition.kind(least)].append(condition)
  for kind in ("unseen", "idle", "useless"):
    print(f"\n{kind}: {len(kinds[kind])} of {len(conditions)}")
    for condition in kinds[kind]:
      print(f"  {condition}")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--files", default="", help="sources of sim/chip whose path contains this word")
  parser.add_argument("--least", type=float, default=0.05, help="sum of |log ratio| that a condition must be worth")
  parser.add_argument("--json", help="a file for what is known of each condition")
  parser.add_argument("--scratch", help="where the copy of the tree goes, if not where temporary files do")
  args = parser.parse_args()
  reader = model.Reader()
  with tempfile.TemporaryDirectory(dir=args.scratch) as name:
    folder = pathlib.Path(name)
    copy_tree(folder)
    conditions = rewrite(folder, args.files)
    binary = build(folder)
    programs = model.unpack(name, "")
    base = count(reader, binary, programs, conditions)
    for condition in conditions:
      if condition.rare:
        force(reader, binary, programs, base, condition)
  report(conditions, args.least)
  if args.json:
    rows = [{"where": c.where, "text": c.text, "usual": c.usual, "rare": len(c.rare), "changed": c.changed,
             "error": c.error, "memory": c.memory, "worse": c.worse, "collectives": c.collectives,
             "kind": c.kind(args.least)} for c in conditions]
    pathlib.Path(args.json).write_text(json.dumps(rows, indent=0))


if __name__ == "__main__":
  main()
