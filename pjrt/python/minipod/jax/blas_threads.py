"""Tells the library how to set the threads of SciPy's BLAS, so that small calls of LAPACK use one thread."""

import ctypes
import functools
import os
import re

from minipod import foreign

# If the user sets one of these variables, minipod does not change the number of threads.
_CHOICES = ("OPENBLAS_NUM_THREADS", "OPENBLAS_DEFAULT_NUM_THREADS", "GOTO_NUM_THREADS",
            "OMP_NUM_THREADS")
# Names of OpenBLAS's functions in its builds, first that of SciPy's wheels.
_NAMES = ("scipy_openblas_{}", "openblas_{}", "scipy_openblas_{}64_", "openblas_{}64_")


@functools.cache
def share(prefix: str) -> None:
  """Does so for functions whose names begin with `prefix`.

  Does nothing if the user has chosen a number of threads, or if SciPy has another BLAS.
  """
  if any(os.environ.get(name) for name in _CHOICES):
    return
  from scipy.linalg import cython_lapack

  # The module that gives JAX the LAPACK functions is linked to the BLAS that contains them.
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
  """The largest number of threads that the library was built for."""
  config.restype = ctypes.c_char_p
  found = re.search(rb"MAX_THREADS=(\d+)", config())
  return int(found[1]) if found else 1 << 30
