"""The grid of a kernel of Pallas as a loop of the program, as JAX's interpreter has it, but for two
things.  What a kernel writes into its scalars stays there for the steps that follow, as in a TPU's
memory (JAX's ragged paged attention counts in them which buffer is next): JAX's interpreter has
each step find them as they were.  And operands that are not written to are no part of what the loop
hands on, so that nobody copies them back."""

import functools
import math
import types


def make_interpreter():
  """A function that takes what `pallas_call` does; looks up all names of JAX that it needs."""
  from jax._src import core
  from jax._src.pallas import core as pallas_core
  from jax._src.pallas import hlo_interpreter

  return functools.partial(_interpret, types.SimpleNamespace(
      discharge=hlo_interpreter.kernel_to_hlo_jaxpr, run=core.eval_jaxpr,
      make_outputs=hlo_interpreter._initialize_output_vals,
      pad=hlo_interpreter._pad_to_block_dimension,
      make_uninitialized=hlo_interpreter.primitives.uninitialized_value,
      shape_of=pallas_core._get_block_shape, Squeezed=pallas_core.Squeezed,
      Element=pallas_core.Element, enter=pallas_core.grid_env, Axis=pallas_core.GridAxis))


def is_known_to_jax(params) -> bool:
  """Whether JAX's own interpreter has the right numbers of the kernel."""
  written = _find_written(params["jaxpr"])
  return not (any(written[:params["grid_mapping"].num_index_operands])
              or params["input_output_aliases"])


def _find_written(jaxpr) -> list[bool]:
  """Whether the kernel writes to the memory, for each that it is given."""
  memories, written = [*jaxpr.constvars, *jaxpr.invars], set()
  for effect in jaxpr.effects:
    if type(effect).__name__ in ("WriteEffect", "AccumEffect"):
      where = getattr(effect, "input_index", None)  # JAX 0.9; later ones have the variable itself
      written.add(effect.input if where is None else memories[where])
  return [memory in written for memory in jaxpr.invars]


class _Window:
  """The part of an array that a step of the grid sees."""

  def __init__(self, names, block):
    self.block, self.shape = block, tuple(names.shape_of(block.block_shape))
    self.squeezed = [axis for axis, size in enumerate(block.block_shape)
                     if isinstance(size, names.Squeezed)]
    if any(isinstance(size, names.Element) and tuple(size.padding) != (0, 0)
           for size in block.block_shape):
      raise NotImplementedError("blocks of elements beyond an array's ends")

  def find(self, ids, scalars):
    import jax.numpy as jnp

    return [jnp.asarray(start, jnp.int32)
            for start in self.block.compute_start_indices_interpret(ids, *scalars)]

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


