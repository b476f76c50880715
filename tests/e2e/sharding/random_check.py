"""Compares random programs of every op, sharded in every way, with the same programs unsharded.

A program is StableHLO text made from a seed (random_ops.py).  It runs twice on minipod: on one device, and on up to 16
devices with random shardings of parameters, intermediate values (these may be uneven) and results.  Each device must
hold its part of the result of the one device.

Run as a script, with MINIPOD_DEVICES=16: random_check.py CASES FIRST_SEED [OPS, a regular expression].  It prints how
often each row of the op table was reached and how often each kind of dimension was sharded.  It fails if a row was
never reached, or, with many cases, if a kind never was.
"""

import collections
import sys

import jax
import numpy as np
from jax._src import sharding_impls
from jax._src.lib import xla_client as xc
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from random_ops import KINDS, expected_rows, random_program


def options(devices, is_open):
  made = xc.CompileOptions()
  made.num_replicas, made.num_partitions = 1, len(devices)
  build = made.executable_build_options
  build.num_replicas, build.num_partitions = 1, len(devices)
  build.use_spmd_partitioning = build.use_shardy_partitioner = True
  build.allow_spmd_sharding_propagation_to_output = is_open
  made.device_assignment = xc.DeviceAssignment.create(np.array([[d.id for d in devices]]))
  return made


def execute(client, text, devices, is_open, args):
  devices = tuple(devices)
  program = client.compile_and_load(text, xc.DeviceList(devices), options(devices, is_open))
  results = program.execute_sharded(args)
  return program, results.disassemble_into_single_device_arrays()


def place(data, mesh, spec):
  axes = [tuple(a) if len(a) > 1 else a[0] if a else None for a in spec or []]
  return jax.device_put(data, NamedSharding(mesh, P(*axes)))


def close(left, right, exact):
  left, right = np.asarray(left), np.asarray(right)
  if exact or left.dtype.kind in "biu":
    return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
  return np.allclose(left, right, rtol=2e-5, atol=2e-5, equal_nan=True)


def check(seed, devices, only=""):
  """Runs the program of a seed both ways; returns the program, for its counts."""
  p, results = random_program(seed, only)
  pairs = [(value, spec) for value, spec, _ in results]
  number = int(np.prod(list(p.axes.values())))
  mesh = Mesh(np.array(devices[:number]).reshape(tuple(p.axes.values())), tuple(p.axes))
  client = devices[0].client
  plain, cut = p.text(pairs, parts=False), p.text(pairs, parts=True)
  try:
    wanted = [v[0] for v in execute(client, plain, devices[:1], [False] * len(pairs),
                                    [jax.device_put(data, devices[0]) for _, data, _ in p.params])[1]]
    program, found = execute(client, cut, devices[:number], [is_open for *_, is_open in results],
                             [place(data, mesh, spec) for _, data, spec in p.params])
    shardings = program.get_output_shardings()
    for i, (value, spec, _) in enumerate(results):
      whole = np.asarray(wanted[i])
      sharding = sharding_impls.GSPMDSharding(tuple(devices[:number]), shardings[i])
      if spec is not None:
        axes = [tuple(a) if len(a) > 1 else a[0] if a else None for a in spec]
        asked = NamedSharding(mesh, P(*axes))
        assert asked.is_equivalent_to(sharding, len(value.shape)), f"result {i} lies as {sharding}"
      where = sharding.devices_indices_map(value.shape)
      for part in found[i]:
        device = next(iter(part.devices()))
        own = whole[where[device]]
        assert part.shape == own.shape, f"result {i} on {device}: {part.shape}, not {own.shape}"
        assert close(part, own, p.exact), (
            f"result {i} ({value.name}) on {device}:\n{np.asarray(part)}\nwanted\n{own}")
  except Exception as error:
    raise AssertionError(f"seed {seed}\n{cut}\n{str(error)[:2000]}") from error
  return p


def run(cases, first, only=""):
  """Prints the failures; returns their number, and how often each row and kind was reached."""
  jax.config.update("jax_enable_x64", True)
  devices = jax.devices("minipod")
  rows, kinds, failed = collections.Counter(), collections.Counter(), 0
  for seed in range(first, first + cases):
    try:
      p = check(seed, devices, only)
    except AssertionError as error:
      failed += 1
      print(error, flush=True)
      continue
    rows += p.rows
    kinds += p.kinds
  return failed, rows, kinds


def report(rows, kinds, all_kinds):
  """Prints the counts; returns the rows and kinds that were never reached."""
  print("rows of the op table:", ", ".join(f"{n} {c}" for n, c in sorted(rows.items())))
  print("dimensions that were cut:", ", ".join(f"{n} {c}" for n, c in sorted(kinds.items())))
  missing = expected_rows() - set(rows)
  if all_kinds:
    missing |= {k.strip() for k in KINDS.replace("\n", "").split(";")} - set(kinds)
  return sorted(missing)


def main(cases, first, only=""):
  failed, rows, kinds = run(cases, first, only)
  print(f"{cases} programs from seed {first}, {failed} failed")
  missing = [] if only else report(rows, kinds, cases >= 2000)
  if missing:
    print("never reached:", ", ".join(missing))
  return 1 if failed or missing else 0


if __name__ == "__main__":
  sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
