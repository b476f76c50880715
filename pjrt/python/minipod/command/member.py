"""One process of a `minipod run` without mpirun: runs the script, and joins the others when the script imports JAX.

Scripts of PyTorch join by the variables that `minipod run` sets.

python -m minipod.command.member ADDRESS PROCESSES RANK PIPE (script.py | -m MODULE) ARGUMENT...

If the script fails, this process writes RANK and its exit code to the descriptor PIPE before it starts to
end.  Otherwise another process could notice this one's end, fail, and be reported first.
"""

import os
import runpy
import sys


def main() -> None:
  address, count, rank, pipe, *words = sys.argv[1:]
  _join_with_jax(address, int(count), int(rank))
  try:
    _run(words)
  except BaseException as error:
    code = error.code if isinstance(error, SystemExit) else 1
    code = (code if isinstance(code, int) else int(code is not None)) & 255
    if code:
      os.write(int(pipe), f"{rank} {code}\n".encode())
    raise


def _join_with_jax(address: str, count: int, rank: int) -> None:
  import _minipod_start

  if "jax" in sys.modules:
    sys.modules["jax"].distributed.initialize(address, count, rank)
  else:
    _minipod_start.await_module("jax", after=lambda jax: jax.distributed.initialize(address, count, rank))


def _run(words: list[str]) -> None:
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
