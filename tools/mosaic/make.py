"""Lowers the kernels of the corpus for a TPU, without one, and stores programs, arguments and expected results.

    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=4 \\
        python tools/mosaic/make.py FOLDER [--package features] [--only name]
"""

import argparse
import collections
import pathlib
import time
import traceback

import case


def make(found: case.Case, folder: pathlib.Path, again: bool) -> str:
  """Stores a case; returns a line about it, which begins with "made", "kept", "refused" or "unknown"."""
  if (folder / "case.json").exists() and not again:
    return "kept"
  started = time.time()
  try:
    function, args, _ = case.build(found)
    exported = case.lower(function, args)
  except Exception as error:  # what JAX refuses to lower is listed, too
    if not isinstance(error, (NotImplementedError, ValueError)):
      traceback.print_exc(limit=-3)
    return f"refused by JAX: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
  try:
    expected, way = case.expect(found)
  except NotImplementedError as error:
    return f"unknown results: {error}"
  case.save(folder, found, exported, args, expected, way)
  return f"made by {way} in {time.time() - started:.1f} s"


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--package", action="append", help="a module of kernels/; may be repeated")
  parser.add_argument("--only", default="", help="a part of the names")
  parser.add_argument("--again", action="store_true", help="also make the cases that the folder has")
  options = parser.parse_args()
  counts = collections.Counter()
  for found in case.find_cases(options.package or case.find_packages(), options.only):
    line = make(found, options.folder / found.package / found.name, options.again)
    print(f"{found.package}/{found.name}: {line}", flush=True)
    counts[found.package, line.split()[0]] += 1
  for (package, what), count in sorted(counts.items()):
    print(f"{package:24} {what:8} {count}")


if __name__ == "__main__":
  main()
