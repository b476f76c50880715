"""MINIPOD_KERNELS=check finds mistakes in Pallas kernels that run as Mosaic modules."""

import pathlib
import re
import textwrap

import pytest
import scenario

FOLDER = pathlib.Path(__file__).parent
POD = {"devices": None, "MINIPOD_TOPOLOGY": "v5e:1x1", "PYTHONPATH": str(FOLDER)}
NAMES = re.findall(r"^@fault\(.*\)\ndef (\w+)", (FOLDER / "mosaic_faults.py").read_text(), re.MULTILINE)
# What is an error always.
ALWAYS = {"wait_twice", "wait_without_start", "wait_for_more_bytes", "more_waits_than_signals", "start_in_some_steps",
          *(name for name in NAMES if "outside" in name), "scratch_too_large", "blocks_above_the_limit",
          "scoped_memory_too_large", "pipeline_fetches_into_one_slot", "too_much_smem", "block_of_odd_size", "block_of_one_dimension",
          *(name for name in NAMES if "scalar_b" in name or "scalar_w" in name), "sum_of_bytes", "half_floats", "power_of_scalars",
          "columns_with_a_stride", "little_internal_scratch"}


def run_all(bad: bool, **variables) -> dict:
  """What each kernel says; all of them run in one process."""
  out = scenario.run(f"""
      import mosaic_faults
      for name in mosaic_faults.FAULTS:
        print(name, "|", mosaic_faults.say(name, {bad}), "|", mosaic_faults.FAULTS[name][1])
      """, timeout=300, **POD | variables)
  return {name: (said, expected) for name, said, expected in (line.split(" | ", 2) for line in out.splitlines())}


@pytest.fixture(scope="module")
def bad():
  return run_all(True, MINIPOD_KERNELS="check")


@pytest.fixture(scope="module")
def good():
  return run_all(False, MINIPOD_KERNELS="check")


@pytest.fixture(scope="module")
def unchecked():
  return run_all(True)


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_found(bad, name):
  said, expected = bad[name]
  assert re.search(expected, said), said


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_without_it_is_right(good, name):
  assert good[name][0] == "right", good[name]


def test_without_the_option_kernels_run(unchecked):
  found = {name for name, (said, _) in unchecked.items() if said != "right"}
  assert found == ALWAYS


@pytest.mark.parametrize("topology, is_found", [("v5e:1x1", False), ("v5p:1x1x1", True)])
def test_two_cores_divide_parallel_steps(topology, is_found):
  out = scenario.run("""
      import jax, numpy as np
      from jax.experimental import pallas as pl
      from jax.experimental.pallas import tpu as pltpu
      def add_up(x, o, total):
        @pl.when(pl.program_id(0) == 0)
        def clear(): total[...] = 0 * x[...]
        total[...] += x[...]
        o[...] = total[...]
      block, x = pl.BlockSpec((8, 128), lambda i: (i, 0)), np.ones((32, 128), np.float32)
      f = pl.pallas_call(add_up, grid=(4,), in_specs=[block], out_specs=block, out_shape=x,
                         scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
                         compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)))
      try:
        print(np.asarray(f(x))[-1, 0])
      except jax.errors.JaxRuntimeError as error:
        print(str(error))
      """, **POD | {"MINIPOD_TOPOLOGY": topology, "MINIPOD_KERNELS": "check"})
  assert ("the chip divides parallel steps between two" in out) == is_found, out
  assert is_found or out == "4.0\n"


def test_other_values_of_the_option_are_refused():
  out = scenario.run("""
      import jax
      try:
        jax.devices()
      except RuntimeError as error:
        print(error)
      """, None, MINIPOD_KERNELS="chek")
  assert "MINIPOD_KERNELS (environment variable): expected run or check, got 'chek'" in out, out


def test_results_are_the_same_with_checks():
  code = textwrap.dedent("""
      import jax, numpy as np
      from jax.experimental.pallas.ops.tpu import flash_attention
      q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 256, 128)).astype(np.float32)
      out = jax.jit(lambda *a: flash_attention.flash_attention(*a, causal=True))(q, k, v)
      print(np.asarray(out).tobytes().hex()[:4000])
      """)
  one, other = (scenario.run(code, **POD | {"MINIPOD_KERNELS": mode}) for mode in ("run", "check"))
  assert one == other and len(one) > 1000


