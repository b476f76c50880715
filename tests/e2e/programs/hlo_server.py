"""Programs as HLO, which JAX does not send, compiled and run on minipod.

`tests/e2e/plugin/program_server.c` is the client; one process of it serves all tests of a run.
"""

import functools
import os
import pathlib
import struct
import subprocess

import jax
import ml_dtypes
import numpy as np

from protos import field

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "tests" / "program_server"
# PJRT_Buffer_Type
TYPES = {name: number for number, name in enumerate(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64 complex128"
    " float8_e5m2 float8_e4m3fn float8_e4m3b11fnuz float8_e5m2fnuz float8_e4m3fnuz int4 uint4".split(), 1)}


def number(value):
  return struct.pack("<Q", value)


def text(data):
  return number(len(data)) + data


def compile_options(replicas, partitions):
  build = field(1, 2**64 - 1) + field(4, replicas) + field(5, partitions) + field(6, 1)
  return field(3, build) + field(5, 2**64 - 1)


@functools.cache
def server():
  return subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def argument(array):
  array = np.asarray(array, order="C")
  return (number(TYPES[array.dtype.name]) + number(array.ndim) +
          b"".join(number(dim) for dim in array.shape) + text(array.tobytes()))


def run(program, arguments, form="hlo", replicas=1, partitions=1, options=None):
  """The results' bytes: a list for each device of the program.  `arguments` has a list of arrays for each device;
  `options` are the bytes of other compile options.
  """
  process = server()
  options = compile_options(replicas, partitions) if options is None else options
  request = [text(program), text(form.encode()), text(options),
             number(len(arguments)), number(len(arguments[0]))]
  request += [argument(array) for each in arguments for array in each]
  process.stdin.write(b"".join(request))
  process.stdin.flush()
  read = lambda size: process.stdout.read(size)
  read_number = lambda: struct.unpack("<Q", read(8))[0]
  if read_number() == 0:
    raise RuntimeError(read(read_number()).decode(errors="backslashreplace"))
  count = read_number()
  return [[read(read_number()) for _ in range(count)] for _ in arguments]


def run_arrays(program, arguments, like, **options):
  """The results on one device, with the types and shapes of the arrays `like`."""
  [results] = run(program, [arguments], **options)
  assert len(results) == len(like)
  return [np.frombuffer(data, each.dtype).reshape(each.shape) for data, each in zip(results, like)]


def hlo_of(f, *args):
  """The HloModuleProto that JAX's own conversion makes of a function."""
  lowered = jax.jit(f, keep_unused=True).lower(*args)
  return lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
