"""Random kernels: `MINIPOD_RANDOM_KERNELS` of them (16), from seed `MINIPOD_RANDOM_SEED` (1)."""

import os

import case
import random_kernel

COUNT = int(os.environ.get("MINIPOD_RANDOM_KERNELS", "16"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))


def _register(seed: int) -> None:
  def make(rng):
    return random_kernel.make(seed)
  make.__name__, make.__module__ = f"seed_{seed}", __name__
  case.case(make, tolerance=0, by=("tpu",) if random_kernel.needs_tpu_interpreter(seed) else ("any", "tpu"))


for number in range(COUNT):
  _register(SEED * 1_000_000 + number)
