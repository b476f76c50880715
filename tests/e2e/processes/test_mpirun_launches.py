"""Launches over the processes of a real mpirun that disagree, come late, or outlive their process."""

import re
import subprocess
import tempfile
import time

import mpirun
import pytest

pytestmark = mpirun.NEEDS_MPIRUN

SETUP = """
    import time
    n, rank = len(jax.devices()), jax.process_index()
    mesh = Mesh(np.array(jax.devices()), ("x",))
    def place(value):
      sharding = NamedSharding(mesh, P("x"))
      return jax.make_array_from_callback(value.shape, sharding, lambda i: value[i])
    def over_all(f):
      return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False))
    x = place(np.ones((n, 4), np.float32))
    total = over_all(lambda a: lax.psum(a, "x"))
    def outcome(f, *args):
      try:
        value = f(*args)
        return np.asarray(value.addressable_data(0))[0, 0]
      except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


def outcomes(program, ranks=2, devices=2, **variables):
  """The output of each rank."""
  return mpirun.run_well(ranks, SETUP + program, devices, **variables).outs


def test_different_collectives_say_both_sides():
  outs = outcomes("""
    f = total if rank == 0 else over_all(lambda a: lax.all_gather(a, "x", tiled=True))
    print(outcome(f, x))
    print(outcome(total, x))  # the next launch is well
    """)
  for out in outs:
    first, second = out.splitlines()
    assert "collectives do not match: process 0: device 0 is at stablehlo.all_reduce" in first
    assert "while process 1: device 2 is at stablehlo.all_gather" in first
    assert "they are different operations" in first
    assert second == "4.0"


def test_different_reductions_and_types_do_not_meet():
  outs = outcomes("""
    print(outcome(total if rank == 0 else over_all(lambda a: lax.pmax(a, "x")), x))
    print(outcome(total, x if rank == 0 else place(np.ones((n, 5), np.float32))))
    """)
  for out in outs:
    first, second = out.splitlines()
    assert "their reductions differ" in first
    assert "their types differ" in second


def test_a_waiting_process_prints_what_the_other_does():
  with tempfile.NamedTemporaryFile(prefix="pytest-signal-") as signal:
    job = mpirun.Job(2, SETUP + f"""
    while rank == 1 and not open({signal.name!r}).read(): time.sleep(0.05)
    print(outcome(total, x))
    """, 2, MINIPOD_COLLECTIVE_WARN_S=1)
    # The other rank comes only after the waiting one has printed that it waits.
    while "missing for" not in job.read(0, "stderr") and job.process.poll() is None:
      time.sleep(0.05)
    signal.write(b"come")
    signal.flush()
    job.finish().expect_good_end()
  assert job.outs == ["4.0\n", "4.0\n"]
  line = (r"process 0: launch 0: devices 0, 1 wait at stablehlo.all_reduce .*; missing for \d+ s: "
          r"devices 2, 3 of process 1; process 1 reports: it has launched nothing")
  assert re.search(line, job.err), job.err
  assert job.err.count("missing for") == 1


def test_exit_with_work_in_flight_does_not_let_the_others_down():
  outs = outcomes("""
    total(x).block_until_ready()
    if rank == 1: time.sleep(2)
    for _ in range(3): y = total(x)
    if rank == 1: print(outcome(lambda: y))
    """)
  assert outs == ["", "4.0\n"]


def test_clients_one_after_the_other():
  outs = outcomes("""
    import jax.extend.backend
    print(outcome(total, x))
    jax.extend.backend.clear_backends()
    jax.clear_caches()
    """ + SETUP + """
    print(outcome(total, x))
    """, ranks=3)
  assert outs == ["6.0\n6.0\n"] * 3


def test_a_wait_tells_the_line_of_its_own_call():
  """JAX caches the program of the first sum, whose operations have that line."""
  job = mpirun.run_well(2, """
      import time
      mesh = Mesh(np.array(jax.devices()), "i")
      x = jax.make_array_from_callback((4,), NamedSharding(mesh, P("i")),
                                       lambda i: np.arange(4, dtype=np.float32)[i])
      print(jnp.sum(x))  # the first sum
      if jax.process_index() == 0:
        print(jnp.sum(x))  # the sum that waits
      else:
        time.sleep(6)
        jnp.sum(x)
      """, 2, MINIPOD_COLLECTIVE_WARN_S=2)
  first, waits = (line for line in re.findall(r"(?<=<string>:)\d+", job.err)[:2])
  assert int(waits) == int(first) + 2, job.err
  assert re.search(r"\(reduce_sum at <string>:\d+:\d+\), called at <string>:\d+; missing", job.err)


@pytest.mark.parametrize("options", ["size=64k", "ro,size=1m"], ids=["full", "unwritable"])
def test_shared_memory_needs_no_folder(options):
  """/dev/shm is small in containers: Open MPI prints a message, but the pod's shared memory is not in it."""
  alone = ["unshare", "--mount", "sh", "-c",
           f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$@"', "sh"]
  if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
    pytest.skip("no mount namespace of our own here")
  code = """
      mesh = jax.make_mesh((4,), ("i",))
      f = jax.jit(jax.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
      x = jax.make_array_from_callback((4, 1 << 20), NamedSharding(mesh, P("i")),
                                       lambda i: np.ones((1, 1 << 20), np.float32))
      y = np.asarray(f(x).addressable_shards[0].data)
      assert y.min() == y.max() == 4
      print("good")
      """
  done = subprocess.run(
      [*alone, mpirun.LAUNCHER, *mpirun.OPTIONS, "-n", "2", *mpirun.command_of(code)],
      env=mpirun.environment(2), capture_output=True, text=True, timeout=mpirun.SECONDS)
  assert done.returncode == 0, done.stderr
  assert done.stdout.count("good") == 2
