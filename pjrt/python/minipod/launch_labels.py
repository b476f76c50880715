"""Labels of launches (pjrt/package/pjrt_launch.h): where the script makes them, for frameworks that do not say it."""

import ctypes

from minipod import foreign

_MOST = 1 << 14  # texts, which are kept until the process ends

_known: dict[str, int] = {}


def _library() -> ctypes.CDLL:
  library = foreign.library()
  library.minipod_label_slot.argtypes = []
  library.minipod_label_slot.restype = ctypes.c_void_p
  library.minipod_label.argtypes = [ctypes.c_char_p]
  library.minipod_label.restype = ctypes.c_void_p
  return library


def slot():
  """The process's label: `slot().value = address(text)`; 0: none.  A store takes some 50 ns."""
  return ctypes.c_size_t.from_address(_library().minipod_label_slot())


def address(text: str) -> int:
  """The library's copy of a text.  Further texts than the library keeps are all "(others)"."""
  if (known := _known.get(text)) is not None:
    return known
  if len(_known) >= _MOST and text != "(others)":
    return address("(others)")
  _known[text] = _library().minipod_label(text.replace("\0", "").encode(errors="replace")) or 0
  return _known[text]
