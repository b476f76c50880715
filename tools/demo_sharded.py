"""What tools/demo shows of annotations: a transformer, written as if for one device, on a 2x4 mesh.

Parameters and batch are sharded (fully sharded data parallel times tensor parallel); the partitioner
splits the training step.  Run with MINIPOD_DEVICES=8.
"""

import collections
import os
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "minipod,cpu")
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "e2e", "scripts"))

import jax
import numpy as np

import common
import train_transformer

LOSS_TOLERANCE, PARAMETER_TOLERANCE = 1e-5, 1e-4
COLLECTIVES = "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"


def distance(parameters, wanted) -> float:
  """The largest relative difference of an array, by norm."""
  return max(float(np.linalg.norm(a - b) / np.linalg.norm(b))
             for a, b in zip(jax.tree.leaves(parameters), jax.tree.leaves(wanted), strict=True))


def main() -> int:
  losses, sharded, mesh = train_transformer.train(jax.devices())
  wanted, single, one = train_transformer.train(jax.devices()[:1])
  loss = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))
  parameters = distance(common.replicate(sharded, mesh), common.replicate(single, one))
  shape = " x ".join(f"{size} ({name})" for name, size in mesh.shape.items())
  print(f"a transformer on a mesh of {shape}, {len(losses)} steps:")
  print(f"  loss {losses[0]:.7f} -> {losses[-1]:.7f}, on one device {wanted[0]:.7f} ->"
        f" {wanted[-1]:.7f}")
  print(f"  largest relative difference: loss {loss:.1e}, parameters {parameters:.1e}")
  text = train_transformer.compiled(jax.devices()).as_text()
  found = collections.Counter(re.findall(rf" ({'|'.join(COLLECTIVES)})\(", text))
  print("  collectives in the program of a device: "
        + ", ".join(f"{found[kind]} {kind}" for kind in COLLECTIVES if found[kind]))
  common.report(losses, sharded, mesh)
  right = loss <= LOSS_TOLERANCE and parameters <= PARAMETER_TOLERANCE
  print("as on one device" if right else "NOT as on one device")
  return 0 if right else 1


if __name__ == "__main__":
  sys.exit(main())
