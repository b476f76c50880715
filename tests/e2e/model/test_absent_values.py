"""With `values: shapes`, results that depend on a guess have no value: no number is wrong."""

import os
import pathlib
import textwrap

import mpirun
import pytest
import scenario

SHAPES = {"MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes"}
# How a scenario prints a value.
SHOW = scenario.PRELUDE + """
import minipod
def show(*values):
  for value in values:
    try:
      print(np.asarray(value))
    except jax.errors.JaxRuntimeError as error:
      assert "this array has no values" in str(error), error
      print("absent")
large = jnp.ones((1000, 1000))
"""


def run(code, **variables):
  return scenario.run(code, prelude=SHOW, **SHAPES, **variables)


def test_what_absent_values_decide_is_absent():
  out = run("""
      show(jax.jit(lambda x: lax.cond(x[0, 0] > 0, lambda: 1., lambda: 2.))(large))
      show(jax.jit(lambda x: lax.switch(jnp.int32(x[0, 0]), [lambda: 10, lambda: 11, lambda: 12]))(large))
      show(jax.jit(lambda x: lax.while_loop(
          lambda c: c[1] < 2e5, lambda c: (c[0] + 1, c[1] * 2), (0, x[0, 0]))[0])(large))
      """)
  assert out.split() == ["absent"] * 3


def test_loss_scaling():
  out = run("""
      def step(weights, scale, good, count):
        finite = jnp.isfinite(weights * scale).all()
        scale, good = lax.cond(finite, lambda: (scale, good + 1), lambda: (scale / 2, 0))
        return jax.tree.map(lambda w: jnp.where(finite, w * 0.9, w), weights), scale, good, count + 1
      state = large, jnp.float32(1024), jnp.int32(0), jnp.int32(0)
      for i in range(3):
        state = jax.jit(step, donate_argnums=0)(*state)
      show(*state)
      """)
  assert out.split() == ["absent", "absent", "absent", "3"]


def test_reading_absent_values_is_an_error_that_says_what_to_do():
  out = scenario.run("""
      loss = jax.jit(lambda x: (x * x).sum())(jnp.ones((1000, 1000)))
      for read in (float, np.asarray, repr, np.from_dlpack, jax.device_get):
        try:
          read(loss)
        except (jax.errors.JaxRuntimeError, RuntimeError) as error:
          print(error)
      """, **SHAPES)
  lines = out.splitlines()
  assert len(lines) == 5 and len(set(lines)) == 1, out
  assert "this array has no values: f32[], result 0 of jit__lambda (reduce_sum at " in lines[0]
  assert lines[0].endswith("set the option absent (MINIPOD_ABSENT) to nan, zero or one")


READS = """
      x = jnp.ones((1000, 1000))
      loss = (x * x).sum()
      assert float(loss) == float(repr(loss)[6:].split(",")[0].rstrip(".")) or np.isnan(float(loss))
      print(float(loss), int(x.astype(jnp.int32)[0, 0]), bool(loss > 0), complex(loss + 0j).real)
      for dtype in ("bfloat16", "float8_e5m2", "float4_e2m1fn", "complex64", "uint8", "bool"):
        whole = np.asarray(x.astype(dtype))
        assert whole.shape == x.shape and str(whole[0, 0]) == str(whole[999, 999])
        print(str(whole[0, 1]).lower())
      host = jax.device_put(x, jax.sharding.SingleDeviceSharding(jax.devices()[1], memory_kind="pinned_host"))
      parts = jax.device_put(x, NamedSharding(jax.make_mesh((4,), ("i",)), P("i")))
      for read in (np.from_dlpack(x), jax.device_get(host), np.asarray(parts), jax.device_get({"a": loss})["a"]):
        print(np.ravel(read)[-1])
      print(float(jnp.float32(np.nan_to_num(np.asarray(loss))) + 2), float(loss + 2))
      """


@pytest.mark.parametrize("absent, expected", [
    ("nan", "nan 0 False nan nan nan 0 (nan+nanj) 0 false nan nan nan nan 2.0 nan"),
    ("zero", "0.0 0 False 0.0 0 0 0 0j 0 false 0.0 0.0 0.0 0.0 2.0 0.0"),
    ("one", "1.0 1 True 1.0 1 1 1 (1+0j) 1 true 1.0 1.0 1.0 1.0 3.0 1.0"),
])
def test_reads_of_absent_values_give_the_configured_number(absent, expected):
  """The host computes its own values; the pod does not compute these."""
  returncode, out, told = scenario.finish(scenario.start(READS, MINIPOD_ABSENT=absent, **SHAPES))
  assert returncode == 0, told
  assert out.split() == expected.split()
  assert told.count("minipod: ") == 1
  assert f"was not computed (option values: shapes); reads of such values give {absent} (option absent)" in told


