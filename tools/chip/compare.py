#!/usr/bin/env python3
"""Scores the chip model against the compilers' rows of tests/fixtures/chip: by chip, class and split.

    compare.py [--build build] [--chips v5e,h100] [--only WORD] [--worst 20] [--json FILE] [--check | --set-floors]

Needs the build alone.  A score is the share of programs within 1.3x of the compiler's interval (README.md).
--check exits with 1 if a score is below its floor in floors.json; --set-floors writes them.
"""

import argparse
import json
import pathlib
import statistics
import sys

import corpus
import predictions as model

FLOORS = pathlib.Path(__file__).with_name("floors.json")
LARGE = 256 << 20  # bytes: smaller temporaries may lie in VMEM, which does not count
SPLITS = (corpus.FIT, corpus.HELD_OUT)


def percent(value):
  return "     -" if value is None else f"{value:5.1f} "


def quantiles(values):
  if len(values) < 2:
    return "-"
  cut = statistics.quantiles(values, n=10, method="inclusive")
  return f"p10 {cut[0]:.2f}, median {statistics.median(values):.2f}, p90 {cut[8]:.2f}"


def print_scores(found, chips):
  print(f"share within {model.NEAR}x of the compiler's interval, %, and number of programs")
  print(f"{'chip':8}" + "".join(f"{split:>16}" for split in SPLITS))
  for chip in chips:
    of_chip = [p for p in found if p.chip == chip]
    cells = [[p for p in of_chip if p.split == split] for split in SPLITS]
    print(f"{chip:8}" + "".join(f"{percent(model.share(c)):>10}({len(c):3d})" for c in cells))
  print(f"\n{'class':14}" + "".join(f"{chip:>13}" for chip in chips))
  for cls in sorted({p.cls for p in found}):
    cells = [[p for p in found if p.cls == cls and p.chip == chip] for chip in chips]
    print(f"{cls:14}" + "".join(f"{percent(model.share(c)):>8}({len(c):2d})" if c else f"{'-':>13}" for c in cells))


def print_memory(found):
  ratios = [(a + 2**20) / (b + 2**20) for p in found for a, b in [p.temporaries] if max(a, b) > LARGE]
  print(f"\ntemporaries above 256 MiB, model / compiler: {len(ratios)} programs, {quantiles(ratios)}")


def print_bundles(found):
  for chip in sorted({p.chip for p in found}):
    about = corpus.read_rows(chip)[0]
    pairs = [(p, corpus.by_bundles(p.theirs, about["clock"])) for p in found if p.chip == chip]
    ratios = [p.seconds / seconds for p, seconds in pairs if seconds]
    if ratios:
      print(f"programs that live in VMEM, model / final bundles, {chip}: {len(ratios)} programs, {quantiles(ratios)}")


def print_worst(found, count):
  print(f"\nworst {count}: program, chip, class, split, ratio, model's us, interval in us")
  for p in sorted(found, key=lambda p: -model.off(p.ratio))[:count]:
    if not p.is_near:
      print(f"  {p.name:44} {p.chip:5} {p.cls:12} {p.split:8} {p.ratio:8.2f} {p.seconds * 1e6:11.1f} "
            f"{p.low * 1e6:10.1f} to {p.high * 1e6:.1f}")


def scores(found, chips):
  return {chip: {split: round(model.share(of), 1) for split in SPLITS
                 if (of := [p for p in found if p.chip == chip and p.split == split])} for chip in chips}


def check(found, chips):
  """The scores that are below their floors."""
  now, floors = scores(found, chips), json.loads(FLOORS.read_text())
  below = [(chip, split, now[chip].get(split, 0), floor) for chip in chips
           for split, floor in floors.get(chip, {}).items() if now[chip].get(split, 0) < floor]
  for chip, split, score, floor in below:
    print(f"{chip} {split}: {score} % is below the floor of {floor} %", file=sys.stderr)
  return not below


def set_floors(found, chips):
  margin = 0.5  # percent, about one program
  floors = {chip: {split: round(score - margin, 1) for split, score in of.items()}
            for chip, of in scores(found, chips).items()}
  kept = json.loads(FLOORS.read_text()) if FLOORS.exists() else {}
  FLOORS.write_text(json.dumps(kept | floors, indent=1) + "\n")


def as_json(found):
  return [{"name": p.name, "class": p.cls, "chip": p.chip, "split": p.split, "ratio": p.ratio, "seconds": p.seconds,
           "low": p.low, "high": None if p.high == float("inf") else p.high, "temporaries": p.temporaries}
          for p in found]


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", default="build", help="folder of the build")
  parser.add_argument("--chips", default=",".join(model.ONE), type=lambda text: text.split(","))
  parser.add_argument("--only", default="", help="programs whose name contains this word")
  parser.add_argument("--worst", type=int, default=20)
  parser.add_argument("--json", help="a file for all rows")
  parser.add_argument("--check", action="store_true", help="compare with the floors")
  parser.add_argument("--set-floors", action="store_true", help="write the floors")
  args = parser.parse_args()
  pairs, refused = model.predict(model.ROOT / args.build / "minipod-chip", args.chips, args.only)
  found = [prediction for prediction, _ in pairs]
  print_scores(found, args.chips)
  print_memory(found)
  print_bundles(found)
  print_worst(found, args.worst)
  for name, error in refused:
    print(f"refused: {name}: {error}")
  if args.json:
    with open(args.json, "w", encoding="utf-8") as file:
      json.dump(as_json(found), file)
  if args.set_floors:
    set_floors(found, args.chips)
  if args.check and (refused or not check(found, args.chips)):
    sys.exit(1)


if __name__ == "__main__":
  main()
