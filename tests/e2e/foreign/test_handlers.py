"""Foreign functions that a user has compiled, as JAX calls them on minipod's devices."""

import gc
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec as P

F32 = np.float32


@pytest.fixture(autouse=True)
def compiled(handlers):
  return handlers


def call(name, like, *, target=None, **options):
  """ffi_call of one handler whose result is like `like`."""
  return jax.ffi.ffi_call(target or "test_" + name, jax.ShapeDtypeStruct(like.shape, like.dtype),
                          **options)


def scale(x, factor=3.0, name="Scale"):
  return call(name, x, vmap_method="broadcast_all")(x, factor=np.float32(factor))


X = np.arange(6, dtype=F32)


def mesh():
  return jax.make_mesh((8,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))


# ---- Under transformations ----

def test_jit_and_eager():
  np.testing.assert_array_equal(scale(X), 3 * X)
  np.testing.assert_array_equal(jax.jit(scale)(X), 3 * X)


def test_a_handler_for_minipod_alone():
  np.testing.assert_array_equal(jax.jit(lambda x: scale(x, name="OnlyHere"))(X), 3 * X)


def test_threads_of_a_function_run_on_all_cores():
  x = jnp.ones((512, 512))
  f = jax.jit(lambda x: call("Cores", jax.ShapeDtypeStruct((), np.int32))(x @ x))  # on a worker
  plain = jax.jit(lambda x: x @ x)
  for _ in range(3):
    assert f(x) == len(os.sched_getaffinity(0))
    plain(x).block_until_ready()  # binds the worker again


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims",
                                    "broadcast_all"])
def test_vmap(method):
  x = np.arange(12, dtype=F32).reshape(3, 4)
  f = lambda row: call("Scale", row, vmap_method=method)(row, factor=np.float32(2))
  np.testing.assert_array_equal(jax.vmap(f)(x), 2 * x)


def test_while_loop_and_scan():
  def loop(x):
    return jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, scale(c[1], 2.0)), (0, x))
  np.testing.assert_array_equal(jax.jit(loop)(X)[1], 16 * X)
  last, rows = jax.jit(lambda x: jax.lax.scan(lambda c, _: (scale(c, 2.0), c), x, None, 5))(X)
  np.testing.assert_array_equal(last, 32 * X)
  np.testing.assert_array_equal(rows[4], 16 * X)


def test_cond_takes_only_its_branch():
  f = jax.jit(lambda p, x: jax.lax.cond(p, lambda x: call("Fail", x)(x, code=3), scale, x))
  np.testing.assert_array_equal(f(False, X - 1), 3 * (X - 1))


def test_shard_map():
  x = np.arange(16, dtype=F32)
  f = jax.jit(jax.shard_map(scale, mesh=mesh(), in_specs=P("x"), out_specs=P("x")))
  y = f(jax.device_put(x, NamedSharding(mesh(), P("x"))))
  np.testing.assert_array_equal(y, 3 * x)
  assert {s.data.shape for s in y.addressable_shards} == {(2,)}


def test_sharded_without_a_rule_is_computed_whole():
  x = np.arange(16, dtype=F32)
  np.testing.assert_array_equal(
      jax.jit(scale)(jax.device_put(x, NamedSharding(mesh(), P("x")))), 3 * x)


def test_pmap():
  x = np.arange(16, dtype=F32).reshape(8, 2)
  np.testing.assert_array_equal(jax.pmap(scale)(x), 3 * x)


def test_custom_jvp():
  @jax.custom_jvp
  def f(x):
    return scale(x)
  f.defjvp(lambda primals, tangents: (f(*primals), scale(*tangents)))
  y, dy = jax.jit(lambda x: jax.jvp(f, (x,), (2 * x,)))(X)
  np.testing.assert_array_equal(y, 3 * X)
  np.testing.assert_array_equal(dy, 6 * X)


# ---- Arguments of a handler ----

def test_attributes_of_every_kind():
  out = np.zeros(400, np.uint8)
  text = call("Attributes", out)(
      b=True, i8=np.int8(-8), u8=np.uint8(208), i16=np.int16(-16), u16=np.uint16(65016),
      i32=np.int32(-32), u32=np.uint32(4000000000), i64=np.int64(-2**40), u64=np.uint64(2**63 - 5),
      f32=np.float32(1.5), f64=np.float64(-2.25), text="für dich",
      list=np.array([1, -2, 3], np.int64), floats=np.full(2, 0.5, F32), dict={"inner": 7, "b": "c"})
  text = bytes(np.asarray(text)).rstrip(b"\0").decode()
  assert text == ("b=1;i8=-8;u8=208;i16=-16;u16=65016;i32=-32;u32=4000000000;i64=-1099511627776;"
                  "u64=9223372036854775803;f32=1500;f64=-2250;text=für dich;list=1;list=-2;list=3;"
                  "floats=5;floats=5;dict=2;inner=7;")


