"""Virtual times are the same bits whatever runs the program, and without computing it.

MINIPOD_TEST_FULL=1: 96 runs of more programs, with 1 to 8 workers and 1, 2 and 4 processes.
"""

import os
import pathlib
import resource
import textwrap

import mpirun
import pytest
import scenario

# Training steps: weights sharded over both axes, a loop over layers and one inside of it.
STEPS = textwrap.dedent("""
    import minipod
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=auto)
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    def init():
      key = jax.random.key(0)
      return {"up": jax.random.normal(key, (2, 128, 512)), "down": jax.random.normal(key, (2, 512, 128))}
    shards = {"up": on(None, "data", "model"), "down": on(None, "model", "data")}
    w = jax.jit(init, out_shardings=shards)()
    x = jax.jit(lambda: jnp.ones((64, 128)), out_shardings=on("data"))()
    def layer(x, w):
      y = jax.nn.gelu(x @ w["up"]) @ w["down"]
      return lax.fori_loop(0, 3, lambda i, y: y * 0.5 + i, x + y * 1e-3), None
    def loss(w, x):
      return (lax.scan(layer, x, w)[0] ** 2).mean()
    @jax.jit
    def step(w, x):
      value, g = jax.value_and_grad(loss)(w, x)
      return jax.tree.map(lambda w, g: w - 1e-3 * g, w, g), value
    for _ in range(3):
      w, value = step(w, x)
      value.block_until_ready()
    """)
TRAIN = STEPS + "print(minipod.virtual_time().hex())"
POD = {"MINIPOD_TIME": "model", "MINIPOD_TOPOLOGY": "v5e:2x4"}


def train(**variables):
  return scenario.run(TRAIN, devices=None, **POD, **variables)


@pytest.fixture(scope="module")
def expected():
  time = train().strip()
  assert 1e-6 < float.fromhex(time) < 1e-1
  return time


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_any_number_of_workers(expected, workers):
  assert train(MINIPOD_WORKERS=workers).strip() == expected


def test_without_values(expected):
  assert train(MINIPOD_VALUES="shapes").strip() == expected


@mpirun.NEEDS_MPIRUN
@pytest.mark.parametrize("ranks", [2, 4])
def test_any_number_of_processes(expected, ranks):
  job = mpirun.run_well(ranks, TRAIN, **POD)
  assert [out.strip() for out in job.outs] == [expected] * ranks


# Every collective, in a loop that goes round as often as the data says; waits of the host, and work that differs by device.
EVERYTHING = STEPS + textwrap.dedent("""
    def body(x):
      def go(c):
        i, y = c
        y = lax.ppermute(y, "data", [(j, (j + 1) % 4) for j in range(4)]) * 0.9
        y = lax.psum(y, "model") / 2 + lax.all_gather(y, "data", tiled=True)[:16] * 0.1
        y = lax.all_to_all(y.reshape(4, -1), "data", 0, 0).reshape(y.shape)
        return i + 1, y + lax.psum_scatter(jnp.tile(y, 4), "data", tiled=True) * 1e-2
      return lax.while_loop(lambda c: (c[0] < 50) & (lax.psum(jnp.abs(c[1]).sum(), ("data", "model")) > 1), go,
                            (0, x))[1]
    ring = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P(("data", "model")), out_specs=P(("data", "model")),
                                 check_vma=False))
    y = jax.jit(lambda: jnp.arange(128.0) / 128, out_shardings=on(("data", "model")))()
    for _ in range(2):
      y = ring(y)
    jax.block_until_ready(y)
    z = jax.jit(lambda x: jnp.sort(x, axis=-1).sum(), out_shardings=on())(x)
    np.asarray(z.addressable_shards[0].data)
    table = minipod.time_report()
    print(minipod.virtual_time().hex())
    print(table[table.index("program"):])  # its first line has the real time
    """)


@pytest.fixture(scope="module")
def seen():
  """The virtual time of all runs, and the table of each number of processes."""
  return {}


@mpirun.NEEDS_MPIRUN
@pytest.mark.skipif(not os.environ.get("MINIPOD_TEST_FULL"), reason="MINIPOD_TEST_FULL=1 runs them")
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("workers", range(1, 9))
def test_every_run_has_the_same_bits(seen, workers, ranks):
  for _ in range(4):
    for out in mpirun.run_well(ranks, EVERYTHING, MINIPOD_WORKERS=workers, **POD).outs:
      time, _, table = out.partition("\n")
      assert seen.setdefault("time", time) == time
      assert seen.setdefault(ranks, table) == table


