"""Code that the training scripts of this folder share.

The scripts do not depend on the number of processes.  Callbacks or jit make the arrays, so devices of other processes
need not be addressable.  The scripts print a digest of bits that every process can read.
"""

import hashlib
import sys

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P


def place(value, sharding):
  """A numpy array (the same in each process) as a global array."""
  value = np.asarray(value)
  return jax.make_array_from_callback(value.shape, sharding, lambda index: value[index])


def replicate(tree, mesh):
  """The tree as numpy arrays, in each process."""
  everywhere = jax.tree.map(lambda _: NamedSharding(mesh, P()), tree)
  whole = jax.jit(lambda t: t, out_shardings=everywhere)(tree)
  return jax.tree.map(lambda a: np.asarray(a.addressable_shards[0].data), whole)


def digest(tree):
  """A hash of the bits of a tree of numpy arrays."""
  total = hashlib.sha256()
  for leaf in jax.tree.leaves(tree):
    total.update(np.ascontiguousarray(leaf).tobytes())
  return total.hexdigest()[:16]


def report(losses, parameters, mesh):
  """Prints the losses and the digest of losses and parameters, in one line per process."""
  whole = replicate(parameters, mesh)
  values = np.array(losses, np.float32)
  line = (f"process {jax.process_index()} of {jax.process_count()}, {jax.device_count()} devices: "
          f"loss {values[0]:.7f} -> {values[-1]:.7f} digest {digest([values, whole])}")
  print(line, flush=True)
  sys.stdout.flush()
