"""Different programs on different devices at the same time.

Each device, or each subset of the devices, has its own executables, whose arguments are donated and move from one to
the next.
"""

from concurrent.futures import ThreadPoolExecutor
import functools

import jax
from jax import lax
import jax.numpy as jnp
from jax._src.lib import xla_client as xc
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding
import numpy as np
import pytest

DEVICES = 8
ROUNDS = 24


def step(number, module):
  """A function of 32-bit integers, a different one for each number; `module` is numpy or jax.numpy."""
  turned = lambda x: module.flip(x, number % 2)
  kinds = [lambda x: x * (number + 3) + 1, lambda x: turned(x) ^ (x + number),
           lambda x: module.cumsum(x, axis=number % 2, dtype=module.int32) - number,
           lambda x: x @ x.T % 251 + number]
  return kinds[number % len(kinds)]


def start(number):
  return np.arange(36, dtype=np.int32).reshape(6, 6) * (number + 1) % 97


def test_each_device_has_a_program_of_its_own():
  """All are launched before any is waited for."""
  devices = jax.devices()[:DEVICES]
  programs = [jax.jit(step(i, jnp), donate_argnums=0) for i in range(DEVICES)]
  arrays = [jax.device_put(start(i), device) for i, device in enumerate(devices)]
  wanted = [start(i) for i in range(DEVICES)]
  for _ in range(ROUNDS):
    given = arrays
    arrays = [program(array) for program, array in zip(programs, arrays)]
    assert all(array.is_deleted() for array in given)
    wanted = [step(i, np)(value) for i, value in enumerate(wanted)]
  for i, (device, array) in enumerate(zip(devices, arrays)):
    assert array.devices() == {device}
    np.testing.assert_array_equal(array, wanted[i], err_msg=f"device {i}")


def test_one_function_is_compiled_for_each_device():
  """The same function, compiled ahead of time with other shapes for each device."""
  compiled = {}
  for i, device in enumerate(jax.devices()[:DEVICES]):
    spec = jax.ShapeDtypeStruct((i + 1, 5), np.float32, sharding=SingleDeviceSharding(device))
    compiled[device] = jax.jit(lambda x: (x.sum(0) * x.shape[0], x + x.shape[0])).lower(spec).compile()
  results = {device: program(jax.device_put(np.ones((i + 1, 5), np.float32), device))
             for i, (device, program) in enumerate(compiled.items())}
  for i, (device, (total, more)) in enumerate(results.items()):
    assert total.devices() == more.devices() == {device}
    np.testing.assert_array_equal(total, np.full(5, (i + 1)**2))
    np.testing.assert_array_equal(more, np.full((i + 1, 5), i + 2))
  # A program stays on its device.
  with pytest.raises(ValueError, match="sharding"):
    compiled[jax.devices()[1]](jax.device_put(np.ones((2, 5), np.float32), jax.devices()[0]))


def test_arrays_go_round_from_program_to_program():
  devices = jax.devices()[:DEVICES]
  programs = [jax.jit(step(i, jnp), donate_argnums=0) for i in range(DEVICES)]
  arrays = [jax.device_put(start(i), device) for i, device in enumerate(devices)]
  wanted = [start(i) for i in range(DEVICES)]
  for _ in range(ROUNDS):
    made = [program(array) for program, array in zip(programs, arrays)]
    # Each array moves to the next device while that device computes.
    arrays = [jax.device_put(made[i - 1], device) for i, device in enumerate(devices)]
    made = [step(i, np)(value) for i, value in enumerate(wanted)]
    wanted = [made[i - 1] for i in range(DEVICES)]
  for i, array in enumerate(arrays):
    np.testing.assert_array_equal(array, wanted[i], err_msg=f"device {i}")


def test_threads_with_a_device_each():
  def run(number):
    program = jax.jit(step(number, jnp), donate_argnums=0)
    array = jax.device_put(start(number), jax.devices()[number])
    for _ in range(ROUNDS):
      array = program(array)
    return np.asarray(array)

  with ThreadPoolExecutor(DEVICES) as pool:
    found = list(pool.map(run, range(DEVICES)))
  for i, value in enumerate(found):
    wanted = functools.reduce(lambda x, _: step(i, np)(x), range(ROUNDS), start(i))
    np.testing.assert_array_equal(value, wanted, err_msg=f"thread {i}")


# Disjoint, nested and overlapping subsets, and in other orders.
SUBSETS = [[0, 1, 2], [3, 4, 5, 6, 7], [2, 1, 0], [1, 3, 5, 7], [7, 0], [6], [4, 2, 6, 0, 5, 1, 7, 3]]


def ring(number):
  """A program over a subset; its result shows which devices took part, in which order, and which program it was."""
  def f(x):
    return lax.all_gather(x, "i") + lax.psum(x, "i") * number
  return f


def ring_of(value, number):
  return np.stack([value + value.sum(0) * number] * len(value))


def pmaps():
  devices = jax.devices()
  return [jax.pmap(ring(n), axis_name="i", devices=[devices[i] for i in subset])
          for n, subset in enumerate(SUBSETS)]


