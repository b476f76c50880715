"""Masked loads and stores in Pallas kernels, as operations on whole arrays.

A masked access may extend past the end of a memory, and so may a view of a memory.  JAX's rules pad the memory for
that, but support only one index.  Here an access may go through any number of views.  Elements outside the memory are
undefined when read, and dropped when written.
"""

import functools
import types


def install() -> None:
  """Makes JAX's discharge of references use the rules of this file, or its own if they fail."""
  from jax._src.pallas import primitives
  from jax._src.state import discharge
  from jax._src.state import indexing

  names = types.SimpleNamespace(
      Indexer=indexing.NDIndexer, read=discharge.transform_array,
      write=discharge.transform_swap_array, bitcast=discharge.bitcast)
  for primitive, access in ((primitives.load_p, _load), (primitives.swap_p, _store)):
    original = discharge._discharge_rules[primitive]
    discharge._discharge_rules[primitive] = functools.partial(_discharge, original, access, names)


def _discharge(original, access, names, *context_and_args, args_tree, **params):
  """A rule.  Each version of JAX passes other parameters before the arguments."""
  args = context_and_args[-args_tree.num_leaves:]
  ref, transforms, *rest = args_tree.unflatten(args)
  try:
    stored, found = access(names, ref, list(transforms or ()), *rest)
  except (AttributeError, NotImplementedError, TypeError):
    return original(*context_and_args, args_tree=args_tree, **params)
  return (stored,) + (None,) * (len(args) - 1), found


def _load(names, ref, transforms, mask, other):
  import jax.numpy as jnp

  for transform in transforms:
    ref = _read(names, ref, transform)
  if mask is not None and other is not None:
    ref = jnp.where(mask, ref, other)
  return None, ref


def _store(names, ref, transforms, value, mask):
  """The memory after the store, and its previous contents; if the mask is off, the value itself."""
  import jax.numpy as jnp

  if transforms:
    view, *rest = transforms
    part, found = _store(names, _read(names, ref, view), rest, value, mask)
    return _write(names, ref, view, part), found
  if mask is None:
    return value, ref
  return jnp.where(mask, value, ref), jnp.where(mask, ref, value)


def _read(names, array, view):
  """The elements of an array that a view shows; outside the array NaN, or the type's limit."""
  if not _may_stick_out(names, view):
    return names.read(array, (view,))
  return array.at[find_places(view)].get(mode="fill")


def _write(names, array, view, part):
  """The array after `part` is stored through the view; elements outside are dropped."""
  if not isinstance(view, names.Indexer):
    is_reshaped = hasattr(view, "shape")
    return part.reshape(array.shape) if is_reshaped else names.bitcast(part, array.dtype)
  if not _may_stick_out(names, view):
    return names.write(array, (view,), part)[1]
  return array.at[find_places(view)].set(part, mode="drop")


def _may_stick_out(names, view) -> bool:
  return isinstance(view, names.Indexer) and may_stick_out(view)


def may_stick_out(view) -> bool:
  """Whether an index may be out of bounds."""
  return not all(map(is_inside, view.indices, view.shape))


def is_inside(index, size: int) -> bool:
  """Whether an index is certainly inside a dimension."""
  if isinstance(index, int):
    return 0 <= index < size
  first, count = getattr(index, "start", None), getattr(index, "size", None)
  if not (isinstance(first, int) and isinstance(count, int)):
    return False
  return count == 0 or 0 <= first <= first + (count - 1) * index.stride < size


def find_places(view):
  """For each dimension of the array, the indices of the view's elements, in the view's shape.

  An index outside the array becomes the first one after its end.
  """
  import jax.numpy as jnp

  is_array = [not hasattr(index, "stride") for index in view.indices]
  shape, arrays = view.get_indexer_shape(), tuple(view.int_indexer_shape)
  at = _find_arrays(is_array)
  places, axis = [], 0
  for index, size in zip(view.indices, view.shape):
    if hasattr(index, "stride"):
      own = axis if axis < at else axis + len(arrays)
      index = index.start + index.stride * jnp.arange(index.size, dtype=jnp.int32)
      index = index.reshape([-1 if i == own else 1 for i in range(len(shape))])
      axis += 1
    else:
      index = jnp.broadcast_to(jnp.asarray(index), arrays)
      index = index.reshape((1,) * at + arrays + (1,) * (len(shape) - at - len(arrays)))
    places.append(jnp.where((index < 0) | (index >= size), size, index))
  return tuple(places)


def _find_arrays(is_array: list[bool]) -> int:
  """The position of the indexing arrays' dimensions among those of the slices, as in NumPy."""
  if True not in is_array:
    return 0
  first = is_array.index(True)
  is_together = all(is_array[first:first + sum(is_array)])
  return first if is_together else 0
