"""Records measured ratios, and finds cases that have become slower than recorded.

Times are compared as ratios, because these differ little between machines.  The bytes of temporaries do not depend on
the machine, so minipod's own bytes are compared.
"""

import json
import os
import pathlib

import jax

import report

FILE = pathlib.Path(__file__).parent / "recorded.json"
SLACK = 64 << 10  # bytes; a smaller increase does not count


def machine():
  lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
  processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")),
                   "unknown")
  return {"jax": jax.__version__, "processor": processor,
          "cores": len(os.sched_getaffinity(0))}


def load(file=FILE):
  return json.loads(file.read_text())


def other_machine(recorded, here=None):
  """How this machine differs from the one on which the ratios were recorded."""
  here = here or machine()
  return [f"{what} {recorded[what]}, here {value}" for what, value in here.items()
          if recorded.get(what) != value]


def refusal(names, file=FILE):
  """Why these cases cannot be recorded alone; empty if they can."""
  recorded = load(file) if file.exists() else machine() | {"cases": {}}
  if set(recorded["cases"]) <= set(names):
    return ""
  return "; ".join(other_machine(recorded))


def save(table, known, file=FILE):
  """Writes the cases of the table.  Recorded cases that were not measured stay if they still exist."""
  recorded = load(file)["cases"] if file.exists() else {}
  rows = {name: row for name, row in recorded.items() if name in known}
  for name, row in table.items():
    ratios = {figure: round(ratio, 3) for figure, ratio in report.ratios(row).items()}
    if "error" not in row["minipod"]:
      rows[name] = ratios | {"minipod_bytes": row["minipod"].get("bytes", 0)}
  lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())]
  head = "".join(f"{json.dumps(k)}: {json.dumps(v)},\n" for k, v in machine().items())
  file.write_text("{" + head + '"cases": {\n' + ",\n".join(lines) + "\n}}\n")


def worse(recorded, table, factor):
  """A message about each case that is slower or larger than recorded."""
  result = {}
  for name, row in table.items():
    before, now = recorded["cases"].get(name), report.ratios(row)
    if not before or "error" in row["minipod"]:
      continue
    # One of the two ratios often rises on a busy machine; both together do not.
    times = [figure for figure in ("wall", "processor") if figure in now and figure in before]
    if times and all(now[figure] > factor * before[figure] for figure in times):
      result[name] = f"{name} is slower than recorded: " + ", ".join(
          f"{figure} ratio {now[figure]:.2f} after {before[figure]:.2f}" for figure in times)
    bytes_now, bytes_before = row["minipod"].get("bytes", 0), before["minipod_bytes"]
    if bytes_now > factor * bytes_before + SLACK:
      result[name] = (f"{name} takes more memory than recorded: {report.size(bytes_now)} after "
                      f"{report.size(bytes_before)}")
  return result
