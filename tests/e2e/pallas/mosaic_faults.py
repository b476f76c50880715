"""Pallas kernels with a mistake each, and the same kernels without it.

FAULTS has, by name, a function that makes such a kernel and its arguments, and what the error must say (a regular
expression).  Called with `bad=False` the function makes the correct kernel.
"""

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

FAULTS = {}
HBM = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
FIRST = pl.BlockSpec((8, 128), lambda i: (0, 0))
BLOCK = pltpu.VMEM((8, 128), jnp.float32)
TWO = pltpu.VMEM((2, 8, 128), jnp.float32)
DMA, DMAS = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA((2,))
REGULAR = pltpu.SemaphoreType.REGULAR
RACE, ENDS, WAITS = "race: .*DMA", "ends while a semaphore is not zero", "waits for a semaphore that nothing signals"
UNSET = "which nothing has written"
OUTSIDE = "outside of its"


def fault(says):
  def add(make):
    FAULTS[make.__name__] = (make, says)
    return make
  return add


def x_of(rows=8):
  return np.arange(rows * 128, dtype=np.float32).reshape(rows, 128)


def call(body, scratch=(), rows=8, grid=(), in_specs=HBM, out_specs=None, out_rows=None, **options):
  """The kernel of one array of `rows` rows, and this array."""
  specs = {"out_specs": out_specs} if out_specs is not None else {}
  out = jax.ShapeDtypeStruct((out_rows or rows, 128), jnp.float32)
  return pl.pallas_call(body, out_shape=out, grid=grid, in_specs=[in_specs], scratch_shapes=scratch,
                        **specs, **options), (x_of(rows),)


# ---- races ----


@fault(rf"vector.load, .*mosaic_faults.py:\d+.*{RACE} may still write: .* started by tpu.enqueue_dma, .*mosaic_faults.py:\d+")
def load_before_wait(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x, buffer, semaphore)
    copy.start()
    if not bad:
      copy.wait()
    o[...] = buffer[...]
    if bad:
      copy.wait()
  return call(body, [BLOCK, DMA])


@fault(rf"store.*{RACE} may still write")
def store_to_target(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x, buffer, semaphore)
    copy.start()
    if not bad:
      copy.wait()
    buffer[0:1] = jnp.ones((1, 128))
    if bad:
      copy.wait()
    o[...] = buffer[...]
  return call(body, [BLOCK, DMA])


@fault(rf"store.*{RACE} may still read")
def store_to_source(bad):
  def body(x, o, buffer, semaphore):
    buffer[...] = x[...]
    copy = pltpu.make_async_copy(buffer, o, semaphore)
    copy.start()
    if not bad:
      copy.wait()
    buffer[...] = jnp.zeros((8, 128))
    if bad:
      copy.wait()
  return call(body, [BLOCK, DMA], in_specs=pl.BlockSpec(), out_specs=HBM)


@fault(RACE)
def two_dmas_to_one_target(bad):
  def body(x, o, buffer, semaphores):
    copies = [pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffer, semaphores.at[i]) for i in range(2)]
    for copy in copies:
      copy.start()
      if not bad:
        copy.wait()
    if bad:
      for copy in copies:
        copy.wait()
    o[...] = buffer[...]
  return call(body, [BLOCK, DMAS], rows=16, out_rows=8)


@fault(rf"load.*{RACE}")
def two_dmas_on_one_semaphore(bad):
  """They may complete in any order, so that the wait for one shows nothing."""
  def body(x, o, buffers, semaphore):
    copies = [pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffers.at[i], semaphore) for i in range(2)]
    for copy in copies:
      copy.start()
    copies[0].wait()
    if not bad:
      copies[1].wait()
    o[0:8] = buffers[0]
    if bad:
      copies[1].wait()
    o[8:16] = buffers[1]
  return call(body, [TWO, DMA], rows=16)


