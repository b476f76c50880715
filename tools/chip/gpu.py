"""What XLA's GPU compiler says of a program: chips, compilation without one, and the reading of its texts.

Costs are nanoseconds: the clock of a GPU is 1 GHz here.  README.md says how trustworthy each number is.
"""

import math
import os
import re
import typing

import figures
import gpu_matmuls
import gpu_targets
import hlo_schedule
from hlo_text import COLLECTIVES

HOST = 8  # devices of a host; sharded programs run on one
OPTIONS = {"xla_gpu_collect_cost_model_stats": True,
           "xla_gpu_enable_triton_gemm": False}  # without a device these products are not tuned, and 23 times too slow
NO_TABLES = {"xla_disable_hlo_passes": "sol-gpu-cost-model-stats-collection"}  # the pass fails where it has no tables
COST = re.compile(r'"exec_time_us":([\d.e+\-]+)[^{}]*?"name":"([^"]*)"')
UNTIMED = ("sort", "custom-call", "fft", "scatter", "rng-bit-generator")
REGULAR = ("copy", "slice", "concatenate")


class Chip(typing.NamedTuple):
  bandwidth: float  # bytes of HBM a second
  peak: float  # dense bf16 FLOP/s
  tables: bool  # whether the compiler has measured tables
  clock: float = 1e9  # Hz of the unit of costs


CHIPS = {
    "h100": Chip(3352.32e9, 989.4e12, True),
    "h200": Chip(4800e9, 989.4e12, True),
    "b200": Chip(7672.32e9, 2250e12, True),
    "a100": Chip(2039.04e9, 312e12, False),
}


# ---- the text ----

def costs_of(attributes):
  """Name of a cost model -> nanoseconds, from the attribute reification_cost."""
  return {name: float(us) * 1e3 for us, name in COST.findall(attributes)}


def cost_of(op):
  """What is believed of an instruction's costs; None where nothing is."""
  costs = costs_of(op.attributes)
  if op.opcode.removesuffix("-start") in COLLECTIVES:
    return None
  if re.search("__triton_(nested_)?gemm", op.attributes) or op.opcode == "custom-call":
    return costs.get("sol")
  if '"__triton"' in op.attributes:
    return costs.get("indexing-cost-model")
  if op.opcode == "fusion" and re.search(r"kind=k(Loop|Input)|dynamic_slice_fusion", op.attributes + op.name):
    return costs.get("sol", costs.get(""))
  return None


class Schedule(hlo_schedule.Schedule):
  """Costs of collectives are theirs, not the device's work; of asynchronous wrapped ones `wrapped` has them."""

  def __init__(self, text, wrapped, bandwidth):
    self.wrapped, self.bandwidth = wrapped, bandwidth
    super().__init__(text)

  def add(self, op, order, at, times, body, out):
    before = len(out)
    super().add(op, order, at, times, body, out)
    for work in out[before:]:
      work.matmul = gpu_matmuls.of(op, body)
      if work.matmul:
        work.moved -= gpu_matmuls.workspace(op)
      elif op.opcode == "fusion" and "dot" not in work.inside.split("+"):
        # The compiler counts the elements that a fusion reads of an operand: its estimate is no less than their bytes.
        work.moved = min(work.moved, (cost_of(op) or math.inf) / 1e9 * self.bandwidth)

  def cost(self, op):
    """Estimates of gathers and scatters leave out that memory moves whole sectors, and collisions."""
    indexed = op.opcode == "fusion" and self.module.inside(op.called("calls")).keys() & {"gather", "scatter"}
    return None if indexed else cost_of(op)

  def collective(self, op, inner, order, at, times):
    opcode = op.opcode.removesuffix("-start")
    if opcode not in COLLECTIVES:
      return
    started = op.opcode.endswith("-start")
    done = hlo_schedule.ends_at(order, at, lambda o: op.name in o.operands and o.opcode.endswith("-done"))
    between, cost = hlo_schedule.timed(order[at + 1:done] if done and started else [], self.cost)
    sync = not started or '"is_sync":true' in op.attributes
    how = "sync" if sync else "async" if between else "async-empty"
    own = costs_of(op.attributes).get("sol", self.wrapped.get(op.name, 0))
    self.collectives.append(hlo_schedule.Collective(opcode, how, op.short_shape(), between, cost, times, own))


