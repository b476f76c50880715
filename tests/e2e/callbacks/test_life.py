"""Callbacks and their surroundings: JAX used in them, exceptions, exits, interrupts, forks."""

import os
import signal
import time

import jax
from jax.experimental import io_callback
import jax.numpy as jnp
import numpy as np
import pytest
import scenario

F4 = jax.ShapeDtypeStruct((4,), np.float32)
X = np.arange(4, dtype=np.float32)

PRELUDE = scenario.PRELUDE + """
import os, signal, sys, threading, time
from jax.experimental import io_callback
F4 = jax.ShapeDtypeStruct((4,), np.float32)
"""


def _run(code, devices=4, **variables):
  returncode, out, err = scenario.finish(scenario.start(code, devices, prelude=PRELUDE, **variables), 120)
  assert returncode == 0, f"exit code {returncode}\n{out}\n{err}"
  return out


@pytest.fixture(autouse=True)
def no_token_of_a_failed_program_stays():
  """Otherwise JAX would raise this error in each later wait for effects."""
  yield
  from jax._src import dispatch
  dispatch.runtime_tokens.clear()


# ---- JAX in callbacks ----


def test_jax_on_the_same_device():
  y = jnp.arange(4.0) + 1
  triple = jax.jit(lambda v: v * 3)

  def callback(x):
    return np.asarray(triple(y)) + np.asarray(jnp.sum(y)) + np.asarray(x)

  f = jax.jit(lambda x: jax.pure_callback(callback, F4, x))
  for i in range(5):
    assert np.array_equal(f(X + i), X + i + 3 * (X + 1) + 10)


def test_collectives_on_devices_that_wait_for_the_callback():
  inner = jax.pmap(lambda v: jax.lax.psum(v, "i"), axis_name="i")
  n = jax.device_count()

  def callback(x):
    return np.asarray(x) * 0 + np.asarray(inner(np.ones((n, 4), np.float32)))[0]

  outer = jax.pmap(lambda x: jax.lax.psum(jax.pure_callback(callback, F4, x), "i"), axis_name="i")
  assert np.array_equal(outer(np.zeros((n, 4), np.float32)), np.full((n, 4), n * n))


def test_a_callback_in_a_callback():
  inner = jax.jit(lambda v: io_callback(lambda w: np.asarray(w) + 1, F4, v))
  device = jax.devices()[0]

  def callback(x):
    return np.asarray(inner(jax.device_put(np.asarray(x), device)))

  assert np.array_equal(jax.jit(lambda x: io_callback(callback, F4, x))(X), X + 1)


def test_a_callback_may_wait_for_another_thread_that_uses_jax():
  out = _run("""
      import queue
      values = queue.Queue()
      feed = jax.jit(lambda x: io_callback(lambda _: values.get(), F4, x))
      five = jax.jit(lambda v: v * 5)
      x = jnp.arange(4.)
      for i in range(3):
        result = feed(x)
        values.put(np.asarray(five(x + i)))  # behind the callback in the device's stream
        print(result)
      """, 1)
  assert out.splitlines() == [str(np.float32(5) * (X + i)) for i in range(3)]


def test_a_pool_of_threads_in_a_callback():
  from concurrent.futures import ThreadPoolExecutor
  total = jax.jit(lambda v: (v * 2).sum())
  y = jnp.arange(8.0)
  with ThreadPoolExecutor(4) as pool:

    def callback(x):
      return np.float32(sum(float(r) for r in pool.map(lambda i: total(y + i), range(8))))

    f = jax.jit(lambda x: io_callback(callback, jax.ShapeDtypeStruct((), np.float32), x))
    assert f(X) == sum(2 * (28 + 8 * i) for i in range(8))


def test_threads_of_a_callback_run_on_all_cores():
  # A worker calls the first callback of the process, not the launching thread.
  cores = _run("""
    def callback(x):
      return np.int32(len(os.sched_getaffinity(0)))
    f = jax.jit(lambda x: jax.pure_callback(callback, jax.ShapeDtypeStruct((), np.int32), x @ x))
    print(f(jnp.ones((512, 512))))
  """, devices=1)
  assert int(cores) == len(os.sched_getaffinity(0))


def test_threads_of_a_callback_may_run_programs_with_callbacks():
  out = _run("""
      from concurrent.futures import ThreadPoolExecutor
      barrier = threading.Barrier(4)
      def meet(i, x):
        barrier.wait(60)  # all four are in their callbacks, on one device
        return x + i
      def thread(i):
        inner = jax.jit(lambda x: io_callback(lambda v: meet(i, v), F4, x) * 2)
        return np.asarray(inner(np.full(4, 10 * i, np.float32)))
      def callback(x):
        with ThreadPoolExecutor(4) as pool:
          return np.asarray(x) + sum(pool.map(thread, range(4)))
      f = jax.jit(lambda x: io_callback(callback, F4, x))
      for i in range(3):
        print(f(np.full(4, i, np.float32)))
      """, 1)
  assert out.splitlines() == [str(np.full(4, 132 + i, np.float32)) for i in range(3)]


