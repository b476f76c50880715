"""Records the corpus in tests/fixtures/chip: programs, and what the compilers of chips say of them.

    python -m venv oracle
    oracle/bin/pip install jax==0.10.2 libtpu==0.0.52
    oracle/bin/pip install --no-deps jax-cuda12-pjrt==0.10.2
    oracle/bin/python tools/chip/record.py [--chips v5e,h100] [--class norm] [--only WORD] [--limit SECONDS]
    oracle/bin/python tools/chip/record.py --bundles [--chips v5e,v6e]
    oracle/bin/python tools/chip/record.py --reread --texts FOLDER

Requires no chip.  Records what is missing: programs that the files do not have, and those whose StableHLO has changed.
--again records everything that is selected, --rows saves the time of lowering.  --texts keeps the optimized texts, and --reread reads them again after a
change of the readers.  --bundles adds cycles by the final bundles of the kernels to rows of TPUs (see README.md).
"""

import argparse
import gzip
import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import corpus
import gpu
import tpu
import worker

SAVE_EVERY = 20  # seconds
IN_VMEM = ("stencil", "recurrence", "loop")  # classes of programs whose arrays live in VMEM
VMEM_CHIPS = ("v5e", "v6e")


# ---- processes that compile ----

class Worker:
  """A process with programs of one kind, chip and number of devices."""

  def __init__(self, args, kind, chip, sharded, names):
    command = [sys.executable, worker.__file__, kind, chip, "1" if sharded else "0", args.programs, args.texts]
    self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    stderr=None if args.verbose else subprocess.DEVNULL)
    self.process.stdin.write("\n".join(names))
    self.process.stdin.close()
    self.patience, self.begun = args.patience, time.time()
    threading.Thread(target=self.watch, daemon=True).start()

  def watch(self):
    """Ends the process if a program takes too long."""
    while self.process.poll() is None:
      time.sleep(1)
      if time.time() - self.begun > self.patience:
        self.process.kill()

  def lines(self):
    for line in self.process.stdout:
      if line.startswith("{"):
        self.begun = time.time()
        yield json.loads(line)
    self.process.wait()

  def how_it_ended(self):
    return "TOO_SLOW" if self.process.returncode == -signal.SIGKILL else "ABORTED"


def results(args, kind, chip, sharded, names, end):
  """The result of each program; a new process takes over if one dies."""
  names = list(names)
  while names and time.time() < end:
    process, current = Worker(args, kind, chip, sharded, names), None
    for line in process.lines():
      if "begin" in line:
        current = line["begin"]
        continue
      names.remove(current)
      current = None
      yield line
      if time.time() > end:
        process.process.kill()
        return
    if current is None and process.process.returncode:
      raise SystemExit(f"{kind} for {chip}: the process that compiles failed; --verbose shows why")
    if current is not None:
      names.remove(current)
      yield {"name": current, "error": process.how_it_ended()}


# ---- what to record ----

def selected(args, sharded=None):
  return [p for p in args.all if any(word in p.name for word in args.only.split(",")) and (not args.cls or p.cls == args.cls)
          and (not args.like or p.name in args.like)
          and (sharded is None or bool(p.mesh) == sharded)]


def about(chip):
  """The top of a chip's file."""
  package = "jax-cuda12-pjrt" if chip in gpu.CHIPS else "libtpu"
  constants = (gpu.CHIPS | tpu.CHIPS)[chip]._asdict()
  return {"chip": chip, "jax": importlib.metadata.version("jax"), package: importlib.metadata.version(package)} | {
      key: value for key, value in constants.items() if value is not None}


class Rows:
  """The rows of a chip, saved now and then.  Drops those of programs that no longer exist.

  `of` is the digest of the StableHLO that a row is of; where it differs from that of the file, the row is stale.
  """

  def __init__(self, args, chip):
    self.chip, self.folder, self.saved = chip, args.folder, time.time()
    known = {program.name for program in args.all}
    self.digests = corpus.digests(args.folder)
    self.gpus = {program.name for program in args.all if program.mesh} if chip in gpu.CHIPS else set()
    self.rows = {name: row for name, row in corpus.read_rows(chip, args.folder)[1].items() if name in known}

  def digest(self, name):
    return self.digests.get(name + corpus.GPUS if name in self.gpus else name)

  def is_current(self, name):
    return name in self.rows and self.rows[name].get("of") == self.digest(name)

  def add(self, name, row):
    self.rows[name] = row | {"of": self.digest(name)}
    if time.time() - self.saved > SAVE_EVERY:
      self.save()

  def save(self):
    self.saved = time.time()
    if self.rows:
      corpus.write_rows(self.chip, about(self.chip), self.rows, self.folder)


