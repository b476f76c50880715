"""Python callbacks: programs on minipod's devices that call Python.

A program names a callable by a number.  The library calls `_call` on one of its caller threads, with an array of
numbers that describes the call (pjrt/package/pjrt_foreign.h).
"""

import atexit
import ctypes
import itertools
import os
import random
import threading
import time
import traceback
import weakref

import jax
import ml_dtypes
import numpy as np

from minipod import foreign

_CALLABLE_OF_ARRAYS, _CALLABLE_OF_BUFFERS = 0, 1  # kinds, as in pjrt/package/pjrt_foreign.h
_HEAD = 5
_TOKEN = 17
# XLA_FFI_DataType
_DTYPES = {
    number: np.dtype(dtype) for number, dtype in {
        1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16,
        8: np.uint32, 9: np.uint64, 10: np.float16, 11: np.float32, 12: np.float64,
        15: np.complex64, 16: ml_dtypes.bfloat16, 18: np.complex128, 19: ml_dtypes.float8_e5m2,
        20: ml_dtypes.float8_e4m3fn, 21: ml_dtypes.int4, 22: ml_dtypes.uint4,
        23: ml_dtypes.float8_e4m3b11fnuz, 24: ml_dtypes.float8_e5m2fnuz,
        25: ml_dtypes.float8_e4m3fnuz, 26: ml_dtypes.int2, 27: ml_dtypes.uint2,
        28: ml_dtypes.float8_e4m3, 29: ml_dtypes.float8_e3m4, 32: ml_dtypes.float4_e2m1fn,
        33: ml_dtypes.float8_e8m0fnu}.items()}

_I64 = ctypes.c_int64
_HOLD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class _Functions(ctypes.Structure):  # minipod_python_t
  _fields_ = [("struct_size", ctypes.c_size_t), ("hold", _HOLD), ("ensure", ctypes.c_void_p),
              ("save", ctypes.c_void_p), ("call", _CALL)]


# ---- Callables by number ----

# A stored program may be loaded by another process, in which its numbers mean nothing.
_numbers = itertools.count(random.SystemRandom().getrandbits(62))
_lock = threading.Lock()
# Callables that lowered programs hold, and callables of the library's programs with the number of these programs.
_known = weakref.WeakValueDictionary()
_held = {}
_library = None
_await_effects = None  # waits for the programs with effects that the calling thread has launched


class CallbackTable(list):
  """Replaces a module's list of callbacks while JAX lowers one of them.

  JAX numbers a callback by the length of that list.  The callback gets a number of minipod's instead.
  """

  def __init__(self, callbacks: list):
    super().__init__()
    self._callbacks = callbacks
    self._number = -1

  def append(self, callback) -> None:
    self._callbacks.append(callback)  # this keeps it alive as long as the lowered program
    with _lock:
      _drop_released()
      self._number = next(_numbers)
      _known[self._number] = callback

  def __len__(self) -> int:
    return self._number + 1


def _drop_released() -> None:
  """Releases the callables of programs that no longer exist.  The library cannot take Python's lock when a program
  ends.
  """
  numbers = (ctypes.c_uint64 * 64)()
  while (count := _library.minipod_python_take_released(numbers, len(numbers))) != 0:
    for number in numbers[:count]:
      _, users = _held[number]
      if users == 1:
        del _held[number]
      else:
        _held[number] = (_held[number][0], users - 1)


def _find(number: int):
  callback = _known.get(number)
  if callback is None:
    raise LookupError("the program calls back into a Python process that has ended: a program with"
                      " callbacks cannot be stored and loaded")
  return callback


# ---- Functions that the library calls ----


def _hold(number: int) -> int:
  try:
    with _lock:
      _drop_released()
      users = _held[number][1] if number in _held else 0
      _held[number] = (_find(number), users + 1)
    return 0
  except BaseException as error:
    return _fail(str(error))


def _call(address: int) -> int:
  what = "CpuCallback error calling callback"
  try:
    length = _I64.from_address(address).value
    numbers = (_I64 * length).from_address(address)[:]
    arrays = _views(numbers)
    inputs, outputs = arrays[:numbers[3]], arrays[numbers[3]:]
    if numbers[1] == _CALLABLE_OF_ARRAYS:
      _call_with_arrays(_find(numbers[2]), inputs, outputs)
    else:
      what = "Error when calling buffer callback"
      _call_with_buffers(_find(numbers[2]), inputs, outputs)
    # As on JAX's CPU backend, a callback ends after the callbacks of the programs that it has launched.
    _await_effects()
    return 0
  except BaseException as error:
    return _fail(f"{what}: {_describe(error)}")


def _views(numbers: list) -> list:
  """The arrays of a call, in the memory of the device; None for tokens."""
  arrays = []
  at = _HEAD
  while at < len(numbers):
    if numbers[at] == _TOKEN:
      arrays.append(None)
      at += 3
      continue
    dtype = _DTYPES[numbers[at]]
    shape = numbers[at + 3:at + 3 + numbers[at + 2]]
    size = dtype.itemsize
    for dim in shape:
      size *= dim
    memory = (ctypes.c_char * size).from_address(numbers[at + 1])
    arrays.append(np.ndarray(shape, dtype, memory))
    at += 3 + len(shape)
  return arrays


