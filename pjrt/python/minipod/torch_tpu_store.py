"""The store through which TorchTPU's processes arrange sends, with an order.

For `recv`, TorchTPU stores a descriptor of the receiving buffer; for `send`, it reads that descriptor, and it waits
until there is one.  The key of both depends on ranks and tag alone.  So with several sends between two ranks, a sender
reads the descriptor of an earlier receive, or that of a later one which has replaced it.  Here each receive of a key
has a number, and so has each send.

TorchTPU's `isend` waits in the same way.  So if two ranks each send before they receive in one `batch_isend_irecv`, as
in 1F1B schedules, neither continues.  Here the receives of a batch come first.

TorchTPU's `new_group` also exchanges keys among all ranks of the job: it returns only after each rank has created a
group that it is in itself.  A wait for that prints a line after a while.

Waits end with an error if a process of the job has failed, even if that process has nothing to do with them: keys do
not tell whose they are.
"""

import ctypes
import functools
import itertools
import sys
import time
import uuid

from minipod import foreign
from torch import distributed as dist
from torch.distributed import distributed_c10d

_DESCRIPTOR = "cross_host_transfer_descriptor:"
_GROUP = ":pg_sub:"
_NEWS_SECONDS = 1.5  # the news of a failure may come later than a lost connection
_PATIENCE_SECONDS = 10  # a send or new_group that has waited longer prints a line
_SENDING = "has waited in a send for its receiver"
_kept = []  # TorchTPU calls the stores by their C++ objects, which do not keep those of Python


def ordered(store: dist.Store) -> dist.Store:
  """This store with numbered sends; the same one if it cannot be put in place of its innermost store."""
  innermost = store
  while isinstance(innermost, dist.PrefixStore):
    innermost = innermost.underlying_store
  wrapped = _OrderedStore(innermost)
  if innermost is store:
    return wrapped
  probe = f"minipod/{uuid.uuid4().hex}"
  store.set(probe, b"")
  prefix = _find_prefix(innermost, probe)
  result = store if prefix is None else dist.PrefixStore(prefix, wrapped)
  is_same = result.check([probe])
  store.delete_key(probe)
  return result if is_same else store


def _find_prefix(store: dist.Store, probe: str) -> str | None:
  """What was put before this key in the store.  PyTorch has no function for it."""
  try:
    keys = store.list_keys()
  except (AttributeError, RuntimeError):
    return None
  return next((key[:-len(probe) - 1] for key in keys if key.endswith(f"/{probe}")), None)


def receive_first() -> None:
  """Lets `batch_isend_irecv` begin its receives before its sends; the results keep their order.  May be repeated."""
  original = distributed_c10d.batch_isend_irecv
  if getattr(original, "receives_first", False):
    return

  @functools.wraps(original)
  def batch_isend_irecv(p2p_op_list):
    order = sorted(range(len(p2p_op_list)), key=lambda i: getattr(p2p_op_list[i], "op", None) is dist.isend)
    works = original([p2p_op_list[i] for i in order])
    return [works[order.index(i)] for i in range(len(works))] if len(works) == len(order) else works

  batch_isend_irecv.receives_first = True
  dist.batch_isend_irecv = distributed_c10d.batch_isend_irecv = batch_isend_irecv


class _Names:
  """Gives keys of descriptors a number, and leaves others alone."""

  def __init__(self):
    self._counts = {}

  def next(self, key: str) -> str:
    return f"{key}#{next(self._counts.setdefault(key, itertools.count()))}" if _DESCRIPTOR in key else key


class _OrderedStore(dist.Store):
  """C++ calls these methods, too, on any thread."""

  def __init__(self, store: dist.Store, names: tuple[_Names, _Names] | None = None):
    super().__init__()
    self._store = store
    self._received, self._sent = names or (_Names(), _Names())
    self.set_timeout(store.timeout)
    _kept.append(self)

  def clone(self):
    return _OrderedStore(self._store.clone(), (self._received, self._sent))

  def set(self, key, value):
    self._store.set(self._received.next(key), value)

  def multi_set(self, keys, values):
    self._store.multi_set([self._received.next(key) for key in keys], values)

  def get(self, key):
    names = self._await([key])
    value = self._store.get(names[0])
    self._forget(names)
    return value

  def multi_get(self, keys):
    names = self._await(keys)
    values = self._store.multi_get(names)
    self._forget(names)
    return values

  def _await(self, keys):
    """The names of these keys, once they have values."""
    names = [self._sent.next(key) for key in keys]
    for name in names:
      if _DESCRIPTOR in name:
        self._await_receiver(name)
    if others := [name for name in names if _DESCRIPTOR not in name]:
      self.wait(others)
    return names

  def _forget(self, names):
    for name in names:
      if _DESCRIPTOR in name:
        self._store.delete_key(name)

  def wait(self, keys, timeout=None):
    try:
      if any(_GROUP in key for key in keys):
        self._watch_groups(keys)
      self._store.wait(keys, timeout or self.timeout)
    except RuntimeError:
      _raise_failure("this process waited for another one", _NEWS_SECONDS)
      raise

  def _watch_groups(self, keys):
    """Waits until there are values, or prints a line."""
    begin = time.monotonic()
    while not self._store.check(keys):
      if time.monotonic() - begin > _PATIENCE_SECONDS:
        print(f"minipod: rank {dist.get_rank()} has waited in new_group for {_PATIENCE_SECONDS} s: TorchTPU creates the"
              " n-th group of each rank together, so each rank of the job must be in one of these groups", file=sys.stderr)
        return
      time.sleep(0.005)

  def _await_receiver(self, name):
    """Polls, because PyTorch logs each wait of a TCPStore that times out."""
    begin = time.monotonic()
    pause, is_silent = 0.0001, True
    while not self._has(name):
      _raise_failure(f"this process {_SENDING}")
      waited = time.monotonic() - begin
      if is_silent and waited > _PATIENCE_SECONDS:
        is_silent = False
        print(f"minipod: rank {dist.get_rank()} {_SENDING} for {_PATIENCE_SECONDS} s: TorchTPU's send and isend return"
              " only after the receiver has called recv or irecv", file=sys.stderr)
      if waited > self.timeout.total_seconds():
        raise RuntimeError(f"rank {dist.get_rank()} {_SENDING} for {waited:.0f} s")
      time.sleep(pause)
      pause = min(2 * pause, 0.01)

  def _has(self, name):
    try:
      return self._store.check([name])
    except RuntimeError:
      _raise_failure(f"this process {_SENDING}", _NEWS_SECONDS)
      raise

  def add(self, key, amount):
    return self._store.add(key, amount)

  def check(self, keys):
    return self._store.check(keys)

  def compare_set(self, key, expected, desired):
    return self._store.compare_set(key, expected, desired)

  def delete_key(self, key):
    return self._store.delete_key(key)

  def num_keys(self):
    return self._store.num_keys()

  def list_keys(self):
    return self._store.list_keys()

  def append(self, key, value):
    return self._store.append(key, value)

  def has_extended_api(self):
    return self._store.has_extended_api()


def _raise_failure(what: str, seconds: float = 0) -> None:
  """Raises an error if a process of the job has failed, or fails within this time."""
  find = foreign.library().minipod_world_failure
  find.restype = ctypes.c_char_p
  end = time.monotonic() + seconds
  while (failure := find()) is None and time.monotonic() < end:
    time.sleep(0.01)
  if failure is not None:
    raise RuntimeError(f"{failure.decode(errors='replace').partition(': ')[2]}; {what}")
