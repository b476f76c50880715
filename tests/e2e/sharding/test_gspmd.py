"""JAX with GSPMD's annotations instead of Shardy's gives the same results with the same shardings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

try:
  from jax.experimental.shard_alike import shard_alike
except ImportError:  # JAX 0.12 no longer has them
  shard_alike = None


def mesh():
  return Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("x", "y"))


def put(a, *spec):
  return jax.device_put(a, NamedSharding(mesh(), P(*spec)))


def hint(a, *spec):
  return lax.with_sharding_constraint(a, NamedSharding(mesh(), P(*spec)))


def numbers(*shape):
  return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7


def manual(f, in_specs, out_specs, *axes):
  return jax.shard_map(f, mesh=mesh(), in_specs=in_specs, out_specs=out_specs,
                       axis_names=set(axes), check_vma=False)


def nested(a):
  def outer(b):
    c = jax.shard_map(lambda d: lax.psum(d, "y"), in_specs=P(None, "y"), out_specs=P(),
                      axis_names={"y"}, check_vma=False)(b)
    return c * 2
  return manual(outer, P("x", None), P("x", None), "x")(a)


def partly(a, w):
  body = lambda b, v: lax.psum(jnp.tanh(b) @ v, "x")
  return manual(body, (P(None, "x"), P("x", None)), P(), "x")(a, hint(w, None, "y"))


def alike(a, b):
  a, b = shard_alike(a + 1, b * 2)
  return a, b


PROGRAMS = {
    "elementwise": (lambda a, b: jnp.sin(a) * b + 1, put(numbers(8, 16), "x", "y"), numbers(8, 16)),
    "matmul": (lambda a, b: jax.nn.relu(a @ b), put(numbers(8, 16), "x", "y"),
               put(numbers(16, 8), "y", None)),
    "constraints": (lambda a: hint(hint(a * 2, "y", None).T, ("x", "y")) + 1, numbers(16, 8)),
    "unconstrained": (lambda a: hint(a + 1, P.UNCONSTRAINED, "y") * 2, put(numbers(8, 16), "x")),
    "transposed axes": (lambda a: hint(a.reshape(4, 4, 8), ("y", "x")), numbers(16, 8)),
    "reduce": (lambda a: (a.sum(0), a.max(1), a.mean()), put(numbers(8, 16), ("y", "x"), None)),
    "scan": (lambda a: lax.scan(lambda c, x: (c + x, jnp.sum(c)), a[0], a),
             put(numbers(8, 16), None, "y")),
    "manual": (lambda a: manual(lambda b: lax.psum(b, "x") + 1, P("x", "y"), P(None, "y"), "x",
                                "y")(a * 2) * 3, put(numbers(8, 16), "x", "y")),
    "partly manual": (partly, put(numbers(8, 16), None, "x"), numbers(16, 8)),
    "nested manual": (nested, put(numbers(8, 16), "x", "y")),
    "manual in a loop": (lambda a: lax.fori_loop(0, 3, lambda _, c: manual(
        lambda b: lax.ppermute(b, "y", [(i, (i + 1) % 4) for i in range(4)]), P("x", "y"),
        P("x", "y"), "x", "y")(c), a), put(numbers(8, 16), "x", "y")),
    "shard_alike": (alike, put(numbers(8, 16), "x", "y"), numbers(8, 16)),
}
if shard_alike is None:
  del PROGRAMS["shard_alike"]


def run(name, shardy):
  f, *args = PROGRAMS[name]
  jax.config.update("jax_use_shardy_partitioner", shardy)
  try:
    # A separate function, because JAX caches traces and executables by function.
    lowered = jax.jit(lambda *a: f(*a)).lower(*args)
    assert ("mhlo.sharding" in lowered.as_text()) == (not shardy)
    return jax.tree.leaves(lowered.compile()(*args))
  finally:
    jax.config.update("jax_use_shardy_partitioner", True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_shardy(name):
  for gspmd, shardy in zip(run(name, False), run(name, True), strict=True):
    np.testing.assert_array_equal(np.asarray(gspmd), np.asarray(shardy))
    assert gspmd.sharding.is_equivalent_to(shardy.sharding, gspmd.ndim)
    for shard in gspmd.addressable_shards:
      np.testing.assert_array_equal(np.asarray(shard.data), np.asarray(shardy)[shard.index])
