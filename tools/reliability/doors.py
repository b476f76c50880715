#!/usr/bin/env python3
"""Every way to start two processes of one pod: whether their sum over 8 devices is right, by what it went, how soon.

    tools/reliability/doors.py [--python PYTHON]... [--door NAME]...

A row for each launcher, a column for one host and for two pretended ones (network namespaces, which need root).  `--python`:
interpreters with minipod in them, one table each (this one).  Seconds are those from the launcher's start to the sum of the
last process, JAX's own start included.  What is not on this machine is named, not tried.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from hosts import HOSTS, REFUSED, free_port

SLURM = HOSTS.with_name("slurm_node.sh")
SUM = """
import os, sys, time
import jax
if {initializes}:
  jax.distributed.initialize({arguments})
import numpy as np
x = np.array([device.id for device in jax.local_devices()], np.float32)
total = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)[0]
maps = open("/proc/self/maps").read()
# Debian's MPICH uses UCX itself.
ways = [name for name, file in (("MPICH", "libmpich"), ("Open MPI", "libmpi.so"), ("UCX", "libucp")) if file in maps]
os.write(1, f"SUM {{total}} {{jax.process_count()}} {{time.time()}} {{(ways + ['nothing'])[0]}}\\n".encode())
"""
EXPLICIT = 'os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), int(os.environ["PROCESS_ID"])'

# Of a shell that has the number of its process and the address of the first one: the variables that launchers set.
VARIABLES = {
    "JAX_NUM_PROCESSES, JAX_PROCESS_ID": "JAX_COORDINATOR_ADDRESS=$COORDINATOR JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=$PROCESS_ID",
    "an Indexed Job's": "JAX_COORDINATOR_ADDRESS=$COORDINATOR JAX_NUM_PROCESSES=2 JOB_COMPLETION_INDEX=$PROCESS_ID",
    "a JAXJob's": "COORDINATOR_ADDRESS=${COORDINATOR%:*} COORDINATOR_PORT=${COORDINATOR#*:}",
    "TPU workers'": "TPU_WORKER_HOSTNAMES=${COORDINATOR%:*},b TPU_WORKER_ID=$PROCESS_ID JAX_COORDINATOR_PORT=${COORDINATOR#*:}",
    "torchrun's": "MASTER_ADDR=${COORDINATOR%:*} MASTER_PORT=${COORDINATOR#*:} WORLD_SIZE=2 RANK=$PROCESS_ID",
}


def program(initializes=True, arguments=""):
  return SUM.format(initializes=initializes, arguments=arguments)


def in_shell(variables, python):
  return ["bash", "-c", f'{variables} exec "$@"', "bash", python, "-c", program()]


def plain(hosts, command):
  """The command of each process, where nobody but a shell starts them."""
  if hosts == 2:
    return [str(HOSTS), "--plain", "--hosts", "2", "--", *command]
  script = (f'export COORDINATOR=127.0.0.1:{free_port()} NUM_PROCESSES=2; PROCESS_ID=1 "$@" & PROCESS_ID=0 "$@"; status=$?; '
            "wait $! && exit $status")
  return ["bash", "-c", script, "bash", *command]


def of_mpirun(hosts, python):
  if hosts == 2:
    return [str(HOSTS), "--hosts", "2", "--", python, "-c", program(False)]
  return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", python, "-c", program(False)]


def of_mpich(hosts, python):
  return None if hosts == 2 else ["mpiexec.hydra", "-n", "2", python, "-c", program(False)]


def of_run(hosts, python):
  return None if hosts == 2 else [python, "-m", "minipod", "run", "-n", "2", "--", python, "-c", program(False)]


def of_slurm(mpi, initializes):
  # One node after the other has its tasks.
  return lambda hosts, python: [str(HOSTS), "--plain", "--hosts", str(hosts), "--", str(SLURM), "-n", "2", f"--mpi={mpi}",
                                python, "-c", program(initializes)]


def doors():
  """Name, the command that it takes or None, by the number of hosts and the interpreter."""
  yield "`minipod run -n 2`", None, of_run
  yield "Open MPI's `mpirun`", "mpirun", of_mpirun
  yield "MPICH's `mpiexec`", "mpiexec.hydra", of_mpich
  yield "`srun --mpi=pmix`", "srun", of_slurm("pmix", False)
  yield "`srun --mpi=pmi2`", "srun", of_slurm("pmi2", False)
  yield "`srun`, `initialize()`", "srun", of_slurm("none", True)
  yield "`initialize(address, 2, i)`", None, lambda hosts, python: plain(hosts, [python, "-c", program(True, EXPLICIT)])
  for name, variables in VARIABLES.items():
    yield f"{name} variables", None, lambda hosts, python, said=variables: plain(hosts, in_shell(said, python))


def remove(folder):
  """Daemons that have just been killed may still be writing into it."""
  for _ in range(20):
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.exists(folder):
      return
    time.sleep(0.1)


def run(command, hosts):
  """What stands in the table."""
  scratch = tempfile.mkdtemp(prefix="mp")
  environment = os.environ | {"SCRATCH": scratch, "MINIPOD_DEVICES": "4", "JAX_PLATFORMS": "minipod"}
  begin = time.time()
  with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                        start_new_session=True) as process:
    try:
      out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
      os.killpg(process.pid, signal.SIGTERM)  # what has made hosts removes them
      return "**no end in 120 s**"
    finally:
      remove(scratch)
  found = re.findall(r"SUM (\S+) (\d+) (\S+) ?(.*)", out)
  if process.returncode == REFUSED:
    return err.strip().splitlines()[-1]
  if [row[:2] for row in found] != [("28.0", "2")] * 2:
    return f"**wrong**: status {process.returncode}, {[row[:2] for row in found]} {err.strip()[-300:]}"
  way = "shared memory" if hosts == 1 and "not shared memory" not in err else found[0][3]
  return f"{way}, {max(float(row[2]) for row in found) - begin:.1f} s"


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("--python", action="append")
  parser.add_argument("--door", action="append", help="a part of its name")
  options = parser.parse_args()
  has_failed = False
  for python in options.python or [sys.executable]:
    version = subprocess.run([python, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True, check=True)
    print(f"| JAX {version.stdout.strip()} | one host | two hosts |\n|---|---|---|")
    for name, needs, command in doors():
      if options.door and not any(part in name for part in options.door):
        continue
      cells = []
      for hosts in (1, 2):
        if needs and not shutil.which(needs):
          cells.append(f"no {needs} here")
        else:
          made = command(hosts, python)
          cells.append(run(made, hosts) if made else "not tried")
      has_failed |= any(cell.startswith("**") for cell in cells)
      print(f"| {name} | {' | '.join(cells)} |", flush=True)
  sys.exit(has_failed)


if __name__ == "__main__":
  main()
