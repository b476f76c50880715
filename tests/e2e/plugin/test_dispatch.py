"""Launches stop when a device is too far behind: each device accepts a bounded number of them in advance."""


import scenario

# A device accepts 32 launches in advance, and the launching thread may be about to launch one more.
BOUND = 33

STEP = """
    import resource
    @jax.jit
    def long(x):
      return lax.fori_loop(0, STEPS, lambda i, v: v * 0.5 + 1, x)
    @jax.jit
    def step(x):
      return x + 1
    def resident():
      return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()
    """


def test_queued_steps_do_not_fill_memory():
  """Without a limit, 45,000 steps would wait for the first one, and take 80 MB."""
  out = scenario.run(STEP.replace("STEPS", "10 ** 6") + """
    x = step(jnp.zeros(8))
    jax.block_until_ready((long(1.), x))
    before = resident()
    first = long(1.)
    x = x + first * 0
    most = before
    for i in range(45000):
      x = step(x)
      if i % 1000 == 0:
        most = max(most, resident())
    print(most - before < 20 << 20, float(x[3]))
    """, devices=1, timeout=120)
  assert out.split() == ["True", "45001.0"]


def test_interrupted_dispatch_leaves_few_steps_behind():
  process = scenario.start(STEP.replace("STEPS", "10000") + """
    x = jnp.float32(0)
    jax.block_until_ready((long(x), jnp.add(x, 1)))
    launched = []
    try:
      while True:
        launched.append(long(x))
        if len(launched) == 100:
          print('started', flush=True)
    except KeyboardInterrupt:
      waiting = sum(not y.is_ready() for y in launched)
      print(waiting)
      print(float(jnp.add(x, 1)), flush=True)
    """, devices=1)
  assert process.stdout.readline() == "started\n"
  scenario.interrupt(process)
  returncode, out, err = scenario.finish(process, 60)
  assert returncode == 0, err
  waiting, value = out.split()
  assert int(waiting) <= BOUND and value == "1.0"


def test_threads_on_overlapping_devices():
  out = scenario.run("""
    import threading
    devices = jax.devices()
    def race(order, sums):
      mesh = Mesh(np.array([devices[i] for i in order]), 'x')
      f = jax.jit(jax.shard_map(lambda v: lax.psum(v, 'x') / len(order), mesh=mesh,
                                in_specs=P('x'), out_specs=P('x')))
      x = jax.device_put(np.arange(len(order), dtype=np.float32), NamedSharding(mesh, P('x')))
      for _ in range(300):
        x = f(x)
      sums.append(float(x.sum()) == sum(range(len(order))))
    sums = []
    orders = [(0, 1, 2, 3), (3, 2, 1, 0), (1, 2), (2, 3, 0)]
    threads = [threading.Thread(target=race, args=(order, sums)) for order in orders]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(sums)
    """)
  assert out.strip() == str([True] * 4)
