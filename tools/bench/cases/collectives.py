"""Collectives of a few bytes and of a MiB, and psum over a pod of 1,024 devices."""

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from cases.case import Case, Work

TURNS = 50
SIZES = {"8B": 8, "64KiB": 1 << 16, "1MiB": 1 << 20}


def neighbours(x):
  n = lax.axis_size("d")
  return lax.ppermute(x, "d", [(i, (i + 1) % n) for i in range(n)])


# Name: what a device does, and how many times larger its result is.
COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "d"), lambda n: 1),
    "all_gather": (lambda x: lax.all_gather(x, "d", tiled=True), lambda n: n),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "d", tiled=True), lambda n: 1),
    "all_to_all": (lambda x: lax.all_to_all(x, "d", 0, 0, tiled=True), lambda n: 1),
    "ppermute": (neighbours, lambda n: 1),
}


def collective(name, function, devices, size, *, turns=1):
  """`size` is the bytes of a device's operand; with `turns`, one program has that many collectives."""
  def body(x):
    if turns == 1:
      return function(x)
    return lax.fori_loop(0, turns, lambda _, v: function(v) * 0.5, x)

  def build():
    mesh = Mesh(jax.devices()[:devices], ("d",))
    f = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P("d"),
                              check_vma=False))
    length = max(size // 4, devices)
    x = jax.device_put(np.ones(devices * length, np.float32), NamedSharding(mesh, P("d")))
    return Work(lambda: jax.block_until_ready(f(x)), f.lower(x).compile(), per=turns)
  return Case(name, build, devices=devices)


def psum_of_pod(name, devices, **options):
  """One float of each device, by pmap."""
  def build():
    f = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    x = f(np.ones(devices, np.float32))
    assert float(x[0]) == devices
    return Work(lambda: jax.block_until_ready(f(x)), resident=True)
  return Case(name, build, devices=devices, **options)


CASES = [
    *(collective(f"{name}_8x{label}", function, 8, size // larger(8))
      for name, (function, larger) in COLLECTIVES.items() for label, size in SIZES.items()),
    *(collective(f"psum_2x{label}", COLLECTIVES["psum"][0], 2, size)
      for label, size in SIZES.items()),
    collective("psum_in_loop_8x8B", COLLECTIVES["psum"][0], 8, 8, turns=TURNS),
    collective("ppermute_in_loop_8x8B", COLLECTIVES["ppermute"][0], 8, 8, turns=TURNS),
    psum_of_pod("psum_1024", 1024, limits={"wall": 0.5, "bytes": 0.5}),
]
