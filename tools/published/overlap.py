"""Compares how the model and libtpu's compiler execute collectives: sync, async or decomposed.

    .venv/bin/python tools/published/overlap.py --programs FILE.py [--record FILE.json.gz ...] [--chips v5e,v6e]
        [--only WORD] [--check]

FILE.py has a list PROGRAMS.  A program has a name, a mesh of 4, 8, 16 or 64 devices ({"fsdp": 4, "tp": 4}; others are
left out), `donate`, and a function `build`.  `build` gets a mesh and returns a function and its arguments, which have a
shape, a dtype and a spec.  A record has {"results": {"program@chip": {"collectives": [[opcode, how, shape, ., .,
executions], ...]}}} of the programs as libtpu compiled them ahead of time.  Without a record, the script prints only
what the model does.

Rows are kinds of collectives of a program, in executions per device.  Both sides use these kinds:

- gathers, exchanges: sync or async
- sums: all_reduces and reduce_scatters, sync or async; one that sums several arrays counts once
- rings: messages of collective matmuls: n - 1 for a gather over 4 devices, n + 1 for a gather over 8 or more (in both
  directions), n for a scatter over 4.  For libtpu, these are collective_permutes in programs that have none
  themselves.  An exchange of pieces counts as three
- permutes: those of the program itself

For each program, the script prints which part of both distributions is the same.  Programs are weighted by libtpu's
number of executions, with a ring counted as one.  --check fails if less than 90 % of a chip's executions agree.
"""

import argparse
import collections
import gzip
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

GRIDS = {"v5e": {4: "2x2", 8: "2x4", 16: "4x4", 64: "8x8"}, "v6e": {4: "2x2", 8: "2x4", 16: "4x4", 64: "8x8"},
         **dict.fromkeys(("v4-megacore", "v5p"), {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 64: "4x4x4"}),
         "7x": {8: "2x2x1", 16: "2x2x2", 64: "2x4x4"}}
ENOUGH = 0.9
PIECES = 3  # permutes of an exchange: 10 for three splits of a merged projection, 2 for a halo
FAMILIES = {"all-gather": "gather", "all-reduce": "sum", "reduce-scatter": "sum", "all-to-all": "exchange",
            "ragged-all-to-all": "exchange", "collective-broadcast": "exchange", "collective-permute": "permute"}


# ---- the model ----

def devices_of(program):
  return math.prod(program.mesh.values()) if program.mesh else 0


def programs_of(path, only, devices=None):
  spec = importlib.util.spec_from_file_location("programs", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return [p for p in module.PROGRAMS if only in p.name and devices_of(p) in (devices or GRIDS["v5e"])]


def launch(program):
  import jax
  import jax.numpy as jnp
  from jax.experimental import mesh_utils
  grid = mesh_utils.create_device_mesh(tuple(program.mesh.values()), devices=jax.devices(),
                                       allow_split_physical_axes=True)
  mesh = jax.sharding.Mesh(grid, tuple(program.mesh))
  function, given = program.build(mesh)

  def zeros(a):
    place = jax.sharding.NamedSharding(mesh, a.spec if a.spec is not None else jax.sharding.PartitionSpec())
    return jax.jit(lambda: jnp.zeros(a.shape, a.dtype), out_shardings=place)()

  arguments = jax.tree.map(zeros, given, is_leaf=lambda a: hasattr(a, "spec"))
  named = lambda *a: function(*a)
  named.__name__ = program.name
  jax.block_until_ready(jax.jit(named, donate_argnums=program.donate)(*arguments))


def worker(path, only, devices):
  for program in programs_of(path, only, [devices]):
    try:
      launch(program)
    except Exception as e:
      print(f"{program.name}: {type(e).__name__}: {e}"[:300], file=sys.stderr)


def executions_in(trace):
  """program -> {(kind, how): executions of device 0}"""
  from minipod.timeline import read_events
  events = read_events(trace)
  rows = {(e["pid"], e["tid"]): e["args"]["name"].split(",")[0] for e in events if e["name"] == "thread_name"}
  own, beside = ([e for e in events if e["ph"] == "X" and rows.get((e["pid"], e["tid"])) == row]
                 for row in ("device 0", "overlapped: device 0"))
  # A device's wait for an overlapped collective is on a separate row.
  collectives = [e for e in own if e["cat"] == "collective" and e["args"]["how"] == "sync"] + beside
  out = {}
  for event in (e for e in own if e["cat"] == "launch"):
    begin, end = event["ts"], event["ts"] + event["dur"]
    out[event["name"].removeprefix("jit_")] = collections.Counter(
        (e["args"]["collective"], e["args"]["how"]) for e in collectives if begin <= e["ts"] < end)
  return out


def modelled(chip, arguments, devices):
  with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "t.json")
    environment = os.environ | {"JAX_PLATFORMS": "minipod", "MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes",
                                "MINIPOD_TRACE": trace, "MINIPOD_TRACE_EVENTS": "10000000",
                                "MINIPOD_TOPOLOGY": f"{chip}:{GRIDS[chip][devices]} hbm:256GiB launch_latency:1ns"}
    command = [sys.executable, __file__, "--worker", str(devices), "--programs", arguments.programs, "--only", arguments.only]
    subprocess.run(command, env=environment, check=True)
    return executions_in(trace)


