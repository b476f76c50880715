"""Several clients of one job, and several programs on parts of its processes."""

import re

import distributed
import mpirun
import pytest
import test_two_hosts
import test_ucx

# Two halves of four processes run different programs, a different number of times, and then a program together.
HALVES = """
    half, me = jax.process_index() PART, jax.process_index()
    mine = [d for d in jax.devices() if d.process_index PART == half]
    mesh, everybody = Mesh(mine, ('x',)), Mesh(jax.devices(), ('x',))
    n = len(mine)
    spread = NamedSharding(mesh, P('x'))
    row = lambda i: np.full((1, 20000), (i[0].start or 0) + 1 + 10 * half, np.float32)
    x = jax.make_array_from_callback((n, 20000), spread, row)
    if half:
      turn = jax.jit(jax.shard_map(lambda v: lax.ppermute(v, 'x', [(i, (i + 1) % n) for i in range(n)]), mesh=mesh,
                                   in_specs=P('x'), out_specs=P('x')))
      for _ in range(301): x = turn(x)
    else:
      total = jax.jit(jax.shard_map(lambda v: lax.psum(v, 'x') / 10, mesh=mesh, in_specs=P('x'), out_specs=P('x')))
      for _ in range(100):
        y = total(x)
      x = y
    got = [float(np.asarray(shard.data)[0, -1]) for shard in x.addressable_shards]
    ones = jax.make_array_from_callback((2 * n,), NamedSharding(everybody, P('x')), lambda i: np.ones(1, np.float32))
    together = float(jax.jit(jnp.sum, out_shardings=NamedSharding(everybody, P()))(ones))
    os.write(1, f'{me} of half {half}: {got} {together}\\n'.encode())
    """
# By the positions of devices in their half: sums of 1 to 4, and of 11 to 14 rotated once.
WANTED = [[1.0] * 4, [14.0, 11.0, 12.0, 13.0]]


def expect_halves(out, place_of):
  """`place_of`: the position of a process in its half, by process and half."""
  found = re.findall(r"(\d) of half (\d): (\[.*\]) (.*)", out)
  assert len(found) == 4, out
  for process, half, got, together in found:
    place = 2 * place_of(int(process))
    assert (got, together) == (str(WANTED[int(half)][place:place + 2]), "8.0"), out


def test_two_programs_on_halves_of_a_host():
  job = distributed.run_well("import os\n" + HALVES.replace("PART", "// 2").replace("\n    ", "\n"), 2, 4)
  expect_halves("".join(job.outs.values()), lambda process: process % 2)


