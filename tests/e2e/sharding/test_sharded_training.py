"""The training scripts have the same results on all devices, with sharding annotations, as on one."""

import os
import re
import sys

import jax
import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "scripts"))
import common
import train_mlp
import train_transformer


def compare(script):
  losses, parameters, mesh = script.train(jax.devices())
  wanted_losses, wanted, one = script.train(jax.devices()[:1])
  np.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
  assert wanted_losses[-1] < 0.8 * wanted_losses[0]
  pairs = zip(jax.tree.leaves(common.replicate(parameters, mesh)),
              jax.tree.leaves(common.replicate(wanted, one)), strict=True)
  for value, reference in pairs:
    assert np.linalg.norm(value - reference) <= 1e-4 * np.linalg.norm(reference)


@pytest.mark.parametrize("script", [train_mlp, train_transformer], ids=lambda s: s.__name__)
def test_training(script):
  compare(script)


def test_transformer_is_sharded():
  """Parameters are sharded over both axes, and no device gathers more than it needs at a time."""
  _, parameters, mesh = train_transformer.train(jax.devices(), steps=1)
  assert parameters["up"].addressable_shards[0].data.size * 8 == parameters["up"].size
  text = train_transformer.compiled(jax.devices()).as_text()
  count = lambda kind: len(re.findall(rf" {kind}\(", text))
  assert count("all-gather") > 0 and count("all-reduce") + count("reduce-scatter") > 0
  assert "minipod.exchange" not in text
