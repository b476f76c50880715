#!/usr/bin/env python3
"""Runs JAX's own tests of several processes with each transport, and counts how many pass.

    tools/reliability/multiprocess.py FOLDER [--transport shm,ucx,mpi] [--platform minipod] [--logs FOLDER] [--file NAME]...

FOLDER has JAX's tests (tests/ of its repository) at the version that is installed.  Each file of its multiprocess/ (or
each NAME given) runs unchanged, with four processes of two devices, as JAX's own launcher starts them.  A test has
passed if it has passed in every process.  A test that a process skips counts as skipped.  Files that JAX runs only on
GPUs or TPUs (see BUILD there) are left out, unless they are named.  socket_transfer_test.py needs a port for each
process: pip install portpicker.

`shm`: processes of one host. `ucx`: two on each of two simulated hosts. `mpi`: these under mpirun.  `--platform cpu`: JAX's own
client, to compare with.
"""

import argparse
import collections
import os
import pathlib
import re
import sys
import tempfile

from job import Job, free_port

PROCESSES, DEVICES = 4, 2
# The program of a process under any launcher: it runs the test as JAX's launcher starts it, and writes the results to
# its own file.
MEMBER = """
rank=${OMPI_COMM_WORLD_RANK:-$PROCESS_ID} python=$1 file=$2 logs=$3
exec "$python" "$file" --num_processes=$PROCESSES --multiprocess_test_worker_id=$rank --initialization_timeout=60 \
  --heartbeat_timeout=60 --shutdown_timeout=60 --multiprocess_test_controller_address="$COORDINATOR" --logtostderr \
  >"$logs/$rank.log" 2>&1
"""
ELSEWHERE = ("pgle_test.py", "tpu_device_test.py")
# It tells all processes that it listens on 127.0.0.1.
OF_ONE_HOST = ("socket_transfer_test.py",)
RESULT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+)", re.MULTILINE)
WORST = ["OK", "SKIPPED", "FAILED"]


def run(transport: str, file: pathlib.Path, options: argparse.Namespace, logs: str) -> tuple[dict[str, str], str]:
  """How each test has ended, and what else there is to say."""
  variables = {"PROCESSES": str(PROCESSES), "JAX_PLATFORMS": options.platform, "MINIPOD_DEVICES": str(DEVICES),
               "JAX_NUM_CPU_DEVICES": str(DEVICES), "PYTHONDONTWRITEBYTECODE": "1", "TEST_UNDECLARED_OUTPUTS_DIR": logs}
  if transport == "mpi":  # the first process has the service, and every host the other one's address in its list of names
    transport, variables["COORDINATOR"] = "mpi-hosts", f"pretended1:{free_port()}"
  job = Job(transport, PROCESSES, ["bash", "-c", MEMBER, "bash", options.python, str(file), logs], pathlib.Path(logs), **variables)
  said = [f"no end in {options.limit} s"] * bool(job.wait_for_end(options.limit))
  if refusal := job.refusal():
    return {}, refusal
  outcomes: dict[str, list[str]] = collections.defaultdict(list)
  for text in job.said("log").values():
    for outcome, name in RESULT.findall(text):
      outcomes[name].append(outcome)
  if any(each.returncode for each in job.processes):
    said.append(f"ended with {[each.returncode for each in job.processes]}")
  ended = {name: max(found, key=WORST.index) if len(found) == PROCESSES else "FAILED" for name, found in outcomes.items()}
  return ended, "; ".join(said)


def cell(transport: str, file: pathlib.Path, options: argparse.Namespace) -> tuple[str, collections.Counter, bool]:
  """The cells of the table, the number of tests by result, and whether any has failed."""
  if transport != "shm" and file.name in OF_ONE_HOST:
    return "for one host alone", collections.Counter(), False
  with tempfile.TemporaryDirectory(prefix="mp") as scratch:
    logs = scratch
    if options.logs:
      logs = str(options.logs / f"{file.stem}.{transport}")
      os.makedirs(logs, exist_ok=True)
    ended, said = run(transport, file, options, logs)
  counts = collections.Counter(ended.values())
  failed = [name for name, outcome in ended.items() if outcome == "FAILED"]
  text = f"{counts['OK']} passed" + (f", {counts['SKIPPED']} skipped" if counts["SKIPPED"] else "")
  has_failed = bool(failed or said and "skipped:" not in said)
  if has_failed:
    text += f" **{len(failed)} failed: {', '.join(failed)}; {said}**"
  return said if "skipped:" in said else text, counts, has_failed


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--file", action="append", help="one of them")
  parser.add_argument("--transport", default="shm,ucx,mpi")
  parser.add_argument("--platform", default="minipod")
  parser.add_argument("--python", default=sys.executable)
  parser.add_argument("--logs", type=pathlib.Path, help="where to leave what the processes say")
  parser.add_argument("--limit", type=float, default=400, help="seconds for a file")
  options = parser.parse_args()
  transports = options.transport.split(",")
  found = [path for path in sorted(options.folder.glob("multiprocess/*_test.py")) if path.name not in ELSEWHERE]
  files = [options.folder / "multiprocess" / name for name in options.file or ()] or found
  print(f"| file | {' | '.join(transports)} |\n|---|{'---|' * len(transports)}", flush=True)
  totals = {transport: collections.Counter() for transport in transports}
  has_failed = False
  for file in files:
    cells = []
    for transport in transports:
      text, counts, failed = cell(transport, file.resolve(), options)
      totals[transport] += counts
      has_failed |= failed
      cells.append(text)
    print(f"| `{file.name}` | {' | '.join(cells)} |", flush=True)
  sums = [f"{total['OK']} passed, {total['SKIPPED']} skipped, {total['FAILED']} failed" for total in totals.values()]
  print(f"| all | {' | '.join(sums)} |")
  return int(has_failed)


if __name__ == "__main__":
  sys.exit(main())
