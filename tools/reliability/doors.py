#!/usr/bin/env python3
"""Starts two processes of one pod in every way: is their sum over 8 devices right, over which transport, and how soon?

    tools/reliability/doors.py [--python PYTHON]... [--door PART]...

A row for each launcher, a column for one host and for two simulated ones (network namespaces, which need root).  `--python`:
interpreters with minipod in them, one table each (this one).  Seconds are those from the launcher's start to the sum of the
last process, the framework's own start included.  What cannot be tried here is not, and its cell says why.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from job import REFUSED
from launchers import DOORS

SECONDS = 180
VERSIONS = """
from importlib import metadata
print(", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "torch_xla") if any(metadata.distributions(name=name))))
"""


def remove(folder):
  """Daemons that were just killed may still be writing to it."""
  for _ in range(20):
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.exists(folder):
      return
    time.sleep(0.1)


def run(command, hosts):
  """The text of a cell of the table."""
  scratch = tempfile.mkdtemp(prefix="mp")
  environment = os.environ | {"SCRATCH": scratch, "MINIPOD_DEVICES": "4", "JAX_PLATFORMS": "minipod", "PJRT_DEVICE": "MINIPOD",
                              "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
  begin = time.time()
  with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        start_new_session=True) as process:
    try:
      out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, signal.SIGTERM)  # the process that has made the hosts removes them
      out, err = process.communicate()
      return f"**no end in {SECONDS} s** {err.strip()[-300:]}"
    finally:
      remove(scratch)
  found = re.findall(r"SUM (\S+) (\d+) (\S+) ?(.*)", out)
  if process.returncode == REFUSED:
    return err.strip().splitlines()[-1]
  if [row[:2] for row in found] != [("28.0", "2")] * 2:
    return f"**wrong**: status {process.returncode}, {[row[:2] for row in found]} {err.strip()[-300:]}"
  way = "shared memory" if hosts == 1 and "not shared memory" not in err else found[0][3]
  return f"{way}, {max(float(row[2]) for row in found) - begin:.1f} s"


def cell(door, hosts, python):
  reason = door.missing(python)
  command = reason or door.command(hosts, python)
  return f"skipped: {command}" if isinstance(command, str) else run(command, hosts)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--python", action="append")
  parser.add_argument("--door", action="append", help="a part of its name")
  options = parser.parse_args()
  has_failed = False
  for python in options.python or [sys.executable]:
    versions = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True).stdout.strip()
    print(f"| {versions} | one host | two hosts |\n|---|---|---|", flush=True)
    for door in DOORS:
      if options.door and not any(part in door.name for part in options.door):
        continue
      cells = [cell(door, hosts, python) for hosts in (1, 2)]
      has_failed |= any(text.startswith("**") for text in cells)
      print(f"| {door.name} | {' | '.join(cells)} |", flush=True)
  sys.exit(has_failed)


if __name__ == "__main__":
  main()
