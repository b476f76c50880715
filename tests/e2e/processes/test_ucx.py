"""One pod over two simulated hosts without MPI: jax.distributed.initialize() alone, with UCX between them."""

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import distributed
import mpirun
import pytest
import scenario
from test_mpirun import TRAIN, digests

SCRIPT = pathlib.Path(__file__).parents[2] / "mpi" / "two_hosts.sh"
REFUSED = 77


def has_ucx():
  try:
    ctypes.CDLL("libucs.so.0")  # not libucp: if opened here, it would handle this process's signals
  except OSError:
    return False
  return True


NEEDS_UCX = pytest.mark.skipif(not has_ucx(), reason="UCX is not here: apt install libucx0")


def run(ranks_per_host, program, devices, hosts=2, timeout=100, wrap=(), is_whole=False,
        **variables):
  """Runs on simulated hosts: (return code, output, standard error); skips if they cannot be made."""
  code = program
  if not is_whole:
    code = distributed.INITIALIZE + scenario.PRELUDE + textwrap.dedent(program)
  process = subprocess.Popen(
      [str(SCRIPT), "--plain", "--hosts", str(hosts), "--ranks", str(ranks_per_host), "--", *wrap,
       sys.executable, "-c", code],
      env=mpirun.environment(devices, **variables), text=True, stdout=subprocess.PIPE,
      stderr=subprocess.PIPE, start_new_session=True)
  returncode, out, err = scenario.finish(process, timeout)
  if returncode == REFUSED:
    pytest.skip(err.strip().splitlines()[-1])
  return returncode, out, err


@NEEDS_UCX
def test_a_sum_over_two_hosts():
  returncode, out, err = run(1, """
      local = np.array([d.id for d in jax.local_devices()], np.float32)
      total = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(local)[0]
      # In one piece: both processes write to one pipe.
      os.write(1, f'sum {total} {[d.host_index for d in jax.devices()]}\\n'.encode())
      maps = open('/proc/self/maps').read()
      assert 'libucp' in maps and 'libmpi' not in maps
      """, 4)
  assert returncode == 0, (out, err)
  assert sorted(re.findall(r"sum.*", out)) == ["sum 28.0 [0, 0, 0, 0, 1, 1, 1, 1]"] * 2, (out, err)


@NEEDS_UCX
def test_training_has_the_bits_of_one_process():
  alone = digests(scenario.run(TRAIN, 8))
  for ranks, devices in ((1, 4), (2, 2)):
    returncode, out, err = run(ranks, TRAIN, devices, timeout=150)
    assert returncode == 0, (out, err)
    assert sorted(digests(out)) == sorted(alone * 2 * ranks), (out, err)


# Each process except the victim prints how its program ended, and how soon after the victim's end.
VICTIM = """
    import signal, sys, time
    f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
    x = np.ones((jax.local_device_count(), 100000), np.float32)
    f(x).block_until_ready()
    if jax.process_index() == 1:
      time.sleep(1)  # what the others need of the sum is on its way
      {what}
    begin = time.time()
    try:
      while True:
        f(x).block_until_ready()
    except Exception as error:
      print('after', time.time() - begin, 's:', str(error).split(';')[0], flush=True)
    if {quits}:  # JAX's own meeting at the end would wait for the silent one until its heartbeat
      os._exit(0)
    """


@NEEDS_UCX
def test_a_killed_process_is_named_on_the_other_host():
  _, out, err = run(1, VICTIM.format(quits=False, what="os.kill(os.getpid(), signal.SIGKILL)"), 2)
  found = re.search(r"after ([\d.]+) s: (.*)", out)
  assert found, (out, err)
  assert re.match(r"UNAVAILABLE: process 1 \(pid \d+ on host pretended2\) has ended", found[2]), out
  assert float(found[1]) < 5, out


@NEEDS_UCX
def test_a_silent_process_is_named_on_the_other_host():
  # Its child wakes it, so that it ends, too.
  stop = ("if os.fork() == 0: time.sleep(8); os.kill(os.getppid(), signal.SIGKILL); os._exit(0)\n"
          "      os.kill(os.getpid(), signal.SIGSTOP)")
  _, out, err = run(1, VICTIM.format(quits=True, what=stop), 2, MINIPOD_COLLECTIVE_TIMEOUT_S=3,
                    MINIPOD_COLLECTIVE_WARN_S=1)
  found = re.search(r"after ([\d.]+) s: (.*)", out)
  assert found, (out, err)
  assert found[2].startswith("DEADLINE_EXCEEDED"), out
  assert re.search(r"process 1 \(pid \d+ on host pretended2\) does not answer", err), err
  assert 2 < float(found[1]) < 7, out


@NEEDS_UCX
def test_nothing_is_left():
  before = {*os.listdir("/tmp"), *os.listdir("/dev/shm")}
  returncode, out, err = run(2, """
      print(jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(np.ones((2, 1 << 20)))[0, 0])
      left = [name for name in os.listdir('/dev/shm') + os.listdir('/tmp') if 'ucx' in name.lower()]
      assert not left, left
      """, 2)
  assert returncode == 0, (out, err)
  after = {*os.listdir("/tmp"), *os.listdir("/dev/shm")}
  assert not [name for name in after - before if "ucx" in name or "minipod" in name], after - before


def ucx_files():
  cache = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
  paths = {line.split("=>")[1].strip() for line in cache.splitlines() if "libucp.so" in line}
  return sorted({os.path.realpath(path) for path in paths})


def test_without_ucx_the_error_names_the_package():
  hide = ["sh", "-c", 'for file in $FILES; do mount --bind /dev/null "$file"; done; exec "$@"', "sh"]
  returncode, out, err = run(1, "print(jax.devices())", 2, wrap=hide, FILES=" ".join(ucx_files()))
  assert returncode != 0 and "[" not in out, (out, err)
  assert "process 0 is on host pretended1, process 1 on host pretended2" in err, err
  assert "apt install libucx0" in err and "mpirun --bind-to none" in err, err


def test_on_one_host_ucx_is_not_touched():
  job = distributed.run_well("assert 'libucp' not in open('/proc/self/maps').read(), jax.devices()",
                             2, 2)
  assert job.returncodes == {0: 0, 1: 0}
