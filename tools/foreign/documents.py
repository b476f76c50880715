"""Runs the code of documents, or programs, on JAX's CPU backend and on minipod, and compares cell by cell.

Documents are Markdown files and notebooks, such as JAX's documentation at the tag of the installed version (`docs/`,
`cloud_tpu_colabs/`).  A Python program is a document with one cell.  For each platform, a document runs in its own
process, one cell after the other, as a reader would run it.

A cell counts if it runs on the CPU backend; then it must run on minipod.  A cell that shows an error on the CPU backend
must show one of the same type.  The output of cells is compared too, except for rounding and the names of
devices.  Differences are listed; in programs they count as failures.
"""

import ast
import collections
import concurrent.futures
import contextlib
import doctest
import io
import json
import os
import pathlib
import random
import re
import signal
import socket
import sys
import tempfile
import traceback

import platforms

FENCE = re.compile(r"^( *)```+ *(\{code-(?:cell|block)\}.*|(?:python|ipython3|pycon|py)\b.*)$")
# The variable in which a document sets its number of CPU devices; minipod gets as many.
WISH = re.compile(r"xla_force_host_platform_device_count=(\d+)|jax_num_cpu_devices', (\d+)")
CELL_SECONDS = 120
# Without a network, downloads should fail quickly.
NETWORK_SECONDS = 5


# ---- Documents ----

def cells_of(path: pathlib.Path) -> list[str]:
  """The code cells of a notebook, the fenced blocks of a Markdown file, or a whole program."""
  if path.suffix == ".py":
    return [path.read_text()]
  if path.suffix == ".ipynb":
    cells = json.loads(path.read_text())["cells"]
    return [as_python("".join(c["source"])) for c in cells if c["cell_type"] == "code"]
  cells, lines, indent = [], None, ""
  for line in path.read_text().splitlines():
    if lines is None:
      if match := FENCE.match(line):
        lines, indent = [], match.group(1)
    elif line.strip().startswith("```"):
      cells.append(as_python("\n".join(lines)))
      lines = None
    else:
      lines.append(line.removeprefix(indent))
  return cells


def as_python(text: str) -> str:
  """A cell without lines that only IPython or Jupytext understands."""
  if text.startswith("%%bash") or text.startswith("%%writefile"):
    return ""
  # Lines between two lines of dashes at the beginning describe the cell, and are not part of it.
  text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
  if ">>> " in text:
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))
  kept = []
  for line in text.splitlines():
    line = re.sub(r"^(\s*)(?:%time(?:it)?|timeit(?= -)) (-\S+ (\d+ )?)*", r"\1", line)
    if not re.match(r"\s*(?:%%?[a-z]|!)|^:\w[\w-]*:", line):
      kept.append(line)
  return "\n".join(kept)


# ---- The child: one document on one platform ----

class TooLong(BaseException):
  """A cell took longer than its limit.  It is a BaseException, so a cell's `except Exception` cannot catch it."""


def run_document(path: pathlib.Path, out) -> None:
  """Writes a line of JSON per cell: how it ended, and its output."""
  import numpy as np

  names = {"__name__": "__main__", "display": print}

  def too_long(*_):
    raise TooLong(f"more than {CELL_SECONDS} s")

  signal.signal(signal.SIGALRM, too_long)
  random.seed(0)
  np.random.seed(0)
  socket.setdefaulttimeout(NETWORK_SECONDS)
  for index, source in enumerate(cells_of(path)):
    printed = io.StringIO()
    outcome, detail = "ok", ""
    signal.alarm(CELL_SECONDS if path.suffix != ".py" else 0)  # the time limit of a program's process applies to it
    try:
      with contextlib.redirect_stdout(printed):
        run_cell(source, names)
        # Output of callbacks of this cell belongs to this cell.
        if "jax" in sys.modules:
          sys.modules["jax"].effects_barrier()
    except BaseException as error:  # SystemExit, too: the next cell still runs
      outcome = type(error).__name__
      detail = traceback.format_exc()[-1500:]
      forget_effects()
    finally:
      signal.alarm(0)
    out.write(json.dumps({"cell": index, "outcome": outcome, "text": printed.getvalue()[-20000:],
                          "detail": detail, "source": source}) + "\n")
    out.flush()


def forget_effects() -> None:
  """Otherwise JAX would report a failed effect again at the end of every later cell."""
  if dispatch := sys.modules.get("jax._src.dispatch"):
    dispatch.runtime_tokens.clear()


def run_cell(source: str, names: dict) -> None:
  """Runs a cell, and shows the value of each of its expressions as an interpreter does."""
  for statement in ast.parse(source).body:
    exec(compile(ast.Interactive([statement]), "<cell>", "single"), names)


