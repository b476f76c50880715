"""Gives a client over several processes what `jax.distributed.initialize()` provides."""

import atexit
import ctypes
import os
import sys

import jax
import minipod
from minipod import foreign
from minipod.jax import guard

_WHAT = "the coordination of processes"
_state = None  # JAX's state: its client, the number of this process, and the number of processes
_factories = None
_own = None  # the client that minipod has put into JAX's state
_has_hook = False
_add_exclude_path = None  # takes prefixes of the names of files that are not the user's


def find_state() -> None:
  global _factories, _state
  from jax._src import distributed
  from jax._src import xla_bridge

  state = distributed.global_state
  # If JAX does not know the settings, setting them is useless.
  _ = (state.client, state.preemption_sync_manager, state.process_id, state.num_processes,
       state.service)
  _state, _factories = state, xla_bridge._backend_factories


def make_client(make):
  """Makes a client with `make`, and passes it what this process must know about the others."""
  client = _make_alone(make)
  with guard.use(_WHAT):
    if _state is not None:
      _coordinate(client)
  return client


def _make_alone(make):
  """Hides JAX's distributed client while `make` runs, if it is minipod's own or the process is alone.

  JAX would pass minipod's client to C++ code, and count the CPU devices of all processes.  If the process is alone, the
  C++ code of JAX's client would still watch for other processes, and report that none is left five seconds after the
  process has ended.
  """
  is_own = _own is not None and _state.client is _own
  if not is_own and not _has_nobody():
    return make()
  kept = _state.client, _state.process_id, _state.num_processes
  _state.client, _state.process_id, _state.num_processes = None, 0, 1
  try:
    return make()
  finally:
    _state.client, _state.process_id, _state.num_processes = kept


def _has_nobody() -> bool:
  """Whether a process that is alone has called `jax.distributed.initialize()`."""
  return _state is not None and _state.client is not None and _state.num_processes == 1


def _coordinate(client) -> None:
  global _has_hook
  count = 1 + max(device.process_index for device in client.devices())
  if count == 1 or _state.client is _own is not None:
    return
  ask_for_callers()
  if _state.client is None:
    _offer(client.process_index(), count)
  elif not _has_hook:
    # At exit, JAX's own client waits for the other processes.  They may be waiting for a program that this one will
    # never run.  This hook runs before JAX's and tells them that this process ends.
    atexit.register(_leave)
    _has_hook = True


def find_callers() -> None:
  """Looks up how JAX decides which lines are not the user's."""
  global _add_exclude_path
  from jaxlib import _jax

  _add_exclude_path = _jax.add_exclude_path


def ask_for_callers() -> None:
  """Passes the line of the call to each launch, for messages about a wait or a check.

  The program itself has the line of its first call, and JAX reuses the program for calls from other lines.
  """
  if _add_exclude_path is not None and jax.config.jax_send_traceback_to_runtime == "off":
    for package in (jax, minipod):
      _add_exclude_path(os.path.dirname(package.__file__) + os.sep)
    jax.config.update("jax_send_traceback_to_runtime", "on")


def _offer(process: int, count: int) -> None:
  """Puts a client of minipod into JAX's state if it has none; None: the processes go without."""
  global _own
  from minipod import coordination  # few processes need it, and JAX's start need not wait for it

  own = coordination.make_client(process, count, jax.errors.JaxRuntimeError)
  if own is None:
    return
  _own = own
  registration = _factories["cpu"]
  make_cpu = registration.factory
  registration.factory = lambda: _make_alone(make_cpu)
  _state.client, _state.preemption_sync_manager = own, coordination.NoPreemption()
  _state.process_id, _state.num_processes = process, count


def _leave() -> None:
  has_failed = getattr(sys, "last_value", None) is not None  # the script did not catch the exception
  leave = foreign.library().minipod_leave_world
  leave.restype = ctypes.c_bool
  if leave(ctypes.c_bool(has_failed)):
    guard.teach("that a process has died", _end_without_meeting)


def _end_without_meeting() -> None:
  """Makes JAX skip its wait for all processes at exit after one of them has died.

  JAX would notice the death only by missed heartbeats (100 s), and then abort the process.
  """
  for name in ("preemption_sync_manager", "client", "service"):
    kept = getattr(_state, name)
    setattr(_state, name, None)
    if kept is not None:
      # Its destructor would wait, too.
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
