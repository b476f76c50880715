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
# Functions per test, few enough for its time limit on a busy machine.
CHUNK = 25
# After this many chunks, compiled functions are released.  JAX then also forgets common operations.
CHUNKS_KEPT = 4
# Everyday runs have slightly shorter functions, because XLA's compile time grows with their length.
MAX_STEPS = 7 if COUNT > 500 else 4


def for_random_functions(chunk, use):
  """Calls `use` with each function of a chunk, and with a shorter one if it fails."""
  @hypothesis.seed(SEED * 1_000_000 + chunk)
  @hypothesis.settings(max_examples=min(CHUNK, COUNT), deadline=None, database=None,
                       phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
                       print_blob=False, suppress_health_check=list(hypothesis.HealthCheck))
  @hypothesis.given(random_function.functions(chunk % 2 == 1, MAX_STEPS))
  def each(function):
    use(function)

  each()


@pytest.mark.parametrize("chunk", range(max(COUNT // CHUNK, 1)))
def test_functions_agree(chunk):
  pod, cpu = jax.devices("minipod")[0], jax.devices("cpu")[0]
  functions, ran = [], []

  def run(function):
    ran.append(random_function.run(function, pod))
    functions.append(function)

  try:
    for_random_functions(chunk, run)
    try:
      steps = random_function.check(functions, ran, cpu)
    except AssertionError as error:
      # One of the functions is wrong: Hypothesis can shrink it if each is compared separately.
      print(f"MINIPOD_RANDOM_SEED={SEED}, chunk {chunk}: {error}")
      for_random_functions(chunk, lambda function: random_function.check(
          [function], [random_function.run(function, pod)], cpu))
      raise
  except BaseException as error:
    error.add_note(f"MINIPOD_RANDOM_SEED={SEED}, chunk {chunk}")
    raise
  finally:
    if chunk % CHUNKS_KEPT == 0:
      jax.clear_caches()
  print(f"\nchunk {chunk}: {len(functions)} functions, {steps} steps agree")
