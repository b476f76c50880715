"""Lets one process of PyTorch stand for all ranks of its job (option `bootstrap`: absent).

The other ranks do not exist, and count as equal to this one: they reach each barrier, create each process group and
put into the store what this one does.  The library times collectives of TPU tensors accordingly, and computes none.
Collectives of CPU tensors, such as those of objects, have the results that they have if all ranks bring the same.
TorchTPU makes a broadcast of a sum, to which the other ranks bring zeros.  So its result is what this rank has if it is
the source, and unknown otherwise.
What only another rank could tell is refused.
"""

import ctypes
import functools
import importlib
import re

import torch
from torch.distributed import distributed_c10d

from minipod import foreign, launch_others

# TorchTPU exchanges values by nodes: a node takes a number from the count, and puts the entries of its ranks under that
# number. The node of rank 0 makes a table of them, which the others read.
_COUNT = re.compile(r"nlag:.*:count$")
_NODE = re.compile(r"nlag:(.*):\d+:\d+:node:0$")
_WHY = "this process stands for all ranks of its job (MINIPOD_BOOTSTRAP=absent)"


_stores = []  # PyTorch's C++ code keeps only its side of them
_ranks: list[int] = []  # of the group that is being created


def _refuse(what: str):
  raise RuntimeError(f"minipod: {what}, but {_WHY}, and the others do not exist")


class _Place(ctypes.Structure):  # minipod_place_t, pjrt/package/pjrt_world.h
  _fields_ = [("id", ctypes.c_int32), ("coords", ctypes.c_int32 * 3), ("core", ctypes.c_int32),
              ("slice", ctypes.c_int32)]


def _sized(data: bytes) -> bytes:
  return b"%d:%s" % (len(data), data)


def _place_of(rank: int, own: bytes) -> bytes:
  place = _Place()
  if not foreign.library().minipod_place_of(rank, ctypes.byref(place)):
    _refuse(f"no device of the pod belongs to rank {rank}")
  numbers = (place.id, rank, *place.coords, place.core, place.slice)
  return ",".join(map(str, numbers)).encode() + b"," + own.rpartition(b",")[2]


def _groups(ranks: list[int], size: int) -> list[list[int]]:
  """The groups that the ranks of a mesh are divided into, of which `ranks` is one: the others are as far apart."""
  groups, is_free = [], [True] * size
  for first in range(size):
    if not is_free[first]:
      continue
    group = [first + rank - min(ranks) for rank in ranks]
    if max(group) >= size or not all(is_free[rank] for rank in group):
      _refuse(f"the groups of the other ranks do not follow from the group {ranks}")
    for rank in group:
      is_free[rank] = False
    groups.append(group)
  return groups


def _place_in_groups(size: int, own: bytes) -> list[bytes]:
  """For each rank: its place in its group, its number and the name of its group."""
  name, values = own[own.rindex(b","):].partition(b":")[2], [b""] * size
  for number, group in enumerate(_groups(_ranks or list(range(size)), size)):
    of_group = name if group == _ranks else b"%s%d" % (name, number)
    for place, rank in enumerate(group):
      values[rank] = b"%d,%d:%s" % (place, rank, of_group)
  return values


def _speak_for_all(kept: dict, key: str, name: str, size: int) -> None:
  """Adds the values of all ranks to that of this rank, which it has put under the key."""
  own = kept[key]
  if name.startswith("world_topo"):
    values = [_place_of(rank, own) for rank in range(size)]
  elif name.startswith("pg_sub"):
    values = _place_in_groups(size, own)
  else:
    return
  entries = [_sized(_sized(f"{name}:{rank}".encode()) + value) for rank, value in enumerate(values)]
  if own not in entries:
    _refuse(f"this version of TorchTPU exchanges '{name}' in another way ({own!r})")
  kept[key] = b"".join(entries)
  kept[key.removesuffix("node:0") + "table"] = b"OK\n" + b"".join(map(_sized, values))


