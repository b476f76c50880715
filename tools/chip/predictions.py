"""What the chip model says of the corpus: runs build/minipod-chip over it, without JAX, and joins its rows.

A prediction counts as right within a factor of 1.3 of the interval that the compiler's text supports.
"""

import json
import math
import os
import pathlib
import subprocess
import tempfile

import corpus
import gpu

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The compilers' rows have no time to launch a program, and no limit of memory.
WITHOUT = "hbm:256GiB launch_latency:1ns"
# Name of a chip's rows -> pod: of a device, and of a slice or host for sharded programs.
ONE = {"v3": "v3:2x2", "v4": "v4:1x1x1", "v5e": "v5e:1x1", "v5p": "v5p:1x1x1", "v6e": "v6e:1x1", "7x": "7x:1x1x1",
       "h100": "h100:1", "a100": "a100:1", "h200": "h200:1", "b200": "b200:1"}
SLICES = {"v5e": "v5e:4x4", "v6e": "v6e:4x4", "v5p": "v5p:2x2x4"}
HOSTS = {"h100": "h100:8", "h200": "h200:8", "a100": "a100:8", "b200": "b200:8"}
NEAR = 1.3
# Seconds that a GPU takes at least for a kernel: XLA's estimates leave them out, but none of the 1,875 matmuls that it
# carries as measurements is faster.
GPU_KERNEL = 4e-6
# Seconds that a matmul's cycles have too many where it was measured: on 7x 2.6 us for 128^3 and 256^3, of which 1.6 us
# were measured (configs/chips/7x.yaml).
EARLY = {"7x": 1e-6}


class Prediction:
  """One program on one chip: the model's row beside the compiler's."""

  def __init__(self, name, cls, chip, mine, theirs, clock=None):
    self.name, self.cls, self.chip, self.mine, self.theirs = name, cls, chip, mine, theirs
    self.split = corpus.split(name)
    self.seconds = mine["work_seconds"] if theirs.get("collectives") else mine["seconds"]
    self.low, self.high = corpus.interval(theirs, clock)
    if chip in gpu.CHIPS:
      self.high += GPU_KERNEL * (theirs.get("launches") or theirs.get("kernels") or 0)
    if theirs.get("matmul"):
      self.low = max(0, self.low - EARLY.get(chip, 0))
    self.ratio = self.to_interval(self.seconds)
    self.temporaries = mine["temporaries"], theirs.get("temp") or 0

  def to_interval(self, seconds):
    """1 inside of the interval; below 1 the model is too fast."""
    if seconds <= 0:
      return 1.0 if self.low <= 0 else 1e-9
    if self.low <= seconds <= self.high:
      return 1.0
    return seconds / self.high if seconds > self.high > 0 else seconds / self.low if self.low > 0 else 1.0

  @property
  def is_near(self):
    return is_near(self.ratio)


def collectives_off(mine, theirs):
  """How many kinds of collectives run in another way: not at all, sync, async. Rings are permutes in compilers' texts."""
  found = {(kind.replace("_", "-").replace("exchange", "collective-permute"), way)
           for kind, ways in mine.items() for way, count in ways.items() if count}
  expected = {(kind, way) for kind, ways in (theirs or {}).items() for way, count in ways.items() if count}
  has_rings = any(way == "decomposed" for _, way in found)
  return sum(way != "decomposed" and not (has_rings and kind == "collective-permute") for kind, way in found ^ expected)


def is_near(ratio):
  return 1 / NEAR <= ratio <= NEAR


def targets_of(name, is_sharded):
  if name.endswith(corpus.GPUS):
    return HOSTS
  return SLICES if is_sharded else ONE


def unpack(folder, only):
  """Writes the corpus' programs; (class, path, targets) of each."""
  programs = []
  for cls in corpus.classes():
    for name, text in corpus.read_programs(cls).items():
      if only and only not in name:
        continue
      path = pathlib.Path(folder) / f"{name}.mlir"
      path.write_text(text)
      programs.append((cls, path, targets_of(name, "mhlo.num_partitions = 16" in text)))
  return programs


def run(binary, form, programs, chips):
  """Yields (class, line) for each program and chip; programs with the same targets share a process."""
  groups = {}
  for cls, path, targets in programs:
    named = tuple(f"{targets[chip]} {WITHOUT}" for chip in chips if chip in targets)
    if named:
      groups.setdefault(named, []).append((cls, path))
  for named, members in groups.items():
    classes = {str(path): cls for cls, path in members}
    command = [str(binary), form, *(word for target in named for word in ("--target", target)), *classes]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=clean_environment())
    if done.returncode != 0:
      raise SystemExit(f"{binary} ended with {done.returncode}")
    for text in done.stdout.splitlines():
      line = json.loads(text)
      yield classes[(line.get("base") or line)["file"]], line


def clean_environment():
  """The user's switches of rules count; nothing else that describes a pod."""
  kept = {"MINIPOD_CHIP_WITHOUT"}
  return {key: value for key, value in os.environ.items() if not key.startswith("MINIPOD_") or key in kept}


class Reader:
  """Joins lines of minipod-chip with the compilers' rows."""

  def __init__(self, chips=tuple(ONE)):
    self.chips = chips
    self.rows = {chip: corpus.read_rows(chip) for chip in chips}
    self.chip_of = {f"{target} {WITHOUT}": chip for targets in (ONE, SLICES, HOSTS) for chip, target in targets.items()}

  def predict(self, binary, programs, form="--summary"):
    """A list of (Prediction, line), and what the model refused: (name, error)."""
    found, refused = [], []
    for cls, line in run(binary, form, programs, self.chips):
      mine = line.get("base") or line
      name = pathlib.Path(mine["file"]).stem
      if "error" in mine:
        refused.append((name, mine["error"]))
        continue
      chip = self.chip_of[mine["target"]]
      theirs = self.rows[chip][1].get(name.removesuffix(corpus.GPUS))
      if theirs is None or "error" in theirs:
        continue
      clock = self.rows[chip][0].get("clock")
      found.append((Prediction(name.removesuffix(corpus.GPUS), cls, chip, mine, theirs, clock), line))
    return found, refused


def predict(binary, chips=tuple(ONE), only="", form="--summary"):
  """What Reader.predict gives of the whole corpus."""
  with tempfile.TemporaryDirectory() as folder:
    return Reader(chips).predict(binary, unpack(folder, only), form)


def memory_error(mine, theirs):
  """Of temporaries; what is far below a megabyte does not count."""
  return off((mine + 2**20) / (theirs + 2**20))


def share(predictions):
  """Percent that are near; None of none."""
  return 100 * sum(p.is_near for p in predictions) / len(predictions) if predictions else None


def off(ratio):
  return abs(math.log(max(ratio, 1e-9)))
