"""With clock: virtual, Python's clocks show the time of a host that sees the described pod."""

import mpirun
import scenario

# On this pod an operation takes 0.1 s of virtual time, and a launch 0.01 s.
POD = "ring:4 hbm:1GiB op_latency:100ms launch_latency:10ms"
TOOK = """
import minipod
def real(): return time.clock_gettime(time.CLOCK_MONOTONIC)
class Took:
  def __enter__(self):
    self.virtual, self.real, self.time = minipod.virtual_time(), real(), time.perf_counter()
    return self
  def __exit__(self, *_):
    self.time, self.real = time.perf_counter() - self.time, real() - self.real
    self.virtual = minipod.virtual_time() - self.virtual
"""
EARLY = """
@jax.jit  # before there is a client
def early(arrays): return [a + 1 for a in arrays]
"""
PRELUDE = """
from time import perf_counter as kept, sleep  # before there is a client
import asyncio, concurrent.futures, datetime, logging, os, pickle, queue, subprocess, threading, time
""" + scenario.PRELUDE + TOOK + """
on = NamedSharding(jax.make_mesh((4,), ("i",)), P("i"))
x = jax.device_put(np.ones((4, 1024), np.float32), on)
step = jax.jit(jax.shard_map(lambda x: lax.psum(x * 2, "i") * jnp.ones((1, 1)), mesh=on.mesh,
                             in_specs=P("i"), out_specs=P("i")))
y = step(x).block_until_ready()
"""


def run(code, **variables):
  return scenario.run(code, **{"devices": None, "prelude": PRELUDE, "MINIPOD_TOPOLOGY": POD,
                               "MINIPOD_TIME": "model", "MINIPOD_CLOCK": "virtual", **variables})


def test_the_clocks_of_a_script():
  out = run("""
      import jax.extend.backend
      # Waits take their virtual time, on every clock, however they are told apart.
      for wait in (lambda y: y.block_until_ready(), np.asarray, lambda y: y.tolist(), jax.device_get,
                   lambda y: [s.data.block_until_ready() for s in y.addressable_shards]):
        clocks = (time.time, time.monotonic, kept, lambda: time.time_ns() * 1e-9,
                  lambda: time.monotonic_ns() * 1e-9, lambda: time.perf_counter_ns() * 1e-9,
                  lambda: datetime.datetime.now().timestamp(),
                  lambda: datetime.datetime.now(datetime.timezone.utc).timestamp())
        since = [clock() for clock in clocks]
        with Took() as took:
          y = step(y)
          wait(y)
        assert took.virtual > 0.2 and -1e-3 < took.time - took.virtual <= took.real + 1e-3, vars(took)
        for clock, begin in zip(clocks, since):
          assert -1e-4 < clock() - begin - took.virtual <= took.real + 0.1, clock
      # A launch takes no time; what the host does beside it takes none of the device's.
      with Took() as took:
        with Took() as launches:
          for _ in range(3):
            y = step(y)
        time.sleep(0.3)
        y.block_until_ready()
      assert launches.time < 0.1 and took.virtual > 0.6, (launches.time, took.virtual)
      assert took.virtual - 1e-3 < took.time <= took.virtual + launches.time + 0.1
      # Results that have long been there on the pod are there.
      y = step(y)
      time.sleep(0.3)
      with Took() as took:
        y.block_until_ready()
      assert took.time <= took.real < 0.1
      # Asking whether it is there is waiting.
      y = step(y)
      since = kept()
      while not y.is_ready():
        assert kept() - since < 60
      assert kept() - since > 0.19
      # Waits of Python's own library end by real time, and what others time is the pod's.
      for wait in (lambda: threading.Event().wait(0.05), lambda: asyncio.run(asyncio.sleep(0.05)),
                   lambda: concurrent.futures.wait([concurrent.futures.Future()], 0.05),
                   lambda: queue.Queue().get(timeout=0.05)):
        with Took() as took:
          try:
            wait()
          except queue.Empty:
            pass
        assert 0.04 < took.real < 5
      assert subprocess.run(["true"], timeout=30).returncode == 0
      with concurrent.futures.ThreadPoolExecutor(4) as pool:
        times = list(pool.map(lambda _: (kept(), kept()), range(100)))
      assert all(a <= b for a, b in times)
      record = logging.LogRecord("a", 20, "", 1, "", None, None)
      assert abs(record.created - time.time()) < 5
      assert abs(time.time() - time.clock_gettime(time.CLOCK_REALTIME)) > 0.5
      assert pickle.loads(pickle.dumps(time.time)) is time.time
      assert type("T", (), {"clock": time.perf_counter})().clock() > 0
      pid = os.fork()  # where the clock goes on
      if pid == 0:
        since = kept()
        time.sleep(0.01)
        os._exit(0 if 0.005 < kept() - since < 5 else 1)
      assert os.waitpid(pid, 0)[1] == 0
      # The clock is the system's again when JAX has dropped the pod, and the pod's with the next one.
      jax.extend.backend.clear_backends()
      assert abs(kept() - real()) < 1e-3
      assert abs(datetime.datetime.now().timestamp() - time.clock_gettime(time.CLOCK_REALTIME)) < 0.1
      f = jax.jit(lambda x: x + 1)
      f(1.0).block_until_ready()
      with Took() as took:
        f(1.0).block_until_ready()
      assert took.time > 0.015
      print("good")
      """)
  assert out == "good\n"