@fault(rf"load.*{RACE}")
def wait_for_the_other_semaphore(bad):
  def body(x, o, buffers, semaphores):
    copies = [pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffers.at[i], semaphores.at[i]) for i in range(2)]
    for copy in copies:
      copy.start()
    copies[1 if bad else 0].wait()
    o[0:8] = buffers[0]
    copies[0 if bad else 1].wait()
    o[8:16] = buffers[1]
  return call(body, [TWO, DMAS], rows=16)


def pipeline(read_slot, write_slot=lambda i: (i + 1) % 2, waits=lambda i: True, wait_slot=lambda i: i % 2, steps=4):
  """Sums the blocks of an array, each of which is fetched during the step before."""
  def body(x, o, buffers, semaphores):
    i = pl.program_id(0)
    copy = lambda block, slot: pltpu.make_async_copy(x.at[pl.ds(8 * block, 8)], buffers.at[slot], semaphores.at[slot])

    @pl.when(i == 0)
    def _():
      o[...] = jnp.zeros((8, 128))
      copy(0, 0).start()

    @pl.when(i + 1 < steps)
    def _():
      copy(i + 1, write_slot(i)).start()

    @pl.when(waits(i))
    def _():
      copy(i, wait_slot(i)).wait()
    o[...] += buffers[read_slot(i)]
  return call(body, [TWO, DMAS], rows=8 * steps, grid=(steps,), out_specs=FIRST, out_rows=8)


@fault(rf"grid step \(0\): .*load.*{RACE}")
def pipeline_reads_the_next_slot(bad):
  return pipeline(lambda i: (i + 1) % 2 if bad else i % 2)


@fault(rf"grid step \(0\): tpu.enqueue_dma.*{RACE}")
def pipeline_fetches_into_one_slot(bad):
  return pipeline(lambda i: i % 2, **{"write_slot": lambda i: 0} if bad else {})


@fault(rf"grid step \(2\): .*{RACE}")
def pipeline_skips_a_wait(bad):
  return pipeline(lambda i: i % 2, waits=lambda i: jnp.logical_or(i != 2, not bad))


@fault(rf"begins with another block of operand 0.*{RACE[6:]}")
def dma_outlives_its_block(bad):
  def body(x, o, semaphore):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x, o.at[pl.ds(8 * i, 8)], semaphore)
    copy.start()

    @pl.when(jnp.logical_or(i == 3, not bad))
    def _():
      for _ in range(4 if bad else 1):
        copy.wait()
  return call(body, [DMA], rows=32, grid=(4,), in_specs=ROWS, out_specs=HBM)


@fault(rf"begins with another block of result 0.*{RACE[6:]}")
def dma_into_a_result_outlives_its_block(bad):
  def body(x, o, semaphore):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], o, semaphore)
    copy.start()

    @pl.when(jnp.logical_or(i == 3, not bad))
    def _():
      for _ in range(4 if bad else 1):
        copy.wait()
  return call(body, [DMA], rows=32, grid=(4,), out_specs=ROWS)


@fault(rf"load.*{RACE}")
def load_of_overlapping_rows(bad):
  def body(x, o, buffer, semaphore):
    buffer[...] = jnp.zeros((16, 128))
    copy = pltpu.make_async_copy(x, buffer.at[pl.ds(8, 8)], semaphore)
    copy.start()
    o[...] = buffer[1:9] if bad else buffer[0:8]
    copy.wait()
  return call(body, [pltpu.VMEM((16, 128), jnp.float32), DMA])


@fault(rf"enqueue_dma.*{RACE}")
def dma_reads_what_another_writes(bad):
  def body(x, o, buffer, semaphores):
    first = pltpu.make_async_copy(x, buffer, semaphores.at[0])
    second = pltpu.make_async_copy(buffer, o, semaphores.at[1])
    first.start()
    if not bad:
      first.wait()
    second.start()
    if bad:
      first.wait()
    second.wait()
  return call(body, [BLOCK, DMAS], out_specs=HBM)


