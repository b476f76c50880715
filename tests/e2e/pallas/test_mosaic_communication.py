"""Kernels that communicate: remote DMAs, signals and barriers between the devices of a program."""

import subprocess
import sys
import textwrap

import pytest
import scenario

PRELUDE = """
import sys
sys.path.insert(0, %r)
from communicating import *
""" % __file__.rsplit("/", 1)[0]
POD = {"prelude": PRELUDE, "devices": None, "MINIPOD_TOPOLOGY": "v6e:2x2"}
EIGHT = POD | {"MINIPOD_TOPOLOGY": "v6e:2x4"}

SAME = """
    mesh, rng = line(), np.random.default_rng(0)
    n = len(mesh.devices)
    def same(f, g, shape, dtype, out=jax.P("x")):
      x = rng.integers(-64, 64, shape).astype(dtype)
      for _ in range(3):
        np.testing.assert_array_equal(on(mesh, f, out)(x), on(mesh, g, out)(x))
"""



@pytest.mark.parametrize("pod", [POD, EIGHT, POD | {"MINIPOD_KERNELS": "check"}], ids=["4", "8", "check"])
def test_they_compute_what_collectives_do(pod):
  scenario.run(SAME + """
    same(all_gather, lambda x: lax.all_gather(x, "x", tiled=True), (8 * n, 128), np.float32, jax.P(None))
    same(lambda x: all_gather(x, barrier=False), lambda x: lax.all_gather(x, "x", tiled=True), (16 * n, 256), jnp.bfloat16,
         jax.P(None))
    same(reduce_scatter, lambda x: lax.psum_scatter(x, "x", tiled=True), (8 * n * n, 128), np.float32)
    same(all_to_all, lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), (8 * n * n, 128), np.int32)
    to = lambda by: lambda x: lax.ppermute(x, "x", [(i, (i + by) % n) for i in range(n)])
    for by in (1, 3, -1, 0):
      same(lambda x: permute(x, by), to(by), (8 * n, 128), np.float32)
    vmem = dict(in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)], out_specs=pl.BlockSpec(memory_space=pltpu.VMEM))
    same(lambda x: permute(x, **vmem), to(1), (8 * n, 128), np.float32)
    same(permute_in_tiles, to(1), (12 * n, 128), np.float32)
    """, **pod)


TWO = """
    mesh, rng = line(), np.random.default_rng(0)
    n = len(mesh.devices)
    sharding = jax.NamedSharding(mesh, jax.P("x"))
    def make(x): return jax.make_array_from_callback(x.shape, sharding, lambda i: x[i])
    def same(f, g, shape, dtype, out=jax.P("x")):
      x = make(rng.integers(-64, 64, shape).astype(dtype))
      for _ in range(3):
        y, z = on(mesh, f, out)(x), on(mesh, g, out)(x)
        for one, other in zip(y.addressable_shards, z.addressable_shards):
          np.testing.assert_array_equal(np.asarray(one.data), np.asarray(other.data))
    shift = lambda x: lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)])
    same(all_gather, lambda x: lax.all_gather(x, "x", tiled=True), (8 * n, 128), np.float32, jax.P(None))
    same(reduce_scatter, lambda x: lax.psum_scatter(x, "x", tiled=True), (8 * n * n, 128), np.float32)
    same(all_to_all, lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), (8 * n * n, 128), np.int32)
    rounds = lambda f: lambda x: lax.fori_loop(0, 20, lambda i, x: f(x) + i, x)
    same(rounds(permute), rounds(shift), (8 * n, 128), np.float32)
    try:
      jax.block_until_ready(on(mesh, lonely)(make(np.ones((32, 128), np.float32))))
    except jax.errors.JaxRuntimeError as error:
      print(error)
    print("process", jax.process_index(), "is done")
"""


def test_two_processes(tmp_path):
  script = tmp_path / "two.py"
  script.write_text(PRELUDE + textwrap.dedent(TWO))
  env = scenario.environment(None, MINIPOD_TOPOLOGY="v6e:2x2")
  done = subprocess.run([sys.executable, "-m", "minipod", "run", "-n", "2", "--no-prefix", str(script)], env=env,
                        capture_output=True, text=True, timeout=120, check=False)
  assert done.returncode == 0, done.stderr
  assert "process 0 is done" in done.stdout and "process 1 is done" in done.stdout, done.stdout
  assert "device 3 waits in kernel 'lonely', grid step ()" in done.stdout, done.stdout


def test_they_meet_once_per_round_of_a_loop():
  scenario.run(SAME + """
    def rounds(f):
      return lambda x: lax.fori_loop(0, 20, lambda i, x: f(x) + i, x)
    same(rounds(permute), rounds(lambda x: lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)])), (8 * n, 128),
         np.float32)
    same(rounds(lambda x: all_to_all(permute(x))),
         rounds(lambda x: lax.all_to_all(lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)]), "x", 0, 0, tiled=True)),
         (8 * n * n, 128), np.int32)
    """, **POD)


