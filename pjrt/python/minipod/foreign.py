"""Registers foreign functions (XLA's FFI) with the library.

The library finds a function by the name that a program calls: one that was registered for platform
"minipod", or else one for "cpu", because the memory of minipod's devices is the host's.
"""

import ctypes
import threading

import minipod

_STAGES = ("instantiate", "prepare", "initialize", "execute")


class _Function(ctypes.Structure):  # minipod_foreign_function_t, pjrt/package/pjrt_foreign.h
  _fields_ = [("struct_size", ctypes.c_size_t),
              ("name", ctypes.c_char_p),
              ("platform", ctypes.c_char_p),
              *((stage, ctypes.c_void_p) for stage in _STAGES),
              ("untyped", ctypes.c_void_p),
              ("traits", ctypes.c_uint32),
              ("may_block", ctypes.c_uint32),
              ("before_use", ctypes.c_void_p)]


_BEFORE_USE = ctypes.CFUNCTYPE(None)
_kept = []  # callbacks that the library may call until the process ends
_lock = threading.Lock()
_library = None


class RegistrationError(ValueError):
  """The library has refused a registration; the message gives the reason."""


def library() -> ctypes.CDLL:
  """The plugin library, with the types of the functions that this module calls."""
  global _library
  with _lock:
    if _library is None:
      loaded = ctypes.CDLL(minipod.library_path())  # the file that JAX has opened, too
      loaded.minipod_register_foreign_function.argtypes = [ctypes.POINTER(_Function)]
      loaded.minipod_register_foreign_function.restype = ctypes.c_char_p
      loaded.minipod_register_foreign_type.argtypes = [
          ctypes.c_char_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p]
      loaded.minipod_register_foreign_type.restype = ctypes.c_char_p
      loaded.minipod_register_foreign_pool.argtypes = [
          ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
      loaded.minipod_register_foreign_pool.restype = ctypes.c_char_p
      _library = loaded
    return _library


def capsule_pointer(capsule) -> int:
  """The address in a PyCapsule, whatever its name."""
  api = ctypes.pythonapi
  name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
  pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
      ("PyCapsule_GetPointer", api))
  return pointer(capsule, name(capsule))


def register(name: str, fn, platform: str, api_version: int = 1, traits: int = 0, *,
             may_block: bool = False, before_use=None) -> None:
  """Registers a function.

  Args:
    name: what programs call it.
    fn: a PyCapsule with a handler, an address, or a dict of either by stage ("instantiate",
      "prepare", "initialize", "execute").
    platform: "minipod" or "cpu".
    api_version: 1 for a typed handler, 0 for a function of the interface before FFI.
    traits: XLA's bits.
    may_block: its calls may wait for Python's lock.
    before_use: called without arguments before a program that calls the function is compiled.

  Raises:
    RegistrationError: the library refuses it.
  """
  stages = fn if isinstance(fn, dict) else {"execute": fn}
  if unknown := set(stages) - set(_STAGES):
    raise RegistrationError(f"foreign function '{name}': unknown stages {sorted(unknown)}")
  addresses = {stage: value if isinstance(value, int) else capsule_pointer(value)
               for stage, value in stages.items() if value is not None}
  function = _Function(ctypes.sizeof(_Function), name.encode(), platform.encode())
  if api_version == 0:
    function.untyped = addresses.get("execute")
  else:
    for stage, address in addresses.items():
      setattr(function, stage, address)
  function.traits = int(traits)
  function.may_block = may_block
  if before_use is not None:
    callback = _BEFORE_USE(before_use)
    _kept.append(callback)
    function.before_use = ctypes.cast(callback, ctypes.c_void_p)
  _check(library().minipod_register_foreign_function(function))


def register_type(name: str, registration) -> None:
  """Registers the type of a state or of user data.

  Args:
    name: of the type, unique in the process.
    registration: a dict with the PyCapsules "type_id" (of an XLA_FFI_TypeId, which is given an id
      when it has none) and, if wanted, "type_info" (of an XLA_FFI_TypeInfo).

  Raises:
    RegistrationError: the library refuses it.
  """
  type_id = ctypes.c_int64.from_address(capsule_pointer(registration["type_id"]))
  info = registration.get("type_info")
  # An XLA_FFI_TypeInfo is its size, its extensions, and the function that deletes an object.
  deleter = (ctypes.c_void_p * 3).from_address(capsule_pointer(info))[2] if info is not None else None
  _check(library().minipod_register_foreign_type(name.encode(), type_id, deleter))


def register_pool(prefix: str, get, set, usual: int) -> None:
  """Declares that functions whose names begin with `prefix` call a library that has its own threads.

  While such a function works on small matrices, minipod sets the library's number of threads to 1.

  Args:
    prefix: of functions; only the first registration of a prefix counts.
    get: a function of a C library that returns the number of threads.
    set: a function that sets it.
    usual: the number that the library chooses by default; minipod does not change any other number.

  Raises:
    RegistrationError: the library refuses it.
  """
  _check(library().minipod_register_foreign_pool(
      prefix.encode(), ctypes.cast(get, ctypes.c_void_p), ctypes.cast(set, ctypes.c_void_p), usual))


def _check(refusal: bytes | None) -> None:
  if refusal is not None:
    raise RegistrationError(refusal.decode(errors="replace"))
