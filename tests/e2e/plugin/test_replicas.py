"""MINIPOD_CHECK=replicas compares arrays that should be the same on several devices."""

import re

import distributed
import scenario

PRELUDE = scenario.PRELUDE + """
from jax import shard_map
mesh = jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
def failure(run):
  try:
    jax.block_until_ready(run())
  except (jax.errors.JaxRuntimeError, ValueError) as error:
    return str(error)
"""


def _run(code, devices=8, check="replicas", **variables):
  returncode, out, err = scenario.finish(
      scenario.start(code, devices, prelude=PRELUDE, MINIPOD_CHECK=check, **variables), 120)
  assert returncode == 0, f"exit code {returncode}\n{out}\n{err}"
  return out


MISSING_PSUM = """
    def step(w, x):
      return w - jax.grad(lambda w: (w * x).sum())(w)  # of this device's x alone: no psum
    f = jax.jit(shard_map(step, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False))
    w = np.full(4, 2.5, np.float32)
    f(w, np.zeros((8, 4), np.float32)).block_until_ready()  # by chance they are the same
    print(failure(lambda: f(w, np.arange(32, dtype=np.float32).reshape(8, 4))))
    """


def test_a_missing_psum():
  assert re.fullmatch(
      r"FAILED_PRECONDITION: result of jit_step should be the same on 8 devices; device 1 differs from device 0"
      r" in 4 of 4 elements \(first at \[0\]: -1\.5 instead of 2\.5\), and so do 6 more, since launch 2 of jit_step"
      r" \(<string>:\d+\); it is computed by \w+ at <string>:\d+:\d+\n", _run(MISSING_PSUM))


def test_nothing_is_compared_by_default():
  assert _run(MISSING_PSUM, check="off") == "None\n"


def test_what_depends_on_it_fails_with_the_same_error_and_the_pod_goes_on():
  lines = _run(MISSING_PSUM + """
    bad = f(w, np.arange(32, dtype=np.float32).reshape(8, 4))
    print(failure(lambda: jax.jit(lambda v: v * 2)(bad)))
    print(f(w, np.zeros((8, 4), np.float32)))
    """).splitlines()
  assert lines[0].partition(", since")[0] == lines[1].partition(", since")[0] and lines[2] == "[2.5 2.5 2.5 2.5]"


def test_places_are_those_of_the_whole_array():
  out = _run("""
      mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
      def step(x):
        at = (lax.axis_index("a") == 1) & (lax.axis_index("b") == 2)
        return x.at[1, 1].set(jnp.where(at, jnp.nan, 7))
      f = jax.jit(shard_map(step, mesh=mesh, in_specs=P("a"), out_specs=P("a"), check_vma=False))
      print(failure(lambda: f(np.zeros((6, 3), np.float32))))
      """)
  assert ("same on 4 devices; device 6 differs from device 4 in 1 of 9 elements"
          " (first at [4, 1]: nan (0x7fc00000) instead of 7), since") in out


def test_equal_bits_are_equal():
  assert _run("""
      rep, cut = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
      f = jax.jit(lambda x, t: (x * jnp.nan, x.sum(), t, t * 2, (x[:4] > 2, x.astype(jnp.int4), x + 1j)),
                  in_shardings=(cut, rep), out_shardings=rep)
      for value in jax.tree.leaves(f(np.arange(8.), np.arange(3))):
        print(np.asarray(value).shape)
      g = jax.jit(lambda x: x + 1, donate_argnums=0)
      y = jax.device_put(np.zeros(4), rep)
      for _ in range(50):
        y = g(y)
      print(y)
      """).splitlines()[-1] == "[50. 50. 50. 50.]"


def test_arguments_that_differ():
  lines = _run("""
      from jax._src import array
      shards = [jax.device_put(np.full(3, i == 3, np.int8), d) for i, d in enumerate(jax.devices())]
      made = failure(lambda: jax.make_array_from_single_device_arrays((3,), NamedSharding(mesh, P()), shards))
      a = array.ArrayImpl(jax.core.ShapedArray((3,), np.int8), NamedSharding(mesh, P()), shards, committed=True)
      print(made)
      print(failure(lambda: jax.jit(lambda b, a: a + b)(1, a)))
      """).splitlines()
  assert lines[0] == ("an array int8[3] should be the same on 8 devices; device 3 gets another one than device 0:"
                      " 3 of 3 elements differ (first at [0]: 1 instead of 0)")
  assert ("argument 1 of jit__lambda should be the same on 8 devices; device 3 differs from device 0 in 3 of 3"
          " elements (first at [0]: 1 instead of 0), before launch 1 of jit__lambda (<string>:") in lines[1]