def test_devices_of_a_mesh_have_logical_numbers():
  """JAX makes the number of a device of the mesh's coordinates."""
  scenario.run("""
      mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
      def shift(x, o, sent, received):
        a, b = lax.axis_index("a"), lax.axis_index("b")
        copy = pltpu.make_async_remote_copy(x, o, sent, received, device_id=(1 - a, b),
                                            device_id_type=pl.DeviceIdType.MESH)
        copy.start(); copy.wait()
      def f(x): return call(shift, x, [DMA] * 2)(x)
      x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
      spec = jax.P(("a", "b"))
      g = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
      np.testing.assert_array_equal(g(x), np.roll(x, 16, axis=0))
      h = jax.pmap(lambda x: permute(x), axis_name="x")
      y = x.reshape(4, 8, 128)
      np.testing.assert_array_equal(h(y), np.roll(y, 1, axis=0))
      """, **POD)


def test_memory_that_a_scope_allocates_is_reached():
  """Others may write and signal before this device comes to the scope."""
  scenario.run("""
      def swap(x, o):
        me, left, right = neighbors()
        meet([left, right])
        def scope(buffer, sent, received):
          copy = send(x, buffer, sent, received, right)
          copy.start(); copy.wait()
          o[...] = buffer[...] * 2
        pl.run_scoped(scope, pltpu.VMEM(x.shape, x.dtype), DMA, DMA)
      vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
      f = lambda x: call(swap, x, in_specs=[vmem], out_specs=vmem, collective_id=1)(x)
      x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
      for _ in range(10):
        np.testing.assert_array_equal(on(line(), f)(x), 2 * np.roll(x, 8, axis=0))
      """, **POD)


POLLS = """
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    def run(f):
      return np.asarray(on(line(), f)(x)).reshape(4, 8, 128)
    def stops(f):
      try:
        run(f)
      except jax.errors.JaxRuntimeError as error:
        print(error)
"""


@pytest.mark.parametrize("variables", [{}, {"MINIPOD_TIME": "model"}, {"MINIPOD_KERNELS": "check"}],
                         ids=lambda variables: "-".join(variables) or "plain")
def test_kernels_may_poll(variables):
  scenario.run(POLLS + """
    for way in (await_reading, await_counting, await_working):
      for _ in range(3):
        for i, part in enumerate(run(lambda x: token_ring(x, way))):
          np.testing.assert_array_equal(part, x[:8] + sum(range(i + 1)))
    for space in (pltpu.SMEM, pltpu.VMEM):  # a race, which checks find
      for _ in range(0 if CHECKS else 3):
        for i, part in enumerate(run(lambda x: flag_ring(x, space))):
          np.testing.assert_array_equal(part, x[8 * i:8 * i + 8] + i)
    """.replace("CHECKS", str("MINIPOD_KERNELS" in variables)), **POD | variables)


@pytest.mark.parametrize("f, expected", [
    ("token_ring(x, await_reading, False)", "the semaphore of argument 4 of the kernel again and again, and it stays 0"),
    ("token_ring(x, await_counting, False)", "the semaphore of argument 4 of the kernel again and again, and it stays 0"),
    ("token_ring(x, await_working, False)", "the semaphore of argument 4 of the kernel again and again, and it stays 0"),
    ("flag_ring(x, pltpu.SMEM, False)", "argument 2 of the kernel again and again, and it stays the same"),
    ("flag_ring(x, pltpu.VMEM, False)", "argument 2 of the kernel again and again, and it stays the same"),
])
def test_polls_that_can_never_end_are_errors(f, expected):
  out = scenario.run(POLLS + f"""
    stops(lambda x: {f})
    print(run(permute).sum() == x.sum())
    """, **POD)
  assert f"device 0 waits in kernel 'pass_on', grid step (): " in out and f"it reads {expected}" in out, out
  assert "communicating.py:" in out and out.endswith("True\n"), out


@pytest.mark.parametrize("way", ["await_reading", "await_counting"])
def test_polls_of_a_kernel_that_runs_alone(way):
  """Its DMA is done when it is enqueued; nothing else signals."""
  out = scenario.run(POLLS + f"""
    def body(x, o, memory, semaphore, copied):
      pl.semaphore_signal(semaphore, n)
      {way}(semaphore, 2, memory)
      pl.semaphore_wait(semaphore, 2)
      pltpu.async_copy(x, o, copied).wait()
    scratch = [pltpu.SMEM((1,), jnp.int32), REGULAR, DMA]
    for n in (2, 1):
      jax.clear_caches()  # JAX 0.12 traces body() once
      stops(lambda x: call(body, x, scratch)(x))
    print(run(lambda x: call(body, x, scratch)(x)).sum() if n == 2 else "")
    """, **POD)
  assert "kernel 'body', grid step (): tpu.sem_read" in out, out
  assert "a loop reads again and again what nothing changes" in out and out.count("again") == 2, out


PAIRS = """
    shift = lambda x: lax.ppermute(x, "x", [(i, (i + 1) % n) for i in range(n)])
    pair = lambda x: end_permute(x, start_permute(x))
    def late(x):
      started = start_permute(x)
      return lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x) + end_permute(x, started)
    def two(x):
      first, second = start_permute(x), start_permute(x + 1)
      return end_permute(x, first) - 2 * end_permute(x + 1, second)
    rounds = lambda f: lambda x: lax.fori_loop(0, 5, lambda i, x: f(x) + i, x)
"""


