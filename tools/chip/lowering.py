"""Programs of the corpus as JAX lowers them, for devices that need not exist."""

import math


def with_devices(mesh, count):
  """The axes of a mesh of 16 for `count` devices: the first one becomes smaller."""
  axes = list(mesh.items())
  first, size = axes[0]
  size = size * count // math.prod(mesh.values())
  if size * math.prod(length for _, length in axes[1:]) != count:
    raise ValueError(f"no mesh of {count} devices from {mesh}")
  return dict([(first, size), *axes[1:]])


def built(program, devices):
  """The function, its arguments, and what places an argument with a spec."""
  from jax.experimental import mesh_utils
  from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding
  if not program.mesh:
    return *program.build(), lambda spec: SingleDeviceSharding(devices[0])
  axes = with_devices(program.mesh, len(devices))
  grid = mesh_utils.create_device_mesh(tuple(axes.values()), devices=devices, allow_split_physical_axes=True)
  mesh = Mesh(grid, tuple(axes))
  place = lambda spec: NamedSharding(mesh, spec if spec is not None else PartitionSpec())
  return *program.build(mesh), place


def lower(program, devices):
  import jax
  function, given, place = built(program, devices)
  leaf = lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=place(a.spec))
  given = jax.tree.map(leaf, given, is_leaf=lambda a: hasattr(a, "spec"))
  named = lambda *a: function(*a)
  named.__name__ = program.name
  return jax.jit(named, donate_argnums=program.donate).lower(*given)