def test_kernels_of_interpreters_are_not_checked():
  code = """
      import mosaic_faults
      print(mosaic_faults.say("load_before_wait", False))
      """
  status, out, told = scenario.finish(scenario.start(code, **POD | {"MINIPOD_TOPOLOGY": "torus:1", "MINIPOD_KERNELS": "check"}))
  assert (status, out) == (0, "right\n") and "MINIPOD_KERNELS=check does not check kernels" in told, told


REMOTE = """
import jax, numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def call(wait, writes=False, left=0):
  def body(x, o, buffer, ready, sent, received):
    me = jax.lax.axis_index("d")
    right = (jax.lax.rem(me + 1, 4),)
    barrier = pltpu.get_barrier_semaphore()
    pl.semaphore_signal(barrier, 1 + left, device_id=right, device_id_type=pl.DeviceIdType.MESH)
    pl.semaphore_wait(barrier, 1)
    buffer[...] = x[...]
    copy = pltpu.make_async_remote_copy(buffer, o, sent, received, device_id=right, device_id_type=pl.DeviceIdType.MESH)
    copy.start()
    copy.wait_recv()
    if writes:
      buffer[...] = 2 * x[...]
    if wait:
      copy.wait_send()
  f = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((8, 128), np.float32), out_specs=pl.BlockSpec(memory_space=pl.ANY),
                     scratch_shapes=[pltpu.VMEM((8, 128), np.float32), pltpu.SemaphoreType.REGULAR,
                                     pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
                     compiler_params=pltpu.CompilerParams(collective_id=0))
  mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
  g = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P("d"), check_vma=False))
  x = np.arange(4096, dtype=np.float32).reshape(32, 128)
  try:
    out = np.asarray(g(x))
  except jax.errors.JaxRuntimeError as error:
    return " ".join(str(error).split())
  return "right" if (out == np.roll(x, 8, axis=0)).all() else "wrong"
"""


def test_kernels_that_communicate():
  right, left, race, barrier = scenario.run(REMOTE + textwrap.dedent("""
      print(call(True), call(False), call(True, writes=True), call(True, left=1), sep="\\n")
      """), prelude="", **POD | {"MINIPOD_TOPOLOGY": "v5e:2x2", "MINIPOD_KERNELS": "check"}).splitlines()
  assert right == "right"
  assert re.search(r"ends while a semaphore is not zero: number 0 of scratch memory 2 .*enqueue_dma", left), left
  assert re.search(r"race: it writes scratch memory 0 .* which a DMA may still read", race), race
  assert "number 0 of the semaphore for barriers is 1" in barrier, barrier


