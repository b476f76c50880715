"""Factorisations and systems of equations."""

import jax
import jax.numpy as jnp

from cases.case import jitted, normal, positive_definite


def triangular(matrix, right):
  return jax.scipy.linalg.solve_triangular(matrix, right, lower=True)


def many_small():
  return jnp.broadcast_to(positive_definite(8)(), (2048, 8, 8))


CASES = [
    jitted("cholesky_256", jnp.linalg.cholesky, positive_definite(256)),
    jitted("cholesky_many_8", jnp.linalg.cholesky, many_small),
    jitted("triangular_256", triangular, positive_definite(256), normal(256, 256)),
    jitted("lu_256", jax.scipy.linalg.lu_factor, normal(256, 256)),
    jitted("solve_256", jnp.linalg.solve, positive_definite(256), normal(256, 64)),
    jitted("solve_f64_256", jnp.linalg.solve, positive_definite(256, "float64"),
           normal(256, 64, dtype="float64"), x64=True),
    jitted("qr_256", jnp.linalg.qr, normal(256, 256)),
    jitted("eigh_128", jnp.linalg.eigh, positive_definite(128)),
    jitted("eigh_256", jnp.linalg.eigh, positive_definite(256)),
    jitted("svd_128", jnp.linalg.svd, normal(128, 128)),
    jitted("eigvals_64", jnp.linalg.eigvals, normal(64, 64)),
]