class _Loop:
  """What a step of the grid does with all memories: scalars, operands, results and scratch."""

  def __init__(self, names, args, jaxpr, mapping, aliases):
    self.names, self.mapping = names, mapping
    self.sizes, args = _take_sizes(mapping, args)
    self.body, self.consts, scratch = names.discharge(jaxpr, (), mapping)
    self.scalars, first = mapping.num_index_operands, len(args)
    self.windows = [_Window(names, block) for block in mapping.block_mappings]
    outputs = names.make_outputs(mapping.block_mappings_output, args, aliases)
    blocks = [names.pad(array, window.shape) for array, window
              in zip([*args[self.scalars:], *outputs], self.windows)]
    self.memories = [*args[:self.scalars], *blocks,
                     *(names.make_uninitialized(aval.shape, aval.dtype) for aval in scratch)]
    self.results = range(first, first + len(outputs))
    written = _find_written(jaxpr)
    self.aliases = [self._order_alias(source, first + result, written)
                    for source, result in aliases]
    aliased = {i for pair in self.aliases for i in pair}
    self.changing = [i for i in range(len(self.memories))
                     if i >= first or written[i] or i in aliased]
    # A block of such an operand comes anew only when another one was there before.
    self.held = [other for _, other in self.aliases
                 if other < first and not _is_unblocked(jaxpr.invars[other])]

  def _order_alias(self, source, result, written):
    """Which of two names of an array the kernel writes to, and the other one."""
    if written[source] and written[result]:
      raise NotImplementedError("a kernel that writes to an operand and to the result in its place")
    if self.memories[source].shape != self.memories[result].shape:
      raise NotImplementedError("an operand and the result in its place in blocks that differ")
    return (source, result) if written[source] else (result, source)

  def run(self):
    import jax

    steps = math.prod(self.sizes)
    held = [self._take_first(i) for i in self.held]
    carry = jax.numpy.int32(0), [self.memories[i] for i in self.changing], held
    if isinstance(steps, int) and steps == 1:
      return self.step(*carry)[1]
    return jax.lax.while_loop(lambda carry: carry[0] < steps, lambda carry: self.step(*carry),
                              carry)[1]

  def step(self, number, changing, held):
    memories = list(self.memories)
    for i, memory in zip(self.changing, changing):
      memories[i] = memory
    scalars, ids = memories[:self.scalars], self._find_ids(number)
    end = self.scalars + len(self.windows)
    with self.names.enter(self._describe_ids(ids)):
      starts = [window.find(ids, scalars) for window in self.windows]
      parts = [window.get(*memory) for window, *memory
               in zip(self.windows, memories[self.scalars:end], starts)]
      held = [self._hold(i - self.scalars, number, *before, starts, parts)
              for i, before in zip(self.held, held)]
      found = self.names.run(self.body, self.consts, *scalars, *parts, *memories[end:])
    for i in self.changing:
      block = i - self.scalars
      memories[i] = found[i] if not 0 <= block < len(self.windows) else (
          self.windows[block].put(memories[i], starts[block], found[i]))
    for written, other in self.aliases:
      memories[other] = memories[written]
    return number + 1, [memories[i] for i in self.changing], held

  def _take_first(self, operand):
    import jax.numpy as jnp

    window, memory = self.windows[operand - self.scalars], self.memories[operand]
    start = jnp.zeros(memory.ndim, jnp.int32)
    return start, window.get(memory, list(start))

  def _hold(self, block, number, start_before, part_before, starts, parts):
    """Puts the block of the step before into `parts` if it is the same; returns what was put."""
    import jax.numpy as jnp

    start = jnp.array(starts[block], jnp.int32)
    is_same = (number > 0) & (start == start_before).all()
    parts[block] = jnp.where(is_same, part_before, parts[block])
    return start, parts[block]

  def _find_ids(self, number):
    """The step's place in the grid, whose last axis goes fastest."""
    import jax
    import jax.numpy as jnp

    ids, number = [], jnp.asarray(number, jnp.int32)
    for size in reversed(self.sizes):
      size = jnp.asarray(size, jnp.int32)
      ids.append(jax.lax.rem(number, size))
      number = jax.lax.div(number, size)
    return tuple(reversed(ids))

  def _describe_ids(self, ids):
    if self.mapping.local_grid_env is not None:
      return self.mapping.local_grid_env(ids, self.sizes)
    return tuple(self.names.Axis(place, size) for axis, (place, size)
                 in enumerate(zip(ids, self.sizes)) if axis not in self.mapping.vmapped_dims)


def _interpret(names, *args, jaxpr, grid_mapping, input_output_aliases, **_):
  import jax

  loop = _Loop(names, args, jaxpr, grid_mapping, input_output_aliases)
  found = dict(zip(loop.changing, loop.run()))
  return [jax.lax.slice(found[i], (0,) * found[i].ndim, block.array_aval.shape)
          for i, block in zip(loop.results, grid_mapping.block_mappings_output)]


def _take_sizes(mapping, args):
  """The grid's sizes, of which the program computes some, and the operands that follow these."""
  count = mapping.num_dynamic_grid_bounds
  computed = iter(args[:count])
  return tuple(size if isinstance(size, int) else next(computed)
               for size in mapping.grid), args[count:]


def _is_unblocked(variable) -> bool:
  """Whether the kernel sees the array itself, instead of blocks that come and go."""
  space = str(getattr(variable.aval, "memory_space", None)).lower()
  return "any" in space or "hbm" in space
