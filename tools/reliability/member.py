"""A process of a case (case.py): works until there is a file `enough`, or something is wrong: it says what and when.

It ends with 0, with 7 after an error, and with 8 after a wrong value.
"""

import os
import pathlib
import random
import sys
import threading
import time
import traceback

import job

FOLDER = pathlib.Path(os.environ["RELIABILITY_FOLDER"])


def say(rank: int, kind: str, text: str) -> None:
  path = FOLDER / f"{rank}.{kind}"
  path.with_suffix(".new").write_text(text)
  path.with_suffix(".new").rename(path)


def work(rank: int) -> int:
  """The number of correct steps."""
  import jax
  from jax.sharding import NamedSharding, PartitionSpec as P
  import numpy as np

  chance = random.Random(os.environ["RELIABILITY_SEED"])  # the same in all processes
  mesh = jax.sharding.Mesh(jax.devices(), ("x",))
  spread, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
  number = jax.device_count()
  ring = [(i, (i + 1) % number) for i in range(number)]
  turn = jax.jit(jax.shard_map(lambda x: jax.lax.ppermute(x, "x", ring), mesh=mesh, in_specs=P("x"), out_specs=P("x")))
  total = jax.jit(lambda x: x.sum(), out_shardings=whole)

  def spread_out(rows, of):
    """Row i, on device i, is of(i)."""
    return jax.make_array_from_callback((number, rows), spread,
                                        lambda index: np.full((1, rows), of(index[0].start or 0), np.float32))

  def holds(shard, value):
    return bool((np.asarray(shard.data) == value).all())

  for step in range(1 << 30):
    if float(total(spread_out(1, lambda i: (FOLDER / "enough").exists()))) == number:  # all have seen the file
      return step
    rows = chance.choice([1, 64, 4096]) * chance.randrange(1, 4)
    kind = chance.randrange(4)
    values = [(i * 13 + step * 5) % 31 for i in range(number)]  # small whole numbers, so that sums are exact
    x = spread_out(rows, values.__getitem__)
    if kind == 0:
      assert float(total(x)) == sum(values) * rows
    elif kind == 1:
      for shard in turn(x).addressable_shards:
        assert holds(shard, values[(shard.index[0].start or 0) - 1]), (step, shard)
    elif kind == 2:  # a program that was not compiled before
      fresh = jax.jit(lambda x: (x * (step % 7) + 1).sum(), out_shardings=whole)
      assert float(fresh(x)) == (sum(values) * (step % 7) + number) * rows
    else:
      for i, row in enumerate(np.asarray(jax.device_put(x, whole).addressable_shards[0].data)):
        assert (row == values[i]).all(), (step, i)
    if step == 0:
      say(rank, "works", "")


def end_with(parent: int) -> None:
  """Ends this process if the tool was killed: otherwise the job would work for ever."""
  while pathlib.Path(f"/proc/{parent}").exists():
    time.sleep(1)
  os._exit(9)


def main() -> None:
  if parent := os.environ.get("RELIABILITY_PARENT"):
    threading.Thread(target=end_with, args=(int(parent),), daemon=True).start()
  rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PROCESS_ID"])
  limit = int(os.environ.get("RELIABILITY_HEARTBEAT_S", "15"))
  try:
    import jax  # takes a while

    say(rank, "joins", "")
    job.join(initialization_timeout=max(limit, 15), heartbeat_timeout_seconds=limit)
    say(rank, "right", str(work(rank)))
  except AssertionError:
    say(rank, "wrong", traceback.format_exc())
    sys.exit(job.WRONG_CODE)
  except Exception as error:  # the error of a survivor
    say(rank, "error", f"{time.time()} {str(error)[:300]}")
    print(error, file=sys.stderr)
    sys.exit(job.ERROR_CODE)


if __name__ == "__main__":
  main()