@pytest.mark.parametrize("value, what", [(np.float16(1), "f16"), ((1, 2), "another kind"),
                                         (np.zeros(2, bool), "array of another type")])
def test_attributes_that_cannot_be_passed_are_named(value, what):
  with pytest.raises(jax.errors.JaxRuntimeError, match=f"attribute 'factor' is .*{what}"):
    call("Scale", X)(X, factor=value)


def test_a_missing_attribute_is_the_handlers_own_error():
  with pytest.raises(jax.errors.JaxRuntimeError, match="(?s)INVALID_ARGUMENT: .*Attribute name mismatch"):
    jax.block_until_ready(call("Scale", X)(X, other=np.float32(3)))


@pytest.mark.parametrize("layout, first", [((0, 1), [0, 1, 2, 3]), ((1, 0), [0, 4, 8, 1])])
def test_layouts(layout, first):
  x = np.arange(12, dtype=F32).reshape(3, 4)
  y = call("Look", np.zeros(6, F32), input_layouts=[layout])(x)
  np.testing.assert_array_equal(y, [3, 4, *first])


def test_layouts_of_results():
  x = np.arange(12, dtype=F32).reshape(3, 4)
  f = jax.jit(lambda x: call("Scale", x, input_layouts=[(1, 0)], output_layouts=(1, 0))(
      x, factor=np.float32(1)))
  np.testing.assert_array_equal(f(x), x)
  # The bytes of a row-major operand, read as a column-major result.
  g = jax.jit(lambda x: call("Scale", np.zeros((4, 3), F32), output_layouts=(1, 0))(
      x, factor=np.float32(1)))
  np.testing.assert_array_equal(g(x), x.T)


def test_aliases():
  f = lambda x: call("AddFirst", x, input_output_aliases={0: 0})(x)
  x = jnp.asarray(X)
  np.testing.assert_array_equal(f(x), X + np.eye(1, 6, dtype=F32)[0])
  np.testing.assert_array_equal(x, X)  # the operand still exists, unchanged
  both = jax.jit(lambda x: (f(x), x, f(f(x * 2))))(X)
  np.testing.assert_array_equal(both[0][:2], [1, 1])
  np.testing.assert_array_equal(both[1], X)
  np.testing.assert_array_equal(both[2][:2], [2, 2])
  np.testing.assert_array_equal(jax.jit(f, donate_argnums=0)(jnp.asarray(X))[:2], [1, 1])
  looped = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, y: f(y), x))(X)
  np.testing.assert_array_equal(looped[:2], [5, 1])


def test_device_and_run():
  f = jax.pmap(lambda x: call("Where", np.zeros(2, np.int32), has_side_effect=True)() + 0 * x)
  found = np.asarray(f(np.zeros(8, np.int32)))
  np.testing.assert_array_equal(found[:, 0], np.arange(8))
  assert len(set(found[:, 1])) == 1  # one run on all devices
  assert np.asarray(f(np.zeros(8, np.int32)))[0, 1] != found[0, 1]


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_arrays_without_elements_and_scalars(shape):
  x = np.ones(shape, F32)
  np.testing.assert_array_equal(jax.jit(scale)(x), 3 * x)


# ---- Errors ----

@pytest.mark.parametrize("code, name", [(3, "INVALID_ARGUMENT"), (8, "RESOURCE_EXHAUSTED"),
                                        (13, "INTERNAL"), (16, "UNAUTHENTICATED")])
def test_an_error_has_the_handlers_code_words_and_the_users_line(code, name):
  f = jax.jit(lambda x: call("Fail", x)(x, code=code))
  np.testing.assert_array_equal(f(X), X)
  with pytest.raises(jax.errors.JaxRuntimeError) as failure:
    f(X - 1).block_until_ready()
  message = str(failure.value)
  assert message.startswith(f"{name}: negative number, says the handler (foreign function"
                            " 'test_Fail')"), message
  assert "test_handlers.py" in message
  np.testing.assert_array_equal(f(X), X)  # the device still works


