"""Labels by Python's stack, found in the library (pjrt/package/pjrt_frames.h) where the package has found them before.

Python's own attributes of frames are too slow for each op: `f_code`, `sys._getframe` and `id` call audit hooks, and
PyTorch imports a package that has one.
"""

import ctypes

from minipod import foreign

# Kinds of code, mp_frames_kind_t.
PASSED, LIBRARY, USER, MODULE, OTHER = range(1, 6)

_FUNCTIONS = ("PyEval_GetFrame", "PyFrame_GetBack", "PyFrame_GetCode", "PyFrame_GetLasti", "PyFrame_GetVarString",
              "PyErr_Clear", "Py_DecRef")


class _Python(ctypes.Structure):  # minipod_frames_python_t
  _fields_ = [("struct_size", ctypes.c_size_t), *((name, ctypes.c_void_p) for name in _FUNCTIONS)]


def _declare():
  library = ctypes.PyDLL(None, handle=foreign.library()._handle)  # it keeps Python's lock
  for name, arguments, result in (("begin", [ctypes.POINTER(_Python)], None),
                                  ("know", [ctypes.c_void_p, ctypes.c_int], None),
                                  ("name", [ctypes.c_void_p, ctypes.c_bool], None),
                                  ("find", [], ctypes.c_void_p),
                                  ("keep", [ctypes.c_void_p], None)):
    function = getattr(library, f"minipod_frames_{name}")
    function.argtypes, function.restype = arguments, result
  return library


_library = _declare()
know, name, find, keep = (getattr(_library, f"minipod_frames_{each}") for each in ("know", "name", "find", "keep"))


def begin() -> None:
  """From now on `find()` gives the labels that were kept; it gives None if Python is too old (3.11)."""
  if all(hasattr(ctypes.pythonapi, each) for each in _FUNCTIONS):
    functions = (ctypes.cast(getattr(ctypes.pythonapi, each), ctypes.c_void_p) for each in _FUNCTIONS)
    _library.minipod_frames_begin(_Python(ctypes.sizeof(_Python), *functions))
