"""Meshes of described TPUs."""

import dataclasses
import functools
import types

import jax
from minipod.jax import guard
import numpy as np

_WHAT = "the order of a TPU's meshes"
_CORES = "the cores of a mesh's devices"
_is_taught = False


def _is_tpu(device) -> bool:
  return (getattr(device, "platform", "") == guard.PLATFORM
          and device.device_kind.startswith("TPU"))


class _AsTpu:
  """A device under the platform name "tpu"."""

  platform = "tpu"

  def __init__(self, device):
    self.device = device

  def __getattr__(self, name):
    return getattr(self.device, name)


def order_meshes_of_client(client) -> None:
  _order_meshes(client.devices())


def order_meshes_of_topology(topology) -> None:
  _order_meshes(topology._make_compile_only_devices())


def _order_meshes(devices) -> None:
  """Orders meshes of described TPUs as on real TPUs.

  JAX derives the order from the kind, the coordinates and the order of the devices.  minipod lists devices by host,
  even if one process has all of them.
  """
  global _is_taught
  if not _is_taught and any(map(_is_tpu, devices)):
    from jax.experimental import mesh_utils

    _take_over(mesh_utils.create_device_mesh, _make_mesh)
    _is_taught = True
    guard.teach(_CORES, _count_cores)


def _make_mesh(original, mesh_shape, devices=None, **options):
  with guard.use(_WHAT):
    devices = jax.devices() if devices is None else devices
    if len(devices) and all(map(_is_tpu, devices)):
      mesh = _make_as_tpus(original, mesh_shape, devices, options)
      if mesh is not None:
        return mesh
  return original(mesh_shape, devices, **options)


def _count_cores() -> None:
  """Gives an abstract mesh the number of cores of its devices, which JAX looks up on the platform "tpu" alone."""
  from jax._src import mesh

  original = mesh.Mesh.abstract_mesh.func

  def abstract_mesh(self):
    abstract = original(self)
    with guard.use(_CORES):
      device = None if abstract.empty else self.devices.flat[0]
      if device is not None and _is_tpu(device):
        counted = dataclasses.replace(abstract.abstract_device, num_cores=device.num_cores)
        return mesh.AbstractMesh(abstract.axis_sizes, abstract.axis_names, axis_types=abstract.axis_types,
                                 abstract_device=counted)
    return abstract

  ours = functools.cached_property(abstract_mesh)
  ours.__set_name__(mesh.Mesh, "abstract_mesh")
  mesh.Mesh.abstract_mesh = ours


def _make_as_tpus(original, mesh_shape, devices, options):
  tpus = [_AsTpu(d) for d in devices]
  if all(a.id < b.id for a, b in zip(tpus, tpus[1:])):
    tpus.sort(key=lambda d: d.host_index)
  try:
    mesh = original(mesh_shape, tpus, **options)
  except AssertionError:  # for example, a part of a grid, for which JAX makes no mesh on TPUs
    return None
  return np.vectorize(lambda d: d.device, otypes=[object])(mesh)


def _take_over(function, ours) -> None:
  """Makes `function` call `ours`, with its original code as the first argument.

  Programs import the function by name long before they use a device, so replacing the name would not reach them.
  """
  original = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                function.__defaults__, function.__closure__)
  original.__kwdefaults__ = function.__kwdefaults__
  code = (lambda *args, **kwargs: _minipod_takes_over(*args, **kwargs)).__code__
  if function.__closure__ is not None:
    raise TypeError(f"{function.__name__} has a closure")
  function.__globals__["_minipod_takes_over"] = functools.partial(ours, original)
  function.__code__ = code
  function.__defaults__ = function.__kwdefaults__ = None
  function.__wrapped__ = original  # keeps its signature
