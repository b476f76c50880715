"""Compile options that are changed at random mean the same, or are refused in words.

A program's CompileOptionsProto is rewritten. Changes that protocol buffers treat as the same message (other orders,
unknown fields, repeated values) and changes that do not affect the program (other devices, options without effect) must
be accepted and give the same bits on each replica and partition. Of anything else, down to any changed byte, either is
right: an error that says what is wrong, or these bits. `MINIPOD_RANDOM_CASES` is how many of each there are,
`MINIPOD_RANDOM_SEED` their seed.
"""

import os
import random
import re

import numpy as np
import pytest

import hlo_server
from protos import field, varint

if not hlo_server.PROGRAM.exists():
  pytest.skip(f"{hlo_server.PROGRAM} is not built", allow_module_level=True)

CASES = int(os.environ.get("MINIPOD_RANDOM_CASES", 150))
SEED = int(os.environ.get("MINIPOD_RANDOM_SEED", 1))

# The device's number, a sum over its replicas and one over its partitions.
TEXT = """
module @who attributes {mhlo.num_replicas = %(replicas)d : i32, mhlo.num_partitions = %(partitions)d : i32} {
  func.func @main(%%x: tensor<3xi32> {mhlo.sharding = "{manual}"})
      -> (tensor<3xi32> {mhlo.sharding = "{manual}"}) {
    %%0 = "stablehlo.all_reduce"(%%x) <{replica_groups = dense<[%(group)s]> : tensor<1x%(replicas)dxi64>}> ({
    ^bb0(%%a: tensor<i32>, %%b: tensor<i32>):
      %%s = stablehlo.add %%a, %%b : tensor<i32>
      stablehlo.return %%s : tensor<i32>
    }) {mhlo.sharding = "{manual}"} : (tensor<3xi32>) -> tensor<3xi32>
    %%r = stablehlo.replica_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %%p = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
    %%n = stablehlo.constant {mhlo.sharding = "{manual}"} dense<10> : tensor<ui32>
    %%1 = stablehlo.multiply %%p, %%n {mhlo.sharding = "{manual}"} : tensor<ui32>
    %%2 = stablehlo.add %%1, %%r {mhlo.sharding = "{manual}"} : tensor<ui32>
    %%3 = stablehlo.convert %%2 {mhlo.sharding = "{manual}"} : (tensor<ui32>) -> tensor<i32>
    %%4 = stablehlo.broadcast_in_dim %%3, dims = [] {mhlo.sharding = "{manual}"}
      : (tensor<i32>) -> tensor<3xi32>
    %%5 = stablehlo.multiply %%0, %%4 {mhlo.sharding = "{manual}"} : tensor<3xi32>
    return %%5 : tensor<3xi32>
  }
}
"""


class Case:
  """Options of a program as lists of (field, value), where a value may be such a list."""

  def __init__(self, replicas, partitions):
    self.replicas, self.partitions = replicas, partitions
    self.devices = list(range(replicas * partitions))
    self.build = [(1, 2**64 - 1), (4, replicas), (5, partitions), (6, 1), (19, 1),
                  (12, b"\0"), (9, self.assignment(self.devices))]
    self.options = [(3, self.build), (5, 2**64 - 1)]
    group = list(range(replicas))
    self.text = (TEXT % {"replicas": replicas, "partitions": partitions, "group": group}).encode()
    self.values = [np.arange(3, dtype=np.int32) + 7 * i * i for i in range(replicas * partitions)]

  def assignment(self, devices):
    """The devices are in the order of replicas, and within a replica in the order of partitions."""
    rows = [[(1, bytes(devices[p::self.partitions]))] for p in range(self.partitions)]
    return [(1, self.replicas), (2, self.partitions), *((3, row) for row in rows)]

  def run(self, options):
    return hlo_server.run(self.text, [[value] for value in self.values], "mlir", options=options)

  def wanted(self):
    """For each device, the result that the program defines."""
    sums = [sum(self.values[p::self.partitions]) for p in range(self.partitions)]
    each = [(r, p) for r in range(self.replicas) for p in range(self.partitions)]
    return [[(sums[p] * (10 * p + r)).astype(np.int32).tobytes()] for r, p in each]


