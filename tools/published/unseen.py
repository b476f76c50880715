"""Compares modelled times with public measurements that the model had not seen, and keeps the result of each row's first run.

    .venv/bin/python tools/published/unseen.py [--filter WORD]   # runs rows, and prints the table
    .venv/bin/python tools/published/unseen.py --first           # runs rows without a first result, and records it
    .venv/bin/python tools/published/unseen.py --recorded        # prints the table of README.md from unseen.json

The rows are in unseen_rows.py.  unseen.json has the seconds of the first run of each row, and of the latest run.
"""

import argparse
import json
import pathlib

import chips
import compare
import micro
import unseen_rows

FILE = pathlib.Path(__file__).with_suffix(".json")
PEAK = {"v6e": 918e12}  # of rows that publish the share of the peak


def train(pod, model):
  result = compare.step(pod, model)
  return result["seconds"], result


def decode(pod, model):
  out = chips.run_on(f"{pod} hbm:1TiB", compare.ROOT / "tools/published/decode_step.py", json.dumps(model))
  return json.loads(out.splitlines()[-1])["seconds"], None


def operate(pod, call):
  return micro.modelled(pod, [call])[0], None


def rows():
  for table, run in ((unseen_rows.TRAINING, train), (unseen_rows.SERVING, decode), (unseen_rows.OPERATIONS, operate)):
    for row in table:
      yield (*row, run)


def published_seconds(published, pod, result):
  """Some rows publish the share of the peak, with half of attention's scores."""
  if not isinstance(published, str):
    return published
  return result["operations"][2] / result["devices"] / (float(published.split()[1]) * PEAK[pod.split(":")[0]])


def run_rows(known, word, is_first):
  for family, name, pod, published, what, program, run in rows():
    if word not in name and word not in family or is_first and "first" in known.get(name, {}):
      continue
    try:
      seconds, result = run(pod, program)
    except SystemExit as error:
      print(f"{name}: {error}", flush=True)
      continue
    row = known.setdefault(name, {"published": published_seconds(published, pod, result), "first": seconds})
    row["latest"] = seconds
    print(f"{name}: {seconds:.4g} s, {100 * (seconds / row['published'] - 1):+.1f} %", flush=True)
    FILE.write_text(json.dumps(known, indent=1) + "\n")


def percent(seconds, published):
  return f"{100 * (seconds / published - 1):+.1f} %"


def print_table(known):
  print("| what | pod | published | first run | error | now |\n|---|---|---|---|---|---|")
  errors = {"first": [], "latest": []}
  for family, name, pod, _, what, *_ in rows():
    if name in known:
      row = known[name]
      for kind, found in errors.items():
        found.append((family, name, row[kind] / row["published"] - 1))
      print(f"| {what} `{name}` | `{pod}` | {micro.time_text(row['published'])} | {micro.time_text(row['first'])} | "
            f"{percent(row['first'], row['published'])} | {percent(row['latest'], row['published'])} |")
  first, latest = (micro.family_table(found).splitlines() for found in errors.values())
  print("\n| family | rows | mean error, first run | worst | mean error, now | worst |\n|---|---|---|---|---|---|")
  for one, other in zip(first[2:], latest[2:]):
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in (one, other)]
    print("| " + " | ".join([*cells[0][:4], *cells[1][2:4]]) + " |")
  print("\n| not expressed | because |\n|---|---|")
  for name, reason in unseen_rows.LEFT.items():
    print(f"| `{name}` | {reason} |")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--filter", default="", help="only rows whose name or family has this word")
  parser.add_argument("--first", action="store_true")
  parser.add_argument("--recorded", action="store_true")
  arguments = parser.parse_args()
  known = json.loads(FILE.read_text()) if FILE.exists() else {}
  if not arguments.recorded:
    run_rows(known, arguments.filter, arguments.first)
  print_table(known)


if __name__ == "__main__":
  main()