def test_two_threads_may_wait_for_each_others_callbacks():
  out = _run("""
      import queue
      asked, answers = queue.Queue(), queue.Queue()
      ask = jax.jit(lambda x: io_callback(lambda v: (asked.put(np.asarray(v)), answers.get(timeout=60))[1], F4, x))
      answer = jax.jit(lambda x: io_callback(lambda v: answers.put(v + 1), None, x))
      def serve():
        for _ in range(3):
          answer(asked.get(timeout=60))
      thread = threading.Thread(target=serve)
      thread.start()
      for i in range(3):
        print(ask(np.full(4, i, np.float32)))
      thread.join()
      """, 1)
  assert out.splitlines() == [str(np.full(4, i + 1, np.float32)) for i in range(3)]


def test_programs_that_a_callback_launches_keep_their_order():
  told = []
  device = jax.devices()[0]  # in a callback JAX's default is a CPU
  tell = jax.jit(lambda x: jax.debug.callback(lambda v: (time.sleep(.001), told.append(int(v))), x))

  def callback(x):
    for i in range(20):
      tell(jax.device_put(np.int32(i), device))
    return x

  jax.jit(lambda x: io_callback(callback, F4, x))(X).block_until_ready()
  assert told == [*range(20)]


def test_what_a_callback_launches_fails_it():
  def fail(x):
    raise ValueError("inside")

  inner = jax.jit(lambda x: io_callback(fail, None, x))
  device = jax.devices()[0]

  def callback(x):
    inner(jax.device_put(np.asarray(x), device))
    return x

  with pytest.raises(jax.errors.JaxRuntimeError, match="inside"):
    jax.jit(lambda x: io_callback(callback, F4, x))(X).block_until_ready()


def test_what_a_callback_keeps_does_not_change():
  kept = []
  f = jax.jit(lambda x: io_callback(lambda v: kept.append(v), None, x * 2))
  for i in range(20):
    f(np.full(1000, i, np.float32))
  jax.effects_barrier()
  assert [float(np.asarray(v)[0]) for v in kept] == [2.0 * i for i in range(20)]
  assert all((np.asarray(v) == v[0]).all() for v in kept)


def test_prints_of_many_launches_keep_their_order(capfd):
  f = jax.jit(lambda x: (jax.debug.print("at {}", x), x + 1)[1])
  for i in range(40):
    f(i)
  jax.effects_barrier()
  assert capfd.readouterr().out.splitlines() == [f"at {i}" for i in range(40)]


def test_dropped_programs_finish_and_are_forgotten():
  out = _run("""
      import gc
      from minipod import callbacks
      def go(i):
        return jax.jit(lambda x: io_callback(lambda v: (time.sleep(.05), v + i)[1], F4, x))(
            jnp.zeros(4))
      results = [go(i) for i in range(6)]
      jax.clear_caches()
      gc.collect()
      print([float(r[0]) for r in results])
      del results
      jax.clear_caches()
      gc.collect()
      last = go(7)  # when the next one is made, the library tells what is gone
      print(float(last[0]), len(callbacks._held))
      """)
  assert out.splitlines() == ["[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]", "7.0 1"]


# ---- Exceptions ----


def test_an_exception_has_the_words_of_the_cpu_backend():
  def inner(x):
    raise ValueError(f"value {float(x[1])}\nand more")

  f = jax.jit(lambda x: jax.pure_callback(lambda v: inner(v), F4, x))
  with pytest.raises(jax.errors.JaxRuntimeError) as caught:
    f(X).block_until_ready()
  lines = str(caught.value).splitlines()
  assert lines[0] == "INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):"
  assert lines[-2:] == ["ValueError: value 1.0", "and more"]
  assert lines[-3].endswith("in inner") and f'File "{__file__}"' in lines[-3]
  assert np.array_equal(jax.jit(lambda x: x + 1)(X), X + 1)  # the devices still work


def test_an_exception_fails_all_devices_and_only_that_launch():
  def callback(x):
    if x[0] == 2:
      raise RuntimeError("on the third device")
    return np.asarray(x)

  n = jax.device_count()
  f = jax.pmap(lambda x: jax.lax.psum(jax.pure_callback(callback, F4, x), "i"), axis_name="i")
  rows = np.arange(n, dtype=np.float32)[:, None] * np.ones(4, np.float32)
  with pytest.raises(jax.errors.JaxRuntimeError, match="on the third device"):
    np.asarray(f(rows))
  rows[2] = 1
  assert np.array_equal(f(rows)[0], rows.sum(axis=0))


