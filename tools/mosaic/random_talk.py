"""Random kernels that communicate, and what they compute, in NumPy.

Each device has `data`: some chunks of rows.  A kernel does random phases, in each step of its grid: chunks are exchanged
along random permutations, in pieces; they go around a ring with two buffers and credits; one device sends to all; a
running sum goes from device to device; or each device changes its own chunks.  All numbers are whole, so every way to
compute them gives the same bits.
"""

import dataclasses
import random

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

MODULUS = 97  # numbers stay below it
TYPES = (np.float32, np.float32, np.int32, jnp.bfloat16)
MOST = 3  # transfers at the same time
COMBINE = {"set": lambda x, y: y, "add": lambda x, y: (x + y) % MODULUS, "max": lambda x, y: x * (x > y) + y * (x <= y)}


@dataclasses.dataclass
class Transfer:
  """Device d sends chunk source[d] to device target[d], for chunk lands[target[d]]."""
  target: list
  source: list
  lands: list


@dataclasses.dataclass
class Phase:
  kind: str
  combine: str
  chunk: int
  other: int
  pieces: int  # of a chunk: as many DMAs
  by: int  # ring: the distance of neighbors
  hops: int
  root: int
  waits: str  # how DMAs are awaited: "each", "whole", "poll"
  transfers: list
  base: int = 0  # where the table of the transfers begins


@dataclasses.dataclass
class Kernel:
  devices: int
  mesh: tuple  # sizes of the axes
  chunks: int
  rows: int
  dtype: object
  steps: int
  in_hbm: bool  # whether chunks land in HBM
  phases: list


