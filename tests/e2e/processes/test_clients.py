"""Several clients of one job, and several programs on parts of its processes."""

import re

import distributed
import mpirun
import pytest
import test_two_hosts
import test_ucx

# Two halves of four processes run different programs of their own, a different number of times, and then one together.
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
# By the places of devices in their half: sums of 1 to 4, and 11 to 14 turned once.
WANTED = [[1.0] * 4, [14.0, 11.0, 12.0, 13.0]]


def expect_halves(out, place_of):
  """`place_of`: the place of a process in its half, by process and half."""
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
  """Each half has a process on either host."""
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


def run_second(program):
  job = distributed.run_well(SECOND + program, 2, 2)
  assert job.outs[0] == job.outs[1]
  return job.outs[0].splitlines()


def test_a_second_client_of_all_processes():
  assert run_second("""
    second = make(node_id=me, num_nodes=2)
    for _ in range(3): print(total(second.devices()), total(jax.devices()))
    """) == ["6.0 6.0"] * 3


def test_a_second_client_of_its_process_alone():
  """Whatever the client before has joined: `bootstrap: none` is no word that may pass unheard."""
  assert run_second("""
    alone = make(None, bootstrap='none')
    print(len(alone.devices()), alone.process_index())
    for _ in range(me + 1): assert total(alone.devices()) == 1
    print(total(jax.devices()))
    """) == ["2 0", "6.0"]


def test_a_second_client_of_some_processes_is_refused():
  """The error says what is there instead, and the client of all goes on."""
  assert run_second("""
    try:
      make(node_id=0, num_nodes=1)
    except Exception as error:
      print(error)
    print(total(jax.devices()))
    """) == ["INVALID_ARGUMENT: a client of 1 processes (num_nodes) is asked for in a job of 2, and each client has all of them. "
             "Programs on some processes need no client of their own: a mesh of the devices of these does it. With the option "
             "bootstrap: none, and without num_nodes, a client has the devices of its process alone", "6.0"]
