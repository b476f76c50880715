"""Processes that the variables of TPU hosts connect: several per host, without a coordinator."""

import re

import distributed
import mpirun
import pytest
from test_mpirun import TRAIN, digests
from test_ucx import NEEDS_UCX
import scenario
import test_ucx

SUM = """
import os
{before}
import jax
import numpy as np
x = np.array([device.id for device in jax.local_devices()], np.float32)
total = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")(x)[0]
places = [device.coords[:2] for device in jax.local_devices()]
# In one piece: the processes of a test may have one pipe.
os.write(1, f"{{jax.process_index()}} of {{jax.process_count()}}: {{total}} {{places}}\\n".encode())
"""
PLAIN = SUM.format(before="")


def variables(count, bounds=None, chips="1,1,1", host="127.0.0.1"):
  """The variables of all processes, and those of each."""
  first = distributed.free_port()
  addresses = [f"{host}:{first + i}" for i in range(count)]
  shared = {"TPU_PROCESS_ADDRESSES": ",".join(addresses)}
  if bounds:
    shared |= {"TPU_PROCESS_BOUNDS": bounds, "TPU_CHIPS_PER_PROCESS_BOUNDS": chips}
  return shared, {i: {"CLOUD_TPU_TASK_ID": str(i), "TPU_PROCESS_PORT": str(first + i)} for i in range(count)}


def run(code, count, *, bounds=None, chips="1,1,1", own=None, started=None, **more):
  shared, each = variables(count, bounds, chips)
  each = {i: each[i] | (own or {}).get(i, {}) for i in each}
  return distributed.run(code, None, count, is_whole=True, own=each, started=started, **shared | more)


@pytest.mark.parametrize("bounds, chips, places", [
    ("2,2,1", "1,1,1", ["[[0, 0]]", "[[1, 0]]", "[[0, 1]]", "[[1, 1]]"]),
    ("2,1,1", "1,2,1", ["[[0, 0], [0, 1]]", "[[1, 0], [1, 1]]"]),
])
def test_each_process_has_its_chips(bounds, chips, places):
  job = run(PLAIN, len(places), bounds=bounds, chips=chips, MINIPOD_TOPOLOGY="v6e:2x2").expect_good_end()
  for i, where in enumerate(places):
    assert job.outs[i].strip() == f"{i} of {len(places)}: 6.0 {where}"


def test_workers_of_hosts_need_the_platform():
  names = {"TPU_WORKER_HOSTNAMES": "localhost,localhost", "MINIPOD_TOPOLOGY": "v6e:2x2"}
  job = distributed.run_well(PLAIN, None, 1, is_whole=True, TPU_WORKER_ID="0", **names)
  assert job.outs[0].startswith("0 of 1: 6.0")


def test_initialize_takes_them_too():
  code = SUM.format(before="import jax; jax.distributed.initialize()")
  job = run(code, 2, bounds="1,2,1", chips="2,1,1", MINIPOD_TOPOLOGY="v6e:2x2").expect_good_end()
  assert job.outs[1].strip() == "1 of 2: 6.0 [[0, 1], [1, 1]]"


@pytest.mark.parametrize("bounds, text", [
    ("1,2,1", "TPU_PROCESS_BOUNDS x TPU_CHIPS_PER_PROCESS_BOUNDS is 1,2,1 x 1,1,1, a grid of 1x2x1 chips for 2 "
              'processes, but topology "v6e:2x2" has 2x2x1 chips'),
    ("2,2,1", "TPU_PROCESS_BOUNDS is 2,2,1, a grid of 4 processes, but TPU_PROCESS_ADDRESSES lists 2"),
])
def test_bounds_must_fit(bounds, text):
  job = run(PLAIN, 2, bounds=bounds, MINIPOD_TOPOLOGY="v6e:2x2")
  for i in range(2):
    assert job.returncodes[i] != 0 and text in job.errs[i], job.errs[i]


def test_the_missing_are_named():
  job = run(PLAIN, 3, started=[0, 1], MINIPOD_INIT_TIMEOUT_S=5)
  assert re.search(r"DEADLINE_EXCEEDED: no message within 5 s from process 2 \(127.0.0.1:\d+\)", job.errs[0]), job.errs[0]


# Each process except the victim prints how its program ended, and how soon after the victim's end.
VICTIM = """
import os, signal, time
import jax
import numpy as np
f = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")
x = np.ones((jax.local_device_count(), 100000), np.float32)
f(x).block_until_ready()
if jax.process_index() == {victim}:
  time.sleep(0.5)  # the others have received their part of the sum
  {how}
begin = time.time()
try:
  while True:
    f(x).block_until_ready()
except Exception as error:
  os.write(1, f"after {{time.time() - begin}} s: {{error}}\\n".encode())
"""


@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("how, text", [("os.kill(os.getpid(), signal.SIGKILL)", "has ended"),
                                       ("raise SystemExit(3)", "has exited with status 3"),
                                       ("raise RuntimeError('x')", "has exited with status 1")])
def test_a_death_is_named_within_2_s(victim, how, text):
  job = run(VICTIM.format(victim=victim, how=how), 3)
  for i in {0, 1, 2} - {victim}:
    found = re.search(r"after ([\d.]+) s: (.*)", job.outs[i])
    assert found and f"process {victim} " in found[2] and text in found[2], (job.outs, job.errs)
    assert float(found[1]) < 0.5 + 2 * scenario.slowness(), job.outs[i]
    assert job.returncodes[i] == 0, job.errs[i]


@NEEDS_UCX
def test_training_over_two_hosts_has_the_bits_of_one_process():
  """The first host's address is in COORDINATOR, which the simulation of hosts sets."""
  before = """
import os
host = os.environ["COORDINATOR"].split(":")[0]
count = int(os.environ["NUM_PROCESSES"])
os.environ["TPU_PROCESS_ADDRESSES"] = ",".join(f"{host}:{8070 + i}" for i in range(count))
os.environ["CLOUD_TPU_TASK_ID"] = os.environ["PROCESS_ID"]
"""
  alone = digests(scenario.run(TRAIN, 8))
  code = before + scenario.PRELUDE + test_ucx.textwrap.dedent(TRAIN)
  returncode, out, err = test_ucx.run(2, code, 2, is_whole=True, timeout=150)
  assert returncode == 0, (out, err)
  assert sorted(digests(out)) == sorted(alone * 4), (out, err)


@mpirun.NEEDS_MPIRUN
def test_mpirun_connects_its_ranks_itself():
  code = "import os; os.environ['CLOUD_TPU_TASK_ID'] = os.environ['OMPI_COMM_WORLD_RANK']\n"
  shared, _ = variables(2)
  job = mpirun.run_well(2, code + "print(jax.process_count())", 1, **shared)
  assert job.out.split() == ["2", "2"]
