#!/usr/bin/env python3
"""Runs the code of JAX's documentation on JAX's CPU backend and on minipod, and compares.

    .venv/bin/python tools/tutorials.py DIR [--only TEXT] [--devices 8] [--seconds 300]

DIR holds JAX's sources at the tag of the installed version (`docs/`, `cloud_tpu_colabs/`).  Every
document runs in a process of its own per platform, its cells one after the other, as a reader would
run them.  A cell counts when it runs on the CPU backend; then it must run on minipod.  What cells
print is compared too, up to rounding and the names of devices, and differences are listed, but
only a cell that ends differently makes the exit code 1.
"""

import argparse
import ast
import contextlib
import doctest
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import traceback

PLATFORMS = ("cpu", "minipod")
FENCE = re.compile(r"^( *)```+ *(\{code-cell\}.*|python|ipython3|pycon|py)\s*$")
CELL_SECONDS = 120


# ---- Documents ----

def cells_of(path: pathlib.Path) -> list[str]:
  """The code cells of a notebook, or the fenced blocks of a Markdown file."""
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
  """A cell without what only IPython or Jupytext understands."""
  if ">>> " in text:
    return "".join(example.source for example in doctest.DocTestParser().get_examples(text))
  kept = []
  for line in text.splitlines():
    line = re.sub(r"^(\s*)%timeit (-\S+ (\d+ )?)*", r"\1", line)
    if not re.match(r"\s*[%!]|^:\w[\w-]*:", line):
      kept.append(line)
  return "\n".join(kept)


# ---- The child: one document on one platform ----

class TooLong(BaseException):
  """A cell took longer than its limit; no `except Exception` of a cell may swallow it."""


def run_document(path: pathlib.Path, out) -> None:
  """Writes a line of JSON per cell: how it ended, and what it printed."""
  names = {"__name__": "__main__", "display": print}

  def too_long(*_):
    raise TooLong(f"more than {CELL_SECONDS} s")

  signal.signal(signal.SIGALRM, too_long)
  for index, source in enumerate(cells_of(path)):
    printed = io.StringIO()
    outcome, detail = "ok", ""
    signal.alarm(CELL_SECONDS)
    try:
      with contextlib.redirect_stdout(printed):
        run_cell(source, names)
    except BaseException as error:  # SystemExit too: the next cell runs all the same
      outcome = type(error).__name__
      detail = traceback.format_exc()[-1500:]
    finally:
      signal.alarm(0)
    out.write(json.dumps({"cell": index, "outcome": outcome, "text": printed.getvalue()[-20000:],
                          "detail": detail, "source": source}) + "\n")
    out.flush()


def run_cell(source: str, names: dict) -> None:
  """Runs a cell and, as a notebook does, shows the value of its last expression."""
  tree = ast.parse(source)
  last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
  exec(compile(tree, "<cell>", "exec"), names)
  if last is not None:
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if value is not None:
      print(repr(value))


# ---- The parent ----

def environment_of(platform: str, devices: int) -> dict:
  """The environment of a process that shall have so many devices of the platform."""
  environment = {**os.environ, "JAX_PLATFORMS": platform, "MPLBACKEND": "agg",
                 "TF_CPP_MIN_LOG_LEVEL": "3", "MINIPOD_DEVICES": str(devices)}
  if platform == "cpu":
    environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
  return environment


def run_on(platform: str, path: pathlib.Path, devices: int, seconds: int) -> list[dict]:
  with tempfile.TemporaryDirectory() as folder:
    report = pathlib.Path(folder) / "report"
    command = [sys.executable, os.path.abspath(__file__), "--child", str(path), str(report)]
    ended = ""
    try:
      result = subprocess.run(command, cwd=folder, env=environment_of(platform, devices),
                              timeout=seconds,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace")
      if result.returncode != 0:
        ended = f"the process ended with {result.returncode}: {result.stderr[-500:]}"
    except subprocess.TimeoutExpired:
      ended = f"the process took more than {seconds} s"
    cells = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
  if ended:
    cells.append({"cell": len(cells), "outcome": "died", "text": "", "detail": ended, "source": ""})
  return cells


NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
NOISE = [
    (re.compile(r"0x[0-9a-f]+"), "ADDRESS"),
    (re.compile(r"\b(?:Cpu|Minipod)Device\(id=(\d+)\)|MINIPOD_(\d+)(?:\([^()]*(?:\([^()]*\))?\))?"
                r"|TFRT_CPU_(\d+)"), r"DEVICE"),
    (re.compile(r"\b(?:cpu|minipod)\b", re.IGNORECASE), "PLATFORM"),
    (re.compile(r"\d[\d.]* *(?:ns|us|µs|ms|s|sec|seconds)\b.*"), "TIME"),
]


def same_text(left: str, right: str) -> bool:
  """Whether two texts agree up to rounding, addresses, times and the names of devices."""
  for pattern, word in NOISE:
    left, right = pattern.sub(word, left), pattern.sub(word, right)
  words = [re.sub(r"\s", "", NUMBER.sub("#", text)) for text in (left, right)]
  if words[0] != words[1]:
    return False
  pairs = zip(NUMBER.findall(left), NUMBER.findall(right))
  return all(abs(float(a) - float(b)) <= 1e-3 * max(abs(float(a)), abs(float(b))) + 1e-5
             for a, b in pairs)


def compare(path: pathlib.Path, cpu: list[dict], pod: list[dict], counts: dict) -> None:
  """Counts the cells of a document, and prints those that differ."""
  there = {cell["cell"]: cell for cell in pod}
  for cell in cpu:
    other = there.get(cell["cell"], {"outcome": "missing", "text": "", "detail": ""})
    title = f"{path}, cell {cell['cell']}"
    if cell["outcome"] != "ok":
      counts["not on the CPU"] += 1
    elif other["outcome"] != "ok":
      counts["differ"] += 1
      print(f"---- {title}: {other['outcome']}\n{cell['source'][:600]}\n{other['detail'][-700:]}")
    elif not same_text(cell["text"], other["text"]):
      counts["same outcome, other text"] += 1
      print(f"---- {title} prints something else\nCPU: {cell['text'][:300]}\n"
            f"minipod: {other['text'][:300]}")
    else:
      counts["same"] += 1


def main() -> int:
  if sys.argv[1:2] == ["--child"]:
    with open(sys.argv[3], "w") as out:
      run_document(pathlib.Path(sys.argv[2]), out)
    return 0
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--only", default="", help="documents whose path contains this")
  parser.add_argument("--devices", type=int, default=8)
  parser.add_argument("--seconds", type=int, default=300, help="per document and platform")
  options = parser.parse_args()
  counts = {"same": 0, "same outcome, other text": 0, "differ": 0, "not on the CPU": 0}
  for path in sorted([*options.folder.rglob("*.md"), *options.folder.rglob("*.ipynb")]):
    # A notebook that exists in both forms is one document.
    if path.suffix == ".ipynb" and path.with_suffix(".md").exists():
      continue
    if options.only not in str(path) or not cells_of(path):
      continue
    results = [run_on(p, path.resolve(), options.devices, options.seconds) for p in PLATFORMS]
    compare(path.relative_to(options.folder), *results, counts)
    print(f"{path.relative_to(options.folder)}: {counts}", flush=True)
  return 1 if counts["differ"] else 0


if __name__ == "__main__":
  sys.exit(main())