CALLS = """
from jax.experimental import io_callback
import minipod
large = jnp.ones((1000, 1000))
say = lambda *values: print(*values)
def step(x, i):
  jax.debug.print("{} {}", i, x.sum())
  lax.cond(x[0, 0] > 0, lambda: jax.debug.print("guessed"), lambda: None)
  twice = jax.pure_callback(lambda v: v * 2, jax.ShapeDtypeStruct((), jnp.int32), i)
  told = io_callback(lambda v: np.float32(v.size), jax.ShapeDtypeStruct((), jnp.float32), x)
  return i + 1, twice, told, jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), jnp.float32), x)
try:
  i = jnp.int32(0)
  for _ in range(2):
    i, twice, *others = jax.jit(step)(large, i)
    jax.effects_barrier()
  print(i, twice, *others)
except jax.errors.JaxRuntimeError as error:
  print(error)
jax.jit(lambda i: jax.debug.print("known {}", i))(jnp.int32(3))
"""


def test_callbacks_read_what_they_get():
  """Runs callbacks if all their arguments have values, and callbacks with effects always, but not if the program might
  not reach them.
  """
  out = scenario.run(CALLS, MINIPOD_ABSENT="nan", **SHAPES)
  assert out.splitlines() == ["0 nan", "1 nan", "2 2 nan nan", "known 3"]
  out = scenario.run(CALLS + "import os, sys; sys.stdout.flush(); os._exit(0)", **SHAPES)
  assert "this array has no values: tensor<f32>, operand " in out
  assert "of a function that jit_step calls (debug_print: at " in out


def test_a_counter_next_to_large_work_is_waited_for():
  out = run("""
      @jax.jit
      def step(weights, count):
        return weights @ weights, count + 1
      import concurrent.futures
      count = jnp.int32(0)
      for _ in range(50):
        large, count = step(large, count)
        show(count)
      counts = []
      for _ in range(50):
        large, count = step(large, count)
        counts.append(count)
      with concurrent.futures.ThreadPoolExecutor(8) as pool:
        show(*pool.map(int, reversed(counts)))
      """)
  assert out.split() == [str(i) for i in [*range(1, 51), *range(100, 50, -1)]]


def test_an_error_is_no_absence():
  """Reading a failed result raises the error of the run."""
  out = run("""
      minipod.inject({"device": 0, "dead": True})
      try:
        np.asarray(jax.jit(lambda x: x + 1)(jnp.int32(1)))
      except jax.errors.JaxRuntimeError as error:
        print("is dead" in str(error))
      """)
  assert out.split() == ["True"]


def test_what_a_guess_does_not_decide_has_values():
  out = run("""
      @jax.jit
      def f(x, n):
        def body(i, c):  # a known number of rounds, with a branch that is guessed in each
          kept, count, small = c
          return kept, count + 2, lax.cond(x[0, 0] > i, lambda: small + 1., lambda: small)
        kept, count, small = lax.fori_loop(0, 5, body, (n + 1, n, 0.))
        inner = lax.cond(small > 0, lambda: count, lambda: lax.fori_loop(0, 3, lambda i, c: c + i, 0))
        return kept, count, small, inner, n * 3
      show(*f(large, 7))
      """)
  assert out.split() == ["8", "17", "absent", "absent", "21"]


def test_a_condition_that_loses_its_value_on_the_way():
  """A number decides two iterations and the large array the third, so the number of iterations is unknown."""
  out = run("""
      @jax.jit
      def f(x):
        def body(c):
          i, v, k = c
          return i + 1, lax.cond(i < 1, lambda: v, lambda: x[0, 0]), k
        return lax.while_loop(lambda c: c[1] < 3., body, (0, 1., 5))
      show(*f(large))
      """)
  assert out.split() == ["absent", "absent", "5"]


def test_a_loop_that_would_not_end_ends():
  """The guess enters a loop that the program would not enter, and that never ends."""
  out = run("""
      show(*jax.jit(lambda x: lax.while_loop(lambda c: c[0], lambda c: (c[1] == 0, c[1]), (x[0, 0] < 0, 0)))(large))
      """)
  assert out.split() == ["absent", "0"]


