"""Records the corpus in tests/fixtures/mosaic_price: kernels, and the cycles of libtpu's final bundles.

    oracle/bin/python tools/mosaic/price/record.py [--chips v5e,v6e,7x] [--only WORD] [--again]

Requires no chip: see tools/chip/README.md.  Records what is missing.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CHIP_TOOLS = pathlib.Path(__file__).resolve().parents[2] / "chip"
sys.path.insert(0, str(CHIP_TOOLS))
os.environ["JAX_PLATFORMS"] = "cpu"

import bundles
import corpus
import tpu

FOLDER = corpus.FOLDER.parent / "mosaic_price"
CHIPS = ("v5e", "v6e", "7x")
KINDS = {"v5e": "TPU v5 lite", "v6e": "TPU v6 lite", "7x": "TPU7x"}  # as JAX names them
CALL = re.compile(r'^\s+(?:ROOT )?%?([\w.\-]+) = .* custom-call\(.*custom_call_target="tpu_custom_call"', re.M)
SIZE = re.compile(r'"used_scoped_memory_configs":\[\{"memory_space":"1","offset":"\d+","size":"(\d+)"')


# ---- the process that compiles: libtpu ends it on some programs ----

def lower(name, chip, device):
  import jax
  from jax._src.pallas.mosaic import tpu_info
  from jax.sharding import SingleDeviceSharding
  import kernels
  tpu_info.get_device_kind, tpu_info.get_num_device_cores = (lambda: KINDS[chip]), (lambda: 1)
  jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
  function, given = kernels.KERNELS[name]
  place = SingleDeviceSharding(device)
  given = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place) for a in given]
  return jax.jit(lambda *a: function(*a)).trace(*given).lower(lowering_platforms=("tpu",))


def count(folder, text, chip):
  """Sums over the kernels of a program."""
  counter, row = bundles.Counter(folder, text, chip), {}
  for name in CALL.findall(text):
    found = counter.kernel(name)
    row["kernels"] = row.get("kernels", 0) + 1
    for key, value in (("bundles", found.cycles), ("low", found.short), ("issue", found.issued), ("waits", found.waits),
                       ("unsure", found.unsure)):
      row[key] = row.get(key, 0) + value
  sizes = [int(size) for size in SIZE.findall(text)]
  return row | ({"vmem": max(sizes)} if sizes else {})


def work(chip, names, folder):
  tpu.prepare(bundles.flags(folder))
  device = tpu.devices(chip, False)[0]
  for name in names:
    print(json.dumps({"begin": name}), flush=True)
    out = {"name": name}
    try:
      lowered = lower(name, chip, device)
      out["program"] = lowered.as_text()
      out["row"] = count(folder, tpu.compile(lowered, chip)[0], chip)
    except Exception as problem:  # JAX or libtpu refuses the kernel on this chip
      out["error"] = f"{type(problem).__name__}: {problem}"[:200]
    for path in folder.iterdir():
      path.unlink()
    print(json.dumps(out), flush=True)


# ---- the process that records ----

def results(chip, names):
  """What the compiling process prints of each kernel; a new one takes over if it dies."""
  names = list(names)
  while names:
    with tempfile.TemporaryDirectory(prefix="bundles_") as folder:
      command = [sys.executable, __file__, "--work", folder, "--chips", chip]
      process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
      process.stdin.write("\n".join(names))
      process.stdin.close()
      for line in process.stdout:
        said = json.loads(line) if line.startswith("{") else {}
        if "begin" in said:
          names.remove(said["begin"])
        elif said:
          yield said
      if process.wait() and not names:
        return


def record(args, chip):
  import kernels
  of, rows = corpus.read_rows(chip, FOLDER)
  programs = corpus.read_programs(chip, FOLDER)
  wanted = [name for name in kernels.KERNELS if args.only in name and (
      args.again or "bundles" not in rows.get(name, {}))]
  for result in results(chip, wanted):
    name = result["name"]
    print(chip, name, result.get("row") or result.get("error"), flush=True)
    rows[name] = result.get("row") or {"error": result["error"].split(":")[0]}
    if "program" in result:
      programs[name] = result["program"]
    rows = {name: row for name, row in rows.items() if name in kernels.KERNELS}
    corpus.write_rows(chip, {"chip": chip, **versions(), "clock": tpu.CHIPS[chip].clock}, rows, FOLDER)
  corpus.write_programs(chip, {name: text for name, text in programs.items() if "bundles" in rows.get(name, {})},
                        folder=FOLDER)


def versions():
  return {package: importlib.metadata.version(package) for package in ("jax", "libtpu")}


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--chips", default=",".join(CHIPS))
  parser.add_argument("--only", default="")
  parser.add_argument("--again", action="store_true")
  parser.add_argument("--work", help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.work:
    return work(args.chips, sys.stdin.read().split(), pathlib.Path(args.work))
  for chip in args.chips.split(","):
    record(args, chip)


if __name__ == "__main__":
  main()
