"""What libtpu's compiler says of a program: chips, compilation without one, and the reading of its texts.

README.md says how trustworthy each number is.
"""

import importlib.util
import math
import os
import pathlib
import re
import tempfile
import typing

import figures
import hlo_schedule

UNKNOWN = 10 ** 15  # cycles: the compiler writes 2^63 - 1 where it has none
CYCLES = re.compile(r'"estimated_cycles":"?(\d+)')
# Without cycles, or with those of one turn of an inner loop: only their bytes say something.
IRREGULAR = ("sort", "gather", "scatter", "custom-call", "reverse", "fft", "rng-bit-generator", "async-done")
REGULAR = ("copy", "slice", "concatenate")  # without cycles, and bound by bandwidth


class Chip(typing.NamedTuple):
  topology: str  # of one chip, as libtpu names it
  slice: str | None  # of 16, for sharded programs
  clock: float  # Hz: published peak / (2 x multiply-adds a cycle)
  bandwidth: float  # bytes of HBM a second and device
  peak: float  # bf16 FLOP/s


CHIPS = {
    "v3": Chip("v3:1x1x1", None, 0.94e9, 450e9, 61.5e12),  # one of two cores
    "v4": Chip("v4:1x1x1", None, 1.05e9, 614e9, 137.5e12),  # one of two cores
    "v5e": Chip("v5e:1x1", "v5e:4x4", 1.50e9, 819e9, 197e12),
    "v5p": Chip("v5p:1x1x1", "v5p:2x2x4", 1.75e9, 2765e9, 459e12),  # two cores as one device
    "v6e": Chip("v6e:1x1", "v6e:4x4", 1.75e9, 1638e9, 918e12),
    "7x": Chip("tpu7x:1x1x1", None, 2.20e9, 3690e9, 1153.5e12),  # one of two cores
}


# ---- the text ----

class Schedule(hlo_schedule.Schedule):

  def cost(self, op):
    found = CYCLES.search(op.attributes)
    return int(found.group(1)) if found and int(found.group(1)) < UNKNOWN else None


def is_ragged(work):
  """A matmul of groups whose sizes are data: its cycles count each window of rows once per group."""
  return work.kind == "kCustom" and "convolution" in work.inside


def add_work(totals, work, chip):
  """Matmuls take their cycles, the rest something between its bytes and its cycles."""
  by_bytes = work.moved / chip.bandwidth
  totals.bytes += work.moved * work.times
  if is_ragged(work):
    totals.irregular.add("ragged-dot")
    totals.low += by_bytes * work.times
    totals.high += by_bytes * work.times
  elif work.cost is not None:
    matmul = "convolution" in work.inside or work.opcode == "convolution"
    by_cycles = max(work.cost / chip.clock, by_bytes)
    totals.cost += work.cost * work.times
    totals.matmul += work.cost * work.times * matmul
    totals.low += (by_cycles if matmul else by_bytes) * work.times
    totals.high += by_cycles * work.times
  elif not work.opcode.endswith(("-start", "-update")):
    totals.low += by_bytes * work.times
    totals.high += by_bytes * work.times
    odd = work.opcode in IRREGULAR or re.search(r"\b(scatter|gather|sort|custom-call|ragged)", work.inside)
    if not figures.is_collective(work.opcode) and (work.moved > figures.SMALL or odd):
      totals.untimed += work.moved * work.times
      what = work.inside if work.opcode == "custom-call" else work.opcode
      totals.irregular |= {what} - set(REGULAR)


def read(text, name):
  """The row of a text that was compiled for the chip of that name."""
  chip, schedule, totals = CHIPS[name], Schedule(text), figures.Totals()
  for work in schedule.works:
    add_work(totals, work, chip)
  return figures.row(schedule, totals, chip.clock, chip.bandwidth)


# ---- compilation ----

def prepare(flags=""):
  """Environment of a process that compiles for TPUs; before jax is imported."""
  library = os.environ.get("TPU_LIBRARY_PATH")
  if not library:
    spec = importlib.util.find_spec("libtpu")
    if spec is None:
      raise SystemExit("libtpu is not installed: install the package, or set TPU_LIBRARY_PATH")
    library = os.path.join(spec.submodule_search_locations[0], "libtpu.so")
  os.environ.update(TPU_LIBRARY_PATH=library, TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
                    ALLOW_MULTIPLE_LIBTPU_LOAD="1", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")
  if flags:
    os.environ["LIBTPU_INIT_ARGS"] = flags


def devices(name, sharded):
  from jax.experimental import topologies
  chip = CHIPS[name]
  return topologies.get_topology_desc(chip.slice if sharded else chip.topology, "tpu").devices


def compile(lowered, name):
  """The optimized text, what cost_analysis() says, and the executable."""
  compiled = lowered.compile()
  cost = compiled.cost_analysis() or {}
  cost = cost[0] if isinstance(cost, list) else cost
  optimal = cost.get("optimal_seconds") or 0  # libtpu's has -1 for each custom call
  figures_of_cost = {"flops": cost.get("flops"), "optimal": optimal - min(0, math.floor(optimal))}
  return text_of(lowered, compiled), figures_of_cost, compiled


def text_of(lowered, compiled):
  """The optimized text; from libtpu's own dump where this jaxlib cannot read it (SparseCores of v6e, 7x)."""
  try:
    return compiled.as_text()
  except Exception:
    with tempfile.TemporaryDirectory() as folder:
      lowered.compile(compiler_options={"xla_dump_to": folder, "xla_dump_hlo_as_text": True})
      texts = pathlib.Path(folder).glob("*.after_codegen.txt")
      return max(texts, key=lambda path: path.stat().st_size).read_text()
