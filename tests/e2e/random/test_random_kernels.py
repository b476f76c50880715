"""Random kernels of Pallas give on minipod what JAX's interpreter of TPUs gives on CPU.

    MINIPOD_RANDOM_KERNELS=1000 .venv/bin/python -m pytest -s tests/e2e/random/test_random_kernels.py

is the long run (`MINIPOD_RANDOM_SEED` its seed).
"""

import os
import sys

import jax
from jax.experimental.pallas import tpu as pltpu
import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))
import random_kernel

COUNT = int(os.environ.get("MINIPOD_RANDOM_KERNELS", "16"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))
CHUNK = 8  # Kernels per test, few enough for its time limit on a busy machine.


def check(seed):
  kernel = random_kernel.generate(seed)
  arrays = random_kernel.make_arrays(kernel, seed)
  run = lambda interpret, *arrays: random_kernel.call(kernel, arrays, interpret)
  with jax.default_device(jax.devices("cpu")[0]):
    expected = jax.jit(lambda *arrays: run(pltpu.InterpretParams(), *arrays))(*arrays)
    expected = [np.asarray(value) for value in expected]
  found = jax.jit(lambda *arrays: run(False, *arrays))(*arrays)
  for number, (one, other) in enumerate(zip(found, expected)):
    np.testing.assert_array_equal(one, other, f"result {number}, seed {seed}: {kernel}")


@pytest.mark.parametrize("chunk", range(max(COUNT // CHUNK, 1)))
def test_kernels_agree(chunk):
  for number in range(chunk * CHUNK, min((chunk + 1) * CHUNK, COUNT)):
    check(SEED * 1_000_000 + number)
  jax.clear_caches()
