"""Blocks of the arrays that a kernel of Pallas works on, and where each step of the grid has them."""


class Window:
  """The part of an array that a step of the grid sees."""

  def __init__(self, names, block, variable):
    self.block, self.shape = block, tuple(names.shape_of(block.block_shape))
    self.squeezed = [axis for axis, size in enumerate(block.block_shape)
                     if isinstance(size, names.Squeezed)]
    self.padding = [tuple(size.padding) if isinstance(size, names.Element) else (0, 0)
                    for size in block.block_shape]
    self.is_whole = is_in_hbm(variable) and self.shape == tuple(block.array_aval.shape)

  def find(self, ids, scalars):
    """The block's first element in each dimension."""
    import jax.numpy as jnp

    starts = self.block.compute_start_indices_interpret(ids, *scalars)
    return [jnp.asarray(start, jnp.int32) for start in starts]

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
  """Whether the kernel sees the array itself, instead of blocks that come and go."""
  space = str(getattr(variable.aval, "memory_space", None)).lower()
  return "any" in space or "hbm" in space


class Array:
  """An array in HBM, and the windows that show it: of an operand, a result, or both."""

  def __init__(self, windows):
    paddings = [window.padding for window in windows]
    if any(padding != paddings[0] for padding in paddings):
      raise NotImplementedError("an operand and the result in its place with different padding")
    self.windows, self.padding = windows, paddings[0]
    self.shape = windows[0].block.array_aval.shape

  def pad(self, names, value):
    """Adds undefined elements, so that every block is inside of the array."""
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
    """Takes away what `pad` has added."""
    import jax

    low = [low for low, _ in self.padding]
    return jax.lax.slice(value, low, [first + size for first, size in zip(low, self.shape)])
