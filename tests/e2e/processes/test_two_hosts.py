"""One pod over two simulated hosts: network namespaces that share only files."""

import pathlib
import subprocess

import pytest

import mpirun
import scenario
from test_mpirun import TRAIN, digests

pytestmark = mpirun.NEEDS_MPIRUN
SCRIPT = pathlib.Path(__file__).parents[2] / "mpi" / "two_hosts.sh"
REFUSED = 77


def run(ranks_per_host, program, devices, timeout=100, **variables):
  """Runs on both hosts: (return code, output, standard error); skips if the hosts cannot be made."""
  process = subprocess.Popen(
      [str(SCRIPT), "--ranks", str(ranks_per_host), "--", *mpirun.command_of(program)],
      env=mpirun.environment(devices, **variables), text=True, stdout=subprocess.PIPE,
      stderr=subprocess.PIPE, start_new_session=True)
  returncode, out, err = scenario.finish(process, timeout)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  return returncode, out, err


def test_training_over_two_hosts_has_the_bits_of_one_process():
  returncode, out, err = run(2, """
    hosts = [d.host_index for d in jax.devices()]
    assert hosts == [0, 0, 0, 0, 1, 1, 1, 1], hosts
    """ + TRAIN, 2)
  assert returncode == 0, (out, err)
  alone = digests(scenario.run(TRAIN, 8))
  assert len(alone) == 2
  assert sorted(digests(out)) == sorted(alone * 4)


@pytest.fixture(scope="module")
def all_collectives(tmp_path_factory):
  folder = tmp_path_factory.mktemp("hosts")
  returncode, _, err = run(2, mpirun.FOLDER / "ranks" / "collectives.py", 2, RANK_RESULTS=folder)
  return mpirun.Checks(4, folder, returncode, err)


@pytest.mark.parametrize("name", ["psum_all", "psum_scatter_columns", "all_gather_rows",
                                  "all_to_all_outer", "ppermute_middle", "sums_have_one_order"])
def test_collectives_between_hosts(all_collectives, name):
  all_collectives.expect(name)
  all_collectives.expect_good_end()
