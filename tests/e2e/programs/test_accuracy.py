"""Rounding errors beside those of JAX's CPU backend."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from differential import compare, on_cpu, on_pod

# Primes below and above the largest radix, their doubles, products of them, and smooth lengths.
LENGTHS = [13, 29, 31, 37, 53, 61, 67, 74, 97, 194, 211, 509, 641, 961, 1000, 1031, 2053 * 2, 4096,
           7429, 10007]

TRANSFORMS = {
    "fft": (jnp.fft.fft, np.fft.fft), "ifft": (jnp.fft.ifft, np.fft.ifft),
    "rfft": (jnp.fft.rfft, np.fft.rfft), "irfft": (jnp.fft.irfft, np.fft.irfft),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("n", LENGTHS)
def test_fft(name, n):
  transform, reference = TRANSFORMS[name]
  rng = np.random.default_rng(n)
  x = rng.standard_normal((8, n)).astype(np.float32)
  if name != "rfft":
    x = x + 1j * rng.standard_normal((8, n)).astype(np.float32)
  size = {"n": n} if name == "irfft" else {}
  wanted = reference(x.astype(np.complex128 if x.dtype.kind == "c" else np.float64), **size)

  def error(values):
    return np.sqrt(np.mean(np.abs(values - wanted) ** 2))

  def run(x):
    return transform(x, **size)

  assert error(on_pod(run, x)) <= 2 * error(on_cpu(run, x))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, 0.3, 88.0, -100.0, 709.5, 1e-4]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sqrt", "tan", "tanh", "sin", "cos",
                                  "sinh", "cosh", "asin", "acosh", "atanh"])
def test_complex_functions_of_special_values(name, dtype):
  """What is NaN or infinite on JAX's CPU backend is so here; the rest is near."""
  values = np.array(SPECIAL)
  x = np.empty((values.size, values.size), dtype)
  x.real, x.imag = values[:, None], values[None, :]
  f = getattr(jax.lax, name)
  with jax.enable_x64(True):
    found, wanted = on_pod(f, x), on_cpu(f, x)
  assert found.dtype == dtype
  for left, right in ((found.real, wanted.real), (found.imag, wanted.imag)):
    np.testing.assert_array_equal(np.isnan(left), np.isnan(right))
    # XLA subtracts exponentials of nearly the same size; there it is the less exact of the two.
    tolerance = 1e-5 if dtype == np.complex64 else 1e-12
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.float64],
                         ids=lambda t: jnp.dtype(t).name)
def test_reduce_precision_to_any_format(dtype):
  """Also to formats without mantissa, in which only powers of two are left."""
  rng = np.random.default_rng(0)
  values = rng.standard_normal(200) * 10.0 ** rng.integers(-6, 5, 200)
  values = np.append(values, [0, -0.0, np.nan, np.inf, -np.inf, 1, 1.5, 2, 3, -1.5, 6e4, -0.75])
  info = jnp.finfo(dtype)
  formats = [(e, m) for e in range(1, info.nexp + 1) for m in (0, 1, 2, info.nmant - 1, info.nmant)]
  with jax.enable_x64(True):
    compare(lambda x: [jax.lax.reduce_precision(x, *f) for f in formats], values.astype(dtype),
            exact=True)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda t: t.__name__)
def test_complex_to_bool(dtype):
  parts = [0, -0.0, 1, np.nan, np.inf, 1e-30]
  x = np.array([complex(a, b) for a in parts for b in parts], dtype)
  with jax.enable_x64(True):
    compare(lambda x: (jax.lax.convert_element_type(x, bool), x != 0, jnp.any(x), jnp.all(x)), x)
