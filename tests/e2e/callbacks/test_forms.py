"""Every form of callback in every place behaves on minipod as on JAX's CPU backend.

forms.py has the table.  It runs as a whole in a process for each platform, and each cell is a test.
"""

import json
import os
import pathlib
import subprocess
import sys

import jax
import mpirun
import pytest
import scenario

sys.path.insert(0, os.path.dirname(__file__))
import forms

SCRIPT = pathlib.Path(__file__).with_name("forms.py")
# The other places are a longer run: MINIPOD_TEST_FULL=1.
EVERY_DAY = ("jit", "pmap", "shard_map", "sharded", "scan")
PLACES = tuple(forms.PLACES) if os.environ.get("MINIPOD_TEST_FULL") else EVERY_DAY
DISTRIBUTED = ("shard_map", "sharded")


def start(**variables):
  environment = scenario.environment(8, TF_CPP_MIN_LOG_LEVEL=3) | variables
  return subprocess.Popen([sys.executable, SCRIPT, *PLACES], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


@pytest.fixture(scope="module")
def outcomes():
  """The outcomes on minipod, and on JAX's CPU backend."""
  processes = start(), start(JAX_PLATFORMS="cpu", JAX_NUM_CPU_DEVICES="8")
  results = []
  for process in processes:
    returncode, out, err = scenario.finish(process, 170)
    assert returncode == 0, err
    results.append(json.loads(out))
  return results


def in_order(outcome):
  """An outcome in which calls without a guaranteed order are sorted."""
  return outcome | {name: sorted(map(str, outcome[name])) for name in ("told", "printed")
                    if name in outcome}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("form", forms.FORMS)
def test_as_on_a_cpu(outcomes, form, place):
  if (form, place) == ("io_callback_ordered", "sharded") and jax.__version_info__ < (0, 10):
    pytest.skip("JAX 0.9 annotates it such that XLA calls each device with its part")
  own, reference = (of.get(f"{form} in {place}") for of in outcomes)
  # XLA's process would end, or XLA cannot compile the program.
  if reference is None or "RET_CHECK" in str(reference):
    reference = outcomes[1][f"{form} in shard_map"]
  if place in ("jit", "scan") and "ordered" in form:
    assert own == reference
  assert in_order(own) == in_order(reference)


# ---- Over two processes ----


@pytest.fixture(scope="module")
def ranks():
  job = mpirun.Job(2, SCRIPT, 4, arguments=DISTRIBUTED).finish().expect_good_end()
  return [json.loads(out.splitlines()[-1]) for out in job.outs]


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("place", DISTRIBUTED)
@pytest.mark.parametrize("form", forms.FORMS)
def test_over_two_processes(outcomes, ranks, form, place):
  """Together, the processes have the outcome of one; one of them makes a call on one device."""
  cells = [rank[f"{form} in {place}"] for rank in ranks]
  whole = outcomes[0][f"{form} in {place}"]
  if "error" in whole:
    for cell in cells:
      assert cell["error"][1][:40] == whole["error"][1][:40] or "process" in cell["error"][1]
    return
  together = {key: cells[0][key] + cells[1][key] for key in cells[0]}
  together["values"].sort()
  assert in_order(together) == in_order(whole)