def record_programs(args, end):
  """StableHLO of the selected programs."""
  fresh = {}
  for sharded in (False, True):
    names = [p.name for p in selected(args, sharded)]
    for line in results(args, "lower", "v5e", sharded, names, end):
      if "text" not in line:
        print(f"{line['name']}: not lowered: {line.get('not_lowered') or line['error']}", flush=True)
        continue
      fresh[line["name"]] = line["text"]
      if "text8" in line:
        fresh[line["name"] + corpus.GPUS] = line["text8"]
  for cls in {p.cls for p in args.all} | set(corpus.classes(args.folder)):
    known = {p.name for p in args.all if p.cls == cls}
    old = {n: t for n, t in corpus.read_programs(cls, args.folder).items() if n.removesuffix(corpus.GPUS) in known}
    of = corpus.read_digests(cls, args.folder)
    new = {n: t for n, t in fresh.items() if n.removesuffix(corpus.GPUS) in known and of.get(n) != corpus.digest(t)}
    of = {n: d for n, d in of.items() if n not in new}
    corpus.write_programs(cls, old | new, of, args.folder)


def record_chip(args, chip, end):
  rows, kind = Rows(args, chip), "gpu" if chip in gpu.CHIPS else "tpu"
  for sharded in (False, True):
    if sharded and kind == "tpu" and tpu.CHIPS[chip].slice is None:
      continue
    names = [p.name for p in selected(args, sharded) if args.again or not rows.is_current(p.name)]
    for line in results(args, kind, chip, sharded, names, end):
      report(args, chip, line)
      if "not_lowered" not in line:
        rows.add(line["name"], line.get("row") or {"error": line["error"]})
  rows.save()
  print(f"{chip}: {len(rows.rows)} rows, {sum('error' in row for row in rows.rows.values())} refused", flush=True)


def record_bundles(args, chip, end):
  """Whole rows, with `bundles` and what goes with it."""
  rows = Rows(args, chip)
  names = [p.name for p in selected(args, False) if "error" not in rows.rows.get(p.name, {})
           and (p.cls in IN_VMEM or args.cls or args.only)
           and (args.again or not rows.is_current(p.name) or "bundles" not in rows.rows[p.name])]
  for line in results(args, "bundles", chip, False, names, end):
    report(args, chip, line)
    if "row" in line:
      rows.add(line["name"], line["row"])
  rows.save()
  print(f"{chip}: {sum('bundles' in row for row in rows.rows.values())} rows with bundles", flush=True)


def reread(args, chip):
  """Texts that --texts kept once more."""
  rows, read = Rows(args, chip), 0
  for program in selected(args):
    path = pathlib.Path(args.texts) / f"{program.name}@{chip}.txt.gz"
    if path.exists() and "error" not in rows.rows.get(program.name, {"error": ""}):
      text = gzip.open(path, "rt").read()
      kept = rows.rows[program.name]
      rows.rows[program.name] = keeping(kept, (gpu if chip in gpu.CHIPS else tpu).read(text, chip))
      read += 1
  rows.save()
  print(f"{chip}: {read} texts read again", flush=True)


def keeping(old, new):
  """A row that was read again, with what its text does not show."""
  beside = (*worker.MEMORY, "flops", "optimal", "of", "collective", "exposed")
  return new | {key: value for key, value in old.items() if key not in new
                and (key in beside or key.startswith("bundle"))}


def report(args, chip, line):
  if args.verbose:
    row = line.get("row", {})
    print(chip, line["name"], line.get("error", ""), line.get("not_lowered", ""),
          *(f"{key} {row[key]:.4g}" for key in ("low", "high", "cycles", "bundles") if key in row), flush=True)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  every = [*tpu.CHIPS, *gpu.CHIPS]
  parser.add_argument("--chips", type=lambda s: s.split(","), help="default: all; with --bundles v5e,v6e")
  parser.add_argument("--only", default="", metavar="WORD,...", help="programs with one of these in their names")
  parser.add_argument("--like", type=lambda chip: corpus.read_rows(chip)[1], help="programs of which this chip has rows")
  parser.add_argument("--class", dest="cls", default="", help="programs of one class")
  parser.add_argument("--limit", type=float, default=1e9, help="seconds after which it stops; call it again to continue")
  parser.add_argument("--patience", type=float, default=900, help="seconds for one program")
  parser.add_argument("--again", action="store_true", help="also what is recorded")
  parser.add_argument("--rows", action="store_true", help="only rows: takes the programs in the files as current")
  parser.add_argument("--bundles", action="store_true", help="cycles by final bundles instead")
  parser.add_argument("--reread", action="store_true", help="read the texts of --texts instead of compiling")
  parser.add_argument("--texts", default="", help="folder for optimized texts")
  parser.add_argument("--programs", default="", help="a Python file with PROGRAMS instead of tools/chip/programs")
  parser.add_argument("--folder", type=pathlib.Path, default=corpus.FOLDER, help="the corpus, if it is elsewhere")
  parser.add_argument("--verbose", action="store_true")
  args = parser.parse_args()
  end = time.time() + args.limit
  args.all = worker.load(args.programs)
  chips = args.chips or (list(VMEM_CHIPS) if args.bundles else list(tpu.CHIPS) if args.reread else every)
  if args.bundles and not tpu.CHIPS.keys() >= set(chips):
    parser.error("--bundles is for TPUs")
  if not (args.rows or args.bundles or args.reread):
    record_programs(args, end)
  for chip in chips:
    if args.reread:
      reread(args, chip)
    elif args.bundles:
      record_bundles(args, chip, end)
    else:
      record_chip(args, chip, end)


if __name__ == "__main__":
  main()
