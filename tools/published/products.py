"""Compares modelled times of matmuls on GPUs with measured ones.

    .venv/bin/python tools/published/products.py TABLES.json [--chips h100,b200] [--worst 10]

TABLES.json has the tables of XLA's GPU compiler (xla/service/gpu/model): {"sm_90": {"products": [[type, batch, m, n, k,
FLOP/s], ...]}, ...}, with types such as "bf16xbf16->bf16".  The tables are not kept in this repository.

The compared time is the kernel's, without a launch.  The tables have the median over all kernels of a run
(xla/tools/matmul_perf_table_gen.cc).  If a run has two kernels, this is their mean, so the script compares twice the
table's time with the sum of both.  On an H100, a second kernel transposes the second operand of a matmul in f8, or adds
the parts of a matmul in f32 whose dimension k is divided; there times fall as k doubles.

Prints a line of errors for each chip and type (modelled / measured), and the worst rows.
"""

import argparse
import json
import math
import sys

import chips

CHIPS = {"h100": "sm_90", "b200": "sm_100_B200"}


def worker():
  """Prints the modelled seconds of each row that it reads; the environment describes the pod."""
  import jax
  import jax.numpy as jnp
  names = {"bf16": "bfloat16", "f32": "float32", "f16": "float16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
  for kind, batch, m, n, k in json.load(sys.stdin):
    (lhs, rhs), out = kind.split("->")[0].split("x"), kind.split("->")[1]
    lhs, rhs, out = (jnp.dtype(names[name]) for name in (lhs, rhs, out))
    lead = (batch,) if batch > 1 else ()
    x, y = (jax.ShapeDtypeStruct(lead + shape, dtype) for shape, dtype in (((m, k), lhs), ((k, n), rhs)))
    product = jax.jit(lambda x, y: jnp.matmul(x, y, preferred_element_type=out)).lower(x, y).compile()
    print(product.cost_analysis()["optimal_seconds"], flush=True)


def modelled(chip, rows):
  return [float(line) for line in chips.run_on(f"{chip}:1 launch_latency:1ns", __file__, "--worker", input=json.dumps(rows)).split()]


def kernels_of(chip, rows):
  """The number of kernels per run, for each row."""
  table, counts = {tuple(row[:5]): 2 * row[1] * row[2] * row[3] * row[4] / row[5] for row in rows}, {}
  for kind, batch, m, n, k in sorted(table):
    now, before = table[kind, batch, m, n, k], table.get((kind, batch, m, n, k // 2), math.inf)
    goes_on = counts.get((kind, batch, m, n, k // 2)) == 2 and now < 1.75 * before
    falls = before < math.inf and (now < before or goes_on)
    is_pair = chip == "h100" and (kind.startswith("f8") or kind.startswith("f32") and falls)
    counts[kind, batch, m, n, k] = 2 if is_pair else 1
  return [counts[tuple(row[:5])] for row in rows]


def quantile(values, share):
  return sorted(values)[round(share * (len(values) - 1))]


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("tables", nargs="?")
  parser.add_argument("--chips", default=",".join(CHIPS))
  parser.add_argument("--worst", type=int, default=0)
  parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.worker:
    worker()
    return
  with open(args.tables) as file:
    tables = json.load(file)
  for chip in args.chips.split(","):
    rows = tables[CHIPS[chip]]["products"]
    times = modelled(chip, [row[:5] for row in rows])
    kernels = kernels_of(chip, rows)
    # The shortest kernel of the tables takes 5 us.  A kernel that transposes an operand also does, for which the model
    # has 1.25 us in addition to its bytes.
    times = [t + 3.75e-6 * (count == 2 and row[0].startswith("f8")) for t, count, row in zip(times, kernels, rows)]
    ratios = [t / count * row[5] / (2 * row[1] * row[2] * row[3] * row[4]) for t, count, row in zip(times, kernels, rows)]
    for kind in [*dict.fromkeys(row[0] for row in rows), "all"]:
      mine = [r for r, row in zip(ratios, rows) if kind in (row[0], "all")]
      near = sum(1 / 1.2 < r < 1.2 for r in mine) / len(mine)
      print(f"{chip} {kind:26} {len(mine):5} median {quantile(mine, .5):.2f} p10 {quantile(mine, .1):.2f} "
            f"p90 {quantile(mine, .9):.2f} within 1.2 times {near:.0%}")
    for ratio, row in sorted(zip(ratios, rows), key=lambda x: -max(x[0], 1 / x[0]))[:args.worst]:
      print(f"  {ratio:.2f} {row[:5]}")


if __name__ == "__main__":
  main()