@fault(rf"allocates.*{RACE[6:]}|{RACE}|{ENDS}")
def scoped_buffer_is_reused(bad):
  def body(x, o, semaphore):
    def scope(i, _):
      def inner(buffer):
        copy = pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffer, semaphore)
        copy.start()
        if not bad:
          copy.wait()
      pl.run_scoped(inner, BLOCK)
      return _
    jax.lax.fori_loop(0, 2, scope, 0)
    if bad:
      for _ in range(2):
        pltpu.make_async_copy(x.at[pl.ds(0, 8)], x.at[pl.ds(0, 8)], semaphore).wait()
    o[...] = jnp.zeros((8, 128))
  return call(body, [DMA], rows=16, out_rows=8)


# ---- missing waits, semaphores that are left ----


@fault(rf"{ENDS}: number 0 of scratch memory 1.*is 4096; .*enqueue_dma, .*mosaic_faults.py:\d+")
def no_wait(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x, buffer, semaphore)
    copy.start()
    if not bad:
      copy.wait()
    o[...] = jnp.zeros((8, 128))
  return call(body, [BLOCK, DMA])


@fault(ENDS)
def no_wait_for_the_result(bad):
  def body(x, o, semaphore):
    copy = pltpu.make_async_copy(x, o, semaphore)
    copy.start()
    if not bad:
      copy.wait()
  return call(body, [DMA], out_specs=HBM)


@fault(rf"{ENDS}: number 1 of scratch memory 1")
def one_prefetch_too_many(bad):
  def body(x, o, buffers, semaphores):
    i = pl.program_id(0)
    copy = lambda block: pltpu.make_async_copy(
        x.at[pl.ds(8 * jax.lax.rem(block, 3), 8)], buffers.at[block % 2], semaphores.at[block % 2])

    @pl.when(i == 0)
    def _():
      copy(0).start()

    @pl.when(jnp.logical_or(i < 2, bad))
    def _():
      copy(i + 1).start()
    copy(i).wait()
    o[...] = buffers[i % 2]
  return call(body, [TWO, DMAS], rows=24, grid=(3,), out_specs=ROWS)


@fault(rf"{ENDS}: number 0 of scratch memory 0 .* is 1")
def signal_without_wait(bad):
  def body(x, o, semaphore):
    pl.semaphore_signal(semaphore, 1)
    if not bad:
      pl.semaphore_wait(semaphore, 1)
    o[...] = x[...]
  return call(body, [REGULAR], in_specs=pl.BlockSpec())


@fault(rf"{ENDS}.* is 3")
def more_signals_than_waits(bad):
  def body(x, o, semaphore):
    pl.semaphore_signal(semaphore, 5)
    pl.semaphore_wait(semaphore, 2 if bad else 5)
    o[...] = x[...]
  return call(body, [REGULAR], in_specs=pl.BlockSpec())


@fault(ENDS)
def wait_in_some_steps(bad):
  def body(x, o, semaphore):
    i = pl.program_id(0)
    pl.semaphore_signal(semaphore, 1)

    @pl.when(jnp.logical_or(i != 2, not bad))
    def _():
      pl.semaphore_wait(semaphore, 1)
    o[...] = x[...]
  return call(body, [REGULAR], rows=32, grid=(4,), in_specs=ROWS, out_specs=ROWS)


@fault(rf"{ENDS}: number 0 of memory that the kernel allocates")
def scoped_semaphore_is_left(bad):
  def body(x, o):
    def inner(semaphore):
      pl.semaphore_signal(semaphore, 1)
      if not bad:
        pl.semaphore_wait(semaphore, 1)
    pl.run_scoped(inner, REGULAR)
    o[...] = x[...]
  return call(body, in_specs=pl.BlockSpec())


# ---- surplus waits ----


@fault(rf"wait_dma.*{WAITS}")
def wait_twice(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x, buffer, semaphore)
    copy.start()
    for _ in range(2 if bad else 1):
      copy.wait()
    o[...] = buffer[...]
  return call(body, [BLOCK, DMA])


@fault(WAITS)
def wait_without_start(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x, buffer, semaphore)
    if not bad:
      copy.start()
    copy.wait()
    o[...] = jnp.zeros((8, 128))
  return call(body, [BLOCK, DMA])


