"""Compiling without running: texts, serialized executables, export, described topologies."""

import gzip
import inspect

import jax
from jax import export
from jax.experimental import serialize_executable
from jax.experimental import topologies
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def f(x):
  return jnp.sin(x) @ x.T


def test_text_of_a_compiled_program():
  text = jax.jit(f).lower(X).compile().as_text()
  assert "sine" in text and "dot(" in text


def test_text_has_the_collectives():
  mesh = Mesh(np.array(jax.devices()), ("i",))
  g = jax.shard_map(lambda x: jax.lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
  assert "all-reduce" in jax.jit(g).lower(np.ones(8, np.float32)).compile().as_text()


@pytest.mark.skipif("prevent_mlir_dce" not in inspect.signature(jax.lax.dce_sink).parameters,
                    reason="JAX 0.9 drops sinks when it lowers a program")
def test_sinks_keep_unread_values():
  def sunk(x):
    jax.lax.dce_sink(x + 1, prevent_mlir_dce=True)
    return x * 2
  compiled = jax.jit(sunk).lower(X).compile()
  text = compiled.as_text()
  assert "dce_sink" in text and "add" in text
  np.testing.assert_array_equal(compiled(X), 2 * X)
  mesh = Mesh(np.array(jax.devices()), ("i",))
  x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("i")))
  np.testing.assert_array_equal(jax.jit(sunk)(x), 2 * np.arange(8.0))


def test_memory_profile_has_the_lines_of_buffers():
  def make_a_large_array():
    return jnp.zeros((300, 300)) + 1
  kept = make_a_large_array()
  profile = gzip.decompress(jax.profiler.device_memory_profile())
  for word in (b"make_a_large_array", b"MINIPOD_0", b"buffer", b"executable"):
    assert word in profile, word
  assert any(x is kept for x in jax.live_arrays())
  assert "make_a_large_array" in str(kept.traceback)


def test_analyses_answer():
  compiled = jax.jit(f).lower(X).compile()
  memory = compiled.memory_analysis()
  assert memory is None or memory.argument_size_in_bytes == X.nbytes
  costs = compiled.cost_analysis()
  # The sine of each element; two operations for each product of the matrices.
  assert costs["transcendentals"] == X.size and costs["flops"] == 2 * 3 * 3 * 4


def test_costs_are_known_before_compiling():
  costs = jax.jit(f).lower(X).cost_analysis()
  assert costs["flops"] == 2 * 3 * 3 * 4 and costs["transcendentals"] == X.size


def test_serialized_executable():
  payload, in_tree, out_tree = serialize_executable.serialize(jax.jit(f).lower(X).compile())
  loaded = serialize_executable.deserialize_and_load(payload, in_tree, out_tree,
                                                     execution_devices=jax.devices()[:1])
  np.testing.assert_allclose(np.asarray(loaded(X)), np.sin(X) @ X.T, rtol=1e-5, atol=1e-5)


def test_serialized_executable_over_devices():
  mesh = Mesh(np.array(jax.devices()), ("i",))
  sharding = NamedSharding(mesh, P("i"))
  value = jax.device_put(np.arange(16, dtype=np.float32), sharding)
  compiled = jax.jit(lambda x: x * 2, out_shardings=sharding).lower(value).compile()
  payload, in_tree, out_tree = serialize_executable.serialize(compiled)
  result = serialize_executable.deserialize_and_load(payload, in_tree, out_tree)(value)
  assert result.sharding.is_equivalent_to(sharding, 1)
  np.testing.assert_array_equal(np.asarray(result), np.arange(16) * 2)


def test_damaged_serialized_executable():
  payload, in_tree, out_tree = serialize_executable.serialize(jax.jit(f).lower(X).compile())
  with pytest.raises(Exception):
    serialize_executable.deserialize_and_load(payload[:len(payload) // 2], in_tree, out_tree)


@pytest.mark.parametrize("platforms", [None, ["minipod"], ["cpu", "minipod"]])
def test_export(platforms):
  exported = export.export(jax.jit(f), platforms=platforms)(X)
  again = export.deserialize(exported.serialize())
  np.testing.assert_allclose(np.asarray(again.call(X)), np.sin(X) @ X.T, rtol=1e-5, atol=1e-5)


def test_described_topology():
  topology = topologies.get_topology_desc(platform="minipod", topology_name="torus:2x2")
  assert len(topology.devices) == 4
  mesh = topologies.make_mesh(topology, (4,), ("i",))
  spec = jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(mesh, P("i")))
  compiled = jax.jit(lambda x: (x * 2).sum()).lower(spec).compile()
  assert "multiply(" in compiled.as_text()


def test_hosts_and_slices_of_a_described_topology():
  """As with TPUs, a process may be a host of a pod on which nothing runs yet."""
  topology = topologies.get_topology_desc("torus:4x4 hosts:4", "minipod")
  assert [d.process_index for d in topology.devices] == [d.host_index for d in topology.devices]
  assert {d.process_index for d in topology.devices} == {0, 1, 2, 3}
  topology = topologies.get_topology_desc("v5e:2x2", "minipod", num_slices=3)
  assert [d.slice_index for d in topology.devices] == [0] * 4 + [1] * 4 + [2] * 4
  with pytest.raises(Exception, match="slices:0"):
    topologies.get_topology_desc("v5e:2x2", "minipod", num_slices=0)


def test_topology_of_the_client():
  topology = topologies.get_attached_topology()
  assert len(topology.devices) == len(jax.devices())


def test_cache_key_has_the_version():
  assert "minipod" in jax.devices()[0].client.platform_version
