#!/usr/bin/env python3
"""Measures the memory and seconds that simulating pods of growing size costs, if arrays have no values.

    .venv/bin/python tools/size/measure.py [--devices 8,256,2048,16384,65536] [--slices 199] [--json size.json]
        [--plot tools/size/size.png] [--processor]

Each row is a process of its own.  It starts JAX, makes the state of a transformer with 16 billion parameters (MaxText's
16B, with the step of tools/published/train_step.py), compiles a train step, launches it three times, and reads its
virtual time.  The devices are TPUs v5e, up to 256 in a slice, or with --torus those of a plain torus.  --slices adds a
row with this many slices of v5e:16x16.  The script prints a table in Markdown, and draws it.

A row has these parts: start (importing JAX, and the devices), state (the programs that make it), compile, first (the
first launch, until its loss and its virtual time are known), again (the last of the other two).  --processor counts
processor seconds of all threads, for a busy machine.

Memory is the peak of the process.  JAX's share of it, which grows with arrays times devices, is estimated from the size
of its objects for a buffer (`--jax-bytes`, found with heaptrack in jaxlib 0.10.2).
"""

import argparse
import json
import os
import pathlib
import sys

STEP = pathlib.Path(__file__).resolve().parents[1] / "published/train_step.py"
sys.path.insert(0, str(STEP.parent))

import chips

MODEL = {"emb": 4096, "heads": 64, "mlp": 28672, "layers": 32}
PER_DEVICE = 6  # sequences
PARTS = ["start", "state", "compile", "first", "again"]
COLOURS = {"start": "#bbbbbb", "state": "#66ccee", "compile": "#4477aa", "first": "#228833"}


# ---- one process ----

def run():
  """Runs in a process of its own: prints the seconds of each part, and the predicted step time."""
  import time
  clock = time.process_time if "--processor" in sys.argv else time.perf_counter
  start = time.perf_counter()
  begun = 0 if "--processor" in sys.argv else start
  marks = {}

  def mark(name):
    nonlocal begun
    now = clock()
    marks[name] = marks.get(name, 0) + now - begun
    begun = now

  import jax
  import minipod
  devices = jax.devices()
  mark("start")
  config = json.loads(sys.argv[2])
  sys.argv = [str(STEP), json.dumps(config)]
  import train_step as step
  state, *inputs = step.make_state()
  arrays = len(jax.tree.leaves((state, inputs)))
  mark("state")
  step.train_step.lower(state, *inputs).compile()
  mark("compile")
  seconds = []
  for part in ("first", "again", "again"):
    marks.pop("again", None)
    virtual = minipod.virtual_time()
    state, value = step.train_step(state, *inputs)
    value.block_until_ready()
    seconds.append(minipod.virtual_time() - virtual)
    mark(part)
  status = pathlib.Path("/proc/self/status").read_text()
  peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
  print(json.dumps({"devices": len(devices), "arrays": arrays, "step": seconds[0], "MiB": peak / 1024,
                    "wall": time.perf_counter() - start, **marks}),
        flush=True)
  os._exit(0)  # the end is not measured


def pod_of(devices, is_torus):
  """(topology, axis of data): slices have at most 256 chips, and each slice has a copy of the weights."""
  rows = 1
  while rows * rows < min(devices, 256 if not is_torus else devices):
    rows *= 2
  data = max(1, devices // 256)
  if is_torus:
    return f"torus:{rows}x{devices // rows} hbm:16GiB", data
  columns = min(devices, 256) // rows
  return f"v5e:{min(rows, columns)}x{max(rows, columns)}" + (f" slices:{data}" if data > 1 else ""), data


def measure(devices, topology, data, options):
  config = {**MODEL, "batch": PER_DEVICE * devices, "data": data}
  if devices < 64:  # 16 billion parameters need at least this many devices
    config |= {"emb": 1024, "heads": 16, "mlp": 4096}
  return {"topology": topology, **json.loads(chips.run_on(topology, __file__, "--run", json.dumps(config), *options).splitlines()[-1])}


# ---- what it shows ----

def table(rows, jax_bytes):
  lines = ["| pod | devices | MiB | of this, JAX's buffers | KiB per device | " + " | ".join(f"{p}, s" for p in PARTS) +
           " | total without again, s | predicted step, s |", "|---|" + "---|" * (len(PARTS) + 6)]
  least = min(row["MiB"] for row in rows)
  for row in rows:
    buffers = 2 * row["arrays"] * row["devices"] * jax_bytes / 2 ** 20  # both the arguments and the results of a step
    each = (row["MiB"] - least) * 1024 / row["devices"]
    parts = " | ".join(f"{row[p]:.2f}" for p in PARTS)
    whole = sum(row[p] for p in PARTS if p != "again")
    lines.append(f"| `{row['topology']}` | {row['devices']:,} | {row['MiB']:,.0f} | {buffers:,.0f} | "
                 f"{'' if row['MiB'] == least else f'{each:.0f}'} | {parts} | {whole:.1f} | {row['step']:.3f} |")
  return "\n".join(lines)


def draw(rows, is_processor, file):
  """Writes the picture: bars of memory, and of seconds with their parts."""
  from matplotlib.figure import Figure

  picture = Figure(figsize=(10, 4.2), layout="constrained")
  pods = [f"{row['devices']:,}" for row in rows]
  titles = ("memory of the process, GiB",
            f"seconds{' of the processor' * is_processor}, from Python's start to the first step's end")
  for axes, title, parts in zip(picture.subplots(1, 2), titles, ({"MiB": "#aa3377"}, COLOURS)):
    bottom = [0.0] * len(rows)
    for part, colour in parts.items():
      amounts = [row[part] / 1024 if part == "MiB" else row[part] for row in rows]
      drawn = axes.bar(range(len(rows)), amounts, bottom=bottom, color=colour, label=part)
      bottom = [below + amount for below, amount in zip(bottom, amounts)]
    axes.bar_label(drawn, labels=[f"{whole:,.1f}" for whole in bottom], fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.set_xticks(range(len(rows)), pods, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
  axes.legend(fontsize=8)
  picture.supxlabel("devices of a pod, a train step of 16 billion parameters", fontsize=9)
  picture.savefig(file)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--devices", default="8,256,2048,16384,65536")
  parser.add_argument("--torus", action="store_true")
  parser.add_argument("--slices", type=int, action="append", default=[])
  parser.add_argument("--json", type=pathlib.Path)
  parser.add_argument("--plot", type=pathlib.Path)
  parser.add_argument("--processor", action="store_true")
  parser.add_argument("--jax-bytes", type=int, default=620)
  options = parser.parse_args()
  pods = [(n, *pod_of(n, options.torus)) for n in map(int, options.devices.split(",")) if n > 0]
  pods += [(256 * n, f"v5e:16x16 slices:{n}", n) for n in options.slices]
  rows = []
  for devices, topology, data in sorted(pods):
    rows.append(measure(devices, topology, data, ["--processor"] * options.processor))
    print(rows[-1], file=sys.stderr, flush=True)
  if options.json:
    options.json.write_text(json.dumps(rows, indent=1) + "\n")
  if options.plot:
    draw(rows, options.processor, options.plot)
  print(table(rows, options.jax_bytes))


if __name__ == "__main__":
  run() if sys.argv[1:2] == ["--run"] else main()
