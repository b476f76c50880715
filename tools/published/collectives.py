"""Compares modelled times of collectives with published curves and with measured tables.

    .venv/bin/python tools/published/collectives.py [--build build] [--measured FILE.json] [--check]

Published curves and single numbers are in this script, with their sources.  FILE.json has tables of measured
collectives from XLA's GPU compiler: {"sm_90": {"collectives": [[opcode, type, elements of the result, groups, devices
of a group or pairs, bytes/s], ...]}, "sm_100_B200": ...}.  In these tables the bytes are those of the whole array (for
a reduce-scatter, of the operand).  An all-reduce copies its operand first, which the model counts as work of the
program, so this script adds the copy.

--check fails if the median, or the share of rows within a factor of 1.2, leaves the range that is recorded here.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MB = 1e6

# Name, pod, collective, [(bytes of the longest array, seconds)], source.
CURVES = [
    # Two concurrent groups of four, with one core of each chip in each group: modelled as one group of chips with twice
    # the bytes.  The published GB/s are what a chip receives: 6 of a group's 8 parts.
    ("7x, all_gather", "7x:2x2x1 cores_per_chip:1", "all_gather",
     [(2 * out, 1.5 * out / (rate * 1e9)) for out, rate in [
         (2**20, 71.77), (2**22, 129.19), (2**24, 161.90), (2**26, 174.77), (2**28, 178.77)]],
     "AI-Hypercomputer/accelerator-microbenchmarks, Ironwood/guides/collectives/all_gather.md"),
    ("v5e, all_gather over 4", "mesh:4 chip:v5e links.latency:1us links.bandwidth:50GB/s", "all_gather",
     [(131072, 8e-6), (2048 * 8192 * 2, 680e-6)], "jax-ml/scaling-book, sharding.md"),
    ("v5e, all_gather on a ring of 16, 0.95 of 45 GB/s each way", "ring:16 chip:v5e links.bandwidth:50GB/s",
     "all_gather", [(100 * MB, 15 / 16 * 100 * MB / (2 * 0.95 * 45e9))], "jax-ml/scaling-book, sharding.md"),
    ("v6e, all_reduce on 16x16", "v6e:16x16", "all_reduce", [(606076928, 2 * 255 / 256 * 606076928 / 235.76e9)],
     "AI-Hypercomputer/tpu-recipes, microbenchmarks/trillium/collectives"),
    ("h100, all_gather", "h100:8", "all_gather", [(537 * MB, 1500e-6)], "jax-ml/scaling-book, gpus.md"),
    ("h100, all_to_all on 4", "h100:4", "all_to_all", [(524 * MB, 0.75 * 524 * MB / 335e9)], "NVIDIA/nccl issue 2169"),
    ("h100, all_reduce by rings", "h100:8", "all_reduce:ring", [(4 << 30, 1.75 * (4 << 30) / 370e9)],
     "NVIDIA/nccl issue 1455"),
    ("h100, all_reduce", "h100:8", "all_reduce", [(8 << 30, 1.75 * (8 << 30) / 480e9)], "NVIDIA/nccl-tests issue 212"),
    ("a100, all_reduce", "a100:8", "all_reduce", [(8 << 30, 1.75 * (8 << 30) / 230e9)], "NVIDIA/nccl-tests issue 149"),
]

# Pod and memory bandwidth, in bytes/s, of the chips that have tables.
TABLES = {"sm_90": ("h100", 3350e9), "sm_100_B200": ("b200", 7700e9)}
KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
         "all-to-all": "all_to_all"}
STREAM = 0.9  # the share of the memory bandwidth that a copy reaches
# Of each table on 2 and 8 GPUs: the range of the median, and the least share of rows within 1.2 times. No curve that only
# rises has more than 0.80 (H100) and 0.85 (B200) of them: the tables have single runs in them.
MEDIAN, WITHIN = (0.95, 1.05), 0.7


def modelled(build, pod, collective, size):
  kind, _, algorithm = collective.partition(":")
  command = [build / "minipod-network", pod, kind, str(int(size))] + ([algorithm] if algorithm else [])
  row = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0 if algorithm else 1]
  return float(row.split()[1]) * 1e-6


def read_table(path, name):
  """{(kind, devices): {bytes: seconds}}, without the smallest sizes: they include the first run of each group."""
  rows = collections.defaultdict(dict)
  for kind, _, elements, _, devices, rate in json.loads(path.read_text())[name]["collectives"]:
    if kind in KINDS:
      size = 4 * elements * (devices if kind == "reduce-scatter" else 1)
      rows[KINDS[kind], devices][size] = size / rate
  return {key: dict(list(sorted(sizes.items()))[1:]) for key, sizes in rows.items()}


def score(ratios):
  within = lambda factor: sum(1 / factor <= r <= factor for r in ratios) / len(ratios)
  tenths = statistics.quantiles(ratios, n=10)
  return (f"{len(ratios)} | {statistics.median(ratios):.2f} | {tenths[0]:.2f}-{tenths[-1]:.2f} | "
          f"{100 * within(1.1):.0f} % | {100 * within(1.2):.0f} % |"), within(1.2)


def print_curves(build):
  print("| collective | bytes | public, us | modelled, us | ratio | source |\n|---|---|---|---|---|---|")
  errors = []
  for name, pod, collective, points, source in CURVES:
    for size, seconds in points:
      ours = modelled(build, pod, collective, size)
      errors.append(abs(ours / seconds - 1))
      print(f"| {name} | {size / MB:.4g} MB | {seconds * 1e6:.1f} | {ours * 1e6:.1f} | {ours / seconds:.2f} | {source} |")
  print(f"\nMean error {100 * statistics.mean(errors):.0f} %, largest {100 * max(errors):.0f} %.\n")


def print_table(build, path, name):
  """Whether the model agrees with the table on 2 and 8 GPUs."""
  chip, memory = TABLES[name]
  every = []
  print(f"| {chip}, measured | rows | median | p10-p90 | within 1.1 | within 1.2 |\n|---|---|---|---|---|---|")
  for (kind, devices), sizes in sorted(read_table(path, name).items()):
    copy = {size: 2 * size / (STREAM * memory) if kind == "all_reduce" else 0 for size in sizes}
    ratios = {size: (modelled(build, f"{chip}:{devices}", kind, size) + copy[size]) / seconds
              for size, seconds in sizes.items()}
    print(f"| {kind} on {devices} | {score(list(ratios.values()))[0]}")
    large = [ratio for size, ratio in ratios.items() if size >= 1 << 20]
    print(f"| {kind} on {devices}, from 1 MiB | {score(large)[0]}", flush=True)
    every += list(ratios.values()) if devices != 4 else []
  text, within = score(every)
  print(f"| all on 2 and 8 | {text}\n")
  return MEDIAN[0] <= statistics.median(every) <= MEDIAN[1] and within >= WITHIN


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
  parser.add_argument("--measured", type=pathlib.Path)
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args()
  print_curves(arguments.build)
  missed = []
  for name in TABLES if arguments.measured else []:
    if not print_table(arguments.build, arguments.measured, name):
      missed.append(name)
  if arguments.check and missed:
    raise SystemExit(f"outside of the recorded range: {', '.join(missed)}")


if __name__ == "__main__":
  main()
