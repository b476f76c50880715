"""Random kernels on a described TPU give, as Mosaic modules, the bits of JAX's interpreters on CPU.

    MINIPOD_RANDOM_MOSAIC=1000 .venv/bin/python -m pytest -s tests/e2e/random/test_random_mosaic.py

is the long run (`MINIPOD_RANDOM_SEED` its seed).  `MINIPOD_RANDOM_TALKS` is the number of kernels that communicate, which
are compared with NumPy.
"""

import os
import pathlib

import pytest
import scenario

COUNT = int(os.environ.get("MINIPOD_RANDOM_MOSAIC", "8"))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", "1"))
TALKS = int(os.environ.get("MINIPOD_RANDOM_TALKS", "24"))
CHUNK = 4
TOOLS = pathlib.Path(__file__).parents[3] / "tools" / "mosaic"

CODE = """
import sys
sys.path.insert(0, FOLDER)
import random_kernel
from jax.experimental.pallas import tpu as pltpu

for seed in SEEDS:
  needs_tpu = random_kernel.needs_tpu_interpreter(seed)
  with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams() if needs_tpu else True):
    function, args = random_kernel.make(seed)
    with jax.default_device(jax.devices("cpu")[0]):
      expected = [np.asarray(value) for value in jax.jit(lambda *args: function(*args))(*args)]
  function, args = random_kernel.make(seed)
  lowered = jax.jit(lambda *args: function(*args)).lower(*args)
  assert "tpu_custom_call" in lowered.as_text()
  for number, (one, other) in enumerate(zip(lowered.compile()(*args), expected)):
    np.testing.assert_array_equal(one, other, f"result {number} of seed {seed}: {random_kernel.generate(seed)}")
print("same")
"""


@pytest.mark.parametrize("chunk", range(max(COUNT // CHUNK, 1)))
def test_kernels_agree(chunk):
  seeds = [SEED * 1_000_000 + number for number in range(chunk * CHUNK, min((chunk + 1) * CHUNK, COUNT))]
  out = scenario.run(f"FOLDER, SEEDS = {str(TOOLS)!r}, {seeds}\n" + CODE, devices=None, timeout=120,
                     MINIPOD_TOPOLOGY="v6e:1x1")
  assert out == "same\n"


TALK_CODE = """
import sys
sys.path.insert(0, FOLDER)
import random_talk

for seed in SEEDS:
  function, argument, expected = random_talk.make(seed, jax.devices())
  np.testing.assert_array_equal(np.asarray(function(argument)).astype(np.int64), expected,
                                f"seed {seed}: {random_talk.generate(seed, len(jax.devices()))}")
print("same")
"""
TALK_CHUNK = 12
TALK_PODS = ({"MINIPOD_TOPOLOGY": "v6e:2x2"}, {"MINIPOD_TOPOLOGY": "v6e:2x4", "MINIPOD_KERNELS": "check"})


@pytest.mark.parametrize("chunk", range(max(TALKS // TALK_CHUNK, 1)))
def test_kernels_that_communicate_agree(chunk):
  seeds = [SEED * 1_000_000 + number for number in range(chunk * TALK_CHUNK, min((chunk + 1) * TALK_CHUNK, TALKS))]
  out = scenario.run(f"FOLDER, SEEDS = {str(TOOLS)!r}, {seeds}\n" + TALK_CODE, devices=None, timeout=120,
                     **TALK_PODS[chunk % len(TALK_PODS)])
  assert out == "same\n"
