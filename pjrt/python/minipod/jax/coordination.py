"""A client over several processes comes with what `jax.distributed.initialize()` gives."""

import atexit
import ctypes
import os
import sys

import jax
import minipod
from minipod import foreign
from minipod.jax import guard

_WHAT = "the coordination of processes"
_state = None  # JAX's: its client, and the number of this process and of all
_factories = None
_own = None  # our client in JAX's state
_has_hook = False
_add_exclude_path = None  # takes the beginning of the names of files that are not the user's


def find_state() -> None:
  global _factories, _state
  from jax._src import distributed
  from jax._src import xla_bridge

  state = distributed.global_state
  # Setting what JAX does not know would be useless.
  _ = (state.client, state.preemption_sync_manager, state.process_id, state.num_processes,
       state.service)
  _state, _factories = state, xla_bridge._backend_factories


def make_client(make):
  """The client that `make` makes, and what its process shall know of the others."""
  client = _make_alone(make)
  with guard.use(_WHAT):
    if _state is not None:
      _coordinate(client)
  return client


def _make_alone(make):
  """Makes a client that knows of no other processes, where it should not.

  JAX would hand a client of ours to its C++, and make its CPU devices those of all processes. With
  JAX's own client, where a process is alone, its C++ would watch for others all the same, and say
  after the process's end, five seconds later, that no other process is left.
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
  """Whether `jax.distributed.initialize()` was called by a process that is alone."""
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
    # JAX's own client waits at its end for the other processes. They may be waiting for a program
    # that this one will never run, so they hear of the end before: this hook comes before JAX's.
    atexit.register(_leave)
    _has_hook = True


def find_callers() -> None:
  """Looks for what tells JAX which lines are not the user's."""
  global _add_exclude_path
  from jaxlib import _jax

  _add_exclude_path = _jax.add_exclude_path


def ask_for_callers() -> None:
  """Has launches come with the line that they are called from, for messages about a wait or a check.

  The program itself has the line of its first call, and JAX keeps it for calls from others.
  """
  if _add_exclude_path is not None and jax.config.jax_send_traceback_to_runtime == "off":
    for package in (jax, minipod):
      _add_exclude_path(os.path.dirname(package.__file__) + os.sep)
    jax.config.update("jax_send_traceback_to_runtime", "on")


def _offer(process: int, count: int) -> None:
  """Puts a client of ours into JAX's state, where there is none; None: the processes do without."""
  global _own
  from minipod import coordination  # which few processes need, and JAX's start need not wait for

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
  has_failed = getattr(sys, "last_value", None) is not None  # the exception was not caught
  leave = foreign.library().minipod_leave_world
  leave.restype = ctypes.c_bool
  if leave(ctypes.c_bool(has_failed)):
    guard.teach("that a process has died", _end_without_meeting)


def _end_without_meeting() -> None:
  """Has JAX not wait at its end for all processes, one of which has died.

  It would take the time of its heartbeats (100 s) to notice, and then abort the process.
  """
  for name in ("preemption_sync_manager", "client", "service"):
    kept = getattr(_state, name)
    setattr(_state, name, None)
    if kept is not None:
      # Its destructor would wait, too.
      ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
