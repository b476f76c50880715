"""Tells TorchTPU about the processes of a job, if their launcher has not.

Before a launcher such as torchrun starts the processes, users of TPU hosts set `TORCH_TPU_SLICEBUILDER_ADDRESSES` and
`TORCH_TPU_TOPOLOGY` (`torch.tpu.distributed.set_tpu_launch_env()`).  Without these variables TorchTPU refuses to create
a process group.  Here the described pod has the topology, and all processes choose the same addresses: from the
launcher's variables when they import TorchTPU, or else through the store of `init_process_group()`.
"""

import functools
import os
import socket
import sys

_ADDRESSES, _TOPOLOGY = "TORCH_TPU_SLICEBUILDER_ADDRESSES", "TORCH_TPU_TOPOLOGY"
# TorchTPU launches collectives of some ranks only in these ranks.
_MATCH = "MINIPOD_MATCH"
# The first port that systems never assign unless a program requests it.
_FIRST_PORT, _NUM_PORTS = 61440, 4000


class Job:
  """The processes that share a pod, with one device each."""

  def __init__(self, topology: str, num_devices: int):
    """`topology`: the grid of chips of the whole pod, and the cores of a chip if these are devices: "2,2,1"."""
    self._topology, self._num_devices = topology, num_devices

  def choose_by_launcher(self) -> None:
    """Sets TorchTPU's variables if a launcher's variables describe the processes."""
    rank, size, port = (_number(name) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    first_host = os.environ.get("MASTER_ADDR")
    if rank is None or size is None or port is None or size < 2 or not first_host:
      return
    per_host = _number("LOCAL_WORLD_SIZE") or size
    first_port = _FIRST_PORT + port % _NUM_PORTS
    # Processes connect only to the first one.  Messages have the other addresses.
    hosts = (first_host if i < per_host else f"node{i // per_host}" for i in range(size))
    self._set([f"{host}:{first_port + i % per_host}" for i, host in enumerate(hosts)], rank)

  def attend(self, distributed) -> None:
    """Lets processes that no launcher has described find each other when they create a process group.

    Args:
      distributed: TorchTPU's module `tpu_distributed`.
    """
    create = distributed.create_process_group

    @functools.wraps(create)
    def create_process_group(store, rank, size, timeout):
      if size > 1 and not os.environ.get(_ADDRESSES):
        self._set(_exchange(store, rank, size), rank)
      if size > 1 and os.environ.get("MINIPOD_BOOTSTRAP") != "absent":  # there are no sends to order
        from minipod import torch_tpu_store

        os.environ.setdefault(_MATCH, "groups")
        store = torch_tpu_store.ordered(store)
        torch_tpu_store.receive_first()
      return create(store, rank, size, timeout)

    distributed.create_process_group = create_process_group

  def _set(self, addresses: list[str], rank: int) -> None:
    if len(addresses) != self._num_devices and rank == 0 and not os.environ.get(_ADDRESSES):
      print(f"minipod: the job has {len(addresses)} processes, but the pod has {self._num_devices} devices; TorchTPU"
            " needs one process per device, or a single process", file=sys.stderr)
    os.environ.setdefault(_ADDRESSES, ",".join(addresses))
    os.environ.setdefault(_TOPOLOGY, self._topology)


def _number(variable: str) -> int | None:
  text = os.environ.get(variable, "")
  return int(text) if text.isdigit() else None


def _exchange(store, rank: int, size: int) -> list[str]:
  """The addresses of all processes."""
  with socket.socket() as probe:
    probe.bind(("", 0))
    port = probe.getsockname()[1]
  key = "minipod/address/{}".format
  store.set(key(rank), f"{socket.gethostname()}:{port}")
  addresses = [store.get(key(i)).decode() for i in range(size)]
  hosts = {address.rpartition(":")[0] for address in addresses}
  # The name of a host is often unknown to other hosts, and sometimes to itself.
  first = os.environ.get("MASTER_ADDR") or ("localhost" if len(hosts) == 1 else None)
  if first:
    addresses[0] = f"{first}:{addresses[0].rpartition(':')[2]}"
  return addresses
