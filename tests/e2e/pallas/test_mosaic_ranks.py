"""Kernels that communicate, between the devices of several processes and hosts."""

import pathlib
import subprocess
import sys

import mpirun
import pytest
import scenario

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / folder) for folder in ("ranks", "processes")]
import harness
import kernels
import distributed
from test_ucx import NEEDS_UCX

SCRIPT = mpirun.FOLDER / "ranks" / "kernels.py"
HOSTS = pathlib.Path(__file__).parents[2] / "mpi" / "two_hosts.sh"
REFUSED = 77


def run_on_hosts(options, folder, **variables):
  process = subprocess.Popen(
      [str(HOSTS), *options, "--", sys.executable, str(SCRIPT)], env=mpirun.environment(None, RANK_RESULTS=folder, **variables),
      text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
  returncode, _, err = scenario.finish(process, mpirun.SECONDS)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  return returncode, err


def by_mpirun(folder, **variables):
  job = mpirun.run(4, SCRIPT, None, RANK_RESULTS=folder, HOSTS=1, LIBRARY="libmpi", **variables)
  return mpirun.Checks(4, folder, job.returncode, job.err)


def by_mpirun_on_hosts(folder, **variables):
  return mpirun.Checks(2, folder, *run_on_hosts(["--ranks", "1"], folder, HOSTS=2, LIBRARY="libmpi", **variables))


def by_ucx(folder, **variables):
  return mpirun.Checks(4, folder, *run_on_hosts(["--plain", "--ranks", "2"], folder, HOSTS=2, LIBRARY="libucp", **variables))


def without_launcher(folder, **variables):
  job = distributed.run(SCRIPT, None, 2, RANK_RESULTS=folder, HOSTS=1, **variables)
  return mpirun.Checks(2, folder, max(job.returncodes.values()), "\n".join(job.errs.values()))


WAYS = [pytest.param(by_mpirun, marks=mpirun.NEEDS_MPIRUN), pytest.param(by_mpirun_on_hosts, marks=mpirun.NEEDS_MPIRUN),
        pytest.param(by_ucx, marks=NEEDS_UCX), without_launcher]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: way.__name__)
def results(request, tmp_path_factory):
  return request.param(tmp_path_factory.mktemp("kernels"), MINIPOD_TOPOLOGY="v6e:2x2")


@pytest.mark.parametrize("name", harness.names("kernels"))
def test_kernels(results, name):
  results.expect(name)


def test_they_end_well(results):
  results.expect_good_end()
