"""Arrays whose dimensions are not in row-major order in memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

ORDERS = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)]


def one_device(order):
  return Format(Layout(order), SingleDeviceSharding(jax.devices()[0]))


@pytest.fixture
def host():
  return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("order", ORDERS)
def test_device_put_and_back(host, order):
  x = jax.device_put(jnp.asarray(host), one_device(order))
  assert x.format.layout.major_to_minor == order
  assert x.shape == host.shape
  np.testing.assert_array_equal(np.asarray(x), host)


@pytest.mark.parametrize("order", ORDERS)
def test_results_and_parameters_of_a_program(host, order):
  f = jax.jit(lambda x: jnp.cumsum(x, axis=1) + 1, out_shardings=one_device(order))
  y = f(jax.device_put(jnp.asarray(host), one_device((1, 2, 0))))
  assert y.format.layout.major_to_minor == order
  want = np.cumsum(host, axis=1) + 1
  np.testing.assert_array_equal(np.asarray(y), want)
  np.testing.assert_array_equal(np.asarray(y[:, 1]), want[:, 1])


def test_layouts_of_sharded_arrays(host):
  mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
  sharding = NamedSharding(mesh, P(None, None, "x"))
  x = jax.device_put(jnp.asarray(host), Format(Layout((2, 0, 1)), sharding))
  assert x.format.layout.major_to_minor == (2, 0, 1)
  y = jax.jit(lambda v: v * 2, out_shardings=Format(Layout((1, 2, 0)), sharding))(x)
  assert y.format.layout.major_to_minor == (1, 2, 0)
  np.testing.assert_array_equal(np.asarray(y), host * 2)
  for shard in y.addressable_shards:
    np.testing.assert_array_equal(np.asarray(shard.data), host[shard.index] * 2)


def test_copies_keep_the_layout(host):
  x = jax.device_put(jnp.asarray(host), one_device((2, 1, 0)))
  y = x.copy()
  np.testing.assert_array_equal(np.asarray(y), host)
  assert float(x.sum()) == host.sum()


@pytest.mark.parametrize("order", ORDERS)
def test_a_layout_left_open_saves_the_transpose(host, order):
  """The result has the operand's layout, and nothing is copied."""
  auto = Format(Layout.AUTO, SingleDeviceSharding(jax.devices()[0]))
  x = jnp.asarray(host)
  compiled = jax.jit(lambda x: jnp.transpose(x, order) + 0 * x.sum(), out_shardings=auto)
  np.testing.assert_array_equal(np.asarray(compiled(x)), host.transpose(order))
  compiled = jax.jit(lambda x: jnp.transpose(x, order), out_shardings=auto).lower(x).compile()
  y = compiled(x)
  assert y.format == compiled.output_formats
  np.testing.assert_array_equal(np.argsort(order), y.format.layout.major_to_minor)
  np.testing.assert_array_equal(np.asarray(y), host.transpose(order))
  assert "stablehlo.transpose" not in compiled.as_text()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_layout_that_the_program_asks_for(order):
  mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
  sharding = NamedSharding(mesh, P("x"))
  a = np.arange(128.0, dtype=np.float32).reshape(8, 16)
  f = jax.jit(lambda x: jax.lax.with_sharding_constraint(x.T, Format(Layout(order), sharding)))
  y = f(jax.device_put(a, sharding))
  assert y.format.layout.major_to_minor == order and y.sharding == sharding
  np.testing.assert_array_equal(np.asarray(y), a.T)