REMOTE_FAULTS = """
import sys
sys.path.insert(0, FOLDER)
from communicating import *
VMEM = pl.BlockSpec(memory_space=pltpu.VMEM)
BLOCK, WORD = pltpu.VMEM((8, 128), jnp.float32), pltpu.SMEM((1,), jnp.int32)

def say(body, scratch, x=np.arange(4096, dtype=np.float32).reshape(32, 128)):
  try:
    f = lambda x: call(body, x, scratch, in_specs=[VMEM], out_specs=VMEM, collective_id=0)(x)
    jax.block_until_ready(on(line(), f)(x))
    print("right")
  except jax.errors.JaxRuntimeError as error:
    print(" ".join(str(error).split()))

def all_meet():
  me, n = lax.axis_index("x"), lax.axis_size("x")
  meet([lax.rem(me + k, n) for k in range(n)])

def reads_before_it_waits(x, o, buffer, sent, received):
  all_meet()
  copy = send(x, buffer, sent, received, neighbors()[2])
  copy.start()
  copy.wait_send()
  o[...] = buffer[...] if BAD else x[...]
  copy.wait_recv()

def writes_before_it_waits(x, o, buffer, sent, received):
  all_meet()
  copy = send(x, buffer, sent, received, neighbors()[2])
  copy.start()
  copy.wait_send()
  if BAD:
    buffer[...] = x[...]
  copy.wait_recv()
  o[...] = buffer[...]

def two_devices_write_one_buffer(x, o, buffer, sent, received):
  all_meet()
  me, left, right = neighbors()
  copies = [send(x, buffer.at[0], sent, received, right), send(x, buffer.at[0 if BAD else 1], sent, received, left)]
  for copy in copies:
    copy.start()
  for copy in copies:
    copy.wait_send()
  send(buffer, buffer, sent, received, me).wait_recv()  # both at once
  o[...] = buffer[0]

def reads_a_word_that_nothing_writes(x, o, word, given, sent, received):
  given[0] = 3
  all_meet()
  copy = send(given, word, sent, received, 0 if BAD else neighbors()[2])
  @pl.when((lax.axis_index("x") == 1) | (not BAD))
  def start():
    copy.start()
    copy.wait_send()
  @pl.when((lax.axis_index("x") == 0) | (not BAD))
  def wait():
    copy.wait_recv()
  o[...] = x[...] * word[0].astype(jnp.float32)

def signals_the_wrong_neighbor(x, o, buffer, sent, received):
  me, left, right = neighbors()
  buffer[...] = jnp.zeros_like(buffer)
  pl.semaphore_signal(pltpu.get_barrier_semaphore(), 1, device_id=right if BAD else left, **ID)
  pl.semaphore_wait(pltpu.get_barrier_semaphore(), 1)
  copy = send(x, buffer, sent, received, right)
  copy.start()
  copy.wait()
  o[...] = buffer[...]

def sends_twice_without_a_credit(x, o, buffer, sent, received, credit):
  all_meet()
  me, left, right = neighbors()
  for again in range(2):
    copy = send(x, buffer, sent, received, right)
    if again and not BAD:
      pl.semaphore_wait(credit, 1)
    copy.start()
    copy.wait()
    o[...] = buffer[...]
    if not again and not BAD:
      pl.semaphore_signal(credit, 1, device_id=left, **ID)

def writes_what_it_was_sent_from(x, o, buffer, sent, received):
  # The answer overwrites the question, which has been read by then.
  buffer[...] = x[...]
  all_meet()
  me = lax.axis_index("x")
  there, back = [send(buffer, buffer, sent, received, me ^ 1) for _ in range(2)]
  @pl.when(me % 2 == 0)
  def ask():
    there.start()
    back.wait_recv()
    there.wait_send()
  @pl.when(me % 2 == 1)
  def answer():
    there.wait_recv()
    back.start()
    back.wait_send()
  o[...] = buffer[...]

def writes_a_scope_early(x, o, sent, received):
  all_meet()
  me, left, right = neighbors()
  def scope(word, given):
    given[0] = 2
    copy = send(given, word, sent, received, right)
    copy.start()
    copy.wait()
    o[...] = x[...] * word[0].astype(jnp.float32)
  pl.run_scoped(scope, WORD, WORD)

for BAD in (True, False):
  jax.clear_caches()  # JAX 0.12 traces each kernel once
  say(reads_before_it_waits, [BLOCK, DMA, DMA])
  say(writes_before_it_waits, [BLOCK, DMA, DMA])
  say(two_devices_write_one_buffer, [pltpu.VMEM((2, 8, 128), jnp.float32), DMA, DMA])
  say(reads_a_word_that_nothing_writes, [WORD, WORD, DMA, DMA])
  say(signals_the_wrong_neighbor, [BLOCK, DMA, DMA])
  say(sends_twice_without_a_credit, [BLOCK, DMA, DMA, REGULAR])
say(writes_what_it_was_sent_from, [BLOCK, DMA, DMA])
say(writes_a_scope_early, [DMA, DMA])
"""


def test_writes_of_other_devices():
  reads, writes, two, word, barrier, credit, *right = scenario.run(f"FOLDER = {str(FOLDER)!r}\n" + REMOTE_FAULTS, prelude="", **POD | {
      "MINIPOD_TOPOLOGY": "v5e:2x2", "MINIPOD_KERNELS": "check"}).splitlines()
  shown = r"which a DMA may still write: .* started by device \d: tpu.enqueue_dma"
  # Of the access and the DMA, the later one is the error.
  unsynced = r"enqueue_dma, .*: on device \d: race: it writes scratch memory 0 .*which that device may still use"
  assert re.search(rf"vector.load.*race: it reads scratch memory 0 .*{shown}|{unsynced}", reads), reads
  assert re.search(rf"swap.*race: it (reads|writes) scratch memory 0 .*{shown}|{unsynced}", writes), writes
  assert re.search(rf"a DMA that device \d has started \(tpu.enqueue_dma.*race: it writes scratch memory 0 .*{shown}", two), two
  assert re.search("memref.load.*it reads scratch memory 0 .*which nothing has written", word), word
  assert re.search(unsynced, barrier) or re.search(f"race: it .*{shown}", barrier), barrier
  assert re.search(unsynced, credit) or re.search(f"race: it .*{shown}", credit), credit
  assert right == ["right"] * 8, right
