"""Launchers that set variables about the processes, and `jax.distributed.initialize()` without arguments."""

import re
import shutil
import subprocess
import sys
import tempfile

import distributed
import mpirun
import pytest
import scenario
from minipod.jax import doors
from test_ucx import NEEDS_UCX, REFUSED, SCRIPT

SUM = """
import os
import jax
jax.distributed.initialize()
import numpy as np
x = np.array([device.id for device in jax.local_devices()], np.float32)
total = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)[0]
# In one piece: the processes of a test may have one pipe.
os.write(1, f"{jax.process_index()} of {jax.process_count()}: {total}\\n".encode())
"""
EXPECTED = ["0 of 2: 6.0", "1 of 2: 6.0"]
WITHOUT = SUM.replace("jax.distributed.initialize()", "")

# The variables that each launcher sets in the second of two processes, and their meaning.
DOORS = {
    "Kubeflow's Trainer, compose": (
        {"JAX_COORDINATOR_ADDRESS": "a:7", "JAX_NUM_PROCESSES": "2", "JAX_PROCESS_ID": "1"}, (None, 2, 1)),
    "an Indexed Job": (
        {"JAX_COORDINATOR_ADDRESS": "a:7", "JAX_NUM_PROCESSES": "2", "JOB_COMPLETION_INDEX": "1"}, (None, 2, 1)),
    "a JAXJob": (
        {"COORDINATOR_ADDRESS": "a", "COORDINATOR_PORT": "7", "NUM_PROCESSES": "2", "PROCESS_ID": "1"}, ("a:7", 2, 1)),
    "workers of a TPU": ({"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "1"}, ("a:8476", 2, 1)),
    "processes on a TPU host": (
        {"TPU_PROCESS_ADDRESSES": "a:7,a:8", "CLOUD_TPU_TASK_ID": "1", "TPU_PROCESS_PORT": "8"}, ("a:7", 2, 1)),
    "slices of TPUs": (
        {"MEGASCALE_COORDINATOR_ADDRESS": "a:8081", "MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1",
         "TPU_WORKER_HOSTNAMES": "c,d", "TPU_WORKER_ID": "0"}, ("a:8476", 4, 2)),
    "one host of a TPU": ({"TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0"}, None),
    "a PyTorchJob": ({"MASTER_ADDR": "a", "MASTER_PORT": "7", "WORLD_SIZE": "2", "RANK": "1"}, ("a:7", 2, 1)),
    "torchrun": (
        {"MASTER_ADDR": "a", "MASTER_PORT": "7", "WORLD_SIZE": "2", "RANK": "1", "TORCHELASTIC_RUN_ID": "none"},
        ("a:8", 2, 1)),
    "another's numbers": ({"WORLD_SIZE": "2", "RANK": "1", "PROCESS_ID": "1"}, None),
}
MISTAKES = {
    "no address": ({"JAX_NUM_PROCESSES": "2"},
                   "JAX_NUM_PROCESSES is set, but not JAX_COORDINATOR_ADDRESS: HOST:PORT of process 0"),
    "no number": ({"JAX_NUM_PROCESSES": "2", "JAX_COORDINATOR_ADDRESS": "a:1"},
                  "JAX_NUM_PROCESSES is set, but not JAX_PROCESS_ID: which process this one is"),
    "no count": ({"JAX_NUM_PROCESSES": "two"}, "JAX_NUM_PROCESSES is 'two', which is not a number"),
    "no worker": ({"TPU_WORKER_HOSTNAMES": "a,b"}, "TPU_WORKER_HOSTNAMES is set, but not TPU_WORKER_ID"),
}


@pytest.fixture
def say(monkeypatch):
  """Sets variables as a launcher does, in an environment without those of other launchers."""
  for variables, _ in DOORS.values():
    for name in variables:
      monkeypatch.delenv(name, raising=False)
  return lambda variables: [monkeypatch.setenv(*variable) for variable in variables.items()]


@pytest.mark.parametrize("variables, place", DOORS.values(), ids=DOORS)
def test_variables_of_launchers(say, variables, place):
  say(variables)
  assert doors.find() == place


@pytest.mark.parametrize("variables, words", MISTAKES.values(), ids=MISTAKES)
def test_what_is_missing_is_named(say, variables, words):
  say(variables)
  with pytest.raises(ValueError, match=re.escape(words)):
    doors.find()


def test_a_job_of_two():
  address = f"127.0.0.1:{distributed.free_port()}"
  job = distributed.run_well(SUM, 2, 2, is_whole=True, JAX_COORDINATOR_ADDRESS=address, JAX_NUM_PROCESSES="2",
                             own={i: {"JOB_COMPLETION_INDEX": str(i)} for i in range(2)})
  assert [job.outs[i].strip() for i in range(2)] == EXPECTED


def test_a_mistake_ends_the_script():
  err = scenario.run("jax.distributed.initialize()", fails=True, prelude="import jax\n", JAX_NUM_PROCESSES="2")
  assert err.splitlines()[-1] == "ValueError: " + MISTAKES["no address"][1]


STARTERS = {
    "torchrun": {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1", "TORCHELASTIC_RUN_ID": "none"},
    "Slurm's srun": {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "a"},
}


@pytest.mark.parametrize("name", STARTERS)
def test_processes_that_never_join_are_reported(name):
  def run(**variables):
    return scenario.finish(scenario.start("print(jax.device_count())", **STARTERS[name], **variables))

  returncode, out, err = run()
  assert (returncode, out) == (0, "4\n") and err.count("\n") == 1
  assert f"{name} has started 2 processes, but each has a pod of its own" in err
  assert "jax.distributed.initialize()" in err and "MINIPOD_BOOTSTRAP=none" in err
  assert run(MINIPOD_BOOTSTRAP="none")[2] == ""


@pytest.mark.skipif(shutil.which("mpiexec.hydra") is None, reason="there is no mpiexec.hydra: apt install mpich")
def test_mpich_over_two_hosts():
  """Over UCX, MPICH's MPI_Finalize sometimes never returns; the job ends nevertheless."""
  process = subprocess.Popen([str(SCRIPT), "--hydra", "--hosts", "2", "--", sys.executable, "-c", WITHOUT],
                             env=mpirun.environment(2), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             start_new_session=True)
  returncode, out, err = scenario.finish(process, 60)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  assert (returncode, sorted(re.findall(r"\d of \d: .*", out))) == (0, EXPECTED), err


# ---- The real Slurm: its daemons on two simulated hosts ----

def srun(code, *options):
  """(return code, lines, standard error) of a step of two processes on two hosts."""
  scratch = tempfile.mkdtemp(prefix="mp")
  process = subprocess.Popen(
      [str(SCRIPT), "--plain", "--hosts", "2", "--", str(SCRIPT.with_name("slurm_node.sh")), "-n", "2", *options,
       sys.executable, "-c", code],
      env=mpirun.environment(2, SCRATCH=scratch), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
      start_new_session=True)
  try:
    returncode, out, err = scenario.finish(process, 120)
  finally:
    shutil.rmtree(scratch, ignore_errors=True)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  return returncode, sorted(re.findall(r"\d of \d: .*", out)), err


@NEEDS_UCX
def test_slurm_alone():
  """JAX's own detection finds the processes, and UCX carries the data."""
  assert srun(SUM, "--mpi=none")[:2] == (0, EXPECTED)


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("code", [SUM, WITHOUT], ids=["initialized", "as it is"])
def test_slurm_with_pmix(code):
  """Open MPI finds the other processes through Slurm's PMIx."""
  assert srun(code, "--mpi=pmix")[:2] == (0, EXPECTED)


def test_slurm_with_pmi2():
  """MPICH's way; minipod does not try Open MPI, which would end the process."""
  returncode, lines, err = srun(WITHOUT, "--mpi=pmi2")
  if not lines:
    assert re.search(r"Slurm's srun started this process as rank \d .*but MPI cannot be used", err), err
    _, lines, err = srun(SUM, "--mpi=pmi2")
  assert lines == EXPECTED, err  # whether Slurm notices the end does not matter here (slurm_node.sh)
