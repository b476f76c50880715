"""One pod over the processes of a real mpirun."""

import pathlib
import re
import sys

import pytest

import mpirun

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ranks"))
import collectives
import harness
import pod

pytestmark = mpirun.NEEDS_MPIRUN


@pytest.fixture(scope="module", params=[(2, 4), (4, 2)], ids=["2x4", "4x2"])
def one_pod(request, tmp_path_factory):
  return mpirun.Checks.run("pod.py", *request.param, tmp_path_factory.mktemp("pod"))


@pytest.mark.parametrize("name", harness.names("pod"))
def test_one_pod(one_pod, name):
  one_pod.expect(name)


def test_one_pod_ends_well(one_pod):
  one_pod.expect_good_end()


@pytest.fixture(scope="module")
def all_collectives(tmp_path_factory):
  return mpirun.Checks.run("collectives.py", 4, 2, tmp_path_factory.mktemp("collectives"))


@pytest.mark.parametrize("name", harness.names("collectives"))
def test_collectives(all_collectives, name):
  all_collectives.expect(name)


def test_collectives_end_well(all_collectives):
  all_collectives.expect_good_end()


TRAIN = f"""
    import sys
    sys.path.insert(0, {str(mpirun.FOLDER / "scripts")!r})
    import common, train_mlp, train_transformer
    print('mlp:')
    common.report(*train_mlp.train(jax.devices()))
    print('transformer:')
    common.report(*train_transformer.train(jax.devices()))
    """


def digests(out):
  """What each process of TRAIN computed, in the order of the scripts."""
  return re.findall(r"digest ([0-9a-f]{16})", out)


def test_training_has_the_same_bits_however_it_is_spread():
  bits = []
  for ranks, devices in ((1, 8), (2, 4), (4, 2)):
    job = mpirun.run_well(ranks, TRAIN, devices)
    bits += [digests(out) for out in job.outs]
  assert len(bits) == 7 and len(bits[0]) == 2
  assert all(one == bits[0] for one in bits), bits