# ---- both sides in the same terms ----

def messages(kind, members):
  """The messages of a collective matmul over this many devices."""
  return members + 1 if members >= 8 else members - 1 if kind == "all_gather" else members


def words_of_model(counts, program):
  """{word: executions}, and the number of messages of a collective matmul."""
  members = max(program.mesh.values())
  out, rings = collections.Counter(), 0
  for (kind, how), count in counts.items():
    if how == "decomposed":
      out["rings"] += count * messages(kind, members)
      rings += count
    elif kind == "exchange" and how == "async":  # messages of pieces, which libtpu implements as permutes
      out["rings"] += count * PIECES
    else:
      out[f"{FAMILIES.get(kind.replace('_', '-'), 'exchange')} {how}"] += count
  return out


def words_of_record(collectives, has_permutes):
  out = collections.Counter()
  for opcode, how, *_, executions in collectives:
    family = FAMILIES.get(opcode, opcode)
    if family == "permute" and not has_permutes:
      out["rings"] += executions
    elif family == "permute":  # start and done are a pair, even if no operation is between them
      out["permute async"] += executions
    else:  # "fused" means one op with its consumer; with nothing in between, the device waits for it
      out[f"{family} {'async' if how == 'async' else 'sync'}"] += executions
  return out


def whole(words, program):
  """The same, with all messages of a collective matmul counted as one."""
  size = (messages("all_gather", max(program.mesh.values())) + messages("", max(program.mesh.values()))) / 2
  return {w: n / size if w == "rings" else n for w, n in words.items()}


def agreement(mine, theirs):
  total = sum(mine.values()), sum(theirs.values())
  if 0 in total:
    return float(total[0] == total[1])
  return sum(min(mine.get(w, 0) / total[0], theirs[w] / total[1]) for w in theirs)


def say(words):
  return ", ".join(f"{w} {n}" for w, n in sorted(words.items())) or "none"


def compare(chip, programs, mine, results):
  agreed = executions = 0
  print(f"{chip}: program, what agrees; the model's executions; libtpu's")
  for program in programs:
    if program.name not in mine:
      continue
    record = results.get(f"{program.name}@{chip}", {}).get("collectives")
    ours = words_of_model(mine[program.name], program)
    if record is None:
      print(f"  {program.name:26}        {say(ours)}")
      continue
    theirs = words_of_record(record, any(w.startswith("permute") for w in ours))
    one = agreement(whole(ours, program), whole(theirs, program))
    weight = sum(whole(theirs, program).values())
    agreed, executions = agreed + one * weight, executions + weight
    print(f"  {program.name:26} {one:6.0%} {say(ours)}\n{'':36}{say(theirs)}")
  if executions:
    print(f"  all                        {agreed / executions:6.0%} of {executions:.0f}\n")
  return not executions or agreed / executions >= ENOUGH


def read(path):
  with gzip.open(path, "rt") if path.endswith(".gz") else open(path) as f:
    return json.load(f)["results"]


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--programs", required=True)
  parser.add_argument("--record", action="append", default=[], help="may be given several times: the last one counts")
  parser.add_argument("--chips", default="v5e,v6e,v5p")
  parser.add_argument("--only", default="")
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.worker:
    worker(arguments.programs, arguments.only, arguments.worker)
    return
  results = {}
  for path in arguments.record:
    results.update({k: r for k, r in read(path).items() if "error" not in r})
  programs = programs_of(arguments.programs, arguments.only)
  good = []
  for chip in arguments.chips.split(","):
    mine = {}
    for devices in sorted({devices_of(p) for p in programs} & set(GRIDS[chip])):
      mine |= modelled(chip, arguments, devices)
    good.append(compare(chip, programs, mine, results))
  if arguments.check and not all(good):
    raise SystemExit(f"less than {ENOUGH:.0%} agree")


if __name__ == "__main__":
  main()