# ---- The parent ----

def run_on(platform: str, path: pathlib.Path, devices: int, seconds: int) -> list[dict]:
  """The results of a document's cells on a platform; a cell that was not reached is "died"."""
  sources = cells_of(path)
  if wish := WISH.search("\n".join(sources)):
    devices = int(wish.group(1) or wish.group(2))
  environment = {**os.environ, **platforms.environment_of(platform, devices), "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
  with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
    folder = pathlib.Path(name)
    report, log = folder / "report", folder / "log"
    code, _ = platforms.run([sys.executable, os.path.abspath(__file__), path, report], folder, environment, log, seconds)
    ended = (f"the process took more than {seconds} s" if code is None else
             f"the process ended with {code}: {log.read_text(errors='replace')[-500:]}")
    cells = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
  return cells + [{"outcome": "died", "text": "", "detail": ended, "source": source}
                  for source in sources[len(cells):]]


# Reasons why a cell does not run on the CPU, by the text of its exception; the first match counts.
REASONS = [
    ("network", r"URLError|ConnectionError|gaierror|HTTPError|name resolution|ConnectTimeout"),
    ("TPU or GPU", r"(?i)\btpu|\bgpus?\b|cuda|mosaic|triton|sparsecore|Only interpret mode"),
    ("package", r"ModuleNotFoundError|ImportError"),
    ("time", r"(?m)^TooLong|took more than"),
    ("not whole Python", r"SyntaxError|IndentationError"),
    ("unknown name", r"NameError|FileNotFoundError|has no attribute"),
]


def reason_of(cell: dict) -> str:
  """Why a cell did not run on the CPU backend."""
  error = cell["detail"].strip().rsplit("\n\n", 1)[-1]
  for reason, pattern in REASONS:
    if re.search(pattern, error):
      return reason
  return "an error that it shows"


def compare(path: pathlib.Path, cpu: list[dict], pod: list[dict]) -> collections.Counter:
  """Counts the cells of a document, and prints those that differ."""
  counts = collections.Counter()
  for index, (cell, other) in enumerate(zip(cpu, pod)):
    title = f"---- {path}, cell {index}"
    if cell["outcome"] == other["outcome"] == "ok":
      counts["run"] += 1
      alike = platforms.same_text(cell["text"], other["text"])
      counts["same" if alike else "other text"] += 1
      counts["differ"] += path.suffix == ".py" and not alike
      if not alike:
        print(f"{title} prints something else\nCPU: {cell['text'][:600]}\n"
              f"minipod: {other['text'][:600]}")
    elif cell["outcome"] == "ok":
      counts["run"] += 1
      counts["differ"] += 1
      print(f"{title}: {other['outcome']}\n{cell['source'][:600]}\n{other['detail'][-700:]}")
    else:
      reason = reason_of(cell)
      counts[reason] += 1
      if cell["outcome"] != other["outcome"]:
        print(f"{title} ({reason}): {cell['outcome']} on the CPU, {other['outcome']} on minipod\n"
              f"{cell['detail'][-300:]}\n{other['detail'][-300:]}")
        counts["other error"] += 1
  return counts


COLUMNS = ["run", "same", "other text", "differ", "other error",
           *(reason for reason, _ in REASONS), "an error that it shows"]


def row(title: str, counts: collections.Counter) -> str:
  return f"| {title} | " + " | ".join(str(counts[column] or "") for column in COLUMNS) + " |"


def compare_all(folder: pathlib.Path, only: str, devices: int, seconds: int, jobs: int) -> int:
  """Compares the documents below a folder whose path contains `only`; the exit code is 1 if a cell ends differently."""
  # A notebook that exists in both forms is one document.
  paths = [path for suffix in ("md", "ipynb", "py") for path in folder.rglob(f"*.{suffix}")
           if only in str(path) and cells_of(path) and not (suffix == "ipynb" and path.with_suffix(".md").exists())]
  paths.sort()

  def run_both(path: pathlib.Path) -> list[list[dict]]:
    return [run_on(platform, path.resolve(), devices, seconds) for platform in platforms.PLATFORMS]

  rows, total = [], collections.Counter()
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    for path, results in zip(paths, pool.map(run_both, paths)):
      name = path.relative_to(folder)
      counts = compare(name, *results)
      total += counts
      rows.append(row(name, counts))
      print(f"{name}: {dict(counts)}", flush=True)
  print("\n".join(["", f"| document | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|",
                   *rows, row(f"{len(rows)} documents", total)]))
  return 1 if total["differ"] else 0


if __name__ == "__main__":  # the process of a document
  with open(sys.argv[2], "w") as file:
    run_document(pathlib.Path(sys.argv[1]), file)
