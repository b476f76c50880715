"""DMAs, semaphores, pipelines, views of memory, strided and masked accesses, communication, kernels of `pl.kernel`."""

from case import case
from case import normal
from case import whole
import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

S = jax.ShapeDtypeStruct
f32, i32, bf16 = jnp.float32, jnp.int32, jnp.bfloat16
ANY = pl.BlockSpec(memory_space=pl.ANY)
SMEM = pl.BlockSpec(memory_space=pltpu.SMEM)
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
DMA = pltpu.SemaphoreType.DMA


def call(body, out, ins=None, outs=None, scratch=(), **options):
  ins = {} if ins is None else {"in_specs": ins}
  outs = {} if outs is None else {"out_specs": outs}
  return pl.pallas_call(body, out_shape=out, scratch_shapes=scratch, **ins, **outs, **options)


def like(x):
  return S(x.shape, x.dtype)


@case
def whole_copy(rng):
  x = normal(rng, 32, 128)
  def body(x, o, sem):
    copy = pltpu.make_async_copy(x, o, sem)
    copy.start()
    copy.wait()
  return call(body, like(x), [ANY], ANY, [DMA]), [x]


@case(by=("reference",))
def counted_copies(rng):
  x = normal(rng, 16, 128)
  def body(x, o, buffer, sem):
    pltpu.async_copy(x, buffer, sem)
    pl.semaphore_wait(sem)
    pltpu.async_copy(buffer, o, sem)
    pl.semaphore_wait(sem)
  return call(body, like(x), [ANY], ANY, [pltpu.VMEM((16, 128), f32), pltpu.SemaphoreType.REGULAR]), [x], lambda x: x


@case(by=("reference",))
def copy_between_kernels(rng):
  x, semaphore = normal(rng, 32, 128), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
  def start(x, kept, o, sem):
    pltpu.make_async_copy(x, o, sem).start()
  def wait(x, o, sem, kept):
    pltpu.make_async_copy(x, o, sem).wait()
  def f(x):
    x, o, sem = call(start, (like(x), like(x), DMA(())), [ANY], (ANY, ANY, semaphore), input_output_aliases={0: 0})(x)
    return call(wait, like(x), [ANY, ANY, semaphore], ANY, input_output_aliases={1: 0})(x, o, sem)
  return f, [x], lambda x: x


@case
def copy_through_vmem(rng):
  x = normal(rng, 64, 128)
  def body(x, o, buffer, sems):
    for i in range(4):
      pltpu.async_copy(x.at[pl.ds(i * 16, 16)], buffer.at[i % 2], sems.at[i % 2]).wait()
      buffer[i % 2] = buffer[i % 2] * 2
      pltpu.async_copy(buffer.at[i % 2], o.at[pl.ds((3 - i) * 16, 16)], sems.at[2]).wait()
  return call(body, like(x), [ANY], ANY, [pltpu.VMEM((2, 16, 128), f32), DMA((3,))]), [x]


@case
def two_buffers(rng):
  x = normal(rng, 64, 128)
  def body(x, o, buffer, sems):
    fetch = lambda i, slot: pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], buffer.at[slot], sems.at[slot])
    fetch(0, 0).start()

    def step(i, total):
      slot = lax.rem(i, 2)
      @pl.when(i + 1 < 8)
      def next_one():
        fetch(i + 1, 1 - slot).start()
      fetch(i, slot).wait()
      return total + buffer[slot]
    o[...] = lax.fori_loop(0, 8, step, jnp.zeros((8, 128)))
  return call(body, S((8, 128), f32), [ANY], VMEM, [pltpu.VMEM((2, 8, 128), f32), DMA((2,))]), [x]


@case
def gather_pages(rng):
  x = normal(rng, 8, 8, 128)
  def body(n, x, o, sem):
    copies = [pltpu.make_async_copy(x.at[n[i]], o.at[i], sem) for i in range(4)]
    for copy in copies:
      copy.start()
    for copy in copies:
      copy.wait()
  return call(body, S((4, 8, 128), f32), [SMEM, ANY], VMEM, [DMA]), [np.array([5, 0, 7, 5], np.int32), x]


