"""With time: paced, real time follows virtual time.  The tests check only lower bounds, so they also pass on a busy
machine.
"""

import re
import textwrap

import mpirun
import pytest
import scenario

# On this pod an operation takes 0.1 s of virtual time, and a launch 0.01 s.
POD = {"MINIPOD_TOPOLOGY": "ring:4 hbm:1GiB op_latency:100ms launch_latency:10ms"}
PRELUDE = """
    import minipod, time
    on = NamedSharding(jax.make_mesh((4,), ("i",)), P("i"))
    x = jax.device_put(np.ones((4, 1024), np.float32), on)
    step = jax.jit(jax.shard_map(lambda x: lax.psum(x * 2, "i") * jnp.ones((1, 1)), mesh=on.mesh, in_specs=P("i"),
                                 out_specs=P("i")))
    """


def run(code, pace="1", time="paced", **variables):
  code = textwrap.dedent(PRELUDE) + textwrap.dedent(code)
  return scenario.run(code, devices=None, MINIPOD_TIME=time, MINIPOD_PACE=pace, **{**POD, **variables})


STEPS = """
    y = x
    for wait in (lambda y: y.block_until_ready(), np.asarray, lambda y: jax.block_until_ready([y, y + 1]),
                 lambda y: [s.data.block_until_ready() for s in y.addressable_shards],
                 lambda y: jax.device_get(y)):
      virtual, real = minipod.virtual_time(), time.monotonic()
      y = step(y)
      wait(y)
      real = time.monotonic() - real
      virtual = minipod.virtual_time() - virtual
      assert virtual > 0.2 and real >= PACE * virtual * 0.999999, (virtual, real)
    print(np.asarray(y)[0, 0])
    """


@pytest.mark.parametrize("pace", ["1", "0.5"])
def test_a_host_that_waits_waits_for_virtual_time(pace):
  assert run(STEPS.replace("PACE", pace), pace) == "32768.0\n"


def test_the_same_results_and_times_with_model():
  code = """
      y = x
      for _ in range(4):
        y = step(y)
      print(np.asarray(y).sum(), minipod.virtual_time().hex())
      """
  assert run(code) == run(code, time="model")


def test_nothing_sleeps_with_model():
  # An hour of virtual time; the time limit of scenarios is a minute.
  out = run("""
      step(x).block_until_ready()
      print(minipod.virtual_time() > 7200)
      """, time="model", MINIPOD_TOPOLOGY="ring:4 hbm:1GiB op_latency:3600s")
  assert out == "True\n"


def test_launches_ahead_are_paced_together():
  run("""
      real = time.monotonic()
      y = x
      for _ in range(5):
        y = step(y)
      y.block_until_ready()
      assert time.monotonic() - real > 5 * 0.2
      """)


def test_what_the_host_does_meanwhile_does_not_count_twice():
  # The step has already ended, in both times: the wait may take no time, and adds no virtual time.
  run("""
      step(x).block_until_ready()
      y = step(x)
      time.sleep(0.5)
      before = minipod.virtual_time()
      y.block_until_ready()
      assert minipod.virtual_time() == before
      """)


def test_is_ready_tells_the_virtual_truth():
  run("""
      step(x).block_until_ready()
      real = time.monotonic()
      y = step(x)
      while not y.is_ready():
        time.sleep(0.001)
      assert time.monotonic() - real > 0.2
      """)


def test_loops_that_depend_on_data():
  run("""
      f = jax.jit(lambda n: lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 1.5), (n, 1.0))[1])
      f(1).block_until_ready()
      virtual, real = minipod.virtual_time(), time.monotonic()
      f(2).block_until_ready()
      virtual, real = minipod.virtual_time() - virtual, time.monotonic() - real
      assert virtual > 0.05 and real >= virtual * 0.999999, (virtual, real)
      """)


def test_a_machine_that_is_too_slow_says_so():
  """A step that takes a second here, and a millisecond of virtual time."""
  process = scenario.start(textwrap.dedent(PRELUDE) + textwrap.dedent("""
      def slow(x):
        time.sleep(0.4)
        return x
      f = jax.jit(lambda x: jax.pure_callback(slow, x, x) + 1)
      y = jnp.ones(())
      for _ in range(4):
        y = f(y).block_until_ready()
      print(minipod.time_report())
      """), devices=None, MINIPOD_TIME="paced", MINIPOD_TOPOLOGY="ring:4 op_latency:1us")
  code, out, err = scenario.finish(process)
  assert code == 0, err
  lines = [line for line in err.splitlines() if "slower than the pod" in line]
  assert len(lines) == 1 and "minipod: warning: " in lines[0] and "clock: virtual" in lines[0], err
  late = re.search(r"paced \(1 real seconds for a virtual one\): the script has waited ([0-9.]+) s",
                   out)
  assert late and 1.5 < float(late[1]) < 60, out


def test_errors_are_reported_at_once():
  run("""
      def fail(x):
        raise ValueError("on purpose")
      f = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((), np.float32), x * 2) + 1)
      try:
        f(np.float32(1)).block_until_ready()
      except Exception as error:
        print("on purpose" in str(error))
      """, MINIPOD_TOPOLOGY="ring:4 hbm:1GiB op_latency:3600s")


@pytest.mark.parametrize("end", ["", "del y; import jax.extend; jax.extend.backend.clear_backends()",
                                 "import os; os._exit(0)"])
def test_the_end_waits_for_no_virtual_time(end):
  run(f"""
      y = step(x)
      ready = y.is_ready()
      {end}
      """, MINIPOD_TOPOLOGY="ring:4 hbm:1GiB op_latency:3600s")


def test_a_description_sets_the_pace(tmp_path):
  path = tmp_path / "pod.yaml"
  path.write_text("topology: ring\nshape: 4\nop_latency: 1ms\ntime: paced\npace: 100\n")
  scenario.run(textwrap.dedent(PRELUDE) + textwrap.dedent("""
      real = time.monotonic()
      step(x).block_until_ready()
      assert time.monotonic() - real > 0.2
      """), devices=None, MINIPOD_TOPOLOGY=path)


@mpirun.NEEDS_MPIRUN
def test_several_processes():
  code = textwrap.dedent(PRELUDE) + textwrap.dedent("""
      y = step(x).block_until_ready()
      for _ in range(2):
        virtual, real = minipod.virtual_time(), time.monotonic()
        y = step(y).block_until_ready()
        virtual, real = minipod.virtual_time() - virtual, time.monotonic() - real
        assert virtual > 0.2 and real >= virtual * 0.999999, (virtual, real)
      """)
  mpirun.run_well(2, code, MINIPOD_TIME="paced", **POD)
