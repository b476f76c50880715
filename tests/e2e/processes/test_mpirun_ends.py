"""How jobs of several processes end, and how they fail at start."""

import glob
import os
import re
import signal
import tempfile
import time

import pytest

import mpirun
import scenario

pytestmark = mpirun.NEEDS_MPIRUN

# Both ranks work together once, then rank 1 does something and rank 0 waits for rank 1.
JOB = """
    import os, sys, time
    mesh = Mesh(np.array(jax.devices()), ('x',))
    x = jax.make_array_from_callback((jax.device_count(),), NamedSharding(mesh, P('x')),
                                     lambda i: np.ones(1, np.float32))
    total = jax.jit(lambda v: v.sum())
    assert float(total(x)) == jax.device_count()
    print('ready', jax.process_index(), os.getpid(), 'go', flush=True)
    float(total(x))
    time.sleep(0.2)
    if jax.process_index() == 1:
      END
    print('sum', float(total(x)), flush=True)
    """
# The library's own limits; a process that waits for one of them exceeds its test's limit.
DAY = 24 * 3600
# Seconds until killed processes have gone.
SECONDS = 100


def named_files():
  """Files of minipod's jobs in shared folders, except those of `minipod sweep`, whose tests may run concurrently."""
  return [name for name in glob.glob("/dev/shm/*minipod*") + glob.glob("/tmp/minipod*")
          if not name.startswith("/tmp/minipod-sweep-")]


class Ending(mpirun.Job):
  """A job of two ranks that have both started."""

  def __init__(self, end, **variables):
    # Separate folders for files, so that files of other jobs do not count.
    self.places = tempfile.TemporaryDirectory(prefix="pytest-places-")
    self.before = set(named_files())
    limits = {"MINIPOD_EXIT_TIMEOUT_S": DAY, "MINIPOD_COLLECTIVE_TIMEOUT_S": DAY,
              "MINIPOD_COLLECTIVE_WARN_S": 0}
    super().__init__(2, JOB.replace("END", end), 2, TMPDIR=self.places.name,
                     **(limits | variables),
                     options=["--mca", "btl_vader_backing_directory", self.places.name])
    self.pids = {}
    while len(self.pids) < 2:
      said = self.read(0, "stdout") + self.read(1, "stdout")
      self.pids = dict(re.findall(r"ready (\d) (\d+) go", said))
      if self.process.poll() is not None and len(self.pids) < 2:
        self.finish()
        pytest.fail(f"it ended with {self.returncode} before the ranks were ready\n{self.err}")
      time.sleep(0.02)

  def expect(self, returncode):
    """Waits for the end, which must come before any time limit and leave no files."""
    self.finish()
    assert returncode == "not 0" and self.returncode != 0 or self.returncode == returncode, self.err
    # mpirun may not wait for the processes that it has killed.
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and self.left():
      time.sleep(0.05)
    assert not self.left()
    self.places.cleanup()
    return self

  def left(self):
    """Processes and files that still exist; minipod's own files always have its name."""
    return ([pid for pid in self.pids.values() if scenario.is_running(pid)] +
            glob.glob(f"{self.places.name}/*") +
            [name for name in named_files() if name not in self.before])


def last_line(text):
  lines = [line for line in text.splitlines() if line.strip()]
  return lines[-1] if lines else ""


def test_normal_end():
  job = Ending("pass").expect(0)
  assert all(out.endswith("sum 4.0\n") for out in job.outs)
  assert job.errs == ["", ""]


def test_one_rank_ends_later():
  job = Ending("float(total(x)); time.sleep(1.5); sys.exit(0)").expect(0)
  assert job.errs == ["", ""]


def test_uncaught_exception():
  job = Ending("raise ValueError('mine')").expect(1)
  assert "ValueError: mine" in job.errs[1]
  assert re.match(r"minipod: .* exits with status 1", last_line(job.errs[1])), job.errs


def test_exit_code():
  job = Ending("sys.exit(3)").expect(3)
  assert re.match(r"minipod: .* exits with status 3", last_line(job.errs[1])), job.errs


def test_killed():
  job = Ending("time.sleep(60)")
  os.kill(int(job.pids["1"]), signal.SIGKILL)
  job.expect("not 0")
  assert re.match(rf"minipod: process 1 \(pid {job.pids['1']} .*was killed", last_line(job.errs[0]))


@pytest.mark.parametrize("end", [
    "import atexit; atexit.register(lambda: os.kill(os.getpid(), 9)); sys.exit(0)",
    "import jax.extend; jax.extend.backend.clear_backends(); os.kill(os.getpid(), 9)",
], ids=["before all else", "without a client"])
def test_killed_while_it_exits(end):
  job = Ending(end).expect("not 0")
  assert re.match(rf"minipod: process 1 \(pid {job.pids['1']} .*was killed", last_line(job.errs[0]))


def test_interrupt():
  job = Ending("time.sleep(60)")
  job.process.send_signal(signal.SIGINT)
  job.expect("not 0")


def test_a_rank_that_leaves_the_others_waiting():
  job = Ending("sys.exit(0)").expect(1)
  assert re.search(r"process 1 .*has exited", job.errs[0]), job.errs
  assert re.match(r"minipod: .* exits with status 1", last_line(job.errs[0])), job.errs