@pytest.mark.parametrize("variables", [{}, {"MINIPOD_TIME": "model"}, {"MINIPOD_KERNELS": "check"}],
                         ids=lambda variables: "-".join(variables) or "plain")
def test_kernels_pass_semaphores_on(variables):
  scenario.run(SAME + PAIRS + """
    for shape in ((8 * n, 128), (64 * n, 256)):
      same(pair, shift, shape, np.float32)
      same(late, lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x) + shift(x), shape, np.float32)
      same(two, lambda x: shift(x) - 2 * shift(x + 1), shape, np.float32)
      same(rounds(pair), rounds(shift), shape, np.float32)
      same(shared_semaphore, lambda x: (x + 1) * n, shape, np.float32)
      same(rounds(shared_semaphore), rounds(lambda x: (x + 1) * n), (8 * n, 128), np.int32)
      same(permute_with_counts, shift, shape, np.float32)
    """, **POD | variables)


FAULTS = {
    "no end of another device's start": ("""
        def f(x):
          return lax.cond(lax.axis_index("x") == 2, lambda x: x, lambda x: start_permute(x)[0], x)
        """, ["kernel 'start'", "the semaphore for barriers is"]),
    "start without end": ("""
        def f(x):
          def start(x, o, semaphore): pl.semaphore_signal(semaphore, 1, device_id=neighbors()[2], **ID)
          start = lambda x, f=call(start, [x, REGULAR(())], out_specs=[ANY, SEMAPHORES]): f(x)[0]
          return lax.cond(lax.axis_index("x") == 2, start, lambda x: x, x)
        """, ["device 2 waits in kernel 'start'", "device 3 has not reached the kernel"]),
    "semaphores of a kernel that others do not end": ("""
        def f(x):
          def start(x, o, semaphore): pl.semaphore_signal(semaphore, 1, device_id=lax.axis_index("x"), **ID)
          start = lambda x, f=call(start, [x, REGULAR(())], out_specs=[ANY, SEMAPHORES]): f(x)[0]
          return lax.cond(lax.axis_index("x") == 2, lambda x: x, start, x)
        """, ["device 0 waits in kernel 'start': it has ended, and has semaphores of other kernels: 1 of the other devices"]),
    "a semaphore twice": ("""
        def f(x):
          def allocate(semaphore): del semaphore
          def twice(a, b, o): pl.semaphore_signal(a, 1)
          semaphore = call(allocate, REGULAR(()), in_specs=[], out_specs=SEMAPHORES)()
          return call(twice, x, in_specs=[SEMAPHORES] * 2)(semaphore, semaphore)
        """, ["Mosaic function 'twice': operands 0 and 1 are the same semaphores"]),
    "missing signal": ("        f = lonely", ["kernels are stuck: device 3 waits in kernel 'lonely', grid step ()", "tpu.sem_wait",
              "the semaphore for barriers is 0, and the wait is for 1", "; devices 0, 1, 2 have ended"]),
    "circle": ("""
        def circle(x, o, ready):
          me, left, right = neighbors()
          pl.semaphore_wait(ready, 1)
          pl.semaphore_signal(ready, 1, device_id=right, **ID)
        f = lambda x: call(circle, x, [REGULAR])(x)
        """, ["device 0 waits in kernel 'circle'", "device 3 waits in kernel 'circle'",
              "the semaphore of argument 2 of the kernel is 0, and the wait is for 1"]),
    "no such device": ("""
        def far(x, o, sent, received):
          @pl.when(lax.axis_index("x") == 3)
          def _():
            send(x, o, sent, received, lax.axis_index("x") + 1).start()
        f = lambda x: call(far, x, [DMA] * 2)(x)
        """, ["kernel 'far', grid step ()", "tpu.enqueue_dma", "device 4: the program runs on 4 devices"]),
    "peer that never comes": ("""
        def f(x):
          return lax.cond(lax.axis_index("x") == 0, lambda x: permute(x), lambda x: x, x)
        """, ["device 0 waits in kernel 'shift'", "device 1 has not reached the kernel", "; devices 1, 2, 3 have ended"]),
    "waits for too many bytes": ("""
        def twice(x, o, sent, received):
          me, left, right = neighbors()
          copy = send(x, o, sent, received, right)
          copy.start(); copy.wait(); copy.wait_recv()
        f = lambda x: call(twice, x, [DMA] * 2)(x)
        """, ["tpu.wait_dma", "is 0, and the wait is for 4096"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_can_never_end_is_an_error(fault):
  code, expected = FAULTS[fault]
  out = scenario.run(code + """
        try:
          jax.block_until_ready(on(line(), f)(np.ones((32, 128), np.float32)))
        except jax.errors.JaxRuntimeError as error:
          print(error)
        print(np.asarray(on(line(), permute)(np.ones((32, 128), np.float32))).sum())
        """, **POD)
  for text in expected:
    assert text in out, out
  assert out.endswith("4096.0\n"), out
