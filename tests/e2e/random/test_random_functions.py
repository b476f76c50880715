"""Random JAX functions give on minipod what JAX's CPU backend gives.

    MINIPOD_RANDOM_FUNCTIONS=20000 .venv/bin/python -m pytest -s tests/e2e/random

is the long run (`MINIPOD_RANDOM_SEED` its seed).  A failure prints the seed and the shortest function
that fails.
"""

import os
import sys

import hypothesis
import jax
import pytest

sys.path.insert(0, os.path.dirname(__file__))
import random_function

COUNT = int(os.environ.get("MINIPOD_RANDOM_FUNCTIONS", "500"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))
# Functions of one test: few enough for its time limit on a busy machine.
CHUNK = 25
# What compiled functions hold is given back every so many chunks; what JAX knows of common operations
# is then lost, too.
CHUNKS_KEPT = 4
# Every day functions are a little shorter, because XLA's time to compile grows with them.
MAX_STEPS = 7 if COUNT > 500 else 5


@pytest.mark.parametrize("chunk", range(max(COUNT // CHUNK, 1)))
def test_functions_agree(chunk):
  x64 = chunk % 2 == 1
  pod, cpu = jax.devices("minipod")[0], jax.devices("cpu")[0]
  steps = 0

  @hypothesis.seed(SEED * 1_000_000 + chunk)
  @hypothesis.settings(max_examples=min(CHUNK, COUNT), deadline=None, database=None,
                       print_blob=False, suppress_health_check=list(hypothesis.HealthCheck))
  @hypothesis.given(random_function.functions(x64, MAX_STEPS))
  def agree(function):
    nonlocal steps
    steps += random_function.check(function, pod, cpu)

  try:
    agree()
  except BaseException as error:
    error.add_note(f"MINIPOD_RANDOM_SEED={SEED}, chunk {chunk}")
    raise
  finally:
    if chunk % CHUNKS_KEPT == 0:
      jax.clear_caches()
  print(f"\nchunk {chunk}: {steps} steps agree, x64 {x64}")