@pytest.mark.parametrize("first", ["decided", "absent"])
def test_devices_that_go_different_ways_come_together(first):
  """One device knows its number of iterations; the others guess."""
  out = run(f"""
      mesh = jax.make_mesh((4,), ("i",))
      @jax.jit
      @jax.shard_map(mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P()), check_vma=False)
      def f(n):
        def body(c):
          return c[0] - 1, c[1] + lax.psum(lax.ppermute(c[0], "i", [(k, (k + 1) % 4) for k in range(4)]), "i")
        n, total = lax.while_loop(lambda c: c[0] > 0, body, (n[0], 0.))
        return n[None], total
      absent = [jax.jit(lambda x: x[0, :1] * 3)(jax.device_put(large, d)) for d in jax.devices()]
      known = [jax.device_put(np.ones(1, np.float32) * 3, d) for d in jax.devices()]
      at = 0 if {first!r} == "decided" else 3
      shards = [known[d] if d == at else absent[d] for d in range(4)]
      n = jax.make_array_from_single_device_arrays((4,), NamedSharding(mesh, P("i")), shards)
      show(*(shard.data for out in f(n) for shard in out.addressable_shards))
      print(minipod.virtual_time() > 0)
      """)
  lines = out.split()
  assert lines[-1] == "True"
  assert lines[4:8] == ["absent"] * 4
  assert lines.count("absent") == 7


def test_the_report_names_each_guess(tmp_path):
  script = tmp_path / "guesses.py"
  script.write_text("""\
import jax, jax.numpy as jnp
from jax import lax
import minipod
x = jnp.ones((1000, 1000))
def f(x):
  a = lax.cond(x[0, 0] > 0, lambda: (x @ x)[0, 0], lambda: 2.)
  b = lax.switch(jnp.int32(x[0, 1]), [lambda: 1., lambda: (x @ x)[0, 0], lambda: 3.])
  c = lax.while_loop(lambda c: c < 8.,
                     lambda c: c * 2, x[1, 1])
  return a + b + c + lax.fori_loop(0, 3, lambda i, c: c + 1., 0.)
for _ in range(2):
  jax.jit(f)(x).block_until_ready()
print(minipod.time_report())
""")
  report = scenario.run(f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))",
                        devices=1, MINIPOD_DUMP=tmp_path / "dump", **SHAPES)
  guesses = {line.split(" at ")[-1].split("guesses.py:")[1].split(":")[0]: line
             for line in report.splitlines() if "the largest  " in line or "1 round  " in line}
  assert sorted(guesses) == ["6", "7", "8"], report
  assert "branch 1 of 0 to 1, the largest         2  cond at " in guesses["6"]
  assert "branch 1 of 0 to 2, the largest         2  cond at " in guesses["7"]
  assert "1 round                                 2  while at " in guesses["8"]
  assert "guessed: 6 times, because the condition of a branch or loop was not computed" in report
  dumped = next((tmp_path / "dump").glob("*.time.txt")).read_text()
  assert all(line in dumped for line in guesses.values())
  true = scenario.run(f"exec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))",
                      devices=1, MINIPOD_TIME="model")
  assert "guess" not in true.replace("guesses.py", "")


# If the guesses are what really happens, the times are the same, too.
ROADS = """
x = jnp.ones((256, 256))
def f(x):
  halved = lax.while_loop(lambda c: (c[0] ** 2).sum() > 1e-6, lambda c: (c[0] * .5, c[1] + 1), (x, 0))[1]
  rounds = lax.fori_loop(0, (x.sum() / 65536).astype(int) * 18, lambda i, c: jnp.tanh(c), x)
  chosen = lax.switch((x.sum() > 0).astype(int) + 1, [lambda: x, lambda: jnp.sin(x), lambda: x @ x @ x @ x])
  return halved, rounds, lax.cond(x[0, 0] > 0, lambda: jnp.cos(x) @ x @ x, lambda: x), chosen
for _ in range(2):
  jax.block_until_ready(jax.jit(f)(x))
print(minipod.virtual_time())
"""


def test_guesses_can_be_chosen():
  def time_of(branch, **variables):
    guesses = {"MINIPOD_UNKNOWN_TRIP_COUNT": 18, "MINIPOD_UNKNOWN_BRANCH": branch}
    return scenario.run(SHOW + ROADS, devices=1, **guesses, **{**SHAPES, **variables})
  true = time_of("largest", MINIPOD_VALUES="real")
  assert time_of("largest") == time_of("2") == true
  assert float(time_of("smallest")) < float(true)


def random_programs(kind, count):
  folder = str(pathlib.Path(__file__).parent)
  return f"import sys; sys.path.insert(0, {folder!r}); import absent_programs; absent_programs.main({kind!r}, 0, {count})"


