"""The blocks of arrays that a Pallas kernel works on, and their positions in each step of the grid."""

from minipod.jax import kernel_bounds
from minipod.jax import kernel_ranges


class Window:
  """The part of an array that a step of the grid sees."""

  def __init__(self, names, block, variable, memory: str):
    self.block, self.shape = block, tuple(names.shape_of(block.block_shape))
    self.memory = memory
    self.squeezed = [axis for axis, size in enumerate(block.block_shape)
                     if isinstance(size, names.Squeezed)]
    self.padding = [tuple(size.padding) if isinstance(size, names.Element) else (0, 0)
                    for size in block.block_shape]
    self.steps = [1 if isinstance(size, names.Element) else length
                  for size, length in zip(block.block_shape, self.shape)]
    self.is_whole = is_in_hbm(variable) and self.shape == tuple(block.array_aval.shape)

  def find(self, ids, scalars):
    """The block's first element in each dimension."""
    import jax.numpy as jnp

    starts = self.block.compute_start_indices_interpret(ids, *scalars)
    return [jnp.asarray(start, jnp.int32) for start in starts]

  def check(self, checker, start, grid):
    """Checks that the block begins inside the array, unless that is known in advance."""
    text, shown = kernel_bounds.Text(), []
    for first, last, (least, greatest) in zip(start, self._find_lasts(), self._find_ranges(grid)):
      is_known = 0 <= least and greatest <= last
      shown.append(text.add_number(first) if is_known else text.add_check(first, last))
    blocks = "x".join(map(str, self.shape))
    checker.bind(text, f"takes the block of {self.memory} that begins at ({', '.join(shown)}) of"
                       f" {'x'.join(map(str, self.block.array_aval.shape))} elements in blocks of"
                       f" {blocks} ({self.block.index_map_jaxpr.jaxpr.debug_info.func_src_info})")

  def _find_lasts(self) -> list[int]:
    """The first element of the last block, in each dimension."""
    return [max(-(-(low + size + high) // length) - 1, 0) * length
            for size, (low, high), length
            in zip(self.block.array_aval.shape, self.padding, self.shape)]

  def _find_ranges(self, grid):
    """The range of first elements of blocks, as far as it is known."""
    closed = self.block.index_map_jaxpr
    places = [(0, max(size - 1, 0)) if isinstance(size, int) else (0, float("inf"))
              for size in grid]
    ranges = kernel_ranges.find_ranges(closed.jaxpr, places)
    return [(least * step, greatest * step)
            for (least, greatest), step in zip(ranges, self.steps)]

  def get(self, array, start):
    import jax

    if array.shape != self.shape:
      array = jax.lax.dynamic_slice(array, start, self.shape)
    return jax.lax.squeeze(array, self.squeezed)

  def put(self, array, start, part):
    import jax

    part = jax.lax.expand_dims(part, self.squeezed)
    if array.shape == self.shape:
      return part
    return jax.lax.dynamic_update_slice(array, part, start)


def is_in_hbm(variable) -> bool:
  """Whether the kernel sees the array itself, and not blocks of it."""
  space = str(getattr(variable.aval, "memory_space", None)).lower()
  return "any" in space or "hbm" in space


class Array:
  """An array in HBM, and its windows: of an operand, a result, or both."""

  def __init__(self, windows):
    paddings = [window.padding for window in windows]
    if any(padding != paddings[0] for padding in paddings):
      raise NotImplementedError("an operand and the result in its place with different padding")
    self.windows, self.padding = windows, paddings[0]
    self.shape = windows[0].block.array_aval.shape

  def pad(self, names, value):
    """Adds undefined elements, so that every block is inside the array."""
    import jax

    ends = [max(-(-(low + size + high) // length) * length for length in lengths)
            for size, (low, high), lengths
            in zip(self.shape, self.padding, zip(*(window.shape for window in self.windows)))]
    margins = [(low, end - low - size, 0)
               for size, (low, _), end in zip(self.shape, self.padding, ends)]
    if not any(low or high for low, high, _ in margins):
      return value
    return jax.lax.pad(value, names.make_uninitialized((), value.dtype), margins)

  def cut(self, value):
    """Removes the elements that `pad` has added."""
    import jax

    low = [low for low, _ in self.padding]
    return jax.lax.slice(value, low, [first + size for first, size in zip(low, self.shape)])
