"""What has to be there before JAX looks for its plugins, which it does at its first use of a device.

`_minipod_start` has this called when JAX has been imported; without it, it is late by that much.
"""

from minipod.jax import attention
from minipod.jax import doors
from minipod.jax import guard
from minipod.jax import modules
from minipod.jax import names
from minipod.jax import presence

_is_attended = False


def attend() -> None:
  """Prepares JAX, once per process, and where the user has not named other platforms."""
  global _is_attended
  if _is_attended or not guard.may_be_used():
    return
  _is_attended = True
  guard.teach("how processes of minipod find each other", _register_cluster)
  guard.teach("to tell processes of each other", presence.attend)
  guard.teach("to find cuDNN on described GPUs", attention.find_cudnn)
  guard.teach("to wait for flax.nnx", modules.name_layers)
  if names.wanted() == "tpu":
    guard.teach("to describe TPUs", names.describe_tpus)


def leave() -> None:
  """Takes back what is of use only before JAX has a backend."""
  attention.leave()
  presence.leave()


def _register_cluster() -> None:
  """Has `jax.distributed.initialize()` find out what it has not been told, as on a host of TPUs.

  JAX asks those that it knows first.
  """
  from jax._src import clusters

  class MinipodCluster(clusters.ClusterEnv):
    """What a launcher says of the processes in variables, or one process alone."""

    name = "minipod"
    _place: doors.Place | None = None  # in a job; None: alone
    _has_chosen_address = False

    @classmethod
    def is_env_present(cls) -> bool:
      cls._has_chosen_address = False
      if not guard.may_be_used():
        return False
      cls._place = doors.find()
      return cls._place is not None or not doors.has_other_processes()

    @classmethod
    def get_coordinator_address(cls, timeout_secs, override_coordinator_port=None) -> str:
      del timeout_secs
      cls._has_chosen_address = True
      address = cls._place.address if cls._place else None
      host, _, port = (address or f"127.0.0.1:{doors.free_port()}").rpartition(":")
      return f"{host}:{override_coordinator_port or port}"

    @classmethod
    def get_process_count(cls) -> int | None:
      # Who names a coordinator has others in mind: that they were not counted is an error.
      alone = 1 if cls._has_chosen_address else None
      return cls._place.count if cls._place else alone

    @classmethod
    def get_process_id(cls) -> int:
      return cls._place.process if cls._place else 0
