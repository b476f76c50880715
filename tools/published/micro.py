"""Compares modelled times of single operations with published ones: matmuls, copies, collectives, and odd ones.

    .venv/bin/python tools/published/micro.py [--filter WORD] [--json FILE]

Prints a table with an error for each row, and the mean and the worst error of each family.  All rows of a pod run in
one process, with values: shapes and the model's own settings.  No parameter is set manually.
"""

import argparse
import json
import pathlib

import chips

MB, MIB = 1e6, 1 << 20

SOURCES = {
    "T": "https://github.com/AI-Hypercomputer/tpu-recipes/tree/main/microbenchmarks",
    "B": "https://github.com/AI-Hypercomputer/accelerator-microbenchmarks/tree/main/Ironwood/guides",
    "V": "https://github.com/AI-Hypercomputer/tpu-recipes/blob/main/microbenchmarks/README.md",
    "G": "https://jax-ml.github.io/scaling-book/gpus",
    "S": "https://jax-ml.github.io/scaling-book/sharding",
    "N": "https://github.com/NVIDIA/nccl/issues/2169",
    "R": "https://github.com/openxla/xla/issues/23191",
    "M": "https://github.com/pytorch/xla/issues/8720",
    "F": "https://github.com/jax-ml/jax/issues/24633",
}

# n of n x n x n, TFLOP/s per core.
PRODUCTS_7X = [(128, 2.58996), (256, 18.2865), (512, 105.078), (1024, 349.727), (2048, 679.285), (4096, 892.945),
               (16384, 950.129), (32768, 956.382)]
# Bytes of an array, GB/s per core; each array counts as read and as written.
COPIES_7X = [(2 * MIB, 1379.34), (4 * MIB, 2249.75), (8 * MIB, 2246.13), (16 * MIB, 2757.31), (32 * MIB, 3009.84),
             (64 * MIB, 3097.22), (128 * MIB, 3176.50), (256 * MIB, 3167.14), (512 * MIB, 3199.02),
             (1024 * MIB, 3198.41), (2048 * MIB, 3203.49), (4096 * MIB, 3197.88), (8192 * MIB, 3210.48)]
# Rows of [rows, 8, 128] in f32 on each of four chips, GB/s per chip: both of its cores gather 3/4 of the result.
GATHERS_7X = [(64, 71.7703), (256, 129.187), (1024, 161.904), (4096, 174.765), (16384, 178.771)]

# `v6e:1x1`, with 64 MiB of VMEM for matmuls.
ROOMY = "v6e:1x1 scoped 64 MiB"

# Family, name, pod, operation and its arguments (a function below), published seconds, source.
ROWS = [
    *(("products 7x", f"bf16 product, n = {n:,}", "7x:2x2x1", ("product", n), 2 * n**3 / rate / 1e12, "T")
      for n, rate in PRODUCTS_7X),
    *(("copies 7x", f"copy of {size // MIB} MiB", "7x:2x2x1", ("copy", size), 2 * size / rate / 1e9, "B")
      for size, rate in COPIES_7X),
    *(("collectives 7x", f"all_gather over 4 chips, {rows * 16384 / MB:.1f} MB out", "7x:2x2x1",
       ("gather_by_core", rows), 1.5 * rows * 16384 / rate / 1e9, "B") for rows, rate in GATHERS_7X),
    ("products v6e", "bf16 product, n = 8,192, 64 MiB of VMEM", ROOMY, ("product", 8192), 1.328756e-3, "V"),
    ("copies v6e", "copy of 32 MiB", "v6e:1x1", ("copy", 32 * MIB), 49.359e-6, "V"),
    ("collectives v6e", "psum of 17,408 x 17,408 bf16", "v6e:16x16", ("psum", 17408),
     2 * 255 / 256 * 2 * 17408**2 / 235.76e9, "T"),
    ("collectives v5e", "all_gather over 4, no ring, 33.5 MB out", "v5e:8x4", ("gather_line", 2048, 8192), 680e-6, "S"),
    ("collectives v5e", "all_gather over 4, no ring, 131 kB out", "v5e:8x4", ("gather_line", 8, 8192), 8e-6, "S"),
    ("collectives h100", "all_gather over 8, 537 MB out", "h100:8", ("gather_all", 8192, 32768), 1500e-6, "G"),
    ("collectives h100", "all_to_all over 4, 524 MB", "h100:4", ("to_all", 4, 524288000),
     3 / 4 * 524288000 / 335e9, "N"),
    ("elementwise h100", "x + y, f32, 2^30", "h100:8", ("add", 1 << 30), 4100e-6, "G"),
    ("elementwise h100", "x + y, f32, 65,536", "h100:8", ("add", 65536), 1.5e-6, "G"),
    *(("attention v5e", f"JAX's flash attention, blocks of 128, {length:,} tokens", "v5e:1x1",
       ("flash", 32, 8, length, 64), time, "F")
      for length, time in ((512, 2.36e-3), (1024, 9.49e-3), (2048, 37.61e-3), (4096, 144.97e-3))),
    ("odd ones v6e", "reverse of the minor dimension, 520 MB", "v6e:1x1", ("reverse", 65000, 2000), 70e-3, "R"),
    ("odd ones v6e", "scatter-min, 5.6 M into 1.3 M", "v6e:1x1", ("scatter_min", 5_600_000, 1_300_000), 18.0, "M"),
    ("odd ones v6e", "scatter-min, 560 k into 130 k", "v6e:1x1", ("scatter_min", 560_000, 130_000), 0.3, "M"),
]