def compare(kind, count, true, shapes):
  """The output of the programs, with values and without."""
  assert len(true) == len(shapes) == count * 5
  known = same = 0
  for with_values, without in zip(true, shapes):
    seed, time, _, *values = with_values.split()
    other_seed, other_time, guessed, *others = without.split()
    what = f"program {seed} of absent_programs.py, {kind}"
    assert seed == other_seed
    assert all(other in (value, "absent") for value, other in zip(values, others, strict=True)), what
    assert time == other_time or (kind != "rigged" and int(guessed) > 0), f"{what}: {time} and {other_time} ps"
    known += sum(other != "absent" for other in others)
    same += time == other_time
  assert known > count and same > count / 3


@pytest.mark.parametrize("kind, guesses", [
    ("free", {}), ("rigged", {"MINIPOD_UNKNOWN_TRIP_COUNT": 2, "MINIPOD_UNKNOWN_BRANCH": 1})])
def test_random_programs_are_as_with_values(kind, guesses):
  """Every value that exists without computing equals the value of a run that computes.

  Times are the same if nothing was guessed, or if the guesses are right (rigged: values that are not computed select
  branch 1 and two iterations).
  """
  count = int(os.environ.get("MINIPOD_RANDOM_CASES", "8"))
  code = random_programs(kind, count)
  true = scenario.run(code, timeout=60 + 2 * count, MINIPOD_TIME="model").splitlines()
  shapes = scenario.run(code, timeout=60 + 2 * count, **guesses, **SHAPES).splitlines()
  compare(kind, count, true, shapes)


def joined(lines):
  """Merges the values in the output of two processes, each with two of the four devices."""
  shards = [line.split()[3:] for line in lines]
  return [value for k in range(0, len(shards[0]), 2) for shard in shards for value in shard[k:k + 2]]


@mpirun.NEEDS_MPIRUN
def test_random_programs_of_two_processes_are_as_with_values():
  """Which values are known does not depend on the number of processes."""
  cases = os.environ.get("MINIPOD_RANDOM_CASES")
  count = int(cases or "2")
  code = random_programs("together", count)
  def of_processes(**variables):
    job = mpirun.run(2, code, 2, timeout=120 + 4 * count, **variables).expect_good_end()
    return [out.splitlines() for out in job.outs]
  true, shapes = of_processes(MINIPOD_TIME="model"), of_processes(**SHAPES)
  for rank in range(2):
    compare("together", count, true[rank], shapes[rank])
  if cases:
    alone = scenario.run(code, timeout=60 + 2 * count, **SHAPES).splitlines()
    assert [line.split()[3:] for line in alone] == [joined(lines) for lines in zip(*shapes, strict=True)]


COLLECTIVES = """
      mesh = jax.make_mesh((4,), ("i",))
      x = jax.make_array_from_callback((4,), NamedSharding(mesh, P("i")), lambda at: np.arange(4, dtype=np.float32)[at])
      def f(x):
        rounds = lax.fori_loop(0, 3, lambda _, c: lax.psum(c, "i"), x)  # as constants say
        decided = lax.cond(x[0] >= 0, lambda: lax.psum(x, "i"), lambda: x)
        far = lax.psum(jnp.ones((1000, 1000)) + x, "i")[0, :1]
        return lax.all_gather(x, "i", tiled=True), lax.ppermute(x, "i", [(0, 1)]), rounds, decided, lax.psum(x + 0 * far, "i")
      outs = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))(x)
      show(*(out.addressable_shards[2].data for out in outs))
      """


def test_collectives_of_small_values():
  """The result has a value if all devices certainly reach the collective and all operands have values."""
  assert run(COLLECTIVES).splitlines() == ["[0. 1. 2. 3.]", "[0.]", "[96.]", "absent", "absent"]


# The partitioner makes one collective of these sums: of counts, which have values, and of results of large arrays.
SHARED = """
      mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
      on = NamedSharding(mesh, P("i"))
      mask = jax.make_array_from_callback((8, 4), on, lambda at: np.arange(32, dtype=np.float32).reshape(8, 4)[at])
      large = jax.jit(lambda: jnp.ones((1024, 512)), out_shardings=on)()
      step = jax.jit(lambda w, m: (w.sum(), m.sum(), w.sum(0), (m * m).sum(), (w[:8, :4] * m).sum(), m[:, 1].sum()))
      assert step.lower(large, mask).compile().as_text().count(" all-reduce(") == 1
      show(*(out.addressable_shards[0].data for out in step(large, mask)))
      """
SHARED_VALUES = ["absent", "496.0", "absent", "10416.0", "absent", "120.0"]


def test_sums_that_share_a_collective():
  """Each sum is computed if its own operands are, independently of the others."""
  assert run(SHARED).splitlines() == SHARED_VALUES


