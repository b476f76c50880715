"""Processes that die and restart, as in JAX's guide to fault tolerance: live_devices, kill, shrink, rejoin."""

import json
import re
import sys
import textwrap

import distributed
import mpirun
import pytest
import scenario
import test_ucx

# Restarts a command each time it is killed, as a job's supervisor does.
SUPERVISE = """
import os, subprocess, sys
status, generation = -9, 0
while status == -9 and generation < 12:
  status = subprocess.call(sys.argv[1:], env=dict(os.environ, GENERATION=str(generation)))
  generation += 1
sys.exit(status)
"""
WRAP = [sys.executable, "-c", SUPERVISE]

INITIALIZE = """\
import json, os, signal, threading, time, jax
jax.config.update("jax_enable_recoverability", True)
jax.distributed.initialize(os.environ["COORDINATOR"], int(os.environ["NUM_PROCESSES"]),
                           int(os.environ["PROCESS_ID"]), heartbeat_timeout_seconds=10)
begin = time.monotonic()
jax.devices()
TOOK = time.monotonic() - begin
"""

# Makes steps on the live devices until all planned deaths have happened and all processes have restarted.  The
# processes add up their restarts.  Each process in KILLS dies in the middle of the listed steps, after a short time.
LOOP = """
    from jax.experimental.multihost_utils import live_devices
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    me, generation = jax.process_index(), int(os.environ["GENERATION"])
    kills = json.loads(os.environ["KILLS"])
    mine = kills.get(str(me), [])
    dies_at = mine[generation] if generation < len(mine) else None
    num_deaths = sum(map(len, kills.values()))
    step, steps, stop = 0, 0, False
    if generation:
      os.write(1, f"process {me} back after {TOOK:.2f} s\\n".encode())

    def total(devices, value):
      mesh = Mesh(np.array(devices), ("i",))
      sharding = NamedSharding(mesh, P("i"))
      mine = [jax.device_put(jnp.full((1, 50000), value, jnp.float32), d) for d in devices
              if d.process_index == me]
      x = jax.make_array_from_single_device_arrays((len(devices), 50000), sharding, mine)
      return float(jax.jit(lambda v: v.max(), out_shardings=NamedSharding(mesh, P()))(x)), float(
          jax.jit(lambda v: v.sum() / 50000, out_shardings=NamedSharding(mesh, P()))(x))

    while not stop:
      if steps == dies_at:
        threading.Timer(float(os.environ.get("AFTER", "0.02")),
                        lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
      steps += 1
      try:
        with live_devices(jax.devices()) as devices:
          # The largest step is that of the surviving processes; a restarted process takes it over.
          now, _ = total(devices, step)
          _, returns = total(devices, generation)
          _, got = total(devices, float(1 + me))
          want = sum(1.0 + d.process_index for d in devices)
          assert got == want, (got, want)
      except Exception as error:
        os.write(2, f"process {me} step {step}: {str(error)[:300]}\\n".encode())
      else:
        step = int(now) + 1
        stop = (len(devices) == jax.device_count() and
                returns == num_deaths * jax.local_device_count())
        os.write(1, f"step {int(now)} of process {me}: {len(devices)} live, sum {got}\\n".encode())
      time.sleep(float(os.environ.get("PAUSE", "0.05")))
    os.write(1, f"process {me} ends well at step {step}\\n".encode())
    # Processes that may come back do not wait for each other in JAX's shutdown: process 0, which has
    # the service, goes last, and the others without it.
    jax._src.distributed.global_state.client.wait_at_barrier("end", 60000)
    if me:
      os._exit(0)
    time.sleep(1)
    """


def program(loop=LOOP):
  return INITIALIZE + scenario.PRELUDE + textwrap.dedent(loop)


def run(num_processes, kills, timeout=200, devices=1, loop=LOOP, **variables):
  """A job on this host whose processes restart when they are killed."""
  job = distributed.Job(program(loop), devices, num_processes, is_whole=True,
                        wrap=dict.fromkeys(range(num_processes), WRAP), KILLS=json.dumps(kills),
                        **variables)
  return job.finish(timeout).expect_good_end()


def check(out, err, num_processes, kills):
  ends = re.findall(r"process (\d+) ends well", out)
  assert sorted(map(int, ends)) == list(range(num_processes)), (out, err)
  back = [(int(p), float(s)) for p, s in re.findall(r"process (\d+) back after ([\d.]+) s", out)]
  assert sorted(p for p, _ in back) == sorted(
      int(p) for p, steps in kills.items() for _ in steps), (out, err)
  # On a quiet machine it takes 0.2 s.
  assert all(seconds < 10 for _, seconds in back), back


def test_a_killed_process_comes_back():
  kills = {"3": [2]}
  job = run(4, kills)
  out, err = "".join(job.outs.values()), "".join(job.errs.values())
  check(out, err, 4, kills)
  assert re.search(r"process 3 \(pid \d+ on host \S+\) has rejoined the job", job.errs[0]), err


def test_again_and_again_and_two_at_once():
  kills = {"1": [2, 3], "2": [2, 6], "3": [9]}
  job = run(4, kills, devices=2)
  check("".join(job.outs.values()), "".join(job.errs.values()), 4, kills)


def test_one_that_is_back_before_anybody_missed_it():
  """JAX lets the other process begin its step at once, because it has reported the live processes in the step before.

  The restarted process asks first, and that step waits for it until the limit.  The next launch is then the same for
  both.
  """
  kills = {"1": [1]}
  job = run(2, kills, AFTER=1.5, PAUSE=6, MINIPOD_COLLECTIVE_TIMEOUT_S=4)
  check("".join(job.outs.values()), "".join(job.errs.values()), 2, kills)


@test_ucx.NEEDS_UCX
@pytest.mark.parametrize("ranks, kills", [(1, {"1": [2]}), (2, {"1": [2], "3": [2, 5]})])
def test_over_two_hosts(ranks, kills):
  returncode, out, err = test_ucx.run(ranks, program(), 1, timeout=200, wrap=WRAP, is_whole=True,
                                      KILLS=json.dumps(kills))
  assert returncode == 0, (out, err)
  check(out, err, 2 * ranks, kills)


SILENT = """
    import signal, time
    f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
    x = np.ones((1, 1000), np.float32)
    f(x).block_until_ready()
    if jax.process_index() == 1:
      if os.fork() == 0:  # it wakes up when the others have long gone
        time.sleep(40)
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(0)
      os.kill(os.getpid(), signal.SIGSTOP)
    begin = time.time()
    try:
      while True:
        f(x).block_until_ready()
    except Exception as error:
      print(time.time(), error)
    """


def test_a_silent_process_holds_up_no_other():
  """JAX's barrier at exit would wait for it until its heartbeat is missed, 100 s."""
  job = distributed.run(SILENT, 1, 3, MINIPOD_COLLECTIVE_TIMEOUT_S=3, MINIPOD_COLLECTIVE_WARN_S=1)
  assert (job.returncodes[0], job.returncodes[2]) == (0, 0), job.errs
  for process in (0, 2):
    assert "DEADLINE_EXCEEDED" in job.outs[process] and "does not answer" in job.outs[process]
  # The silent process continues when it is ended; the others have ended before.
  assert job.returncodes[1] == -9
