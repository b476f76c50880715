"""Python's clocks for a script that sees the described pod (option `clock: virtual`).

`time.time`, `time.monotonic`, `time.perf_counter`, their `_ns` forms, and `datetime.datetime.now`
and `utcnow` then show the library's clock (sim/base/os/host_clock.h), also to those who have
imported them by name: the functions stay what they are, and do something else.  Python's own
library goes on with real time, because its waits (threads, queues, sockets, processes) end by the
system's clock; logging and timeit do not wait.  `time.sleep` sleeps as ever.
"""

import atexit
import ctypes
import datetime
import gc
import sys
import time

from minipod import foreign

_REAL_TIME = frozenset(sys.stdlib_module_names) - {"logging", "timeit", "cProfile", "profile"} | {
    "minipod"}
_NO_ARGUMENTS = 4  # METH_NOARGS
_METHOD = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)


class _Definition(ctypes.Structure):
  """CPython's PyMethodDef."""

  _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
              ("doc", ctypes.c_char_p)]


_kept = []  # what the interpreter has pointers to
_undo = []


def is_wanted() -> bool:
  """Whether a client has asked for it."""
  wanted = foreign.library().minipod_has_host_clock
  wanted.restype = ctypes.c_bool
  return wanted()


def follow() -> None:
  """Has the clocks show the library's until `restore`, or the process ends."""
  if _undo:
    return
  atexit.register(restore)
  now = ctypes.PYFUNCTYPE(ctypes.c_int64)(("minipod_host_clock", foreign.library()))
  # Of real time, by a clock that is not ours.
  since_epoch = time.clock_gettime_ns(time.CLOCK_REALTIME) - now()
  for name, offset, real in (("time", since_epoch, time.CLOCK_REALTIME),
                             ("monotonic", 0, time.CLOCK_MONOTONIC),
                             ("perf_counter", 0, time.CLOCK_MONOTONIC)):
    _replace(name, lambda offset=offset: (now() + offset) * 1e-9,
             lambda real=real: time.clock_gettime(real))
    _replace(name + "_ns", lambda offset=offset: now() + offset,
             lambda real=real: time.clock_gettime_ns(real))
  _replace_dates(lambda: (now() + since_epoch) * 1e-9)


def _is_real_time_for(frame) -> bool:
  name = frame.f_globals.get("__name__") if frame is not None else None
  return isinstance(name, str) and name.partition(".")[0] in _REAL_TIME


def _replace(name: str, virtual, real) -> None:
  """Has a function of `time` do something else, wherever it is."""
  function = getattr(time, name)
  definition = _Definition.from_address(
      ctypes.c_void_p.from_address(id(function) + object.__basicsize__).value)
  if definition.name != name.encode() or definition.flags != _NO_ARGUMENTS:
    raise TypeError(f"time.{name} is none of CPython's functions without arguments")
  original = definition.method

  def method(_self, _arguments):
    return real() if _is_real_time_for(sys._getframe(1)) else virtual()

  _kept.append(_METHOD(method))
  _undo.append(lambda: setattr(definition, "method", original))
  definition.method = ctypes.cast(_kept[-1], ctypes.c_void_p).value


def _replace_dates(seconds) -> None:
  """The same for dates, which cannot be done in the type's own functions: its names are others."""
  kind = datetime.datetime
  names = gc.get_referents(kind.__dict__)[0]
  originals = {name: names[name] for name in ("now", "utcnow")}

  def now(cls, tz=None):
    return cls.fromtimestamp(seconds(), tz)

  def utcnow(cls):
    return cls.fromtimestamp(seconds(), datetime.timezone.utc).replace(tzinfo=None)

  def put(methods):
    names.update(methods)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))

  for method in (now, utcnow):
    method.__qualname__, method.__doc__ = f"datetime.{method.__name__}", originals[
        method.__name__].__doc__
  _undo.append(lambda: put(originals))
  put({"now": classmethod(now), "utcnow": classmethod(utcnow)})


def restore() -> None:
  """Has the clocks show real time again."""
  while _undo:
    _undo.pop()()
