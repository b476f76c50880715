"""Tells the library how many threads SciPy's BLAS has, so that small calls of LAPACK run on one."""

import ctypes
import functools
import os
import re

from minipod import foreign

# Each of them says how many threads OpenBLAS is to have: then that stays.
_CHOICES = ("OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "GOTO_NUM_THREADS",
            "OMP_NUM_THREADS")
# What builds of OpenBLAS call their functions; SciPy's wheels have the first.
_NAMES = ("scipy_openblas_{}", "openblas_{}", "scipy_openblas_{}64_", "openblas_{}64_")


@functools.cache
def share(prefix: str) -> None:
  """Does so for functions whose names begin with `prefix`.

  Nothing happens if the user has chosen a number, or SciPy has another BLAS.
  """
  if any(os.environ.get(name) for name in _CHOICES):
    return
  from scipy.linalg import cython_lapack

  # The module of which JAX has LAPACK's functions is linked to the BLAS that they are in.
  library = ctypes.CDLL(cython_lapack.__file__)
  for name in _NAMES:
    find = functools.partial(_find, library, name)
    get, set_, cores, config = map(find, ("get_num_threads", "set_num_threads", "get_num_procs",
                                          "get_config"))
    if None not in (get, set_, cores, config):
      foreign.register_pool(prefix, get, set_, min(cores(), _most_threads(config)))
      return


def _find(library: ctypes.CDLL, pattern: str, name: str):
  return getattr(library, pattern.format(name), None)


def _most_threads(config) -> int:
  """For how many threads the library was built."""
  config.restype = ctypes.c_char_p
  found = re.search(rb"MAX_THREADS=(\d+)", config())
  return int(found[1]) if found else 1 << 30