ORDERED = """
    def callback(x):
      if x[0] == 1:
        raise ValueError("the first")
      return x
    f = jax.jit(lambda x: io_callback(callback, F4, x, ordered=True))
    x = np.arange(4, dtype=np.float32)
    for y in (x + 1, x, x, x):
      try:
        print(f(y))
      except jax.errors.JaxRuntimeError as error:
        print("the first" in str(error))
    """


def test_ordered_effects_go_on_after_a_failure():
  # The default limit, a second, is too short for a busy machine.
  assert _run(ORDERED, MINIPOD_CALLBACK_WAIT_S=60).splitlines() == ["True"] + ["[0. 1. 2. 3.]"] * 3


def test_ordered_effects_go_on_after_a_failure_that_came_later():
  # The second program is launched after the one that has failed.
  assert _run(ORDERED, MINIPOD_CALLBACK_WAIT_S=0).splitlines() == ["True"] * 2 + ["[0. 1. 2. 3.]"] * 2


def test_errors_come_during_the_call():
  def fail(x):
    raise RuntimeError("boom")

  for kind in (lambda x: jax.pure_callback(fail, F4, x), lambda x: io_callback(fail, F4, x),
               lambda x: io_callback(fail, F4, x, ordered=True), lambda x: (jax.debug.callback(fail, x), x)[1]):
    f = jax.jit(kind)
    for _ in range(4):  # JAX has faster paths for later calls, with errors of other types
      with pytest.raises(jax.errors.JaxRuntimeError, match="boom"):
        f(X)
  n = jax.device_count()
  f = jax.pmap(lambda x: jax.pure_callback(fail, F4, x))
  for _ in range(3):
    with pytest.raises(jax.errors.JaxRuntimeError, match="boom"):
      f(np.zeros((n, 4), np.float32))
  jax.effects_barrier()


def test_errors_that_were_raised_are_not_printed_at_exit():
  code = """
      def fail(x):
        raise RuntimeError("boom")
      f = jax.pmap(lambda x: jax.pure_callback(fail, F4, x))
      try:
        f(np.zeros((4, 4), np.float32))
      except jax.errors.JaxRuntimeError:
        print("raised")
      """
  returncode, out, err = scenario.finish(scenario.start(code, 4, prelude=PRELUDE), 120)
  assert (returncode, out) == (0, "raised\n") and "never saw" not in err


def test_effects_are_there_when_the_call_returns():
  seen = []

  def note(x):
    time.sleep(.01)
    seen.append(1)
    return x

  for kind in (lambda x: jax.pure_callback(note, F4, x), lambda x: io_callback(note, F4, x),
               lambda x: (jax.debug.callback(note, x), x)[1]):
    f = jax.jit(kind)
    for _ in range(4):
      f(X)
      assert seen.pop() == 1 and not seen


def test_launches_do_not_wait_if_configured_so():
  out = _run("""
      release = threading.Event()
      f = jax.jit(lambda x: io_callback(lambda v: (release.wait(), v)[1], F4, x))
      results = [f(np.zeros(4, np.float32)) for _ in range(4)]
      print('launched')
      release.set()
      print(len([np.asarray(r) for r in results]))
      """, MINIPOD_CALLBACK_WAIT_S=0)
  assert out.splitlines() == ["launched", "4"]