@case
def sized_copy(rng):
  x = normal(rng, 64, 128)
  def body(n, x, o, sem):
    o[...] = jnp.zeros_like(o)
    pltpu.async_copy(x.at[pl.ds(n[0] * 8, n[1] * 8)], o.at[pl.ds(0, n[1] * 8)], sem).wait()
  return call(body, like(x), [SMEM, ANY], VMEM, [DMA]), [np.array([2, 3], np.int32), x]


@case
def scoped(rng):
  x = normal(rng, 16, 128)
  def body(x, o):
    def inner(buffer, sem):
      pltpu.async_copy(x, buffer, sem).wait()
      buffer[...] += 1
      pltpu.async_copy(buffer, o, sem).wait()
    pl.run_scoped(inner, pltpu.VMEM((16, 128), f32), DMA)
  return call(body, like(x), [ANY], ANY), [x]


@case
def sync_copy(rng):
  x = normal(rng, 16, 128)
  return call(lambda x, o: pltpu.sync_copy(x, o), like(x), [ANY], ANY), [x]


@case
def scalars_by_copy(rng):
  def body(x, o, numbers, sem):
    pltpu.async_copy(x, numbers, sem).wait()
    o[0] = numbers[3] + numbers[1]
  return call(body, S((1,), i32), [ANY], SMEM, [pltpu.SMEM((128,), i32), DMA]), [whole(rng, 128, dtype=np.int32)]


@case
def semaphores(rng):
  x = normal(rng, 8, 128)
  def body(x, o, sem):
    pl.semaphore_signal(sem, 3)
    pl.semaphore_wait(sem, 2)
    o[...] = x[...] + pl.semaphore_read(sem).astype(f32)
    pl.semaphore_wait(sem, 1)
  return call(body, like(x), scratch=[pltpu.SemaphoreType.REGULAR]), [x]


@case
def semaphore_array(rng):
  x = normal(rng, 8, 128)
  def body(x, o, sems):
    for i in range(3):
      pl.semaphore_signal(sems.at[i], i + 1)
    for i in range(3):
      pl.semaphore_wait(sems.at[i], i + 1)
    o[...] = x[...]
  return call(body, like(x), scratch=[pltpu.SemaphoreType.REGULAR((3,))]), [x]


def pipeline(rng, grid, ins, outs, body, shapes, out):
  def outer(*refs):
    pltpu.emit_pipeline(body, grid=grid, in_specs=ins, out_specs=outs)(*refs)
  return call(outer, out, [ANY] * len(shapes), ANY), [normal(rng, *shape) for shape in shapes]


BLOCK = pl.BlockSpec((8, 128), lambda i: (i, 0))


@case
def emit_pipeline(rng):
  def body(x, y, o):
    o[...] = x[...] * y[...]
  return pipeline(rng, (4,), [BLOCK] * 2, [BLOCK], body, [(32, 128)] * 2, S((32, 128), f32))


@case(tolerance=1e-4)
def emit_pipeline_matmul(rng):
  def body(x, y, o):
    @pl.when(pl.program_id(2) == 0)
    def clear():
      o[...] = jnp.zeros_like(o)
    o[...] += x[...] @ y[...]
  ins = [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
  return pipeline(rng, (2, 1, 2), ins, [pl.BlockSpec((128, 128), lambda i, j, k: (i, j))], body, [(256, 256), (256, 128)],
                  S((256, 128), f32))


@case
def emit_pipeline_three_buffers(rng):
  def body(x, o):
    o[...] = x[...] + 1
  block = pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(3))
  return pipeline(rng, (4,), [block], [BLOCK], body, [(32, 128)], S((32, 128), f32))


@case
def nested_pipeline(rng):
  x = normal(rng, 64, 128)
  def inner(x, o):
    o[...] = x[...] * 3
  def outer(x, o):
    rows = pl.ds(pl.program_id(0) * 32, 32)
    pltpu.emit_pipeline(inner, grid=(4,), in_specs=[BLOCK], out_specs=[BLOCK])(x.at[rows], o.at[rows])
  return call(outer, like(x), [ANY], ANY, grid=(2,)), [x]


# ---- views and accesses ----


def access(rng, body, shape, out, dtype=np.float32):
  x = whole(rng, *shape).astype(dtype)
  return call(body, out), [x]


