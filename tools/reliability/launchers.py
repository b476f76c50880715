"""How each launcher starts two processes of one pod, whose four devices each hold their number, and add up to 28.

Every process prints `SUM total processes moment way`.  It finds the transport from the libraries that it has opened.
"""

import dataclasses
import shutil
import subprocess
from typing import Callable

from job import HOSTS, MPIRUN, ON_HOSTS, free_port

SLURM = HOSTS.with_name("slurm_node.sh")
RAY = HOSTS.with_name("ray_node.sh")

SAY = """
maps = open("/proc/self/maps").read()
# Debian's MPICH uses UCX itself.
ways = [name for name, file in (("MPICH", "libmpich"), ("Open MPI", "libmpi.so"), ("UCX", "libucp")) if file in maps]
said = f"SUM {total} {count} {time.time()} {(ways + ['nothing'])[0]}\\n"
"""
OF_JAX = """
import os, sys, time
import jax
INITIALIZE
import numpy as np
x = np.array([device.id for device in jax.local_devices()], np.float32)
total, count = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)[0], jax.process_count()
""" + SAY
OF_TORCH = """
import os, time
import numpy as np
import torch, torch_xla
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
xr.use_spmd()
if "RANK" in os.environ:
  import torch.distributed
  import torch_xla.distributed.xla_backend
  torch.distributed.init_process_group("gloo", init_method="xla://")  # with SPMD "xla" is refused
devices, count = xr.global_runtime_device_count(), xr.process_count()
x = torch.arange(devices, dtype=torch.float32).to("xla")
xs.mark_sharding(x, xs.Mesh(np.arange(devices), (devices,), ("x",)), ("x",))
total = x.sum().item()
""" + SAY
WRITE = "os.write(1, said.encode())\n"
EXPLICIT = 'jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"]))'
# A driver for Ray: an actor for each process; with two nodes, each has an actor.
OF_RAY = """
import os, sys, time
import ray
ray.init(**({"address": "auto"} if "COORDINATOR" in os.environ else {"num_cpus": 2, "include_dashboard": False}), log_to_driver=False)
@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
class Process:
  def address(self):
    import socket
    with socket.socket() as probe:
      probe.bind(("", 0))
      return f"{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"
  def run(self, program, address, process):
    names = {"address": address, "process": process}
    exec(program, names)
    return names["said"]
processes = [Process.remote() for _ in range(2)]
address = ray.get(processes[0].address.remote())
for said in ray.get([process.run.remote(PROGRAM, address, i) for i, process in enumerate(processes)]):
  os.write(1, said.encode())
"""


def jax_program(initialize: str = "") -> str:
  return OF_JAX.replace("INITIALIZE", initialize) + WRITE


def ray_program() -> str:
  program = OF_JAX.replace("INITIALIZE", "jax.distributed.initialize(address, 2, process)")
  return OF_RAY.replace("PROGRAM", repr(program))


# ---- commands, by the number of hosts and the interpreter; a text gives the reason why there is none ----

Command = list[str] | str


def plain(hosts: int, command: list[str]) -> Command:
  """Started by a shell alone: each process has COORDINATOR, NUM_PROCESSES and PROCESS_ID."""
  if hosts == 2:
    return [*ON_HOSTS, "--plain", "--hosts", "2", "--", *command]
  script = (f'export COORDINATOR=127.0.0.1:{free_port()} NUM_PROCESSES=2; PROCESS_ID=1 "$@" & PROCESS_ID=0 "$@"; status=$?; '
            "wait $! && exit $status")
  return ["bash", "-c", script, "bash", *command]


def with_variables(variables: str):
  """For a shell that knows its process number and the address of the first process: the variables that launchers set.
  """
  return lambda hosts, python: plain(hosts, ["bash", "-c", f'{variables} exec "$@"', "bash", python, "-c",
                                             jax_program("jax.distributed.initialize()")])


def by_open_mpi(program: str):
  def command(hosts: int, python: str) -> Command:
    if hosts == 2:
      return [*ON_HOSTS, "--hosts", "2", "--", python, "-c", program]
    return [*MPIRUN, "-n", "2", python, "-c", program]
  return command


def by_mpich(hosts: int, python: str) -> Command:
  if hosts == 2:
    return [*ON_HOSTS, "--hydra", "--hosts", "2", "--", python, "-c", jax_program()]
  return ["mpiexec.hydra", "-n", "2", python, "-c", jax_program()]


