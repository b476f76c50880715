"""Checks arrays that should have equal copies (option `check`).

The library compares the arguments and results of programs.  This module compares the copies that the user passes, and
names the user's line.
"""

import functools

import jax
from minipod import virtual
from minipod.jax import coordination
from minipod.jax import guard
from minipod.jax import start
import numpy as np

_is_on = False
_is_taught = False


def attend_client() -> None:
  """Records, for a new client, whether its arrays are checked."""
  global _is_on, _is_taught
  _is_on = start.chosen("check", "MINIPOD_CHECK") == "replicas"
  if _is_on and not _is_taught:
    _is_taught = True
    guard.teach("to tell where launches are called from", coordination.ask_for_callers)
    guard.teach("to compare copies that arrays are made of", _check_arrays)


def _check_arrays() -> None:
  from jax._src import array
  from jax._src.interpreters import pxla

  put, combine = pxla.batched_device_put, array.make_array_from_single_device_arrays

  @functools.wraps(put)
  def batched_device_put(aval, sharding, xs, devices, *args, **kwargs):
    if _is_on:
      _compare(aval.shape, sharding, devices, xs)
    return put(aval, sharding, xs, devices, *args, **kwargs)

  @functools.wraps(combine)
  def make_array_from_single_device_arrays(shape, sharding, arrays, *args, **kwargs):
    if _is_on and isinstance(arrays, (list, tuple)) and all(isinstance(x, jax.Array) for x in arrays):
      _compare(shape, sharding, [x.device for x in arrays], arrays)
    return combine(shape, sharding, arrays, *args, **kwargs)

  pxla.batched_device_put = batched_device_put
  array.make_array_from_single_device_arrays = make_array_from_single_device_arrays
  jax.make_array_from_single_device_arrays = make_array_from_single_device_arrays


def _compare(shape, sharding, devices, shards) -> None:
  """Raises a ValueError if two devices get different bits for the same part of an array."""
  first = shards[0] if shards else None
  if all(x is first for x in shards) or not all(_can_be_read(x) for x in shards):
    return
  indices = sharding.devices_indices_map(tuple(shape))
  firsts = {}
  for device, x in zip(devices, shards):
    key = tuple((part.start, part.stop) for part in indices.get(device, ()))
    other, value = firsts.setdefault(key, (device, x))
    if value is not x and (found := _difference(np.asarray(x), np.asarray(value))) is not None:
      count = sum(tuple((part.start, part.stop) for part in index) == key for index in indices.values())
      raise ValueError(_text(np.asarray(x), np.asarray(value), found, indices[device], count, device, other))


def _can_be_read(x) -> bool:
  """Skips an array on a device if reading it would take the pod's time: the launch that takes it compares it anyway."""
  if isinstance(x, np.ndarray):
    return x.dtype != object
  return (isinstance(x, jax.Array) and not isinstance(x, jax.core.Tracer) and not virtual.is_kept()
          and isinstance(x.dtype, np.dtype) and x.is_fully_addressable)


def _difference(a, b):
  """Which elements differ in their bits; None if none differs, or if the shapes differ, which JAX will report."""
  if a.shape != b.shape or a.dtype != b.dtype:
    return None
  bits = [np.ascontiguousarray(x).reshape(-1).view(np.uint8).reshape(x.size, -1) for x in (a, b)]
  different = (bits[0] != bits[1]).any(axis=1)
  return different if different.any() else None


def _text(a, b, different, index, count, device, other) -> str:
  at = np.unravel_index(int(different.argmax()), a.shape)
  place = [int(i) + (part.start or 0) for i, part in zip(at, index)]
  return (f"an array {a.dtype}{list(a.shape)} should be the same on {count} devices; device {device.id} gets"
          f" another one than device {other.id}: {different.sum()} of {a.size} elements differ (first at"
          f" {place}: {a[at]} instead of {b[at]})")