def encode(message):
  """The bytes of a message; without a key a value is the bytes of a whole field."""
  plain = lambda value: value if isinstance(value, (int, bytes)) else encode(value)
  return b"".join(value if key is None else field(key, plain(value)) for key, value in message)


# ---- changes that keep the meaning ----

def put(r, message, key, value):
  message.insert(r.randrange(len(message) + 1), (key, value))


def an_unknown_field(r):
  key = r.choice([57, 1000, 500000])
  return r.choice([field(key, r.getrandbits(64)), field(key, r.randbytes(r.randrange(300))),
                   varint(key << 3 | 1) + r.randbytes(8), varint(key << 3 | 5) + r.randbytes(4)])


def with_unknown_fields(r, case):
  messages = [case.options, case.build, dict(case.build).get(9, case.build)]
  put(r, r.choice(messages), None, an_unknown_field(r))


def with_debug_options(r, case):
  """DebugOptions are for other compilers; minipod ignores them."""
  put(r, case.build, 3, r.choice([b"", r.randbytes(40), field(31, 0) + field(60, 1)]))


def in_another_order(r, case):
  r.shuffle(case.build)
  r.shuffle(case.options)


def said_twice(r, case):
  """The last value counts."""
  key = r.choice([4, 5])
  if any(k == key for k, _ in case.build):
    case.build.insert(0, (key, r.randrange(1, 9)))


def in_two_messages(r, case):
  """minipod joins messages in two parts."""
  part = [case.build.pop(r.randrange(len(case.build))) for _ in range(r.randrange(1 + len(case.build)))]
  case.options.append((3, part))


def in_more_bytes(r, case):
  """A number may have more bytes than it needs."""
  for i, (key, value) in enumerate(case.build):
    if key in (4, 5, 6) and isinstance(value, int):
      case.build[i] = (None, varint(key << 3) + bytes([value | 0x80, 0x80, 0]))


def on_other_devices(r, case):
  devices = r.sample(range(8), len(case.devices))
  case.build[:] = [(k, case.assignment(devices) if k == 9 else v) for k, v in case.build]


def without_assignment(r, case):
  case.build[:] = [(k, v) for k, v in case.build if k != 9]


def with_flags(r, case):
  name, value = r.choice([
      ("xla_backend_optimization_level", field(3, r.randrange(4))),
      ("xla_cpu_enable_fast_math", field(2, 1)),
      ("xla_disable_hlo_passes", field(1, b"algsimp,cse")),
      ("xla_cpu_prefer_vector_width", field(1, b"512")),
      ("xla_gpu_auto_spmd_partitioning_memory_budget_ratio",
       varint(4 << 3 | 1) + np.float64(1.5).tobytes()),
      ("xla_hlo_profile", field(1, b"False"))])
  put(r, case.options, 7, [(1, name.encode()), (2, value)])


def with_other_partitioners(r, case):
  """The program is already partitioned, so the partitioner has no work."""
  case.build.append((r.choice([6, 19]), r.randrange(2)))
  case.build.append((r.choice([12, 18]), bytes([r.randrange(2)])))


def with_hints(r, case):
  put(r, case.options, 5, r.randrange(1 << 40))
  put(r, case.build, 1, r.randrange(8))  # the ordinal, which counts only without an assignment


KEEP = [with_unknown_fields, with_debug_options, in_another_order, said_twice, in_two_messages,
        in_more_bytes, on_other_devices, without_assignment, with_flags, with_other_partitioners,
        with_hints]
SHAPES = [(1, 1), (4, 1), (1, 4), (2, 2), (2, 4)]


@pytest.mark.parametrize("replicas, partitions", SHAPES)
def test_unchanged(replicas, partitions):
  case = Case(replicas, partitions)
  assert case.run(encode(case.options)) == case.wanted()