def by_minipod_run(hosts: int, python: str) -> Command:
  if hosts == 2:
    return "`--hosts` is `mpirun`'s, below"
  return [python, "-m", "minipod", "run", "-n", "2", "--", python, "-c", jax_program()]


def by_slurm(mpi: str, initialize: str):
  # Tasks are assigned node by node.
  return lambda hosts, python: [*ON_HOSTS, "--plain", "--hosts", str(hosts), "--", str(SLURM), "-n", "2", f"--mpi={mpi}",
                                python, "-c", jax_program(initialize)]


def by_ray(hosts: int, python: str) -> Command:
  if hosts == 2:
    return [*ON_HOSTS, "--plain", "--hosts", "2", "--", str(RAY), python, "-c", ray_program()]
  return [python, "-c", ray_program()]


def by_torchrun(hosts: int, python: str) -> Command:
  run = [python, "-m", "torch.distributed.run", "--no-python"]
  program = [python, "-c", OF_TORCH + WRITE]
  if hosts == 1:
    return [*run, "--standalone", "--nproc_per_node", "2", *program]
  where = "--nnodes 2 --nproc_per_node 1 --node_rank $PROCESS_ID --master_addr ${COORDINATOR%:*} --master_port ${COORDINATOR#*:}"
  return plain(2, ["bash", "-c", f'run=("${{@:1:4}}"); shift 4; exec "${{run[@]}}" {where} "$@"', "bash", *run, *program])


# ---- doors ----

@dataclasses.dataclass
class Door:
  """A row of the table; `needs`: a command, `modules`: modules that the interpreter must have."""
  name: str
  command: Callable[[int, str], Command]
  needs: str = ""
  modules: tuple[str, ...] = ("jax",)

  def missing(self, python: str) -> str:
    """Why it cannot be tried here; "" if it can."""
    if self.needs and not shutil.which(self.needs):
      return f"no `{self.needs}` here"
    for module in self.modules:
      if subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"]).returncode:
        return f"no {module} in this Python"
    return ""


VARIABLES = {
    "compose's or ssh's: `JAX_NUM_PROCESSES`, `JAX_PROCESS_ID`":
        "JAX_COORDINATOR_ADDRESS=$COORDINATOR JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=$PROCESS_ID",
    "an Indexed Job's (JobSet)": "JAX_COORDINATOR_ADDRESS=$COORDINATOR JAX_NUM_PROCESSES=2 JOB_COMPLETION_INDEX=$PROCESS_ID",
    "a JAXJob's": "COORDINATOR_ADDRESS=${COORDINATOR%:*} COORDINATOR_PORT=${COORDINATOR#*:}",
    "TPU workers'": "TPU_WORKER_HOSTNAMES=${COORDINATOR%:*},b TPU_WORKER_ID=$PROCESS_ID JAX_COORDINATOR_PORT=${COORDINATOR#*:}",
    "torchrun's, for JAX": "MASTER_ADDR=${COORDINATOR%:*} MASTER_PORT=${COORDINATOR#*:} WORLD_SIZE=2 RANK=$PROCESS_ID",
}
TORCH = ("torch_xla",)
DOORS = [
    Door("`minipod run -n 2`", by_minipod_run),
    Door("Open MPI's `mpirun`", by_open_mpi(jax_program()), "mpirun"),
    Door("MPICH's `mpiexec`", by_mpich, "mpiexec.hydra"),
    Door("`srun --mpi=pmix`", by_slurm("pmix", ""), "srun"),
    Door("`srun --mpi=pmi2`", by_slurm("pmi2", ""), "srun"),
    Door("`srun`, `initialize()`", by_slurm("none", "jax.distributed.initialize()"), "srun"),
    Door("`initialize(address, 2, i)`", lambda hosts, python: plain(hosts, [python, "-c", jax_program(EXPLICIT)])),
    *(Door(f"variables: {name}", with_variables(variables)) for name, variables in VARIABLES.items()),
    Door("Ray: an actor for each process", by_ray, modules=("jax", "ray")),
    Door("torch_xla: `torchrun`", by_torchrun, modules=TORCH),
    Door("torch_xla: Open MPI's `mpirun`", by_open_mpi(OF_TORCH + WRITE), "mpirun", TORCH),
]