@fault(rf"{WAITS}: it is 4096, and the wait is for 8192")
def wait_for_more_bytes(bad):
  def body(x, o, buffer, semaphore):
    copy = pltpu.make_async_copy(x.at[pl.ds(0, 8)], buffer.at[pl.ds(0, 8)], semaphore)
    copy.start()
    (pltpu.make_async_copy(x, buffer, semaphore) if bad else copy).wait()
    o[...] = buffer[0:8]
  return call(body, [pltpu.VMEM((16, 128), jnp.float32), DMA], rows=16, out_rows=8)


@fault(rf"sem_wait.*{WAITS}")
def more_waits_than_signals(bad):
  def body(x, o, semaphore):
    pl.semaphore_signal(semaphore, 1)
    pl.semaphore_wait(semaphore, 2 if bad else 1)
    o[...] = x[...]
  return call(body, [REGULAR], in_specs=pl.BlockSpec())


@fault(rf"grid step \(1\).*{WAITS}")
def start_in_some_steps(bad):
  def body(x, o, buffer, semaphore):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffer, semaphore)

    @pl.when(jnp.logical_or(i != 1, not bad))
    def _():
      copy.start()
    copy.wait()
    o[...] = buffer[...]
  return call(body, [BLOCK, DMA], rows=32, grid=(4,), out_specs=ROWS)


# ---- out of bounds ----


@fault(rf"grid step \(3\): .*load.*{OUTSIDE}")
def load_outside(bad):
  def body(x, o):
    i = pl.program_id(0)
    o[...] = x[pl.ds(8 * i + (8 if bad else 0), 8), :]
  return call(body, rows=32, grid=(4,), in_specs=pl.BlockSpec((32, 128), lambda i: (0, 0)), out_specs=ROWS)


@fault(rf"store.*{OUTSIDE}")
def store_outside(bad):
  def body(x, o):
    i = pl.program_id(0)
    o[pl.ds(i * 8 + (8 if bad else 0), 8), :] = x[...]
  return call(body, rows=32, grid=(4,), in_specs=ROWS, out_specs=pl.BlockSpec((32, 128), lambda i: (0, 0)))


@fault(rf"memref_slice.*{OUTSIDE}")
def dma_reads_outside(bad):
  def body(x, o, buffer, semaphore):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x.at[pl.ds(8 * i + (4 if bad else 0), 8)], buffer, semaphore)
    copy.start()
    copy.wait()
    o[...] = buffer[...]
  return call(body, [BLOCK, DMA], rows=32, grid=(4,), out_specs=ROWS)


@fault(rf"memref_slice.*{OUTSIDE}")
def dma_writes_outside(bad):
  def body(x, o, semaphore):
    i = pl.program_id(0)
    copy = pltpu.make_async_copy(x, o.at[pl.ds(8 * i + (4 if bad else 0), 8)], semaphore)
    copy.start()
    copy.wait()
  return call(body, [DMA], rows=32, grid=(4,), in_specs=ROWS, out_specs=HBM)


@fault(rf"operand 0 .*the block with index 4 of dimension 0 is {OUTSIDE}")
def block_outside(bad):
  def body(x, o):
    o[...] = x[...]
  shift = 1 if bad else 0
  return call(body, rows=32, grid=(4,), in_specs=pl.BlockSpec((8, 128), lambda i: (i + shift, 0)), out_specs=ROWS)


@fault(rf"the block with index 9 of dimension 0 is {OUTSIDE}")
def page_outside(bad):
  def body(pages, x, o):
    o[...] = x[...]
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, pages: (pages[i], 0))],
      out_specs=pl.BlockSpec((8, 128), lambda i, pages: (i, 0)))
  f = pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))
  return f, (np.array([0, 3, 9 if bad else 2, 1], np.int32), x_of(32))


@fault(rf"load.*{OUTSIDE}")
def scalar_outside(bad):
  def body(n, x, o):
    o[...] = x[...] + n[pl.program_id(0) + (1 if bad else 0)].astype(jnp.float32)
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, n: (i, 0))],
      out_specs=pl.BlockSpec((8, 128), lambda i, n: (i, 0)))
  f = pl.pallas_call(body, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32))
  return f, (np.arange(4, dtype=np.int32), x_of(32))


