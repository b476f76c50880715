"""Exchanges arrays with other libraries by DLPack, and cuts arrays into very many shards on the host.

JAX offers DLPack only for platforms whose names it knows.  Device memory of this platform is host memory, so consumers
see the arrays as a CPU's.
"""

import functools
import threading

import jax
import jax.dlpack
import jax.numpy as jnp
from minipod import virtual
from minipod.jax import guard
import numpy as np

_LEAVING, _ENTERING = "arrays that leave by DLPack", "arrays that come by DLPack"
_SCATTERING = "arrays that are put on very many devices"
# With at least so many shards, JAX's program that cuts an array takes long to compile: 22 seconds for 65,536 results.
_MANY_SHARDS = 512
_SHARDS_OF_A_PROGRAM = 256
_CPU = 1  # kDLCPU, in DLPack's specification
_calls = threading.local()  # is_ours: the thread is inside our from_dlpack


def _is_ours(x) -> bool:
  devices = x.sharding.device_set
  return len(devices) == 1 and next(iter(devices)).platform == guard.PLATFORM


def let_leave() -> None:
  from jax._src import array

  kind = array.ArrayImpl
  original, original_device = kind.__dlpack__, kind.__dlpack_device__

  @functools.wraps(original)
  def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    host = self
    with guard.use(_LEAVING):
      if _is_ours(self):
        host, copy = _host_array(self, copy), None
    return original(host, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

  @functools.wraps(original_device)
  def __dlpack_device__(self):
    with guard.use(_LEAVING):
      if _is_ours(self):
        return _CPU, 0
    return original_device(self)

  kind.__dlpack__, kind.__dlpack_device__ = __dlpack__, __dlpack_device__


def _host_array(x, copy):
  """An array of JAX's CPU backend with the contents of `x`.  It shares the memory, unless `copy` is True."""
  view = np.asarray(x)
  host = jax.device_put(np.array(view) if copy else view, jax.local_devices(backend="cpu")[0])
  host.block_until_ready()
  if copy is False and view.size and host.unsafe_buffer_pointer() != view.ctypes.data:
    raise BufferError("the array's memory cannot be shared with a CPU device: copy=None or True")
  return host


def let_enter() -> None:
  from jax._src import dlpack

  original, to_buffer = dlpack.from_dlpack, dlpack._jax.dlpack_managed_tensor_to_buffer

  @functools.wraps(original)
  def from_dlpack(external_array, device=None, copy=None):
    target = device
    with guard.use(_ENTERING):
      # JAX's own arrays stay on their device.
      if device is None and isinstance(external_array, jax.Array) and _is_ours(external_array):
        return jnp.array(external_array, copy=True) if copy else external_array
      is_foreign = not isinstance(external_array, jax.Array)
      target = _default_device() if device is None and is_foreign else device
      if not copy and is_foreign and _is_our_device(target):
        shared = _share(to_buffer, external_array, target)
        if shared is not None:
          return shared
    _calls.is_ours = True
    try:
      return original(external_array, device if copy is False else target, copy)
    finally:
      _calls.is_ours = False

  dlpack.from_dlpack = jax.dlpack.from_dlpack = from_dlpack


def let_first_enter() -> None:
  """If the call of `from_dlpack` is the first use of JAX, it loads minipod, which then replaces `from_dlpack` during
  the call.
  """
  from jax._src import dlpack

  original_place = dlpack._place_array

  @functools.wraps(original_place)
  def _place_array(arr, device, *args, **kwargs):
    with guard.use(_ENTERING):
      copy = args[-1] if args else kwargs.get("copy")
      if device is None and copy is not False and not getattr(_calls, "is_ours", False):
        device = _default_device()
    return original_place(arr, device, *args, **kwargs)

  dlpack._place_array = _place_array


def _is_our_device(device) -> bool:
  return isinstance(device, jax.Device) and device.platform == guard.PLATFORM


def _default_device():
  """The device that foreign arrays go to, as with JAX's CPU backend; None on another platform."""
  if jax.default_backend() != guard.PLATFORM:
    return None
  device = jax.default_device.value or jax.local_devices()[0]
  return jax.local_devices(backend=device)[0] if isinstance(device, str) else device


def _share(to_buffer, external_array, device):
  """An array of the device that shares the memory of a foreign array; None if the array must be copied.

  Kernels need row-major memory at a multiple of 64 bytes, as XLA's CPU client does.
  """
  try:
    if external_array.__dlpack_device__()[0] != _CPU:
      return None
    tensor = external_array.__dlpack__(stream=None)
  except Exception:  # JAX's own path follows, and reports the error
    return None
  x = _make_array(to_buffer, tensor, device)
  # If the memory cannot be shared, or JAX converts the type, the result has its own memory anyway.
  if x is None or not x.size or x.dtype != jax.dtypes.canonicalize_dtype(x.dtype):
    return None
  is_row_major = x.format.layout.major_to_minor == tuple(range(x.ndim))
  return x if is_row_major and x.unsafe_buffer_pointer() % 64 == 0 else None


def _make_array(to_buffer, tensor, device):
  try:
    return to_buffer(tensor, device, None, None, _CPU)
  except TypeError:  # jaxlib before 0.10 does not take the kind of device
    return to_buffer(tensor, device, None, None)
  except Exception:  # as above
    return None


def scatter_from_host() -> None:
  """Cuts an array of one device in place, instead of running a program with a result for each shard.

  With virtual times, only small arrays are cut in place: the others are cut by programs, whose time counts.
  """
  from jax._src import array, mesh
  from jax._src.interpreters import pxla

  original, put, slice_indices = array.shard_device_array, pxla.batched_device_put, array.as_slice_indices
  no_concrete_mesh = functools.partial(array._internal_use_concrete_mesh, mesh.empty_concrete_mesh)
  no_abstract_mesh = functools.partial(mesh.use_abstract_mesh, mesh.empty_abstract_mesh)

  @functools.wraps(original)
  def shard_device_array(x, devices, indices, sharding):
    with guard.use(_SCATTERING):
      if len(devices) >= _MANY_SHARDS and not sharding.is_fully_replicated and _is_ours(x):
        if not virtual.is_kept():
          value = np.asarray(x)
          return put(x.aval, sharding, [value[index] for index in indices], devices)
        with no_concrete_mesh(), no_abstract_mesh():  # as JAX does
          shards = _cut(x, [slice_indices(x, index) for index in indices])
        if shards is not None:
          return put(x.aval, sharding, shards, devices)
    return original(x, devices, indices, sharding)

  array.shard_device_array = shard_device_array


def _cut(x, slices):
  """The shards of an array of one device; None if they differ in shape.  Each launch of one program cuts some hundreds.

  JAX caches its program with one result per shard, at 9 KB for each result.
  """
  starts, limits, removed = zip(*slices)
  starts = np.asarray(starts)
  sizes = np.unique(np.asarray(limits) - starts, axis=0)
  if len(sizes) != 1 or any(removed) or max(x.shape) > np.iinfo(np.int32).max:
    return None
  shape, shards = tuple(sizes[0].tolist()), []
  for first in range(0, len(starts), _SHARDS_OF_A_PROGRAM):
    group = starts[first:first + _SHARDS_OF_A_PROGRAM]
    # The position of the first shard is an argument.  The program knows the offsets of the others.
    steps = tuple(map(tuple, (group - group[0]).tolist()))
    shards += _multi_slice(x, group[0].astype(np.int32), steps, shape)
  return shards


@functools.partial(jax.jit, static_argnums=(2, 3))
def _multi_slice(x, start, steps, shape):
  """Replaces JAX's function of this name."""
  starts = [start[d] for d in range(x.ndim)]
  is_whole = [size == x.shape[d] for d, size in enumerate(shape)]
  return [jax.lax.dynamic_slice(x, [0 if whole else s + step for whole, s, step in zip(is_whole, starts, by)],
                                shape, allow_negative_indices=False) for by in steps]