def test_a_program_whose_callbacks_wait_for_the_caller_is_waited_for_less_and_less():
  out = _run("""
      import queue
      values = queue.Queue()
      f = jax.jit(lambda x: io_callback(lambda v: values.get(), F4, x))
      for i in range(200):
        result = f(np.zeros(4, np.float32))
        values.put(np.full(4, i, np.float32))
        assert np.asarray(result)[0] == i
      print('fed')
      """)
  assert out.splitlines() == ["fed"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
def test_exceptions_that_end_other_things_end_the_program_only(error):
  def callback(x):
    raise error

  with pytest.raises(jax.errors.JaxRuntimeError, match=type(error).__name__):
    jax.jit(lambda x: io_callback(callback, F4, x))(X).block_until_ready()


def test_a_program_with_callbacks_is_not_cached(tmp_path):
  code = """
      jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
      jax.config.update('jax_persistent_cache_min_entry_size_bytes', 0)
      print(jax.jit(lambda x: jax.pure_callback(lambda v: v + 1, F4, x))(np.zeros(4, np.float32)))
      """
  for _ in range(2):
    returncode, out, err = scenario.finish(
        scenario.start(code, prelude=PRELUDE, JAX_COMPILATION_CACHE_DIR=tmp_path), 120)
    assert (returncode, out) == (0, "[1. 1. 1. 1.]\n"), err


# ---- Ends ----


def test_exit_waits_for_a_callback_that_runs_and_for_effects():
  out = _run("""
      def slow(x):
        time.sleep(.5)
        print('done', flush=True)
        return x
      f = jax.jit(lambda x: jax.pure_callback(slow, F4, x))
      g = jax.jit(lambda x: jax.debug.callback(lambda v: print('effect', v, flush=True), x))
      begun = f(jnp.zeros(4))
      g(7)
      time.sleep(.2)
      print('leaving', flush=True)
      """, MINIPOD_CALLBACK_WAIT_S=0)
  assert out.splitlines() == ["leaving", "done", "effect 7"]


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise ValueError('mine')"])
def test_exit_codes_with_a_callback_in_flight(end):
  process = scenario.start("""
      def slow(x):
        time.sleep(.5)
        return x
      f = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, v: io_callback(slow, F4, v), x))
      f(jnp.zeros(4))
      time.sleep(.2)
      END
      """.replace("END", end), prelude=PRELUDE)
  returncode, _, err = scenario.finish(process, 120)
  assert returncode == (3 if "sys" in end else 1), err


def test_interrupt_while_a_callback_runs():
  process = scenario.start("""
      signal.signal(signal.SIGINT, signal.default_int_handler)
      release = threading.Event()
      def wait(x):
        os.write(1, b'inside\\n')
        release.wait()
        return x
      result = jax.jit(lambda x: jax.pure_callback(wait, F4, x))(jnp.zeros(4))
      try:
        os.write(1, b'waiting\\n')
        jax.block_until_ready(result)
      except KeyboardInterrupt:
        print('interrupted', jnp.arange(3.) + 1, flush=True)
      release.set()
      print(result)
      """, prelude=PRELUDE)
  assert {process.stdout.readline() for _ in range(2)} == {"inside\n", "waiting\n"}
  process.send_signal(signal.SIGINT)
  returncode, out, err = scenario.finish(process, 120)
  assert (returncode, out.splitlines()) == (0, ["interrupted [1. 2. 3.]", "[0. 0. 0. 0.]"]), err


def test_interrupts_end_a_process_whose_callback_never_returns():
  process = scenario.start("""
      signal.signal(signal.SIGINT, signal.default_int_handler)
      def wait(x):
        os.write(1, b'inside\\n')
        threading.Event().wait()
      result = jax.jit(lambda x: jax.pure_callback(wait, F4, x))(jnp.zeros(4))
      try:
        os.write(1, b'waiting\\n')
        jax.block_until_ready(result)
      except KeyboardInterrupt:
        pass
      import atexit
      atexit.register(print, 'ending', flush=True)
      """, prelude=PRELUDE)
  assert {process.stdout.readline() for _ in range(2)} == {"inside\n", "waiting\n"}
  process.send_signal(signal.SIGINT)
  assert process.stdout.readline() == "ending\n"
  while process.poll() is None:
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
  assert process.returncode in (0, -signal.SIGINT), process.stderr.read()


def test_clear_backends_while_a_callback_runs():
  out = _run("""
      import jax.extend.backend
      release = threading.Event()
      inside = threading.Event()
      def wait(x):
        inside.set()
        release.wait()
        return np.asarray(x) + 1
      g = jax.jit(lambda x: jax.pure_callback(wait, F4, x))
      result = g(jnp.zeros(4))
      inside.wait()
      threading.Timer(.3, release.set).start()
      jax.clear_caches()
      jax.extend.backend.clear_backends()
      print(g(jnp.zeros(4)))
      """)
  assert out.splitlines() == ["[1. 1. 1. 1.]"]


def test_forks_in_a_callback():
  out = _run("""
      import multiprocessing, subprocess
      def callback(x):
        print(subprocess.run(['echo', 'sub'], capture_output=True, text=True).stdout.strip())
        child = multiprocessing.get_context('fork').Process(target=lambda: os._exit(3))
        child.start()
        child.join()
        print(child.exitcode)
        return x
      print(jax.jit(lambda x: jax.pure_callback(callback, F4, x))(jnp.zeros(4)))
      """)
  assert out.splitlines() == ["sub", "3", "[0. 0. 0. 0.]"]


@pytest.mark.parametrize("wait", ["-1", "1.5", "soon", "86401"])
def test_a_wait_for_callbacks_that_is_none_is_refused(wait):
  err = scenario.run("jax.devices()", fails=True, MINIPOD_CALLBACK_WAIT_S=wait)
  assert "environment variable MINIPOD_CALLBACK_WAIT_S: expected a " in err and f"got '{wait}'" in err
