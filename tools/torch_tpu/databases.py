#!/usr/bin/env python3
"""Runs PyTorch's own databases of ops, modules and optimizers on TorchTPU's device, and compares with the CPU.

    tools/torch_tpu/databases.py run OUT.jsonl [--database ops] [--only REGEX] [--dtypes float32,bfloat16] [--samples N]
    tools/torch_tpu/databases.py report OUT.jsonl… [--all]

A case is one op (module, optimizer) with one dtype: all its samples, forward and backward (cases.py).  Worker processes
take cases one after another; a worker that ends or takes too long fails its case and is replaced.  Cases that OUT.jsonl
has are not run again, except those of the outcomes in --again.

    same              all samples agree with the CPU
    differs           a result or gradient does not.  programs.py tells whether the program or minipod is the reason
    refused           minipod returned an error
    not in TorchTPU   TorchTPU or PyTorch raised an error before minipod was asked
    ended             the process died
    slow              over the time limit
    no samples        the CPU refuses all samples, or the database has none
"""

import collections
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time

import row_file

LIMIT = 180  # seconds of a case
_UNSUPPORTED = ("not in TorchTPU", "no samples")
# What errors that come from the plugin say: TorchTPU adds the first, PJRT's codes begin the others.
_PLUGIN = re.compile(r"XLA compiler failed|\b(?:INVALID_ARGUMENT|UNIMPLEMENTED|INTERNAL|RESOURCE_EXHAUSTED|UNAVAILABLE|"
                     r"FAILED_PRECONDITION|DEADLINE_EXCEEDED|NOT_FOUND|OUT_OF_RANGE|ABORTED|UNKNOWN)\b")


# ---- a worker ----

def _outcome(run, most):
  import cases
  try:
    return run(most)
  except cases.Stopped as stopped:
    text = f"{type(stopped.args[0]).__name__}: {stopped.args[0]}"
    return ("refused" if _PLUGIN.search(text) else "not in TorchTPU"), text, 0
  except Exception as error:  # whatever the database itself raises
    return "no samples", f"{type(error).__name__}: {error}", 0


def _work(database, most):
  import warnings
  warnings.filterwarnings("ignore")
  import cases
  cases.load_device()
  known = cases.database(database)
  print(json.dumps({"cases": list(known)}), flush=True)
  for line in sys.stdin:
    began = time.monotonic()
    outcome, why, count = _outcome(known[line.strip()], most)
    print(json.dumps({"case": line.strip(), "outcome": outcome, "why": why[:600], "samples": count,
                      "seconds": round(time.monotonic() - began, 2)}), flush=True)


class _Worker:
  """A process that runs cases; `cases` are the names that it knows."""

  def __init__(self, database, most):
    command = [sys.executable, __file__, "work", database, str(most)]
    self._errors = tempfile.TemporaryFile(mode="w+")
    self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
                                     start_new_session=True)
    self._lines = queue.Queue()
    threading.Thread(target=self._read, daemon=True).start()
    first = self._lines.get(timeout=LIMIT)
    if first is None:
      raise SystemExit(f"the worker has ended with exit status {self._process.wait()}: does `import torch_tpu` work?")
    self.cases = json.loads(first)["cases"]

  def _read(self):
    for line in self._process.stdout:
      if line.startswith("{"):
        self._lines.put(line)
    self._lines.put(None)

  def run(self, case):
    """The row of a case, and whether the worker can go on."""
    row = {"case": case, "samples": 0, "seconds": 0}
    try:
      self._process.stdin.write(case + "\n")
      self._process.stdin.flush()
      line = self._lines.get(timeout=LIMIT)
    except queue.Empty:
      self.end()
      return {**row, "outcome": "slow", "why": f"over {LIMIT} s"}, False
    except BrokenPipeError:
      line = None
    if line is None:
      return {**row, "outcome": "ended", "why": f"exit status {self._process.wait()}: {self._last_words()}"}, False
    return json.loads(line), True

  def _last_words(self):
    """What the process logged as its fatal error, in the form of Abseil's log, or its last line."""
    self._errors.seek(0)
    lines = self._errors.read().splitlines() or [""]
    return next((line.partition("] ")[2] for line in lines if re.match(r"F\d{4} ", line)), lines[-1])

  def end(self):
    self._process.kill()
    self._process.wait()


# ---- all cases ----

def _serve(args, todo, write):
  worker = None
  while True:
    try:
      case = todo.get_nowait()
    except queue.Empty:
      break
    worker = worker or _Worker(args.database, args.samples)
    row, goes_on = worker.run(case)
    write(row)
    worker = worker if goes_on else None
  if worker:
    worker.end()


def _key(row):
  return row["case"]


def _chosen(args, names):
  done = row_file.find_done(args.out, _key, "outcome", args.again)
  dtypes = set(args.dtypes.split(",")) if args.dtypes else None
  return [name for name in names
          if name not in done and re.search(args.only, name) and (not dtypes or name.rsplit("/", 1)[1] in dtypes)]


def _run(args):
  first = _Worker(args.database, args.samples)
  first.end()
  todo = queue.Queue()
  for name in _chosen(args, first.cases):
    todo.put(name)
  print(f"{todo.qsize()} cases")
  lock = threading.Lock()
  with args.out.open("a") as out:
    def write(row):
      with lock:
        row_file.write(out, row)
    threads = [threading.Thread(target=_serve, args=(args, todo, write)) for _ in range(args.jobs)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()


def _report(args):
  rows = row_file.read(args.out, _key)
  counts = collections.Counter(row["outcome"] for row in rows.values())
  for outcome, count in counts.most_common():
    print(f"{count:6} {outcome}")
  asked = sum(count for outcome, count in counts.items() if outcome not in _UNSUPPORTED)
  print(f"{counts['same']} of {asked} cases that TorchTPU supports are the same ({counts['same'] / max(1, asked):.2%})")
  for row in sorted(rows.values(), key=lambda row: (row["outcome"], row["case"])):
    if row["outcome"] != "same" and (args.all or row["outcome"] not in _UNSUPPORTED):
      print(f"{row['outcome']:15} {row['case']:56} {row['why'][:160]}")


def main():
  if sys.argv[1:2] == ["work"]:
    _work(sys.argv[2], int(sys.argv[3]))
    return
  parser, run, report = row_file.make_parser(__doc__)
  run.add_argument("--database", choices=("ops", "modules", "optimizers"), default="ops")
  run.add_argument("--only", default="", help="regular expression of cases")
  run.add_argument("--dtypes", default="", help="default: all of the database")
  run.add_argument("--samples", type=int, default=-1, help="of a case; default: all")
  run.add_argument("--jobs", type=int, default=os.cpu_count())
  report.add_argument("out", type=pathlib.Path, nargs="+")
  report.add_argument("--all", action="store_true", help="list also what TorchTPU does not support")
  row_file.call_verb(parser, _run, _report)


if __name__ == "__main__":
  main()