# ---- the process of a pod ----

def operations():
  """By name: the function and its arguments, made from these numbers."""
  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
  devices = np.array(jax.devices())

  def make(shape, dtype, sharding=None):
    return jax.jit(lambda: jnp.zeros(shape, dtype), out_shardings=sharding)()

  def mapped(body, mesh, spec, out, shape, dtype):
    function = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=out, check_vma=False)
    return function, [make(shape, dtype, NamedSharding(mesh, spec))]

  def product(n):
    return lambda a, b: a @ b, [make((n, n), jnp.bfloat16)] * 2

  def copy(size):
    return jnp.copy, [make((size // 4,), jnp.float32)]

  def gather_by_core(rows):
    mesh = Mesh(devices.reshape(-1, 2), ("chip", "core"))
    return mapped(lambda x: jax.lax.all_gather(x, "chip", tiled=True), mesh, P(("core", "chip")), P("core"),
                  (rows * len(devices), 8, 128), jnp.float32)

  def rectangle(m, n, k):
    return lambda a, b: a @ b, [make((m, k), jnp.float16), make((k, n), jnp.float16)]

  def gather_four(rows, groups):  # by each core, over four chips of `groups` groups
    mesh = Mesh(devices.reshape(-1, groups, 2), ("chip", "group", "core"))
    return mapped(lambda x: jax.lax.all_gather(x, "chip", tiled=True), mesh, P(("group", "core", "chip")),
                  P(("group", "core")), (rows * len(devices), 8, 128), jnp.float32)

  def permute(size):  # bytes per device, to the next device
    mesh = Mesh(devices, ("i",))
    pairs = [(i, (i + 1) % len(devices)) for i in range(len(devices))]
    return mapped(lambda x: jax.lax.ppermute(x, "i", pairs), mesh, P("i"), P("i"), (len(devices) * size // 4,), jnp.float32)

  def decode_attention(batch, context):  # cuDNN's kernel: 64 heads of queries and 8 of keys and values, 128 wide
    config = {"cudnn_fmha_backend_config": {"intermediate_tensor_shape": {"dimensions": [
        str(n) for n in (batch, 64, 1, context)]}, "mask_type": "NO_MASK"}}

    def attend(q, k, v):
      return jax.ffi.ffi_call("__cudnn$fmhaSoftmax", jax.ShapeDtypeStruct(q.shape, q.dtype), custom_call_api_version=1,
                              legacy_backend_config=json.dumps(config))(q, k, v)
    return attend, [make((batch, 1, 64, 128), jnp.bfloat16), *[make((batch, context, 8, 128), jnp.bfloat16)] * 2]

  def psum(n):
    mesh = Mesh(devices, ("i",))
    return mapped(lambda x: jax.lax.psum(x, "i"), mesh, P(), P(), (n, n), jnp.bfloat16)

  def gather_line(rows, columns):  # along the shorter dimension, each line by itself
    mesh = jax.make_mesh((8, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    return mapped(lambda x: jax.lax.all_gather(x, "y", axis=1, tiled=True), mesh, P(None, "y"), P(),
                  (rows, columns), jnp.bfloat16)

  def gather_all(rows, columns):
    mesh = Mesh(devices, ("i",))
    return mapped(lambda x: jax.lax.all_gather(x, "i", tiled=True), mesh, P("i"), P(), (rows, columns), jnp.bfloat16)

  def to_all(count, size):  # bytes per device
    mesh = Mesh(devices[:count], ("i",))
    return mapped(lambda x: jax.lax.all_to_all(x, "i", 0, 0, tiled=True), mesh, P("i"), P("i"),
                  (count * count, size // count // 2), jnp.bfloat16)

  def add(n):
    return jnp.add, [make((n,), jnp.float32)] * 2

  def flash(*shape):
    from jax.experimental import xla_metadata

    def attend(q, k, v):
      with xla_metadata.set_xla_metadata(kernel_name="_flash_attention_kernel"):
        return jax.ffi.ffi_call("tpu_custom_call", jax.ShapeDtypeStruct(shape, jnp.bfloat16),
                                custom_call_api_version=1)(q, k, v)
    return attend, [make(shape, jnp.bfloat16)] * 3

  def reverse(rows, columns):
    return lambda x: jnp.flip(x, -1), [make((rows, columns), jnp.float32)]

  def scatter_min(updates, size):
    return (lambda x, i, u: x.at[i].min(u)), [make((size,), jnp.float32), make((updates,), jnp.int32),
                                              make((updates,), jnp.float32)]

  return locals()


def seconds_of(function, arguments):
  """Seconds of a launch's kernels: a launch minus an empty launch, which returns its argument in place."""
  import jax
  import minipod
  jax.block_until_ready(arguments)
  compiled = jax.jit(function).lower(*arguments).compile()
  nothing = jax.device_put(jax.numpy.zeros((), jax.numpy.float32))
  jax.block_until_ready(nothing)
  idle = jax.jit(lambda x: x, donate_argnums=0).lower(nothing).compile()
  times = []
  for run in (lambda: idle(nothing), lambda: compiled(*arguments)):
    before = minipod.virtual_time()
    jax.block_until_ready(run())
    times.append(minipod.virtual_time() - before)
  return times[1] - times[0]


def run_here(calls):
  known = operations()
  print(json.dumps([seconds_of(*known[name](*numbers)) for name, *numbers in calls]))


# ---- the table ----

def modelled(pod, calls):
  with chips.described(pod.split(" scoped")[0], 64 if pod == ROOMY else None) as topology:
    return json.loads(chips.run_on(topology, __file__, "--run", json.dumps(calls)).splitlines()[-1])


def time_text(seconds):
  for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
    if seconds * factor >= 1:
      break
  return f"{seconds * factor:.3g} {unit}"


def family_table(rows):
  """For each family of (family, name, error): the number of rows, the mean size of errors, and the worst error."""
  lines = ["| family | rows | mean error | worst | of |", "|---|---|---|---|---|"]
  families = list(dict.fromkeys(family for family, _, _ in rows))
  for family in [*families, None]:
    own = [(abs(error), error, name) for other, name, error in rows if family in (None, other)]
    worst = max(own)
    lines.append(f"| {family or 'all'} | {len(own)} | {100 * sum(size for size, _, _ in own) / len(own):.1f} % | "
                 f"{100 * worst[1]:+.1f} % | {worst[2]} |")
  return "\n".join(lines)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--filter", default="", help="only rows whose family or name has this word")
  parser.add_argument("--json", type=pathlib.Path, help="the same, as a list of rows")
  parser.add_argument("--run", help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.run is not None:
    run_here(json.loads(arguments.run))
    return
  rows = [row for row in ROWS if arguments.filter in row[0] or arguments.filter in row[1]]
  times = {}
  for pod in dict.fromkeys(row[2] for row in rows):
    calls = [row[3] for row in rows if row[2] == pod]
    times |= {(pod, call): seconds for call, seconds in zip(calls, modelled(pod, calls))}
  print("| what | machine | published | modelled | error |\n|---|---|---|---|---|")
  found = []
  for family, name, pod, call, published, source in rows:
    seconds = times[pod, call]
    found.append((family, name, seconds / published - 1))
    print(f"| {name} [{source}] | `{pod}` | {time_text(published)} | {time_text(seconds)} | "
          f"{100 * found[-1][2]:+.1f} % |")
  print("\n" + family_table(found) + "\n")
  for letter, address in SOURCES.items():
    print(f"- [{letter}] {address}")
  if arguments.json is not None:
    arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
  main()
