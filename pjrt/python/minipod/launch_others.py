"""What other processes bring to the collectives of launches, if one process stands for all of its job.

They count as equal to this one.  But frameworks make a broadcast of a sum, to which all but the source bring zeros.
"""

import contextlib
import ctypes

from minipod import foreign

_EQUAL, _ZERO, _UNKNOWN = range(3)  # mp_others_t, sim/runtime/runs/shapes.h


@contextlib.contextmanager
def of_broadcast(is_source: bool):
  """A block that launches the sum of a broadcast; its result is unknown if another process is the source."""
  library = foreign.library()
  library.minipod_others_slot.restype = ctypes.c_void_p
  others = ctypes.c_int.from_address(library.minipod_others_slot())
  others.value = _ZERO if is_source else _UNKNOWN
  try:
    yield
  finally:
    others.value = _EQUAL