def _call_with_arrays(callback, inputs: list, outputs: list) -> None:
  # These are copies: the callable may keep its arrays, but the device's memory is reused after the call.
  results = callback(*[None if array is None else array.copy() for array in inputs])
  for array, result in zip(outputs, results, strict=True):
    if array is None:
      continue
    if result.shape != array.shape or result.dtype != array.dtype:
      raise RuntimeError(f"a callback returned {result.dtype}{list(result.shape)} where the program"
                         f" has {array.dtype}{list(array.shape)}")
    array[...] = result


def _call_with_buffers(callback, inputs: list, outputs: list) -> None:
  buffers = [Buffer(array, False) for array in inputs] + [Buffer(array, True) for array in outputs]
  callback(ExecutionContext(), *buffers)


def _fail(text: str) -> int:
  data = text.encode(errors="replace")
  _library.minipod_python_fail(data, len(data))
  return 1


def _describe(error: BaseException) -> str:
  """Formats the traceback as JAX's CPU backend does."""
  lines = ["Traceback (most recent call last):"]
  for frame, line in traceback.walk_tb(error.__traceback__):
    code = frame.f_code
    if code.co_filename != __file__:
      lines.append(f'  File "{code.co_filename}", line {line}, in {code.co_name}')
  return "\n".join([*lines, f"{type(error).__name__}: {error}"])


# ---- Arguments of buffer_callback's callables ----


class ExecutionContext:
  """Like `jax.experimental.buffer_callback.ExecutionContext`, which Python cannot make."""

  @property
  def stage(self):
    from jax.experimental import buffer_callback
    return buffer_callback.ExecutionStage.EXECUTE

  @property
  def stream(self):
    raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class Buffer:
  """Like `jax.experimental.buffer_callback.Buffer`: the memory of an operand or a result."""

  def __init__(self, array: np.ndarray, writeable: bool):
    self._array = array
    self.writeable = writeable
    self.dtype, self.ndim, self.shape = array.dtype, array.ndim, array.shape

  def __array__(self, dtype=None, copy=None) -> np.ndarray:
    view = self._array.view()
    view.flags.writeable = self.writeable
    return np.array(view, dtype=dtype, copy=copy)

  def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    del stream  # a buffer has none
    # A consumer that does not know versions cannot learn that the array is read-only.
    array = self._array if max_version is None else self.__array__()
    return array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)

  def __dlpack_device__(self):
    return self._array.__dlpack_device__()


# ---- Start and end ----

_functions = _Functions(
    ctypes.sizeof(_Functions), _HOLD(_hold),
    ctypes.cast(ctypes.pythonapi.PyGILState_Ensure, ctypes.c_void_p),
    ctypes.cast(ctypes.pythonapi.PyEval_SaveThread, ctypes.c_void_p), _CALL(_call))


def open_library(await_effects, forget_effects) -> None:
  """Lets the library call Python, until the interpreter ends.

  Args:
    await_effects: waits for the programs with effects that the calling thread has launched.
    forget_effects: makes JAX skip its wait for programs with effects when it ends.
  """
  global _await_effects, _library
  library = foreign.library()
  library.minipod_python_open.argtypes = [ctypes.POINTER(_Functions)]
  library.minipod_python_open.restype = ctypes.c_char_p
  library.minipod_python_fail.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
  library.minipod_python_fail.restype = None
  library.minipod_python_take_released.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
  library.minipod_python_take_released.restype = ctypes.c_size_t
  library.minipod_python_close.argtypes = [ctypes.c_double]
  library.minipod_python_close.restype = ctypes.c_uint32
  if refusal := library.minipod_python_open(_functions):
    raise foreign.RegistrationError(refusal.decode(errors="replace"))
  _await_effects, _library = await_effects, library
  library.minipod_python_pending.argtypes = []
  library.minipod_python_pending.restype = ctypes.c_uint32
  # atexit calls the function that was registered last first.  If an interrupt ends it, the other one continues.
  atexit.register(_give_up, os.getpid(), forget_effects)
  atexit.register(_close, os.getpid())


def _close(owner: int) -> None:
  """Waits for the programs that may still call Python.

  JAX waits at its own exit for programs with effects, and nothing can interrupt that wait.  So minipod waits before
  that, until Ctrl-C.
  """
  if os.getpid() != owner:
    return  # a forked child has no thread that could call Python
  try:
    while _library.minipod_python_pending() != 0:
      time.sleep(0.01)
    while _library.minipod_python_close(0.1) != 0:
      pass
  except KeyboardInterrupt:
    pass


def _give_up(owner: int, forget_effects) -> None:
  """Stops all calls: after this, the interpreter no longer exists."""
  if os.getpid() == owner:
    _library.minipod_python_close(0.0)
    if _library.minipod_python_pending() != 0:
      forget_effects()