def test_a_pod_larger_than_the_machine():
  out = scenario.run("""
      import minipod
      x = jax.jit(lambda: jnp.ones((1 << 20, 1 << 20), jnp.bfloat16), out_shardings=NamedSharding(
          jax.make_mesh((256,), ("i",)), P("i")))()
      y = jax.jit(lambda x: x.sum(0))(x).block_until_ready()  # two terabytes
      assert minipod.virtual_time() > 2**41 / 256 / 1e12
      assert x.addressable_shards[0].device.memory_stats()["bytes_in_use"] >= 2**33
      try:
        np.asarray(y)
      except jax.errors.JaxRuntimeError as error:
        print("values: shapes" in str(error))
      print(np.asarray(jax.jit(lambda n: n * 2 + 1)(3)))  # what is small is there
      """, devices=None, MINIPOD_TIME="model", MINIPOD_VALUES="shapes", MINIPOD_TOPOLOGY="v5e:16x16")
  assert out.split() == ["True", "7"]


LARGE = '{"emb": 8192, "heads": 64, "mlp": 28672, "layers": 64, "batch": 512, "tensor": 4}'


def seconds_of_processor(code):
  """The times of a process that has imported JAX itself: it starts in another way than scenarios, which are forks
  (scenario.start_whole).
  """
  prelude = "# started\n" + scenario.PRELUDE
  before = resource.getrusage(resource.RUSAGE_CHILDREN)
  scenario.run(code, devices=None, prelude=prelude, MINIPOD_TIME="model", MINIPOD_VALUES="shapes",
               MINIPOD_TOPOLOGY="v5e:16x16")
  after = resource.getrusage(resource.RUSAGE_CHILDREN)
  return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_step_on_a_large_pod_is_soon_there():
  """A model with 64 billion parameters: start, compiling and the time of a step, whose 64 layers have the same traffic.

  The test compares with the smallest possible program, because a busy machine slows both.
  """
  script = pathlib.Path(__file__).parents[3] / "tools/published/train_step.py"
  smallest = seconds_of_processor("print(jax.jit(lambda x: x + 1)(1))")
  step = seconds_of_processor(f"""
      import runpy, sys
      sys.argv = [{str(script)!r}, {LARGE!r}]
      sys.path.insert(0, {str(script.parent)!r})
      runpy.run_path(sys.argv[0], run_name="__main__")
      """)
  assert step < 3 * smallest


@pytest.mark.parametrize("variables, words", [
    ({"MINIPOD_TIME": "fast"}, "expected off, model or paced, got 'fast'"),
    ({"MINIPOD_VALUES": "shapes"}, "needs the option time: model"),
    ({"MINIPOD_TIME": "model", "MINIPOD_VALUES": "none"}, "expected real or shapes, got 'none'"),
    ({"MINIPOD_TIME": "model", "MINIPOD_ALGORITHMS": "all_reduce:rings"}, "ring"),
    ({"MINIPOD_TIME": "model", "MINIPOD_CALIBRATION": "/nonexistent"}, "/nonexistent"),
    ({"MINIPOD_TIME": "paced", "MINIPOD_PACE": "0"}, "option pace (environment variable): expected a number"),
])
def test_wrong_options(variables, words):
  assert words in scenario.run("jax.devices()", fails=True, **variables)


# ---- what the description sets ----

def describe(folder, text):
  path = folder / "pod.yaml"
  path.write_text("preset: v5e\nshape: 2x4\n" + text)
  return {"MINIPOD_TOPOLOGY": path}


def test_a_description_turns_the_model_on(expected, tmp_path):
  out = scenario.run(TRAIN, devices=None, **describe(tmp_path, "time: model\nvalues: shapes\n"))
  assert out.strip() == expected


def test_a_description_chooses_algorithms(expected, tmp_path):
  described = describe(tmp_path, "time: model\nalgorithms: [all_reduce:tree, all_gather:ring]\n")
  time = scenario.run(TRAIN, devices=None, **described).strip()
  assert float.fromhex(time) > float.fromhex(expected)
  assert scenario.run(TRAIN, devices=None, MINIPOD_ALGORITHMS="all_reduce:auto", **described).strip() == expected
  assert train(MINIPOD_ALGORITHMS="all_reduce:tree,all_gather:ring").strip() == time


def test_options_win_over_the_description(tmp_path):
  out = scenario.run("""
      import minipod
      try:
        minipod.virtual_time()
      except RuntimeError as error:
        print("MINIPOD_TIME=model" in str(error))
      """, devices=None, MINIPOD_TIME="off", **describe(tmp_path, "time: model\n"))
  assert out.split() == ["True"]


def test_a_description_with_time_and_faults(expected, tmp_path):
  described = describe(tmp_path, "time: model\nfaults:\n- {device: 1, slow: 2}\n")
  time = scenario.run(TRAIN, devices=None, **described).strip()
  assert float.fromhex(time) > float.fromhex(expected)


@mpirun.NEEDS_MPIRUN
def test_the_description_of_several_processes(expected, tmp_path):
  described = describe(tmp_path, "time: model\n")
  job = mpirun.run_well(2, TRAIN, **described)
  assert [out.strip() for out in job.outs] == [expected] * 2