@test_ucx.NEEDS_UCX
def test_two_programs_across_hosts_by_ucx():
  """Each half has a process on each host."""
  returncode, out, err = test_ucx.run(2, HALVES.replace("PART", "% 2"), 2)
  assert returncode == 0, (out, err)
  expect_halves(out, lambda process: process // 2)


@mpirun.NEEDS_MPIRUN
def test_two_programs_across_hosts_by_mpi():
  returncode, out, err = test_two_hosts.run(2, "import os\n" + HALVES.replace("PART", "% 2").replace("\n    ", "\n"), 2)
  assert returncode == 0, (out, err)
  expect_halves(out, lambda process: process // 2)


SECOND = """
    from jax._src import distributed
    from jax._src.lib import xla_client
    me, store = jax.process_index(), distributed.global_state.client
    def make(store=store, **options):
      return xla_client.make_c_api_client('minipod', options, store)
    def total(devices):
      mesh = Mesh(devices, ('x',))
      own = lambda i: np.array([i[0].start or 0], np.float32)
      x = jax.make_array_from_callback((len(devices),), NamedSharding(mesh, P('x')), own)
      return float(jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(x))
    """


def run_second(program, num_processes=2):
  job = distributed.run_well(SECOND + program, 4 // num_processes, num_processes)
  assert len(set(job.outs.values())) == 1
  return job.outs[0].splitlines()


def test_a_second_client_of_all_processes():
  assert run_second("""
    second = make(node_id=me, num_nodes=2)
    for _ in range(3): print(total(second.devices()), total(jax.devices()))
    """) == ["6.0 6.0"] * 3


def test_a_second_client_of_its_process_alone():
  """Ignores what earlier clients have joined: `bootstrap: none` must always have an effect."""
  assert run_second("""
    alone = make(None, bootstrap='none')
    print(len(alone.devices()), alone.process_index())
    for _ in range(me + 1): assert total(alone.devices()) == 1
    print(total(jax.devices()))
    """) == ["2 0", "6.0"]


# Three of four processes have a client of their own, with one device each, and use it more often than the client of
# all.
THREE = """
    place = {0: 0, 2: 1, 3: 2}.get(me)
    if place is not None:
      some = make(OPTIONS)
      wanted = [(3.0, place, 3)] * 5
      assert [(total(some.devices()), some.process_index(), len(some.devices())) for _ in range(5)] == wanted
    print(total(jax.devices()))
    """
LISTED = THREE.replace("OPTIONS", "node_id=me, num_nodes=4, subset='0,2,3'")
NUMBERED = THREE.replace("OPTIONS", "node_id=place, num_nodes=3")


@pytest.mark.parametrize("program", [LISTED, NUMBERED], ids=["listed", "numbered"])
def test_a_client_of_some_processes(program):
  assert run_second(program, 4) == ["6.0"]


@test_ucx.NEEDS_UCX
def test_a_client_of_some_processes_of_two_hosts_by_ucx():
  returncode, out, err = test_ucx.run(2, SECOND + LISTED, 1)
  assert returncode == 0, (out, err)
  assert out.count("6.0") == 4, (out, err)


@mpirun.NEEDS_MPIRUN
@test_ucx.NEEDS_UCX
def test_a_client_of_some_processes_in_a_job_of_mpirun():
  """All processes use MPI; some use shared memory and UCX."""
  code = "import jax\njax.distributed.initialize()\n" + (SECOND + LISTED).replace("\n    ", "\n")
  returncode, out, err = test_two_hosts.run(2, code, 1)
  assert returncode == 0, (out, err)
  assert out.count("6.0") == 4, (out, err)


def test_two_jobs_of_one():
  """Halves whose only client is that of their half, set by the variable."""
  job = distributed.run_well("""
    os.environ['MINIPOD_SUBSET'] = '0,2' if int(os.environ['PROCESS_ID']) % 2 == 0 else '3,1'
    from jax.experimental import multihost_utils
    print(jax.process_index(), jax.process_count(), len(jax.devices()))
    for _ in range(1 + jax.process_index()):
      jax.jit(lambda x: x + 1)(jnp.zeros(3))
    me = np.array([int(os.environ['PROCESS_ID'])])
    print(multihost_utils.process_allgather(me).ravel().tolist())
    """, 1, 4)
  assert [out.splitlines() for out in job.outs.values()] == [["0 2 2", "[0, 2]"], ["1 2 2", "[3, 1]"], ["1 2 2", "[0, 2]"],
                                                            ["0 2 2", "[3, 1]"]]


DEATH = """\
import os, signal, time, jax
import numpy as np
me = int(os.environ["PROCESS_ID"])
os.environ["MINIPOD_SUBSET"] = "3,1" if me % 2 else "0,2"
jax.config.update("jax_enable_recoverability", True)
jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]), me)
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(jax.devices(), ("i",))
total = jax.jit(lambda v: v.sum(), out_shardings=NamedSharding(mesh, P()))
x = jax.make_array_from_callback((2,), NamedSharding(mesh, P("i")), lambda i: np.ones(1, np.float32))
store = jax._src.distributed.global_state.client
for step in range(40):
  if (me, step) == (2, 20):
    os.kill(os.getpid(), signal.SIGKILL)
  try:
    assert float(total(x)) == 2
  except Exception as error:
    os.write(1, f"step {step}: {error}".encode())
    break
  time.sleep(0.02)
else:
  os.write(1, b"well")
# Process 0 has JAX's service, and goes last.
store.key_value_set(f"over/{me}", "")
for other in (1, 3) if me == 0 else ():
  store.blocking_key_value_get(f"over/{other}", 60000)
os._exit(0)
"""


def test_a_death_in_one_half_leaves_the_other_alone():
  job = distributed.run(DEATH, 1, 4, is_whole=True)
  assert job.returncodes == {0: 0, 1: 0, 2: -9, 3: 0}, job.errs
  assert job.outs[0].startswith("step 20: UNAVAILABLE: process 1 (pid "), job.outs
  assert "has ended unexpectedly; device 0 waits at stablehlo.all_reduce" in job.outs[0], job.outs
  assert (job.outs[1], job.outs[3]) == ("well", "well")


def test_a_client_of_one_process_is_its_own():
  assert run_second("""
    for options in {'node_id': 0, 'num_nodes': 1}, {'node_id': me, 'num_nodes': 2, 'subset': str(me)}:
      alone = make(**options)
      print(len(alone.devices()), alone.process_index(), total(alone.devices()))
    print(total(jax.devices()))
    """) == ["2 0 1.0", "2 0 1.0", "6.0"]


def test_what_no_client_of_some_processes_can_be():
  """The error gives the reason, and the client of all processes still works."""
  assert run_second("""
    def fail(*args, **options):
      try:
        make(*args, **options)
      except Exception as error:
        print(str(error)[:150])
    fail(None, node_id=me % 2, num_nodes=2)
    fail(num_nodes=2)
    fail(node_id=me, num_nodes=4, subset='0;1')
    fail(node_id=me, num_nodes=5)
    print(total(jax.devices()))
    """, 4) == [
        "FAILED_PRECONDITION: a client of 2 of the job's processes requires the key-value store of "
        "jax.distributed.initialize(), which this client does not hav",
        "INVALID_ARGUMENT: option 'node_id': a client of 2 processes (num_nodes) in a job of 4 needs a number for each of them, "
        "0 to 1; got -1",
        "INVALID_ARGUMENT: option 'subset': expected processes of the job, each once, such as 0,2,3; got '0;1': not a "
        "list of numbers",
        "INVALID_ARGUMENT: jax.distributed says that there are 5 processes (num_nodes), the job that there are 4", "6.0"]


def test_two_processes_that_would_be_the_same_one():
  """Both processes have id 0 of two: neither hangs, and one gets an error."""
  job = distributed.run_well(SECOND + """
    try:
      make(node_id=0, num_nodes=2)
    except Exception as error:
      print(error)
    print(total(jax.devices()))
    """, 1, 3, MINIPOD_INIT_TIMEOUT_S=5)
  for out in job.outs.values():
    assert "a client of 2 of the job's processes, in which this is number 0: " in out and out.splitlines()[-1] == "3.0", out
  assert "another process (pid " in "".join(job.outs.values())
