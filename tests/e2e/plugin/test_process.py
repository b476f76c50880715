"""Behaviour in a process: caches, second clients, fork, interrupts, exits, threads."""

import glob
import os
import signal
import time

import pytest
import scenario

CACHED = """
    hits = []
    jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
    jax.config.update('jax_persistent_cache_min_entry_size_bytes', 0)
    f = jax.pmap(lambda x: lax.psum(jnp.sin(x) * 3, 'i'), axis_name='i')
    print(f(np.arange(4.)))
    print('hits', hits.count('/jax/compilation_cache/cache_hits'))
    """


def test_compilation_cache_in_a_second_process(tmp_path):
  first = scenario.run(CACHED, JAX_COMPILATION_CACHE_DIR=tmp_path).splitlines()
  assert glob.glob(str(tmp_path / "*")), "nothing was written"
  second = scenario.run(CACHED, JAX_COMPILATION_CACHE_DIR=tmp_path).splitlines()
  assert first[0] == second[0]
  assert int(first[1].split()[1]) == 0 and int(second[1].split()[1]) >= 1


def test_cache_is_not_shared_between_pods(tmp_path):
  scenario.run(CACHED, JAX_COMPILATION_CACHE_DIR=tmp_path)
  other = CACHED.replace("np.arange(4.)", "np.arange(4.).astype(np.float16)")
  out = scenario.run(other, JAX_COMPILATION_CACHE_DIR=tmp_path)
  assert out.splitlines()[-1] == "hits 0"


def test_use_of_the_compilation_cache_is_counted_once(tmp_path):
  """JAX decides at the first compilation whether there is a cache, and informs its listeners."""
  counted = """
      events = []
      jax.monitoring.register_event_listener(lambda name, **_: events.append(name.split('/')[-1]))
      for k in range(3):
        jax.jit(lambda x: x * k)(1.)
      print(events.count('tasks_using_cache'), events.count('task_disabled_cache'))
      """
  assert scenario.run(counted, JAX_COMPILATION_CACHE_DIR=tmp_path).split() == ["1", "0"]
  off = scenario.run(counted, JAX_COMPILATION_CACHE_DIR=tmp_path, JAX_ENABLE_COMPILATION_CACHE=0)
  assert off.split() == ["0", "1"]


def test_clear_backends_and_again():
  out = scenario.run("""
      import jax.extend.backend
      for _ in range(3):
        x = jnp.arange(4.)
        print(jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')(np.arange(4))[0], x.sum())
        del x
        jax.clear_caches()
        jax.extend.backend.clear_backends()
      """)
  assert out.splitlines() == ["6 6.0"] * 3


def test_arrays_that_outlive_their_client():
  out = scenario.run("""
      import jax.extend.backend
      x = jnp.arange(4.)
      jax.clear_caches()
      jax.extend.backend.clear_backends()
      y = jnp.arange(3.)
      print(np.asarray(x).sum(), y.sum())
      """)
  assert out.split() == ["6.0", "3.0"]


def test_fork_leaves_the_parent_alone():
  out = scenario.run("""
      import os, sys, warnings
      warnings.simplefilter('ignore')
      f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
      x = jnp.arange(8.)
      f(np.arange(4))
      x * 3  # JAX must not lower it in the child: MLIR's threads, which it waits for, are not there
      child = os.fork()
      if child == 0:
        # Python works; what needs the pod answers with an error, and does not hang.
        refused = 0
        for use in (lambda: x * 3, lambda: f(np.arange(4)), lambda: jnp.asarray(np.ones(2))):
          try:
            jax.block_until_ready(use())
          except Exception as error:
            refused += 'forked' in str(error)
        os._exit(refused + 4 if sum(range(10)) == 45 else 1)
      print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
      print(f(np.arange(4)))
      """)
  assert out.splitlines() == ["7", "[6 6 6 6]"]


def test_fork_server_of_workers():
  out = scenario.run("""
      import multiprocessing, warnings
      warnings.simplefilter('ignore')
      jnp.arange(3).sum().block_until_ready()
      with multiprocessing.get_context('fork').Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
      print(jnp.arange(3).sum())
      """)
  assert out.splitlines() == ["[1, 2]", "3"]


LONG = """
    import sys
    @jax.jit
    def long(x):
      return lax.while_loop(lambda s: s[0] < STEPS, lambda s: (s[0] + 1, s[1] * 0.5 + 1), (0, x))
    long.lower(1.).compile()
    print('started', flush=True)
    result = long(1.)
    """


def test_interrupt_during_a_wait():
  process = scenario.start(LONG.replace("STEPS", "2**30") + """
    try:
      jax.block_until_ready(result)
    except KeyboardInterrupt:
      print('interrupted', flush=True)
      import os; os._exit(0)
    """)
  assert process.stdout.readline() == "started\n"
  time.sleep(1)
  process.send_signal(signal.SIGINT)
  returncode, out, err = scenario.finish(process, 20)
  assert (returncode, out) == (0, "interrupted\n"), err


def test_interrupt_between_programs():
  """JAX cannot be interrupted in its first operation, in which it registers dialects; it does not register them again.
  """
  process = scenario.start("""
      jax.block_until_ready(jnp.ones(100) + 1)
      print('started', flush=True)
      try:
        while True:
          jax.block_until_ready(jnp.ones(100) + 1)
      except KeyboardInterrupt:
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(float(jnp.add(1, 1)), flush=True)
      """)
  assert process.stdout.readline() == "started\n"
  time.sleep(0.5)
  scenario.interrupt(process)
  returncode, out, err = scenario.finish(process, 20)
  assert (returncode, out.split()) == (0, ["2.0"]), err


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('mine')"])
def test_exit_with_work_in_flight(end):
  returncode, out, err = scenario.finish(
      scenario.start(LONG.replace("STEPS", "300000") + end), 60)
  assert returncode == {"": 0, "sys.exit(3)": 3}.get(end, 1), (out, err)
  assert "Fatal" not in err and "terminate" not in err


def test_threads_stay_few_and_are_named():
  out = scenario.run("""
      import os
      def threads():
        names = []
        for task in os.listdir('/proc/self/task'):
          with open(f'/proc/self/task/{task}/comm') as f:
            names.append(f.read().strip())
        return names
      before = len(threads())
      x = jnp.ones(1000)
      f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
      f(np.ones(64))
      print(sum(name.startswith('mp-') for name in threads()))
      """, devices=64)
  assert 1 <= int(out) <= len(os.sched_getaffinity(0)) + 4


def test_pinned_to_one_cpu():
  out = scenario.run("""
      import os
      os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
      f = jax.pmap(lambda v: lax.psum(v, 'i'), axis_name='i')
      print(f(np.arange(16))[0])
      """, devices=16)
  assert out.split() == ["120"]


def test_python_threads_launching_at_once():
  out = scenario.run("""
      import threading
      f = jax.pmap(lambda v: lax.psum(v * 2, 'i'), axis_name='i')
      g = jax.jit(lambda v: (v @ v).sum())
      f(np.arange(4)); g(np.eye(4, dtype=np.float32))
      wrong = []
      def work(n):
        for i in range(50):
          if int(f(np.arange(4) + n)[1]) != 2 * (6 + 4 * n): wrong.append((n, i))
          if float(g(np.eye(4, dtype=np.float32) * n)) != 4. * n * n: wrong.append((n, i))
      workers = [threading.Thread(target=work, args=(n,)) for n in range(4)]
      [w.start() for w in workers]; [w.join() for w in workers]
      print(wrong)
      """)
  assert out.split() == ["[]"]