@pytest.mark.parametrize("change", KEEP, ids=lambda change: change.__name__)
def test_what_keeps_the_meaning(change):
  for seed in range(SEED, SEED + CASES // 5):
    r = random.Random(seed)
    case = Case(*SHAPES[seed % len(SHAPES)])
    change(r, case)
    assert case.run(encode(case.options)) == case.wanted(), (seed, case.options)


def test_several_that_keep_the_meaning():
  for seed in range(SEED, SEED + CASES):
    r = random.Random(seed)
    case = Case(*r.choice(SHAPES))
    changes = r.choices(KEEP, k=r.randrange(2, 5))
    # Changes of order come first, because they would reverse repeated values.
    for change in sorted(changes, key=lambda change: change is not in_another_order):
      if change is in_two_messages and said_twice in changes:
        continue
      change(r, case)
    assert case.run(encode(case.options)) == case.wanted(), (seed, changes, case.options)


# ---- changes of the meaning ----

REFUSED = {
    "replicas": (lambda case: case.build.append((4, 3)), r"requested are 3 replicas of 2 partitions"),
    "partitions": (lambda case: case.build.append((5, 5)), r"requested are 2 replicas of 5 partitions"),
    "too many": (lambda case: case.build.append((4, 1 << 40)), r"too large for a count of devices"),
    "device twice": (lambda case: reassign(case, [0, 1, 2, 1]), r"device 1 .*(twice|more than once)"),
    "unknown device": (lambda case: reassign(case, [0, 1, 2, 8]), r"device 8, the pod has 8"),
    "no rows": (lambda case: case.build.append((9, [(1, 2), (2, 2)])), r"the device assignment has"),
    "a row more": (lambda case: dict(case.build)[9].append((3, [(1, b"\0\1")])),
                   r"the device assignment has more rows than its 2"),
    "automatic": (lambda case: case.build.append((7, 1)),
                  r"use_auto_spmd_partitioning is not supported"),
    "unknown": (lambda case: case.options.append((7, [(1, b"xla_cpu_fast_maths"), (2, field(2, 1))])),
                r"No such compile option: 'xla_cpu_fast_maths'"),
    "text for a number": (lambda case: case.options.append(
        (7, [(1, b"xla_cpu_prefer_vector_width"), (2, field(1, b"wide"))])),
                          r"'wide' is not a valid int value"),
    "tuple": (lambda case: case.options.append((2, 1)),
              r"parameter_is_tupled_arguments is only supported"),
    "layout": (lambda case: case.build.append((2, [(5, [(1, b"\0\1")])])),
               r"result_layout has a layout"),
}


def reassign(case, devices):
  case.build[:] = [(k, case.assignment(devices) if k == 9 else v) for k, v in case.build]


@pytest.mark.parametrize("name", REFUSED)
def test_what_changes_the_meaning(name):
  change, said = REFUSED[name]
  case = Case(2, 2)
  change(case)
  with pytest.raises(RuntimeError, match=said):
    case.run(encode(case.options))


# ---- random bytes ----

def damaged(r, data):
  data, at = bytearray(data), r.randrange(len(data))
  kind = r.randrange(4)
  if kind == 0:
    data[at] ^= 1 << r.randrange(8)
  elif kind == 1:
    data[at] = r.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
  elif kind == 2:
    del data[at:at + r.randrange(1, 4)]
  else:
    data[at:at] = r.randbytes(r.randrange(1, 4))
  return bytes(data)


# In the options, or in their numbers of replicas and partitions.
SAID = ("compile option|device assignment|setting option|[A-Z][a-z]+Proto|replicas of|replica_groups|"
        "arguments for [0-9]+ devices, but")


def test_any_byte():
  """If minipod accepts the options, the results are the same; if it refuses them, the error names the cause.

  The options have a device assignment, so other numbers of replicas and partitions are detected.
  """
  changes = [change for change in KEEP if change is not without_assignment]
  accepted = 0
  for seed in range(SEED, SEED + 4 * CASES):
    r = random.Random(seed)
    case = Case(*r.choice(SHAPES))
    for change in r.choices(changes, k=r.randrange(3)):
      change(r, case)
    data = damaged(r, encode(case.options))
    try:
      found = case.run(data)
    except RuntimeError as error:
      assert re.search(SAID, str(error)), (seed, data, str(error))
      continue
    accepted += 1
    assert found == case.wanted(), (seed, data)
  assert 0 < accepted < 4 * CASES
