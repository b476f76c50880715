"""Lets one process of JAX stand for all processes of its job (option `bootstrap`: absent).

The variables of TPU hosts describe the job to the library, which needs no coordinator.
"""

import functools
import os

import jax

from minipod import launch_others


def is_wanted() -> bool:
  return os.environ.get("MINIPOD_BOOTSTRAP") == "absent"


def _know_broadcasts() -> None:
  from jax.experimental import multihost_utils

  original = multihost_utils.broadcast_one_to_all

  @functools.wraps(original)
  def broadcast_one_to_all(in_tree, is_source=None):
    with launch_others.of_broadcast(jax.process_index() == 0 if is_source is None else is_source):
      return original(in_tree, is_source)

  multihost_utils.broadcast_one_to_all = broadcast_one_to_all


def attend() -> None:
  """Makes `jax.distributed.initialize()` wait for no other process, and broadcasts have the value of their source."""
  _know_broadcasts()

  @functools.wraps(jax.distributed.initialize)
  def initialize(coordinator_address=None, num_processes=None, process_id=None, *args, **kwargs):
    addresses = os.environ.get("TPU_PROCESS_ADDRESSES")
    described = len(addresses.split(",")) if addresses else 0
    if described < 2 or num_processes not in (None, described):
      named = "" if num_processes is None else f" and initialize() names {num_processes}"
      raise RuntimeError("minipod: this process stands for all processes of its job (MINIPOD_BOOTSTRAP=absent), but"
                         f" TPU_PROCESS_ADDRESSES lists {described}{named}: start it by"
                         " 'minipod run -n PROCESSES --only 0'")

  jax.distributed.initialize = initialize
