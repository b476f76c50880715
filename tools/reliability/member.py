"""A process of a job of kills.py: works until something is wrong, says what and when, and ends with 7.

    member.py ADDRESS PROCESSES PROCESS   or, under mpirun,   member.py mpi
"""

import os
import pathlib
import random
import sys
import time

FOLDER = pathlib.Path(os.environ["RELIABILITY_FOLDER"])


def say(rank: int, kind: str, text: str) -> None:
  path = FOLDER / f"{rank}.{kind}"
  path.with_suffix(".new").write_text(text)
  path.with_suffix(".new").rename(path)


def join() -> int:
  if sys.argv[1] == "mpi":
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    say(rank, "pid", str(os.getpid()))
    return rank
  import jax

  address, size, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
  jax.distributed.initialize(address, size, rank, initialization_timeout=15, heartbeat_timeout_seconds=15)
  return rank


def work(rank: int) -> None:
  import jax
  from jax.sharding import NamedSharding, PartitionSpec as P
  import jax.numpy as jnp
  import numpy as np

  chance = random.Random(os.environ["RELIABILITY_SEED"])  # the same in all processes
  mesh = jax.sharding.Mesh(jax.devices(), ("x",))
  spread, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
  number = jax.device_count()
  ring = [(i, (i + 1) % number) for i in range(number)]
  turn = jax.jit(jax.shard_map(lambda x: jax.lax.ppermute(x, "x", ring), mesh=mesh, in_specs=P("x"), out_specs=P("x")))
  total = jax.jit(lambda x: x.sum(), out_shardings=whole)
  for step in range(1 << 30):
    rows = chance.choice([1, 64, 4096]) * chance.randrange(1, 4)
    kind = chance.randrange(4)
    x = jax.make_array_from_callback((number, rows), spread, lambda index: np.ones((1, rows), np.float32))
    if kind == 0:
      assert float(total(x)) == number * rows
    elif kind == 1:
      assert all((np.asarray(shard.data) == 1).all() for shard in turn(x).addressable_shards)
    elif kind == 2:  # a program that nobody has compiled before
      jax.jit(lambda x: jnp.tanh(x * step).sum(), out_shardings=whole)(x).block_until_ready()
    else:
      assert np.asarray(jax.device_put(x, whole).addressable_shards[0].data).sum() == number * rows
    if step == 0:
      say(rank, "works", "")


def main() -> None:
  rank = int(sys.argv[3]) if len(sys.argv) > 3 else -1
  try:
    rank = join()
    work(rank)
  except Exception as error:  # what a survivor is told
    say(rank, "error", f"{time.time()} {str(error)[:300]}")
    print(error, file=sys.stderr)
    sys.exit(7)


if __name__ == "__main__":
  main()
