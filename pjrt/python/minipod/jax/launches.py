"""Wraps JAX's calls of jitted functions: the library is called first, and then calls JAX.

The pod's clock (option `clock: virtual`) stops while JAX launches, copies or waits.  A call of a jitted function makes
an object for each result and device of the process, and deletes the objects of donated arrays.  On hundreds of devices
this takes milliseconds between calls of the library, but a host of the pod does it only for its few devices.  Dropping
an array also takes long, because the C library merges the memory of tens of thousands of objects.  The clock runs while
JAX traces, because tracing runs the user's own Python code.

On pods that are larger than the machine (`values: shapes`), minipod frees the objects of donated arrays.  JAX would
keep them, 0.7 KB per shard, as long as the script refers to the array, although the array can no longer be used: 36 MB
for an array on 50,000 devices.  MaxText's modules hold a hundred such arrays.

A thread that waits for an array wakes up only after several other threads, each of which needs a core.
"""

import ctypes
import functools
import gc

from minipod import foreign

# Fields of CPython's PyTypeObject.
_DEALLOC, _VECTORCALL_OFFSET, _FLAGS, _HAS_VECTORCALL = 48, 56, 168, 1 << 11
_ARGUMENTS_OFFSET = 1 << 63  # flag of a vectorcall; the other bits are the number of arguments
_DONATED = ctypes.PYFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p)
_kept = []  # objects that the library points to


@functools.cache
def stop_clock() -> None:
  """Wraps calls from now on, once per process; without the virtual clock, calls stay as they are."""
  _follow()
  _stop_clock()


def is_for_shapes() -> bool:
  """Whether there is a client whose arrays have no values."""
  asked = foreign.library().minipod_has_shapes_only
  asked.restype = ctypes.c_bool
  return asked()


@functools.cache
def forget_donated() -> None:
  """Frees donated arrays from now on, once per process, after calls that have donated very many shards."""
  _follow()
  _kept.append(_DONATED(_forget))
  foreign.library().minipod_follow_donations(_kept[-1])


def _forget(arguments, flags, names) -> None:
  """Deletes the arguments that a call has donated; Python code can no longer use them anyway."""
  import jax
  from jaxlib import _jax

  count = flags & ~_ARGUMENTS_OFFSET
  if names:
    count += len(ctypes.cast(names, ctypes.py_object).value)
  for leaf in jax.tree.leaves([ctypes.cast(arguments[i], ctypes.py_object).value for i in range(count)]):
    if type(leaf) is _jax.ArrayImpl and leaf.is_deleted():
      leaf.delete()


@functools.cache
def _follow() -> None:
  """Makes calls of all jitted functions go through the library."""
  from jaxlib import _jax

  library = foreign.library()
  kind = type(_jax_function())
  if not ctypes.c_ulong.from_address(id(kind) + _FLAGS).value & _HAS_VECTORCALL:
    raise TypeError(f"{kind.__name__} is not called by vectorcall")
  offset = ctypes.c_ssize_t.from_address(id(kind) + _VECTORCALL_OFFSET).value
  call_of = lambda function: ctypes.c_void_p.from_address(id(function) + offset)
  real = call_of(_jax_function()).value
  ours = ctypes.cast(library.minipod_launch, ctypes.c_void_p).value
  library.minipod_follow_launches.argtypes = [ctypes.c_void_p]
  library.minipod_follow_launches.restype = None
  library.minipod_follow_launches(real)

  def attend(function):
    if type(function) is kind and call_of(function).value == real:
      call_of(function).value = ours
    return function

  make = _jax.pjit
  _jax.pjit = functools.wraps(make)(lambda *args, **kwargs: attend(make(*args, **kwargs)))
  for thing in gc.get_objects():
    if type(thing) is kind:
      attend(thing)


def _stop_clock() -> None:
  """Wraps tracing, and functions in which JAX works for each device."""
  from jax._src import api
  from jax._src import pjit
  from jax._src.interpreters import pxla
  from jaxlib import _jax

  library = ctypes.PyDLL(None, handle=foreign.library()._handle)  # it keeps Python's lock
  stand, unstand = library.minipod_stand, library.minipod_unstand
  for function in (stand, unstand):
    function.argtypes, function.restype = [], ctypes.c_bool
  pjit._infer_params = _between(unstand, pjit._infer_params, stand)
  array = _jax.ArrayImpl
  drop = ctypes.c_void_p.from_address(id(array) + _DEALLOC)
  library.minipod_follow_drops.argtypes = [ctypes.c_void_p]
  library.minipod_follow_drops.restype = None
  library.minipod_follow_drops(drop.value)
  drop.value = ctypes.cast(library.minipod_drop, ctypes.c_void_p).value
  array.block_until_ready = _between(stand, array.block_until_ready, unstand)
  array._value = property(_between(stand, array._value.fget, unstand))
  for module, name in ((api.xc, "batched_block_until_ready"), (pxla, "batched_device_put")):
    setattr(module, name, _between(stand, getattr(module, name), unstand))
  # These functions cut a host array into a piece for each device.
  for type_of_value, handler in pxla.shard_arg_handlers.items():
    pxla.shard_arg_handlers[type_of_value] = _between(stand, handler, unstand)


def _jax_function():
  import jax

  return jax.jit(lambda: None)


def _between(before, function, after):
  """Calls one function before the wrapped one, and another, which undoes it, afterwards."""

  @functools.wraps(function, assigned=("__module__", "__name__", "__doc__"))
  def called(*args, **kwargs):
    if not before():
      return function(*args, **kwargs)
    try:
      return function(*args, **kwargs)
    finally:
      after()

  return called