# ---- VMEM and SMEM ----


@fault("RESOURCE_EXHAUSTED.*vmem")
def scratch_too_large(bad):
  def body(x, o, buffer):
    o[...] = x[...]
  return call(body, [pltpu.VMEM((200 if bad else 12, 1024, 256), jnp.float32)], in_specs=pl.BlockSpec())


@fault("RESOURCE_EXHAUSTED.*vmem")
def blocks_above_the_limit(bad):
  def body(x, o):
    o[...] = x[...]
  return call(body, rows=32, grid=(4,), in_specs=ROWS, out_specs=ROWS,
              compiler_params=pltpu.CompilerParams(vmem_limit_bytes=(1 << 13) if bad else 1 << 14))


@fault("RESOURCE_EXHAUSTED.*(vmem|VMEM)")
def scoped_memory_too_large(bad):
  def body(x, o):
    def inner(buffer):
      buffer[0, 0:8, 0:128] = x[...]
      o[...] = buffer[0, 0:8, 0:128]
    pl.run_scoped(inner, pltpu.VMEM((200 if bad else 12, 1024, 256), jnp.float32))
  return call(body, in_specs=pl.BlockSpec())


@fault("needs .* bytes of SMEM")
def too_much_smem(bad):
  def body(x, o, scalars):
    o[...] = x[...]
  return call(body, [pltpu.SMEM((1 << (19 if bad else 10),), jnp.int32)], in_specs=pl.BlockSpec())


# ---- memory that nothing has written ----


def accumulate(begins, reads=lambda total: total[...]):
  def body(x, o, total):
    i = pl.program_id(0)

    @pl.when(begins(i))
    def _():
      total[...] = jnp.zeros((8, 128))
    total[...] += x[...]

    @pl.when(i == 3)
    def _():
      o[...] = reads(total)
  return call(body, [BLOCK], rows=32, grid=(4,), in_specs=ROWS, out_specs=FIRST, out_rows=8)


@fault(rf"load, .*mosaic_faults.py:\d+.*grid step \(0\): it reads scratch memory 0 .*{UNSET}")
def accumulator_is_not_initialised(bad):
  return accumulate(lambda i: i < (0 if bad else 1))


@fault(UNSET)
def accumulator_is_initialised_late(bad):
  """Only the first block goes missing, and with it what the memory held."""
  def body(x, o, total):
    i = pl.program_id(0)

    @pl.when(i == (1 if bad else 0))
    def _():
      total[...] = jnp.zeros((8, 128))
    total[...] += x[...]
    o[...] = total[...]
  return call(body, [BLOCK], rows=32, grid=(4,), in_specs=ROWS, out_specs=ROWS)


@fault(rf"it reads result 0 .*{UNSET}")
def result_is_not_initialised(bad):
  def body(x, o):
    @pl.when(pl.program_id(0) < (0 if bad else 1))
    def _():
      o[...] = jnp.zeros((8, 128))
    o[...] += x[...]
  return call(body, rows=32, grid=(4,), in_specs=ROWS, out_specs=FIRST, out_rows=8)


