"""Makes Python's clocks show the time of the described pod (option `clock: virtual`).

`time.time`, `time.monotonic`, `time.perf_counter`, their `_ns` forms, and `datetime.datetime.now` and `utcnow` then
show the library's clock (sim/base/os/host_clock.h).  The function objects stay the same and only their C code is
replaced, so modules that have imported them by name see the pod's time, too.

Python's own library keeps real time, because its waits (threads, queues, sockets, processes) end by the system's
clock.  logging and timeit do not wait, so they show the pod's time.  In other threads than the main one, `time.sleep`
works as always.
"""

import atexit
import ctypes
import datetime
import gc
import os
import sys
import threading
import time

from minipod import foreign

_REAL_TIME = frozenset(sys.stdlib_module_names) - {"logging", "timeit", "cProfile", "profile"} | {
    "minipod"}
_NO_ARGUMENTS = 4  # METH_NOARGS
_ONE_ARGUMENT = 8  # METH_O
_METHOD = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)
_ASKED = ctypes.PYFUNCTYPE(ctypes.c_double, ctypes.py_object)
_MOST = 1e9  # seconds; a longer sleep never ends
_SHORTEST_TURN = 1e-4  # seconds; a thread that wakes up takes a tenth of that to start
_A_MOMENT = 1e-3  # seconds that each sleep takes in real time, so that other threads can run


class _Definition(ctypes.Structure):
  """CPython's PyMethodDef."""

  _fields_ = [("name", ctypes.c_char_p), ("method", ctypes.c_void_p), ("flags", ctypes.c_int),
              ("doc", ctypes.c_char_p)]


_kept = []  # objects that the interpreter points to
_undo = []
_usual_turn = None  # original switch interval in seconds, while a shorter one is set


def is_wanted() -> bool:
  """Whether a client has requested the virtual clock."""
  wanted = foreign.library().minipod_has_host_clock
  wanted.restype = ctypes.c_bool
  return wanted()


def follow() -> None:
  """Makes the clocks show the library's time, until `restore` or the end of the process."""
  if _undo:
    return
  atexit.register(restore)
  now = ctypes.PYFUNCTYPE(ctypes.c_int64)(("minipod_host_clock", foreign.library()))
  # Real time, from a clock that minipod does not replace.
  since_epoch = time.clock_gettime_ns(time.CLOCK_REALTIME) - now()
  for name, offset, real in (("time", since_epoch, time.CLOCK_REALTIME),
                             ("monotonic", 0, time.CLOCK_MONOTONIC),
                             ("perf_counter", 0, time.CLOCK_MONOTONIC)):
    _replace(name, lambda offset=offset: (now() + offset) * 1e-9,
             lambda real=real: time.clock_gettime(real))
    _replace(name + "_ns", lambda offset=offset: now() + offset,
             lambda real=real: time.clock_gettime_ns(real))
  _replace_dates(lambda: (now() + since_epoch) * 1e-9)
  _replace_sleep()


def _is_real_time_for(frame) -> bool:
  name = frame.f_globals.get("__name__") if frame is not None else None
  return isinstance(name, str) and name.partition(".")[0] in _REAL_TIME


def _definition_of(name: str, flags: int) -> _Definition:
  """The C function of a function of `time`, found by its name."""
  definition = _Definition.from_address(
      ctypes.c_void_p.from_address(id(getattr(time, name)) + object.__basicsize__).value)
  if definition.name != name.encode() or definition.flags != flags:
    raise TypeError(f"time.{name} is none of CPython's functions with these arguments")
  return definition


def _replace(name: str, virtual, real) -> None:
  """Replaces the C function of a function of `time` that takes no arguments."""
  definition = _definition_of(name, _NO_ARGUMENTS)
  original = definition.method

  def method(_self, _arguments):
    return real() if _is_real_time_for(sys._getframe(1)) else virtual()

  _kept.append(_METHOD(method))
  _undo.append(lambda: setattr(definition, "method", original))
  definition.method = ctypes.cast(_kept[-1], ctypes.c_void_p).value


def _replace_sleep() -> None:
  """The same for `sleep`.  It can raise exceptions, which a ctypes callback cannot, so the library calls both
  functions.
  """
  definition = _definition_of("sleep", _ONE_ARGUMENT)
  original = definition.method
  process = os.getpid()

  def asked(seconds):
    """How long to sleep on the pod's clock.  Negative: sleep in real time, or let Python raise its error."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < _MOST:
      return -1
    is_main = threading.get_ident() == threading.main_thread().ident and os.getpid() == process
    return seconds if is_main and not _is_real_time_for(sys._getframe(1)) else -1

  sleep = foreign.library().minipod_sleep
  follow_sleep = foreign.library().minipod_follow_sleep
  follow_sleep.argtypes = [ctypes.c_void_p, _ASKED, ctypes.py_object]
  follow_sleep.restype = None
  _kept.extend([_ASKED(asked), _A_MOMENT])
  follow_sleep(original, *_kept[-2:])
  _undo.append(lambda: setattr(definition, "method", original))
  definition.method = ctypes.cast(sleep, ctypes.c_void_p).value


def _replace_dates(seconds) -> None:
  """The same for dates.  The type keeps its C methods, but its names `now` and `utcnow` refer to these functions."""
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


def share_lock(num_hosts: int) -> None:
  """Shortens the turns of threads with Python's lock in a process that stands in for several hosts of the pod.

  In such a process, a thread that prepares data does the work of the loader threads of all these hosts.  The script's
  main thread, whose time the clock shows, waits for the lock until a turn ends.  With turns that are shorter by the
  number of hosts, the main thread waits as long as on one host.
  """
  global _usual_turn
  if _usual_turn is not None:  # set by an earlier client
    return
  _usual_turn = sys.getswitchinterval()
  sys.setswitchinterval(min(_usual_turn, max(_usual_turn / max(num_hosts, 1), _SHORTEST_TURN)))
  _undo.append(_share_no_lock)


def _share_no_lock() -> None:
  global _usual_turn
  sys.setswitchinterval(_usual_turn)
  _usual_turn = None


def restore() -> None:
  """Makes the clocks show real time again."""
  while _undo:
    _undo.pop()()
