"""Pallas kernels that communicate, for tests: each is a function of a shard on a line of N devices, axis "x"."""

import functools

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

ANY = pl.BlockSpec(memory_space=pl.ANY)
DMA, REGULAR = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
ID = {"device_id_type": pl.DeviceIdType.LOGICAL}


def line(n=None):
  """The devices in the order of their numbers."""
  return jax.sharding.Mesh(np.array(jax.devices()[:n]), "x")


def on(mesh, f, out=jax.P("x")):
  return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=jax.P("x"), out_specs=out, check_vma=False))


def call(body, out, scratch=(), **options):
  """A call with all arrays in HBM."""
  params = pltpu.CompilerParams(collective_id=options.pop("collective_id", None), has_side_effects=True)
  name = options.pop("name", None) or getattr(body, "__name__", "kernel")
  specs = {"in_specs": options.pop("in_specs", [ANY]), "out_specs": options.pop("out_specs", ANY)}
  return pl.pallas_call(body, out_shape=out, scratch_shapes=list(scratch), compiler_params=params, name=name, **specs,
                        **options)


def neighbors(axis="x"):
  n, me = lax.axis_size(axis), lax.axis_index(axis)
  return me, lax.rem(me + n - 1, n), lax.rem(me + 1, n)


def meet(others):
  """A barrier with these devices."""
  barrier = pltpu.get_barrier_semaphore()
  for other in others:
    pl.semaphore_signal(barrier, 1, device_id=other, **ID)
  pl.semaphore_wait(barrier, len(others))


def send(source, target, sent, received, device):
  return pltpu.make_async_remote_copy(source, target, sent, received, device_id=device, **ID)


def all_gather(x, barrier=True):
  """A ring: each step passes on the shard that came in the step before."""
  n = lax.axis_size("x")

  def gather(x, o, local, sent, received):
    step = pl.program_id(0)
    me, left, right = neighbors()
    slot = lax.rem(me - step + n, n)

    @pl.when(step == 0)
    def begin():
      if barrier:
        meet([left, right])
      pltpu.async_copy(x, o.at[me], local).wait()

    # A semaphore for each step: two steps of the neighbor may be on their way.
    copy = send(o.at[slot], o.at[slot], sent, received.at[step], right)
    copy.start()
    copy.wait()

  out = call(gather, jax.ShapeDtypeStruct((n, *x.shape), x.dtype), [DMA, DMA, DMA((n - 1,))], grid=(n - 1,),
             collective_id=3 if barrier else None)(x)
  return out.reshape(-1, *x.shape[1:])