def test_arrays_of_callbacks_that_differ():
  assert "device 1 gets another one than device 0" in _run("""
      values = iter(range(8))
      # JAX asks once for each part; who asks for each device by himself hands over what he has
      shards = [np.full(2, next(values), np.float32) for _ in jax.devices()]
      from jax._src.interpreters import pxla
      print(failure(lambda: pxla.batched_device_put(jax.core.ShapedArray((2,), np.float32), NamedSharding(mesh, P()),
                                                    shards, jax.devices())))
      """)


def test_layouts_and_host_memory():
  assert _run("""
      from jax.experimental.layout import Format, Layout
      two = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
      turned = Format(Layout((0, 1)), NamedSharding(two, P("a")))
      host = NamedSharding(two, P("a"), memory_kind="pinned_host")
      def step(x):
        return jnp.where(lax.axis_index("b") == 1, x.at[2, 1].set(5), x)
      for out in (Format(Layout((1, 0)), NamedSharding(two, P("a"))), turned, host):
        f = jax.jit(shard_map(step, mesh=two, in_specs=P("a"), out_specs=P("a"), check_vma=False), out_shardings=out)
        print(failure(lambda: f(np.zeros((6, 2), np.float32))).partition(", since")[0][-70:])
      """).splitlines() == ["m device 0 in 1 of 6 elements (first at [2, 1]: 5 instead of 0), and so does 1 more"[-70:]] * 3


def test_not_without_values():
  assert "replicas compares values" in _refused("replicas", MINIPOD_TOPOLOGY="v5e:2x4", MINIPOD_TIME="model",
                                                MINIPOD_VALUES="shapes")
  assert "expected replicas or off, got 'all'" in _refused("all")


def _refused(check, **variables):
  returncode, out, _ = scenario.finish(scenario.start("""
      try:
        jax.devices()
      except RuntimeError as error:
        print(error)
      """, None if variables else 2, MINIPOD_CHECK=check, **variables), 120)
  assert returncode == 0
  return out


def test_several_processes_compare_digests():
  job = distributed.run_well("""
      from jax import shard_map
      mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      def step(x, bad):
        return x.sum() * 0 + jnp.where(lax.axis_index("x") >= 2, bad.sum(), 0)
      f = jax.jit(shard_map(step, mesh=mesh, in_specs=(P("x"), P()), out_specs=P(), check_vma=False))
      x = jax.make_array_from_callback((4,), NamedSharding(mesh, P("x")), lambda i: np.ones(4, np.float32)[i])
      for bad in (0, 1, 0):
        b = jax.make_array_from_callback((2,), NamedSharding(mesh, P()), lambda i: np.full(2, bad, np.float32)[i])
        try:
          print(np.asarray(f(x, b).addressable_data(0)))
        except jax.errors.JaxRuntimeError as error:
          print(error)
      """, 2, 2, MINIPOD_CHECK="replicas")
  for process in range(2):
    lines = job.outs[process].splitlines()
    assert [lines[0], lines[2]] == ["0.0", "0.0"]
    assert "result of jit_step should be the same on 4 devices; device 2 differs from device 0" in lines[1]
    assert "by the digests that processes compare, since launch 2 of jit_step" in lines[1]


def test_devices_of_each_process_are_compared_by_their_bytes():
  job = distributed.run_well("""
      from jax import shard_map
      mesh = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
      f = jax.jit(shard_map(lambda x: lax.psum(x.sum(), "x") + (lax.axis_index("x") == 3), mesh=mesh, in_specs=P("x"),
                            out_specs=P(), check_vma=False))
      x = jax.make_array_from_callback((4,), NamedSharding(mesh, P("x")), lambda i: np.ones(4, np.float32)[i])
      try:
        print(np.asarray(f(x).addressable_data(0)))
      except jax.errors.JaxRuntimeError as error:
        print(error)
      """, 2, 2, MINIPOD_CHECK="replicas")
  for out in job.outs.values():
    assert "device 3 differs from device 2 in 1 of 1 elements (first at []: 5 instead of 4)" in out, out
