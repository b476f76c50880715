"""Compares rounding errors with those of JAX's CPU backend."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxlib import xla_client as xc

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
                                  "sinh", "cosh", "asin", "acosh", "atanh", "abs", "sign", "rsqrt"])
def test_complex_functions_of_special_values(name, dtype):
  """Results are NaN or infinite exactly if JAX's CPU backend's are; the others are close to them."""
  check_complex(getattr(jax.lax, name), dtype, complex_grid(SPECIAL, dtype))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["mul", "pow"])
def test_complex_functions_of_two_special_values(name, dtype):
  """Includes values whose products and powers are too large, and values whose difference is."""
  large = float(np.finfo(dtype).max) / 3
  values = complex_grid([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5, large, -large], dtype).ravel()
  if name == "pow":
    powers = complex_grid([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, -2.5, 0.3, 80.0], dtype).ravel()
    # XLA's angle is inaccurate, so only whole values can be compared.
    check_complex(jax.lax.pow, dtype, values[:, None], powers[None, :], as_a_whole=True)
  else:
    check_complex(jax.lax.mul, dtype, values[:, None], values[None, :], exact=True,
                  pods=product_as_xlas())


def test_complex_products_have_xlas_bits():
  """Each part is rounded as XLA rounds it, which fuses one of the two multiplications with the addition."""
  rng = np.random.default_rng(3)
  x, y = rng.standard_normal((2, 1000, 2)).view(np.complex128)[..., 0]
  with jax.enable_x64(True):
    for dtype in (np.complex64, np.complex128):
      check_complex(jax.lax.mul, dtype, x.astype(dtype), y.astype(dtype), exact=True,
                    pods=product_as_xlas())


@functools.cache
def product_as_xlas():
  """The product whose bits on a pod are those of XLA's product, which fuses one of the two terms of
  an imaginary part, ad + bc: the second, as minipod does, or since JAX 0.12 the first."""
  e = np.float32(2 ** -12)
  # The term that is not fused is rounded, so (1 + e)(1 + e) loses its e * e.
  found = on_cpu(jax.lax.mul, np.complex64(1 + e - 1j), np.complex64(1 + (1 + e) * 1j),
                 optimized=True)
  assert found.imag in (2 * e, 2 * e + e * e)
  return jax.lax.mul if found.imag == 2 * e else lambda x, y: jax.lax.mul(y, x)


def complex_grid(values, dtype):
  values = np.array(values)
  x = np.empty((values.size, values.size), dtype)
  x.real, x.imag = values[:, None], values[None, :]
  return x


def check_complex(f, dtype, *operands, exact=False, as_a_whole=False, pods=None):
  """Compares f, or `pods` in its place on the pod, with f on JAX's CPU backend."""
  operands = np.broadcast_arrays(*operands)
  with jax.enable_x64(True):
    found, wanted = on_pod(pods or f, *operands), on_cpu(f, *operands, optimized=exact)
  assert found.dtype == wanted.dtype
  # XLA subtracts exponentials of almost the same size, so its result is the less exact one.
  tolerance = 0 if exact else 1e-5 if dtype == np.complex64 else 1e-12
  for left, right in ((found.real, wanted.real), (found.imag, wanted.imag)):
    np.testing.assert_array_equal(np.isnan(left), np.isnan(right))
    if as_a_whole:
      np.testing.assert_array_equal(np.isinf(left), np.isinf(right))
    else:
      np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
  if as_a_whole:
    finite = np.isfinite(found) & np.isfinite(wanted)
    left, right = found[finite].astype(np.complex128), wanted[finite].astype(np.complex128)
    assert np.all(abs(left - right) <= 100 * tolerance * (abs(right) + 1))


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16, np.float32, np.float64],
                         ids=lambda t: jnp.dtype(t).name)
def test_reduce_precision_to_any_format(dtype):
  """Includes formats without a mantissa, which have only powers of two."""
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
    compare(lambda x: (x.astype(bool), x != 0, jnp.any(x), jnp.all(x)), x)


@pytest.mark.parametrize("platform", ["minipod", "cpu"])
def test_complex_converts_by_its_real_part(platform):
  x = np.array([complex(a, b) for a in (0, -0.0, 2, np.nan) for b in (0, 1, np.nan)], np.complex64)
  text = ("module { func.func public @main(%a: tensor<12xcomplex<f32>>) -> tensor<12xi1> { %0 = "
          "stablehlo.convert %a : (tensor<12xcomplex<f32>>) -> tensor<12xi1> "
          "return %0 : tensor<12xi1> } }")
  device = jax.devices(platform)[0]
  executable = device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())
  found, = executable.execute_sharded(
      [jax.device_put(x, device)]).disassemble_into_single_device_arrays()
  np.testing.assert_array_equal(found[0], x.real != 0)


# Whole and broken blocks of 16, one to five levels of them; many lines, and few long ones.
SCANS = [((10,), 0), ((16,), 0), ((17,), 0), ((1000,), 0), ((70000,), 0), ((3, 700), 1),
         ((300, 40), 0), ((4, 33, 20), 1)]


# Every shape in two types, and the others, which differ from them in how they are rounded, in a few.
SCANS_OF_TYPES = [(dtype, scan) for dtype, scans in (
    (jnp.bfloat16, SCANS), (np.float32, SCANS), (np.float16, SCANS[2:6:3]), (np.complex64, SCANS[3:8:4]))
    for scan in scans]


@pytest.mark.parametrize("dtype, scan", SCANS_OF_TYPES, ids=lambda v: str(
    v if isinstance(v, tuple) else jnp.dtype(v).name))
def test_cumulative_sums_have_xlas_bits(dtype, scan):
  shape, axis = scan
  x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
  factors = (1 + 0.001 * x.real.astype(np.float32)).astype(dtype)
  compare(lambda x, y: (jax.lax.cumsum(x, axis), jax.lax.cumsum(x, axis, reverse=True),
                        jax.lax.cumprod(y, axis), jax.lax.cumprod(y, axis, reverse=True)),
          x, factors, exact=True)


@pytest.mark.parametrize("shape", [(40, 40), (40, 1), (2, 3)])
def test_products_take_denormals_for_zeros(shape):
  """As in XLA: computing denormal numbers takes a processor a hundred times as long."""
  a = np.full((40, 40), 1e-40, np.float32)[:, :shape[0]]
  b = np.full(shape, 2.0, np.float32)
  assert not on_pod(lambda a, b: a @ b, a, b).any()
  tiny = np.full((40, shape[0]), 6e-8, np.float16)  # not in the type in which is computed
  assert on_pod(lambda a, b: a @ b, tiny, b.astype(np.float16)).all()
