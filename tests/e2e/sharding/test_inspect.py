"""The shardings that JAX reports for values inside a compiled program."""

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
import pytest


@pytest.fixture(scope="module")
def mesh():
  return Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))


SPECS = [P("x", "y"), P("x"), P(None, "x"), P(("x", "y")), P("y", "x"), P(), P(None, ("y", "x"))]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_propagated_sharding(mesh, spec):
  seen = []

  @jax.jit
  def f(x):
    y = x.T * 2
    jax.debug.inspect_array_sharding(y, callback=seen.append)
    return y

  x = jax.device_put(np.arange(256.0).reshape(16, 16), NamedSharding(mesh, spec))
  np.testing.assert_array_equal(f(x), np.arange(256.0).reshape(16, 16).T * 2)
  entries = (*spec, None, None)[:2]
  sharding, = seen
  assert sharding.is_equivalent_to(NamedSharding(mesh, P(entries[1], entries[0])), 2)


def test_constraint_in_a_mesh_context(mesh):
  """If the call has a mesh, JAX names its axes."""
  seen = []

  @jax.jit
  def f(x):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("y")))
    jax.debug.inspect_array_sharding(x, callback=seen.append)
    return x + 1

  with mesh:
    f(np.ones((8, 4), np.float32))
  assert [s.spec for s in seen] == [P("y")]


def test_in_a_loop_and_in_manual_code(mesh):
  seen = []

  @jax.jit
  def f(x):
    def step(carry, _):
      jax.debug.inspect_array_sharding(carry, callback=lambda s: seen.append(("loop", s)))
      return carry * 2, None

    def local(part):
      jax.debug.inspect_array_sharding(part, callback=lambda s: seen.append(("manual", s)))
      return part + 1

    x, _ = jax.lax.scan(step, x, length=3)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)

  x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
  np.testing.assert_array_equal(f(x), np.full(8, 9))
  found = dict(seen)
  assert found["loop"].is_equivalent_to(NamedSharding(mesh, P("x")), 1)
  assert "manual" in found


def test_visualize(mesh, capsys):
  pytest.importorskip("rich")
  x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P("x", "y")))
  jax.jit(lambda x: (jax.debug.visualize_array_sharding(x), x)[1])(x)
  out = capsys.readouterr().out
  for device in range(8):
    assert f"MINIPOD {device}" in out


def test_the_callbacks_exception_reaches_the_user(mesh):
  def fail(_):
    raise ValueError("seen enough")

  x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("x")))
  with pytest.raises(Exception, match="seen enough"):
    jax.jit(lambda x: (jax.debug.inspect_array_sharding(x, callback=fail), x)[1])(x)