@pytest.mark.parametrize("kind, words", [(1, ": thrown by the handler"), (2, " \\(foreign")])
def test_what_a_handler_throws_is_an_error(kind, words):
  f = lambda kind: jax.jit(lambda: call("Throw", X[0].astype(np.int32))(kind=kind))()
  for _ in range(2):
    with pytest.raises(jax.errors.JaxRuntimeError,
                       match="UNKNOWN: it has thrown a C\\+\\+ exception" + words):
      jax.block_until_ready(f(kind))
    assert int(f(0)) == 100


def test_calls_with_unused_results_are_not_made():
  def f(x):
    y = call("Fail", x)(x, code=13)
    return y[:0] + x[:0]
  np.testing.assert_array_equal(jax.jit(f)(X - 1), np.zeros(0, F32))


def test_an_error_on_one_device_ends_the_launch_on_all():
  x = np.ones((8, 2), F32)
  x[5] = -1
  f = jax.pmap(lambda x: jax.lax.psum(call("Fail", x)(x, code=9), "i"), "i")
  with pytest.raises(jax.errors.JaxRuntimeError, match="FAILED_PRECONDITION: negative number"):
    jax.block_until_ready(f(x))
  np.testing.assert_array_equal(f(np.ones((8, 2), F32)), np.full((8, 2), 8, F32))


def test_an_unknown_target_is_named_with_the_known_ones():
  with pytest.raises(jax.errors.JaxRuntimeError) as failure:
    call("Scal", X)(X)
  message = str(failure.value)
  assert "UNIMPLEMENTED: custom_call target 'test_Scal' is not known" in message
  assert "test_Scale" in message and "test_handlers.py" in message


def test_a_typed_call_of_an_old_function_is_refused():
  with pytest.raises(jax.errors.JaxRuntimeError, match="only as one of an older API"):
    call("OldAdd", X[0])(X[0], X[1])


def test_a_handler_refuses_wrong_arguments():
  with pytest.raises(jax.errors.JaxRuntimeError, match="Wrong number of arguments"):
    jax.block_until_ready(call("Scale", X)(X, X, factor=np.float32(1)))


# ---- State ----

def count(begin):
  return jax.ffi.ffi_call("test_Count", jax.ShapeDtypeStruct((), np.int32),
                          has_side_effect=True)(begin=begin)


def test_state_lives_as_long_as_the_program(compiled):
  before = compiled.CountersAlive()
  f = jax.jit(lambda: (count(10), count(20)))
  assert [int(x) for x in f()] == [10, 20]
  assert [int(x) for x in f()] == [11, 21]
  assert compiled.CountersAlive() == before + 2
  f.clear_cache()
  del f
  gc.collect()
  assert compiled.CountersAlive() == before


def test_an_error_of_the_instantiate_stage_is_one_of_compiling(compiled):
  before = compiled.CountersAlive()
  with pytest.raises(jax.errors.JaxRuntimeError, match="it must not begin below 0.*test_Count"):
    jax.jit(lambda: (count(1), count(-1))).lower().compile()
  assert compiled.CountersAlive() == before


def test_stages_run_once_per_run(compiled):
  before = compiled.CountersAlive()
  stage = lambda x: call("Stages", x)(x)
  f = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, x: stage(x), x))
  for _ in range(2):
    assert int(f(np.int32(0))) == 1100 + 1101 + 1102
  assert compiled.CountersAlive() == before


# ---- Results that come later, tasks, memory ----

def test_a_future(compiled):
  later = lambda x: call("Later", x)(x)
  np.testing.assert_array_equal(jax.jit(later)(X), X + 1)
  looped = jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda i, x: later(x), x))
  np.testing.assert_array_equal(looped(X), X + 4)
  x = np.arange(16, dtype=F32).reshape(8, 2)
  np.testing.assert_array_equal(jax.pmap(lambda x: jax.lax.psum(later(x), "i"), "i")(x)[0],
                                (x + 1).sum(0))


def test_an_error_of_a_future():
  with pytest.raises(jax.errors.JaxRuntimeError,
                     match="OUT_OF_RANGE: negative number, found later.*test_Later"):
    jax.block_until_ready(jax.jit(lambda x: call("Later", x)(x))(X - 1))


@pytest.mark.parametrize("name, factor", [("Tasks", 2), ("TasksLater", 3)])
def test_tasks_and_scratch_memory(name, factor):
  x = np.arange(16, dtype=F32).reshape(8, 2)
  for _ in range(5):  # on all devices at once: each worker runs the handler and waits for tasks
    np.testing.assert_array_equal(jax.pmap(lambda x: call(name, x)(x))(x), factor * x)


