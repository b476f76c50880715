"""Matrices that make decompositions fail, by name, and measures of the results' errors."""

import numpy as np

N = 12

# LU decomposes these without rounding, so the pivots are LAPACK's: the first one of equal elements.
EXACT = ["zero", "ones", "one element", "identity", "permutation", "nilpotent",
         "nilpotent, other way", "every other", "Wilkinson", "triangle of ones", "Jordan"]


def wide(dtype):
  """The type in which numpy computes the expected result."""
  return np.complex128 if np.dtype(dtype).kind == "c" else np.float64


def epsilon(dtype):
  return float(np.finfo(dtype).eps)


def noise(generator, dtype, *shape):
  x = generator.standard_normal(shape)
  return x + 1j * generator.standard_normal(shape) if np.dtype(dtype).kind == "c" else x


def unitary(generator, dtype, n):
  return np.linalg.qr(noise(generator, dtype, n, n))[0]


def of_low_rank(dtype, m=N, n=N):
  """Matrices whose rank is unambiguous: (name, matrix)."""
  g = np.random.default_rng(9)
  a, few = noise(g, dtype, m, n), max(1, min(m, n) // 2)

  def changed(where, value):
    copy = a.copy()
    copy[where] = value
    return copy

  yield "zero", 0 * a
  yield "zero row", changed(m // 2, 0)
  yield "zero column", changed(np.s_[:, n // 2], 0)
  yield "doubled row", changed(-1, a[0])
  yield "doubled column", changed(np.s_[:, -1], a[:, 0])
  yield "twice a column", changed(np.s_[:, 0], 2 * a[:, -1])
  yield "rank 1", noise(g, dtype, m, 1) @ noise(g, dtype, 1, n)
  yield "half the rank", noise(g, dtype, m, few) @ noise(g, dtype, few, n)
  yield "ones", np.ones((m, n))
  yield "one element", np.eye(m, n, k=n - 1)
  yield "counting", np.arange(m * n).reshape(m, n)
  for i in range(50):
    yield f"0/1 of seed {i}", (g.random((m, n)) < 0.1 + 0.1 * (i % 5)).astype(float)
  for i in range(5):
    yield f"-1/0/1 of seed {i}", g.integers(-1, 2, (m, n))


def graded(dtype, m=N, n=N):
  """Sizes from 1e-30 to 1e30 and from one end of the type's range to the other."""
  g = np.random.default_rng(8)
  a, info = noise(g, dtype, m, n), np.finfo(dtype)
  for name, end in (("graded", 30), ("far", np.log10(float(info.max)) - 3)):
    rows, columns = 10 ** np.linspace(-end, end, m)[:, None], 10 ** np.linspace(-end, end, n)
    yield f"{name} rows", a * rows
    yield f"{name} rows, large first", a * rows[::-1]
    yield f"{name} columns", a * columns
    yield f"{name} columns, large first", a * columns[::-1]
    yield f"{name} both", a * columns**0.5 * rows**0.5
    yield f"{name} diagonal", np.eye(m, n) * columns
    yield f"{name} in disorder", a * g.permutation(rows)
  yield "one large", np.where(np.arange(m * n).reshape(m, n) == 0, float(info.max) / 16, a)
  yield "one small", np.where(np.arange(m * n).reshape(m, n) == 0, float(info.tiny), a)


def at_the_ends(dtype, m=N, n=N):
  """Large, small and denormal elements."""
  g = np.random.default_rng(7)
  a, info = noise(g, dtype, m, n), np.finfo(dtype)
  largest = float(info.max) / (8 * max(m, n))
  yield "largest", a / np.abs(a).max() * largest
  yield "all the same", np.full((m, n), largest)
  yield "square overflows", a * float(info.max) ** 0.7
  yield "square vanishes", a * float(info.tiny) ** 0.7
  yield "smallest normal", a * (float(info.tiny) * 64)


def denormal(dtype, m=N, n=N):
  a, info = noise(np.random.default_rng(6), dtype, m, n), np.finfo(dtype)
  yield "denormal", a * (float(info.smallest_subnormal) * 1000)
  yield "smallest denormal", np.sign(a.real) * float(info.smallest_subnormal)


def square(dtype, n=N):
  """Structures of square matrices."""
  g = np.random.default_rng(5)
  a, q, p = noise(g, dtype, n, n), unitary(g, dtype, n), unitary(g, dtype, n)
  shift, index = np.eye(n, k=1), np.arange(n)
  yield "random", a
  yield "identity", np.eye(n)
  yield "permutation", np.eye(n)[g.permutation(n)]
  yield "nilpotent", shift
  yield "nilpotent, other way", shift.T
  yield "random nilpotent", np.triu(a, 1)
  yield "every other", np.diag(index % 2)
  yield "unitary", q
  yield "repeated values", (q * np.repeat([3.0, 1.0, 0.0], [n // 3, n // 3, n - n // 3 * 2])) @ p
  yield "geometric values", (q * np.logspace(0, -20, n)) @ p
  yield "one small value", (q * np.where(index == 0, 1e-17, 1.0)) @ p
  yield "one large value", (q * np.where(index == 0, 1.0, 1e-17)) @ p
  yield "Kahan", 0.4 ** index[:, None] * (np.eye(n) - 0.9 * np.triu(np.ones((n, n)), 1))
  yield "Hilbert", 1 / (index[:, None] + index + 1)
  yield "Vandermonde", np.vander(np.linspace(-1, 1, n))
  yield "Jordan", 2 * np.eye(n) + shift
  yield "Jordan near zero", 1e-8 * np.eye(n) + shift
  yield "Wilkinson", np.eye(n) - np.tril(np.ones((n, n)), -1) + np.eye(n)[:, -1:] * np.eye(n)[-1:]
  yield "triangle of ones", np.triu(np.ones((n, n)))
  yield "two sizes", np.kron(np.diag([1.0, 1e-30]), a[:n // 2, :n // 2])


def stack(dtype, *families):
  """Names, and the matrices as one array [names, m, n] of `dtype`."""
  rows = [row for family in families for row in family]
  return [name for name, _ in rows], np.stack([a for _, a in rows]).astype(dtype)


def matrices(dtype, m=N, n=N):
  """Names, and all that have this shape as one array."""
  families = [of_low_rank(dtype, m, n), graded(dtype, m, n), at_the_ends(dtype, m, n)]
  if m == n == N:
    families.append(square(dtype, n))
  return stack(dtype, *families)


def brought_to_one(a):
  """a times a power of two that makes its largest element about 1, and the power's exponent."""
  a = np.asarray(a, wide(a.dtype))
  largest = np.abs(a).max(initial=0)
  exponent = -int(np.frexp(largest)[1]) if largest > 0 else 0
  return scaled(a, exponent), exponent


def scaled(a, exponent):
  half = exponent // 2
  return np.asarray(a, wide(a.dtype)) * 2.0**half * 2.0 ** (exponent - half)


def adjoint(a):
  return np.conj(np.swapaxes(a, -1, -2))


def error(found, wanted, size):
  """The norm of a difference relative to `size`; infinite if anything is not finite."""
  distance = np.linalg.norm(found - wanted)
  return distance / (size or 1.0) if np.isfinite(distance) else np.inf


def orthogonality(q):
  return error(adjoint(q) @ q, np.eye(q.shape[-1]), 1)


def check(names, errors, limit):
  """`errors`: for each name, a dict of measured errors."""
  bad = [f"{name}: {what} {value:.2g} > {limit:.2g}" for name, row in zip(names, errors)
         for what, value in row.items() if not value <= limit]
  assert not bad, f"{len(bad)} of {len(names)}: " + "; ".join(bad[:12])


def backward_errors(a, x, b):
  """|a x - b| relative to |a| |x| + |b|."""
  a, x, b = (np.asarray(y, wide(y.dtype)) for y in (a, x, b))
  size = np.abs(a) @ np.abs(x) + np.abs(b)
  return [{"solution": value} for value in (np.abs(a @ x - b) / size).max((-1, -2))]