def reduce_scatter(x):
  """A ring with two buffers: a device may send only when its neighbor has read the buffer."""
  n = lax.axis_size("x")
  shape = (x.shape[0] // n, *x.shape[1:])

  def scatter(x, o, mine, buffers, sent, received, ready, local):
    step = pl.program_id(0)
    me, left, right = neighbors()
    slot, other = lax.rem(step, 2), lax.rem(step + 1, 2)

    @pl.when(step == 0)
    def begin():
      meet([left, right])
      pltpu.async_copy(x.at[lax.rem(me + n - 1, n)], buffers.at[0], local).wait()

    @pl.when(step > 0)
    def wait():
      pl.semaphore_wait(ready, 1)

    copy = send(buffers.at[slot], buffers.at[other], sent.at[slot], received.at[other], right)
    copy.start()
    pltpu.async_copy(x.at[lax.rem(me + 2 * n - 2 - step, n)], mine, local).wait()
    copy.wait()
    buffers[other] = buffers[other] + mine[...]

    @pl.when(step < n - 2)
    def go_on():
      pl.semaphore_signal(ready, 1, device_id=left, **ID)

    @pl.when(step == n - 2)
    def end():
      pltpu.async_copy(buffers.at[other], o, local).wait()

  scratch = [pltpu.VMEM(shape, x.dtype), pltpu.VMEM((2, *shape), x.dtype), DMA((2,)), DMA((2,)), REGULAR, DMA]
  f = call(scatter, jax.ShapeDtypeStruct(shape, x.dtype), scratch, grid=(n - 1,), collective_id=4)
  return f(x.reshape(n, *shape))


def all_to_all(x):
  """Each device writes its part of each other device's result."""
  n = lax.axis_size("x")
  parts = x.reshape(n, -1, *x.shape[1:])

  def exchange(x, o, sent, received):
    me = lax.axis_index("x")
    meet([lax.rem(me + k, n) for k in range(n)])
    copies = []
    for k in range(n):
      to = lax.rem(me + k, n)
      copies.append(send(x.at[to], o.at[me], sent, received, to))
      copies[-1].start()
    for copy in copies:
      copy.wait()

  return call(exchange, parts, [DMA] * 2, collective_id=5)(parts).reshape(x.shape)


def permute(x, by=1, **options):
  """Sends the shard, through blocks in VMEM or as a whole."""

  def shift(x, o, sent, received):
    me, n = lax.axis_index("x"), lax.axis_size("x")
    copy = send(x, o, sent, received, lax.rem(me + by + n, n))
    copy.start()
    copy.wait()

  return call(shift, x, [DMA] * 2, **options)(x)


def permute_in_tiles(x):
  """Eight rows a step; the last step's reach into the tile padding of both arrays."""
  def shift(x, o, sent, received):
    _, left, right = neighbors()
    step = pl.program_id(0)

    @pl.when(step == 0)
    def begin():
      meet([left, right])

    rows = pl.ds(8 * step, 8)
    copy = send(x.at[rows], o.at[rows], sent, received.at[step], right)
    copy.start()
    copy.wait()

  steps = pl.cdiv(x.shape[0], 8)
  return call(shift, jax.ShapeDtypeStruct(x.shape, x.dtype), [DMA, DMA((steps,))], grid=(steps,), collective_id=7)(x)


def lonely(x):
  """Device 2 does not signal its neighbor, which waits in vain."""

  def lonely(x, o):
    me, _, right = neighbors()
    barrier = pltpu.get_barrier_semaphore()

    @pl.when(me != 2)
    def signal():
      pl.semaphore_signal(barrier, 1, device_id=right, **ID)

    pl.semaphore_wait(barrier, 1)

  return call(lonely, x, collective_id=1)(x)


# ---- kernels that poll ----


# JAX drops a loop whose result is not used.
def await_reading(semaphore, count, memory):
  """Reads a semaphore until it is `count`, and does nothing else."""
  memory[0] = lax.while_loop(lambda value: value < count, lambda _: pl.semaphore_read(semaphore), 0)


def await_counting(semaphore, count, memory):
  memory[0] = lax.while_loop(lambda i: (pl.semaphore_read(semaphore) < count) & (i < 1 << 30), lambda i: i + 1, 0)


def await_working(semaphore, count, memory):
  """Each round stores something."""

  def work(_):
    memory[0] += 1
    return pl.semaphore_read(semaphore)

  memory[0] = 0
  memory[0] = lax.while_loop(lambda value: value < count, work, 0)


def token_ring(x, await_token, ends=True):
  """Device i adds i to what came from its left neighbor, when a token has come.  Without `ends` the first token is missing."""
  n = lax.axis_size("x")

  def pass_on(x, o, buffer, memory, token, sent, received):
    me, _, right = neighbors()

    @pl.when((me != 0) | (not ends))
    def wait():
      await_token(token, 1, memory)
      pl.semaphore_wait(token, 1)
      pltpu.make_async_copy(x, buffer, received).wait()

    @pl.when((me == 0) & ends)
    def begin():
      buffer[...] = x[...]

    o[...] = buffer[...] + me.astype(buffer.dtype)

    @pl.when(me != n - 1)
    def go_on():
      copy = send(o, buffer, sent, received, right)
      copy.start()
      copy.wait_send()
      pl.semaphore_signal(token, 1, device_id=right, **ID)

  vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
  scratch = [pltpu.VMEM(x.shape, x.dtype), pltpu.SMEM((1,), jnp.int32), REGULAR, DMA, DMA]
  return call(pass_on, x, scratch, in_specs=[vmem], out_specs=vmem)(x)


def flag_ring(x, space, ends=True):
  """Device i polls memory that its left neighbor writes."""
  n = lax.axis_size("x")

  def pass_on(x, o, flag, set_flag, seen, sent, received):
    me, _, right = neighbors()
    read = (lambda: flag[0, 0]) if space == pltpu.SMEM else lambda: jnp.max(flag[...])

    def store(ref, value):
      if space == pltpu.SMEM:
        ref[0, 0] = value
      else:
        ref[...] = jnp.full(ref.shape, value, jnp.int32)

    store(flag, 0)
    meet([lax.rem(me + k, n) for k in range(n)])
    store(set_flag, 1)

    @pl.when((me != 0) | (not ends))
    def wait():
      seen[0] = lax.while_loop(lambda value: value == 0, lambda _: read(), 0)
      pltpu.make_async_copy(flag, flag, received).wait()

    @pl.when(me != n - 1)
    def go_on():
      copy = send(set_flag, flag, sent, received, right)
      copy.start()
      copy.wait_send()
    o[...] = x[...] + me.astype(x.dtype)

  shape = (1, 1) if space == pltpu.SMEM else (8, 128)
  vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
  scratch = [space(shape, jnp.int32)] * 2 + [pltpu.SMEM((1,), jnp.int32)] + [DMA] * 2
  return call(pass_on, x, scratch, in_specs=[vmem], out_specs=vmem, collective_id=6)(x)


# ---- kernels that pass semaphores on ----

SEMAPHORES = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)


