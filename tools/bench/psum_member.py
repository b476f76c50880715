"""One process of a way of psum_hosts.py: it sums when it is its way's turn, and sleeps meanwhile.

    python tools/bench/psum_member.py FOLDER WAY psum|Allreduce

It reads its turns from the pipe FOLDER/WAY.RANK, a line each: how many bytes, how many calls.  When they are done it writes a line to the
pipe FOLDER/WAY.answers: the median of its calls in us, without the first ones, in which the kernel finds cores for threads that have just woken up.
"""

import os
import pathlib
import statistics
import sys
import time

IGNORED = 5  # before so many calls that count there is one that does not


def make_psum():
  """The rank, and a function that makes a call for so many bytes: a jitted psum until its result is there."""
  import jax
  import jax.numpy as jnp
  from jax import lax
  from jax.sharding import NamedSharding, PartitionSpec as P

  if "COORDINATOR" in os.environ:
    jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]))
  mesh = jax.make_mesh((jax.device_count(),), ("i",))
  psum = jax.jit(jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))

  def make_call(size):
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("i")), jnp.ones(size // 4, jnp.float32))
    return lambda: jax.block_until_ready(psum(x))

  return jax.process_index(), make_call


def make_allreduce():
  """The same of mpi4py's Allreduce."""
  import numpy as np
  from mpi4py import MPI

  def make_call(size):
    x, y = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    return lambda: MPI.COMM_WORLD.Allreduce(x, y)

  return MPI.COMM_WORLD.rank, make_call


def main():
  folder, way, what = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
  rank, make_call = make_psum() if what == "psum" else make_allreduce()
  calls = {}
  with open(folder / f"{way}.answers", "w", buffering=1) as answers, open(folder / f"{way}.{rank}") as turns:
    for turn in turns:
      size, count = map(int, turn.split())
      if size not in calls:
        calls[size] = make_call(size)
        calls[size]()  # compiles
      times = []
      for _ in range(count + count // IGNORED):
        begin = time.perf_counter()
        calls[size]()
        times.append((time.perf_counter() - begin) * 1e6)
      print(statistics.median(times[count // IGNORED:]), file=answers)


if __name__ == "__main__":
  main()