@mpirun.NEEDS_MPIRUN
def test_sums_that_processes_share():
  job = mpirun.run(2, SHOW + textwrap.dedent(SHARED), 2, **SHAPES).expect_good_end()
  assert [out.splitlines() for out in job.outs] == [SHARED_VALUES] * 2


@mpirun.NEEDS_MPIRUN
def test_what_processes_tell_each_other():
  """multihost_utils works; if the value of one process is not computed, no result that depends on it is."""
  code = """
      from jax.experimental import multihost_utils
      rank = jax.process_index()
      gathered = multihost_utils.process_allgather(np.arange(3) + rank)
      assert gathered.tolist() == [[0, 1, 2], [1, 2, 3]], gathered
      multihost_utils.sync_global_devices("all")
      multihost_utils.assert_equal(np.arange(5))
      assert multihost_utils.broadcast_one_to_all(np.float32(rank + 5)) == 5
      mesh = jax.make_mesh((4,), ("i",))
      on = NamedSharding(mesh, P("i"))
      large = jax.device_put(np.ones((1000, 1000), np.float32), jax.local_devices()[0])
      for k in range(3):
        parts = [jax.device_put(np.ones(1, np.float32), d) for d in jax.local_devices()]
        if k == rank:
          parts[0] = large[0, :1]
        x = jax.make_array_from_single_device_arrays((4,), on, parts)
        f = jax.jit(jax.shard_map(lambda x: (lax.psum(x, "i"), lax.ppermute(x, "i", [(0, 1), (2, 3)]), lax.axis_index("i")[None]),
                                  mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
        show(*(shard.data for out in f(x) for shard in out.addressable_shards))
      """
  job = mpirun.run(2, SHOW + textwrap.dedent(code), 2, **SHAPES).expect_good_end()
  for rank, out in enumerate(job.outs):
    ids = [f"[{2 * rank}]", f"[{2 * rank + 1}]"]
    known = ["[4.]", "[4.]", "[0.]", "[1.]"]
    assert out.splitlines() == (["absent"] * 4 + ids) * 2 + known + ids


# Attention as a library's kernel, on each device's heads.
KERNEL = """
import json
from jax.experimental import xla_metadata
mesh = jax.make_mesh((4,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
heads = jax.ShapeDtypeStruct((8, 2048, 128), jnp.bfloat16, sharding=NamedSharding(mesh, P("i")))
def attend(q, k, v):
  said = json.dumps({"xprof_metadata": json.dumps({"block_q": 512, "block_kv": 512})})
  result = jax.ShapeDtypeStruct(q.shape, q.dtype)
  with xla_metadata.set_xla_metadata(kernel_name="splash_mha_fwd", kernel_metadata=said):
    return jax.ffi.ffi_call("tpu_custom_call", result, custom_call_api_version=1)(q, k, v)
compiled = jax.jit(jax.shard_map(attend, in_specs=P("i"), out_specs=P("i"), mesh=mesh)).lower(heads, heads, heads)
"""


def test_a_missing_function_takes_its_time():
  """For this test: two heads of a v5e's splash kernel, with 16 blocks each."""
  out = run(KERNEL + """
      x = jax.jit(lambda: jnp.ones(heads.shape, heads.dtype), out_shardings=heads.sharding)()
      compiled = compiled.compile()
      jax.block_until_ready(compiled(x, x, x))
      before = minipod.virtual_time()
      y = jax.block_until_ready(compiled(x, x, x))
      print(1e6 * (minipod.virtual_time() - before))
      show(y)
      """.replace("\n      ", "\n"), MINIPOD_TOPOLOGY="v5e:2x2")
  microseconds, value = out.split()
  inside = 2 * 16 * 4 * 512 * 512 * 128 / (0.893 * 197e12) * 1e6
  besides = 2 * (16 * 106 + 4 * 459) * 1e-3
  assert inside + besides < float(microseconds) < inside + besides + 20 and value == "absent"


def test_a_missing_function_is_not_called_for_small_arrays():
  out = run("""
      f = lambda x: (jax.ffi.ffi_call("nobody_has_it", jax.ShapeDtypeStruct((3,), jnp.float32))(x), x + 1)
      show(*jax.jit(f)(jnp.ones(3)))
      """)
  assert out.splitlines() == ["absent", "[2. 2. 2.]"]


def test_with_values_it_is_refused():
  out = scenario.run(KERNEL + """
try:
  compiled.compile()
except jax.errors.JaxRuntimeError as error:
  print(error)
""", devices=4)
  assert "backend_config of tpu_custom_call" in out
