"""psum over the processes of a job: latency of 8 bytes, bandwidth of 16 MiB.

    mpirun -n 2 python tools/bench/psum_processes.py

Without mpirun the variables COORDINATOR, NUM_PROCESSES and PROCESS_ID say which process this is.

Every process brings one device.  `dispatch` is the same program without a psum; the time of a psum
is one jitted call until its result is there, and `loop` is one of many psums inside one program,
which is what MPI_Allreduce's own time (build/minipod-bench-world) is to be put beside.
"""

import os
import statistics
import time

os.environ.setdefault("JAX_PLATFORMS", "minipod")
os.environ.setdefault("MINIPOD_DEVICES", "1")

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

LOOPS = 100
if "COORDINATOR" in os.environ:
  jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]),
                             int(os.environ["PROCESS_ID"]))


def seconds(f, x, calls):
  jax.block_until_ready(f(x))
  times = []
  for _ in range(calls):
    start = time.perf_counter()
    jax.block_until_ready(f(x))
    times.append(time.perf_counter() - start)
  return statistics.median(times), min(times)


def main():
  mesh = jax.make_mesh((jax.device_count(),), ("i",))

  def on_devices(f, out=P("i")):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=out))

  def psum(x):
    return lax.psum(x, "i")

  def loop(x):
    return lax.fori_loop(0, LOOPS, lambda _, v: lax.psum(v, "i") * 0.5 + 0 * v, x)

  for size in (8, 4 << 10, 64 << 10, 1 << 20, 16 << 20):
    local = jnp.ones(size // 4, jnp.float32)
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), local)
    calls = 200 if size <= 1 << 16 else 100 if size <= 1 << 20 else 20
    alone, _ = seconds(on_devices(lambda v: v + 1), x, calls)
    one, best = seconds(on_devices(psum, P()), x, calls)
    many, many_best = (t / LOOPS for t in seconds(on_devices(loop), x, max(3, calls // LOOPS)))
    if jax.process_index() == 0:
      print(f"{size:9d} bytes: dispatch {alone * 1e6:8.1f} us, psum {one * 1e6:9.1f} us"
            f" (best {best * 1e6:.1f}), in a loop {many * 1e6:9.1f} us (best {many_best * 1e6:.1f})"
            f" = {size / many / 1e9:.3f} GB/s", flush=True)


if __name__ == "__main__":
  main()