@case
def static_slices(rng):
  def body(x, o):
    o[0:8, :] = x[8:16, 128:256]
    o[8:16, :] = x[3:11, 0:128]
  return access(rng, body, (32, 256), S((16, 128), f32))


@case
def dynamic_rows(rng):
  def body(x, o):
    for i in range(4):
      o[pl.ds(i * 8, 8), :] = x[pl.ds(pl.multiple_of((3 - i) * 8, 8), 8), :]
  return access(rng, body, (32, 128), S((32, 128), f32))


@case
def dynamic_row_of_scalar(rng):
  def body(n, x, o):
    o[...] = x[pl.ds(n[0], 8), :]
  return lambda n, x: call(body, S((8, 128), f32), [SMEM, VMEM])(n, x), [np.array([5], np.int32), normal(rng, 32, 128)]


@case
def one_row(rng):
  def body(x, o):
    o[...] = jnp.broadcast_to(x[3:4, :], (8, 128)) + x[5][None]
  return access(rng, body, (8, 128), S((8, 128), f32))


@case
def leading_index(rng):
  def body(x, o):
    o[...] = x[2] + x[0]
    o[1] = x[1, 1]
  return access(rng, body, (4, 8, 128), S((8, 128), f32))


@case
def strided_load(rng):
  def body(x, o):
    o[...] = x[pl.ds(1, 8, stride=2), :]
  return access(rng, body, (16, 128), S((8, 128), f32))


@case
def strided_store(rng):
  def body(x, o):
    o[...] = jnp.zeros_like(o)
    o[pl.ds(0, 8, stride=2), :] = x[...]
  return access(rng, body, (8, 128), S((16, 128), f32))


@case
def masked_load(rng):
  def body(x, o):
    mask = lax.broadcasted_iota(i32, (8, 128), 1) < 77
    o[...] = jnp.where(mask, pltpu.load(x, mask=mask), 0.0)
  return access(rng, body, (8, 128), S((8, 128), f32))


@case
def masked_store(rng):
  def body(x, o):
    o[...] = jnp.zeros_like(o)
    pltpu.store(o, x[...], mask=lax.broadcasted_iota(i32, (8, 128), 0) < 3)
  return access(rng, body, (8, 128), S((8, 128), f32))


@case
def reshaped_ref(rng):
  def body(x, o):
    o[...] = x.reshape(4, 8, 128)[1] + x.reshape(32, 128)[8:16, :]
  return access(rng, body, (32, 128), S((8, 128), f32))


@case
def bitcast_ref(rng):
  def body(x, o):
    o[...] = x.bitcast(i32)[...]
  return access(rng, body, (16, 128), S((8, 128), i32), bf16)


@case
def bitcast_int8_ref(rng):
  def body(x, o):
    o[...] = x.bitcast(jnp.uint32)[...]
  return access(rng, body, (32, 128), S((8, 128), jnp.uint32), np.int8)


@case
def transposed_store(rng):
  def body(x, o):
    o[...] = x[...].T
  return access(rng, body, (8, 128), S((128, 8), f32))


@case
def int4_weights(rng):
  def body(x, w, o):
    o[...] = jnp.dot(x[...], w[...].astype(bf16), preferred_element_type=f32)
  return call(body, S((16, 128), f32)), [normal(rng, 16, 128, dtype=bf16), whole(rng, 128, 128).astype(jnp.int4)]


@case
def int8_quantize(rng):
  x = normal(rng, 32, 128)
  def body(x, o, scale):
    most = jnp.max(jnp.abs(x[...]), axis=1, keepdims=True)
    scale[...] = jnp.broadcast_to(most / 127, scale.shape)
    o[...] = jnp.round(x[...] / (most / 127)).astype(jnp.int8)
  return call(body, (S((32, 128), jnp.int8), S((32, 128), f32))), [x]


@case
def add_to_result(rng):
  def body(x, o):
    o[...] = jnp.ones_like(o)
    o[2:4, :] += x[0:2, :]
    o[7, :] = x[1, :] * 2
  return access(rng, body, (8, 128), S((8, 128), f32))


# ---- several devices ----


def on_four(f):
  mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
  return jax.shard_map(f, mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P("d"), check_vma=False)


