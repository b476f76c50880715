"""Runs one set of programs again and again, over 1 to 8 workers and 1, 2 and 4 processes: are all virtual times equal?

    .venv/bin/python tools/determinism.py [--runs 100] [--library PLUGIN]

What is compared is the virtual time, to the bit, and the whole table of times but for its first line (which has the
real time).  Several processes need mpirun.  Exits with 1 when two runs differ.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x4", "JAX_PLATFORMS": "minipod"}

# Training steps, which tests/e2e/model/test_virtual_time.py has too: weights sharded over both axes, a loop over layers
# and one inside of it.
TRAIN = textwrap.dedent("""
    import minipod
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=auto)
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    def init():
      key = jax.random.key(0)
      return {"up": jax.random.normal(key, (2, 128, 512)), "down": jax.random.normal(key, (2, 512, 128))}
    shards = {"up": on(None, "data", "model"), "down": on(None, "model", "data")}
    w = jax.jit(init, out_shardings=shards)()
    x = jax.jit(lambda: jnp.ones((64, 128)), out_shardings=on("data"))()
    def layer(x, w):
      y = jax.nn.gelu(x @ w["up"]) @ w["down"]
      return lax.fori_loop(0, 3, lambda i, y: y * 0.5 + i, x + y * 1e-3), None
    def loss(w, x):
      return (lax.scan(layer, x, w)[0] ** 2).mean()
    @jax.jit
    def step(w, x):
      value, g = jax.value_and_grad(loss)(w, x)
      return jax.tree.map(lambda w, g: w - 1e-3 * g, w, g), value
    for _ in range(3):
      w, value = step(w, x)
      value.block_until_ready()
    """)

PROGRAMS = textwrap.dedent("""
    import hashlib, os
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec as P
    """) + TRAIN + textwrap.dedent("""
    # Every collective, in a loop that goes round as often as the data says.
    def body(x):
      def go(c):
        i, y = c
        y = lax.ppermute(y, "data", [(j, (j + 1) % 4) for j in range(4)]) * 0.9
        y = lax.psum(y, "model") / 2 + lax.all_gather(y, "data", tiled=True)[:16] * 0.1
        y = lax.all_to_all(y.reshape(4, -1), "data", 0, 0).reshape(y.shape)
        return i + 1, y + lax.psum_scatter(jnp.tile(y, 4), "data", tiled=True) * 1e-2
      return lax.while_loop(lambda c: (c[0] < 50) & (lax.psum(jnp.abs(c[1]).sum(), ("data", "model")) > 1), go,
                            (0, x))[1]
    ring = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(("data", "model")),
                                 check_vma=False))
    y = jax.jit(lambda: jnp.arange(128.0) / 128, out_shardings=on(("data", "model")))()
    for _ in range(2):
      y = ring(y)
    # Waits of the host, and work that differs by device.
    jax.block_until_ready(y)
    z = jax.jit(lambda x: jnp.sort(x, axis=-1).sum(), out_shardings=on())(x)
    np.asarray(z.addressable_shards[0].data)
    table = minipod.time_report()
    table = table[table.index("program"):]
    with open(f"{os.environ['RESULTS']}/{os.getpid()}", "w") as file:  # mpirun does not keep lines apart
      print(minipod.virtual_time().hex(), hashlib.sha256(table.encode()).hexdigest()[:16], file=file)
    """)


def run(library, processes, workers):
  environment = os.environ | POD | {"MINIPOD_WORKERS": str(workers), "PYTHONDONTWRITEBYTECODE": "1"}
  if library is not None:
    environment["MINIPOD_LIBRARY"] = str(library)
  command = [sys.executable, "-c", PROGRAMS]
  if processes > 1:
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(processes), *command]
  with tempfile.TemporaryDirectory() as folder:
    done = subprocess.run(command, env=environment | {"RESULTS": folder}, capture_output=True, text=True, timeout=300)
    results = [path.read_text().split() for path in pathlib.Path(folder).iterdir()]
  if done.returncode != 0 or len(results) != processes:
    raise SystemExit(f"{processes} processes, {workers} workers: exit code {done.returncode}\n{done.stderr}")
  return results


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--runs", type=int, default=100)
  parser.add_argument("--library", type=pathlib.Path, help="the plugin; by default that of the package")
  parser.add_argument("--at-once", type=int, default=2, help="runs at the same time")
  arguments = parser.parse_args()
  kinds = [(processes, workers) for processes in ((1, 2, 4) if shutil.which("mpirun") else (1,))
           for workers in range(1, 9)]
  runs = [kinds[i % len(kinds)] for i in range(arguments.runs)]
  random.Random(0).shuffle(runs)
  found = collections.defaultdict(collections.Counter)
  begin = time.monotonic()
  with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
    for (processes, workers), results in zip(runs, pool.map(lambda r: run(arguments.library, *r), runs)):
      for virtual, table in results:
        found[virtual][processes, workers] += 1
        found[processes, table][workers] += 1
  times = [key for key in found if isinstance(key, str)]
  tables = [key for key in found if not isinstance(key, str)]
  print(f"{len(runs)} runs of {len(set(runs))} kinds in {time.monotonic() - begin:.0f} s: {len(times)} virtual time(s), "
        f"{', '.join(times)}; {len(tables)} table(s) for {len({p for p, _ in tables})} numbers of processes")
  if len(times) != 1 or len(tables) != len({p for p, _ in tables}):
    for key, counts in found.items():
      print(key, dict(counts))
    sys.exit(1)


if __name__ == "__main__":
  main()