def test_sleeps_of_the_main_thread_take_virtual_time():
  out = run("""
      import jax.extend.backend
      for seconds in (3600, 0.25, True, 0):
        with Took() as took:
          sleep(seconds)
        assert seconds <= took.time < seconds + took.real + 1e-3 and took.real < 0.2, vars(took)
      # Beside a launch: a sleep takes none of the device's time, nor more than it says.
      with Took() as took:
        y = step(y)
        sleep(5)
        y.block_until_ready()
      assert 5 <= took.time < 5 + took.real + 1e-3 and 0.2 < took.virtual < 0.3 and took.real < 2, vars(took)
      # Python says what is wrong with an argument.
      for wrong in (-1, float("nan"), "1", None, 1e300):
        try:
          sleep(wrong)
        except (ValueError, TypeError, OverflowError) as error:
          print(type(error).__name__)
      # Other threads sleep as ever.
      with concurrent.futures.ThreadPoolExecutor(1) as pool, Took() as took:
        pool.submit(sleep, 0.05).result()
      assert took.real > 0.05 and took.time < 5, vars(took)
      assert sleep is time.sleep
      jax.extend.backend.clear_backends()
      since = real()
      sleep(0.05)
      assert real() - since >= 0.05
      """)
  assert out.split() == ["ValueError", "ValueError", "TypeError", "TypeError", "OverflowError"]


def test_what_is_slower_here_than_on_the_pod():
  """A step that takes half a second here takes 0.01 s of virtual time."""
  out = run("""
      def slow(x):
        time.sleep(0.5)
        return x
      f = jax.jit(lambda x: jax.pure_callback(slow, x, x) + 1)
      z = jnp.ones(())
      f(z).block_until_ready()
      with Took() as took:
        f(z).block_until_ready()
      # A callback that waits for a moment of that clock, which stands meanwhile, comes to it.
      def spin(x):
        end = kept() + 0.1
        while kept() < end: pass
        return x
      g = jax.jit(lambda x: jax.pure_callback(spin, x, x) + 1)
      assert g(z) == 2
      assert took.real > 0.5 and took.virtual - 1e-3 < took.time < took.virtual + 0.2, vars(took)
      print("good")
      """, MINIPOD_TOPOLOGY="ring:4 op_latency:1ms")
  assert out == "good\n"