@case
def right_permute(rng):
  def body(x, o, sent, received):
    to = lax.rem(lax.axis_index("d") + 1, 4)
    copy = pltpu.make_async_remote_copy(x, o, sent, received, device_id=(to,), device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    copy.wait()
  return on_four(call(body, S((8, 128), f32), [ANY], ANY, [DMA, DMA])), [normal(rng, 32, 128)]


@case
def ring_gather(rng):
  def body(x, o, local, sent, received):
    step, me = pl.program_id(0), lax.axis_index("d")
    right = lax.rem(me + 1, 4)
    slot = lax.rem(me - step + 4, 4)

    @pl.when(step == 0)
    def own():
      pltpu.async_copy(x, o.at[me], local).wait()
    copy = pltpu.make_async_remote_copy(o.at[slot], o.at[slot], sent, received, device_id=(right,),
                                        device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    copy.wait()
  return on_four(call(body, S((4, 8, 128), f32), [ANY], ANY, [DMA, DMA, DMA], grid=(3,))), [normal(rng, 32, 128)]


@case
def barrier_and_signal(rng):
  def body(x, o, ready, sent, received):
    me = lax.axis_index("d")
    left, right = lax.rem(me + 3, 4), lax.rem(me + 1, 4)
    barrier = pltpu.get_barrier_semaphore()
    for other in (left, right):
      pl.semaphore_signal(barrier, 1, device_id=(other,), device_id_type=pl.DeviceIdType.MESH)
    pl.semaphore_wait(barrier, 2)
    pl.semaphore_signal(ready, 1, device_id=(right,), device_id_type=pl.DeviceIdType.MESH)
    pl.semaphore_wait(ready, 1)
    copy = pltpu.make_async_remote_copy(x, o, sent, received, device_id=(left,), device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    copy.wait()
  return on_four(call(body, S((8, 128), f32), [ANY], ANY, [pltpu.SemaphoreType.REGULAR, DMA, DMA],
                      compiler_params=pltpu.CompilerParams(collective_id=0))), [normal(rng, 32, 128)]


@case
def device_number(rng):
  def body(x, o):
    o[...] = x[...] + lax.axis_index("d").astype(f32)
  return on_four(call(body, S((8, 128), f32))), [normal(rng, 32, 128)]


# ---- pl.kernel and core_map ----


@case
def kernel_of_cores(rng):
  x = normal(rng, 16, 128)
  cores = pltpu.create_tensorcore_mesh("core", num_cores=1)
  return pl.kernel(lambda x, o: pltpu.sync_copy(x, o), like(x), mesh=cores), [x]


@case
def kernel_with_pipeline(rng):
  x = normal(rng, 32, 128)
  cores = pltpu.create_tensorcore_mesh("core", num_cores=1)
  def inner(x, o):
    o[...] = x[...] + 1
  body = lambda x, o: pltpu.emit_pipeline(inner, grid=(4,), in_specs=[BLOCK], out_specs=[BLOCK])(x, o)
  return pl.kernel(body, like(x), mesh=cores), [x]


@case
def core_map(rng):
  def f(x):
    x_ref, o_ref = jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))

    @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=1))
    def run():
      def inner(buffer, sem):
        pltpu.async_copy(x_ref, buffer, sem).wait()
        buffer[...] *= 2
        pltpu.async_copy(buffer, o_ref, sem).wait()
      pl.run_scoped(inner, pltpu.VMEM(x.shape, x.dtype), DMA)
    return o_ref[...]
  return f, [normal(rng, 16, 128)]


@case(by=("reference",))
def repeated_rows(rng):
  x = normal(rng, 16, 128)
  def body(x, o):
    o[...] = x[pl.ds(3, 8, 0), :] + x[pl.ds(8, 8), :]
  return call(body, S((8, 128), f32)), [x], lambda x: x[3:4] + x[8:]


@case(by=("reference",))
def parts_of_words(rng):
  x = whole(rng, 32, 256, dtype=np.int32)
  def body(x, o):
    parts = x.at[:16].bitcast(jnp.int16).reshape((2, 16, 256)).bitcast(jnp.float16)
    o[...] = parts.at[1:].reshape((16, 256)).at[:, :128].bitcast(jnp.int32)[...]
  return call(body, S((8, 128), i32)), [x], lambda x: x[8:16, :128]
