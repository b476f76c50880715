#!/usr/bin/env python3
"""Runs dumped programs on minipod and on JAX's CPU backend with the same random arguments, and compares.

    MINIPOD_DUMP=DUMP MINIPOD_TOPOLOGY=v6e:1x1 python train.py
    JAX_PLATFORMS=cpu,minipod tools/torch_tpu/programs.py DUMP…

It answers whether a wrong value of a PyTorch program comes from minipod or from the program.  Equal programs run once.
Integers are 0 to 3, so that they are good indices; floats and complex numbers are normally distributed, or their
absolute values.  The programs run in a process of their own, because XLA aborts on some of them; the next process goes
on after that program.  Prints programs that differ, that only one of both refuses, and the counts.

Results that the specification leaves open differ without an error: the order of equal keys in an unstable sort, the
signs of singular vectors, and random bits of the default algorithm.
"""

import argparse
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import sys

_LIMIT = 2e-5  # relative to the largest value; of narrow types a multiple of their precision
_DTYPES = {"i1": "bool", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "i8": "int8", "i16": "int16",
           "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64",
           "complex<f32>": "complex64", "complex<f64>": "complex128"}


# ---- one program ----

def _types(program):
  """The name of a module, and (shape, dtype) of its arguments."""
  from jax._src.interpreters import mlir
  from jaxlib.mlir.dialects import stablehlo
  with mlir.make_ir_context() as context:
    module = stablehlo.deserialize_portable_artifact(context, program)
    main = next(op for op in module.body.operations if op.name.value == "main")
    types = [str(each) for each in main.type.inputs]
    name = str(module.operation.attributes["sym_name"]).strip('"') if "sym_name" in module.operation.attributes else ""
  found = []
  for each in types:
    dims, kind = re.fullmatch(r"tensor<((?:\d+x)*)(.+)>", each).groups()
    found.append(([int(size) for size in dims.split("x")[:-1]], _DTYPES[kind]))
  return name, found


def _argument(shape, kind, random):
  import jax.numpy as jnp
  import numpy as np
  dtype = jnp.dtype(kind)
  if dtype == bool:
    return random.integers(0, 2, shape).astype(bool)
  if dtype.kind in "iu":
    return random.integers(0, 4, shape).astype(dtype)
  values = random.normal(size=shape)
  if dtype.kind == "c":
    values = values + 1j * random.normal(size=shape)
  return (np.abs(values) if random.integers(3) == 0 else values).astype(dtype)


def _run(device, program, arguments):
  """The results, or the message of an error."""
  import jax
  from jax._src.lib import xla_client
  import numpy as np
  try:
    executable = device.client.compile_and_load(program, xla_client.DeviceList((device,)), xla_client.CompileOptions())
    outputs = executable.execute_sharded([jax.device_put(each, device) for each in arguments])
    return [np.asarray(each[0]) for each in outputs.disassemble_into_single_device_arrays()]
  except Exception as error:  # of either backend
    return " ".join(str(error).split())[:300]


def _difference(a, b):
  import jax.numpy as jnp
  import numpy as np
  if a.shape != b.shape or a.dtype != b.dtype:
    return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
  if a.dtype.kind in "iub":
    return None if np.array_equal(a, b) else f"{np.sum(a != b)} of {a.size} values"
  limit = max(_LIMIT if a.dtype.itemsize > 2 else 0, 16 * float(jnp.finfo(a.dtype).eps))
  a, b = (each.astype(complex if each.dtype.kind == "c" else float) for each in (a, b))
  largest = float(np.max(np.abs(a[np.isfinite(a)]), initial=1.0))
  if np.allclose(a, b, rtol=limit, atol=limit * largest, equal_nan=True):
    return None
  return f"off by {np.nanmax(np.abs(a - b)):.3g} of {largest:.3g}"


def _judge(program, devices):
  """What became of a program, and details."""
  import numpy as np
  try:
    name, types = _types(program)
  except (KeyError, ValueError) as error:
    return "not read", str(error)
  random = np.random.default_rng(len(program))
  arguments = [_argument(shape, kind, random) for shape, kind in types]
  theirs, ours = (_run(device, program, arguments) for device in devices)
  if isinstance(theirs, str):
    return ("refused by both", theirs) if isinstance(ours, str) else ("refused by XLA", theirs)
  if isinstance(ours, str):
    return "refused", f"{name}: {ours}"
  found = [what for a, b in zip(theirs, ours) if (what := _difference(a, b))]
  return ("differs", f"{name}: {', '.join(found[:3])}") if found else ("same", "")


# ---- all programs ----

def _work(paths):
  import jax
  jax.config.update("jax_enable_x64", True)
  devices = jax.devices("cpu")[0], jax.devices("minipod")[0]
  for path in paths:
    print(json.dumps({"begins": str(path)}), flush=True)
    outcome, why = _judge(pathlib.Path(path).read_bytes(), devices)
    print(json.dumps({"path": str(path), "outcome": outcome, "why": why}), flush=True)


def _rows(paths):
  """The rows of all programs; a program with which the process ends has a row, and the next process goes on after it."""
  while paths:
    process = subprocess.Popen([sys.executable, __file__, "--work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    process.stdin.write("\n".join(map(str, paths)))
    process.stdin.close()
    running, count = None, 0
    for line in process.stdout:
      row = json.loads(line)
      if "begins" in row:
        running, count = row["begins"], count + 1
      else:
        running = None
        yield row
    status = process.wait()
    if running is None and status != 0:
      raise SystemExit(f"the process that runs programs has ended with exit status {status}")
    if running is not None:
      yield {"path": running, "outcome": "ended the process", "why": f"exit status {status}"}
    paths = paths[count:]


def main():
  if sys.argv[1:] == ["--work"]:
    _work(sys.stdin.read().split())
    return
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("dump", type=pathlib.Path, nargs="+")
  found = {}
  for path in sorted(each for folder in parser.parse_args().dump for each in folder.glob("*.input.mlirbc")):
    found.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
  counts = collections.Counter()
  for row in _rows(list(found.values())):
    counts[row["outcome"]] += 1
    if row["outcome"] not in ("same", "refused by both", "not read"):
      print(f"{row['outcome']:18} {pathlib.Path(row['path']).name:32} {row['why'][:200]}", flush=True)
  for outcome, count in counts.most_common():
    print(f"{count:6} {outcome}")


if __name__ == "__main__":
  main()
