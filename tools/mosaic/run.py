"""Runs the stored programs of the corpus on minipod, and compares the results with the expected ones.

    MINIPOD_TOPOLOGY=v6e:2x2 python tools/mosaic/run.py FOLDER [--only name] [--verbose]

Prints counts by package, then what was refused and why.
"""

import argparse
import collections
import pathlib
import re
import time

import case
import jax
from jax._src.pallas.mosaic import error_handling
import numpy as np


def run(folder: pathlib.Path):
  """("right" | "wrong" | "refused" | "failed", details)"""
  described, exported, args, expected = case.load(folder)
  if exported.nr_devices > len(jax.devices()):
    return "refused", f"needs {exported.nr_devices} devices"
  started = time.time()
  try:
    found = [np.asarray(value) for value in _call(exported, args)]
  except (jax.errors.JaxRuntimeError, error_handling.MosaicError) as error:
    said = " ".join(str(error).split())
    return ("refused" if said.startswith(("UNIMPLEMENTED", "INVALID_ARGUMENT")) else "failed"), said
  seconds = time.time() - started
  said = [text for i, pair in enumerate(zip(found, expected)) if (text := _compare(i, *pair, described["tolerance"]))]
  return ("wrong", "; ".join(said)) if said else ("right", f"{seconds:.2f} s")


def _call(exported, args):
  tree = jax.tree.unflatten(exported.in_tree, args)
  call = lambda *args, **kwargs: jax.tree.leaves(exported.call(*args, **kwargs))
  if exported.nr_devices == 1:
    return jax.jit(call)(*tree[0], **tree[1])
  mesh = jax.sharding.Mesh(np.array(jax.devices()[:exported.nr_devices]), ("d",))
  shardings = [s or jax.NamedSharding(mesh, jax.P()) for s in exported.in_shardings_jax(mesh)]
  args = [jax.device_put(arg, sharding) for arg, sharding in zip(args, shardings)]
  tree = jax.tree.unflatten(exported.in_tree, args)
  return jax.jit(call)(*tree[0], **tree[1])


def _compare(number, found, expected, tolerance) -> str:
  """Describes a difference; "" if there is none.  Elements that the interpreter leaves undefined are NaN."""
  if (found.shape, found.dtype) != (expected.shape, expected.dtype):
    return f"result {number} is {found.dtype}{found.shape}, not {expected.dtype}{expected.shape}"
  wide = np.complex128 if expected.dtype.kind == "c" else np.float64
  one, other = found.astype(wide), expected.astype(wide)
  scale = max(np.max(np.abs(other), initial=0, where=np.isfinite(other)), 1e-30)
  is_same = (one == other) | (np.abs(one - other) <= tolerance * scale) | np.isnan(other)
  if is_same.all():
    return ""
  where = np.unravel_index(np.argmin(is_same), is_same.shape)
  return (f"result {number}: {(~is_same).sum()} of {is_same.size} elements differ; at {tuple(map(int, where))}"
          f" {one[where]}, expected {other[where]}")


def _shorten(text: str) -> str:
  """The reason of a refusal, without the numbers and places of this kernel."""
  return re.sub(r"\d+", "N", re.sub(r"\[[^\]]*:\d+.*", "", text))[:120]


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--only", default="", help="a part of package/name")
  parser.add_argument("--verbose", action="store_true", help="also list the right ones")
  options = parser.parse_args()
  counts, reasons = collections.defaultdict(collections.Counter), collections.defaultdict(list)
  for path in sorted(options.folder.glob("*/*/case.json")):
    name = f"{path.parent.parent.name}/{path.parent.name}"
    if options.only not in name:
      continue
    what, said = run(path.parent)
    counts[path.parent.parent.name][what] += 1
    if what != "right":
      reasons[_shorten(said)].append(name)
    if what != "right" or options.verbose:
      print(f"{what:8} {name}: {said[:400]}", flush=True)
  print()
  for package, found in counts.items():
    print(f"{package:24} " + ", ".join(f"{found[what]} {what}" for what in ("right", "wrong", "refused", "failed")))
  for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
    print(f"{len(names):4} {reason}: {', '.join(names[:4])}{' ...' if len(names) > 4 else ''}")


if __name__ == "__main__":
  main()