def test_a_rank_that_does_not_come():
  job = Ending("time.sleep(60)", MINIPOD_COLLECTIVE_WARN_S=1, MINIPOD_COLLECTIVE_TIMEOUT_S=2)
  job.expect(1)
  first = job.errs[0].splitlines()[0]
  assert re.match(r"minipod: process 0: .*devices 0, 1 wait at stablehlo.all_reduce", first), first
  assert "devices 2, 3 of process 1" in first and "process 1 reports: " in first, first
  assert "DEADLINE_EXCEEDED: " in job.errs[0]
  assert re.match(r"minipod: .* exits with status 1", last_line(job.errs[0])), job.errs


def test_subprocess_of_a_rank_is_alone():
  job = mpirun.run_well(2, """
      import subprocess, sys
      before = jax.process_count()
      alone = subprocess.run([sys.executable, '-c', 'import jax; print(jax.process_count())'],
                             capture_output=True, text=True)
      print(before, alone.stdout.strip(), alone.stderr[-500:])
      """, 2)
  assert [out.split() for out in job.outs] == [["2", "1"]] * 2


def test_separate_worlds_on_request():
  job = mpirun.run_well(2, "print(jax.process_count(), jax.device_count())", 3,
                        MINIPOD_BOOTSTRAP="none")
  assert job.outs == ["1 3\n"] * 2


def test_unequal_numbers_of_devices():
  program = "print(jax.process_count(), jax.device_count(), jax.local_device_count())"
  job = mpirun.run_well(2, [(program, {"MINIPOD_DEVICES": 1}), (program, {"MINIPOD_DEVICES": 3})])
  assert job.outs == ["2 4 1\n", "2 4 3\n"]
  assert re.match(r"minipod: .*unequal numbers of devices \(process 0 has 1, process 1 has 3\)",
                  job.errs[0])
  assert job.errs[0].count("\n") == 1 and job.errs[1] == ""


def test_other_topologies():
  program = "print(jax.device_count())"
  job = mpirun.run(2, [(program, {"MINIPOD_TOPOLOGY": "ring:4"}),
                       (program, {"MINIPOD_TOPOLOGY": "ring:8"})])
  assert job.returncode == 1 and job.out == ""
  assert "the processes disagree on the topology: process 0" in job.err
  assert '"ring:4"' in job.err and '"ring:8"' in job.err


def test_described_pod_is_divided():
  program = "print([(d.process_index, d.host_index, *d.coords) for d in jax.devices()])"
  job = mpirun.run_well(2, program, MINIPOD_TOPOLOGY="v5e:4x2")
  for out in job.outs:
    assert eval(out) == [(p, p, 2 * p + x, y, 0) for p in (0, 1) for y in (0, 1) for x in (0, 1)]


def test_described_pod_that_cannot_be_divided():
  job = mpirun.run(3, "print(jax.devices())", MINIPOD_TOPOLOGY="v5e:4x2")
  assert job.returncode == 1 and job.out == ""
  assert "8 devices on 2 hosts, which cannot be divided among 3 processes" in job.err


def test_binding_that_starves_the_devices():
  if len(os.sched_getaffinity(0)) < 2:
    pytest.skip("one core: nothing can be taken away")
  job = mpirun.run_well(2, "jax.devices()", 4, options=["--bind-to", "core"])
  assert re.match(r"minipod: process 0 is bound to 1 of .*mpirun --bind-to none", job.errs[0])
  assert job.errs[0].count("\n") == 1 and job.errs[1] == ""


def test_jax_distributed_with_the_launcher():
  job = mpirun.run_well(2, """
      jax.distributed.initialize()
      from jax.experimental import multihost_utils
      with multihost_utils.live_devices(jax.devices()) as live:
        print(jax.process_count(), jax.device_count(), len(live))
      """, 2)
  assert job.outs == ["2 4 4\n"] * 2


def test_jax_distributed_with_a_launcher_that_jax_does_not_know():
  """Open MPI from version 5 on does not set the variable that JAX reads."""
  job = mpirun.run_well(2, """
      import os
      del os.environ["OMPI_MCA_orte_hnp_uri"]
      from minipod.jax import early
      early.attend()
      jax.distributed.initialize()
      print(jax.process_count(), jax.device_count(), jax.process_index())
      """, 2)
  assert job.outs == ["2 4 0\n", "2 4 1\n"]


def test_jax_distributed_without_a_launcher():
  err = scenario.run("""
      jax.config.update('jax_pjrt_client_create_options', {'num_nodes': 2, 'node_id': 0})
      jax.devices()
      """, fails=True)
  assert "one of 2 processes" in err and "the client brings no key-value callbacks" in err


MPI4PY = """
    import os, sys
    FIRST
    mesh = Mesh(np.array(jax.devices()), ('x',))
    x = jax.make_array_from_callback((jax.device_count(),), NamedSharding(mesh, P('x')),
                                     lambda i: np.ones(1, np.float32))
    total = float(jax.jit(lambda v: v.sum())(x))
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    print(jax.process_count(), total, world.Get_size(), world.allreduce(world.Get_rank() + 1))
    """


@pytest.mark.parametrize("first", ["pass", "from mpi4py import MPI"], ids=["after", "before"])
def test_together_with_mpi4py(first):
  pytest.importorskip("mpi4py")
  job = mpirun.run_well(2, MPI4PY.replace("FIRST", first), 2)
  assert job.outs == ["2 4.0 2 3\n"] * 2
