"""The time of a Pallas kernel on a described TPU follows its own program, and the values of its operands."""

import json

import scenario

CODE = """
import json, minipod
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def body(count, x, o, buffer, sem):
  def turn(i, carry):
    copy = pltpu.make_async_copy(x.at[pl.ds(i * 64, 64)], buffer, sem)
    copy.start(); copy.wait()
    o[...] += buffer[...]
    return carry
  o[...] = jnp.zeros_like(o)
  jax.lax.fori_loop(0, count[0], turn, 0)

def call(count, x):
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(), in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
      out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
      scratch_shapes=[pltpu.VMEM((64, 512), jnp.float32), pltpu.SemaphoreType.DMA])
  return pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((64, 512), jnp.float32))(count, x)

def layers(count, x):  # three times in a loop
  return jax.lax.fori_loop(0, 3, lambda i, y: y + call(count, x), jnp.zeros((64, 512)))

def seconds(f, rows, rounds):
  f = jax.jit(f)
  args = jnp.array([rounds], jnp.int32), jnp.zeros((rows, 512))
  jax.block_until_ready(f(*args))
  jax.block_until_ready(args)
  before = minipod.virtual_time()
  jax.block_until_ready(f(*args))
  return minipod.virtual_time() - before

times = [seconds(f, rows, rounds) for f in (call, layers) for rows, rounds in ((1024, 2), (1024, 12), (65536, 2))]
report = json.loads(minipod.time_report("json"))[0]
kernels = [op["kernel"] for program in report["programs"] for op in program["ops"] if "kernel" in op]
print(json.dumps([times, kernels]))
print(minipod.time_report())
"""
POD = dict(devices=None, MINIPOD_TOPOLOGY="v6e:1x1", MINIPOD_TIME="model")


def check(out):
  (few, many, large, few3, many3, large3), kernels = json.loads(out.splitlines()[0])
  block = 64 * 512 * 4 / 1.638e12  # seconds of a DMA of 64 rows at the described bandwidth
  # Ten more DMAs, one after the other; the size of the array does not matter.
  assert 10 * block < many - few < 10 * (block + 2e-6)
  assert abs(large - few) < 1e-9
  assert 29 * block < many3 - few3 < 30 * (block + 2e-6)
  assert abs(large3 - few3) < 1e-7
  assert kernels and all(kernel["by_values"] and kernel["bound_by"] == "DMA" for kernel in kernels)
  assert all(kernel["vmem"] == 2 * 64 * 512 * 4 for kernel in kernels)
  assert "kernel bound by" in out and "DMA wait" in out
  return few, many


def test_time_follows_the_values_of_operands():
  assert check(scenario.run(CODE, **POD)) == check(scenario.run(CODE, MINIPOD_VALUES="shapes", **POD))


def test_order_of_block_sizes():
  """Larger blocks of a matmul fetch less: 128 x 128 is slowest, and 512 x 512 is near the rate of the matrix unit."""
  out = scenario.run("""
      import minipod
      from jax.experimental.pallas.ops.tpu import matmul as matmuls
      x = jnp.zeros((2048, 2048), jnp.bfloat16)

      def seconds(block, k):
        f = jax.jit(lambda x, y: matmuls.matmul(x, y, block_shape=(block, block), block_k=k))
        jax.block_until_ready(f(x, x))
        before = minipod.virtual_time()
        jax.block_until_ready(f(x, x))
        return minipod.virtual_time() - before
      print(seconds(128, 128), seconds(256, 256), seconds(512, 512), seconds(1024, 512))
      """, MINIPOD_VALUES="shapes", **POD)
  smallest, small, large, largest = map(float, out.split())
  assert smallest > 4 * small and small > 1.5 * large and large > largest > 2 * 2048**3 / 918e12