def test_scratch_memory_is_given_back():
  device = jax.devices()[0]
  f = jax.jit(lambda x: call("Tasks", x)(x))
  x = jax.device_put(X, device)
  jax.block_until_ready(f(x))
  before = device.memory_stats()["bytes_in_use"]
  for _ in range(3):
    jax.block_until_ready(f(x))
  gc.collect()
  assert device.memory_stats()["bytes_in_use"] <= before


def test_allocations_that_fail():
  assert int(jax.jit(lambda: call("Greedy", X[0].astype(np.int32))())()) == 0


# ---- The interface before FFI ----

def test_old_functions():
  f = jax.jit(lambda x, y: call("OldAdd", x, custom_call_api_version=1)(x, y))
  assert float(f(F32(1), F32(2))) == 3
  g = jax.ffi.ffi_call("test_OldOpaque", (jax.ShapeDtypeStruct((), F32),
                                          jax.ShapeDtypeStruct((), np.int32)),
                       custom_call_api_version=3, legacy_backend_config="AB")
  assert [float(x) for x in jax.jit(g)(F32(5))] == [5, 2065]


# ---- Storing programs ----

def test_serialized_programs_find_their_functions():
  from jax.experimental import serialize_executable
  compiled_f = jax.jit(scale).lower(X).compile()
  loaded = serialize_executable.deserialize_and_load(
      *serialize_executable.serialize(compiled_f), execution_devices=jax.devices()[:1])
  np.testing.assert_array_equal(loaded(X), 3 * X)


# ---- Under custom_partitioning ----

def partitioned(body, spec, seen, local=None):
  """Runs `body`; its partitioner returns `body`, or `local`, for the parts of an array that `spec` shards."""
  from jax.experimental.custom_partitioning import custom_partitioning

  @custom_partitioning
  def f(x):
    return body(x)

  def partition(mesh, arg_shapes, result_shape):
    seen.append((arg_shapes[0].sharding.spec, result_shape.sharding.spec))
    sharding = NamedSharding(mesh, spec)
    return mesh, local or body, sharding, (sharding,)

  f.def_partition(partition, infer_sharding_from_operands=lambda mesh, a, r: a[0].sharding,
                  sharding_rule="i j -> i j")
  return f


@pytest.mark.parametrize("given, wanted", [(P("x"), P("x")), (P(None, "x"), P("x")), (P(), P("x")),
                                           (P("x"), P())])
def test_custom_partitioning(given, wanted):
  x = np.arange(8 * 16, dtype=F32).reshape(8, 16)
  seen = []
  f = jax.jit(partitioned(lambda x: scale(x) + jnp.float32(x.shape[0]), wanted, seen))
  y = f(jax.device_put(x, NamedSharding(mesh(), given)))
  np.testing.assert_array_equal(y, 3 * x + (1 if wanted == P("x") else 8))
  assert len(seen) == 1 and seen[0][0] == P(*given, *[None] * (2 - len(given)))


def test_custom_partitioning_with_a_collective_and_in_a_loop():
  x = np.arange(8 * 2, dtype=F32).reshape(8, 2)
  f = partitioned(lambda x: scale(x) + x.sum(0), P("x"), [],
                  local=lambda x: scale(x) + jax.lax.psum(x.sum(0), "x"))
  loop = jax.jit(lambda x: jax.lax.fori_loop(0, 2, lambda i, x: f(x), x))
  wanted = x
  for _ in range(2):
    wanted = 3 * wanted + wanted.sum(0)
  np.testing.assert_array_equal(loop(jax.device_put(x, NamedSharding(mesh(), P("x")))), wanted)


@pytest.mark.parametrize("given, told, rows", [(P(("y", "x")), "{devices=[4,1]<=[4]}", 2),
                                               (P("y"), "{replicated}", 8),
                                               (P("y", "x"), "{devices=[1,4]<=[4]}", 8)])
