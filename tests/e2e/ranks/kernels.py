"""Pallas kernels that communicate between the devices of all ranks, compared with the collectives that do the same."""

import os
import pathlib
import socket
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import harness
from harness import check

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "pallas"), str(pathlib.Path(__file__).parents[3] / "tools" / "mosaic")]
import communicating as kernels
import random_talk

TIMES = 3


def mesh():
  return kernels.line()


def number():
  return jax.device_count()


def make(values):
  sharding = jax.NamedSharding(mesh(), jax.P("x"))
  return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])


def same(f, g, shape, dtype, out=jax.P("x")):
  x = make(np.random.default_rng(0).integers(-64, 64, shape).astype(dtype))
  for _ in range(TIMES):
    y, z = kernels.on(mesh(), f, out)(x), kernels.on(mesh(), g, out)(x)
    for one, other in zip(y.addressable_shards, z.addressable_shards, strict=True):
      np.testing.assert_array_equal(np.asarray(one.data), np.asarray(other.data))


def shift(x, by=1):
  return lax.ppermute(x, "x", [(i, (i + by) % number()) for i in range(number())])


@check
def all_gather():
  same(kernels.all_gather, lambda x: lax.all_gather(x, "x", tiled=True), (8 * number(), 128), np.float32, jax.P(None))


@check
def reduce_scatter():
  same(kernels.reduce_scatter, lambda x: lax.psum_scatter(x, "x", tiled=True), (8 * number() ** 2, 128), np.float32)


@check
def all_to_all():
  same(kernels.all_to_all, lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), (8 * number() ** 2, 128), np.int32)


@check
def large_permute():
  """Larger than what a message carries in one piece."""
  same(lambda x: kernels.permute(x, 3), lambda x: shift(x, 3), (2048 * number(), 1024), jnp.bfloat16)


@check
def permute_in_tiles():
  same(kernels.permute_in_tiles, shift, (12 * number(), 128), np.float32)


@check
def rounds():
  def of(f):
    return lambda x: lax.fori_loop(0, 20, lambda i, x: f(x) + i, x)
  same(of(kernels.permute), of(shift), (8 * number(), 128), np.float32)


@check
def polls():
  def add(x):
    return x + lax.axis_index("x") * (lax.axis_index("x") + 1) // 2
  for way in (kernels.await_reading, kernels.await_counting, kernels.await_working):
    same(lambda x, way=way: kernels.token_ring(lax.all_gather(x, "x")[0], way),
         lambda x: add(lax.all_gather(x, "x")[0]), (8 * number(), 128), np.float32)
  for space in (kernels.pltpu.SMEM, kernels.pltpu.VMEM):
    same(lambda x, space=space: kernels.flag_ring(x, space), lambda x: x + lax.axis_index("x"), (8 * number(), 128),
         np.float32)


@check
def semaphores_between_kernels():
  def pair(x):
    return kernels.end_permute(x, kernels.start_permute(x))
  same(pair, shift, (8 * number(), 128), np.float32)
  same(lambda x: lax.fori_loop(0, 5, lambda i, x: pair(x) + i, x),
       lambda x: lax.fori_loop(0, 5, lambda i, x: shift(x) + i, x), (8 * number(), 128), np.float32)
  same(kernels.shared_semaphore, lambda x: (x + 1) * number(), (8 * number(), 128), np.float32)
  same(kernels.permute_with_counts, shift, (8 * number(), 128), np.float32)


@check
def random_kernels():
  for seed in range(7_000_000, 7_000_006):
    function, argument, expected = random_talk.make(seed, jax.devices())
    for shard in function(argument).addressable_shards:
      np.testing.assert_array_equal(np.asarray(shard.data).astype(np.int64), expected[shard.index], f"seed {seed}")


@check
def a_missing_signal_is_an_error():
  """On the process that waits; the others may have ended before."""
  waits = 3 in [device.id for device in jax.local_devices()]
  said = ""
  try:
    jax.block_until_ready(kernels.on(mesh(), kernels.lonely)(make(np.ones((8 * number(), 128), np.float32))))
  except jax.errors.JaxRuntimeError as error:
    said = str(error)
  if said or waits:
    assert "device 3 waits in kernel 'lonely', grid step ()" in said, said
    assert "the semaphore for barriers is 0, and the wait is for 1" in said, said


@check
def kernels_run_after_an_error():
  same(kernels.permute, shift, (8 * number(), 128), np.float32)


@check
def the_processes_are_where_they_should_be():
  assert socket.gethostname().startswith("pretended") == (os.environ["HOSTS"] != "1")
  maps = pathlib.Path("/proc/self/maps").read_text()
  for library in ("libucp", "libmpi"):
    assert (library in maps) == (library == os.environ.get("LIBRARY")), library


if __name__ == "__main__":
  harness.main()
