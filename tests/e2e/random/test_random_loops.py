"""Random loops with scalars beside vectors give on minipod the bits that NumPy gives, interpreted and as machine code.

    MINIPOD_RANDOM_LOOPS=2000 .venv/bin/python -m pytest tests/e2e/random/test_random_loops.py

is the long run (`MINIPOD_RANDOM_SEED` its seed).
"""

import os

import pytest

from scenario import run

COUNT = int(os.environ.get("MINIPOD_RANDOM_LOOPS", "60"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))
CHUNK = 60  # loops of one process: few enough for its time limit


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("chunk", range(max(COUNT // CHUNK, 1)))
def test_loops_agree(chunk, native):
  run(f"""
    import sys
    sys.path.insert(0, {os.path.dirname(__file__)!r})
    import random_loop
    random_loop.check_all({SEED * 1_000_000 + chunk * CHUNK}, {min(CHUNK, COUNT)})
  """, devices=1, MINIPOD_NATIVE=native)
