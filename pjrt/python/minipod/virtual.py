"""Virtual times, from the library (pjrt/package/pjrt_time.h)."""

import ctypes

from minipod import foreign

_TURN = 0.2  # seconds

_make_launches = None  # what `launch_first` got


def _library() -> ctypes.CDLL:
  library = foreign.library()
  library.minipod_time_report.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
  library.minipod_time_report.restype = ctypes.c_char_p
  library.minipod_time_report_json.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
  library.minipod_time_report_json.restype = ctypes.c_char_p
  library.minipod_time_free.argtypes = [ctypes.c_void_p]
  library.minipod_time_free.restype = None
  library.minipod_await_launches.argtypes = [ctypes.c_double]
  library.minipod_await_launches.restype = ctypes.c_int
  library.minipod_virtual_time.argtypes = []
  library.minipod_virtual_time.restype = ctypes.c_double
  return library


def launch_first(function) -> None:
  """Lets `function()` make the launches that a framework still has in threads of its own, before times are read."""
  global _make_launches
  _make_launches = function


def _await_launches(library: ctypes.CDLL) -> bool:
  """Waits, in real time, until the virtual times of all launches so far are known; False in a callback.

  In turns, so that the user can interrupt it.
  """
  if _make_launches is not None and library.minipod_virtual_time() >= 0 and library.minipod_await_launches(0) >= 0:
    _make_launches()
  while (known := library.minipod_await_launches(_TURN)) == 0:
    pass
  return known > 0


def _take(ask, library: ctypes.CDLL) -> str:
  text = ctypes.c_void_p()
  if refusal := ask(ctypes.byref(text)):
    raise RuntimeError(refusal.decode(errors="replace"))
  try:
    return ctypes.string_at(text).decode(errors="replace")
  finally:
    library.minipod_time_free(text)


def time_report() -> str:
  library = _library()
  _await_launches(library)
  return _take(library.minipod_time_report, library)


def time_report_json() -> str:
  library = _library()
  _await_launches(library)
  return _take(library.minipod_time_report_json, library)


def is_kept() -> bool:
  return _library().minipod_virtual_time() >= 0


def virtual_time() -> float:
  library = _library()
  if library.minipod_virtual_time() < 0:
    raise RuntimeError("no virtual times are kept: set MINIPOD_TIME=model before devices are used")
  if not _await_launches(library):
    raise RuntimeError("virtual_time() in a callback: the program is still running, so its time is not known yet;"
                       " call it where the program is launched")
  return library.minipod_virtual_time()