def generate(seed: int, devices: int) -> Kernel:
  rng = random.Random(seed)
  chunks = rng.choice((2, 3, 4))
  mesh = rng.choice(((devices,), (devices,), (2, devices // 2)))
  phases = [_make_phase(rng, devices, chunks) for _ in range(rng.choice((1, 2, 3, 4)))]
  at = 0
  for phase in phases:
    phase.base, at = at, at + 3 * len(phase.transfers)
  return Kernel(devices, mesh, chunks, rng.choice((16, 16, 32)), rng.choice(TYPES), rng.choice((1, 1, 2, 3)),
                rng.random() < 0.4, phases)


def _make_phase(rng, devices, chunks) -> Phase:
  kind = rng.choice(("exchange", "exchange", "exchange", "ring", "ring", "broadcast", "scan", "change"))
  transfers = []
  if kind == "exchange":
    count = rng.randrange(1, min(MOST, chunks) + 1)
    lands = [rng.sample(range(chunks), count) for _ in range(devices)]
    for number in range(count):
      target = list(range(devices))
      rng.shuffle(target)
      transfers.append(Transfer(target, [rng.randrange(chunks) for _ in range(devices)], [one[number] for one in lands]))
  return Phase(kind, rng.choice(sorted(COMBINE)), rng.randrange(chunks), rng.randrange(chunks), rng.choice((1, 1, 2)),
               rng.choice((1, -1, 1, 2, devices - 1)), rng.randrange(1, 2 * devices), rng.randrange(devices),
               rng.choice(("each", "whole", "poll")), transfers)


def make_table(kernel: Kernel) -> np.ndarray:
  """The rows of all transfers: targets, sources, and where chunks land."""
  rows = [row for phase in kernel.phases for one in phase.transfers for row in (one.target, one.source, one.lands)]
  return np.array(rows or [[0] * kernel.devices], np.int32)


# ---- the expected result ----


def expect(kernel: Kernel, data: np.ndarray) -> np.ndarray:
  """`data` has the chunks of all devices: (devices, chunks, rows, 128)."""
  data = data.astype(np.int64)
  for step in range(kernel.steps):
    for phase in kernel.phases:
      _EXPECT[phase.kind](kernel, phase, step, data)
  return data


def _expect_exchange(kernel, phase, step, data):
  before, n = data.copy(), kernel.devices
  for one in phase.transfers:
    for device in range(n):
      target = (one.target[device] + step) % n
      chunk = one.lands[target]
      data[target, chunk] = COMBINE[phase.combine](before[target, chunk], before[device, one.source[device]])


def _expect_ring(kernel, phase, step, data):
  del step
  passed = data[:, phase.chunk].copy()
  for _ in range(phase.hops):
    passed = np.roll(passed, phase.by, axis=0)
    data[:, phase.other] = COMBINE[phase.combine](data[:, phase.other], passed)


def _expect_broadcast(kernel, phase, step, data):
  root = (phase.root + step) % kernel.devices
  sent = data[root, phase.chunk].copy()
  for device in range(kernel.devices):
    if device != root:
      data[device, phase.other] = COMBINE[phase.combine](data[device, phase.other], sent)


def _expect_scan(kernel, phase, step, data):
  del step
  for device in range(1, kernel.devices):
    data[device, phase.chunk] = (data[device, phase.chunk] + data[device - 1, phase.chunk]) % MODULUS


def _expect_change(kernel, phase, step, data):
  for device in range(kernel.devices):
    data[device, phase.chunk] = (data[device, phase.chunk] * (1 + device) + data[device, phase.other] + step) % MODULUS


_EXPECT = {"exchange": _expect_exchange, "ring": _expect_ring, "broadcast": _expect_broadcast, "scan": _expect_scan,
           "change": _expect_change}

# ---- the kernel ----


class _Copies:
  """The DMAs of a chunk: those of its pieces, or one for all.  They are made when they are used."""

  def __init__(self, phase, rows, make):
    self.phase, self.rows, self.make = phase, rows, make

  def pieces(self):
    size = self.rows // self.phase.pieces
    return [self.make(pl.ds(piece * size, size)) for piece in range(self.phase.pieces)]

  def start(self):
    for copy in self.pieces():
      copy.start()

  def await_sent(self):
    for copy in self._awaited():
      copy.wait_send()

  def await_received(self):
    for copy in self._awaited():
      copy.wait_recv()

  def _awaited(self):
    return self.pieces() if self.phase.waits == "each" else [self.make(pl.ds(0, self.rows))]


class _Body:
  """The phases in a step of the grid.  Chunks land in `stage`, or in HBM and go from there to `stage`."""

  def __init__(self, kernel, refs):
    self.kernel = kernel
    self.__dict__.update(refs)
    self.step = pl.program_id(0)
    self.n = kernel.devices
    names = ("x", "y")[:len(kernel.mesh)]
    self.me = lax.axis_index(names)
    self.lands = self.far if kernel.in_hbm else self.stage

  def id_of(self, device):
    """LOGICAL on a line, MESH coordinates else."""
    if len(self.kernel.mesh) == 1:
      return {"device_id": device, "device_id_type": pl.DeviceIdType.LOGICAL}
    columns = self.kernel.mesh[1]
    return {"device_id": (lax.div(device, columns), lax.rem(device, columns)), "device_id_type": pl.DeviceIdType.MESH}

  def rem(self, value):
    return lax.rem(value + 4 * self.n, jnp.int32(self.n))

  def meet(self, semaphore):
    for device in range(self.n):
      pl.semaphore_signal(semaphore, 1, **self.id_of(jnp.int32(device)))
    pl.semaphore_wait(semaphore, self.n)

  def copies(self, phase, source, slot, device):
    """The DMAs of a chunk to slot `slot` of a device."""
    make = lambda part: pltpu.make_async_remote_copy(
        source.at[part], self.lands.at[slot, part], self.sent.at[slot], self.received.at[slot], **self.id_of(device))
    return _Copies(phase, self.kernel.rows, make)

  def await_received(self, phase, slot, copies):
    """Afterwards the chunk is in `stage`."""
    if phase.waits == "poll":
      bytes_ = self.kernel.rows * 128 * np.dtype(self.kernel.dtype).itemsize
      self.seen[0] = lax.while_loop(lambda value: value < bytes_, lambda _: pl.semaphore_read(self.received.at[slot]), 0)
    copies.await_received()
    if self.kernel.in_hbm:
      pltpu.async_copy(self.far.at[slot], self.stage.at[slot], self.local).wait()

  def combine(self, phase, chunk, slot):
    x, y = self.data[chunk].astype(jnp.int32), self.stage[slot].astype(jnp.int32)
    self.data[chunk] = COMBINE[phase.combine](x, y).astype(self.kernel.dtype)

  def run(self):
    for phase in self.kernel.phases:
      self.meet(self.gate)
      getattr(self, phase.kind)(phase)

  def exchange(self, phase):
    begun = []
    for number in range(len(phase.transfers)):
      row = phase.base + 3 * number
      target = self.rem(self.table[row, self.me] + self.step)
      begun.append(self.copies(phase, self.data.at[self.table[row + 1, self.me]], number, target))
      begun[-1].start()
    for number, copies in enumerate(begun):
      copies.await_sent()
      self.await_received(phase, number, copies)
    for number in range(len(phase.transfers)):
      self.combine(phase, self.table[phase.base + 3 * number + 2, self.me], number)

  def ring(self, phase):
    """Slots 0 and 1 in turn.  A device may send again when its neighbor has passed on what it got before."""
    right, left = self.rem(self.me + phase.by), self.rem(self.me - phase.by)
    self.stage[0] = self.data[phase.chunk]

    def hop(number, _):
      slot, other = lax.rem(number, 2), lax.rem(number + 1, 2)

      @pl.when(number > 0)
      def wait():
        pl.semaphore_wait(self.credit, 1)

      copies = self.copies(phase, self.stage.at[slot], other, right)
      copies.start()
      copies.await_sent()
      self.await_received(phase, other, copies)
      self.combine(phase, phase.other, other)

      @pl.when(number < phase.hops - 1)
      def allow():
        pl.semaphore_signal(self.credit, 1, **self.id_of(left))
      return _

    lax.fori_loop(0, phase.hops, hop, 0)

  def broadcast(self, phase):
    root = self.rem(phase.root + self.step)

    @pl.when(self.me == root)
    def send():
      for by in range(1, self.n):
        copies = self.copies(phase, self.data.at[phase.chunk], 0, self.rem(root + by))
        copies.start()
        copies.await_sent()

    @pl.when(self.me != root)
    def receive():
      self.await_received(phase, 0, self.copies(phase, self.data.at[phase.chunk], 0, self.me))
      self.combine(phase, phase.other, 0)

  def scan(self, phase):
    copies = self.copies(phase, self.data.at[phase.chunk], 0, self.rem(self.me + 1))

    @pl.when(self.me > 0)
    def receive():
      self.await_received(phase, 0, copies)
      value = self.data[phase.chunk].astype(jnp.int32) + self.stage[0].astype(jnp.int32)
      self.data[phase.chunk] = (value % MODULUS).astype(self.kernel.dtype)

    @pl.when(self.me < self.n - 1)
    def send():
      copies.start()
      copies.await_sent()

  def change(self, phase):
    value = self.data[phase.chunk].astype(jnp.int32) * (1 + self.me) + self.data[phase.other].astype(jnp.int32) + self.step
    self.data[phase.chunk] = (value % MODULUS).astype(self.kernel.dtype)


def _run(kernel, table, x, o, far, data, stage, seen, gate, credit, sent, received, local):
  body = _Body(kernel, {"table": table, "far": far, "data": data, "stage": stage, "seen": seen, "gate": gate,
                        "credit": credit, "sent": sent, "received": received, "local": local})

  @pl.when(body.step == 0)
  def begin():
    body.meet(pltpu.get_barrier_semaphore())
    pltpu.async_copy(x, data, local).wait()

  body.run()

  @pl.when(body.step == kernel.steps - 1)
  def end():
    pltpu.async_copy(data, o, local).wait()


def make(seed: int, devices):
  """The function of a random kernel on these devices, its argument, and the expected result."""
  kernel = generate(seed, len(devices))
  mesh = jax.sharding.Mesh(np.array(devices).reshape(kernel.mesh), ("x", "y")[:len(kernel.mesh)])
  shape, chunk = (kernel.chunks, kernel.rows, 128), (kernel.rows, 128)
  anywhere, dma = pl.BlockSpec(memory_space=pl.ANY), pltpu.SemaphoreType.DMA
  scratch = [pltpu.VMEM(shape, kernel.dtype), pltpu.VMEM((MOST, *chunk), kernel.dtype), pltpu.SMEM((1,), jnp.int32),
             pltpu.SemaphoreType.REGULAR, pltpu.SemaphoreType.REGULAR, dma((MOST,)), dma((MOST,)), dma]
  grid = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(kernel.steps,), in_specs=[anywhere],
                                      out_specs=[anywhere, anywhere], scratch_shapes=scratch)
  call = pl.pallas_call(
      lambda *refs: _run(kernel, *refs), grid_spec=grid, name=f"talk_{seed}",
      out_shape=[jax.ShapeDtypeStruct(shape, kernel.dtype), jax.ShapeDtypeStruct((MOST, *chunk), kernel.dtype)],
      compiler_params=pltpu.CompilerParams(collective_id=0, has_side_effects=True))
  table = make_table(kernel)
  spec = jax.P(mesh.axis_names)
  function = jax.jit(jax.shard_map(lambda x: call(table, x)[0], mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
  values = np.random.default_rng(seed).integers(0, MODULUS, (kernel.devices, *shape))
  argument = jax.make_array_from_callback(
      (kernel.devices * kernel.chunks, *chunk), jax.NamedSharding(mesh, spec),
      lambda index: values.reshape(-1, *chunk)[index].astype(kernel.dtype))
  return function, argument, expect(kernel, values).reshape(-1, *chunk)