def start_permute(x):
  """Starts to send the shard to the right: what comes from the left, and the semaphores."""

  def start(x, o, sent, received):
    n = lax.axis_size("x")
    me, _, right = neighbors()
    meet([lax.rem(me + k, n) for k in range(n)])
    send(x, o, sent.at[1], received, right).start()

  return call(start, [x, DMA((2,)), DMA(())], out_specs=[ANY, SEMAPHORES, SEMAPHORES], collective_id=7)(x)


def end_permute(x, started):

  def end(x, o, sent, received, y):
    copy = send(x, o, sent.at[1], received, neighbors()[2])
    copy.wait_send()
    copy.wait_recv()

  specs = {"in_specs": [ANY, ANY, SEMAPHORES, SEMAPHORES], "out_specs": ANY, "input_output_aliases": {1: 0}}
  return call(end, x, **specs)(x, *started)


def shared_semaphore(x):
  """Kernels that signal one semaphore, whose count the next one takes."""

  def allocate(semaphore):
    del semaphore

  def count(x, semaphore, o):
    n = lax.axis_size("x")
    for device in range(n):
      pl.semaphore_signal(semaphore, 2, device_id=device, **ID)
    pl.semaphore_wait(semaphore, n)
    o[...] = x[...] + 1

  def take(x, semaphore, o, memory):
    n = lax.axis_size("x")
    await_reading(semaphore, n, memory)
    o[...] = x[...] * memory[0].astype(x.dtype)
    pl.semaphore_wait(semaphore, n)

  vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
  specs = {"in_specs": [vmem, SEMAPHORES], "out_specs": vmem}
  semaphore = call(allocate, REGULAR(()), in_specs=[], out_specs=SEMAPHORES)()
  x = call(count, x, **specs)(x, semaphore)
  return call(take, x, [pltpu.SMEM((1,), jnp.int32)], **specs)(x, semaphore)


def permute_with_counts(x):
  """The semaphores of its DMA count DMAs, not bytes."""

  def shift(x, o, sent, received):
    send(x, o, sent, received, neighbors()[2]).start()
    pl.semaphore_wait(sent, 1)
    pl.semaphore_wait(received, 1)

  return call(shift, x, [REGULAR] * 2)(x)