def test_custom_partitioning_where_some_axes_are_manual(given, told, rows):
  """The partitioner gets the devices along the other axes, as with JAX's CPU backend, and its program runs along each
  manual axis.
  """
  from jax.experimental.custom_partitioning import custom_partitioning
  seen = []
  f = custom_partitioning(lambda x: x * 3 + jnp.float32(x.shape[0]))

  def partition(mesh, arg_shapes, result_shape):
    seen.append((arg_shapes[0].shape, str(arg_shapes[0].sharding), str(result_shape.sharding)))
    body = lambda x: x * 3 + jnp.float32(x.shape[0])
    return mesh, body, result_shape.sharding, (arg_shapes[0].sharding,)

  f.def_partition(partition, infer_sharding_from_operands=lambda mesh, a, r: a[0].sharding,
                  sharding_rule="i j -> i j")
  some = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
  g = jax.shard_map(f, mesh=some, in_specs=P("y"), out_specs=P("y"), axis_names={"y"}, check_vma=False)
  x = np.arange(64, dtype=F32).reshape(16, 4)
  y = jax.jit(g)(jax.device_put(x, NamedSharding(some, given)))
  np.testing.assert_array_equal(y, 3 * x + rows)
  (shape, operand, result), = seen
  assert shape == (8, 4) and told in operand and told in result


def test_a_partitioners_exception_is_an_error_of_compiling():
  def fail(x):
    raise ValueError("no, says the partitioner")
  from jax.experimental.custom_partitioning import custom_partitioning
  f = custom_partitioning(lambda x: x)
  f.def_partition(lambda mesh, a, r: fail(a), infer_sharding_from_operands=lambda m, a, r: a,
                  sharding_rule="i j -> i j")
  x = jax.device_put(np.ones((8, 2), F32), NamedSharding(mesh(), P("x")))
  with pytest.raises(Exception, match="no, says the partitioner"):
    jax.jit(f)(x)


LOAD = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from jaxlib import xla_client as xc

def load_and_run(data):
  mesh = jax.make_mesh((8,), ("x",))
  x = jax.device_put(np.arange(16, dtype=np.float32).reshape(8, 2), NamedSharding(mesh, P("x")))
  devices = xc.DeviceList(tuple(jax.devices()))
  executable = jax.devices()[0].client.deserialize_executable(data, executable_devices=devices)
  parts, = executable.execute_sharded([x]).disassemble_into_single_device_arrays()
  return executable, np.concatenate([np.asarray(part) for part in parts]).tolist()
"""


def test_programs_with_parts_of_partitioners_are_stored(tmp_path):
  """Loading does not call the partitioners again, because another process does not have them."""
  x = jax.device_put(np.arange(16, dtype=F32).reshape(8, 2), NamedSharding(mesh(), P("x")))
  seen = []
  f = partitioned(lambda x: x * 3 + jnp.float32(x.shape[0]), P("x"), seen)
  g = partitioned(lambda x: x * 2 + jnp.float32(x.shape[0]), P(), seen)
  compiled_f = jax.jit(lambda x: f(g(x)), out_shardings=x.sharding).lower(x).compile()
  wanted = np.asarray(compiled_f(x)).tolist()
  assert wanted == (3 * (2 * np.asarray(x) + 8) + 1).tolist() and len(seen) == 2
  executable = compiled_f.runtime_executable()
  data = executable.client.serialize_executable(executable) if hasattr(
      executable.client, "serialize_executable") else executable.serialize()
  names = {}
  exec(LOAD, names)
  again, found = names["load_and_run"](data)
  assert found == wanted and len(seen) == 2
  (tmp_path / "data").write_bytes(data)
  code = LOAD + f"print(load_and_run(open({str(tmp_path / 'data')!r}, 'rb').read())[1])"
  found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
  assert found.returncode == 0, found.stderr
  assert found.stdout.strip() == str(wanted)


# ---- Registrations ----

def test_a_wrong_registration_before_the_start_costs_nothing_else():
  code = """
import ctypes, jax, numpy as np
nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda frame: None)
for platform in ("cpu_", "minipod"):
  jax.ffi.register_ffi_target("wrong", jax.ffi.pycapsule(nothing), platform=platform)
print(np.asarray(jax.numpy.linalg.eig(np.eye(2, dtype=np.float32))[0]))
try:
  jax.ffi.register_ffi_target("wrong", jax.ffi.pycapsule(nothing), platform="minipod")
except ValueError as error:
  print("refused:", error)
"""
  found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
  assert found.returncode == 0, found.stderr
  assert found.stdout.startswith("[1.+0.j 1.+0.j]\nrefused: INVALID_ARGUMENT: foreign function"
                                 " 'wrong': it was compiled for version 0.0 of XLA's FFI")
  assert "the foreign function or type 'wrong' is not available on minipod" in found.stderr
