"""Runs a function on minipod and on JAX's CPU backend and compares the results."""

import os

import jax
import numpy as np

# Relative to the largest magnitude of the expected array: a few rounding steps of the type.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "float64": 1e-12,
             "complex64": 2e-5, "complex128": 1e-12, "float8_e4m3fn": 0.13, "float8_e5m2": 0.26}


# XLA's defaults, which these tests turn off (conftest.py).
EMITTERS = ({"xla_cpu_use_fusion_emitters": True}
            if "xla_cpu_use_fusion_emitters" in os.environ.get("XLA_FLAGS", "") else {})
# With them, XLA also fuses multiplications with additions.
OPTIMIZED = {"xla_backend_optimization_level": 3, **EMITTERS}


def on(device, f, *args, options=None):
  """The result of jit(f) on one device, as numpy arrays; `options` are jit's compiler options."""
  moved = jax.tree.map(lambda a: jax.device_put(a, device), args)
  with jax.default_device(device):
    return jax.tree.map(np.asarray, jax.jit(f, compiler_options=options)(*moved))


def on_pod(f, *args):
  return on(jax.devices("minipod")[0], f, *args)


def on_cpu(f, *args, optimized=False):
  """With `optimized`, the last bits are those that users of the CPU backend get."""
  return on(jax.devices("cpu")[0], f, *args, options=OPTIMIZED if optimized else None)


def compare(f, *args, tolerance=None, exact=False, optimized=None):
  """Asserts that f gives the same on both platforms.

  With `exact`, and for types without rounding, all bits must be equal; otherwise results may differ by a few rounding
  steps of the element type.  When bits are compared, the CPU backend optimises, which changes only multiplications and
  sums; `optimized` overrides this.
  """
  wanted = on_cpu(f, *args, optimized=exact if optimized is None else optimized)
  found = on_pod(f, *args)
  wanted, structure = jax.tree.flatten(wanted)
  found, found_structure = jax.tree.flatten(found)
  assert structure == found_structure
  for left, right in zip(found, wanted):
    assert_close(left, right, tolerance, exact)


def compare_each(functions, *args, tolerances=None, exact=False, optimized=None):
  """Does for every function of a dict what `compare` does for one, in one program: compiling takes XLA most of the time
  of a small program.

  The error names all functions that differ.
  """
  together = lambda *args: {name: f(*args) for name, f in functions.items()}
  wanted = on_cpu(together, *args, optimized=exact if optimized is None else optimized)
  found = on_pod(together, *args)
  differ = {}
  for name in functions:
    try:
      jax.tree.map(lambda left, right: assert_close(left, right, (tolerances or {}).get(name), exact),
                   found[name], wanted[name])
    except AssertionError as error:
      differ[name] = error
  assert not differ, "".join(f"\n{name}: {error}" for name, error in differ.items())


def assert_close(left, right, tolerance=None, exact=False):
  """Asserts that two NumPy arrays are the same, by the rules of `compare`."""
  assert (left.dtype, left.shape) == (right.dtype, right.shape)
  limit = TOLERANCE.get(left.dtype.name) if tolerance is None else tolerance
  # numpy's own comparisons do not treat NaNs of the extension types (bfloat16, int4, …) as equal.
  wide = np.complex128 if left.dtype.kind == "c" else np.float64
  if limit is not None:
    left, right = left.astype(wide), right.astype(wide)
  if exact or limit is None:
    np.testing.assert_array_equal(left, right)
    return
  finite = np.abs(right[np.isfinite(right)])
  scale = min(finite.max(), 1.0) if finite.size else 0.0
  np.testing.assert_allclose(left, right, rtol=limit, atol=limit * max(scale, 1e-30))
