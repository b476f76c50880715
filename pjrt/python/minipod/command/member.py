"""One process of a `minipod run` without mpirun: joins the others, then is the script.

    python -m minipod.command.member ADDRESS PROCESSES RANK (script.py | -m MODULE) ARGUMENT...
"""

import runpy
import sys


def main() -> None:
  address, count, rank, *words = sys.argv[1:]
  import jax

  jax.distributed.initialize(address, int(count), int(rank))
  if words[0] == "-m":
    sys.argv = words[1:]
    sys.path[0] = ""
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
  else:
    sys.argv = words
    sys.path[0] = words[0].rpartition("/")[0]
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
  main()
