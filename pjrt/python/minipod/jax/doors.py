"""Finds the number of processes, this process's number and the first one's address in the variables of launchers.

`jax.distributed.initialize()` first asks JAX's own detection, which knows Slurm, Open MPI on several hosts and the
service of Kubernetes.  This module has the launchers that set all of this in variables.
"""

import os
import socket
from typing import NamedTuple
import zlib

# The last port that systems never assign unless a program requests it.
_FIRST_PORT, _NUM_PORTS = 61440, 4000
# The port of JAX's service on TPU hosts, whose variables name no port.
_TPU_PORT = 8476


class Place(NamedTuple):
  """The position of a process in its job."""
  address: str | None  # HOST:PORT of the first process; None: JAX reads it from a variable
  count: int
  process: int


def find() -> Place | None:
  """The position that a launcher gives this process; None if no known launcher has started it.

  Raises ValueError if a launcher has set only some of the variables, or a value that is not a number.
  """
  for ask in (_of_mpirun, _of_jax_variables, _of_jax_job, _of_tpu_workers, _of_torchrun):
    if place := ask():
      return place
  return None


def has_other_processes() -> bool:
  """Whether an MPI launcher or Slurm has started other processes that `find` does not know of."""
  sizes = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
  return any((_number(size) or 1) > 1 for size in sizes)


def _text(variable: str) -> str | None:
  return os.environ.get(variable) or None


def _number(variable: str) -> int | None:
  text = _text(variable)
  if text is None:
    return None
  if not text.isdigit():
    raise ValueError(f"{variable} is '{text}', which is not a number")
  return int(text)


def _need(variable: str, given: str, what: str) -> None:
  """Raises ValueError if `variable` is not set; `given` means nothing without it."""
  if _text(variable) is None:
    raise ValueError(f"{given} is set, but not {variable}: {what}")


def _of_mpirun() -> Place | None:
  """Open MPI's mpirun or MPICH's mpiexec, if all processes are on this host."""
  of_open_mpi = "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK"
  of_mpich = "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_RANK"
  for names in (of_open_mpi, of_mpich):
    size, near, rank = map(_number, names)
    if size is not None and size == near and rank is not None:
      return Place(f"127.0.0.1:{_port_of_job()}", size, rank)
  return None


def _port_of_job() -> int:
  """A port that all processes of the job choose."""
  names = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
  job = "".join(os.environ.get(name, "") for name in names) or str(os.getppid())
  return _FIRST_PORT + zlib.crc32(job.encode()) % _NUM_PORTS


def _of_jax_variables() -> Place | None:
  """The variables that Kubeflow's Trainer sets for JAX, and users in their Jobs and compose files.

  In an Indexed Job of Kubernetes, a process may have the number of its Kubernetes pod.
  """
  count = _number("JAX_NUM_PROCESSES")
  if count is None:
    return None
  _need("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "HOST:PORT of process 0")
  process = _number("JAX_PROCESS_ID")
  if process is None:
    process = _number("JOB_COMPLETION_INDEX")
  if process is None:
    _need("JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "which process this one is")
  return Place(None, count, process)


def _of_jax_job() -> Place | None:
  """The variables that Kubeflow's training operator sets in a JAXJob."""
  names = ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID")
  if not all(map(_text, names)):
    return None  # other programs may use these names with another meaning
  host, port, count, process = map(os.environ.get, names)
  return Place(f"{host}:{port}", int(count), int(process)) if (count + process).isdigit() else None


def _of_tpu_workers() -> Place | None:
  """The variables of TPU hosts: the slices, and the workers of each slice.

  Kubernetes (GKE) and Ray set them for one process per host, TorchTPU and other programs for several.
  """
  given = "TPU_PROCESS_ADDRESSES" if _text("TPU_PROCESS_ADDRESSES") else "TPU_WORKER_HOSTNAMES"
  num_slices = _number("MEGASCALE_NUM_SLICES") or 1
  if num_slices > 1:
    _need(given, "MEGASCALE_NUM_SLICES", "the workers of a slice")
  workers = (_text(given) or "").split(",")
  count = len(workers) * num_slices
  if count == 1:
    return None
  worker = _number("CLOUD_TPU_TASK_ID") if given == "TPU_PROCESS_ADDRESSES" else None
  if worker is None:
    _need("TPU_WORKER_ID", given, "which worker of its slice this one is")
    worker = _number("TPU_WORKER_ID")
  process = (_number("MEGASCALE_SLICE_ID") or 0) * len(workers) + worker
  first, _, port = (_text("MEGASCALE_COORDINATOR_ADDRESS") or workers[0]).partition(":")
  # The processes of a host have ports of their own, which the library needs only without a coordinator.
  is_own = port.isdigit() and given == "TPU_PROCESS_ADDRESSES" and num_slices == 1
  return Place(f"{first}:{port if is_own else _TPU_PORT}", count, process)


def _of_torchrun() -> Place | None:
  """The variables of torchrun and similar launchers (Kubeflow's PyTorchJob, Ray Train)."""
  if not all(map(_text, ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"))):
    return None
  # torchrun itself serves at its port.
  port = _number("MASTER_PORT") + (_text("TORCHELASTIC_RUN_ID") is not None)
  return Place(f"{_text('MASTER_ADDR')}:{port}", _number("WORLD_SIZE"), _number("RANK"))


def free_port() -> int:
  """A free port of this host, for a process that is alone."""
  with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    return probe.getsockname()[1]
