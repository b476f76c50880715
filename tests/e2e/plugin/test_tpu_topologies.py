"""Described TPUs have libtpu's devices, and JAX makes the same meshes of them.

tests/fixtures/tpu/topologies.json has libtpu's data, and says how it was recorded.
"""

import json
import pathlib
import types

import jax
from jax.experimental import topologies
from jax.experimental.mesh_utils import create_device_mesh, create_hybrid_device_mesh
import mpirun
import pytest
import scenario

RECORD = json.loads((pathlib.Path(__file__).parents[2] / "fixtures/tpu/topologies.json").read_text())
FACTS = RECORD["topologies"]


def label(fact) -> str:
  return " ".join([fact["name"], *map(str, fact["options"].values())])


every_topology = pytest.mark.parametrize("fact", FACTS, ids=label)


def devices_of(fact):
  return topologies.get_topology_desc(fact["name"], "minipod", **fact["options"]).devices


def place_of(device) -> list[int]:
  return [*device.coords, device.core_on_chip, device.slice_index, device.process_index]


def order_of(devices, make):
  """Positions in the list of devices, or the name of the exception."""
  position = {id(d): i for i, d in enumerate(devices)}
  try:
    return [position[id(d)] for d in make().flatten()]
  except (NotImplementedError, ValueError) as error:
    return type(error).__name__


def meshes_of(fact, devices):
  """Each mesh as (shape and options, the function that makes it, recorded order)."""
  variants = {"order": {}, "split": {"allow_split_physical_axes": True},
              "contiguous": {"contiguous_submeshes": True}}
  for mesh in fact["meshes"]:
    shape, dcn = mesh["shape"], mesh.get("dcn")
    if mesh["order"] == "AssertionError":  # JAX has no mesh of devices that are half of a v4 chip
      continue
    if dcn:
      yield (shape, dcn), lambda: create_hybrid_device_mesh(shape, dcn, devices), mesh["order"]
      continue
    for name, options in variants.items():
      yield ((shape, options), lambda: create_device_mesh(shape, devices, **options),
             mesh.get(name, mesh["order"]))


def test_the_record():
  assert len(FACTS) >= 20 and RECORD["origin"]["libtpu"] == "0.0.42"
  assert {f["kind"] for f in FACTS} == {"TPU v2", "TPU v3", "TPU v4", "TPU v5 lite", "TPU v5",
                                        "TPU v6 lite", "TPU7x"}
  assert sum(len(f["meshes"]) for f in FACTS) > 250


@every_topology
def test_devices(fact):
  """libtpu gives the devices of a single slice no slice_index; minipod's is 0."""
  devices = devices_of(fact)
  assert [place_of(d) for d in devices] == fact["devices"]
  assert {d.device_kind for d in devices} == {fact["kind"]}
  assert {d.num_cores for d in devices} == {fact["num_cores"]}


@every_topology
def test_meshes_as_recorded(fact):
  if jax.__version__.split(".")[:2] != RECORD["origin"]["jax"].split(".")[:2]:
    pytest.skip(f"recorded with JAX {RECORD['origin']['jax']}")
  devices = devices_of(fact)
  for what, make, order in meshes_of(fact, devices):
    assert order_of(devices, make) == order, what


@every_topology
def test_meshes_are_those_of_tpus_in_this_jax(fact):
  """The same for other versions of JAX: the meshes that they make of devices that report to be TPUs."""
  devices = devices_of(fact)
  tpus = [types.SimpleNamespace(
      platform="tpu", id=i, device_kind=fact["kind"], num_cores=fact["num_cores"],
      coords=tuple(place[:3]), core_on_chip=place[3], slice_index=place[4], process_index=place[5])
          for i, place in enumerate(fact["devices"])]
  for (what, make, _), (_, make_tpu, _) in zip(meshes_of(fact, devices), meshes_of(fact, tpus)):
    assert order_of(devices, make) == order_of(tpus, make_tpu), what


def test_devices_that_have_no_mesh_keep_their_order():
  devices = topologies.get_topology_desc("v4:2x2x1", "minipod").devices
  assert list(create_device_mesh((2, 4), devices).flatten()) == devices
  devices = topologies.get_topology_desc("v5p:2x2x2", "minipod").devices
  part = [devices[0], devices[3], devices[5]]  # no box
  assert list(create_device_mesh((3,), part)) == part