@fault(rf"it reads result 0 .*{UNSET}")
def result_is_visited_again(bad):
  """The grid comes to a block again after another one: nothing is left of the first visit."""
  def body(x, o):
    i = pl.program_id(0)

    @pl.when(i < 2 if bad else i % 2 == 0)
    def _():
      o[...] = jnp.zeros((8, 128))
    o[...] += x[...]
  index = (lambda i: (i % 2, 0)) if bad else (lambda i: (i // 2, 0))
  return call(body, rows=32, grid=(4,), in_specs=ROWS, out_specs=pl.BlockSpec((8, 128), index), out_rows=16)


@fault(rf"memref.load.*it reads scratch memory 0 .*{UNSET}")
def counter_is_not_initialised(bad):
  def body(x, o, counter):
    @pl.when(pl.program_id(0) < (0 if bad else 1))
    def _():
      counter[0] = 0
    counter[0] += 1
    o[...] = x[...] * counter[0].astype(jnp.float32)
  return call(body, [pltpu.SMEM((1,), jnp.int32)], rows=32, grid=(4,), in_specs=ROWS, out_specs=ROWS)


@fault(UNSET)
def half_of_a_buffer(bad):
  def body(x, o, buffer):
    buffer[0:8] = x[...]
    if not bad:
      buffer[8:16] = x[...]
    o[...] = buffer[0:8] + buffer[8:16]
  return call(body, [pltpu.VMEM((16, 128), jnp.float32)], in_specs=pl.BlockSpec())


@fault(rf"memory that the kernel allocates, {UNSET}")
def scoped_memory_is_not_initialised(bad):
  def body(x, o):
    def inner(buffer):
      if not bad:
        buffer[...] = x[...]
      o[...] = buffer[...] * 2
    pl.run_scoped(inner, BLOCK)
  return call(body, in_specs=pl.BlockSpec())


@fault(rf"enqueue_dma.*{UNSET}")
def dma_of_unset_memory(bad):
  def body(x, o, buffer, semaphore):
    if not bad:
      buffer[...] = x[...]
    copy = pltpu.make_async_copy(buffer, o, semaphore)
    copy.start()
    copy.wait()
  return call(body, [BLOCK, DMA], in_specs=pl.BlockSpec(), out_specs=HBM)


@fault(UNSET)
def sum_of_more_lanes_than_are_written(bad):
  def body(x, o, buffer):
    buffer[:, 0:64] = x[:, 0:64]
    value = buffer[...]
    if not bad:
      lane = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 1)
      value = jnp.where(lane < 64, value, 0)
    o[...] = jnp.broadcast_to(value.sum(axis=1, keepdims=True), (8, 128))
  return call(body, [BLOCK], in_specs=pl.BlockSpec())


@fault(UNSET)
def branch_on_unset_memory(bad):
  def body(x, o, buffer):
    if not bad:
      buffer[...] = x[...]
    o[...] = x[...]

    @pl.when(jnp.max(buffer[...]) > 2.5)
    def _():
      o[...] = x[...] + 1
  return call(body, [BLOCK], in_specs=pl.BlockSpec())


# ---- blocks ----


@fault("divisible by")
def block_of_odd_size(bad):
  def body(x, o):
    o[...] = x[...]
  block = pl.BlockSpec((3, 100) if bad else (8, 128), lambda i: (i, 0))
  return call(body, rows=24, grid=(3,), in_specs=block, out_specs=block)


@fault("divisible by|multiple")
def block_of_one_dimension(bad):
  def body(x, o):
    o[...] = x[...]
  block = pl.BlockSpec((64 if bad else 1024,), lambda i: (i,))
  f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((4096,), jnp.float32), grid=(4,),
                     in_specs=[block], out_specs=block)
  return f, (np.arange(4096, dtype=np.float32),)


# ---- types ----


REFUSED = "^MosaicError: .*refuses this op on"


@fault(rf"{REFUSED} vectors of i8; .*Only vector<i16> and vector<i32> are supported.*arith.addi, .*mosaic_faults.py:\d+")
def sum_of_bytes(bad):
  def body(x, o):
    value = x[...].astype(jnp.int8)
    o[...] = (value + value if bad else value).astype(jnp.float32)
  return call(body, in_specs=pl.BlockSpec())


@fault(f"{REFUSED} vectors of f16; .*load")
def half_floats(bad):
  def body(x, o):
    o[...] = x[...].astype(jnp.float32)
  dtype = jnp.float16 if bad else jnp.bfloat16
  return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32)), (jnp.ones((16, 128), dtype),)


def scalars(body, x, results=jnp.int32):
  """The kernel of a few scalars, and these."""
  smem = pl.BlockSpec(memory_space=pltpu.SMEM)
  return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((1,), results), in_specs=[smem], out_specs=smem), (x,)