def interval(work, by_bytes, name):
  """The least and the most nanoseconds that a work takes, and its estimate; None where the compiler has none."""
  if work.matmul:
    found = work.cost and gpu_matmuls.bounds(work.matmul, work.cost, name, CHIPS[name].peak)
    return (*found, work.cost) if found else None
  if work.cost is None or "dot" in work.inside.split("+"):
    return None
  return by_bytes, max(work.cost, by_bytes), work.cost


def add_work(totals, work, name):
  if figures.is_collective(work.opcode):
    return
  by_bytes = work.moved / CHIPS[name].bandwidth * 1e9
  totals.bytes += work.moved * work.times
  low, high, cost = interval(work, by_bytes, name) or (by_bytes, by_bytes, None)
  totals.low += low / 1e9 * work.times
  totals.high += max(high, by_bytes) / 1e9 * work.times
  if cost is not None:
    totals.cost += cost * work.times
    totals.matmul += cost * work.times * bool(work.matmul)
  elif work.moved > figures.SMALL or work.opcode in UNTIMED:
    totals.untimed += work.moved * work.times
    totals.irregular |= {work.inside if work.opcode == "custom-call" else work.opcode} - set(REGULAR)


def read(text, name, wrapped=None):
  """The row of a text that was compiled for the chip of that name; without `wrapped` not how long collectives take."""
  chip, schedule, totals = CHIPS[name], Schedule(text, wrapped or {}, CHIPS[name].bandwidth), figures.Totals()
  for work in schedule.works:
    add_work(totals, work, name)
  row = figures.row(schedule, totals, chip.clock, chip.bandwidth)
  if schedule.collectives and wrapped is not None:
    exposed = [max(0, c.own - (c.between_cost if c.how == "async" else 0)) * c.times for c in schedule.collectives]
    row["collective"] = round(sum(c.own * c.times for c in schedule.collectives))
    row["exposed"] = round(sum(exposed))
  return row


# ---- costs that the text does not print ----

def varint(data, at):
  value = shift = 0
  while True:
    byte = data[at]
    at += 1
    value |= (byte & 127) << shift
    shift += 7
    if byte < 128:
      return value, at


def fields(data):
  """(number, value) of a serialized protobuf message; values are bytes or numbers."""
  at = 0
  while at < len(data):
    key, at = varint(data, at)
    if key & 7 == 0:
      value, at = varint(data, at)
    else:
      size, at = varint(data, at) if key & 7 == 2 else (8 if key & 7 == 1 else 4, at)
      value, at = data[at:at + size], at + size
    yield key >> 3, value


def numbers(value):
  """A repeated field of numbers: packed, or one of them."""
  if isinstance(value, int):
    return [value]
  out, at = [], 0
  while at < len(value):
    number, at = varint(value, at)
    out.append(number)
  return out


def instruction_of(message):
  """Name, opcode, backend_config and called computations of a HloInstructionProto."""
  name = opcode = config = b""
  called = []
  for number, value in fields(message):
    if number == 1:
      name = value
    elif number == 2:
      opcode = value
    elif number == 43:
      config = value
    elif number == 38:
      called += numbers(value)
  return name.decode(), opcode.decode(), config.decode("utf8", "replace"), called


def wrapped_costs(module):
  """Name of an async-start -> nanoseconds, from the collective in the computation that it wraps (HloModuleProto)."""
  inside, starts = {}, {}
  for number, computation in fields(module):
    if number != 3:
      continue
    identity, best = None, 0
    for n, value in fields(computation):
      if n == 5:
        identity = value
      elif n == 2:
        name, opcode, config, called = instruction_of(value)
        if opcode in COLLECTIVES:
          best = max(best, costs_of(config).get("sol", 0))
        if opcode == "async-start" and called:
          starts[name] = called[0]
    inside[identity] = best
  return {name: inside.get(identity, 0) for name, identity in starts.items()}


# ---- compilation ----

def prepare():
  """Environment of a process that compiles for GPUs; before jax is imported."""
  os.environ.update(JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3")


def devices(name, sharded):
  from jax.experimental import topologies
  found = topologies.get_topology_desc(platform="cuda", topology_name=name, topology=f"1x1x{HOST}",
                                       target_config=gpu_targets.target_config(name)).devices
  return found if sharded else found[:1]


def compile(lowered, name):
  """The optimized text, the costs that it does not print, and the executable."""
  compiled = lowered.compile(compiler_options=OPTIONS if CHIPS[name].tables else OPTIONS | NO_TABLES)
  module = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
  return compiled.as_text(), wrapped_costs(module), compiled
