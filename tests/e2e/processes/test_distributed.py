"""One pod over processes that jax.distributed.initialize() connects, without mpirun."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import distributed
import mpirun

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ranks"))
import harness
import pod  # noqa: F401  (names its checks)


# ---- Success ----

@pytest.fixture(scope="module", params=[(2, 4), (4, 2)], ids=["2x4", "4x2"])
def one_pod(request, tmp_path_factory):
  num_processes, devices = request.param
  folder = tmp_path_factory.mktemp("pod")
  job = distributed.run(mpirun.FOLDER / "ranks" / "pod.py", devices, num_processes,
                        RANK_RESULTS=folder)
  return mpirun.Checks(num_processes, folder, max(job.returncodes.values()),
                       "\n".join(job.errs.values()))


@pytest.mark.parametrize("name", harness.names("pod"))
def test_one_pod(one_pod, name):
  one_pod.expect(name)


def test_one_pod_ends_well(one_pod):
  one_pod.expect_good_end()


TRAIN = f"""
    import sys
    sys.path.insert(0, {str(mpirun.FOLDER / "scripts")!r})
    import common, train_mlp
    common.report(*train_mlp.train(jax.devices()))
    print(jax.process_count(), jax.device_count(), jax.local_device_count(), jax.process_index())
    """


def test_training_has_the_same_bits_however_it_is_spread():
  bits = []
  for num_processes, devices in ((1, 8), (2, 4), (4, 2)):
    begin = time.monotonic()
    job = distributed.run_well(TRAIN, devices, num_processes)
    assert time.monotonic() - begin < 60
    for process, out in job.outs.items():
      assert out.endswith(f"\n{num_processes} 8 {devices} {process}\n"), out
      bits += re.findall(r"digest ([0-9a-f]{16})", out)
  assert len(bits) == 7 and len(set(bits)) == 1, bits


def test_a_pod_by_its_description():
  job = distributed.run_well("""
      print([d.coords for d in jax.local_devices()], jax.device_count())
      """, None, 2, MINIPOD_TOPOLOGY="v5e:2x2")
  assert all(out.endswith(" 4\n") for out in job.outs.values()) and job.outs[0] != job.outs[1]


@mpirun.NEEDS_MPIRUN
def test_mpirun_comes_first():
  job = mpirun.run_well(2, """
      import os
      jax.distributed.initialize('127.0.0.1:%d', 2, int(os.environ['OMPI_COMM_WORLD_RANK']))
      print(jax.device_count(), 'libmpi' in open('/proc/self/maps').read())
      """ % distributed.free_port(), 2)
  assert job.outs == ["4 True\n"] * 2


# ---- Failure ----

def expect_error(job, process, text):
  assert job.returncodes[process] != 0, job.outs[process]
  assert re.search(text, job.errs[process]), job.errs[process]


def test_a_process_never_comes():
  # This process initializes JAX, but does not use it.
  job = distributed.run("""
      import time
      if os.environ['PROCESS_ID'] == '1': time.sleep(8)
      else: jax.devices()
      """, 2, 2, MINIPOD_INIT_TIMEOUT_S=3)
  expect_error(job, 0, r"DEADLINE_EXCEEDED: no message within 3 s from process 1 \(of the 2 ")


def test_descriptions_differ():
  job = distributed.run("jax.devices()", None, 2,
                        own={0: {"MINIPOD_TOPOLOGY": "ring:4"}, 1: {"MINIPOD_TOPOLOGY": "ring:8"}})
  for process in range(2):
    expect_error(job, process, "the processes disagree on the topology")


@pytest.mark.parametrize("own, said", [
    ({"MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes"},
     r"on the option time: process 0 \(pid \d+ on .*\) has model, process 1 \(pid \d+ on .*\) has off; all"),
    ({"MINIPOD_FAULTS": "- {device: 1, dead: true}"},
     r"on the faults that it begins with: process 0 .* has a list of fingerprint [0-9a-f]{16}, process 1 .* has none"),
])
def test_settings_differ(own, said):
  job = distributed.run("jax.devices()", 2, 2, own={0: own})
  for process in range(2):
    expect_error(job, process, "the processes disagree " + said)


def test_values_differ():
  job = distributed.run("jax.devices()", 2, 2, MINIPOD_TIME="model", own={1: {"MINIPOD_VALUES": "shapes"}})
  for process in range(2):
    expect_error(job, process, "disagree on the option values: process 0 .* has real, process 1 .* has shapes")


def test_a_client_that_fails():
  job = distributed.run("jax.devices()", 2, 2, own={1: {"MINIPOD_TOPOLOGY": "nonsense"}})
  expect_error(job, 0, r"process 1 \(pid .*(cannot start|has failed): topology .nonsense.")


LOOP = """
    import os, sys, time
    f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
    x = np.ones(jax.local_device_count())
    print(f(x)[0], flush=True)
    if jax.process_index() == 1: END
    try:
      print(f(x)[0])
    except Exception as error:
      print(error)
      sys.stdout.flush()
      os._exit(5)
    """


@pytest.mark.parametrize("end, text", [
    ("os.kill(os.getpid(), 9)", r"process 1 \(pid \d+ on host \S+\) has ended unexpectedly"),
    ("sys.exit(3)", r"process 1 \(pid \d+ on host \S+\) has exited"),
    ("raise ValueError('no')", r"process 1 \(pid \d+ on host \S+\) has exited with status 1"),
    ("sys.exit(0)", r"process 1 \(pid \d+ on host \S+\) has exited"),
], ids=["kill", "status", "exception", "exit"])
def test_a_process_ends_early(end, text):
  job = distributed.Job(LOOP.replace("END", end), 2, 2)
  begin = time.monotonic()
  job.finish(60)
  assert job.returncodes[0] == 5 and re.search(text, job.outs[0]), (job.outs[0], job.errs[0])
  assert job.outs[0].startswith("4.0\n") and time.monotonic() - begin < 40


def test_a_transfer_that_one_process_does_not_make():
  job = distributed.run("""
      import time
      near, far = (SingleDeviceSharding(jax.devices()[i]) for i in (0, -1))
      x = jax.device_put(np.arange(3.), near)
      if jax.process_index() == 0: time.sleep(6)
      else: jax.device_put(x, far).block_until_ready()
      """, 2, 2, MINIPOD_COLLECTIVE_TIMEOUT_S=2)
  expect_error(job, 1, r"DEADLINE_EXCEEDED: device 3 has waited 2 s for an array \(tensor<3xf32>\) "
                       r"that device 0 of process 0 has not sent")


def test_absent_values_stay_absent_on_their_way():
  """A process that reads an array sent by another one gets its own numbers: the array has no values."""
  job = distributed.run_well("""
      near, far = (SingleDeviceSharding(jax.devices()[i]) for i in (0, -1))
      large = jax.jit(lambda: jnp.ones((300, 200)), out_shardings=near)()
      for x in (jax.jit(lambda x: x[0, :3] * 3, out_shardings=near)(large), jax.device_put(np.arange(3.), near), large):
        y = jax.device_put(x, far)
        if jax.process_index() == 1: print(np.ravel(np.asarray(y))[-1], np.ravel(np.asarray(y + 2))[-1])
      """, 2, 2, MINIPOD_TIME="model", MINIPOD_VALUES="shapes", MINIPOD_ABSENT="one")
  assert job.outs[1].split() == ["1.0", "1.0", "2.0", "4.0", "1.0", "1.0"]


def in_namespace(*options):
  """A command that runs the next one in its own namespaces."""
  unshare = shutil.which("unshare")
  command = [unshare, *([] if os.getuid() == 0 else ["--map-root-user"]), *options]
  if unshare is None or subprocess.run([*command, "true"], capture_output=True).returncode:
    pytest.skip("the kernel forbids namespaces here")
  return command


def test_containers_that_do_not_see_each_other():
  apart = in_namespace("--pid", "--fork", "--mount-proc")
  job = distributed.run("jax.devices()", 2, 2, wrap={0: apart, 1: apart})
  assert any(re.search(r"the processes cannot share memory \(.*they run in containers", err)
             for err in job.errs.values()), job.errs
  assert all(job.returncodes.values())


def test_a_forked_child_has_no_part():
  job = distributed.run_well("""
      import os, signal
      jax.devices()
      sys = __import__('sys')
      child = os.fork()
      if child == 0:
        signal.alarm(20)
        try:
          jax.device_put(1.0).block_until_ready()
        except Exception as error:
          print('refused' if 'forked' in str(error) else error)
        sys.stdout.flush()
        os._exit(0)
      assert os.waitpid(child, 0)[1] == 0
      print(jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(np.ones(2))[0])
      """, 2, 2)
  assert job.outs == {0: "refused\n4.0\n", 1: "refused\n4.0\n"}


DYING = """
    import signal, sys, time
    f = jax.pmap(lambda x: lax.psum(x, 'i'), axis_name='i')
    f(np.arange(2.))
    if jax.process_index() == 1:
      os.kill(os.getpid(), signal.SIGKILL)
    start = time.time()
    try:
      print(f(np.arange(2.)))
    except jax.errors.JaxRuntimeError as error:
      # Of the dead one, or already of the other survivor.
      print("told" if "UNAVAILABLE: process" in str(error) else error, flush=True)
      if CATCHES:
        time.sleep(3 * jax.process_index())  # to write a checkpoint, say
        print("done", flush=True)
      else:
        raise
    """


@pytest.mark.parametrize("catches", [True, False])
def test_survivors_of_a_dead_process_end_soon(catches):
  """At exit, JAX would wait for the dead process until its heartbeats are missed, and abort the others."""
  start = time.monotonic()
  job = distributed.run(f"CATCHES = {catches}\n" + textwrap.dedent(DYING), 2, 3)
  assert time.monotonic() - start < 60
  for process in (0, 2):
    assert job.outs[process].splitlines() == ["told", "done"][:1 + catches], job.errs[process]
  # The first process has JAX's service: it waits for the processes that are still working.
  assert job.returncodes == {0: 1 - catches, 1: -signal.SIGKILL, 2: 1 - catches}, job.errs