@fault(rf"{REFUSED} scalars of i8; .*Only i32 arith.muli is supported.*arith.muli, .*mosaic_faults.py:\d+")
def product_of_scalar_bytes(bad):
  def body(x, o):
    wide = (lambda n: n) if bad else (lambda n: n.astype(jnp.int32))
    o[0] = (wide(x[0]) * wide(x[1])).astype(jnp.int32)
  return scalars(body, np.arange(2, 4, dtype=np.int8))


@fault(f"{REFUSED} scalars of i16; .*Only i1 and i32 scalars are supported.*arith.andi")
def bits_of_scalar_words(bad):
  def body(x, o):
    wide = (lambda n: n) if bad else (lambda n: n.astype(jnp.int32))
    o[0] = (wide(x[0]) & wide(x[1])).astype(jnp.int32)
  return scalars(body, np.arange(2, 4, dtype=np.int16))


@fault(f"{REFUSED} scalars of i8; .*failed to legalize operation 'arith.select'")
def choice_of_scalar_bytes(bad):
  def body(x, o):
    wide = (lambda n: n) if bad else (lambda n: n.astype(jnp.int32))
    o[0] = jnp.where(x[0].astype(jnp.int32) > 1, wide(x[0]), wide(x[1])).astype(jnp.int32)
  return scalars(body, np.arange(2, 4, dtype=np.int8))


@fault(f"{REFUSED} scalars of bf16; .*failed to legalize operation 'arith.addf'")
def sum_of_scalar_bfloat16(bad):
  def body(x, o):
    wide = (lambda n: n) if bad else (lambda n: n.astype(jnp.float32))
    o[0] = (wide(x[0]) + wide(x[1])).astype(jnp.float32)
  return scalars(body, jnp.arange(2, 4, dtype=jnp.bfloat16), jnp.float32)


@fault(f"{REFUSED} scalars of bf16; .*failed to legalize operation 'scf.for'")
def loop_of_scalar_bfloat16(bad):
  def body(x, o):
    wide = (lambda n: n) if bad else (lambda n: n.astype(jnp.float32))
    o[0] = jax.lax.fori_loop(0, x[0].astype(jnp.int32), lambda i, last: wide(x[i]), wide(x[0])).astype(jnp.float32)
  return scalars(body, jnp.arange(1, 4, dtype=jnp.bfloat16), jnp.float32)


@fault(f"{REFUSED} scalars of i8; .*Only 32-bit scalar vector.extracts supported")
def scalar_byte_of_a_block(bad):
  def body(x, o):
    o[0] = x[0, 1].astype(jnp.int32) if bad else x[...].astype(jnp.int32)[0, 1]
  f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((1,), jnp.int32), out_specs=pl.BlockSpec(memory_space=pltpu.SMEM))
  return f, (np.ones((32, 128), np.int8),)


@fault("^MosaicError: .*refuses powers of scalars.*failed to legalize operation 'math.powf'")
def power_of_scalars(bad):
  def body(x, o):
    o[0] = x[0] ** x[1] if bad else x[0] ** 2
  return scalars(body, np.arange(2, 4, dtype=np.float32), jnp.float32)


@fault(rf"^MosaicError: .*a stride of 8 in the last dimension \(Not Implemented: Stride on last dim is not 1\).*strided_load")
def columns_with_a_stride(bad):
  def body(x, o):
    o[...] = x[:, ::8] if bad else x[::1, :16]
  return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 16), jnp.float32)), (np.ones((8, 128), np.float32),)


@fault(r"Requested internal scratch size 36352 needs to be at least 36864 bytes")
def little_internal_scratch(bad):
  params = pltpu.CompilerParams(internal_scratch_in_bytes=36352 if bad else 36353)
  def body(x, o):
    o[...] = x[...]
  f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), compiler_params=params)
  return f, (np.ones((8, 128), np.float32),)


def say(name, bad) -> str:
  """What happens: "right", or the error."""
  make, _ = FAULTS[name]
  try:
    function, args = make(bad)
    jax.block_until_ready(jax.jit(function)(*args))
  except Exception as error:
    return f"{type(error).__name__}: " + " ".join(str(error).split())
  return "right"
