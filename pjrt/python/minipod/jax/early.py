"""Prepares what JAX needs before it looks for its plugins, which it does when a program first uses a device.

`_minipod_start` calls this after JAX has been imported.  Without it, the preparation is only done when JAX looks for
plugins.
"""

from minipod.jax import attention
from minipod.jax import doors
from minipod.jax import guard
from minipod.jax import modules
from minipod.jax import names
from minipod.jax import only
from minipod.jax import presence

_is_attended = False


def attend() -> None:
  """Prepares JAX, once per process, unless the user has named other platforms."""
  global _is_attended
  if _is_attended or not guard.may_be_used():
    return
  _is_attended = True
  guard.teach("how processes of minipod find each other", _register_cluster)
  if only.is_wanted():
    guard.teach("to wait for no other process", only.attend)
  guard.teach("to tell processes of each other", presence.attend)
  guard.teach("to find cuDNN on described GPUs", attention.find_cudnn)
  guard.teach("to wait for flax.nnx", modules.name_layers)
  if names.wanted() == "tpu":
    guard.teach("to describe TPUs", names.describe_tpus)


def leave() -> None:
  """Removes the changes that are useful only before JAX has a backend."""
  attention.leave()
  presence.leave()


def _register_cluster() -> None:
  """Lets `jax.distributed.initialize()` find missing arguments, as on a host of TPUs.

  JAX asks its own launchers first.
  """
  from jax._src import clusters

  class MinipodCluster(clusters.ClusterEnv):
    """The processes that a launcher describes in variables; or one process alone."""

    name = "minipod"
    _place: doors.Place | None = None  # in a job; None: the process is alone
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
      # If the user names a coordinator, other processes exist.  It is an error if their number is missing.
      alone = 1 if cls._has_chosen_address else None
      return cls._place.count if cls._place else alone

    @classmethod
    def get_process_id(cls) -> int:
      return cls._place.process if cls._place else 0
