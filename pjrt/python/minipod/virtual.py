"""Virtual times, as the library keeps them (pjrt/package/pjrt_time.h)."""

import ctypes

from minipod import foreign


def _library() -> ctypes.CDLL:
  library = foreign.library()
  library.minipod_time_report.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
  library.minipod_time_report.restype = ctypes.c_char_p
  library.minipod_time_report_json.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
  library.minipod_time_report_json.restype = ctypes.c_char_p
  library.minipod_time_free.argtypes = [ctypes.c_void_p]
  library.minipod_time_free.restype = None
  library.minipod_virtual_time.argtypes = []
  library.minipod_virtual_time.restype = ctypes.c_double
  return library


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
  return _take(library.minipod_time_report, library)


def time_report_json() -> str:
  library = _library()
  return _take(library.minipod_time_report_json, library)


def is_kept() -> bool:
  return _library().minipod_virtual_time() >= 0


def virtual_time() -> float:
  seconds = _library().minipod_virtual_time()
  if seconds < 0:
    raise RuntimeError("no virtual times are kept: set MINIPOD_TIME=model before devices are used")
  return seconds
