"""Shows the other processes of a job that this one has ended before it had a client.

`jax.distributed.initialize()` connects processes long before each has a client, and JAX's service notices an end only
by missed heartbeats (100 s).  So each process writes a note to the job's key-value store, as the library does when it
joins (collectives/transport/store/presence.c).  Processes on the same host that wait for it check whether it still
exists.
"""

import functools
import os

from minipod.jax import guard

_MOST_NOTES = 100  # notes that earlier processes with this number may have left
_undo = None


def attend() -> None:
  """Makes `jax.distributed.initialize()` write a note, until `leave`."""
  global _undo
  from jax._src import distributed

  state = distributed.State
  initialize = state.initialize

  @functools.wraps(initialize)
  def attended(self, *args, **kwargs):
    result = initialize(self, *args, **kwargs)
    if self.client is not None and guard.may_be_used():
      guard.teach("that others see this process", _announce, self.client, self.process_id)
    return result

  state.initialize = attended
  _undo = lambda: setattr(state, "initialize", initialize)


def leave() -> None:
  """Restores JAX's function, which JAX does not allow to be called once it has backends."""
  global _undo
  if _undo is not None:
    _undo()
    _undo = None


def _announce(client, process: int) -> None:
  note = _note()
  for number in range(_MOST_NOTES):
    try:
      # JAX stores what the library writes there below the platform's name.
      client.key_value_set(f"{guard.PLATFORM}:minipod/joins/{process}/{number}", note)
      return
    except Exception as error:
      if "ALREADY_EXISTS" not in str(error):
        raise


def _note() -> str:
  """A note that identifies this process, which has not joined a pod yet."""
  with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
    start = file.read().rpartition(")")[2].split()[19]
  with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
    boot = file.read().strip()
  return f"{os.getpid()} {start} {os.stat('/proc/self/ns/pid').st_ino} {boot or '-'} 0 o -"
