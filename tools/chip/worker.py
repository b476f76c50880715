"""The process that compiles for record.py: libtpu ends it on some programs.

    worker.py KIND CHIP SHARDED FLAGS PROGRAMS TEXTS      (names of programs on standard input)

KIND is lower, tpu, gpu or bundles.  Prints two lines of JSON for each program: that it begins, and its result.
"""

import gzip
import importlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import traceback

import bundles
import gpu
import lowering
import tpu

STATUS = re.compile(r"\b([A-Z]+_[A-Z_]+|INTERNAL|UNIMPLEMENTED|UNKNOWN|ABORTED|CANCELLED): ")
MEMORY = ("temp", "argument", "output", "alias")


def load(path):
  """PROGRAMS of the package beside this file, or of a module at a path."""
  if path:
    sys.path.insert(0, str(pathlib.Path(path).parent))
  return importlib.import_module(pathlib.Path(path).stem if path else "programs").PROGRAMS


def error_of(problem):
  """A compiler's refusal as a word: its status, or the exception's name."""
  found = STATUS.search(str(problem))
  return found.group(1) if found else type(problem).__name__


def memory_of(compiled):
  analysis = compiled.memory_analysis()
  return {short: getattr(analysis, short + "_size_in_bytes", None) for short in MEMORY}


def keep(texts, name, chip, text):
  """Adds an optimized text to the folder that --reread reads."""
  if texts:
    folder = pathlib.Path(texts)
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{name}@{chip}.txt.gz", "wt") as f:
      f.write(text)


class Lower:
  """StableHLO as lowered for one chip or 16 of v5e; for programs on several devices also for 8 GPUs."""

  def __init__(self, chip, sharded, folder):
    self.devices = tpu.devices("v5e", sharded)
    self.gpus = gpu.devices("h100", True) if sharded else None

  def run(self, program, lowered):
    out = {"text": lowered.as_text()}
    if self.gpus:
      try:
        out["text8"] = lowering.lower(program, self.gpus).as_text()
      except Exception as problem:  # it counts on 16 devices
        print(f"{program.name}: not for 8 devices: {problem}"[:200], file=sys.stderr)
    return out


class Tpu:

  def __init__(self, chip, sharded, texts):
    self.chip, self.texts, self.devices = chip, texts, tpu.devices(chip, sharded)

  def run(self, program, lowered):
    return {"row": self.read(program, lowered)[1]}

  def read(self, program, lowered):
    text, figures, compiled = tpu.compile(lowered, self.chip)
    keep(self.texts, program.name, self.chip, text)
    return text, tpu.read(text, self.chip) | memory_of(compiled) | figures


class Gpu:

  def __init__(self, chip, sharded, texts):
    self.chip, self.texts, self.devices = chip, texts, gpu.devices(chip, sharded)

  def run(self, program, lowered):
    text, wrapped, compiled = gpu.compile(lowered, self.chip)
    keep(self.texts, program.name, self.chip, text)
    return {"row": gpu.read(text, self.chip, wrapped) | memory_of(compiled)}


class Bundles(Tpu):
  """The same, and cycles by the final bundles of every kernel, which libtpu dumps into a folder."""

  def run(self, program, lowered):
    try:
      text, row = self.read(program, lowered)
      return {"row": row | self.count(text)}
    finally:
      for path in FOLDER.iterdir():
        path.unlink()

  def count(self, text):
    """Nothing if the dumps have a form that the reader does not know, or run too long."""
    try:
      return bundles.read(FOLDER, text, self.chip)
    except Exception:
      traceback.print_exc(limit=-3)
      return {}


KINDS = {"lower": Lower, "tpu": Tpu, "gpu": Gpu, "bundles": Bundles}
FOLDER = None


def prepare(kind):
  global FOLDER
  if kind == "gpu":
    gpu.prepare()
  elif kind == "bundles":
    FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="chip_bundles_"))
    tpu.prepare(bundles.flags(FOLDER))
  else:
    tpu.prepare()


def attempt(job, program):
  """The result of a program: a row or texts; `error` if the chip's compiler refuses it, `not_lowered` if JAX does."""
  try:
    lowered = lowering.lower(program, job.devices)
  except Exception as problem:
    traceback.print_exc(limit=-3)
    return {"not_lowered": error_of(problem)}
  try:
    return job.run(program, lowered)
  except Exception as problem:
    traceback.print_exc(limit=-3)
    return {"error": error_of(problem)}


def main():
  kind, chip, sharded, path, texts = sys.argv[1:]
  prepare(kind)
  names = sys.stdin.read().split()
  programs = {program.name: program for program in load(path)}
  say = lambda **what: print(json.dumps(what), flush=True)
  job = KINDS[kind](chip, sharded == "1", texts)
  for name in names:
    say(begin=name)
    say(name=name, **attempt(job, programs[name]))
  if FOLDER:
    shutil.rmtree(FOLDER)


if __name__ == "__main__":
  main()