class _Store(torch.distributed.Store):
  """A store in which the other ranks never put anything that this one does not."""

  def __init__(self, size: int):
    super().__init__()
    self._size, self._kept = size, {}
    _stores.append(self)

  def set(self, key, value):
    self._kept[key] = _bytes(value)
    if found := _NODE.search(key):
      _speak_for_all(self._kept, key, found[1], self._size)

  def get(self, key):
    if key not in self._kept:
      _refuse(f"only another rank would put '{key}' into the store")
    return self._kept[key]

  def multi_get(self, keys):
    return [self.get(key) for key in keys]

  def add(self, key, amount):
    """All ranks add the same; but this one is the only node."""
    ranks = 1 if _COUNT.search(key) else self._size
    self._kept[key] = str(int(self._kept.get(key, b"0")) + ranks * amount).encode()
    return int(self._kept[key])

  def compare_set(self, key, expected, desired):
    if key in self._kept and self._kept[key] == _bytes(expected) or key not in self._kept and not expected:
      self.set(key, desired)
    return self._kept.get(key, _bytes(expected))

  def check(self, keys):
    return all(key in self._kept for key in keys)

  def wait(self, keys, timeout=None):
    for key in keys:
      self.get(key)

  def delete_key(self, key):
    return self._kept.pop(key, None) is not None

  def num_keys(self):
    return len(self._kept)

  def set_timeout(self, timeout):
    pass

  getNumKeys, deleteKey = num_keys, delete_key  # as C++ calls them


def _bytes(text) -> bytes:
  return text.encode() if isinstance(text, str) else bytes(text)


class _Gloo:
  """Stands for the backend of CPU tensors."""

  def __new__(cls, store, rank, size, *args, **kwargs):
    kind = torch._C._distributed_c10d.FakeProcessGroup
    options = kind.Options()
    options.simulate_uniform_ranks = True
    return kind._create_internal(rank, size, options)


def _replace(name: str, function) -> None:
  """Replaces a function of torch.distributed."""
  for module in (distributed_c10d, torch.distributed):
    if hasattr(module, name):
      setattr(module, name, function)


def _refuse_function(name: str, what: str) -> None:
  original = getattr(distributed_c10d, name)

  @functools.wraps(original)
  def refuse(*args, **kwargs):
    _refuse(what)

  _replace(name, refuse)


def _note_ranks() -> None:
  original = distributed_c10d._new_process_group_helper

  @functools.wraps(original)
  def helper(group_size, group_rank, global_ranks_in_group, *args, **kwargs):
    _ranks[:] = global_ranks_in_group
    return original(group_size, group_rank, global_ranks_in_group, *args, **kwargs)

  _replace("_new_process_group_helper", helper)


def _know_broadcasts() -> None:
  """Calls of broadcasts tell whether this rank is the source, and wait for their launches."""
  from minipod.torch_tpu import start

  start.launch_in_order()

  def follow(name, is_source):
    original = getattr(torch.distributed, name)

    @functools.wraps(original)
    def broadcast(*args, **kwargs):
      with launch_others.of_broadcast(is_source(*args, **kwargs)):
        return original(*args, **kwargs)

    _replace(name, broadcast)

  def is_source(tensor, src=None, group=None, async_op=False, group_src=None):
    group = group or distributed_c10d._get_default_group()
    return torch.distributed.get_rank(group) == group_src if group_src is not None else src == torch.distributed.get_rank()

  follow("broadcast", is_source)
  follow("_broadcast_coalesced", lambda group, tensors, size, src=0: torch.distributed.get_rank(group) == src)


def _refuse_other_sources() -> None:
  """Objects come from the source, which may be another rank."""
  for name, place in (("broadcast_object_list", 1), ("scatter_object_list", 2)):
    original = getattr(distributed_c10d, name)

    def follow(*args, name=name, place=place, original=original, **kwargs):
      source = args[place] if len(args) > place else kwargs.get("src")
      group = args[place + 1] if len(args) > place + 1 else kwargs.get("group")
      if kwargs.get("group_src") is not None:
        source = torch.distributed.get_global_rank(group, kwargs["group_src"]) if group else kwargs["group_src"]
      source = 0 if source is None else source
      if source != torch.distributed.get_rank():
        _refuse(f"torch.distributed.{name} has the objects of rank {source}")
      return original(*args, **kwargs)

    _replace(name, functools.wraps(original)(follow))


def begin() -> None:
  """Before a process group is created."""
  # The package has a function of this name, too.
  rendezvous = importlib.import_module("torch.distributed.rendezvous")
  rendezvous._create_c10d_store = lambda host, port, rank, size, *args, **kwargs: _Store(size)
  _replace("_store_based_barrier", lambda *args, **kwargs: None)
  _replace("ProcessGroupGloo", _Gloo)
  _note_ranks()
  for name in ("recv", "irecv", "recv_object_list"):
    _refuse_function(name, f"torch.distributed.{name} waits for another rank")
  _know_broadcasts()
  _refuse_other_sources()
