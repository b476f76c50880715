"""Random kernels: `MINIPOD_RANDOM_KERNELS` of them (16), from seed `MINIPOD_RANDOM_SEED` (1).

Pallas's own interpreter is several times as fast as that of TPUs, but an operand that aliases a result sees the result's
new values there.  It computes kernels without aliases, except for each eighth one.
"""

import os

import case
import random_kernel

COUNT = int(os.environ.get("MINIPOD_RANDOM_KERNELS", "16"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))


def _register(seed: int) -> None:
  def make(rng):
    return random_kernel.make(seed)
  make.__name__, make.__module__ = f"seed_{seed}", __name__
  needs_tpu = seed % 8 == 0 or random_kernel.generate(seed).aliases
  case.case(make, tolerance=0, by=("tpu",) if needs_tpu else ("any", "tpu"))


for number in range(COUNT):
  _register(SEED * 1_000_000 + number)