def test_pmaps_of_subsets_at_once():
  programs = pmaps()
  values = [np.arange(3 * len(subset), dtype=np.int32).reshape(-1, 3) + 100 * n
            for n, subset in enumerate(SUBSETS)]
  found = [[program(value + round_) for program, value in zip(programs, values)]
           for round_ in range(ROUNDS)]
  for round_, results in enumerate(found):
    for n, result in enumerate(results):
      assert [shard.device.id for shard in result.addressable_shards] == SUBSETS[n]
      np.testing.assert_array_equal(result, ring_of(values[n] + round_, n))


def test_threads_with_crossing_subsets():
  """Launches of several threads reach the devices in any order, and none waits for ever."""
  programs = pmaps()

  def run(n):
    value = np.arange(len(SUBSETS[n]) * 2, dtype=np.int32).reshape(-1, 2)
    results = [programs[n](value + round_) for round_ in range(ROUNDS)]
    for round_, result in enumerate(results):
      np.testing.assert_array_equal(result, ring_of(value + round_, n))

  with ThreadPoolExecutor(len(SUBSETS)) as pool:
    list(pool.map(run, range(len(SUBSETS))))


def test_meshes_hand_arrays_on():
  """An array passes through programs of overlapping meshes; it is donated to each, and between them."""
  devices = np.array(jax.devices())
  meshes = [Mesh(devices[list(order)].reshape(shape), names) for order, shape, names in [
      ((0, 1, 2, 3), 4, "x"), ((7, 6, 5, 4), 4, "x"), ((1, 3, 5, 7), (2, 2), ("x", "y")),
      ((2, 5), 2, "x")]]
  programs = [jax.jit(step(n, jnp), donate_argnums=0, out_shardings=NamedSharding(mesh, P("x")))
              for n, mesh in enumerate(meshes)]
  values = [np.arange(64, dtype=np.int32).reshape(8, 8) + n for n in range(len(meshes))]
  arrays = list(values)
  for round_ in range(ROUNDS):
    turn = lambda i: (i + round_) % len(meshes)
    arrays = [jax.device_put(array, NamedSharding(meshes[turn(i)], P("x")))
              for i, array in enumerate(arrays)]
    arrays = [programs[turn(i)](array) for i, array in enumerate(arrays)]
    values = [step(turn(i), np)(value) for i, value in enumerate(values)]
  for array, value in zip(arrays, values):
    np.testing.assert_array_equal(array, value)


def compiled_for(text, devices):
  """Compiled for a subset of the devices, through the C API."""
  options = xc.CompileOptions()
  build = options.executable_build_options
  options.num_replicas = build.num_replicas = len(devices)
  options.device_assignment = xc.DeviceAssignment.create(np.array([[d.id] for d in devices]))
  return devices[0].client.compile_and_load(text, xc.DeviceList(tuple(devices)), options)


SCALE = """
module @scale_%(factor)d attributes {mhlo.num_replicas = %(count)d : i32} {
  func.func @main(%%x: tensor<3xi32>) -> tensor<3xi32> {
    %%0 = "stablehlo.all_reduce"(%%x) <{
      replica_groups = dense<[%(group)s]> : tensor<1x%(count)dxi64>}> ({
    ^bb0(%%a: tensor<i32>, %%b: tensor<i32>):
      %%s = stablehlo.add %%a, %%b : tensor<i32>
      stablehlo.return %%s : tensor<i32>
    }) : (tensor<3xi32>) -> tensor<3xi32>
    %%r = stablehlo.replica_id : tensor<ui32>
    %%i = stablehlo.convert %%r : (tensor<ui32>) -> tensor<i32>
    %%c = stablehlo.constant dense<%(factor)d> : tensor<i32>
    %%p = stablehlo.multiply %%i, %%c : tensor<i32>
    %%w = stablehlo.broadcast_in_dim %%p, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %%1 = stablehlo.add %%0, %%w : tensor<3xi32>
    return %%1 : tensor<3xi32>
  }
}
"""


def test_executables_of_subsets():
  programs = []
  for n, subset in enumerate(SUBSETS):
    devices = [jax.devices()[i] for i in subset]
    text = SCALE % {"factor": 10 + n, "count": len(subset), "group": list(range(len(subset)))}
    programs.append((compiled_for(text, devices), devices))
  results = []
  for n, (program, devices) in enumerate(programs):
    value = np.arange(3 * len(devices), dtype=np.int32).reshape(-1, 3)
    mesh = Mesh(np.array(devices), "i")
    array = jax.device_put(value.reshape(-1), NamedSharding(mesh, P("i")))
    results.append((value, program.execute_sharded([array])))
  for n, (value, result) in enumerate(results):
    [parts] = result.disassemble_into_single_device_arrays()
    assert len(parts) == len(SUBSETS[n])
    found = {next(iter(part.devices())).id: np.asarray(part) for part in parts}
    for replica, device in enumerate(SUBSETS[n]):
      np.testing.assert_array_equal(found[device], value.sum(0) + replica * (10 + n))
