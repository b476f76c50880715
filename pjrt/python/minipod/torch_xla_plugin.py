"""The plugin that torch_xla loads for `PJRT_DEVICE=MINIPOD`, by the entry-point group `torch_xla.plugins`.

torch_xla asks a plugin how many processes `torch_xla.launch` should start.  It gives each of them its number before it
makes a client, and passes the client's options to the library.  By default one process has all devices of its pod, and
`torch_xla.launch` runs a thread for each.  With `MINIPOD_PROCESSES=N` it starts N processes, which share the pod's
devices.  These processes, and those of torchrun, find each other by torch_xla's coordinator.  Processes of an `mpirun`
find each other by MPI.
"""

import os
import socket
from typing import NamedTuple

import torch_xla.core.xla_env_vars as xenv
from torch_xla.experimental import plugins

import minipod
from minipod import clock


class _Place(NamedTuple):
  """The number of this process in its job, and its number on its host."""
  rank: int
  size: int
  local_rank: int
  local_size: int


# The variables in which MPI launchers set it.
_LAUNCHERS = (
    _Place("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
           "OMPI_COMM_WORLD_LOCAL_SIZE"),
    _Place("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


def _mpi_place() -> _Place | None:
  """The position that an MPI launcher has given this process; None without such a launcher."""
  if os.environ.get("MINIPOD_BOOTSTRAP") == "none":
    return None
  for names in _LAUNCHERS:
    if all(os.environ.get(name, "").isdigit() for name in names):
      return _Place(*(int(os.environ[name]) for name in names))
  return None


def _free_port() -> int:
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]


def _number(*names: str, default: int) -> int:
  """The first of these variables that is set."""
  return next((int(os.environ[name]) for name in names if name in os.environ), default)


def _torch_place() -> _Place:
  """The position as torch_xla's own coordinator reads it."""
  local_rank = _number(xenv.PJRT_LOCAL_PROCESS_RANK, "LOCAL_RANK", default=0)
  local_size = _number(xenv.PJRT_LOCAL_PROCESS_COUNT, "LOCAL_WORLD_SIZE", default=1)
  return _Place(_number("RANK", default=local_rank), _number("WORLD_SIZE", default=local_size),
                local_rank, local_size)


class DevicePlugin(plugins.DevicePlugin):
  """The platform MINIPOD of torch_xla."""

  def __init__(self):
    super().__init__()
    self._is_one_device = False  # world size 1, for debugging
    self._place = _Place(0, 1, 0, 1)

  def library_path(self) -> str:
    return minipod.library_path()

  def physical_chip_count(self) -> int:
    """The number of processes that `torch_xla.launch` starts."""
    count = _number("MINIPOD_PROCESSES", default=1)
    if count == 1 or _mpi_place() is not None or "WORLD_SIZE" in os.environ:
      return 1
    # The processes inherit the address of their coordinator; the first process starts it.
    os.environ.setdefault("XLA_COORDINATOR_PORT", str(_free_port()))
    return count

  def host_index(self) -> int:
    place = _mpi_place()
    if place is not None:
      return place.rank // place.local_size
    return _number("GROUP_RANK", default=0)

  def configure_single_process(self) -> None:
    if _mpi_place() is not None:
      return
    self._place = _torch_place()
    if self._place.size == 1:
      os.environ["MINIPOD_BOOTSTRAP"] = "none"
      self._is_one_device = "MINIPOD_TOPOLOGY" not in os.environ

  def configure_multiprocess(self, local_rank: int, local_world_size: int,
                             global_rank: int | None = None,
                             global_world_size: int | None = None) -> None:
    """torch_xla sets the first two variables; `RANK` and `WORLD_SIZE` determine the others."""
    place = _mpi_place()
    if place is not None:  # each process of the job may have started processes of its own
      os.environ[xenv.PJRT_LOCAL_PROCESS_RANK] = str(place.local_rank)
      os.environ[xenv.PJRT_LOCAL_PROCESS_COUNT] = str(place.local_size)
      return
    rank = _number("RANK", default=local_rank) if global_rank is None else global_rank
    size = (_number("WORLD_SIZE", default=local_world_size)
            if global_world_size is None else global_world_size)
    self._place = _Place(rank, size, local_rank, local_world_size)

  def client_create_options(self) -> dict:
    # torch_xla makes the client next.  Until then, and without a client, Python's clocks are the system's.
    if os.environ.get("MINIPOD_CLOCK") == "virtual":
      clock.follow()
    if self._is_one_device:
      return {"num_devices": 1}
    if self.requires_xla_coordinator():
      return {"node_id": self._place.rank, "num_nodes": self._place.size}
    return {}

  def requires_xla_coordinator(self) -> bool:
    return _mpi_place() is None and self._place.size > 1
