"""What has to be there before JAX looks for its plugins, which it does at its first use of a device.

`_minipod_start` has this called when JAX has been imported; without it, it is late by that much.
"""

import os
import socket
import zlib

from minipod.jax import guard
from minipod.jax import names

# The variables by which launchers say how many processes there are.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_is_attended = False


def attend() -> None:
  """Prepares JAX, once per process, and where the user has not named other platforms."""
  global _is_attended
  if _is_attended or not guard.may_be_used():
    return
  _is_attended = True
  guard.teach("how processes of minipod find each other", _register_cluster)
  if names.wanted() == "tpu":
    guard.teach("to describe TPUs", names.describe_tpus)


def _number(variable: str) -> int | None:
  text = os.environ.get(variable, "")
  return int(text) if text.isdigit() else None


def _is_alone() -> bool:
  return all((_number(size) or 1) == 1 for size in _SIZES)


def _is_of_mpirun() -> bool:
  """Whether Open MPI has started all processes on this host; JAX knows the others, of its own."""
  size = _number("OMPI_COMM_WORLD_SIZE")
  return size is not None and size == _number("OMPI_COMM_WORLD_LOCAL_SIZE")


def _register_cluster() -> None:
  """Has `jax.distributed.initialize()` find out what it has not been told, as on a host of TPUs.

  JAX asks those that it knows first; they are for processes on several hosts.
  """
  from jax._src import clusters

  class MinipodCluster(clusters.ClusterEnv):
    """One process, or the processes that an mpirun has started on this host."""

    name = "minipod"
    _has_chosen_address = False

    @classmethod
    def is_env_present(cls) -> bool:
      cls._has_chosen_address = False
      return guard.may_be_used() and (_is_alone() or _is_of_mpirun())

    @classmethod
    def get_coordinator_address(cls, timeout_secs, override_coordinator_port=None) -> str:
      del timeout_secs
      cls._has_chosen_address = True
      return f"127.0.0.1:{override_coordinator_port or _choose_port()}"

    @classmethod
    def get_process_count(cls) -> int | None:
      # Who names a coordinator has others in mind: that they were not counted is an error.
      if not cls._has_chosen_address and _is_alone():
        return None
      return _number("OMPI_COMM_WORLD_SIZE") or 1

    @classmethod
    def get_process_id(cls) -> int:
      return _number("OMPI_COMM_WORLD_RANK") or 0


def _choose_port() -> int:
  """A port that is free, or that all processes of the job come to."""
  if _is_alone():
    with socket.socket() as probe:
      probe.bind(("127.0.0.1", 0))
      return probe.getsockname()[1]
  # Of the last of the ports that systems give to nobody who does not ask for them by number.
  job = os.environ.get("PMIX_NAMESPACE", "") + os.environ.get("OMPI_MCA_ess_base_jobid", "")
  return 61440 + zlib.crc32(job.encode()) % 4000