def test_what_is_no_tpu_keeps_its_order():
  devices = topologies.get_topology_desc("torus:4x4x1 hosts:4", "minipod").devices
  assert list(create_device_mesh((2, 8), devices).flatten()) == devices
  cpus = jax.devices("cpu")
  assert list(create_device_mesh((len(cpus),), cpus)) == cpus
  with pytest.raises(ValueError, match="mesh_shape"):
    create_device_mesh((3,), devices)


@pytest.mark.parametrize("name, options, words", [
    ("v5e:4x4", {"chip_config_name": "megacore"}, ["v5e-megacore", "v4-megacore"]),
    ("v5e:4x4", {"chips_per_host_bounds": [2, 0, 1]}, ["host_shape", "2,0,1"]),
    ("v5e:4x4", {"no_such_option": 1}, ["no_such_option"]),
    ("", {"num_slices": 2}, ["need the name of a topology"])])
def test_wrong_options(name, options, words):
  with pytest.raises(Exception) as error:
    topologies.get_topology_desc(name, "minipod", **options)
  assert [word for word in words if word not in str(error.value)] == []


def test_wrap():
  assert len(topologies.get_topology_desc("v5e:4x4", "minipod", wrap=[True, False, False]).devices) == 16


def test_the_clients_of_one_process():
  """If one process has all devices, the order of meshes is still that of TPUs."""
  out = scenario.run("""
      from jax.experimental.mesh_utils import create_device_mesh  # before there is a device
      from jax.experimental import topologies
      print({d.process_index for d in jax.devices()}, jax.device_count())
      described = topologies.get_topology_desc("v2:4x4", "minipod").devices
      for shape in [(4, 8), (2, 16), (32,)]:
        orders = [[(*d.coords, d.core_on_chip) for d in create_device_mesh(shape, devices).flatten()]
                  for devices in (None, described)]
        print(orders[0] == orders[1])
      mesh = jax.make_mesh((32,), ("x",))
      x = jax.device_put(np.arange(64.), jax.NamedSharding(mesh, jax.P("x")))
      print(float(jax.jit(jnp.sum)(x)))
      """, devices=None, MINIPOD_TOPOLOGY="v2:4x4", MINIPOD_DEVICE_MEMORY="16MiB")
  assert out.splitlines() == ["{0} 32", "True", "True", "True", "2016.0"]


@mpirun.NEEDS_MPIRUN
def test_a_process_for_each_host():
  """Running processes have the devices that libtpu gives to the processes of a description."""
  fact = next(f for f in FACTS if f["name"] == "v5e:4x4" and not f["options"])
  mesh = next(m for m in fact["meshes"] if m["shape"] == [4, 4])
  job = mpirun.run_well(4, """
      print([[*d.coords, d.core_on_chip, d.slice_index, d.process_index] for d in jax.devices()])
      print([[*d.coords] for d in jax.make_mesh((4, 4), ("x", "y")).devices.flatten()])
      """, MINIPOD_TOPOLOGY="v5e:4x4", MINIPOD_DEVICE_MEMORY="16MiB")
  for out in job.outs:
    devices, order = map(json.loads, out.splitlines())
    assert devices == fact["devices"]
    assert order == [fact["devices"][i][:3] for i in mesh["order"]]


def test_memory():
  """The memory that a program may use is what libtpu reports as available, to the hundredth of a GiB."""
  facts = {}
  for fact in FACTS:
    config = fact["options"].get("chip_config_name")
    name, grid = fact["name"].split(":")
    facts[f"{name}-{config}:{grid}" if config else fact["name"]] = fact["memory"]
  names = {name.split(":")[0]: name for name in reversed(facts)}.values()  # one of each kind
  out = scenario.run(f"""
      from jax.extend.backend import clear_backends
      for name in {list(names)}:
        jax.config.update("jax_pjrt_client_create_options", {{"topology": name}})
        print(name, f"{{jax.devices()[-1].memory_stats()['bytes_limit'] / 2**30:.2f}}G")
        clear_backends()
      """, devices=None)
  assert dict(line.split() for line in out.splitlines()) == {name: facts[name] for name in names}
  assert len(names) == 8