@pytest.mark.parametrize("text, words", [
    ("time: fast\n", "pod.yaml:3: key 'time': expected off, model or paced, got 'fast'"),
    ("time: model\nvalues: none\n", "pod.yaml:4: key 'values': expected real or shapes, got 'none'"),
    ("values: shapes\n", "pod.yaml:3: key 'values': shapes needs the option time: model"),
    ("time: model\nalgorithms: all_reduce:rings\n", "pod.yaml:4: key 'algorithms': "),
    ("time: model\n\ncalibration: /nonexistent\n", "pod.yaml:5: key 'calibration': "),
    ("time: paced\npace: fast\n", "pod.yaml:4: key 'pace': expected a number from 1e-9 to 1e9"),
])
def test_wrong_descriptions(text, words, tmp_path):
  assert words in scenario.run("jax.devices()", devices=None, fails=True, **describe(tmp_path, text))


def test_attention_takes_longer_with_more_heads():
  """Matmuls that run here as one op, in the cache, are several kernels on the pod."""
  out = scenario.run("""
      def attention(q, k, v):
        return jax.nn.softmax(q @ k.swapaxes(1, 2)) @ v
      for heads in 7, 8, 14, 16:
        x = jnp.ones((heads, 256, 64))
        print(jax.jit(attention).lower(x, x, x).compile().cost_analysis()["optimal_seconds"])
      """, devices=None, **POD)
  times = [float(line) for line in out.split()]
  assert times == sorted(times)


# Programs that take long here, whose times depend on values that they compute at run time.
LOOPS = """
    import signal, time
    import minipod
    step = jax.jit(lambda x: lax.while_loop(lambda c: c[0] < 60, lambda c: (c[0] + 1, jnp.sin(c[1] @ c[1])), (0, x))[1])
    step = step.lower(jnp.ones((256, 256))).compile()
    x = jnp.ones((256, 256))
    """


@pytest.mark.parametrize("values", ["real", "shapes"])
def test_the_time_before_the_host_has_waited(values):
  """Launches count even if they have not really ended, and asking for the time does not wait on the pod."""
  out = scenario.run(textwrap.dedent(LOOPS) + textwrap.dedent("""
      for _ in range(8):
        x = step(x)
      early = minipod.virtual_time(), minipod.time_report("data")[0]
      jax.block_until_ready(x)
      assert early[0] == minipod.virtual_time() == early[1]["seconds"], (early[0], minipod.virtual_time())
      assert early[1]["pending"] == 0 and sum(p["launches"] for p in early[1]["programs"]) >= 8
      """), devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_VALUES=values)
  assert out == ""


def test_reading_the_time_can_be_interrupted():
  out = scenario.run(textwrap.dedent(LOOPS) + textwrap.dedent("""
      held = __import__("threading").Event()
      hold = jax.jit(lambda x: lax.cond(jax.pure_callback(lambda: np.bool_(held.wait()), jax.ShapeDtypeStruct((), bool)),
                                        lambda x: x + 1, lambda x: x * 2, x))
      y = hold(jnp.ones(4))
      def interrupt(signum, frame):
        if frame.f_code.co_name == "_await_launches":  # in a callback of Python's the exception would be lost
          signal.setitimer(signal.ITIMER_REAL, 0)
          raise KeyboardInterrupt
      signal.signal(signal.SIGALRM, interrupt)
      signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
      try:
        minipod.virtual_time()
      except KeyboardInterrupt:
        print("interrupted")
      held.set()
      jax.block_until_ready(y)
      """), devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:1x1")
  assert out.split() == ["interrupted"]


def test_no_callback_waits_for_its_own_program():
  out = scenario.run(textwrap.dedent(LOOPS) + textwrap.dedent("""
      def ask():
        minipod.time_report()
        try:
          minipod.virtual_time()
        except RuntimeError as error:
          print("in a callback" in str(error))
      jax.block_until_ready(jax.jit(lambda x: (lax.cond(x[0] > 0, lambda: jax.debug.callback(ask), lambda: None), x + 1))(
          jnp.ones(4)))
      jax.effects_barrier()
      """), devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:1x1")
  assert out.split() == ["True"]


ZEROS = "torus:2x2 launch_latency:0 op_latency:0 links.latency:0 host_link.latency:0 host_link.bandwidth:1e18"


def test_latencies_of_zero_are_none():
  code = """
      import minipod
      mesh = Mesh(np.array(jax.devices()), ("i",))
      f = jax.jit(jax.shard_map(lambda x: lax.psum(x + 1, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
      f(jnp.arange(4.)).block_until_ready()
      print(minipod.virtual_time())
      """
  described, zero = (float(scenario.run(code, devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY=pod))
                     for pod in ("v5e:2x2", ZEROS))
  assert described > 3e-6 and 0 < zero < 1e-8  # the parameters of v5e include the start of collectives
