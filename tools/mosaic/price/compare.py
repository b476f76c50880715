"""Compares the price of kernels with libtpu's final bundles (tests/fixtures/mosaic_price).

    tools/mosaic/price/compare.py [--chips v5e,v6e,7x] [--split fit|held-out|all] [--worst N] [--without RULE,...]

Prints per chip and split how many kernels are within 1.3 times of the bundles, and the worst ones.  The bundles have
no waits for DMAs, so they are compared with the time in which the kernel computes.  A kernel that takes branches by
values that the bundles do not know has an interval.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "chip"))

import corpus

FOLDER = corpus.FOLDER.parent / "mosaic_price"
CHIPS = ("v5e", "v6e", "7x")
LIMIT = 1.3
# Held-out by their names, but their bundles were read when the model was written.
SEEN = {"matmul_2048_by_512_512_512", "matmul_2048_by_1024_512_1024", "copy_f32", "exp_f32", "softmax_128", "transpose_f32"}


def split(name):
  return corpus.FIT if name in SEEN else corpus.split(name)


def predictions(chip, programs, command, without=""):
  """Name -> sums over the kernels of a program: cycles of compute, copies, most bytes of VMEM; or an error."""
  environment = dict(os.environ, **({"MINIPOD_CHIP_WITHOUT": without} if without else {}))
  found = {}
  clock = corpus.read_rows(chip, FOLDER)[0]["clock"]
  with tempfile.TemporaryDirectory() as folder:
    for name, text in programs.items():
      path = pathlib.Path(folder) / f"{name}.mlir"
      path.write_text(text)
      done = subprocess.run([command, "--json", "--target", chip, str(path)], capture_output=True, text=True, timeout=120,
                            env=environment)
      try:
        kernels = [k for k in json.loads(done.stdout)["kernels"] if "price" in k]
      except (ValueError, KeyError):
        found[name] = {"error": (done.stderr or done.stdout).strip()[:100]}
        continue
      if not kernels:
        found[name] = {"error": "not priced"}
        continue
      found[name] = {"cycles": sum(k["price"]["compute"] for k in kernels) * clock,
                     "copies": sum(k["price"]["copies"] for k in kernels),
                     "vmem": max(k["price"]["vmem"] for k in kernels),
                     "seconds": sum(k["seconds"] for k in kernels),
                     "guessed": any(k["price"]["guessed"] for k in kernels), "kernels": kernels}
  return found


def ratio(row, cycles):
  """Predicted cycles by those of the bundles; 1 inside of an interval."""
  low = row.get("low", row["bundles"]) if row["unsure"] or row.get("low") != row["bundles"] else row["bundles"]
  return min(1.0, cycles / low) if cycles < low else max(1.0, cycles / row["bundles"])


def rows_of(args, chip):
  """Name, row of the bundles, prediction; kernels with loops of unknown length are left out."""
  rows, programs = corpus.read_rows(chip, FOLDER)[1], corpus.read_programs(chip, FOLDER)
  names = [n for n in programs if args.split in ("all", split(n)) and args.only in n and not rows[n]["unsure"]]
  found = predictions(chip, {n: programs[n] for n in names}, args.command, args.without)
  return [(name, rows[name], found[name]) for name in names]


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--chips", default=",".join(CHIPS))
  parser.add_argument("--split", default="all", choices=("all", corpus.FIT, corpus.HELD_OUT))
  parser.add_argument("--only", default="")
  parser.add_argument("--without", default="", help="rules that are switched off")
  parser.add_argument("--worst", type=int, default=8)
  parser.add_argument("--command", default=str(ROOT / "build" / "minipod-chip"))
  args = parser.parse_args()
  for chip in args.chips.split(","):
    rows = rows_of(args, chip)
    for part in (corpus.FIT, corpus.HELD_OUT):
      report(chip, part, [row for row in rows if split(row[0]) == part], args.worst)


def report(chip, part, rows, worst):
  ratios = {name: ratio(row, found["cycles"]) for name, row, found in rows if "error" not in found}
  if not rows:
    return
  inside = sum(1 / LIMIT <= r <= LIMIT for r in ratios.values())
  copies = sum(found.get("copies") == row["waits"] for _, row, found in rows)
  error = sum(abs(math.log(max(r, 1e-9))) for r in ratios.values())
  print(f"{chip} {part}: {inside} of {len(rows)} ({inside / len(rows):.0%}) within {LIMIT}; sum of |log ratio| {error:.2f}; "
        f"DMAs as waited for: {copies}")
  for name in sorted(ratios, key=lambda name: -abs(math.log(max(ratios[name], 1e-9))))[:worst]:
    row, found = next((row, found) for n, row, found in rows if n == name)
    print(f"  {ratios[name]:6.2f} {name}: {found['cycles']:,.0f}, bundles {row['bundles']:,}"
          f"{' guessed' if found['guessed'] else ''}; DMAs {found['copies']:.0f}, {row['waits']}"
          f"; VMEM {found['vmem']:,.0f}, {row.get('vmem', 0):,}")
  for name, _, found in rows:
    if "error" in found:
      print(f"  {name}: {found['error']}")


if __name__ == "__main__":
  main()