def test_turns_with_pythons_lock_are_shorter_by_the_hosts_that_a_process_is():
  out = run("""
      import sys
      print(round(sys.getswitchinterval() * 1e6))
      import jax.extend.backend
      jax.extend.backend.clear_backends()
      print(round(sys.getswitchinterval() * 1e6))
      """, prelude=scenario.PRELUDE + "jax.devices()\n", MINIPOD_TOPOLOGY="v5e:8x8")
  assert out.split() == [str(5000 * 4 // 64), "5000"], out


def test_launches_on_many_devices_take_no_time():
  """With 256 devices, JAX makes and deletes an object for each shard, which takes seconds on a busy machine."""
  out = run("""
      late = jax.jit(lambda arrays: [a + 1 for a in arrays], donate_argnums=0)
      on = NamedSharding(jax.make_mesh((256,), ("i",)), P("i"))
      arrays = jax.jit(lambda: [jnp.zeros(256) for _ in range(100)], out_shardings=on)()
      for f in early, late:
        arrays = f(arrays)
        times = []
        for _ in range(5):
          with Took() as took:
            arrays = f(arrays)
            jax.block_until_ready(arrays[0]), arrays[1].block_until_ready()
          times.append((took.time - took.virtual) / took.real)
        assert min(times) < 0.02, times
      # What a script does itself is counted, also while it is traced, and by whom it calls then.
      def spend(seconds):
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
      @jax.jit
      def inner(x):
        spend(0.05)
        return x
      @jax.jit
      def outer(x):
        spend(0.05)
        return inner(x) + 1
      with Took() as took:
        assert outer(1) == 2
      assert took.time > 0.09, vars(took)
      try:
        jax.jit(lambda x: 1 // 0)(1)
      except ZeroDivisionError:
        with Took() as took:
          spend(0.05)
        assert 0.04 < took.time < 0.1, vars(took)
        print("good")
      """, prelude="import time\n" + scenario.PRELUDE + EARLY + TOOK, timeout=120, MINIPOD_TOPOLOGY="torus:16x16",
            MINIPOD_VALUES="shapes")
  assert out == "good\n"


def test_the_report_tells_how_often_a_script_launches():
  out = run("""
      import json
      # What is cut for each device is JAX's work; the host has nothing else to do here.
      for _ in range(5):
        y = step(jax.device_put(np.ones((4, 1024), np.float32), on)).block_until_ready()
      (short,) = [p for p in json.loads(minipod.time_report("json"))[0]["programs"] if "lambda" in p["name"]]
      begin = time.monotonic()
      for _ in range(40):
        step(x).block_until_ready()
        until = time.perf_counter() + 0.05
        while time.perf_counter() < until: pass
      each = (time.monotonic() - begin) / 40
      (p,) = [p for p in json.loads(minipod.time_report("json"))[0]["programs"] if "lambda" in p["name"]]
      assert short["every"] < p["every"], (short, p)
      assert p["every_host"] >= 0.05 and p["every"] >= p["every_host"] + p["seconds"] / p["launches"] - 1e-6, p
      assert p["every"] <= 1.02 * each, (p, each)  # a median beside a mean, which has all that a busy machine does
      print("launched every" in minipod.time_report())
  """)
  assert out == "True\n", out
  out = run("""
      print("launched every" in minipod.time_report())
  """, MINIPOD_CLOCK="real")
  assert out == "False\n", out


def test_virtual_times_stay_what_they_are():
  code = """
      for _ in range(4):
        y = step(y)
      print(np.asarray(y).sum(), minipod.virtual_time().hex())
      """
  assert run(code) == run(code, MINIPOD_CLOCK="real")


def test_with_another_time_it_is_refused():
  err = run("", MINIPOD_TIME="paced", fails=True)
  assert ("option clock (environment variable): virtual needs the option time: model (it is paced)"
          in err)


@mpirun.NEEDS_MPIRUN
def test_several_processes(tmp_path):
  (tmp_path / "script.py").write_text(PRELUDE + """
for _ in range(3):
  with Took() as took:
    y = step(y).block_until_ready()
  assert took.virtual > 0.2 and took.virtual - 1e-3 < took.time <= took.virtual + took.real + 1e-3, vars(took)
""")
  mpirun.run_well(2, tmp_path / "script.py", MINIPOD_TIME="model", MINIPOD_CLOCK="virtual",
                  MINIPOD_TOPOLOGY=POD)
