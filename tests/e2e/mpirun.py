"""Runs programs under a real mpirun, each with a time limit, and collects the output of the ranks."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap

import pytest
import scenario

FOLDER = pathlib.Path(__file__).parent
LAUNCHER = shutil.which("mpirun")
NEEDS_MPIRUN = pytest.mark.skipif(LAUNCHER is None, reason="there is no mpirun on this machine")
# More ranks than cores, as root, without binding: required on a small test machine.
OPTIONS = ["--oversubscribe", "--allow-run-as-root", "--bind-to", "none"]
# Longer than any job takes on a busy machine, shorter than the limit of a test (conftest.py).
SECONDS = 170


# Open MPI's files of a job: concurrent mpiruns sometimes fail when they create /tmp/ompi.HOST.USER.
SESSIONS = tempfile.TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True)


def environment(devices=None, **variables):
  """The environment of a scenario, without variables of a launcher under which the tests themselves run."""
  env = scenario.environment(devices, **variables)
  for name in list(env):
    if name.startswith(("OMPI_", "PMIX_", "PMI_")):
      del env[name]
  return env | {"OMPI_MCA_orte_tmpdir_base": SESSIONS.name, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def command_of(program):
  """Of code, or of the path of a script."""
  if isinstance(program, pathlib.Path):
    return [sys.executable, str(program)]
  return [sys.executable, "-c", scenario.PRELUDE + textwrap.dedent(program)]


class Job:
  """A running mpirun, and its results after it has ended, also by rank (mpirun may mix their lines)."""

  def __init__(self, ranks, program, devices=None, options=(), arguments=(), **variables):
    """`program` is code, the path of a script, or a list of (script, variables), which are started with one rank each.
    """
    self.folder = tempfile.TemporaryDirectory(prefix="pytest-mpirun-")
    self.num_ranks = ranks
    parts = program if isinstance(program, list) else [(program, {})]
    command = [LAUNCHER, *OPTIONS, "--output-filename", self.folder.name, *options]
    for i, (one, own) in enumerate(parts):
      command += ([":"] if i else []) + ["-n", str(ranks // len(parts))]
      for name, value in own.items():
        command += ["-x", f"{name}={value}"]
      command += [*command_of(one), *arguments]
    self.process = subprocess.Popen(
        command, env=environment(devices, **variables), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)

  def finish(self, timeout=SECONDS):
    self.returncode, self.out, self.err = scenario.finish(self.process, timeout)
    self.outs, self.errs = ([self.read(rank, name) for rank in range(self.num_ranks)]
                            for name in ("stdout", "stderr"))
    self.folder.cleanup()
    return self

  def read(self, rank, name):
    """The output of the rank so far, on "stdout" or "stderr"."""
    paths = glob.glob(f"{self.folder.name}/*/rank.{rank}/{name}")
    return pathlib.Path(paths[0]).read_text() if paths else ""

  def expect_good_end(self):
    assert self.returncode == 0, f"mpirun ended with {self.returncode}\n{self.out}\n{self.err}"
    return self


def run(ranks, program, devices=None, timeout=SECONDS, **arguments):
  return Job(ranks, program, devices, **arguments).finish(timeout)


def run_well(*args, **arguments):
  return run(*args, **arguments).expect_good_end()


class Checks:
  """The outcome of a script of ranks/, by check."""

  def __init__(self, ranks, folder, returncode, err):
    self.ranks, self.returncode, self.err = ranks, returncode, err
    self.results = []
    for rank in range(ranks):
      path = pathlib.Path(folder) / f"{rank}.json"
      self.results.append(json.loads(path.read_text()) if path.exists() else {})

  @classmethod
  def run(cls, script, ranks, devices, folder):
    job = run(ranks, FOLDER / "ranks" / script, devices, RANK_RESULTS=folder)
    return cls(ranks, folder, job.returncode, job.err)

  def expect(self, name):
    bad = {rank: results.get(name, "it did not get there")
           for rank, results in enumerate(self.results) if results.get(name) != "ok"}
    if bad:
      words = "\n".join(f"--- rank {rank}: {why}" for rank, why in bad.items())
      last = "" if self.returncode == 0 else f"\n--- mpirun: {self.returncode}\n{self.err[-3000:]}"
      pytest.fail(f"{name} on {self.ranks} ranks\n{words}{last}", pytrace=False)

  def expect_good_end(self):
    assert self.returncode == 0, self.err[-3000:]

